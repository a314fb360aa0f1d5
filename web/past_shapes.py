"""What the answers about the past look like: days, decisions, the wallet at a moment, a call. As in `web.shapes`."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from engine.core.messages import HoldState
from web.shapes import AmountsText, AmountText, Chain, Count, MomentText, Percent, Receipt, Seq, Shape

SecondText: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$",
        description="RFC 3339, UTC, to the second.",
        extra_json_schema={"format": "date-time"},
    ),
]


# --- web.days ---------------------------------------------------------------------------------------------------------


class SealShown(Shape):
    """The seal of a day: where it stands, and when it was told."""

    day: str
    seq: Seq
    at: MomentText


class AfterSeal(Shape):
    """By how much these changed since the seal."""

    settled: AmountText
    extra: AmountText


class PeriodTotals(Shape):
    """What one shared budget came to in one period, up to sequence `seq`. Counts are of outcomes that touched it.

    `wasted`: granted to holds that have ended, and not spent. `unreconciled`: by how much exact settlements that came
    too late differ from what is charged.
    """

    budget: str
    unit: str
    period: str
    starts_at: MomentText
    ends_at: MomentText | None
    limit: AmountText
    settled: AmountText
    held: AmountText
    extra: AmountText
    used: AmountText
    remaining: AmountText
    peak: AmountText
    wasted: AmountText
    adjusted: AmountText
    unreconciled: AmountText
    used_pct: Percent
    peak_at: MomentText | None
    first_exhausted_at: MomentText | None
    holds: Count
    open_holds: int
    settles: Count
    refused: Annotated[dict[str, int], Meta(description="Why -> how many.")]
    overruns: Count
    strays: Count
    lapsed: Count
    late: Count
    unheld: Count
    unreported: Count
    corrected: Count
    estimated: Count
    conflicts: Count
    unreconciled_holds: Count
    sealed: SealShown | None
    after_seal: AfterSeal
    seq: Seq


class DaysAnswer(Shape):
    """Every period of each shared budget, the newest first."""

    days: list[PeriodTotals]


class SpentShown(Shape):
    """One value of a label; null: calls without that label."""

    value: str | None
    settled: AmountText
    holds: Count
    refused: Count


class OtherShown(Shape):
    """All other values together: so many, and `uncounted` where there are still more."""

    settled: AmountText
    holds: Count
    refused: Count
    values: Count
    uncounted: bool


class BreakdownShown(Shape):
    """The values with most settled, and the rest: together they are the total."""

    top: list[SpentShown]
    other: OtherShown


class PointShown(Shape):
    """One step of a series from `at` on: what was settled in it, and what was held as it ended."""

    at: MomentText
    settled: AmountText
    held: AmountText
    holds: Count
    refused: Count


class SeriesShown(Shape):
    """How it went. Steps in which nothing happened have no point; `before`: the steps that were too many to keep."""

    step_s: Count
    before: PointShown | None
    points: list[PointShown]


class DayBudget(PeriodTotals):
    """A budget in a period of that name, where it is known with who spent it (by label) and its course."""

    by: dict[str, BreakdownShown] | UnsetType = UNSET
    series: SeriesShown | UnsetType | None = UNSET
    more_labels: bool | UnsetType = UNSET


class DayDecided(Shape):
    """What was decided on a day of the wallet and is of no one budget."""

    refused: dict[str, int]
    conflicts: Count
    invalid: Count
    unknown: Count
    forgotten: Count


class DayAnswer(Shape):
    """A day with all its budgets. `decided`: where it is a day of the wallet on which something was decided."""

    day: str
    sealed: SealShown | None
    budgets: list[DayBudget]
    decided: DayDecided | UnsetType = UNSET


class DecisionLine(Shape):
    """One outcome, or one lapse. `seq`: of its ask message; `told`: of the told that has it.

    `amounts`: granted, charged, shown or adjusted; of a refused hold what it asked for. What is empty is left out.
    """

    seq: Seq
    told: Seq
    at: MomentText
    kind: Annotated[str, Meta(description='The ask, "lapse", or "" where the message could not be read.')]
    outcome: str
    id: str
    amounts: AmountsText
    why: str | UnsetType = UNSET
    budget: str | UnsetType = UNSET
    state: str | UnsetType = UNSET
    flags: list[str] | UnsetType = UNSET


# --- web.past ---------------------------------------------------------------------------------------------------------


class MeterThen(Shape):
    """One budget, or one value's meter of it (`each`), as it stood."""

    budget: str
    each: str | None
    period: str
    unit: str
    limit: AmountText
    settled: AmountText
    held: AmountText
    extra: AmountText
    used: AmountText
    remaining: AmountText


class FreezeThen(Shape):
    """A freeze that was in force."""

    scope: str
    reason: str
    since: SecondText
    until: SecondText | None


class MomentAnswer(Shape):
    """The wallet after every message up to `at`. `start`: the told of the snapshot it was read from, 0 for none.

    `more`: meters beyond those shown. `due`: open holds that were past their expiry. `revoked`: `label=value`.
    """

    at: SecondText
    wallet: str
    upto: Seq
    told: Seq
    chain: Chain | Literal[""]
    start: Seq
    plan: str
    budgets: list[MeterThen]
    more: Count
    open_holds: Count
    due: Count
    frozen: list[FreezeThen]
    revoked: list[str]


class AskOnRecord(msgspec.Struct):
    """An ask as it stands on the stream, amounts as decimal strings: its other members are those of the ask."""

    ask: str


class OutcomeOnRecord(msgspec.Struct):
    """An outcome as it stands on the stream, amounts as decimal strings: its other members are those of the outcome."""

    outcome: str


class EventShown(Shape):
    """One thing that happened to a call; `ask` is null where it lapsed. `at_ns`: `at` exactly, ns since 1970."""

    seq: Seq
    at: SecondText
    receipt: Receipt
    ask: AskOnRecord | None
    outcome: OutcomeOnRecord
    at_ns: int


class EventsAnswer(Shape):
    """What names a call behind sequence `after` up to `upto`; `end`: the last there was. `more`: events left out.

    `state`: null where the wallet does not remember the call.
    """

    id: str
    state: HoldState | None
    events: list[EventShown]
    more: Count
    after: Seq
    upto: Seq
    end: Seq
