"""The totals of every budget and period, of all time: sums of what changed in each meter, and counts of outcomes.

A charge to a period whose meter is long gone still finds its totals, because the outcome says so. Which were sealed,
and what came after, is kept with them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from operator import attrgetter
from typing import TypeAlias

import msgspec

from engine.core import periods
from engine.core.documents import DayTotals, Sealed
from engine.core.messages import Exhausted, Seal
from engine.core.meter import Meter, MeterKey
from engine.core.wallet import Wallet
from projector.days.details import Details
from projector.days.spenders import Spenders

_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)

CALENDAR_MAX = 400  # totals of days that are read at once
SEEN_SPARE = 1_024  # meters that were dropped are let go when there are this many more of them

TotalsKey: TypeAlias = tuple[str, str]
"""Budget and period."""


class _Seen(msgspec.Struct, gc=False):
    """What a meter showed when its totals were last brought up to date."""

    key: TotalsKey
    totals: DayTotals
    settled: int = 0
    held: int = 0
    extra: int = 0


def days_before(totals: Iterable[DayTotals], before: str) -> list[DayTotals]:
    """Those of periods that are days, before the day `before` ("": all), newest first."""
    found = [one for one in totals if _DAY.fullmatch(one.period) and (not before or one.period < before)]
    return sorted(found, key=lambda one: (-one.start, one.budget))[:CALENDAR_MAX]


class Totals:
    """As of the wallet's newest outcome. `dirty`: those that changed since they were written.

    `details` hear of every totals before they change.
    """

    def __init__(self, wallet: Wallet, details: Details) -> None:
        self.by_key: dict[TotalsKey, DayTotals] = {}  # even the oldest may be adjusted (700 bytes each)
        self.dirty: set[TotalsKey] = set()
        self.sealed: list[Sealed] = []  # every day that ever was, by its end
        self._wallet, self._details = wallet, details
        self._unsealed: set[TotalsKey] = set()
        self._seen: dict[MeterKey, _Seen] = {}

    def load(self, totals: Iterable[DayTotals], sealed: list[Sealed]) -> None:
        """Remember that and nothing else. Which were written is not known: all are dirty."""
        self.by_key = {(one.budget, one.period): one for one in totals}
        self.dirty = set(self.by_key)
        self.sealed = sealed
        self._unsealed = {key for key, one in self.by_key.items() if one.sealed is None}
        for key, meter in self._wallet.metering.items():  # after each told every meter's totals are up to date
            self._seen[key] = self._see(meter, meter.settled, meter.held, meter.extra)

    def refresh(self, meter: Meter) -> tuple[DayTotals, Spenders | None, int]:
        """Add what has changed in this meter to its totals; these, their spenders, and how much more is settled."""
        meter_key = meter.key
        seen = self._seen.get(meter_key)
        if seen is None:
            self._named(meter.budget, meter.period, meter)
            seen = self._seen[meter_key] = self._see(meter)
        totals, wallet = seen.totals, self._wallet
        totals.seq = wallet.upto
        self.dirty.add(seen.key)
        spenders = self._details.touch(seen.key, totals)
        settled, extra = meter.settled - seen.settled, meter.extra - seen.extra
        if settled or extra:
            self.charge(totals, settled=settled, extra=extra)
        totals.held += meter.held - seen.held
        used = totals.settled + totals.held + totals.extra
        if used > totals.peak:
            totals.peak, totals.peak_at = used, wallet.at
        seen.settled, seen.held, seen.extra = meter.settled, meter.held, meter.extra
        return totals, spenders, settled

    def _see(self, meter: Meter, settled: int = 0, held: int = 0, extra: int = 0) -> _Seen:
        key = (meter.budget, meter.period)
        return _Seen(key, self.by_key[key], settled, held, extra)

    @staticmethod
    def charge(totals: DayTotals, *, settled: int, extra: int = 0) -> None:
        totals.settled += settled
        totals.extra += extra
        if totals.sealed is not None:
            totals.settled_after_seal += settled
            totals.extra_after_seal += extra

    def of(self, budget: str, period: str) -> tuple[DayTotals, Spenders | None]:
        """Those of a budget and period, which are about to change, and their spenders."""
        totals = self._named(budget, period)
        totals.seq = self._wallet.upto
        key = (budget, period)
        self.dirty.add(key)
        return totals, self._details.touch(key, totals)

    def refuse(self, budget: str, period: str, why: str) -> tuple[DayTotals, Spenders | None]:
        """One more was refused for this budget's sake."""
        totals, spenders = self.of(budget, period)
        totals.refused = {**totals.refused, why: totals.refused.get(why, 0) + 1}
        return totals, spenders

    def exhaust(self, outcome: Exhausted) -> Spenders | None:
        """It did not fit into this budget."""
        totals, spenders = self.refuse(outcome.budget, outcome.period, outcome.why)
        totals.limit = outcome.limit
        nothing_left = outcome.why == "spent" or (outcome.why == "tier" and outcome.tier is None)
        if totals.first_exhausted_at is None and nothing_left:
            totals.first_exhausted_at = self._wallet.at
        return spenders

    def _named(self, budget: str, period: str, meter: Meter | None = None) -> DayTotals:
        key = (budget, period)
        totals = self.by_key.get(key)
        if totals is None:
            totals = self.by_key[key] = self._new(budget, period, meter)
            if totals.sealed is None:
                self._unsealed.add(key)
        return totals

    def _new(self, budget: str, period: str, meter: Meter | None) -> DayTotals:
        wallet = self._wallet
        unit = wallet.budget_units[budget]
        rule = wallet.named.get(budget)
        start, end = (meter.start, meter.end) if meter is not None else (0, 0)
        if meter is None and rule is not None:
            named = periods.period_named(period, per=rule.budget.per, zone=rule.budget.zone)
            start, end = named.start, named.end
        limit = rule.budget.limit if rule is not None else 0
        sealed = self._sealed_at(end)
        return DayTotals(budget, unit, wallet.scales[unit], period, start, end, wallet.upto, limit, sealed=sealed)

    # --- sealed days --------------------------------------------------------------------------------------------------

    def seal(self, seal: Seal) -> None:
        """A day is over, and every period that ended by then: what comes now comes after the seal."""
        sealed = Sealed(seal.day, seal.end, self._wallet.upto, self._wallet.at)
        self.sealed.append(sealed)
        over = {key for key in self._unsealed if 0 < self.by_key[key].end <= seal.end}
        self._unsealed -= over
        self.dirty |= over
        for key in over:
            self.by_key[key].sealed, self.by_key[key].seq = sealed, self._wallet.upto

    def _sealed_at(self, end: int) -> Sealed | None:
        """The first day that was sealed at or after this end of a period, for one that is charged so late."""
        place = bisect_left(self.sealed, end, key=attrgetter("end"))
        return self.sealed[place] if end and place < len(self.sealed) else None

    def forget_dropped(self) -> None:
        """Let meters go that the wallet has dropped."""
        if len(self._seen) > 2 * len(self._wallet.metering) + SEEN_SPARE:
            self._seen = {key: seen for key, seen in self._seen.items() if key in self._wallet.metering}
