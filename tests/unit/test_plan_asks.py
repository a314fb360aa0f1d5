"""The plan on the stream: what decides is itself an ask, compared and set."""

import pytest
from wallets import TODAY, Books, budget, words

from engine.core.messages import (
    Adjust,
    AnyAsk,
    ApplyPlan,
    Freeze,
    Hold,
    Observe,
    Option,
    Planned,
    Renew,
    Restore,
    Revoke,
    Settle,
    Thaw,
)  # fmt: skip
from engine.core.plan import Budget, Plan, digest
from engine.core.tell import tell
from engine.core.wallet import Wallet

PLAN = Plan(budgets={"jev": budget("1.00")})


def test_the_first_plan_replaces_nothing() -> None:
    wallet = Wallet()
    entry = tell(wallet, seq=1, ts=1, asks=[ApplyPlan("p", PLAN, "")])
    assert entry.out == [Planned("p", digest(PLAN))]
    assert wallet.plan == PLAN


@pytest.mark.parametrize(
    "ask",
    [
        Hold("a", [Option({"usd": 1})], 1),
        Settle("a", {"usd": 1}),
        Renew("a", 1),
        Observe("a", "jev", TODAY, 1, 0, "x"),
        Adjust("a", "jev", TODAY, 1, ""),
        Freeze("a", "all", ""),
        Thaw("a", "all"),
        Revoke("a", "key", "k1", ""),
        Restore("a", "key", "k1"),
    ],
)
def test_before_the_first_plan_every_other_ask_is_invalid(ask: AnyAsk) -> None:
    assert [words(out) for out in tell(Wallet(), seq=1, ts=1, asks=[ask]).out] == ["invalid: plan"]


def test_before_the_first_plan_time_may_pass() -> None:
    assert tell(Wallet(), seq=1, ts=1, asks=[]).out == []


# --- what a change does -----------------------------------------------------------------------------------------------


def test_a_raised_limit_keeps_what_was_used() -> None:
    books = Books()
    books.hold("a", "0.90")
    assert books.change(jev=budget("2.00")) == "planned"
    assert books.left() == "1.10"
    assert books.hold("b", "1.10") == "held 1.10"


def test_a_lowered_limit_lets_running_calls_go_on_and_refuses_new_ones() -> None:
    books = Books()
    books.hold("a", "0.60")
    books.change(jev=budget("0.50"))
    assert books.left() == "-0.10"
    assert books.hold("b", "0.01") == "exhausted: busy, 0.00 fits"
    assert books.settle("a", "0.60") == "settled 0.60"


@pytest.mark.parametrize(
    "changed",
    [budget("1.00", per="week"), budget("1.00", zone="Asia/Tokyo"), budget("1.00", where={"user": "alice"}),
     budget("1.00", each="user")],
)  # fmt: skip
def test_a_budget_that_is_measured_otherwise_starts_at_zero_and_says_so(changed: Budget) -> None:
    books = Books()
    books.at("09:00").hold("a", "0.60", user="alice")
    assert books.change(jev=changed) == "planned, restarts jev"
    assert books.hold("b", "1.00", user="alice") == "held 1.00"
    assert books.settle("a", "0.50") == "settled 0.50, 0.10 back"
    assert books.meters(each="alice" if changed.each else None).held == "1.00"


def test_a_budget_that_was_taken_out_and_comes_back_starts_at_zero() -> None:
    books = Books(jev=budget("1.00"), other=budget("9.00"))
    books.hold("a", "0.60")
    books.apply(Plan(budgets={"other": budget("9.00")}))
    assert books.hold("b", "5.00") == "held 5.00"
    assert books.change(jev=budget("1.00")) == "planned, restarts jev"
    assert books.hold("c", "1.00") == "held 1.00"


def test_a_new_budget_restarts_nothing() -> None:
    assert Books().change(other=budget("1.00")) == "planned"


# --- refuses ----------------------------------------------------------------------------------------------------------


def test_a_plan_made_from_an_older_one_is_a_conflict() -> None:
    books = Books()
    base = digest(books.plan)
    assert books.apply(Plan(budgets={"jev": budget("2.00")}), replaces=base) == "planned"
    assert books.apply(Plan(budgets={"jev": budget("3.00")}), replaces=base) == "conflict: replaces"
    assert books.left() == "2.00"


def test_a_second_first_plan_is_a_conflict() -> None:
    books = Books()
    assert books.apply(Plan(budgets={"jev": budget("9.00")}), replaces="") == "conflict: replaces"


@pytest.mark.parametrize(
    ("field", "plan"),
    [
        ("budgets", Plan(budgets={})),
        ("rules", Plan(budgets=PLAN.budgets, rules=99)),
        ("zone", Plan(budgets=PLAN.budgets, zone="Mars/Base")),
        ("budgets.jev.unit", Plan(budgets={"jev": budget("1 jpy")})),
        ("units.points", Plan(budgets=PLAN.budgets, units={"usd": 9, "points": 3})),
    ],
)
def test_a_plan_that_cannot_be_used_is_invalid_and_names_the_place(field: str, plan: Plan) -> None:
    books = Books(plan=Plan(budgets=PLAN.budgets, units={"usd": 9, "jpy": 6, "points": 2}))
    assert books.apply(plan) == f"invalid: {field}"
    assert books.left() == "1.00"


def test_the_unit_of_a_budget_is_remembered_after_the_budget_is_gone() -> None:
    books = Books(jev=budget("1.00"), other=budget("1.00"))
    books.apply(Plan(budgets={"other": budget("1.00")}))
    assert books.change(jev=budget("1 jpy")) == "invalid: budgets.jev.unit"


def test_a_plan_has_an_id() -> None:
    assert Books().apply(PLAN, id="a b") == "invalid: id"


# --- stays quiet ------------------------------------------------------------------------------------------------------


def test_the_plan_in_force_applied_again_changes_nothing() -> None:
    books = Books()
    assert books.apply(books.plan) == "again"
    assert books.apply(books.plan, replaces="whatever") == "again"


def test_a_repeat_that_comes_after_another_plan_does_not_bring_the_old_one_back() -> None:
    books = Books()
    base = digest(books.plan)
    two = Plan(budgets={"jev": budget("2.00")})
    books.apply(two, replaces=base, id="p")
    books.change(jev=budget("3.00"))
    assert books.apply(two, replaces=base, id="p") == "again"
    assert books.left() == "3.00"
