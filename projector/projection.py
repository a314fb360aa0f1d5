"""The read models: what the page shows, folded from asks and tolds. It never decides and never looks at a clock.

The wallet's own `evolve` keeps meters and holds; beside it stand totals, details, days and lives, each in a module of
its own. This one says which outcome changes what.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from engine import later
from engine.core import evolve, periods
from engine.core.documents import DayTotals, Life, Sealed, Span, Status, WalletDay
from engine.core.messages import (
    Adjust,
    Adjusted,
    Amounts,
    AnyAsk,
    AnyOutcome,
    Conflict,
    Done,
    Dropped,
    Entry,
    Exhausted,
    Frozen,
    Held,
    Hold,
    Lapsed,
    Renew,
    Settle,
    Settled,
    Stray,
)
from engine.core.meter import Meter
from engine.core.restore import NotRestoredError
from engine.core.wallet import HoldRecord, Wallet
from projector.days.details import AllKnown, Details
from projector.days.differences import Difference, Differences, differences_of
from projector.days.spenders import Spenders
from projector.days.totals import Totals, TotalsKey
from projector.days.wallet_days import WalletDays
from projector.glance import status_of
from projector.lives import Lives, Remembered
from projector.memos import AllNoted, Memos

BESIDE_SCHEMA = 5  # of what a snapshot remembers beside the wallet: another shape needs another number

_encoder = msgspec.json.Encoder()


class _Before(msgspec.Struct, frozen=True, gc=False):
    """A call before an outcome changed it: `meters` it was bound to."""

    record: HoldRecord
    is_open: bool
    meters: int
    charged: Amounts


class _Beside(msgspec.Struct, frozen=True):
    """What a snapshot remembers beside the wallet."""

    schema: int
    totals: list[DayTotals]
    lives: list[dict[str, Remembered]]
    sealed: list[Sealed]
    details: AllKnown
    days: list[WalletDay]
    differences: list[Difference]
    outcomes: dict[str, int]
    lapsed: int
    noted: AllNoted


class Projection:
    """Everything readable, as of the entry of ask message `wallet.upto`."""

    def __init__(self, wallet: Wallet | str) -> None:
        self.wallet = wallet if isinstance(wallet, Wallet) else Wallet(wallet)
        self.details = Details()
        self.books = Totals(self.wallet, self.details)
        self.wallet_days = WalletDays()
        self.differences = Differences()
        self.lives = Lives(self.wallet)
        self.memos = Memos()
        self.outcomes: dict[str, int] = {}  # "ask outcome" -> how often since the wallet began
        self.lapsed = 0

    @property
    def totals(self) -> dict[TotalsKey, DayTotals]:
        return self.books.by_key

    @property
    def sealed(self) -> list[Sealed]:
        """Every day that ever was, by its end."""
        return self.books.sealed

    def fold(self, *, seq: int, asks: Sequence[AnyAsk] | None, entry: Entry) -> None:
        """Take one told entry in."""
        wallet = self.wallet
        evolve.begin(wallet, seq=seq, at=entry.at)
        self.lives.let_go(entry.at)
        zone = wallet.plan.zone if wallet.plan is not None else "UTC"
        self.details.begin(seq=seq, at=entry.at, horizon=wallet.horizon, zone=zone)
        seals = deque(entry.sealed)
        for lapsed in entry.lapsed:
            while seals and wallet.open[lapsed.hold].expires_at >= seals[0].end:
                self.books.seal(seals.popleft())
            self._lapse(lapsed)
        for seal in seals:
            self.books.seal(seal)
        evolve.settle_in(wallet)
        self.books.forget_dropped()
        if asks is None:
            for outcome in entry.out:
                self._tally("message", outcome)
                self.wallet_days.take(wallet.day, seq, outcome)
        for ask, outcome in zip(asks or (), entry.out, strict=asks is not None):
            self._take(ask, outcome)
        if wallet.plan is not None:
            self.memos.fold(asks, entry, remember_s=wallet.plan.remember_s)

    def _take(self, ask: AnyAsk, outcome: AnyOutcome) -> None:
        wallet = self.wallet
        self._tally(str(type(ask).__struct_config__.tag), outcome)
        before = self._before(ask) if isinstance(ask, Settle) else None
        evolve.evolve(wallet, ask, outcome)
        match outcome, ask:
            case Held(), Hold():
                self._held(ask, outcome)
            case Settled(), Settle():
                assert before is not None
                self._settled(before, outcome)
            case Stray(), Settle():
                self._stray(ask, outcome)
            case Adjusted(), Adjust():
                self._adjusted(ask, outcome)
            case _:
                self._others(ask, outcome)

    def _tally(self, asked: str, outcome: AnyOutcome) -> None:
        told = f"{asked} {type(outcome).__struct_config__.tag}"
        self.outcomes[told] = self.outcomes.get(told, 0) + 1

    def _others(self, ask: AnyAsk, outcome: AnyOutcome) -> None:
        """What is neither granted nor charged. Raises `Untrusted` for a plan of a later release."""
        later.check_rules(self.wallet.upto, [ask], [outcome])
        self.wallet_days.take(self.wallet.day, self.wallet.upto, outcome)
        match outcome:
            case Exhausted():
                _refuse(self.books.exhaust(outcome), self._labels(ask))
            case Frozen():
                self._frozen(ask, outcome)
            case Conflict():
                self._conflict(ask, outcome)
            case _:
                self._refresh(self._meters_of(outcome, ask), None)

    def _before(self, ask: Settle) -> _Before | None:
        record = self.wallet.open.get(ask.hold) or self.wallet.provisional.get(ask.hold)
        if record is None:
            return None
        return _Before(record, record.state == "open", len(record.bound), record.charged)

    def _labels(self, ask: AnyAsk) -> Mapping[str, str]:
        """Those of the call that a refused ask was for."""
        if isinstance(ask, Renew):
            return self.wallet.open[ask.hold].labels
        return ask.labels if isinstance(ask, Hold) else {}

    def _meters_of(self, outcome: AnyOutcome, ask: AnyAsk) -> list[Meter]:
        """The meters that renewals, observations and losses touch."""
        wallet = self.wallet
        if isinstance(outcome, Held):
            return [bound.meter for bound in wallet.open[outcome.id].bound]
        if isinstance(outcome, Done):
            lines = ((raised.budget, raised.line) for raised in outcome.raised)
            return [wallet.metering[name, wallet.generations[name], line.each, line.start] for name, line in lines]
        line, budget = getattr(outcome, "line", None), getattr(ask, "budget", "")
        return [wallet.metering[budget, wallet.generations[budget], line.each, line.start]] if line is not None else []

    # --- calls --------------------------------------------------------------------------------------------------------

    def _held(self, ask: Hold, outcome: Held) -> None:
        labels = ask.labels
        for bound in self.wallet.open[ask.id].bound:
            totals, spenders, _ = self.books.refresh(bound.meter)
            totals.holds += 1
            totals.open_holds += 1
            totals.limit = bound.limit
            if spenders is not None:
                for spent in spenders.of(labels):
                    spent.holds += 1

    def _settled(self, before: _Before, outcome: Settled) -> None:
        record = before.record
        is_open = record.state == "open"
        for place, bound in enumerate(record.bound):
            totals, spenders, settled = self.books.refresh(bound.meter)
            _charge(spenders, record.labels, settled)
            totals.settles += 1
            totals.open_holds += is_open - (before.is_open and place < before.meters)
            if not is_open:
                totals.wasted += _wasted(record, bound.meter, record.charged)
                totals.wasted -= 0 if before.is_open else _wasted(record, bound.meter, before.charged)
            if outcome.flags:
                _flag(totals, outcome.flags)
        self._drop(outcome.dropped, record.labels)
        self.lives.closed(record)

    def _lapse(self, lapsed: Lapsed) -> None:
        record = self.wallet.open[lapsed.hold]
        evolve.lapse(self.wallet, lapsed)
        self.lapsed += 1
        for bound in record.bound:
            totals, spenders, settled = self.books.refresh(bound.meter)
            _charge(spenders, record.labels, settled)
            totals.lapsed += 1
            totals.open_holds -= 1
            totals.wasted += _wasted(record, bound.meter, record.charged)

    def _stray(self, ask: Settle, outcome: Stray) -> None:
        wallet = self.wallet
        keys = [(name, wallet.generations[name], line.each, line.start) for name, line in outcome.budgets.items()]
        self._refresh((wallet.metering[key] for key in keys if key in wallet.metering), ask.labels)
        for name, line in outcome.budgets.items():
            totals, _ = self.books.of(name, line.period)
            totals.strays += 1
            totals.estimated += outcome.state == "estimated"
        self._drop(outcome.dropped, ask.labels)
        periods_ = {name: line.period for name, line in outcome.budgets.items()}
        key = ask.labels.get("key", "")
        self.lives.keep(
            Life(ask.hold, outcome.state, wallet.upto, outcome.at, outcome.charged, periods=periods_, key=key)
        )

    def _refresh(self, meters: Iterable[Meter], labels: Mapping[str, str] | None) -> None:
        """Add what has changed in these meters, for a call with these labels (None: for none)."""
        for meter in meters:
            _, spenders, settled = self.books.refresh(meter)
            _charge(spenders, labels, settled)

    def _drop(self, dropped: Iterable[Dropped], labels: Mapping[str, str] | None) -> None:
        for drop in dropped:
            totals, spenders = self.books.of(drop.budget, drop.period)
            self.books.charge(totals, settled=drop.amount)
            _charge(spenders, labels, drop.amount)

    # --- refusals, conflicts, corrections -----------------------------------------------------------------------------

    def _frozen(self, ask: AnyAsk, outcome: Frozen) -> None:
        """A freeze of one budget is that budget's refusal; one of more is the day's alone."""
        rule = self.wallet.named.get(outcome.scope)
        if rule is not None:
            period = periods.period_at(self.wallet.at, per=rule.budget.per, zone=rule.budget.zone)
            _, spenders = self.books.refuse(rule.name, period.name, "frozen")
            _refuse(spenders, self._labels(ask))

    def _conflict(self, ask: AnyAsk, outcome: Conflict) -> None:
        """A settlement at odds with what stands is its hold's budgets' matter."""
        life = self.lives.get(ask.hold) if isinstance(ask, Settle) else None
        if life is None or not isinstance(ask, Settle):
            return
        for budget, period in life.periods.items():
            self.books.of(budget, period)[0].conflicts += 1
        if outcome.field == "amounts" and ask.final and not ask.estimated:
            self._differ(ask, life)

    def _differ(self, ask: Settle, life: Life) -> None:
        said = life.progress if ask.release else ask.amounts
        found = differences_of(life, said, self.wallet.budget_units, rest_is_zero=ask.release)
        gone = self.differences.show(ask.hold, said, found)
        if gone is None:
            return
        for sign, open_ in ((-1, gone.open), (1, found)):
            for budget, (period, difference) in open_.items():
                totals, _ = self.books.of(budget, period)
                totals.unreconciled += sign * difference
                totals.unreconciled_holds += sign

    def _adjusted(self, ask: Adjust, outcome: Adjusted) -> None:
        self._refresh(self._meters_of(outcome, ask), None)
        self._drop([outcome.dropped] if outcome.dropped is not None else [], None)
        totals, _ = self.books.of(ask.budget, ask.period)
        totals.adjusted += ask.amount
        if ask.hold is not None and (ended := self.differences.adjusted(ask.hold, ask.budget, ask.period)) is not None:
            totals.unreconciled -= ended
            totals.unreconciled_holds -= 1

    # --- reading ------------------------------------------------------------------------------------------------------

    def status(self, at: int) -> Status:
        """The shared budgets in the periods that contain `at` (stream time; never before the wallet's own)."""
        return status_of(self.wallet, self.totals, at)

    def life(self, id: str) -> Life | None:
        """One call, open or closed, for as long as the wallet remembers it."""
        return self.lives.get(id)

    def span(self, day: str) -> Span | None:
        """The ask messages of a day of the wallet, as far as they are folded; None if there was no such day."""
        first, wallet = 1, self.wallet
        for sealed in self.sealed:
            if sealed.day == day:
                return Span(day, first, sealed.seq, True, wallet.scales, wallet.budget_units)
            first = sealed.seq
        if day != wallet.day:
            return None
        return Span(day, first, wallet.upto + 1, False, wallet.scales, wallet.budget_units)

    # --- keeping ------------------------------------------------------------------------------------------------------

    def beside(self) -> bytes:
        """All that is not the wallet's, for `restored`."""
        beside = _Beside(
            BESIDE_SCHEMA,
            list(self.totals.values()),
            self.lives.dump(self.wallet.at),
            self.sealed,
            self.details.known(),
            list(self.wallet_days.days.values()),
            list(self.differences.by_hold.values()),
            self.outcomes,
            self.lapsed,
            self.memos.dump(),
        )
        return _encoder.encode(beside)

    @classmethod
    def restored(cls, wallet: Wallet, beside: bytes) -> Projection:
        """The projection of this wallet with what stood beside it. Raises `NotRestoredError`.

        Which documents were written is not known: all are dirty.
        """
        try:
            schema = msgspec.json.decode(beside, type=_Schema).schema
            kept = msgspec.json.decode(beside, type=_Beside) if schema == BESIDE_SCHEMA else None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise NotRestoredError(f"no totals stand beside the wallet: {error}") from error
        if kept is None:
            raise NotRestoredError(f"totals of schema {schema}, this release reads schema {BESIDE_SCHEMA}")
        projection = cls(wallet)
        projection.books.load(kept.totals, kept.sealed)
        projection.details.load(kept.details, projection.totals)
        projection.wallet_days = WalletDays(kept.days)
        projection.differences = Differences(kept.differences)
        projection.lives.load(kept.lives)
        projection.memos = Memos(kept.noted)
        projection.outcomes, projection.lapsed = kept.outcomes, kept.lapsed
        return projection


class _Schema(msgspec.Struct, frozen=True):
    schema: int


def _charge(spenders: Spenders | None, labels: Mapping[str, str] | None, amount: int) -> None:
    """Nothing where the detail is final, or where it is of no call."""
    if amount and spenders is not None and labels is not None:
        for spent in spenders.of(labels):
            spent.settled += amount


def _refuse(spenders: Spenders | None, labels: Mapping[str, str]) -> None:
    if spenders is not None:
        for spent in spenders.of(labels):
            spent.refused += 1


def _wasted(record: HoldRecord, meter: Meter, charged: Amounts) -> int:
    """What this hold kept from others in this meter and did not cost."""
    granted = record.granted.get(meter.unit, 0)
    return max(0, granted - charged.get(meter.unit, 0)) if granted else 0


def _flag(totals: DayTotals, flags: Sequence[str]) -> None:
    for flag in flags:
        name = "overruns" if flag == "overrun" else flag
        setattr(totals, name, getattr(totals, name) + 1)
