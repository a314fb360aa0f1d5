"""Deciding settlements. They are never refused: the money is gone, and the question is only where it is written.

Reads the wallet, changes nothing. A settle's verdict follows from the hold's state and the amounts, hardly ever from
its own id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.core import checks, periods
from engine.core.closed import ClosedRecord
from engine.core.messages import (
    Again,
    Amounts,
    AnyOutcome,
    Conflict,
    Dropped,
    Flag,
    Forgotten,
    HoldState,
    Line,
    Settle,
    Settled,
    Stray,
)
from engine.core.wallet import HoldRecord, Place, Wallet


def decide_settle(wallet: Wallet, ask: Settle, at: int) -> AnyOutcome:
    record = wallet.open.get(ask.hold)
    wrong = checks.settle(ask, wallet.scales, known=record is not None)
    if wrong is not None:
        return checks.refuse(ask.hold, wrong)
    if ask.id and ask.id != f"{ask.hold}:s":
        bound = wallet.settle_ids.get(ask.id, at)
        if bound is not None and bound.hold != ask.hold:
            return Conflict(ask.hold, "id")

    if record is not None:
        return _settle_open(wallet, record, ask, at)
    record = wallet.provisional.get(ask.hold)
    if record is not None:
        return _settle_provisional(wallet, record, ask)
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
        return _settled(wallet, record, ask, charged, state="settled", late=late)
    if not ask.final:
        charged = _raised(record, ask.amounts)
        if all(record.progress.get(unit, 0) == amount for unit, amount in charged.items()):
            return Again(ask.hold, record.changed, "open")
        return _settled(wallet, record, ask, charged, state="open", late=late)
    said, charged = ask.amounts, record.takes().copy()
    for unit, amount in said.items():
        if amount or unit in charged:
            charged[unit] = amount
    state: HoldState = "estimated" if ask.estimated else "settled"
    return _settled(wallet, record, ask, charged, state=state, late=late)


def _settle_provisional(wallet: Wallet, record: HoldRecord, ask: Settle) -> AnyOutcome:
    lapsed = record.state == "lapsed"
    if ask.release and _overtaken(record, ask):
        return Again(ask.hold, record.changed, record.state)
    if ask.release:
        charged = {unit: record.progress.get(unit, 0) for unit in record.units()}
        return _settled(wallet, record, ask, charged, state="corrected", late=lapsed)
    if ask.final and not ask.estimated:
        charged = {unit: ask.amounts.get(unit, record.charged.get(unit, 0)) for unit in record.units()}
        charged |= _new_units(record, ask.amounts)
        return _settled(wallet, record, ask, charged, state="corrected", late=lapsed)
    if not ask.final and not lapsed and not record.stray:
        return Again(ask.hold, record.changed, record.state)
    charged = _raised(record, ask.amounts)
    costs_more = any(record.charged.get(unit, 0) < amount for unit, amount in charged.items())
    reports_more = not ask.final and any(record.progress.get(u, 0) < amount for u, amount in ask.amounts.items())
    if not costs_more and not reports_more:
        return Again(ask.hold, record.changed, record.state)
    return _settled(wallet, record, ask, charged, state=record.state, late=lapsed)


def _settle_closed(closed: ClosedRecord, ask: Settle) -> AnyOutcome:
    if ask.release:
        same = ask.by is not None or closed.at_progress
    elif not ask.final:
        same = True  # a report that its final has overtaken
    else:
        same = all(closed.charged.get(unit, 0) == amount for unit, amount in ask.amounts.items())
    if same:
        return Again(ask.hold, closed.changed, closed.state)
    return Conflict(ask.hold, "amounts", closed.charged)


def _settle_unknown(wallet: Wallet, ask: Settle, at: int) -> AnyOutcome:
    if ask.held_at is not None and ask.held_at <= wallet.horizon:
        return Forgotten(ask.hold)
    moment = ask.held_at if ask.held_at is not None and ask.held_at <= at else at
    exact = ask.release or (ask.final and not ask.estimated)
    charged = {unit: amount for unit, amount in ask.amounts.items() if amount}
    lines, dropped = _new_lines(wallet, charged, ask.labels, moment=max(moment, 0))
    state: HoldState = "stray" if exact else "estimated"
    return Stray(ask.hold, state, charged, moment, lines, dropped)


def _overtaken(record: HoldRecord, ask: Settle) -> bool:
    """A caller gave up on an attempt, but another with a later deadline has asked since."""
    return ask.by is not None and ask.by < record.by


def _raised(record: HoldRecord, said: Amounts) -> Amounts:
    """Totals so far, per unit only upwards."""
    costs = record.costs()
    known = {unit: max(costs.get(unit, 0), said.get(unit, 0)) for unit in record.units()}
    return known | _new_units(record, said)


def _new_units(record: HoldRecord, said: Amounts) -> Amounts:
    """What is said of units the hold lacks; zero of them is nothing."""
    known = record.units()
    return {unit: amount for unit, amount in said.items() if amount and unit not in known}


def _settled(
    wallet: Wallet, record: HoldRecord, ask: Settle, charged: Amounts, *, state: HoldState, late: bool
) -> Settled:
    """The outcome that makes the hold cost `charged`, with everything it moves."""
    takes, costs, units = record.takes(), record.costs(), record.units()
    closing = ask.final and state != "lapsed"
    changes: dict[str, tuple[int, int]] = {}
    released: Amounts = {}
    for unit in units:
        taken, spent, cost = takes.get(unit, 0), costs.get(unit, 0), charged[unit]
        held = max(0, record.granted.get(unit, 0) - cost) if state == "open" else 0
        changes[unit] = (cost - spent, held - (taken - spent))
        if closing and taken > cost:
            released[unit] = taken - cost
    lines: dict[str, Line] = {}
    dropped: list[Dropped] = []
    new: Amounts = {}
    if len(charged) > len(changes):
        new = {unit: amount for unit, amount in charged.items() if unit not in changes}
        lines, dropped = _new_lines(wallet, new, record.labels, moment=record.at)
    if record.gone:
        dropped = _more_dropped(record, changes) + dropped
    flags = _flags(record, ask, units, charged, new, state, late)
    return Settled(ask.hold, state, charged, released, wallet.left(record, changes), lines, dropped, flags)


def _more_dropped(record: HoldRecord, changes: Mapping[str, tuple[int, int]]) -> list[Dropped]:
    """What changes in periods the hold is bound to whose meters are gone."""
    return [
        Dropped(gone.budget, gone.period, changes[gone.unit][0], gone.each)
        for gone in record.gone
        if changes[gone.unit][0]
    ]


def _flags(
    record: HoldRecord,
    ask: Settle,
    units: Iterable[str],
    charged: Amounts,
    new: Amounts,
    state: HoldState,
    late: bool,
) -> list[Flag]:
    """In the order of the glossary. A stray was granted nothing, so it cannot overrun."""
    flags: list[Flag] = []
    if late:
        flags.append("late")
    said, granted = ask.amounts, record.granted
    if granted:
        for unit in said:
            if unit not in new and charged.get(unit, 0) > granted.get(unit, 0):
                flags.append("overrun")
                break
    if new:
        flags.append("unheld")
    closing = ask.final and not ask.release and (record.state == "open" or not ask.estimated)
    if closing:
        for unit in units:
            if unit not in said:
                flags.append("unreported")
                break
    if state == "corrected":
        flags.append("corrected")
    if ask.estimated and ask.final:
        flags.append("estimated")
    return flags


def _new_lines(
    wallet: Wallet, said: Amounts, labels: Mapping[str, str], *, moment: int
) -> tuple[dict[str, Line], list[Dropped]]:
    """Where amounts of units nobody held are charged: the matching budgets' periods at `moment`, gone or not."""
    lines: dict[str, Line] = {}
    dropped: list[Dropped] = []
    for unit, amount in said.items():
        for place in wallet.places(unit, labels, moment):
            if wallet.gone(place):
                dropped.append(Dropped(place.budget, place.period.name, amount, place.each))
            else:
                lines[place.budget] = _line(place, amount)
    return lines, dropped


def _line(place: Place, charged: int) -> Line:
    period: periods.Period = place.period
    return Line(period.name, period.start, period.end, place.limit, place.room - charged, place.each)
