"""Deciding settlements. They are never refused: the money is gone, and the question is only where it is written.

Reads the wallet, changes nothing. A settle's verdict follows from the hold's state and the amounts, hardly ever from
its own id.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.core import checks, periods
from engine.core.messages import (
    Again,
    Amounts,
    AnyOutcome,
    Conflict,
    Dropped,
    Flag,
    Forgotten,
    HoldState,
    Invalid,
    Line,
    Settle,
    Settled,
    Stray,
)
from engine.core.wallet import NS, ClosedRecord, HoldRecord, Place, Wallet


def decide_settle(wallet: Wallet, ask: Settle, at: int) -> AnyOutcome:
    wrong = checks.settle(ask, wallet.scales)
    if wrong is not None:
        return Invalid(ask.hold, *wrong)
    if ask.id and ask.id != f"{ask.hold}:s":
        bound = wallet.settle_ids.get(ask.id, at)
        if bound is not None and bound.hold != ask.hold:
            return Conflict(ask.hold, "id")

    record = wallet.open.get(ask.hold)
    if record is not None:
        return _settle_open(wallet, record, ask, at)
    record = wallet.provisional.get(ask.hold)
    if record is not None:
        return _settle_provisional(wallet, record, ask, at)
    closed = wallet.closed.get(ask.hold, at)
    if closed is not None:
        return _settle_closed(closed, ask)
    return _settle_unknown(wallet, ask, at)


def _settle_open(wallet: Wallet, record: HoldRecord, ask: Settle, at: int) -> AnyOutcome:
    late = record.expires_at <= at
    if ask.release:
        if _overtaken(record, ask):
            return Again(ask.hold, record.changed, "open")
        charged = {unit: record.progress.get(unit, 0) for unit in record.units()}
        return _settled(wallet, record, ask, charged, state="settled", late=late, at=at)
    if not ask.final:
        charged = _raised(record, ask.amounts)
        if all(record.progress.get(unit, 0) == amount for unit, amount in charged.items()):
            return Again(ask.hold, record.changed, "open")
        return _settled(wallet, record, ask, charged, state="open", late=late, at=at)
    charged = {unit: ask.amounts.get(unit, record.taken(unit)) for unit in record.units()}
    charged |= _new_units(record, ask.amounts)
    state: HoldState = "estimated" if ask.estimated else "settled"
    return _settled(wallet, record, ask, charged, state=state, late=late, at=at)


def _settle_provisional(wallet: Wallet, record: HoldRecord, ask: Settle, at: int) -> AnyOutcome:
    lapsed = record.state == "lapsed"
    if ask.release and _overtaken(record, ask):
        return Again(ask.hold, record.changed, record.state)
    if ask.release:
        charged = {unit: record.progress.get(unit, 0) for unit in record.units()}
        return _settled(wallet, record, ask, charged, state="corrected", late=lapsed, at=at)
    if ask.final and not ask.estimated:
        charged = {unit: ask.amounts.get(unit, record.charged.get(unit, 0)) for unit in record.units()}
        charged |= _new_units(record, ask.amounts)
        return _settled(wallet, record, ask, charged, state="corrected", late=lapsed, at=at)
    stray = record.ask is None
    if not ask.final and not lapsed and not stray:
        return Again(ask.hold, record.changed, record.state)
    charged = _raised(record, ask.amounts)
    if all(record.charged.get(unit, 0) == amount for unit, amount in charged.items()):
        return Again(ask.hold, record.changed, record.state)
    return _settled(wallet, record, ask, charged, state=record.state, late=lapsed, at=at)


def _settle_closed(closed: ClosedRecord, ask: Settle) -> AnyOutcome:
    if ask.release:
        same = ask.by is not None or closed.at_progress
    else:
        same = all(closed.charged.get(unit, 0) == amount for unit, amount in ask.amounts.items())
    if same:
        return Again(ask.hold, closed.changed, closed.state)
    return Conflict(ask.hold, "amounts", closed.charged)


def _settle_unknown(wallet: Wallet, ask: Settle, at: int) -> AnyOutcome:
    assert wallet.plan is not None
    if ask.held_at is not None and ask.held_at + wallet.plan.remember_s * NS <= at:
        return Forgotten(ask.hold)
    moment = ask.held_at if ask.held_at is not None and ask.held_at <= at else at
    exact = ask.release or (ask.final and not ask.estimated)
    lines, dropped = _new_lines(wallet, ask.amounts, ask.labels, moment=max(moment, 0), at=at)
    state: HoldState = "stray" if exact else "estimated"
    return Stray(ask.hold, state, ask.amounts, moment, lines, dropped)


def _overtaken(record: HoldRecord, ask: Settle) -> bool:
    """A caller gave up on an attempt, but another with a later deadline has asked since."""
    return ask.by is not None and ask.by < record.by


def _raised(record: HoldRecord, said: Amounts) -> Amounts:
    """Totals so far, per unit only upwards."""
    known = {unit: max(record.spent(unit), said.get(unit, 0)) for unit in record.units()}
    return known | _new_units(record, said)


def _new_units(record: HoldRecord, said: Amounts) -> Amounts:
    """What is said of units the hold lacks; zero of them is nothing."""
    if said.keys() == record.granted.keys():
        return {}
    known = record.units()
    return {unit: amount for unit, amount in said.items() if amount and unit not in known}


def _settled(
    wallet: Wallet, record: HoldRecord, ask: Settle, charged: Amounts, *, state: HoldState, late: bool, at: int
) -> Settled:
    """The outcome that makes the hold cost `charged`, with everything it moves."""
    units = record.units()
    changes = {unit: _change(record, unit, charged[unit], state=state) for unit in units}
    lines: dict[str, Line] = {}
    dropped: list[Dropped] = []
    new = {unit: amount for unit, amount in charged.items() if unit not in changes}
    if new:
        lines, dropped = _new_lines(wallet, new, record.labels, moment=record.at, at=at)
    if record.gone:
        dropped = _more_dropped(record, changes) + dropped
    released: Amounts = {}
    if ask.final and state != "lapsed":
        released = {unit: record.taken(unit) - charged[unit] for unit in units if record.taken(unit) > charged[unit]}
    flags = _flags(record, ask, charged, new, state=state, late=late)
    return Settled(ask.hold, state, charged, released, wallet.left(record, changes), lines, dropped, flags)


def _change(record: HoldRecord, unit: str, charged: int, *, state: HoldState) -> tuple[int, int]:
    """By how much settled and held change in every meter of `unit`."""
    spent, taken = record.spent(unit), record.taken(unit)
    held_after = max(0, record.granted.get(unit, 0) - charged) if state == "open" else 0
    return charged - spent, held_after - (taken - spent)


def _more_dropped(record: HoldRecord, changes: Mapping[str, tuple[int, int]]) -> list[Dropped]:
    """What changes in periods the hold is bound to whose meters are gone."""
    return [
        Dropped(gone.budget, gone.period, changes[gone.unit][0], gone.each)
        for gone in record.gone
        if changes[gone.unit][0]
    ]


def _flags(
    record: HoldRecord, ask: Settle, charged: Amounts, new: Amounts, *, state: HoldState, late: bool
) -> list[Flag]:
    """In the order of the glossary. A stray was granted nothing, so it cannot overrun."""
    flags: list[Flag] = []
    if late:
        flags.append("late")
    overrun = any(unit in ask.amounts and charged[unit] > record.granted.get(unit, 0) for unit in record.units())
    if overrun and record.ask is not None:
        flags.append("overrun")
    if new:
        flags.append("unheld")
    closing = ask.final and not ask.release and (record.state == "open" or not ask.estimated)
    if closing and any(unit not in ask.amounts for unit in record.units()):
        flags.append("unreported")
    if state == "corrected":
        flags.append("corrected")
    if ask.estimated and ask.final:
        flags.append("estimated")
    return flags


def _new_lines(
    wallet: Wallet, said: Amounts, labels: Mapping[str, str], *, moment: int, at: int
) -> tuple[dict[str, Line], list[Dropped]]:
    """Where amounts of units nobody held are charged: the matching budgets' periods at `moment`, gone or not."""
    lines: dict[str, Line] = {}
    dropped: list[Dropped] = []
    for unit, amount in said.items():
        if not amount:
            continue
        for place in wallet.places(unit, labels, moment):
            if place.meter is None and at >= wallet.drop_at(place.period.end):
                dropped.append(Dropped(place.budget, place.period.name, amount, place.each))
            else:
                lines[place.budget] = _line(place, amount)
    return lines, dropped


def _line(place: Place, charged: int) -> Line:
    period: periods.Period = place.period
    return Line(period.name, period.start, period.end, place.limit, place.room - charged, place.each)
