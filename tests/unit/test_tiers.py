"""Tiers: cheaper answers as money runs low. Which grade is affordable, to whom, up to which smallest part."""

import msgspec
import pytest
from wallets import SECOND, TODAY, Books, amounts, budget, moment

from engine.core import limits
from engine.core.messages import ApplyPlan, Exhausted, Held, Hold, Invalid, Option, Renew
from engine.core.plan import Budget, Plan, Tier, Tiers
from engine.core.restore import load
from engine.core.wallet import Wallet

SEEDS = [Tier(500_000, 0), Tier(750_000, 1), Tier(950_000, 2)]
PREMIUM = {"premium": 1_500_000}


def tiered(times: dict[str, int] | None = None, steps: list[Tier] | None = None, **budgets: Budget) -> Books:
    """A wallet with the seeds' table: up to 50 % grade 0, 75 % grade 1, 95 % grade 2."""
    tiers = Tiers(SEEDS if steps is None else steps, times or {})
    return Books(plan=Plan(budgets or {"jev": budget("1.00")}, tiers=tiers))


def used(percent: int, *, times: dict[str, int] | None = None) -> Books:
    """The same, with this much of its dollar spent."""
    books = tiered(times)
    books.hold("before", "0.01")
    books.settle("before", {"usd": percent * 10_000_000})
    return books


def graded(*grades: int | None, cost: str = "0.01") -> list[Option]:
    return [Option(amounts(cost), grade=grade) for grade in grades]


# --- the seeds' table -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("percent", "outcome", "tier"),
    [
        (0, "held 0.01", 0),
        (50, "held 0.01", 0),
        (51, "held 0.01 by option 1", 1),
        (75, "held 0.01 by option 1", 1),
        (76, "held 0.01 by option 2", 2),
        (95, "held 0.01 by option 2", 2),
    ],
)
def test_the_fuller_the_budget_the_cheaper_the_answer(percent: int, outcome: str, tier: int) -> None:
    books = used(percent)
    assert books.hold("a", graded(0, 1, 2)) == outcome
    assert isinstance(books.last, Held)
    assert books.last.tier == tier


def test_above_the_last_tier_only_what_is_cached_is_left() -> None:
    books = used(96)
    assert books.hold("a", graded(0, 1, 2, 100)) == "exhausted: tier, 0.00 fits"
    cents = 10_000_000
    assert books.last == Exhausted(
        "a", "tier", "jev", "usd", TODAY, settled=96 * cents, held=0, extra=0, limit=100 * cents, remaining=4 * cents,
        fits=0, resets_at=moment("2026-12-01 00:00"),
    )  # fmt: skip


def test_who_offers_only_a_dear_answer_hears_which_grade_is_still_affordable() -> None:
    books = used(80)
    assert books.hold("a", graded(0, 1)) == "exhausted: tier, 0.00 fits"
    assert isinstance(books.last, Exhausted)
    assert books.last.tier == 2
    assert books.hold("a2", graded(0, 1, 2)) == "held 0.01 by option 2"


def test_an_option_better_than_it_must_be_is_not_needed_for_a_cheaper_one_to_be_taken() -> None:
    assert used(10).hold("a", graded(2)) == "held 0.01"


# --- how full ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("usd", "grade", "outcome"),
    [
        (500_000_000, 0, "held 0.01"),
        (500_000_001, 0, "exhausted: tier, 0.00 fits"),
        (750_000_000, 1, "held 0.01"),
        (750_000_001, 1, "exhausted: tier, 0.00 fits"),
        (950_000_000, 2, "held 0.01"),
        (950_000_001, 2, "exhausted: tier, 0.00 fits"),
    ],
)
def test_up_to_means_the_last_smallest_part(usd: int, grade: int, outcome: str) -> None:
    books = tiered()
    books.hold("before", {"usd": usd})
    assert books.hold("a", graded(grade)) == outcome


