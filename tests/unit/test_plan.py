"""The plan: what may stand in one, which limit it gives whom, and which changes start a meter anew."""

from typing import get_args

import msgspec
import pytest

from engine.core import limits
from engine.core.amounts import SCALES
from engine.core.periods import zone_known
from engine.core.plan import RULES, Budget, Per, Plan, PlanError, digest, limit_of, restarts, validate

NEURONS = Budget(unit="neurons", limit=10_000_000_000, source="cloudflare")
JEV = Budget(unit="usd", limit=1_000_000_000, where={"provider": "jev"})
EACH_USER = Budget(
    unit="jpy", limit=80, each="user", limit_for={"cohort=premium": 120, "cohort=staff": 200, "user=alice": 50}
)


def plan_with(**changed: object) -> Plan:
    return msgspec.structs.replace(Plan(budgets={"neurons": NEURONS, "jev": JEV}), **changed)


def budget_with(**changed: object) -> Plan:
    return Plan(budgets={"jev": msgspec.structs.replace(JEV, **changed)})


def refused(plan: Plan) -> PlanError:
    with pytest.raises(PlanError) as error:
        validate(plan, zone_known=zone_known)
    return error.value


# --- which limit holds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "limit"),
    [
        ({"user": "bob"}, 80),
        ({"user": "bob", "cohort": "premium"}, 120),
        ({"user": "bob", "cohort": "other"}, 80),
        ({"user": "alice"}, 50),
        ({"user": "alice", "cohort": "premium"}, 50),
        ({"cohort": "staff"}, 200),
        ({}, 80),
    ],
)
def test_the_entry_of_ones_own_wins_then_the_largest_that_matches(labels: dict[str, str], limit: int) -> None:
    assert limit_of(EACH_USER, labels) == limit


def test_of_several_that_match_the_largest_wins_in_whatever_order_they_stand() -> None:
    rules = {"tier=a": 10, "origin=b": 30, "tag=c": 20}
    labels = {"tier": "a", "origin": "b", "tag": "c"}
    forwards = Budget(unit="usd", limit=5, limit_for=rules)
    backwards = Budget(unit="usd", limit=5, limit_for=dict(reversed(rules.items())))
    assert limit_of(forwards, labels) == limit_of(backwards, labels) == 30


def test_an_entry_may_lower_the_limit_even_to_zero() -> None:
    budget = Budget(unit="usd", limit=5, each="user", limit_for={"cohort=trial": 0, "user=eve": 0})
    assert limit_of(budget, {"user": "bob", "cohort": "trial"}) == 0
    assert limit_of(budget, {"user": "eve"}) == 0


def test_a_value_may_hold_an_equals_sign() -> None:
    assert limit_of(Budget(unit="usd", limit=5, limit_for={"tag=a=b": 7}), {"tag": "a=b"}) == 7


# --- which changes start a meter anew ---------------------------------------------------------------------------------


@pytest.mark.parametrize("changed", [{"per": "week"}, {"zone": "Asia/Tokyo"}, {"where": {}}, {"each": "user"}])
def test_c13_another_period_zone_match_or_each_starts_at_zero(changed: dict[str, object]) -> None:
    assert restarts(JEV, msgspec.structs.replace(JEV, **changed))


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"limit": 1},
        {"limit_for": {"user=alice": 1}},
        {"note": "n"},
        {"link": "l"},
        {"public": "amounts"},
        {"source": "s"},
        {"required": True},
    ],
)
def test_j6_another_limit_keeps_what_was_used(changed: dict[str, object]) -> None:
    assert not restarts(JEV, msgspec.structs.replace(JEV, **changed))


def test_the_order_in_which_a_match_is_written_starts_nothing_anew() -> None:
    one = Budget(unit="usd", limit=1, where={"provider": "jev", "model": "m"})
    other = Budget(unit="usd", limit=1, where={"model": "m", "provider": "jev"})
    assert not restarts(one, other)


# --- the digest -------------------------------------------------------------------------------------------------------


def test_the_digest_is_a_name_for_all_that_decides() -> None:
    names = {
        digest(plan)
        for plan in (
            plan_with(),
            plan_with(ttl_s=601),
            plan_with(remember_s=1),
            plan_with(zone="Asia/Tokyo"),
            plan_with(tzdata="2026.1"),
            plan_with(on_lapse="release"),
            plan_with(units={**SCALES, "credits": 2}),
            budget_with(),
            budget_with(limit=2),
            budget_with(note="n"),
        )
    }
    assert len(names) == 10
    assert all(len(name) == 32 and int(name, 16) >= 0 for name in names)


def test_the_digest_changes_with_the_order_of_budgets_because_ties_are_broken_by_it() -> None:
    assert digest(plan_with()) != digest(plan_with(budgets={"jev": JEV, "neurons": NEURONS}))


def test_a_plan_read_back_from_the_stream_has_the_same_digest() -> None:
    plan = plan_with(budgets={"user-daily": EACH_USER, "neurons": NEURONS})
    read_back = msgspec.json.decode(msgspec.json.encode(plan), type=Plan)
    assert (read_back, digest(read_back)) == (plan, digest(plan))


# --- what may stand in a plan -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("per", get_args(Per))
def test_every_kind_of_period_in_any_zone_is_a_valid_budget(per: Per) -> None:
    for zone in ("UTC", "Asia/Tokyo", "Europe/Berlin"):
        validate(budget_with(per=per, zone=zone), zone_known=zone_known)


def test_a_limit_of_zero_is_a_limit() -> None:
    validate(budget_with(limit=0), zone_known=zone_known)


