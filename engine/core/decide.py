"""decide(wallet, ask, at) -> outcome. It only looks: state, plan, ask and the moment in, one named outcome out.

One function an ask. Checks stand in order of precedence, each with its own outcome; after the last of them nothing can
fail. Holds and renewals are decided in `holding`, settlements in `settling`; what an operator asks is decided here.
"""

from __future__ import annotations

from typing import assert_never

from engine.core import checks, periods
from engine.core.holding import decide_hold, decide_renew
from engine.core.messages import (
    Adjust,
    Adjusted,
    Again,
    AnyAsk,
    AnyOutcome,
    ApplyPlan,
    Clock,
    Conflict,
    Done,
    Dropped,
    Freeze,
    Hold,
    Invalid,
    KnownUse,
    Line,
    Loss,
    Observe,
    Observed,
    Planned,
    Raised,
    Renew,
    Restore,
    Revoke,
    Settle,
    Thaw,
)
from engine.core.plan import Plan, PlanError, digest, restarts, validate
from engine.core.settling import decide_settle
from engine.core.wallet import Place, Wallet

UTC_DAY_SOURCES = frozenset({"cloudflare", "openai", "anthropic", "openrouter"})
"""Providers whose figures are for UTC days; they say nothing about a period with other bounds."""


def decide(wallet: Wallet, ask: AnyAsk, at: int) -> AnyOutcome:
    """The outcome of one ask at the moment `at` (ns, stream time). Changes nothing."""
    if wallet.plan is None and type(ask) is not ApplyPlan:
        return checks.refuse(_id(ask), ("plan", "no_plan: this wallet has no plan yet"))
    match ask:
        case Hold():
            return decide_hold(wallet, ask, at)
        case Settle():
            return decide_settle(wallet, ask, at)
        case Renew():
            return decide_renew(wallet, ask, at)
        case Observe():
            return _observe(wallet, ask, at)
        case Adjust():
            return _adjust(wallet, ask, at)
        case Freeze() | Thaw() | Revoke() | Restore():
            return _switch(wallet, ask, at)
        case ApplyPlan():
            return _plan(wallet, ask, at)
        case Loss():
            return _loss(wallet, ask, at)
        case Clock():
            return _clock(wallet, ask, at)
        case _:
            assert_never(ask)


def _observe(wallet: Wallet, ask: Observe, at: int) -> AnyOutcome:
    wrong = checks.observe(ask, at)
    if wrong is not None:
        return checks.refuse(ask.id, wrong)
    known = _heard(wallet, ask, at)
    if known is not None:
        return known
    place = _named_place(wallet, ask, at)
    if isinstance(place, Invalid):
        return place
    source = _plan_of(wallet).budgets[ask.budget].source
    if source is None or ask.source != source:
        return Invalid(ask.id, "source", f"this budget's figure comes from {source or 'nobody'}")
    if ask.source in UTC_DAY_SOURCES and place.period != _utc_day(place.period):
        return Invalid(ask.id, "period", f"{ask.source} counts by UTC days, this budget does not")
    if wallet.gone(place):
        return Invalid(ask.id, "period", "this period is past the wallet's memory")

    raised_by = place.meter.raised_by(ask.figure) if place.meter is not None else ask.figure
    return Observed(ask.id, raised_by, _line(place, place.used + raised_by))


def _adjust(wallet: Wallet, ask: Adjust, at: int) -> AnyOutcome:
    wrong = checks.adjust(ask)
    if wrong is not None:
        return checks.refuse(ask.id, wrong)
    known = _heard(wallet, ask, at)
    if known is not None:
        return known
    place = _named_place(wallet, ask, at)
    if isinstance(place, Invalid):
        return place

    if wallet.gone(place):
        return Adjusted(ask.id, dropped=Dropped(ask.budget, place.period.name, ask.amount, ask.each))
    if place.meter is None:
        return Adjusted(ask.id, _line(place, max(0, ask.amount)))
    return Adjusted(ask.id, _line(place, place.meter.used_after(ask.amount, 0)))


def _loss(wallet: Wallet, ask: Loss, at: int) -> AnyOutcome:
    wrong = checks.loss(ask)
    if wrong is not None:
        return checks.refuse(ask.id, wrong)
    known = _heard(wallet, ask, at)
    if known is not None:
        return known
    raised: list[Raised] = []
    for use in ask.used:
        place = _place(wallet, use, at)
        if not isinstance(place, Place):
            return Invalid(ask.id, f"used.{place[0]}", place[1])
        if wallet.gone(place):
            return Invalid(ask.id, "used.period", "this period is past the wallet's memory")
        by = max(0, use.used - place.used)
        raised.append(Raised(use.budget, by, _line(place, place.used + by)))
    for budget in ask.freeze:
        if budget not in wallet.named:
            return Invalid(ask.id, "freeze", "no budget of this name in the plan")

    return Done(ask.id, raised, {budget: _frozen_until(wallet, budget, at) for budget in ask.freeze})


def _clock(wallet: Wallet, ask: Clock, at: int) -> AnyOutcome:
    """Nothing in the wallet changes by it: the messages it speaks of are decided before it."""
    wrong = checks.clock(ask)
    if wrong is not None:
        return checks.refuse(ask.id, wrong)
    return _heard(wallet, ask, at) or Done(ask.id)


