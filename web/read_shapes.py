"""What the answers of all other routes look like: the status, days, calls, keys, alerts, health. As in `web.shapes`.

The status at a glance, what a period came to, what became of a call; whoever makes them stands beside each heading.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from engine.core.messages import HoldState
from engine.core.plan import Per
from web.keys import Role
from web.shapes import AmountsText, AmountText, BudgetPercent, Chain, MomentText, Percent, Receipt, Seq, Shape

SecondText: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$",
        description="RFC 3339, UTC, to the second.",
        extra_json_schema={"format": "date-time"},
    ),
]
Count: TypeAlias = Annotated[int, Meta(ge=0)]


# --- web.status -------------------------------------------------------------------------------------------------------


class FreezeShown(Shape):
    """A freeze in force; `until`: null until it is lifted."""

    scope: str
    reason: str
    since: MomentText
    until: MomentText | None


class ObservedFigure(Shape):
    """The provider's own figure, and when it said so. `figure`: where amounts are shown."""

    source: str
    as_of: MomentText
    figure: AmountText | UnsetType = UNSET


class ReadingShown(Shape):
    """How the reader of that figure fares. `stale`: since `read_at` the wallet counts its own calls alone. `why`: to
    operators, why the newest try gave none."""

    source: str
    read_at: MomentText | None
    every_s: Count
    stale: bool
    unreadable: bool
    why: str | UnsetType = UNSET


class BudgetShown(Shape):
    """One shared budget now. Amounts, all or none of them: to operators, and where the plan says `amounts`."""

    name: str
    unit: str
    per: Per
    zone: str
    period: str
    used_pct: Percent
    held_pct: Percent
    settled_pct: Percent
    extra_pct: Percent
    starts_at: MomentText
    resets_at: MomentText | None
    first_exhausted_at: MomentText | None
    observed: ObservedFigure | None
    reading: ReadingShown | None
    limit: AmountText | UnsetType = UNSET
    settled: AmountText | UnsetType = UNSET
    held: AmountText | UnsetType = UNSET
    extra: AmountText | UnsetType = UNSET
    used: AmountText | UnsetType = UNSET
    remaining: AmountText | UnsetType = UNSET
    note: str | UnsetType = UNSET
    link: str | UnsetType = UNSET


class StatusAnswer(Shape):
    """The shared budgets as of one sequence. `live`: no older than a few seconds. `open_earlier`: calls of an earlier
    period that are still being settled, and count to that."""

    wallet: str
    as_of: MomentText
    seq: Seq
    live: bool
    frozen: FreezeShown | None
    budgets: list[BudgetShown]
    open_earlier: Count


class BarredShown(Shape):
    """A label's value that takes no new holds; `guard`: which one went off, "" if it was revoked."""

    label: str
    value: str
    reason: str
    guard: str
    until: MomentText | None


class AlertAtAGlance(Shape):
    """`delivered`: every target has taken it."""

    id: str
    text: str
    at: MomentText
    delivered: bool


class OperatorStatus(StatusAnswer):
    """To a key with the role audit or admin: also what strangers do not see."""

    plan: str
    open_holds: Count
    freezes: list[FreezeShown]
    barred: list[BarredShown]
    barred_more: Count
    alerts: list[AlertAtAGlance]


# --- web.estimate -----------------------------------------------------------------------------------------------------


class EstimateShares(Shape):
    """Without a key: whether it would fit, and shares. `cost_pct`: what it could take of each budget's limit."""

    fits: bool
    cost_pct: BudgetPercent
    used_pct_after: BudgetPercent


class EstimateAnswer(EstimateShares):
    """`affordable_max_tokens`: the largest cap with which it would fit, 0 if not even the input does, null without a
    cap. `max_tokens`: the cap that was reckoned with. `price_book`: the digest of the prices."""

    amounts: AmountsText
    affordable_max_tokens: int | None
    provider: str
    model: str
    input_tokens_max: Count
    max_tokens: Count
    price_book: str


# --- web.spending -----------------------------------------------------------------------------------------------------


class LifeAnswer(Shape):
    """What became of one call. `seq`: the message in which it was held or came as a stray."""

    id: str
    state: HoldState
    at: MomentText
    expires_at: MomentText | None
    amounts: AmountsText
    progress: AmountsText
    charged: AmountsText
    periods: dict[str, str]
    seq: Seq


# --- web.operating ----------------------------------------------------------------------------------------------------


class PlanAnswer(Shape):
    """The plan in force as `purse.toml` would say it, every default said; its digest is what the next one replaces."""

    plan: dict[str, Any]
    digest: str


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


# --- web.keeping ------------------------------------------------------------------------------------------------------


class KeyShown(Shape):
    """All that is kept of a key but its hash."""

    id: str
    role: Role
    state: Literal["active", "revoked", "expired"]
    user: str
    cohort: str
    labels: dict[str, str]
    names: list[str]
    namespace: str
    replaces: str
    note: str
    created_at: MomentText
    expires_at: MomentText | None
    revoked_at: MomentText | None
    made_by: str
    revoked_by: str
    reason: str


class KeyMade(KeyShown):
    """`key` is the key itself: here, and never again."""

    key: str


class KeyRevoked(KeyShown):
    """The key as it is now, and what was told of the revocation."""

    outcome: Literal["done", "again"]
    receipt: Receipt


class KeysAnswer(Shape):
    """All keys, the newest first."""

    keys: list[KeyShown]


# --- web.alerts -------------------------------------------------------------------------------------------------------


class AlertAnswer(Shape):
    """One alert. `figures` are amounts of `unit`; `deliveries`: what became of it at each target."""

    id: str
    rule: str
    budget: str
    period: str
    threshold: str
    unit: str
    figures: dict[str, str]
    text: str
    at: MomentText
    seq: Seq
    deliveries: dict[str, Literal["new", "sending", "waiting", "sent", "missed"]]


class AlertsAnswer(Shape):
    """The newest alerts, the newest first."""

    alerts: list[AlertAnswer]


class TargetTried(Shape):
    """What a target did with a test alert; `why`: how it failed."""

    target: str
    delivered: bool
    why: str | UnsetType = UNSET


class AlertTestAnswer(Shape):
    """What each target answered."""

    targets: list[TargetTried]


# --- web.health, web.openapi ------------------------------------------------------------------------------------------


class LiveAnswer(Shape):
    """This process answers."""

    live: Literal[True]


class ChecksWell(Shape):
    """All is well."""

    engine: Literal[True]
    projector: Literal[True]
    plan: Literal[True]
    web: Literal[True]


class ReadyAnswer(Shape):
    """A hold would be decided. With `?verbose` also what was looked at, and how many settlements wait on disk here."""

    ready: Literal[True]
    checks: ChecksWell | UnsetType = UNSET
    spool_depth: Count | UnsetType = UNSET


class DocumentAnswer(msgspec.Struct):
    """An OpenAPI document."""

    openapi: str
    info: dict[str, Any]
    paths: dict[str, Any]
    components: dict[str, Any]
