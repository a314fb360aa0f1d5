"""`purse alerts`, and the ways to say what is frozen: what is sent, what is said, how it ends."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest
from fake_api import FakeApi, fake_api

ALERT = {
    "id": "alert:percent:jev:2040-11-30:75", "at": "2040-11-30T13:55:12.000Z",
    "text": "jev 2040-11-30: 75 % used: $0.75 of $1.00", "deliveries": {"ops": "sent", "pager": "waiting"},
}  # fmt: skip


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApi]:
    for name in [name for name in os.environ if name.startswith("PURSE_")]:
        monkeypatch.delenv(name)
    with fake_api() as running:
        yield running


def test_the_list_says_when_what_and_where_it_has_arrived(api: FakeApi) -> None:
    api.canned["/v1/alerts"] = (200, {"alerts": [ALERT, {**ALERT, "deliveries": {}}]})
    result = api.ask("alerts", "list")
    first, second = result.output.splitlines()
    assert first.endswith("  jev 2040-11-30: 75 % used: $0.75 of $1.00  (ops: sent, pager: waiting)")
    assert second.endswith("of $1.00")
    assert json.loads(api.ask("--json", "alerts", "list").output)["alerts"][0] == ALERT


def test_no_alerts_are_said_too(api: FakeApi) -> None:
    api.canned["/v1/alerts"] = (200, {"alerts": []})
    assert api.ask("alerts", "list").output == "no alerts\n"


def test_a_test_says_what_each_target_answered_and_fails_if_one_did_not_take_it(api: FakeApi) -> None:
    took = {"target": "ops", "delivered": True}
    api.canned["/v1/alerts/test"] = (200, {"targets": [took]})
    result = api.ask("alerts", "test", "--target", "ops")
    assert (result.output, result.exit_code) == ("ops took it\n", 0)
    assert api.bodies("/v1/alerts/test") == [{"target": "ops"}]

    failed = {"target": "pager", "delivered": False, "why": "it answers with status 500"}
    api.canned["/v1/alerts/test"] = (200, {"targets": [took, failed]})
    result = api.ask("alerts", "test")
    assert result.output == "ops took it\npager did not take it: it answers with status 500\n"
    assert result.exit_code == 1


def test_a_test_to_nobody_is_an_error(api: FakeApi) -> None:
    api.canned["/v1/alerts/test"] = (404, {"type": "/problems/no-target", "detail": "No projector here sends alerts."})
    result = api.ask("alerts", "test")
    assert (result.exit_code, "No projector here sends alerts." in result.output) == (1, True)


@pytest.mark.parametrize(
    ("said", "scope"),
    [(["all"], "all"), (["--budget", "jev"], "jev"), (["--label", "user=alice"], "user=alice"), (["jev"], "jev")],
)
@pytest.mark.parametrize("verb", ["freeze", "thaw"])
def test_a_scope_is_said_by_itself_as_a_budget_or_as_a_label(
    api: FakeApi, verb: str, said: list[str], scope: str
) -> None:
    api.canned[f"/v1/{verb}"] = (200, {"outcome": "done", "id": "1"})
    assert api.ask(verb, *said, "--reason", "why").exit_code == 0
    assert api.bodies(f"/v1/{verb}") == [{"scope": scope, "reason": "why"}]


@pytest.mark.parametrize(
    "said", [[], ["all", "--budget", "jev"], ["--budget", "jev", "--label", "user=a"], ["--label", "user"]]
)
def test_what_is_frozen_is_never_a_guess(api: FakeApi, said: list[str]) -> None:
    assert api.ask("freeze", *said, "--reason", "why").exit_code == 2
    assert api.seen == []
