"""What was decided, as rows for a table: one a meter that an outcome touched, or one where it touched none.

A row says what the outcome changed in one budget's period and what stood there afterwards, so that sums over rows give
the wallet's own totals and any order but the record's is a matter of sorting. Amounts are integers of the unit's
smallest part, each beside its exact decimal text. The fold is the engine's; nothing here decides, writes or knows days.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from engine.core import evolve
from engine.core.amounts import format_amount
from engine.core.messages import (
    Adjust,
    Adjusted,
    Amounts,
    AnyAsk,
    AnyOutcome,
    Done,
    Dropped,
    Exhausted,
    Held,
    Hold,
    Invalid,
    Lapsed,
    Line,
    Observe,
    Observed,
    Renew,
    Restore,
    Revoke,
    Settle,
    Settled,
    Stray,
)
from engine.core.meter import MeterKey
from engine.core.wallet import NS, Bound, HoldRecord, Wallet
from projector.replay import Answered, BrokenRecord

Figures = tuple[int, int, int]
"""Settled, held, extra of one meter."""


class Row(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One row. Columns in this order; null where a column does not speak of this outcome.

    `seq` is the ask message's sequence, `told` its told's, `place` counts the rows of one message; `first` marks the
    first row of each outcome: count those to count outcomes. `kind` is the ask's, or `lapse`. `settled`, `held` and
    `extra` are what this outcome changed in this meter, `used`, `limit` and `remaining` what stood there afterwards;
    `amount` is what it was about: granted, charged so far, asked for (a refusal), the figure, the adjustment. `scale`
    is how many digits of an amount stand after the point; `restarts` how often plans had made the budget begin at zero.
    """

    seq: int
    told: int
    place: int
    first: bool
    at: int
    at_utc: str
    kind: str
    outcome: str
    id: str
    hold: str | None = None
    state: str | None = None
    why: str | None = None
    option: int | None = None
    tier: int | None = None
    expires_at: int | None = None
    budget: str | None = None
    each: str | None = None
    period: str | None = None
    period_start: int | None = None
    period_end: int | None = None
    restarts: int | None = None
    unit: str | None = None
    scale: int | None = None
    amount: int | None = None
    amount_text: str | None = None
    settled: int = 0
    settled_text: str | None = None
    held: int = 0
    held_text: str | None = None
    extra: int = 0
    extra_text: str | None = None
    used: int | None = None
    used_text: str | None = None
    limit: int | None = None
    limit_text: str | None = None
    remaining: int | None = None
    remaining_text: str | None = None
    flags: list[str] = []
    labels: dict[str, str] = {}
    price_book: str | None = None
    scope: str | None = None
    reason: str | None = None
    by_whom: str | None = None


COLUMNS: tuple[str, ...] = Row.__struct_fields__


def utc(at: int) -> str:
    """A moment (ns) in UTC, to the nanosecond."""
    return f"{datetime.fromtimestamp(at // NS, UTC):%Y-%m-%dT%H:%M:%S}.{at % NS:09d}Z"


class Rows:
    """The fold. `take` every answered message in order; rows go to `write`, of those at which `wanted` says so."""

    def __init__(self, write: Callable[[Row], None], wanted: Callable[[Wallet, int], bool]) -> None:
        self.wallet = Wallet()
        self._write = write
        self._wanted = wanted

    def take(self, answered: Answered) -> None:
        """The next message and what was told of it, proved to belong together. Raises `BrokenRecord`."""
        try:
            self._take(answered)
        except (AssertionError, LookupError) as error:  # its chain is right, yet it speaks of what never was
            seq = answered.stored.seq
            raise BrokenRecord(f"what the entry for message {seq:,} tells cannot have happened", seq=seq) from error

    def _take(self, answered: Answered) -> None:
        wallet, entry = self.wallet, answered.entry
        wanted = self._wanted(wallet, entry.at)
        message = _Message(wallet, answered, self._write if wanted else None)
        evolve.begin(wallet, seq=answered.stored.seq, at=entry.at)
        for lapsed in entry.lapsed:
            message.lapse(lapsed)
        evolve.settle_in(wallet)
        if answered.asks is None:
            message.unreadable(entry.out[0])
        for ask, outcome in zip(answered.asks or (), entry.out, strict=answered.asks is not None):
            message.take(ask, outcome)