def _frozen_until(wallet: Wallet, name: str, at: int) -> int | None:
    """The end of the budget's period; None (until a thaw) where it never ends. A longer freeze in force stays."""
    budget = wallet.named[name].budget
    end = None if budget.per == "total" else periods.period_at(at, per=budget.per, zone=budget.zone).end
    frost = wallet.frozen.get(name)
    if frost is None or end is None:
        return end
    return None if frost.until is None else max(frost.until, end)


def _named_place(wallet: Wallet, ask: Observe | Adjust, at: int) -> Place | Invalid:
    place = _place(wallet, ask, at)
    return place if isinstance(place, Place) else Invalid(ask.id, *place)


def _place(wallet: Wallet, named: Observe | Adjust | KnownUse, at: int) -> Place | checks.Wrong:
    """The meter's place that is named by budget, `each` value and period, or what is wrong with the name."""
    rule = wallet.named.get(named.budget)
    if rule is None:
        return "budget", "no budget of this name in the plan"
    each = rule.budget.each
    if each is None and named.each is not None:
        return "each", "this budget has one meter for all"
    if each is not None and (named.each is None or checks.labels({each: named.each}) is not None):
        return "each", f"this budget has a meter for each {each}; say which"
    try:
        period = periods.period_named(named.period, per=rule.budget.per, zone=rule.budget.zone)
    except periods.PeriodError as error:
        return "period", str(error)
    if period.start > at:
        return "period", "this period has not begun"
    labels = {} if each is None or named.each is None else {each: named.each}
    return wallet.place(rule, named.each, labels, period.start)


def _utc_day(period: periods.Period) -> periods.Period:
    return periods.period_at(period.start, per="day", zone="UTC")


def _line(place: Place, used: int) -> Line:
    period = place.period
    return Line(period.name, period.start, period.end, place.limit, place.limit - used, place.each)


def _switch(wallet: Wallet, ask: Freeze | Thaw | Revoke | Restore, at: int) -> AnyOutcome:
    wrong = checks.switch(ask)
    if wrong is not None:
        return checks.refuse(ask.id, wrong)
    known = _heard(wallet, ask, at)
    if known is not None:
        return known
    if isinstance(ask, Freeze | Thaw):
        scopes = [*_plan_of(wallet).budgets, *(wallet.frozen if isinstance(ask, Thaw) else ())]
        wrong = checks.scope(ask.scope, scopes)
        if wrong is not None:
            return checks.refuse(ask.id, wrong)
    match ask:
        case Freeze():
            nothing_to_do = False
        case Thaw():
            nothing_to_do = ask.scope not in wallet.frozen
        case Revoke():
            nothing_to_do = (ask.label, ask.value) in wallet.revoked
        case Restore():
            named = (ask.label, ask.value)
            nothing_to_do = named not in wallet.revoked and named not in wallet.cooling
    return Again(ask.id, 0) if nothing_to_do else Done(ask.id)


def _plan(wallet: Wallet, ask: ApplyPlan, at: int) -> AnyOutcome:
    wrong = checks.plan_id(ask.id)
    if wrong is not None:
        return checks.refuse(ask.id, wrong)
    known = _heard(wallet, ask, at)
    if known is not None:
        return known
    name = digest(ask.plan)
    if name == wallet.plan_digest:
        return Again(ask.id, wallet.plan_first)
    if ask.replaces != wallet.plan_digest:
        return Conflict(ask.id, "replaces")
    try:
        validate(ask.plan, zone_known=periods.zone_known)
        _check_history(wallet, ask.plan)
    except PlanError as error:
        return Invalid(ask.id, error.field, error.why)
    return Planned(ask.id, name, _restarting(wallet, ask.plan))


def _check_history(wallet: Wallet, plan: Plan) -> None:
    """A unit never changes under a budget's name, and a scale never under a unit's."""
    for name, budget in plan.budgets.items():
        if wallet.budget_units.get(name, budget.unit) != budget.unit:
            raise PlanError(
                f"budgets.{name}.unit", f"stays {wallet.budget_units[name]}; give the new budget another name"
            )
    for unit, scale in plan.units.items():
        if wallet.scales.get(unit, scale) != scale:
            raise PlanError(f"units.{unit}", f"its scale stays {wallet.scales[unit]}")


def _restarting(wallet: Wallet, plan: Plan) -> list[str]:
    """Budgets that had meters before and start again at zero under this plan."""
    old = wallet.plan.budgets if wallet.plan is not None else {}
    return [
        name
        for name, budget in plan.budgets.items()
        if name in wallet.generations and (name not in old or restarts(old[name], budget))
    ]


def _heard(wallet: Wallet, ask: AnyAsk, at: int) -> Again | Conflict | None:
    """Whether this kind's id was used before, by the same ask or by another."""
    heard = wallet.heard.get(f"{ask.__struct_config__.tag} {_id(ask)}", at)
    if heard is None:
        return None
    return Again(_id(ask), heard.first) if heard.ask == ask else Conflict(_id(ask), "id")


def _plan_of(wallet: Wallet) -> Plan:
    assert wallet.plan is not None
    return wallet.plan


def _id(ask: AnyAsk) -> str:
    return ask.hold if isinstance(ask, Settle | Renew) else ask.id
