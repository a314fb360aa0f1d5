"""What an audit found, as one document: whether the record is right, and what happened in the day.

Amounts are exact decimal strings, moments RFC 3339 in UTC, sequences those of the stream. Everything that was not
looked at stands in `unchecked`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from engine.core.amounts import format_amount
from engine.core.messages import Amounts
from engine.stream_clock import written
from projector.audit.deciding import Difference, Totals
from projector.audit.facts import Facts
from projector.audit.spenders import LABELS, Spender
from projector.audit.sums import Sum, Wrong
from projector.replay import Replay

BUDGETS_MAX = 2_000  # periods of budgets in one report
DIFFERENCES_MAX = 20


class TotalsDiffer(msgspec.Struct, frozen=True):
    """One budget in one period that the two paths add up to differently: settled, held, extra."""

    budget: str
    period: str
    by_the_rules: tuple[int, int, int]
    by_adding_up: tuple[int, int, int]


class Verdict(msgspec.Struct, frozen=True):
    """What the first path found. `redecided`: whether every ask was decided again."""

    redecided: bool
    difference: Difference | None = None
    differences: int = 0
    asks: int = 0
    totals: list[tuple[str, str, int, int, int]] = []
    impossible: str = ""

    def by_key(self) -> Totals:
        return {(budget, period): (settled, held, extra) for budget, period, settled, held, extra in self.totals}


class Compared(msgspec.Struct, frozen=True):
    """How many receipts and seals that were kept elsewhere the record bears out."""

    receipts: int = 0
    seals: int = 0


class Report(msgspec.Struct, frozen=True):
    """`first_wrong`: the first sequence at which anything is off, None if all is right. `export`: what was written."""

    day: str
    zone: str
    start: str
    end: str
    over: bool
    wallet: str
    right: bool
    first_wrong: int | None
    difference: Difference | None
    differences: int
    wrong: list[Wrong]
    wrongs: int
    totals_differ: list[TotalsDiffer]
    impossible: str
    read: dict[str, Any]
    messages: int
    asks: int
    outcomes: dict[str, int]
    budgets: list[dict[str, Any]]
    budgets_more: int
    spent: dict[str, dict[str, Any]]
    flags: dict[str, Any]
    after: dict[str, Any]
    operators: list[dict[str, Any]]
    operators_more: int
    open: dict[str, Any]
    seals: list[Any]
    checked: list[str]
    unchecked: list[str]
    export: dict[str, Any] | None = None

    @property
    def exit_code(self) -> int:
        return 0 if self.right else 1


def report_of(
    facts: Facts, reading: Replay, verdict: Verdict, *, wallet: str, compared: Compared, unchecked: Iterable[str]
) -> Report:
    """Put together what both paths found."""
    sums = facts.sums
    differ = _totals_differ(verdict, sums.totals) if verdict.redecided else []
    wrong_at = [wrong.seq for wrong in sums.wrong[:1]]
    if verdict.difference is not None:
        wrong_at.append(verdict.difference.seq)
    right = not (differ or sums.wrongs or verdict.differences or verdict.impossible)
    inside = sorted(
        (one for one in sums.totals.values() if one.start < facts.day.end and one.end > facts.day.start),
        key=lambda one: (one.start, one.budget),
    )
    writes = Writing(sums.scales)
    return Report(
        day=str(facts.day),
        zone=facts.day.zone,
        start=written(facts.day.start),
        end=written(facts.day.end),
        over=reading.at >= facts.day.end,
        wallet=wallet,
        right=right,
        first_wrong=min(wrong_at, default=None),
        difference=verdict.difference,
        differences=verdict.differences,
        wrong=sums.wrong,
        wrongs=sums.wrongs,
        totals_differ=differ[:DIFFERENCES_MAX],
        impossible=verdict.impossible,
        read={
            "messages": reading.messages,
            "entries": reading.entries,
            "asks": reading.asks,
            "last": reading.last,
            "upto": reading.upto,
            "told": reading.told,
            "chain": reading.chain.hex(),
            "as_of": written(reading.at),
            "untold": reading.untold,
            "lost": [list(gap) for gap in reading.gaps],
            "receipts": compared.receipts,
            "seals": compared.seals,
        },
        messages=facts.messages,
        asks=facts.asks,
        outcomes=dict(sorted(facts.outcomes.items())),
        budgets=[writes.budget(one) for one in inside[:BUDGETS_MAX]],
        budgets_more=max(0, len(inside) - BUDGETS_MAX),
        spent=writes.spent(facts),
        flags={name: msgspec.to_builtins(noted) for name, noted in sorted(facts.flags.items())},
        after={name: msgspec.to_builtins(noted) for name, noted in sorted(facts.after.items())},
        operators=[{**msgspec.to_builtins(act), "at": written(act.at)} for act in facts.acts],
        operators_more=facts.acts_more,
        open={
            "count": facts.open_count,
            "first": [{"id": one.id, "seq": one.seq, "held": writes.amounts(one.held)} for one in facts.open],
        },
        seals=[writes.seal(seq, seal, sums.units) for seq, seal in facts.seals],
        checked=_checked(verdict, reading, compared),
        unchecked=[*unchecked, *_unchecked(facts, verdict, reading)],
    )


def _totals_differ(verdict: Verdict, totals: dict[tuple[str, str], Sum]) -> list[TotalsDiffer]:
    ours = verdict.by_key()
    theirs = {key: (one.settled, one.held, one.extra) for key, one in totals.items()}
    nothing = (0, 0, 0)
    return [
        TotalsDiffer(*key, ours.get(key, nothing), theirs.get(key, nothing))
        for key in sorted({*ours, *theirs})
        if ours.get(key, nothing) != theirs.get(key, nothing)
    ]


def _checked(verdict: Verdict, reading: Replay, compared: Compared) -> list[str]:
    said = [
        f"No sequence is missing up to {reading.last:,}; the tolds cover {reading.entries:,} ask messages in order.",
        f"The chain of every told up to {reading.told:,} follows from the bytes before it, from the first message on.",
        "What each outcome says is left is what all before it add up to, and no permission exceeds its limit.",
    ]
    if verdict.redecided:
        said.insert(2, f"All {verdict.asks:,} asks were decided again by the rules and the plan of their moment.")
        said.append("The wallet's totals and those added up are the same for every budget and period.")
    if compared.seals:
        said.append(f"The seals of {compared.seals:,} days are those that a witness has seen.")
    return said


def _unchecked(facts: Facts, verdict: Verdict, reading: Replay) -> list[str]:
    said = []
    if not verdict.redecided:
        said.append("No ask was decided again: that another outcome would have been right is not ruled out.")
        said.append("The totals were added up once, and not compared with a wallet's.")
    if reading.untold:
        said.append(f"{reading.untold:,} ask messages at the end have no told yet; nothing of them is counted.")
    if reading.gaps:
        lost = ", ".join(f"{first:,} to {last:,}" for first, last in reading.gaps)
        said.append(f"What was lost with an operator's word: sequences {lost}.")
    said += [
        f"There are more values of {label} than are told apart: its list may miss some."
        for label in facts.spenders.untold_apart
    ]
    said.append("Whether callers reported what their provider billed, and whether labels are true, no record shows.")
    said.append(
        "A record made anew from its first byte passes, unless a receipt, seal or witness that was kept elsewhere is "
        "held against it."
    )
    return said


class Writing:
    """Amounts as people write them."""

    def __init__(self, scales: dict[str, int]) -> None:
        self._scales = scales

    def amount(self, unit: str, amount: int) -> str:
        return format_amount(amount, scale=self._scales.get(unit, 0))

    def amounts(self, amounts: Amounts) -> dict[str, str]:
        return {unit: self.amount(unit, amount) for unit, amount in amounts.items()}

    def seal(self, seq: int, seal: Any, units: dict[str, str]) -> dict[str, Any]:
        plain: dict[str, Any] = msgspec.to_builtins(seal)
        budgets = {
            budget: {
                name: self.amount(units[budget], figure) if isinstance(figure, int) else figure
                for name, figure in one.items()
            }
            for budget, one in plain.get("budgets", {}).items()
        }
        return {**plain, "seq": seq, "end": written(seal.end), "budgets": budgets}

    def budget(self, one: Sum) -> dict[str, Any]:
        figures = {
            "limit": one.limit, "settled": one.settled, "held": one.held, "extra": one.extra, "used": one.used,
            "peak": one.peak, "after": one.after,
        }  # fmt: skip
        return {
            "budget": one.budget,
            "period": one.period,
            "unit": one.unit,
            "start": written(one.start),
            "end": written(min(one.end, _FAR)),
            **{name: self.amount(one.unit, figure) for name, figure in figures.items()},
            "after_events": one.after_events,
            "first_exhausted_at": written(one.first_exhausted_at) if one.first_exhausted_at is not None else None,
            "refused": one.refused,
            "holds": one.holds,
            "settles": one.settles,
            "overruns": one.overruns,
            "strays": one.strays,
            "lapsed": one.lapsed,
            "each": one.each,
            "meters": one.meters,
            "fullest": {"value": one.fullest, "used": self.amount(one.unit, one.fullest_used)} if one.each else None,
        }

    def spent(self, facts: Facts) -> dict[str, dict[str, Any]]:
        return {label: {unit: self._top(facts, label, unit) for unit in facts.spenders.units()} for label in LABELS}

    def _top(self, facts: Facts, label: str, unit: str) -> dict[str, Any]:
        top, others, other = facts.spenders.top(label, unit)
        return {
            "top": [self._spender(one, unit) for one in top],
            "others": others,
            "other": {"calls": other.calls, "spent": self.amount(unit, other.spent.get(unit, 0))},
        }

    def _spender(self, one: Spender, unit: str) -> dict[str, Any]:
        return {"value": one.value, "calls": one.calls, "spent": self.amount(unit, one.spent.get(unit, 0))}


_FAR = 253_402_300_799 * 10**9  # the last second that has a date of four digits