class _Message:
    """The rows of one message, in the order of what happened."""

    def __init__(self, wallet: Wallet, answered: Answered, write: Callable[[Row], None] | None) -> None:
        self._wallet, self._write, self._answered = wallet, write, answered
        self._place = 0
        self._at_utc = utc(answered.entry.at) if write is not None else ""

    def lapse(self, lapsed: Lapsed) -> None:
        record = self._wallet.open[lapsed.hold]
        before = self._before([bound.meter.key for bound in record.bound])
        evolve.lapse(self._wallet, lapsed)
        if self._write is None:
            return
        told: dict[str, object] = {
            "kind": "lapse",
            "outcome": "lapsed",
            "id": lapsed.hold,
            "hold": lapsed.hold,
            "state": "lapsed",
        }
        self._rows(told, record.labels, lapsed.charged, before, self._limits(record))

    def unreadable(self, outcome: AnyOutcome) -> None:
        assert isinstance(outcome, Invalid)
        if self._write is not None:
            self._rows({"kind": "message", "outcome": "invalid", "id": "", "why": outcome.field}, {}, {}, {}, {})

    def take(self, ask: AnyAsk, outcome: AnyOutcome) -> None:
        wallet = self._wallet
        if self._write is None:
            evolve.evolve(wallet, ask, outcome)
            return
        record = _record(wallet, ask)
        gone = {drop.budget: drop for drop in _dropped(outcome)}
        keys = [bound.meter.key for bound in record.bound] if record is not None and _moves(outcome) else []
        lines = _lines(ask, outcome)
        keys += [key for key in (self._key(budget, line) for budget, line in lines) if key not in keys]
        before = self._before(keys)
        evolve.evolve(wallet, ask, outcome)
        if isinstance(ask, Hold) and isinstance(outcome, Held):
            record = wallet.open[ask.id]
        limits = self._limits(record) | {self._key(budget, line): line.limit for budget, line in lines}
        labels = record.labels if record is not None else getattr(ask, "labels", {})
        if isinstance(ask, Revoke | Restore):
            labels = {ask.label: ask.value}
        told = {**_asked(ask), **_said(outcome)}
        if isinstance(outcome, Exhausted):
            self._refused(told, labels, ask, outcome)
        else:
            self._rows(told, labels, amounts_of(wallet.budget_units, ask, outcome), before, limits, gone.values())

    # --- rows ---------------------------------------------------------------------------------------------------------

    def _rows(
        self,
        told: dict[str, object],
        labels: dict[str, str],
        amounts: Amounts,
        before: dict[MeterKey, Figures],
        limits: dict[MeterKey, int],
        dropped: Iterable[Dropped] = (),
    ) -> None:
        """One for each meter, one for each charge to a period that is over, one for each unit that no budget counts."""
        rows = [*self._metered(amounts, before, limits), *self._over(amounts, dropped)]
        counted = {row["unit"] for row in rows}
        rows += [self._texts(unit, {"amount": amount}) for unit, amount in amounts.items() if unit not in counted]
        for number, row in enumerate(rows or [{}]):
            self._emit(told, labels, row, first=not number)

    def _metered(
        self, amounts: Amounts, before: dict[MeterKey, Figures], limits: dict[MeterKey, int]
    ) -> Iterator[dict[str, object]]:
        for key, was in before.items():
            meter = self._wallet.metering[key]
            settled, held, extra = meter.settled - was[0], meter.held - was[1], meter.extra - was[2]
            figures = {"settled": settled, "held": held, "extra": extra, "used": meter.used}
            if meter.unit in amounts:
                figures["amount"] = amounts[meter.unit]
            if key in limits:
                figures |= {"limit": limits[key], "remaining": limits[key] - meter.used}
            named = {"budget": meter.budget, "each": meter.each, "period": meter.period}
            bounds = {"period_start": meter.start, "period_end": meter.end, "restarts": meter.generation}
            yield {**named, **bounds, **self._texts(meter.unit, figures)}

    def _over(self, amounts: Amounts, dropped: Iterable[Dropped]) -> Iterator[dict[str, object]]:
        for drop in dropped:
            unit = self._wallet.budget_units[drop.budget]
            figures = {"settled": drop.amount, "amount": amounts.get(unit, drop.amount)}
            named = {"budget": drop.budget, "each": drop.each, "period": drop.period}
            yield {**named, **self._texts(unit, figures)}

    def _refused(self, told: dict[str, object], labels: dict[str, str], ask: AnyAsk, outcome: Exhausted) -> None:
        used = outcome.settled + outcome.held + outcome.extra
        figures = {"used": used, "limit": outcome.limit, "remaining": outcome.remaining}
        wanted = ask.options[0].amounts if isinstance(ask, Hold) else getattr(ask, "amounts", {})
        if outcome.unit in wanted:
            figures["amount"] = wanted[outcome.unit]
        named = {"budget": outcome.budget, "each": outcome.each, "period": outcome.period}
        row = {**named, "period_end": outcome.resets_at, **self._texts(outcome.unit, figures)}
        self._emit(told, labels, row, first=True)

    def _texts(self, unit: str, figures: dict[str, int]) -> dict[str, object]:
        scale = self._wallet.scales[unit]
        texts = {f"{name}_text": format_amount(amount, scale=scale) for name, amount in figures.items()}
        return {"unit": unit, "scale": scale, **figures, **texts}

    def _emit(self, told: dict[str, object], labels: dict[str, str], row: dict[str, object], *, first: bool) -> None:
        assert self._write is not None
        answered = self._answered
        self._write(
            Row(
                seq=answered.stored.seq,
                told=answered.told,
                place=self._place,
                first=first,
                at=answered.entry.at,
                at_utc=self._at_utc,
                labels=labels,
                **told,  # type: ignore[arg-type]  # the columns by name
                **row,  # type: ignore[arg-type]
            )
        )
        self._place += 1

    # --- meters -------------------------------------------------------------------------------------------------------

    def _before(self, keys: Sequence[MeterKey]) -> dict[MeterKey, Figures]:
        found = {key: self._wallet.metering.get(key) for key in keys}
        return {
            key: (meter.settled, meter.held, meter.extra) if meter is not None else (0, 0, 0)
            for key, meter in found.items()
        }

    def _key(self, budget: str, line: Line) -> MeterKey:
        return budget, self._wallet.generations[budget], line.each, line.start

    def _limits(self, record: HoldRecord | None) -> dict[MeterKey, int]:
        bounds: tuple[Bound, ...] = record.bound if record is not None else ()
        return {bound.meter.key: self._wallet.limit_now(bound, record.labels) for bound in bounds if record is not None}


