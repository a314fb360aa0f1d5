"""The read models: what the page shows, folded from asks and tolds. It never decides and never looks at a clock.

The wallet's own `evolve` keeps meters and holds; beside it stand the totals of every budget and period. Totals are sums
of what changed, so a charge to a period whose meter is long gone still finds its day.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence
from operator import attrgetter

import msgspec

from engine.core import evolve, periods
from engine.core.documents import BudgetStatus, DayTotals, Figure, Life, Sealed, Status
from engine.core.memory import Memory
from engine.core.messages import (
    Amounts,
    AnyAsk,
    AnyOutcome,
    Done,
    Dropped,
    Entry,
    Exhausted,
    Held,
    Hold,
    Seal,
    Settle,
    Settled,
    Stray,
)
from engine.core.meter import Meter, MeterKey
from engine.core.restore import NotRestoredError
from engine.core.wallet import NS, Bound, HoldRecord, Wallet

BESIDE_SCHEMA = 3  # of what a snapshot remembers beside the wallet: another shape needs another number
SEEN_SPARE = 1_024  # meters that were dropped are let go when there are this many more of them

TotalsKey = tuple[str, str]
"""Budget and period."""


class _Seen(msgspec.Struct, gc=False):
    """What a meter showed when its totals were last brought up to date."""

    settled: int = 0
    held: int = 0
    extra: int = 0


class _Remembered(msgspec.Struct, frozen=True, gc=False):
    life: Life
    forget_at: int


class _Beside(msgspec.Struct, frozen=True):
    """What a snapshot remembers beside the wallet."""

    schema: int
    totals: list[DayTotals]
    lives: list[dict[str, _Remembered]]
    sealed: list[Sealed]
    outcomes: dict[str, int]
    lapsed: int


class Projection:
    """Everything readable, as of the entry of ask message `wallet.upto`."""

    def __init__(self, name: str) -> None:
        self.wallet = Wallet(name)
        self.totals: dict[TotalsKey, DayTotals] = {}  # of all time: even the oldest may be adjusted (580 bytes each)
        self.dirty: set[TotalsKey] = set()
        self.sealed: list[Sealed] = []  # every day that ever was, by its end
        self.outcomes: dict[str, int] = {}  # "ask outcome" -> how often since the wallet began
        self.lapsed = 0
        self._unsealed: set[TotalsKey] = set()
        self._seen: dict[MeterKey, _Seen] = {}
        self._lives: Memory[_Remembered] = Memory()

    def fold(self, *, seq: int, asks: Sequence[AnyAsk] | None, entry: Entry) -> None:
        """Take one told entry in."""
        wallet = self.wallet
        evolve.begin(wallet, seq=seq, at=entry.at)
        self._lives.let_go(entry.at)
        seals = deque(entry.sealed)
        for lapsed in entry.lapsed:
            while seals and wallet.open[lapsed.hold].expires_at >= seals[0].end:
                self._seal(seals.popleft())
            bound = wallet.open[lapsed.hold].bound
            evolve.lapse(wallet, lapsed)
            self.lapsed += 1
            self._touch(bound)
            for one in bound:
                self._count(one.meter.budget, one.meter.period, "lapsed")
        for seal in seals:
            self._seal(seal)
        evolve.settle_in(wallet)
        self._forget_dropped()
        if asks is None:
            for outcome in entry.out:
                self._tally("message", outcome)
        for ask, outcome in zip(asks or (), entry.out, strict=asks is not None):
            self._take(ask, outcome)

    def _take(self, ask: AnyAsk, outcome: AnyOutcome) -> None:
        wallet = self.wallet
        self._tally(str(type(ask).__struct_config__.tag), outcome)
        record = self._record(ask)
        evolve.evolve(wallet, ask, outcome)
        match outcome, ask:
            case Held(), Hold():
                self._touch(wallet.open[ask.id].bound, holds=1)
                for budget, line in outcome.budgets.items():
                    self._limit(budget, line.period, line.limit)
            case Settled(), Settle():
                assert record is not None
                self._touch(record.bound, settles=1, overruns="overrun" in outcome.flags)
                self._drop(outcome.dropped)
                self._remember(record)
            case Stray(), Settle():
                self._stray(ask, outcome)
            case Exhausted(), _:
                self._refused(outcome)
            case _:
                self._refresh(self._meters_of(outcome, ask))

    def _tally(self, asked: str, outcome: AnyOutcome) -> None:
        told = f"{asked} {type(outcome).__struct_config__.tag}"
        self.outcomes[told] = self.outcomes.get(told, 0) + 1

    def _record(self, ask: AnyAsk) -> HoldRecord | None:
        if isinstance(ask, Settle):
            return self.wallet.open.get(ask.hold) or self.wallet.provisional.get(ask.hold)
        return None

    def _meters_of(self, outcome: AnyOutcome, ask: AnyAsk) -> list[Meter]:
        """The meters that renewals, observations and adjustments touch."""
        wallet = self.wallet
        if isinstance(outcome, Held):
            return [bound.meter for bound in wallet.open[outcome.id].bound]
        if isinstance(outcome, Done):
            lines = ((raised.budget, raised.line) for raised in outcome.raised)
            return [wallet.metering[name, wallet.generations[name], line.each, line.start] for name, line in lines]
        line, budget = getattr(outcome, "line", None), getattr(ask, "budget", "")
        if line is None:
            dropped = getattr(outcome, "dropped", None)
            self._drop([dropped] if isinstance(dropped, Dropped) else [])
            return []
        return [wallet.metering[budget, wallet.generations[budget], line.each, line.start]]

    def _stray(self, ask: Settle, outcome: Stray) -> None:
        wallet = self.wallet
        keys = [(name, wallet.generations[name], line.each, line.start) for name, line in outcome.budgets.items()]
        self._refresh(wallet.metering[key] for key in keys if key in wallet.metering)
        for name, line in outcome.budgets.items():
            self._count(name, line.period, "strays")
        self._drop(outcome.dropped)
        periods_ = {name: line.period for name, line in outcome.budgets.items()}
        key = ask.labels.get("key", "")
        life = Life(ask.hold, outcome.state, wallet.upto, outcome.at, outcome.charged, periods=periods_, key=key)
        self._keep_life(life)

    # --- keeping ------------------------------------------------------------------------------------------------------

    def beside(self) -> bytes:
        """All that is not the wallet's, for `restored`."""
        lives = self._lives.dump(self.wallet.at)
        beside = _Beside(BESIDE_SCHEMA, list(self.totals.values()), lives, self.sealed, self.outcomes, self.lapsed)
        return msgspec.json.encode(beside)

    @classmethod
    def restored(cls, wallet: Wallet, beside: bytes) -> Projection:
        """The projection of this wallet with what stood beside it. Raises `NotRestoredError`.

        Which documents were written is not known: all are dirty.
        """
        try:
            kept = msgspec.json.decode(beside, type=_Beside)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise NotRestoredError(f"no totals stand beside the wallet: {error}") from error
        if kept.schema != BESIDE_SCHEMA:
            raise NotRestoredError(f"totals of schema {kept.schema}, this release reads schema {BESIDE_SCHEMA}")
        projection = cls(wallet.name)
        projection.wallet = wallet
        projection.totals = {(totals.budget, totals.period): totals for totals in kept.totals}
        projection.dirty = set(projection.totals)
        projection.sealed = kept.sealed
        projection.outcomes, projection.lapsed = kept.outcomes, kept.lapsed
        projection._unsealed = {key for key, totals in projection.totals.items() if totals.sealed is None}
        projection._lives.load(kept.lives)
        for key, meter in wallet.metering.items():  # after each told every meter's totals are up to date
            projection._seen[key] = _Seen(meter.settled, meter.held, meter.extra)
        return projection

    # --- totals -------------------------------------------------------------------------------------------------------

    def _touch(self, bounds: Sequence[Bound], *, holds: int = 0, settles: int = 0, overruns: bool = False) -> None:
        self._refresh(bound.meter for bound in bounds)
        for bound in bounds:
            totals = self._of(bound.meter.budget, bound.meter.period)
            totals.holds += holds
            totals.settles += settles
            totals.overruns += overruns

    def _refresh(self, meters: Iterable[Meter]) -> None:
        """Add what has changed in these meters to their totals."""
        for meter in meters:
            totals = self._of(meter.budget, meter.period, meter)
            seen = self._seen.get(meter.key)
            if seen is None:
                seen = self._seen[meter.key] = _Seen()
            self._charge(totals, settled=meter.settled - seen.settled, extra=meter.extra - seen.extra)
            totals.held += meter.held - seen.held
            totals.peak = max(totals.peak, totals.settled + totals.held + totals.extra)
            seen.settled, seen.held, seen.extra = meter.settled, meter.held, meter.extra

    def _of(self, budget: str, period: str, meter: Meter | None = None) -> DayTotals:
        key = (budget, period)
        totals = self.totals.get(key)
        if totals is None:
            totals = self.totals[key] = self._new(budget, period, meter)
            if totals.sealed is None:
                self._unsealed.add(key)
        totals.seq = self.wallet.upto
        self.dirty.add(key)
        return totals

    def _new(self, budget: str, period: str, meter: Meter | None) -> DayTotals:
        unit = self.wallet.budget_units[budget]
        rule = self.wallet.named.get(budget)
        start, end = (meter.start, meter.end) if meter is not None else (0, 0)
        if meter is None and rule is not None:
            named = periods.period_named(period, per=rule.budget.per, zone=rule.budget.zone)
            start, end = named.start, named.end
        limit = rule.budget.limit if rule is not None else 0
        sealed = self._sealed_at(end)
        return DayTotals(
            budget, unit, self.wallet.scales[unit], period, start, end, self.wallet.upto, limit, sealed=sealed
        )

    @staticmethod
    def _charge(totals: DayTotals, *, settled: int, extra: int) -> None:
        totals.settled += settled
        totals.extra += extra
        if totals.sealed is not None:
            totals.settled_after_seal += settled
            totals.extra_after_seal += extra

    def _seal(self, seal: Seal) -> None:
        """A day is over, and every period that ended by then: what comes now comes after the seal."""
        sealed = Sealed(seal.day, seal.end, self.wallet.upto, self.wallet.at)
        self.sealed.append(sealed)
        over = {key for key in self._unsealed if 0 < self.totals[key].end <= seal.end}
        self._unsealed -= over
        self.dirty |= over
        for key in over:
            self.totals[key].sealed, self.totals[key].seq = sealed, self.wallet.upto

    def _sealed_at(self, end: int) -> Sealed | None:
        """The first day that was sealed at or after this end of a period, for one that is charged so late."""
        place = bisect_left(self.sealed, end, key=attrgetter("end"))
        return self.sealed[place] if end and place < len(self.sealed) else None

    def _forget_dropped(self) -> None:
        if len(self._seen) > 2 * len(self.wallet.metering) + SEEN_SPARE:
            self._seen = {key: seen for key, seen in self._seen.items() if key in self.wallet.metering}

    def _count(self, budget: str, period: str, field: str) -> None:
        totals = self._of(budget, period)
        setattr(totals, field, getattr(totals, field) + 1)

    def _limit(self, budget: str, period: str, limit: int) -> None:
        self._of(budget, period).limit = limit

    def _refused(self, outcome: Exhausted) -> None:
        totals = self._of(outcome.budget, outcome.period)
        totals.refused = {**totals.refused, outcome.why: totals.refused.get(outcome.why, 0) + 1}
        totals.limit = outcome.limit
        nothing_left = outcome.why == "spent" or (outcome.why == "tier" and outcome.tier is None)
        if totals.first_exhausted_at is None and nothing_left:
            totals.first_exhausted_at = self.wallet.at

    def _drop(self, dropped: Iterable[Dropped]) -> None:
        for drop in dropped:
            self._charge(self._of(drop.budget, drop.period), settled=drop.amount, extra=0)

    # --- one call -----------------------------------------------------------------------------------------------------

    def _remember(self, record: HoldRecord) -> None:
        if record.id not in self.wallet.open and record.id not in self.wallet.provisional:
            self._keep_life(_life(record))

    def _keep_life(self, life: Life) -> None:
        assert self.wallet.plan is not None
        forget_at = self.wallet.at + self.wallet.plan.remember_s * NS
        self._lives.put(life.id, _Remembered(life, forget_at))

    def life(self, id: str) -> Life | None:
        """One call, open or closed, for as long as the wallet remembers it."""
        record = self.wallet.open.get(id) or self.wallet.provisional.get(id)
        if record is not None:
            return _life(record)
        remembered = self._lives.get(id, self.wallet.at)
        return remembered.life if remembered is not None else None

    # --- the wallet at a glance ---------------------------------------------------------------------------------------

    def status(self, at: int) -> Status:
        """The shared budgets in the periods that contain `at` (stream time; never before the wallet's own)."""
        wallet = self.wallet
        at = max(at, wallet.at)
        budgets = wallet.plan.budgets if wallet.plan is not None else {}
        shared = [self._budget(name, at) for name, budget in budgets.items() if budget.each is None]
        frozen = [frost for frost in wallet.frozen.values() if frost.until is None or at < frost.until]
        return Status(wallet.name, wallet.upto, at, wallet.plan_digest, shared, frozen, len(wallet.open))

    def _budget(self, name: str, at: int) -> BudgetStatus:
        rule = self.wallet.named.get(name)
        assert rule is not None
        place, budget = self.wallet.place(rule, None, {}, at), rule.budget
        meter, period = place.meter, place.period
        totals = self.totals.get((name, period.name))
        observed = None
        if meter is not None and meter.as_of and budget.source is not None:
            observed = Figure(budget.source, meter.figure, meter.as_of)
        return BudgetStatus(
            name=name,
            unit=budget.unit,
            scale=self.wallet.scales[budget.unit],
            per=budget.per,
            zone=budget.zone,
            period=period.name,
            start=period.start,
            resets_at=period.end,
            limit=place.limit,
            settled=meter.settled if meter is not None else 0,
            held=meter.held if meter is not None else 0,
            extra=meter.extra if meter is not None else 0,
            public=budget.public,
            source=budget.source or "",
            note=budget.note,
            link=budget.link,
            first_exhausted_at=totals.first_exhausted_at if totals is not None else None,
            observed=observed,
            earlier_open=self._earlier_open(name, period),
        )

    def _earlier_open(self, budget: str, period: periods.Period) -> int:
        """Open holds that still count to an earlier period. Looks at holds only if there is such a period."""
        earlier = {
            key
            for key, meter in self.wallet.metering.items()
            if meter.budget == budget and meter.end <= period.start and meter.holders
        }
        if not earlier:
            return 0
        return sum(any(bound.meter.key in earlier for bound in record.bound) for record in self.wallet.open.values())


def _life(record: HoldRecord) -> Life:
    charged: Amounts = {unit: record.costs().get(unit, 0) for unit in record.units()}
    return Life(
        id=record.id,
        state=record.state,
        first=record.first,
        at=record.at,
        charged=charged,
        amounts=record.granted,
        progress=record.progress,
        expires_at=record.expires_at or None,
        periods={bound.meter.budget: bound.meter.period for bound in record.bound},
        key=record.labels.get("key", ""),
    )
