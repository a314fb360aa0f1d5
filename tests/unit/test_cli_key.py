"""`purse key` against the small fake of the API: what is sent, what is printed, what is refused before anything is."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from fake_api import FakeApi, fake_api

KEPT = {"id": "abcdefghij", "role": "spend", "state": "active", "user": "alice", "labels": {"team": "x"}}


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with fake_api() as running:
        running.canned["/v1/keys"] = (201, {"key": "cp_abcdefghij_secret", **KEPT})
        ended = {"state": "revoked", "revoked_at": "2026-11-30T14:05:00.000Z", "revoked_by": "admin", "reason": "lost"}
        running.canned["/v1/keys/abcdefghij/revoke"] = (200, {**KEPT, **ended})
        yield running


def test_a_new_key_stands_alone_on_standard_output(api: FakeApi) -> None:
    made = api.ask(
        "key", "new", "--role", "spend", "--user", "alice", "--cohort", "premium", "--label", "team=x", "--names",
        "user,cohort", "--expires", "30d", "--note", "laptop",
    )  # fmt: skip
    assert (made.exit_code, made.stdout) == (0, "cp_abcdefghij_secret\n")
    assert "not shown again" in made.stderr
    assert api.bodies("/v1/keys") == [
        {
            "role": "spend", "user": "alice", "cohort": "premium", "labels": {"team": "x"}, "names": ["user", "cohort"],
            "expires_s": 30 * 86_400, "note": "laptop",
        }
    ]  # fmt: skip


def test_a_key_that_replaces_another_says_only_that(api: FakeApi) -> None:
    assert api.ask("key", "new", "--replaces", "abcdefghij").exit_code == 0
    assert api.bodies("/v1/keys") == [{"replaces": "abcdefghij"}]


@pytest.mark.parametrize(
    "wrong",
    [
        ["new"], ["new", "--role", "emperor"], ["new", "--role", "spend", "--expires", "soon"],
        ["new", "--role", "spend", "--expires", "0d"], ["new", "--role", "spend", "--label", "team"],
        ["revoke", "abcdefghij"], ["revoke", "../holds", "--reason", "x"], ["revoke"],
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_not_sent(api: FakeApi, wrong: list[str]) -> None:
    assert api.ask("key", *wrong).exit_code == 2
    assert api.seen == []


def test_a_list_says_whose_each_key_is_and_why_one_has_ended(api: FakeApi) -> None:
    ended = {**KEPT, "id": "bcdefghijk", "state": "revoked", "revoked_at": "T", "revoked_by": "ann", "reason": "lost"}
    api.canned["/v1/keys"] = (200, {"keys": [KEPT, ended]})
    first, second = api.ask("key", "list").stdout.splitlines()
    assert first == "abcdefghij  spend  active  user=alice  team=x"
    assert second.endswith("revoked T by ann: lost")
    assert json.loads(api.ask("--json", "key", "list").stdout)["keys"][0] == KEPT


def test_revoking_sends_the_reason(api: FakeApi) -> None:
    assert "by admin: lost" in api.ask("key", "revoke", "abcdefghij", "--reason", "lost").stdout
    assert api.bodies("/v1/keys/abcdefghij/revoke") == [{"reason": "lost"}]
