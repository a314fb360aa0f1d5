"""Tiers as people write them in `purse.toml` and as JSON, and what a change of them is told as."""

from pathlib import Path

import msgspec
import pytest

from engine import plan_file
from engine.core.plan import Plan, PlanError, Tier, Tiers, digest
from engine.plan_file import DEFAULT_PLAN, describe_change, parse_toml, plan_from_json, plan_to_json, read

BUDGET = '[budgets.jev]\nunit = "usd"\nlimit = "1"\n'


def plan_of(more: str) -> Plan:
    plan = parse_toml(BUDGET + more).plan
    assert plan is not None
    return plan


def rows(*tiers: tuple[object, object]) -> str:
    return "".join(f"[[tiers]]\nup_to = {up_to}\ngrade = {grade}\n" for up_to, grade in tiers)


def test_the_plan_with_tiers_that_comes_along_has_the_default_budgets_and_three_tiers() -> None:
    plan = read(Path(plan_file.__file__).parent / "plans" / "tiers.toml").plan
    tiers = Tiers([Tier(500_000, 0), Tier(750_000, 1), Tier(950_000, 2)], {"premium": 1_500_000})
    assert plan == msgspec.structs.replace(DEFAULT_PLAN, tiers=tiers)


@pytest.mark.parametrize("written", ["12.5", '"12.5"', '"12.50"'])
def test_a_percentage_is_read_exactly_however_it_is_written(written: str) -> None:
    assert plan_of(rows((written, 0))).tiers == Tiers([Tier(125_000, 0)])


@pytest.mark.parametrize("said", [{}, {"tiers": []}, {"tiers": [], "tier_times": {}}])
def test_a_plan_that_says_no_tier_has_none_and_the_digest_of_one_without(said: dict[str, object]) -> None:
    plan = plan_from_json({"budgets": {"jev": {"unit": "usd", "limit": "1"}}, **said})
    assert plan.tiers is msgspec.UNSET
    assert digest(plan) == digest(plan_of(""))


def test_tiers_are_shown_with_decimal_strings() -> None:
    shown = plan_to_json(plan_of(rows((50, 0), (75, 1)) + "[tier_times]\npremium = 1.5"))
    assert shown["tiers"] == [{"up_to": "50", "grade": 0}, {"up_to": "75", "grade": 1}]
    assert shown["tier_times"] == {"premium": "1.5"}
    assert plan_to_json(plan_of("")).keys() == {"plan", "units", "budgets"}


@pytest.mark.parametrize(
    ("more", "field", "why"),
    [
        (rows((101, 0)), "tiers[0].up_to", "at most 100 percent"),
        (rows((0, 0)), "tiers[0].up_to", "above 0"),
        (rows(('"50 %"', 0)), "tiers[0].up_to", 'got "50 %"'),
        (rows(("33.33333", 0)), "tiers[0].up_to", "at most 4 digits after the point"),
        (rows((-1, 0)), "tiers[0].up_to", "must not be negative"),
        (rows((True, 0)).replace("True", "true"), "tiers[0].up_to", "got true or false"),
        ("[[tiers]]\nup_to = 50", "tiers[0].grade", "is required"),
        (rows((50, 0.5)), "tiers[0].grade", "expected int"),
        (rows((50, 101)), "tiers[0].grade", "0 to 100"),
        ("[[tiers]]\nup_to = 50\ngrades = 0", "tiers[0].grades", 'did you mean "grade"'),
        (rows((50, 0), (40, 1)), "tiers[1].up_to", "more than the tier before"),
        (rows((50, 1), (60, 0)), "tiers[1].grade", "more than the tier before"),
        (rows(*((n, n) for n in range(1, 18))), "tiers", "1 to 16"),
        ("[tiers]\nup_to = 50\ngrade = 0", "tiers", "[[tiers]]"),
        ('[tier_times]\npremium = "1.5"', "tier_times", "there are none"),
        (rows((50, 0)) + '[tier_times]\npremium = "0"', "tier_times.premium", "above 0 and at most 100"),
        (rows((50, 0)) + "[tier_times]\npremium = 101", "tier_times.premium", "above 0 and at most 100"),
        (rows((50, 0)) + '[tier_times]\npremium = "twice"', "tier_times.premium", 'got "twice"'),
        (rows((50, 0)) + '[tier_times]\n"" = "2"', "tier_times", "1 to 128 printable characters"),
        (rows((50, 0)) + "[tier_time]\npremium = 2", "tier_time", 'did you mean "tier_times"'),
    ],
)
def test_tiers_that_cannot_be_used_are_refused_with_what_is_allowed(more: str, field: str, why: str) -> None:
    with pytest.raises(PlanError) as error:
        parse_toml(BUDGET + more)
    assert (error.value.field, why in error.value.why) == (field, True), error.value


# --- what a change does, in words -------------------------------------------------------------------------------------


def test_a_first_plan_tells_its_tiers() -> None:
    assert describe_change(None, plan_of(rows((50, 0)) + "[tier_times]\npremium = 1.5"))[1:] == [
        "tiers: added, up to 50 % grade 0; above that no grade is affordable",
        "tier_times.premium: none of its own -> 1.5",
    ]


def test_other_tiers_are_told_as_they_were_and_as_they_become() -> None:
    before = plan_of(rows((50, 0)) + "[tier_times]\npremium = 1.5\nguest = 0.5")
    after = plan_of(rows((12.5, 0), (100, 3)) + "[tier_times]\nguest = 0.25")
    assert describe_change(before, after) == [
        "tiers: up to 50 % grade 0 -> up to 12.5 % grade 0, up to 100 % grade 3; above that no grade is affordable",
        "tier_times.premium: 1.5 -> none of its own",
        "tier_times.guest: 0.5 -> 0.25",
    ]
    assert describe_change(after, plan_of("")) == ["tiers: removed; every grade is affordable"]


def test_times_of_one_are_told_apart_from_none_of_its_own() -> None:
    before, after = plan_of(rows((50, 0))), plan_of(rows((50, 0)) + "[tier_times]\npremium = 1")
    assert describe_change(before, after) == ["tier_times.premium: none of its own -> 1"]
