"""Corners that the auditor and a wallet once disagreed on, each written out by hand so that it stays decided."""

from __future__ import annotations

from msgspec.structs import replace

from engine.core.messages import (
    Adjust,
    Again,
    AnyAsk,
    AnyOutcome,
    ApplyPlan,
    Closed,
    Conflict,
    Dropped,
    Forgotten,
    Freeze,
    Held,
    Hold,
    Invalid,
    Observe,
    Option,
    Settle,
    Settled,
)  # fmt: skip
from engine.core.plan import Budget, Plan, digest
from engine.core.tell import tell
from engine.core.wallet import Wallet

SECOND = 1_000_000_000
START = 1_796_083_190 * SECOND  # 2026-11-30T23:59:50Z
PLAN = Plan(budgets={"account": Budget(unit="usd", limit=100)})


class Told:
    """A wallet with a plan. `say` gives the outcomes of one message, `after` seconds from the start."""

    def __init__(self, plan: Plan = PLAN) -> None:
        self.wallet, self.seq = Wallet(name="main"), 0
        self.say(ApplyPlan(id="first", plan=plan, replaces=""))

    def say(self, *asks: AnyAsk, after: int = 0) -> list[AnyOutcome]:
        self.seq += 1
        out = tell(self.wallet, seq=self.seq, ts=START + after * SECOND, asks=list(asks)).out
        self.wallet.check()
        return out

    def used(self, budget: str = "account", period: str = "2026-11-30") -> int:
        settled, held, extra, _ = self.wallet.meters().get((budget, None, period), (0, 0, 0, 0))
        return settled + held + extra


def hold(id_: str, usd: int, *, by: int = 60, ttl_s: int = 600) -> Hold:
    return Hold(id=id_, options=[Option(amounts={"usd": usd})], by=START + by * SECOND, ttl_s=ttl_s)


def test_a_stray_that_said_zero_so_far_is_charged_when_it_says_more() -> None:
    told = Told()
    told.say(Settle(hold="x", amounts={"usd": 0}, final=False))
    told.say(Settle(hold="x", amounts={"usd": 89}, final=False))
    assert told.used() == 89


def test_progress_reported_after_a_lapse_is_not_given_back_by_a_release() -> None:
    told = Told()
    told.say(hold("x", 50, ttl_s=1))
    told.say(after=2)
    told.say(Settle(hold="x", amounts={"usd": 20}, final=False), after=3)
    [settled] = told.say(Settle(hold="x", release=True), after=4)
    assert isinstance(settled, Settled)
    assert (settled.charged, settled.released, told.used()) == ({"usd": 20}, {"usd": 30}, 20)


def test_each_refused_attempt_is_remembered_until_its_own_by() -> None:
    told = Told()
    told.say(Settle(hold="z", amounts={"usd": 100}))
    told.say(hold("x", 5, by=10), hold("x", 6, by=20))
    told.say(Adjust(id="a", budget="account", period="2026-11-30", amount=-50, reason="books"))
    assert told.say(hold("x", 5, by=10)) == [Again(id="x", first=3, state="refused")]


def test_a_freeze_whose_end_has_passed_refuses_nothing() -> None:
    told = Told()
    _, held = told.say(Freeze(id="f", scope="all", reason="look", until=START), hold("x", 5))
    assert isinstance(held, Held)


def test_what_was_past_the_memory_does_not_come_back_when_the_memory_grows() -> None:
    plan = Plan(budgets={"rush": Budget(unit="usd", limit=100, per="minute")}, remember_s=5)
    told = Told(plan)
    told.say(Settle(hold="x", amounts={"usd": 50}))
    told.say(after=16)
    told.say(ApplyPlan(id="longer", plan=replace(plan, remember_s=300), replaces=digest(plan)), after=17)
    [unknown] = told.say(Settle(hold="x", amounts={"usd": 50}, held_at=START), after=18)
    assert unknown == Forgotten(id="x")  # it was charged once; whether as another id is not remembered any more


def test_a_period_past_the_memory_is_charged_on_the_record_alone() -> None:
    plan = Plan(budgets={"rush": Budget(unit="tokens", limit=100, per="minute")}, remember_s=5)
    told = Told(plan)
    told.say(Hold(id="open", options=[Option(amounts={"usd": 1})], by=START, ttl_s=600))
    told.say(after=16)
    [settled] = told.say(Settle(hold="open", amounts={"usd": 1, "tokens": 7}), after=17)
    assert isinstance(settled, Settled)
    assert settled.dropped == [Dropped(budget="rush", period="2026-11-30T23:59Z", amount=7)]


def test_of_two_refusing_budgets_with_equal_room_the_first_of_the_plan_is_told() -> None:
    told = Told(Plan(budgets={"weekly": Budget(unit="requests", limit=0), "jev": Budget(unit="usd", limit=0)}))
    [exhausted] = told.say(Hold(id="x", options=[Option(amounts={"usd": 5, "requests": 5})], by=START))
    assert getattr(exhausted, "budget", None) == "weekly"


def test_what_was_observed_is_again_even_when_the_plan_no_longer_has_the_budget() -> None:
    plan = Plan(budgets={"account": Budget(unit="usd", limit=100, source="ours"), "b": Budget(unit="usd", limit=100)})
    told = Told(plan)
    observe = Observe(id="o", budget="account", period="2026-11-30", figure=5, as_of=START, source="ours")
    told.say(observe)
    told.say(ApplyPlan(id="fewer", plan=replace(plan, budgets={"b": plan.budgets["b"]}), replaces=digest(plan)))
    assert told.say(observe) == [Again(id="o", first=2)]
    assert isinstance(told.say(replace(observe, figure=6))[0], Conflict)


def test_a_settles_own_id_is_forgotten_when_it_was_first_bound_long_enough_ago() -> None:
    told = Told(replace(PLAN, remember_s=100))
    told.say(hold("x", 5, ttl_s=6000), hold("y", 5, ttl_s=6000))
    told.say(Settle(hold="x", amounts={"usd": 1}, final=False, id="s"), after=1)
    told.say(Settle(hold="x", amounts={"usd": 2}, final=False, id="s"), after=50)
    assert isinstance(told.say(Settle(hold="y", amounts={"usd": 1}, id="s"), after=100)[0], Conflict)
    assert isinstance(told.say(Settle(hold="y", amounts={"usd": 1}, id="s"), after=101)[0], Settled)


def test_a_plan_cannot_require_the_label_of_a_budget_that_names_none() -> None:
    told = Told()
    plan = Plan(budgets={"account": Budget(unit="usd", limit=100, required=True)})
    [outcome] = told.say(ApplyPlan(id="p", plan=plan, replaces=digest(PLAN)))
    assert isinstance(outcome, Invalid)


def test_a_later_give_up_closes_the_id_for_attempts_up_to_its_own_by() -> None:
    told = Told()
    told.say(*(Settle(hold="x", release=True, by=START + by * SECOND) for by in (10, 20)))
    late, fresh = told.say(hold("x", 5, by=20), hold("x", 5, by=21))
    assert isinstance(late, Closed)
    assert isinstance(fresh, Held)