def _record(wallet: Wallet, ask: AnyAsk) -> HoldRecord | None:
    """The call that an ask is about, if the wallet knows it."""
    if not isinstance(ask, Settle | Renew):
        return None
    return wallet.open.get(ask.hold) or wallet.provisional.get(ask.hold)


def _moves(outcome: AnyOutcome) -> bool:
    """Whether the meters that its call is bound to may change by this outcome."""
    return isinstance(outcome, Held | Settled)


def _lines(ask: AnyAsk, outcome: AnyOutcome) -> list[tuple[str, Line]]:
    """Meters that an outcome names with their bounds, other than those a renewed hold is bound to already."""
    if isinstance(outcome, Held) and isinstance(ask, Renew):
        return []
    if isinstance(outcome, Held | Settled | Stray):
        return list(outcome.budgets.items())
    if isinstance(outcome, Done):
        return [(raised.budget, raised.line) for raised in outcome.raised]
    line = getattr(outcome, "line", None)
    return [(ask.budget, line)] if isinstance(ask, Observe | Adjust) and line is not None else []


def _dropped(outcome: AnyOutcome) -> list[Dropped]:
    if isinstance(outcome, Settled | Stray):
        return outcome.dropped
    dropped = getattr(outcome, "dropped", None)
    return [dropped] if isinstance(dropped, Dropped) else []


def amounts_of(units: Mapping[str, str], ask: AnyAsk, outcome: AnyOutcome) -> Amounts:
    """What an outcome is about, by unit: granted, charged, the figure, the adjustment. `units`: of every budget."""
    match outcome, ask:
        case Held(), _:
            return outcome.amounts
        case ((Settled() | Stray()), _):
            return outcome.charged
        case Observed(), Observe():
            return {units[ask.budget]: ask.figure}
        case Adjusted(), Adjust():
            return {units[ask.budget]: ask.amount}
        case _:
            return {}


def _asked(ask: AnyAsk) -> dict[str, object]:
    kind = str(ask.__struct_config__.tag)
    about = ask.hold if isinstance(ask, Settle | Renew) else ask.id
    fields: dict[str, object] = {"kind": kind, "id": about}
    if isinstance(ask, Hold | Settle | Renew):
        fields["hold"] = about
    if isinstance(ask, Adjust) and ask.hold is not None:
        fields["hold"] = ask.hold
    for name in ("price_book", "scope", "reason", "by_whom"):
        if value := getattr(ask, name, ""):
            fields[name] = value
    return fields


def _said(outcome: AnyOutcome) -> dict[str, object]:
    fields: dict[str, object] = {"outcome": str(outcome.__struct_config__.tag)}
    for name in ("state", "why", "option", "tier", "expires_at", "flags"):
        value = getattr(outcome, name, None)
        if value not in (None, ""):
            fields[name] = value
    return fields
