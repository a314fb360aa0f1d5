"""What the answer to an ask looks like, for the document and the reference: one Struct a body of `web.answers`.

Nothing is made or checked with these while a wallet runs. The tests hold every answer they get against them, member by
member, so a member that is added, dropped or retyped in `web.answers` and not here turns them red.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from engine.core.messages import Flag, HoldState

AmountText: TypeAlias = Annotated[
    str, Meta(pattern=r"^-?[0-9]+(\.[0-9]+)?$", description="An exact amount of its unit, as a decimal string.")
]
AmountsText: TypeAlias = Annotated[dict[str, AmountText], Meta(description="Unit -> amount.")]
BudgetAmounts: TypeAlias = Annotated[dict[str, AmountText], Meta(description="Budget -> amount of the budget's unit.")]
Percent: TypeAlias = Annotated[
    float, Meta(description="Percent of the limit to a tenth, cut: 100 only where nothing is left.")
]
BudgetPercent: TypeAlias = Annotated[dict[str, Percent], Meta(description="Budget -> percent of its limit.")]
MomentText: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$",
        description="RFC 3339, UTC, cut to the millisecond.",
        extra_json_schema={"format": "date-time"},
    ),
]
Seq: TypeAlias = Annotated[int, Meta(ge=0, description="A sequence of the wallet's stream.")]
Count: TypeAlias = Annotated[int, Meta(ge=0)]
Chain: TypeAlias = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class Shape(msgspec.Struct, forbid_unknown_fields=True):
    """A body or a part of one. It has these members and no others; one with `UNSET` may be missing."""


class Receipt(Shape):
    """Proof of what was told: where the told stands on the record, and its chain."""

    seq: Seq
    chain: Chain


class DroppedCharge(Shape):
    """A charge to a period older than the memory: it counts to that period all the same. `amount`: null where the
    budget is of no plan that this process has seen."""

    budget: str
    period: str
    amount: AmountText | None


class HeldAnswer(Shape):
    """The only permission to call. `option`: which of the options was granted, `amounts`: what it may cost.

    `tier`: the least grade that was affordable, 0 also where no tiers judged it. `n`: which renewal this is.
    """

    outcome: Literal["held"]
    id: str
    option: Annotated[int, Meta(ge=0)]
    amounts: AmountsText
    at: MomentText
    expires_at: MomentText
    periods: Annotated[dict[str, str], Meta(description="Budget -> the period it counts to.")]
    tier: int
    remaining: BudgetAmounts
    receipt: Receipt
    n: Annotated[int, Meta(ge=1)] | UnsetType = UNSET


class SettledAnswer(Shape):
    """What the call has cost. `again`: it was settled so before. `charged`: all of it, `released`: what came back."""

    outcome: Literal["settled", "again"]
    id: str
    state: HoldState
    charged: AmountsText
    released: AmountsText
    remaining: BudgetAmounts
    used_pct: BudgetPercent
    flags: list[Flag]
    receipt: Receipt
    dropped: list[DroppedCharge] | UnsetType = UNSET


class StrayAnswer(Shape):
    """A settlement of a hold nobody knows: charged all the same. `state`: "estimated" while it is provisional."""

    outcome: Literal["stray"]
    id: str
    state: HoldState
    at: MomentText
    charged: AmountsText
    released: AmountsText
    remaining: BudgetAmounts
    used_pct: BudgetPercent
    flags: list[Flag]
    receipt: Receipt
    dropped: list[DroppedCharge] | UnsetType = UNSET


class ForgottenAnswer(Shape):
    """A settlement of a hold older than the memory: nothing is charged here, a backfill lists it. The rest is empty."""

    outcome: Literal["forgotten"]
    id: str
    charged: AmountsText
    released: AmountsText
    remaining: BudgetAmounts
    used_pct: BudgetPercent
    flags: list[Flag]
    receipt: Receipt


class AgainAnswer(Shape):
    """It was told before; what was told then is not kept word for word. `state`: of the hold it was about."""

    outcome: Literal["again"]
    id: str
    receipt: Receipt
    state: str | UnsetType = UNSET


class ObservedAnswer(Shape):
    """The figure counts. `raised_by`: by how much what counts as used rose, maybe 0.

    Amounts are null for a budget of no plan that this process has seen.
    """

    outcome: Literal["observed"]
    id: str
    raised_by: AmountText | None
    budget: str
    period: str
    limit: AmountText | None
    remaining: AmountText | None
    used_pct: Percent
    receipt: Receipt


class AdjustedAnswer(Shape):
    """The correction counts, and this is how the budget stands now."""

    outcome: Literal["adjusted"]
    id: str
    budget: str
    period: str
    limit: AmountText | None
    remaining: AmountText | None
    used_pct: Percent
    receipt: Receipt


class AdjustedLateAnswer(Shape):
    """The correction is of a period older than the memory: it is on record and counts to that period."""

    outcome: Literal["adjusted"]
    id: str
    budget: str
    period: str
    dropped: Literal[True]
    receipt: Receipt


class PlannedAnswer(Shape):
    """The plan is in force. `restarts`: the budgets whose meters start at zero by it."""

    outcome: Literal["planned"]
    id: str
    digest: str
    restarts: list[str]
    receipt: Receipt


class DoneAnswer(Shape):
    """It is so from here on."""

    outcome: Literal["done"]
    id: str
    receipt: Receipt
