"""What a backfill would do with each row, before anything happens: one finding a row, by the record as it stands.

What the wallet remembers is judged by the engine's own `decide`, so that nothing said here can differ from what an
engine will say. Beyond its memory only the record knows, and `adjust` is what is left.

    new            the hold is open: this settles it
    corrects       it lapsed or was estimated: this is its real cost
    beyond         the same, but the wallet has forgotten it: adjusted in every budget that counted it
    stray          nobody ever held it: charged to the budgets that match its labels
    there          the record says the same already
    blank          the row says no cost yet
    conflict       the record says another exact cost, or two rows differ: nothing is done
    unknown_unit   an amount of a unit this wallet does not have: nothing is done
    refused        the wallet would not understand it: nothing is done
    unreadable     the row cannot be read: nothing is done
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Literal, TypeAlias

import msgspec

from engine.core.amounts import AmountError, format_amount, parse
from engine.core.decide import decide
from engine.core.messages import (
    Again,
    Amounts,
    AnyAsk,
    Conflict,
    Forgotten,
    Invalid,
    Settle,
    Settled,
    Stray,
)
from projector.backfill import correcting
from projector.backfill.known import Known, Register
from projector.backfill.rows import Row, Rows

Class: TypeAlias = Literal[
    "new", "corrects", "beyond", "stray", "there", "blank", "conflict", "unknown_unit", "refused", "unreadable"
]
TO_DO: tuple[Class, ...] = ("new", "corrects", "beyond", "stray")
LEFT: tuple[Class, ...] = ("conflict", "unknown_unit", "refused", "unreadable")
"""What a person has to look at."""

CLASSES: tuple[Class, ...] = (*TO_DO, "there", "blank", *LEFT)


class Finding(msgspec.Struct, frozen=True, gc=False):
    """One row. `amounts`: its cost; `charged`: what the record has charged so far. Both as decimal text.

    `asks` is what a backfill sends for it.
    """

    line: int
    hold: str
    found: Class
    amounts: dict[str, str] = {}
    charged: dict[str, str] = {}
    why: str = ""
    asks: tuple[AnyAsk, ...] = ()


def judge(rows: Rows, register: Register) -> Iterator[Finding]:
    """A finding for every row: those that can be read in the order of the file, then the others."""
    for row in rows:
        yield _Judge(register, row).finding()
    for hold, differing in rows.differing.items():
        lines = ", ".join(f"{row.line:,}" for row in differing)
        for row in differing:
            yield Finding(row.line, hold, "conflict", row.said, why=f"lines {lines} say different costs of this hold")
    for bad in rows.unreadable:
        yield Finding(bad.line, "", "unreadable", why=f"{bad.field}: {bad.why}" if bad.field else bad.why)


class _Judge:
    """One row held against the record."""

    def __init__(self, register: Register, row: Row) -> None:
        self._register, self._wallet, self._row = register, register.wallet, row
        self._known = register.holds.get(row.hold)
        self._said = {unit: amount for unit, amount in row.beside.items() if unit in self._counted()} | row.said

    def finding(self) -> Finding:
        row = self._row
        if not row.said:
            return self._found("blank", why="no cost is said yet")
        unknown = [unit for unit in row.said if unit not in self._wallet.scales]
        if unknown:
            return self._found("unknown_unit", why=f"this wallet knows {', '.join(sorted(self._wallet.scales))}")
        try:
            scales = self._wallet.scales
            costs = {unit: parse(amount, unit=unit, scale=scales[unit]) for unit, amount in self._said.items()}
        except AmountError as error:
            return self._found("refused", why=f"amounts: {error}")
        return self._judged(costs)

    def _counted(self) -> Container[str]:
        """The units its hold has; of a call nobody held, those that the plan counts."""
        known, record = self._known, self._wallet.open.get(self._row.hold)
        if record is not None:
            return set(record.units())
        if known is not None and known.state:
            return known.charged
        if known is not None and known.adjusts:
            return {self._wallet.budget_units[ask.budget] for ask in known.adjusts}
        return self._wallet.rules

    def _judged(self, costs: Amounts) -> Finding:
        known = self._known
        if known is not None and known.adjusts and known.state != "open":
            if correcting.begun(known, costs) or correcting.stands_at(known, costs):
                return self._found("there", why="by an adjustment")
            return self._found("conflict", why="an adjustment that names this hold says another cost")
        if known is not None and known.state and not self._register.remembers(known.id):
            return self._beyond(known, costs)
        return self._by_the_wallet(costs)

    def _by_the_wallet(self, costs: Amounts) -> Finding:
        """What the engine would say of a settlement now."""
        ask = self._settle(costs)
        match decide(self._wallet, ask, self._wallet.at):
            case Settled():
                was_open = ask.hold in self._wallet.open
                return self._found("new" if was_open else "corrects", ask)
            case Again():
                return self._found("there")
            case Conflict(charged=charged):
                return self._found("conflict", charged=charged, why="it was settled at another exact cost")
            case Stray():
                return self._stray(ask)
            case Forgotten():
                return self._long_ago(ask)
            case Invalid(field=field, why=why):
                return self._found("refused", why=f"{field}: {why}")
            case other:
                raise AssertionError(f"{type(other).__name__} is no answer to a settlement")

    def _settle(self, costs: Amounts) -> Settle:
        """With the hold's own moment where it is known: then an engine that has forgotten it since charges nothing."""
        row, known = self._row, self._known
        labels, held_at = row.labels, row.at
        if known is not None and known.state:
            held_at = known.at
        elif known is not None and known.forgotten is not None:
            labels, held_at = labels or known.forgotten.labels, held_at or known.forgotten.held_at
        return Settle(hold=row.hold, amounts=costs, held_at=held_at, labels=labels)

    def _stray(self, ask: Settle) -> Finding:
        now = " now, since the row says no time" if ask.held_at is None else ""
        matched = [
            place.budget for unit in ask.amounts for place in self._wallet.places(unit, ask.labels, self._moment(ask))
        ]
        return self._found("stray", ask, why=f"charged{now} to {', '.join(matched) or 'no budget'}")

    def _moment(self, ask: Settle) -> int:
        return min(ask.held_at, self._wallet.at) if ask.held_at is not None else self._wallet.at

    def _long_ago(self, ask: Settle) -> Finding:
        """Nobody ever held it, and its time is past the wallet's memory."""
        adjusts = correcting.adjusts_of_stray(self._wallet, ask.hold, ask.amounts, ask.labels, self._moment(ask))
        if not adjusts:
            return self._found("there", why="no budget counts it")
        return self._found("beyond", *adjusts, why="never held here")

    def _beyond(self, known: Known, costs: Amounts) -> Finding:
        if known.exact:
            same = correcting.stands_at(known, costs)
            return self._found("there") if same else self._found("conflict", why="it was settled at another exact cost")
        adjusts, gone = correcting.adjusts_of(self._wallet, known, costs)
        lost = f"not in {', '.join(gone)}, which the plan has dropped or begun anew" if gone else ""
        if adjusts:
            return self._found("beyond", *adjusts, why=lost)
        return self._found("refused", why=lost) if gone else self._found("there", why="no budget counts it")

    def _found(self, found: Class, *asks: AnyAsk, charged: Amounts | None = None, why: str = "") -> Finding:
        known = self._known
        if charged is None:
            charged = known.charged if known is not None and known.state else {}
        scales = self._wallet.scales
        written = {unit: format_amount(amount, scale=scales[unit]) for unit, amount in charged.items()}
        return Finding(self._row.line, self._row.hold, found, self._said, written, why, asks)