def test_a_limit_that_no_percent_divides_is_compared_exactly() -> None:
    books = tiered(steps=[Tier(333_333, 0), Tier(1_000_000, 1)], few=budget("3 requests"))
    assert books.hold("a", [Option({"requests": 1}, grade=0)]) == "held 1 requests"
    assert books.hold("b", [Option({"requests": 1}, grade=0)]).startswith("exhausted: tier")  # 1/3 is above 33.3333 %
    assert books.hold("c", [Option({"requests": 1}, grade=1)]) == "held 1 requests"


def test_what_is_used_before_this_hold_counts_and_not_the_hold_itself() -> None:
    books = tiered()
    assert books.hold("a", graded(0, cost="0.90")) == "held 0.90"
    assert books.hold("b", graded(0)) == "exhausted: tier, 0.00 fits"


def test_held_and_observed_money_fills_a_budget_as_spent_money_does() -> None:
    books = tiered(jev=budget("1.00", source="cloudflare"))
    books.observe("0.40")
    books.hold("a", "0.20")
    assert books.hold("b", graded(0, 1)) == "held 0.01 by option 1"


def test_holds_of_one_message_see_the_ones_before_them() -> None:
    books = tiered()
    asks = [Hold(id, graded(0, 1, cost="0.30"), books.ts + SECOND) for id in "abc"]
    assert books.send(*asks) == ["held 0.30", "held 0.30", "held 0.30 by option 1"]


def test_the_fullest_of_the_budgets_decides() -> None:
    books = tiered(site=budget("10.00"), user=budget("1.00", each="user"), rest=budget("5.00"))
    books.hold("before", "0.80", user="alice")
    assert books.hold("a", graded(0, 1, 2), user="alice") == "held 0.01 by option 2"
    assert books.hold("b", graded(0, 1, 2), user="bob") == "held 0.01"
    assert books.hold("c", graded(0), user="alice") == "exhausted: tier, 0.00 fits"
    assert isinstance(books.last, Exhausted)
    assert (books.last.budget, books.last.each) == ("user", "alice")


def test_of_budgets_as_full_as_each_other_the_first_of_the_plan_is_told() -> None:
    books = tiered(jev=budget("1.00"), neurons=budget("100 neurons"))
    books.hold("before", "60 neurons + 0.60")
    assert books.hold("a", [Option(amounts("1 neurons + 0.01"), grade=0)]).startswith("exhausted: tier")
    assert isinstance(books.last, Exhausted)
    assert books.last.budget == "jev"


def test_the_limit_for_these_labels_is_what_is_full() -> None:
    books = tiered(user=budget("1.00", each="user", limit_for={"user=alice": "2.00"}))
    for user in ("alice", "bob"):
        books.hold(f"before-{user}", "0.80", user=user)
    assert books.hold("a", graded(0, 1, 2), user="alice") == "held 0.01"
    assert books.hold("b", graded(0, 1, 2), user="bob") == "held 0.01 by option 2"


def test_each_option_is_judged_by_the_budgets_it_would_take_from() -> None:
    books = tiered(jev=budget("1.00"), neurons=budget("100 neurons"))
    books.hold("before", "0.99")
    dear, other = Option(amounts("0.01"), grade=0), Option(amounts("1 neurons"), grade=0)
    assert books.hold("a", [dear, other]) == "held 1 neurons by option 1"
    assert books.hold("b", [Option(amounts("0 usd + 1 neurons"), grade=0)]) == "held 0.00 + 1 neurons"


def test_what_takes_nothing_from_any_budget_is_not_judged() -> None:
    books = used(99)
    assert books.hold("a", graded(0, cost="0")) == "held 0.00"
    assert books.hold("b", graded(0, cost="5 tokens")) == "held 5 tokens"


@pytest.mark.parametrize(("last", "why"), [(950_000, "tier"), (1_000_000, "never")])
def test_of_a_limit_of_nothing_all_is_used(last: int, why: str) -> None:
    books = tiered(steps=[Tier(last, 0)], closed=budget("0"))
    assert books.hold("a", graded(0)).startswith(f"exhausted: {why}")