def test_c12_a_zone_that_does_not_exist_is_refused() -> None:
    assert refused(budget_with(zone="Asia/Tokio")).field == "budgets.jev.zone"
    assert refused(plan_with(zone="local")).field == "zone"


def test_l15_a_unit_the_plan_does_not_have_is_refused_with_those_it_has() -> None:
    error = refused(budget_with(unit="USD"))
    assert error.field == "budgets.jev.unit"
    assert "jpy, neurons, requests, tokens, usd" in str(error)


def test_an_engine_refuses_rules_it_does_not_know() -> None:
    assert refused(plan_with(rules=RULES + 1)).field == "rules"
    assert refused(plan_with(rules=0)).field == "rules"


@pytest.mark.parametrize("name", ["", "Jev", "a b", "-a", "a/b", "a=b", "é", "a" * 33, "all", "a\n"])
def test_a_budget_has_a_name_that_can_stand_in_a_scope(name: str) -> None:
    error = refused(Plan(budgets={name: JEV}))
    assert error.field == f"budgets.{name[:32]}"
    assert len(str(error)) < 160


@pytest.mark.parametrize("name", ["j", "1", "user-daily", "a.b_c-d", "a" * 32])
def test_a_budget_may_be_called(name: str) -> None:
    validate(Plan(budgets={name: JEV}), zone_known=zone_known)


def test_a_plan_has_at_least_one_budget_and_at_most_64() -> None:
    many = {f"b{number}": JEV for number in range(limits.BUDGETS_MAX)}
    validate(Plan(budgets=many), zone_known=zone_known)
    assert refused(Plan(budgets={**many, "one-more": JEV})).field == "budgets"
    assert refused(Plan(budgets={})).field == "budgets"


@pytest.mark.parametrize("limit", [-1, limits.AMOUNT_MAX + 1])
def test_a_limit_is_an_amount(limit: int) -> None:
    assert refused(budget_with(limit=limit)).field == "budgets.jev.limit"
    assert refused(budget_with(limit_for={"user=alice": limit})).field.startswith("budgets.jev.limit")
    validate(budget_with(limit=limits.AMOUNT_MAX), zone_known=zone_known)


@pytest.mark.parametrize("rule", ["", "premium", "=premium", "cohort=", "Cohort=premium", "a b=c"])
def test_a_limit_for_someone_names_a_label_and_a_value(rule: str) -> None:
    assert refused(budget_with(limit_for={rule: 1})).field == "budgets.jev.limit_for"


@pytest.mark.parametrize("label", ["", "Provider", "a b", "a=b", "1a", "a" * 33])
def test_a_label_has_a_name(label: str) -> None:
    assert refused(budget_with(where={label: "jev"})).field == "budgets.jev.where"
    assert refused(budget_with(each=label)).field.startswith("budgets.jev.")


@pytest.mark.parametrize("field", ["note", "link", "source"])
def test_a_text_has_at_most_256_characters(field: str) -> None:
    validate(budget_with(**{field: "x" * limits.TEXT_CHARS_MAX}), zone_known=zone_known)
    assert refused(budget_with(**{field: "x" * (limits.TEXT_CHARS_MAX + 1)})).field.startswith("budgets.jev")


# --- units ------------------------------------------------------------------------------------------------------------


def test_a_plan_may_add_units() -> None:
    plan = Plan(budgets={"c": Budget(unit="credits", limit=1)}, units={**SCALES, "credits": 2})
    validate(plan, zone_known=zone_known)


@pytest.mark.parametrize("scale", [-1, 13])
def test_a_scale_is_0_to_12(scale: int) -> None:
    assert refused(plan_with(units={**SCALES, "credits": scale})).field == "units.credits"


def test_the_scale_of_a_known_unit_never_changes() -> None:
    error = refused(plan_with(units={**SCALES, "usd": 6}))
    assert (error.field, error.why) == ("units.usd", "the scale of usd is 9 and never changes")


def test_a_plan_has_at_most_16_units() -> None:
    room = limits.UNITS_MAX - len(SCALES)
    validate(plan_with(units={**SCALES, **{f"u{n}": 0 for n in range(room)}}), zone_known=zone_known)
    assert refused(plan_with(units={**SCALES, **{f"u{n}": 0 for n in range(room + 1)}})).field == "units"


# --- times ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shortest", "usual", "longest"),
    [(0, 600, 86_400), (601, 600, 86_400), (1, 86_401, 86_401), (1, 600, 599), (1, 600, 86_401), (1, 0, 86_400)],
)
def test_the_bounds_of_a_holds_life_are_in_order_and_within_a_day(shortest: int, usual: int, longest: int) -> None:
    assert refused(plan_with(ttl_s_min=shortest, ttl_s=usual, ttl_s_max=longest)).field == "ttl_s"


def test_the_widest_and_the_narrowest_bounds_are_valid() -> None:
    validate(plan_with(ttl_s_min=1, ttl_s=1, ttl_s_max=1), zone_known=zone_known)
    validate(plan_with(ttl_s_min=86_400, ttl_s=86_400, ttl_s_max=86_400), zone_known=zone_known)


@pytest.mark.parametrize("remember_s", [0, -1, limits.REMEMBER_S_MAX + 1])
def test_the_memory_is_bounded(remember_s: int) -> None:
    assert refused(plan_with(remember_s=remember_s)).field == "remember_s"
    validate(plan_with(remember_s=limits.REMEMBER_S_MAX), zone_known=zone_known)
