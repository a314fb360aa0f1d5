"""`purse plan` against the small fake of the API: shown, compared, and never applied by surprise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_api import FakeApi, fake_api

from engine.core.plan import digest
from engine.plan_file import parse_toml, plan_to_json

PLAN = """
[budgets.jev]
unit = "usd"
limit = "1.00"
zone = "UTC"
where = { provider = "jev" }
note = 'say "please"'
[budgets.user-daily]
unit = "jpy"
limit = "80"
zone = "UTC"
each = "user"
limit_for = { "cohort=premium" = "120" }
"""


TIERS = """
[[tiers]]
up_to = 50
grade = 0
[[tiers]]
up_to = 75
grade = 1
[tier_times]
premium = 1.5
"""


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with fake_api() as running:
        yield running


@pytest.fixture
def plan_file(api: FakeApi, tmp_path: Path) -> Path:
    """A purse.toml that is in force."""
    path = tmp_path / "purse.toml"
    path.write_text(PLAN)
    plan = parse_toml(PLAN).plan
    assert plan is not None
    api.canned["/v1/plan"] = (200, {"plan": plan_to_json(plan), "digest": digest(plan)})
    return path


def test_a_plan_that_is_shown_can_be_read_back_as_the_same_plan(api: FakeApi, plan_file: Path) -> None:
    shown = api.ask("plan", "show").output
    assert parse_toml(shown).plan == parse_toml(PLAN).plan
    assert json.loads(api.ask("--json", "plan", "show").output) == api.canned["/v1/plan"][1]


def test_tiers_are_shown_and_read_back(api: FakeApi) -> None:
    plan = parse_toml(PLAN + TIERS).plan
    assert plan is not None
    api.canned["/v1/plan"] = (200, {"plan": plan_to_json(plan), "digest": digest(plan)})
    shown = api.ask("plan", "show").output
    assert '[[tiers]]\nup_to = "75"\ngrade = 1\n' in shown
    assert '[tier_times]\npremium = "1.5"\n' in shown
    assert parse_toml(shown).plan == plan


def test_a_diff_tells_what_becomes_of_the_tiers(api: FakeApi, plan_file: Path) -> None:
    plan_file.write_text(PLAN + TIERS)
    assert api.ask("plan", "diff", str(plan_file)).output.splitlines() == [
        "tiers: added, up to 50 % grade 0, up to 75 % grade 1; above that no grade is affordable",
        "tier_times.premium: none of its own -> 1.5",
    ]


def test_a_diff_says_what_changes_and_changes_nothing(api: FakeApi, plan_file: Path) -> None:
    assert api.ask("plan", "diff", str(plan_file)).output == "nothing: this plan is in force\n"
    plan_file.write_text(PLAN.replace('"1.00"', '"2"'))
    assert api.ask("plan", "diff", str(plan_file)).output == "budgets.jev.limit: 1 usd -> 2 usd; what was used stays\n"
    assert all(verb == "GET" for verb, _, _ in api.seen)


def test_a_plan_that_restarts_nothing_is_applied_and_replaces_the_one_it_was_made_from(
    api: FakeApi, plan_file: Path
) -> None:
    was = api.canned["/v1/plan"][1]["digest"]
    plan_file.write_text(PLAN.replace('"1.00"', '"2"'))
    assert api.ask("plan", "apply", str(plan_file)).exit_code == 0
    [sent] = [body for verb, _, body in api.seen if verb == "POST"]
    assert sent["replaces"] == was
    assert sent["plan"]["budgets"]["jev"]["limit"] == "2"


def test_a_plan_that_restarts_a_budget_needs_yes(api: FakeApi, plan_file: Path) -> None:
    plan_file.write_text(PLAN.replace('each = "user"', 'each = "key"'))
    refused = api.ask("plan", "apply", str(plan_file))
    assert refused.exit_code == 1
    assert "RESTARTS" in refused.output
    assert refused.output.endswith("purse: user-daily would start at zero; if that is meant, say --yes\n")
    assert all(verb == "GET" for verb, _, _ in api.seen)
    assert api.ask("plan", "apply", str(plan_file), "--yes").exit_code == 0
    assert api.seen[-1][0] == "POST"


def test_the_first_plan_replaces_nothing(api: FakeApi, plan_file: Path) -> None:
    api.canned["/v1/plan"] = (503, {"type": "/problems/no-plan", "title": "x", "status": 503, "detail": "No plan yet."})
    api.ask("plan", "apply", str(plan_file))
    assert api.seen[-1][2]["replaces"] == ""
    assert api.ask("plan", "show").output == "purse: HTTP 503: No plan yet.\n"


def test_a_plan_that_came_first_is_an_error_not_an_overwrite(api: FakeApi, plan_file: Path) -> None:
    api.conflicting = True
    plan_file.write_text(PLAN.replace('"1.00"', '"2"'))
    result = api.ask("plan", "apply", str(plan_file))
    assert result.exit_code == 1
    assert result.output.splitlines()[-1] == "conflict: It is so."


def test_a_misspelt_plan_is_an_error_that_names_the_place(api: FakeApi, plan_file: Path) -> None:
    plan_file.write_text(PLAN.replace("limit =", "limits ="))
    result = api.ask("plan", "apply", str(plan_file))
    assert result.exit_code == 1
    assert "purse.toml: budgets.jev.limits: unknown" in result.output