def test_more_than_nothing_used_of_a_limit_of_nothing_is_more_than_full() -> None:
    books = tiered(steps=[Tier(1_000_000, 0)], closed=budget("0"))
    books.settle("stray", "0.01")
    assert books.hold("a", graded(0)).startswith("exhausted: tier")


# --- cohorts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("percent", "outcome"),
    [
        (75, "held 0.01"),
        (76, "held 0.01 by option 1"),
        (99, "held 0.01 by option 1"),
    ],
)
def test_the_times_of_a_cohort_move_its_thresholds(percent: int, outcome: str) -> None:
    books = used(percent, times=PREMIUM)
    assert books.hold("a", graded(0, 1, 2), cohort="premium") == outcome


def test_times_end_at_full() -> None:
    books = used(100, times=PREMIUM)
    assert books.hold("a", graded(1), cohort="premium") == "exhausted: spent, 0.00 fits"
    books.settle("overdrawn", {"usd": 1})
    assert books.hold("b", graded(0, 1, 2), cohort="premium") == "exhausted: tier, 0.00 fits"


def test_times_below_one_bring_the_cheaper_answers_earlier() -> None:
    books = used(26, times={"guest": 500_000})
    assert books.hold("a", graded(0, 1), cohort="guest") == "held 0.01 by option 1"


@pytest.mark.parametrize("labels", [{}, {"cohort": "basic"}, {"user": "premium"}])
def test_whoever_is_in_no_cohort_with_times_has_the_plans_own_thresholds(labels: dict[str, str]) -> None:
    assert used(51, times=PREMIUM).hold("a", graded(0, 1), **labels) == "held 0.01 by option 1"


# --- whom tiers do not speak to ---------------------------------------------------------------------------------------


def test_an_option_without_a_grade_is_not_judged() -> None:
    books = used(99)
    assert books.hold("a", "0.01") == "held 0.01"
    assert isinstance(books.last, Held)
    assert books.last.tier == 0


def test_an_ungraded_option_beside_graded_ones_is_judged_by_money_alone() -> None:
    books = used(99)
    assert books.hold("a", graded(0, None)) == "held 0.01 by option 1"
    assert books.hold("b", graded(None, 0)) == "exhausted: busy, 0.00 fits"


def test_a_plan_without_tiers_judges_no_grade() -> None:
    books = Books()
    books.hold("before", "0.98")
    assert books.hold("a", graded(0)) == "held 0.01"


def test_a_renewal_is_not_judged_and_tells_the_tier_of_its_hold() -> None:
    books = used(60)
    books.hold("a", graded(0, 1))
    books.settle("more", {"usd": 370_000_000})
    assert books.renew("a", 1, "0.02") == "held 0.02 by option 1, renewal 1"
    assert isinstance(books.last, Held)
    assert (books.last.option, books.last.tier) == (1, 1)


# --- beside the other refusals ----------------------------------------------------------------------------------------


def test_where_money_refuses_what_the_tier_permits_the_last_permitted_option_is_spoken_of() -> None:
    books = used(80)
    options = [Option(amounts("0.01"), grade=0), Option(amounts("0.90"), grade=2), Option(amounts("0.50"), grade=1)]
    assert books.hold("a", options) == "exhausted: spent, 0.20 fits"
    assert isinstance(books.last, Exhausted)
    assert books.last.tier is None
    too_large = [Option(amounts("1.10"), grade=2), Option(amounts("0.01"), grade=0)]
    assert books.hold("b", too_large) == "exhausted: never, 0.20 fits"


def test_the_first_permitted_option_that_fits_is_taken_with_least_too() -> None:
    books = used(80)
    options = [
        Option(amounts("0.01"), grade=1),
        Option(amounts("0.90"), grade=2),
        Option(amounts("0.90"), amounts("0.10"), grade=3),
    ]
    assert books.hold("a", options) == "held 0.20 by option 2"


