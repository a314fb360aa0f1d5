"""The second path: what every budget and period comes to, by adding up asks and outcomes alone.

It shares the words with the engine and none of its arithmetic: no wallet, no meter, no `evolve`. It takes what outcomes
say was granted, charged, raised and left, adds it up, and after each one compares the sum with what the outcome itself
says is left. Where the two differ, or a permission exceeds the limit written in it, that is `wrong`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from engine.core.messages import (
    Adjust,
    Adjusted,
    Amounts,
    AnyAsk,
    AnyOutcome,
    ApplyPlan,
    Done,
    Dropped,
    Exhausted,
    Held,
    Hold,
    Lapsed,
    Line,
    Observe,
    Observed,
    Planned,
    Settle,
    Settled,
    Stray,
)
from engine.core.periods import PeriodError, period_named
from engine.core.plan import Budget
from engine.later import check_rules
from projector.audit.spenders import Who
from projector.replay import Answered

NS = 1_000_000_000
WRONG_MAX = 20  # that are named; the rest is counted
HOLD_LIFE_NS = 48 * 3_600 * NS

SumKey = tuple[str, str]
"""Budget and period."""


class Sum(msgspec.Struct, gc=False):
    """One budget in one period, over all its meters. `after`: of `settled`, what came once the period was over."""

    budget: str
    period: str
    unit: str
    start: int = 0
    end: int = 0
    limit: int = 0
    each: str | None = None
    settled: int = 0
    held: int = 0
    extra: int = 0
    peak: int = 0
    first_exhausted_at: int | None = None
    refused: dict[str, int] = {}
    meters: int = 0
    fullest: str | None = None
    fullest_used: int = 0
    holds: int = 0
    settles: int = 0
    overruns: int = 0
    strays: int = 0
    lapsed: int = 0
    after: int = 0
    after_events: int = 0

    @property
    def used(self) -> int:
        return self.settled + self.held + self.extra


class _Meter(msgspec.Struct, gc=False):
    total: Sum
    each: str | None
    unit: str
    settled: int = 0
    held: int = 0
    extra: int = 0
    figure: int = 0

    @property
    def used(self) -> int:
        return self.settled + self.held + self.extra


class HoldSum(msgspec.Struct, gc=False):
    """A hold as far as its outcomes tell: what it was granted, what it has cost so far, where that counts."""

    id: str
    first: int
    at: int
    labels: Mapping[str, str]
    granted: Amounts
    expires_at: int = 0
    open: bool = True
    charged: Amounts = {}
    meters: dict[str, _Meter] = {}
    who: Who = ()


class Wrong(msgspec.Struct, frozen=True):
    """Something the outcomes say of themselves that cannot be, and the ask message it was told of."""

    seq: int
    what: str


Listener = Callable[[HoldSum, Amounts], None]
"""Hears of every hold what it costs more (or less) now, by unit."""


class Sums:
    """Everything added up so far. `fold` each answered message in order."""

    def __init__(self, on_charge: Listener | None = None) -> None:
        self.totals: dict[SumKey, Sum] = {}
        self.holds: dict[str, HoldSum] = {}
        self.open = 0
        self.units: dict[str, str] = {}
        self.each: dict[str, str | None] = {}
        self.budgets: dict[str, Budget] = {}
        self.scales: dict[str, int] = {}
        self.wrong: list[Wrong] = []
        self.wrongs = 0
        self.remember_s = 0
        self._on_charge = on_charge
        self._generations: dict[str, int] = {}
        self._meters: dict[tuple[str, int, str | None, int], _Meter] = {}
        self._ends: list[tuple[int, tuple[str, int, str, int]]] = []
        self._forgets: list[tuple[int, str, int]] = []
        self._seq = self._at = self._charged_at = 0

    def begin(self, answered: Answered) -> None:
        """A new message. `lapse`, `seal` and `outcome` follow, in the order of its entry."""
        self._let_meters_go()  # by the message before: this one may seal the day that they count, however long ago
        self._seq, self._at = answered.entry.seq, answered.entry.at
        self._charged_at = self._at
        self._forget()

    def fold(self, answered: Answered) -> None:
        self.begin(answered)
        for lapsed in answered.entry.lapsed:
            self.lapse(lapsed)
        for ask, outcome in zip(answered.asks or (), answered.entry.out, strict=False):
            self.outcome(ask, outcome)

    def lapse(self, lapsed: Lapsed) -> None:
        hold = self.holds.get(lapsed.hold)
        if hold is None or not hold.open:
            return self._is_wrong(f"hold {lapsed.hold} lapses, but is not open")
        self._charged_at = min(self._at, hold.expires_at)  # it ended then, whenever the next message came
        self._cost(hold, lapsed.charged, still_open=False)
        self._charged_at = self._at
        self._provisional(hold)
        for meter in hold.meters.values():
            meter.total.lapsed += 1
        return None

    def outcome(self, ask: AnyAsk, outcome: AnyOutcome) -> None:
        match outcome:
            case Held() if isinstance(ask, Hold):
                self._held(ask, outcome)
            case Held():
                self._renewed(outcome)
            case Settled():
                self._settled(outcome)
            case Stray() if isinstance(ask, Settle):
                self._stray(ask, outcome)
            case Exhausted():
                self._exhausted(outcome)
            case Observed() if isinstance(ask, Observe):
                meter = self._meter(ask.budget, outcome.line)
                self._move(meter, 0, 0, extra=outcome.raised_by)
                meter.figure = max(meter.figure, ask.figure)
                self._compare(meter, outcome.line.limit, outcome.line.remaining)
            case Adjusted() if isinstance(ask, Adjust):
                self._adjusted(ask, outcome)
            case Planned() if isinstance(ask, ApplyPlan):
                self._planned(ask, outcome)
            case Done():
                for raised in outcome.raised:
                    self._move(self._meter(raised.budget, raised.line), 0, 0, extra=raised.by)
            case _:
                pass

    def seal(self, seal: Any) -> None:
        """A day is over, and this is what was sealed of it: its shared budgets, and how many holds were open."""
        for budget, sealed in seal.budgets.items():
            total = self.totals.get((budget, sealed.period))
            start = total.start if total is not None else 0
            meter = self._meters.get((budget, self._generations.get(budget, 0), None, start))
            added = (meter.settled, meter.held, meter.extra) if meter is not None else (0, 0, 0)
            if added != (sealed.settled, sealed.held, sealed.extra):
                self._is_wrong(
                    f"the seal of {seal.day} says {(sealed.settled, sealed.held, sealed.extra)} are settled, held and "
                    f"extra in {budget}, the outcomes before it add up to {added}"
                )
        if seal.open_holds != self.open:
            self._is_wrong(f"the seal of {seal.day} counts {seal.open_holds} open holds, there were {self.open}")

    # --- holds --------------------------------------------------------------------------------------------------------

    def _held(self, ask: Hold, told: Held) -> None:
        hold = HoldSum(ask.id, self._seq, told.at, ask.labels, told.amounts, told.expires_at, meters={})
        if (known := self.holds.get(ask.id)) is not None and known.open:
            self._is_wrong(f"hold {ask.id} is held twice")
        self.holds[ask.id] = hold
        self.open += 1
        for budget, line in told.budgets.items():
            meter = hold.meters[budget] = self._meter(budget, line)
            amount = told.amounts[meter.unit]
            self._move(meter, 0, amount)
            total = meter.total
            total.holds += 1
            total.limit = line.limit
            self._permit(meter, line, amount)

    def _renewed(self, told: Held) -> None:
        hold = self.holds.get(told.id)
        if hold is None or not hold.open:
            return self._is_wrong(f"hold {told.id} is renewed, but is not open")
        before, hold.granted, hold.expires_at = hold.granted, told.amounts, told.expires_at
        for budget, line in told.budgets.items():
            meter = hold.meters.get(budget)
            if meter is None:
                self._is_wrong(f"hold {told.id} is renewed in {budget}, which it does not hold")
                continue
            unit = meter.total.unit
            cost = hold.charged.get(unit, 0)
            rise = max(0, told.amounts.get(unit, 0) - cost) - max(0, before.get(unit, 0) - cost)
            self._move(meter, 0, rise)
            self._permit(meter, line, rise)
        return None

    def _permit(self, meter: _Meter, line: Line, amount: int) -> None:
        self._compare(meter, line.limit, line.remaining)
        if amount > 0 and line.remaining < 0:
            self._is_wrong(f"{meter.total.budget} of {meter.total.period} is granted more than its limit")

    def _settled(self, told: Settled) -> None:
        hold = self.holds.get(told.id)
        if hold is None:
            return self._is_wrong(f"hold {told.id} is settled, but is not known")
        bound = list(hold.meters.values())
        if told.budgets:
            self._bind(hold, told.budgets)
        self._cost(hold, told.charged, still_open=told.state == "open")
        if told.dropped:
            self._drop(told.dropped)
        overrun = "overrun" in told.flags
        for meter in bound:
            total = meter.total
            total.settles += 1
            total.overruns += overrun
            left = told.left.get(total.budget)
            if left is None:
                self._is_wrong(f"the settlement of {told.id} does not say what is left in {total.budget}")
            else:
                self._compare(meter, left.limit, left.remaining)
        if told.state in ("lapsed", "estimated"):
            self._provisional(hold)
        elif told.state != "open":
            del self.holds[told.id]
        return None

    def _stray(self, ask: Settle, told: Stray) -> None:
        hold = HoldSum(ask.hold, self._seq, told.at, ask.labels, {}, open=False, meters={})
        self._bind(hold, told.budgets)
        self._cost(hold, told.charged, still_open=False)
        self._drop(told.dropped)
        for budget, meter in hold.meters.items():
            meter.total.strays += 1
            self._compare(meter, told.budgets[budget].limit, told.budgets[budget].remaining)
        if told.state == "estimated":
            self.holds[ask.hold] = hold
            self._provisional(hold)

    def _bind(self, hold: HoldSum, lines: Mapping[str, Line]) -> None:
        for budget, line in lines.items():
            hold.meters[budget] = self._meter(budget, line)

    def _cost(self, hold: HoldSum, charged: Amounts, *, still_open: bool) -> None:
        """The hold has cost this in all: its meters move by the difference."""
        unit = ""
        cost = held = 0
        for meter in hold.meters.values():
            if meter.unit != unit:  # mostly all are of one
                unit = meter.unit
                granted, was, now = hold.granted.get(unit, 0), hold.charged.get(unit, 0), charged.get(unit, 0)
                cost = now - was
                held = granted - now if still_open and granted > now else 0
                held -= granted - was if hold.open and granted > was else 0
            self._move(meter, cost, held)
        before, hold.charged = hold.charged, charged
        if self._on_charge is not None:
            self._on_charge(hold, {unit: now - before.get(unit, 0) for unit, now in charged.items()})
        if hold.open and not still_open:
            self.open -= 1
        hold.open = still_open

    def _provisional(self, hold: HoldSum) -> None:
        heapq.heappush(self._forgets, (self._at + self.remember_s * NS, hold.id, hold.first))

    # --- meters -------------------------------------------------------------------------------------------------------

    def _move(self, meter: _Meter, settled: int, held: int, *, extra: int = 0) -> None:
        meter.settled += settled
        meter.held += held
        if settled < 0 and meter.figure > meter.settled + meter.extra:  # the provider's figure still stands
            extra += meter.figure - meter.settled - meter.extra
        meter.extra += extra
        total = meter.total
        total.settled += settled
        total.held += held
        total.extra += extra
        if (used := total.settled + total.held + total.extra) > total.peak:
            total.peak = used
        if total.each is not None and (used := meter.settled + meter.held + meter.extra) > total.fullest_used:
            total.fullest, total.fullest_used = meter.each, used
        if settled and self._charged_at >= total.end:
            total.after += settled
            total.after_events += 1

    def _compare(self, meter: _Meter, limit: int, remaining: int) -> None:
        used = meter.settled + meter.held + meter.extra
        if limit - remaining != used:
            self._is_wrong(
                f"{meter.total.budget} of {meter.total.period}: the outcome says {limit - remaining} is used, "
                f"the outcomes before it add up to {used} (smallest parts of {meter.total.unit})"
            )

    def _meter(self, budget: str, line: Line) -> _Meter:
        key = (budget, self._generations.get(budget, 0), line.each, line.start)
        meter = self._meters.get(key)
        if meter is None:
            total = self._sum(budget, line.period)
            total.start, total.end = line.start, line.end
            total.meters += 1
            total.limit = line.limit
            meter = self._meters[key] = _Meter(total, line.each, total.unit)
            heapq.heappush(self._ends, (line.end, (budget, key[1], line.each or "", line.start)))
        return meter

    def _sum(self, budget: str, period: str) -> Sum:
        found = self.totals.get((budget, period))
        if found is None:
            found = Sum(budget, period, self.units[budget], each=self.each[budget])
            found.start, found.end = self._bounds(budget, period)
            self.totals[budget, period] = found
        return found

    def _bounds(self, budget: str, period: str) -> tuple[int, int]:
        """Of a period that no line has told of yet; (0, 0) where the plan has changed since and cannot say."""
        rule = self.budgets[budget]
        try:
            named = period_named(period, per=rule.per, zone=rule.zone)
        except PeriodError:
            return 0, 0
        return named.start, named.end

    def _drop(self, dropped: list[Dropped]) -> None:
        for drop in dropped:
            total = self._sum(drop.budget, drop.period)
            total.settled += drop.amount
            total.after += drop.amount
            total.after_events += 1

    def _adjusted(self, ask: Adjust, told: Adjusted) -> None:
        if told.line is not None:
            meter = self._meter(ask.budget, told.line)
            self._move(meter, ask.amount, 0)
            self._compare(meter, told.line.limit, told.line.remaining)
        elif told.dropped is not None:
            self._drop([told.dropped])

    def _exhausted(self, told: Exhausted) -> None:
        total = self._sum(told.budget, told.period)
        total.refused = {**total.refused, told.why: total.refused.get(told.why, 0) + 1}
        total.limit = told.limit
        nothing_left = told.why == "spent" or (told.why == "tier" and told.tier is None)
        if nothing_left and total.first_exhausted_at is None:
            total.first_exhausted_at = self._at

    def _planned(self, ask: ApplyPlan, told: Planned) -> None:
        """Raises `LaterRelease` for rules that nobody here can decide by."""
        check_rules(self._seq, [ask], [told])
        self.remember_s = ask.plan.remember_s
        self.scales |= ask.plan.units
        for name, budget in ask.plan.budgets.items():
            self.units[name], self.each[name] = budget.unit, budget.each
            self.budgets[name] = budget
        for name in told.restarts:
            self._generations[name] = self._generations.get(name, 0) + 1

    # --- forgetting ---------------------------------------------------------------------------------------------------

    def _forget(self) -> None:
        """Provisional holds that can no longer be corrected."""
        while self._forgets and self._forgets[0][0] <= self._at:
            _, id, first = heapq.heappop(self._forgets)
            hold = self.holds.get(id)
            if hold is not None and not hold.open and hold.first == first:
                del self.holds[id]

    def _let_meters_go(self) -> None:
        """Those nobody can be bound to any more."""
        spare = 2 * self.remember_s * NS + HOLD_LIFE_NS
        while self._ends and self._ends[0][0] + spare <= self._at:
            budget, generation, each, start = heapq.heappop(self._ends)[1]
            self._meters.pop((budget, generation, each or None, start), None)

    def _is_wrong(self, what: str) -> None:
        self.wrongs += 1
        if len(self.wrong) < WRONG_MAX:
            self.wrong.append(Wrong(self._seq, what))
