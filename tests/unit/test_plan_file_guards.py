"""Guards as people write them in `purse.toml` and as JSON, and what a change of them is told as."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from engine import plan_file
from engine.core.plan import Guard, Plan, PlanError, digest
from engine.plan_file import DEFAULT_PLAN, describe_change, parse_toml, plan_from_json, plan_to_json, read

BUDGET = '[budgets.jev]\nunit = "usd"\nlimit = "1"\n'
STORM = '[guards.storm]\nlabel = "user"\nmore_than = 30\nwithin_s = 60\naction = "cool"\nfor_s = 300\n'
LEAK = '[guards.leak]\nlabel = "key"\ndistinct = "origin"\nmore_than = 12\nwithin_s = 86400\naction = "revoke"\n'


def plan_of(more: str) -> Plan:
    plan = parse_toml(BUDGET + more).plan
    assert plan is not None
    return plan


def test_the_plan_for_strangers_has_the_default_budgets_and_three_guards() -> None:
    plan = read(Path(plan_file.__file__).parent / "plans" / "strangers.toml").plan
    guards = {
        "retry-storm": Guard("user", 30, 60, "cool", 300),
        "leaked-key": Guard("key", 12, 86_400, "revoke", distinct="origin"),
        "long-session": Guard("session", 100, 86_400, "alert"),
    }
    assert plan == msgspec.structs.replace(DEFAULT_PLAN, guards=guards)


def test_what_is_shown_is_read_back_as_the_same_plan() -> None:
    plan = plan_of(STORM + LEAK)
    shown = plan_to_json(plan)
    assert plan_from_json(msgspec.json.encode(shown)) == plan
    assert plan_to_json(plan_of("")).keys() == {"plan", "units", "budgets"}
    leak = {"label": "key", "more_than": 12, "within_s": 86_400, "action": "revoke", "distinct": "origin"}
    assert msgspec.json.decode(msgspec.json.encode(shown))["guards"]["leak"] == leak


def test_a_plan_that_says_no_guard_has_none_and_the_digest_of_one_without() -> None:
    plan = plan_from_json({"budgets": {"jev": {"unit": "usd", "limit": "1"}}, "guards": {}})
    assert plan.guards is DEFAULT_PLAN.guards is msgspec.UNSET
    assert digest(plan) == digest(plan_of(""))


@pytest.mark.parametrize(
    ("more", "field", "why"),
    [
        (STORM.replace("30\n", "0\n"), "guards.storm.more_than", "1 to 1000"),
        (STORM.replace("30\n", "1001\n"), "guards.storm.more_than", "1 to 1000"),
        (STORM.replace("= 60", "= 0"), "guards.storm.within_s", "1 to 2678400 seconds"),
        (STORM.replace("= 300", "= 0"), "guards.storm.for_s", "seconds of cooling"),
        (LEAK + "for_s = 5", "guards.leak.for_s", 'only where the action is "cool"'),
        (LEAK.replace('"revoke"', '"ban"'), "guards.leak.action", "expected one of cool, revoke, alert"),
        (LEAK.replace('"origin"', '"key"'), "guards.leak.distinct", "another label"),
        (LEAK.replace('"origin"', '"Origin"'), "guards.leak.distinct", "a label's name"),
        (LEAK.replace('"key"', '"Key"'), "guards.leak.label", "a label's name"),
        (STORM.replace("more_than", "more_then"), "guards.storm.more_then", 'did you mean "more_than"?'),
        (STORM.replace('label = "user"\n', ""), "guards.storm.label", "is required"),
        (STORM.replace("= 30\n", "= 30.5\n"), "guards.storm.more_than", "expected int"),
        ("guards = 5", "budgets.jev.guards", "unknown"),
        ("".join(STORM.replace("storm", f"s{n}") for n in range(17)), "guards", "1 to 16"),
        (STORM.replace("guards.storm", "guards.Storm"), "guards.Storm", "a name is"),
    ],
)
def test_guards_that_cannot_be_used_are_refused_with_what_is_allowed(more: str, field: str, why: str) -> None:
    with pytest.raises(PlanError) as error:
        parse_toml(BUDGET + more)
    assert (error.value.field, why in error.value.why) == (field, True), error.value


def test_a_change_of_guards_is_told_in_words() -> None:
    storm, both = plan_of(STORM), plan_of(STORM.replace("30\n", "40\n") + LEAK)
    thirty = "more than 30 holds of one user within 60 s: cool for 300 s"
    assert describe_change(storm, both) == [
        f"guards.storm: {thirty} -> more than 40 holds of one user within 60 s: cool for 300 s; it counts anew",
        "guards.leak: added, more than 12 values of origin of one key within 86400 s: revoke",
    ]
    assert describe_change(storm, plan_of("")) == ["guards.storm: removed; what it cooled or revoked stays so"]
    assert f"guards.storm: added, {thirty}" in describe_change(None, storm)
