"""What a what-if found, as one document: both worlds side by side, and everything that is assumed.

Amounts are exact decimal strings, moments RFC 3339 in UTC, sequences those of the record.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import msgspec

from engine.stream_clock import written
from projector.audit.facts import Facts
from projector.audit.report import BUDGETS_MAX, Writing
from projector.audit.spenders import LABELS
from projector.replay import Replay
from projector.whatif.change import Change
from projector.whatif.differences import Decided, Difference, Tally
from projector.whatif.other_world import Counted
from projector.whatif.worlds import Worlds


class WhatIf(msgspec.Struct, frozen=True):
    """`same`: whether nothing of the day would have been otherwise, but limits. `rules`: what was assumed, in words."""

    day: str
    zone: str
    start: str
    end: str
    over: bool
    wallet: str
    as_of: str
    change: dict[str, Any]
    same: bool
    holds: dict[str, Any]
    differ: dict[str, Any]
    headroom: dict[str, Any]
    budgets: list[dict[str, Any]]
    budgets_more: int
    by: dict[str, Any]
    first: list[dict[str, Any]]
    more: int
    spent: dict[str, Any]
    assumed: dict[str, Any]
    rules: list[str]


def report_of(worlds: Worlds, reading: Replay, *, wallet: str) -> WhatIf:
    """Put both worlds side by side. Where the record ends before the day begins there is no other one."""
    was = worlds.facts
    would_be = worlds.other.facts if worlds.other is not None else was
    counted = worlds.other.counted if worlds.other is not None else Counted()
    writes, found = Writing({**was.sums.scales, **would_be.sums.scales}), worlds.differences
    budgets = list(_budgets(was, would_be, writes))
    return WhatIf(
        day=str(worlds.day),
        zone=worlds.day.zone,
        start=written(worlds.day.start),
        end=written(worlds.day.end),
        over=reading.at >= worlds.day.end,
        wallet=wallet,
        as_of=written(reading.at),
        change=_change(worlds),
        same=not found.count and all(_unlimited(one["was"]) == _unlimited(one["would_be"]) for one in budgets),
        holds={"was": _holds(found.was), "would_be": _holds(found.would_be)},
        differ={"holds": dict(found.holds), "renewals": dict(found.renewals)},
        headroom=_headroom(found.was, found.would_be, writes),
        budgets=budgets[:BUDGETS_MAX],
        budgets_more=max(0, len(budgets) - BUDGETS_MAX),
        by={label: _by(worlds, label) for label in LABELS},
        first=[_difference(one, writes) for one in found.first],
        more=found.count - len(found.first),
        spent={"was": writes.spent(was), "would_be": writes.spent(would_be)},
        assumed={
            "calls": counted.assumed,
            "amounts": writes.amounts(counted.assumed_amounts),
            "capped": counted.capped,
            "figures_moved": counted.figures_moved,
            "skipped": counted.skipped,
        },
        rules=list(_rules(worlds.change, counted)),
    )


def _change(worlds: Worlds) -> dict[str, Any]:
    change = worlds.change
    return {
        "plan": worlds.other.changes if worlds.other is not None else [],
        "hold_factor": _factor(change.hold_factor),
        "prices": {model: _factor(by) for model, by in change.prices.items()},
        "assume": change.assume,
    }


def _factor(factor: Fraction) -> str:
    """Factors are written with so many digits, so this is exact."""
    digits = f"{factor.numerator * 10**9 // factor.denominator:010d}"
    return f"{digits[:-9]}.{digits[-9:]}".rstrip("0").rstrip(".")


def _holds(tally: Tally) -> dict[str, Any]:
    return {"held": tally.held, "refused": dict(sorted(tally.refused.items()))}


def _headroom(was: Tally, would_be: Tally, writes: Writing) -> dict[str, Any]:
    """What was held for calls and came back unspent, by unit: meanwhile nobody else could have it."""
    return {
        unit: {
            name: {
                "granted": writes.amount(unit, tally.granted.get(unit, 0)),
                "returned": writes.amount(unit, tally.returned.get(unit, 0)),
            }
            for name, tally in (("was", was), ("would_be", would_be))
        }
        for unit in sorted({*was.granted, *would_be.granted})
    }


def _budgets(was: Facts, would_be: Facts, writes: Writing) -> Iterator[dict[str, Any]]:
    day, ours, theirs = was.day, was.sums.totals, would_be.sums.totals
    inside = {
        key: (one.start, one.budget)
        for totals in (ours, theirs)
        for key, one in totals.items()
        if one.start < day.end and one.end > day.start
    }
    for key in sorted(inside, key=lambda key: inside[key]):
        both = {
            name: writes.budget(totals[key]) if key in totals else None
            for name, totals in (("was", ours), ("would_be", theirs))
        }
        one = both["was"] or both["would_be"]
        assert one is not None
        yield {"budget": one["budget"], "period": one["period"], "unit": one["unit"], **both}


def _unlimited(budget: dict[str, Any] | None) -> dict[str, Any]:
    return {name: figure for name, figure in (budget or {}).items() if name != "limit"}


def _by(worlds: Worlds, label: str) -> dict[str, Any]:
    top, others = worlds.differences.top(label)
    return {"top": [{"value": value, **counts} for value, counts in top], "others": others}


def _difference(one: Difference, writes: Writing) -> dict[str, Any]:
    return {
        "seq": one.seq,
        "at": written(one.at),
        "ask": one.ask,
        "id": one.id,
        "what": one.what,
        "was": _decided(one.was, writes),
        "would_be": _decided(one.would_be, writes),
        "labels": one.labels,
    }


def _decided(one: Decided, writes: Writing) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(one)
    plain.pop("unit", None)
    if one.remaining is not None:
        plain["remaining"] = writes.amount(one.unit, one.remaining)
    if one.amounts:
        plain["amounts"] = writes.amounts(one.amounts)
    return plain


def _rules(change: Change, counted: Counted) -> Iterator[str]:
    """What the figures of the other world rest on, beside the record."""
    yield "Callers ask for the same at the same moments: nobody who is refused tries otherwise, nobody asks for more."
    if counted.assumed:
        what = {
            "mean": "the mean part of the grant that calls of their model had used until then",
            "grant": "all of their grant",
        }[change.assume]
        yield f"{counted.assumed:,} calls were never made, so their cost is assumed: {what}."
    if counted.capped:
        yield f"{counted.capped:,} calls cost more than the smaller grant they would have had: they cost that grant."
    if counted.figures_moved:
        yield (
            f"{counted.figures_moved:,} figures of a provider are moved by what our own calls differ in: others on the "
            "account spend what they did."
        )
    if counted.skipped.get("plan"):
        yield f"{counted.skipped['plan']:,} plans of the record are left out: the other plan stays in force."
    left = sum(count for kind, count in counted.skipped.items() if kind != "plan")
    if left:
        yield f"{left:,} settlements and renewals are left out: their calls would not have been made, or had ended."
    if change.prices:
        yield "A price is one factor for all that a model bills: the record has amounts, and no tokens."
