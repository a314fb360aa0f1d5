"""What the answers about the present look like: status, estimate, call, keys, alerts, health. As in `web.shapes`.

Whoever makes them stands in each heading.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from engine.core.messages import HoldState
from engine.core.plan import Per
from web.keys import Role
from web.shapes import AmountsText, AmountText, BudgetPercent, Count, MomentText, Percent, Receipt, Seq, Shape

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