def test_a_freeze_comes_before_the_tier() -> None:
    books = used(99)
    books.freeze("all")
    assert books.hold("a", graded(0)) == "frozen: all"


def test_a_late_hold_is_late_before_it_is_too_dear() -> None:
    books = used(99)
    assert books.at("09:00").hold("a", graded(0), by="08:59") == "late"


def test_a_refusal_by_tier_is_remembered_for_its_attempt() -> None:
    books = used(60)
    assert books.hold("a", graded(0)) == "exhausted: tier, 0.00 fits"
    books.adjust("-0.50")
    assert books.hold("a", graded(0)) == "again: refused"
    assert books.hold("a", graded(0), wait_s=6) == "held 0.01"


# --- the plan ---------------------------------------------------------------------------------------------------------


def test_other_tiers_count_from_the_next_hold_on() -> None:
    books = used(60)
    none = msgspec.structs.replace(books.plan, tiers=msgspec.UNSET)
    assert books.hold("a", graded(0)) == "exhausted: tier, 0.00 fits"
    assert books.apply(none) == "planned"
    assert books.hold("b", graded(0)) == "held 0.01"
    assert books.apply(msgspec.structs.replace(none, tiers=Tiers([Tier(100_000, 3)]))) == "planned"
    assert books.hold("c", graded(0)) == "exhausted: tier, 0.00 fits"


def test_a_plan_without_tiers_is_stored_without_a_word_of_them() -> None:
    assert b"tier" not in msgspec.json.encode(Plan({"jev": budget("1.00")}))


def test_a_wallet_that_was_restored_has_its_tiers() -> None:
    books = used(80, times=PREMIUM)
    restored: Wallet = load(books.wallet.dump())
    assert restored.ladder == books.wallet.ladder
    assert restored.ladder is not None
    assert restored.dump() == books.wallet.dump()


@pytest.mark.parametrize(
    ("tiers", "field"),
    [
        (Tiers([]), "tiers"),
        (Tiers([Tier(n + 1, n) for n in range(17)]), "tiers"),
        (Tiers([Tier(0, 0)]), "tiers[0].up_to"),
        (Tiers([Tier(1_000_001, 0)]), "tiers[0].up_to"),
        (Tiers([Tier(500_000, 0), Tier(500_000, 1)]), "tiers[1].up_to"),
        (Tiers([Tier(500_000, 1), Tier(600_000, 1)]), "tiers[1].grade"),
        (Tiers([Tier(500_000, -1)]), "tiers[0].grade"),
        (Tiers([Tier(500_000, 101)]), "tiers[0].grade"),
        (Tiers(SEEDS, {"premium": 0}), "tier_times.premium"),
        (Tiers(SEEDS, {"premium": 100_000_001}), "tier_times.premium"),
        (Tiers(SEEDS, {"": 1_000_000}), "tier_times"),
        (Tiers(SEEDS, {f"c{n}": 1_000_000 for n in range(limits.TIER_COHORTS_MAX + 1)}), "tier_times"),
    ],
)
def test_tiers_that_make_no_sense_are_invalid_and_name_the_place(tiers: Tiers, field: str) -> None:
    books = Books()
    plan = msgspec.structs.replace(books.plan, tiers=tiers)
    assert books.send(ApplyPlan("p", plan, books.wallet.plan_digest)) == [f"invalid: {field}"]
    assert isinstance(books.last, Invalid)


def test_as_many_tiers_and_cohorts_as_are_allowed_are_taken() -> None:
    steps = [Tier(n + 1, n) for n in range(limits.TIERS_MAX)]
    times = {f"c{n}": 100_000_000 for n in range(limits.TIER_COHORTS_MAX)}
    assert tiered(times, steps).plan.tiers == Tiers(steps, times)


def test_a_renewal_of_a_graded_hold_goes_through_the_stored_bytes() -> None:
    books = used(80)
    books.hold("a", graded(2))
    assert books.send(Renew("a", 1)) == ["held 0.01, renewal 1"]
    assert books.replayed().dump() == books.wallet.dump()
