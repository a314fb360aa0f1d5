"""The bodies people send: one Struct a route, strict, and the source of the OpenAPI schemas.

These are not the words on the stream (`engine.core.messages`): amounts are decimal strings here, moments are RFC 3339,
and what only authentication may say has no field. `web.asks` turns one into the other.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta

from engine.core import limits
from engine.core.plan import LapsePolicy
from engine.prices.cost import OUTPUT_TOKENS_MAX
from engine.prices.ids import MODEL_CHARS_MAX
from web.keys import EXPIRES_S_MAX, NAMEABLE, Role

WAIT_S_DEFAULT = 5.0
WAIT_S_MAX = 30.0
CONTENT_ITEMS_MAX = 10_000
CHOICES_MAX = 128

# `Any`: the JSON number or string is read exactly by `engine.core.amounts.parse`, which knows the unit
Amount: TypeAlias = Annotated[
    Any,
    Meta(
        description="An exact amount, best as a decimal string. A JSON number is read digit by digit.",
        extra_json_schema={"type": ["string", "number"], "examples": ["0.012345"]},
    ),
]
Amounts: TypeAlias = Annotated[
    dict[str, Amount],
    Meta(
        description="Unit -> amount.",
        extra_json_schema={"maxProperties": limits.ASK_UNITS_MAX, "examples": [{"usd": "0.01"}]},
    ),
]
Id: TypeAlias = Annotated[
    str,
    Meta(
        description="The caller's own id: the idempotency key.",
        extra_json_schema={"pattern": "^[A-Za-z0-9._:-]{1,64}$"},
    ),
]
Label: TypeAlias = Annotated[Any, Meta(extra_json_schema={"type": "string", "maxLength": limits.LABEL_VALUE_CHARS_MAX})]
Labels: TypeAlias = Annotated[dict[str, Label], Meta(extra_json_schema={"maxProperties": limits.LABELS_MAX})]
Text: TypeAlias = Annotated[str, Meta(max_length=limits.TEXT_CHARS_MAX)]
Moment: TypeAlias = Annotated[str, Meta(max_length=64, extra_json_schema={"format": "date-time"})]
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=limits.LABEL_VALUE_CHARS_MAX)]
TtlS: TypeAlias = Annotated[int, Meta(ge=limits.TTL_S_MIN, le=limits.TTL_S_MAX)]


class Request(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A body. Unknown fields are an error: a misspelt limit must not pass for no limit."""


class IdentifiedBody(Request, kw_only=True):
    """A body that may bring its id; `Idempotency-Key` stands in for it."""

    id: Id | None = None


class OptionBody(Request, kw_only=True):
    """One way to make the call, and the most it could cost. `grade`: 0 is the best answer, larger ones are cheaper."""

    amounts: Amounts
    least: Amounts = {}
    grade: Annotated[int, Meta(ge=0, le=limits.GRADE_MAX)] | None = None
    name: Annotated[str, Meta(max_length=limits.NAME_CHARS_MAX)] = ""


class HoldBody(IdentifiedBody, kw_only=True):
    """May I spend at most this? Either `amounts` or `options`, best first."""

    amounts: Amounts | None = None
    options: Annotated[list[OptionBody], Meta(min_length=1, max_length=limits.OPTIONS_MAX)] | None = None
    labels: Labels = {}
    ttl_s: TtlS | None = None
    on_lapse: LapsePolicy | None = None
    wait_s: Annotated[float, Meta(ge=0.01, le=WAIT_S_MAX)] = WAIT_S_DEFAULT


class SettleBody(IdentifiedBody, kw_only=True):
    """The call cost this. Zero must be said. `id` is the settle's own, if it needs one."""

    amounts: Amounts
    final: bool = True
    estimated: bool = False
    held_at: Moment | None = None
    labels: Labels = {}


class ReleaseBody(Request, kw_only=True):
    """The call ended at what was reported so far, zero if nothing was."""


class RenewBody(Request, kw_only=True):
    """Hold on longer, maybe with a larger total. `n` counts 1, 2, ..."""

    n: Annotated[int, Meta(ge=1, le=2**31)]
    ttl_s: TtlS | None = None
    amounts: Amounts = {}


class ObservationBody(IdentifiedBody, kw_only=True):
    """The provider's own figure. `period` defaults to the current one, `as_of` to now, `source` to the budget's."""

    budget: str
    figure: Amount
    period: str | None = None
    as_of: Moment | None = None
    source: str | None = None
    each: str | None = None


class AdjustmentBody(IdentifiedBody, kw_only=True):
    """A correction of what was settled, up or down. Its id is required: done twice it would count twice."""

    budget: str
    period: str
    amount: Amount
    reason: Text
    each: str | None = None
    hold: Id | None = None


class FreezeBody(IdentifiedBody, kw_only=True):
    """Refuse new holds in a scope: `all`, a budget's name, or `label=value`."""

    scope: str
    reason: Text
    until: Moment | None = None


class ThawBody(IdentifiedBody, kw_only=True):
    """Lift the freeze of exactly this scope."""

    scope: str
    reason: Text = ""


class AlertTestBody(Request, kw_only=True):
    """A test alert. `target` names one of those configured; without it all hear."""

    target: Annotated[str, Meta(min_length=1, max_length=limits.NAME_CHARS_MAX)] | None = None


class RevokeBody(IdentifiedBody, kw_only=True):
    """Refuse new holds that carry this label."""

    label: str
    value: str
    reason: Text


class RestoreBody(IdentifiedBody, kw_only=True):
    """Undo a revocation."""

    label: str
    value: str
    reason: Text = ""


class PlanBody(IdentifiedBody, kw_only=True):
    """Decide by this plan from now on. `replaces` is the digest of the plan it was made from, "" for the first."""

    plan: Annotated[dict[str, Any], Meta(description="The plan as in `purse.toml`, as JSON; `GET /v1/plan` shows one.")]
    replaces: Annotated[str, Meta(max_length=64)]


class KeyBody(Request, kw_only=True):
    """A new key. With `replaces`, what is not said is as on that key, and so are the holds it speaks of."""

    role: Role | None = None
    user: Name | None = None
    cohort: Name | None = None
    labels: Labels | None = None
    names: Annotated[list[str], Meta(max_length=len(NAMEABLE), description="Of `user` and `cohort`.")] | None = None
    expires_s: (
        Annotated[int, Meta(ge=1, le=EXPIRES_S_MAX, description="Seconds from now; never, if not given.")] | None
    ) = None
    replaces: Annotated[str, Meta(max_length=32, description="The short id of another key.")] | None = None
    note: Text = ""


class RevokeKeyBody(Request, kw_only=True):
    """End a key, for this reason."""

    reason: Text


class EstimateBody(Request, kw_only=True):
    """A call as its provider takes it: `messages` or `input`, with the system prompt and tools that go with them."""

    model: Annotated[str, Meta(min_length=1, max_length=MODEL_CHARS_MAX)]
    messages: Annotated[list[Any], Meta(max_length=CONTENT_ITEMS_MAX)] | None = None
    input: Annotated[Any, Meta(description="A text, several, tokens, or messages and items.")] = None
    system: Annotated[Any, Meta(description="A text, or parts.")] = None
    tools: Annotated[list[Any], Meta(max_length=CONTENT_ITEMS_MAX)] | None = None
    max_tokens: Annotated[int, Meta(ge=0, le=OUTPUT_TOKENS_MAX)] | None = None
    n: Annotated[int, Meta(ge=1, le=CHOICES_MAX)] = 1
    provider: Annotated[str, Meta(max_length=limits.NAME_CHARS_MAX)] = ""


# --- batches: the same bodies, each saying what it is ---------------------------------------------------------------


class BatchHold(HoldBody, tag_field="ask", tag="hold"):
    pass


class BatchSettle(SettleBody, kw_only=True, tag_field="ask", tag="settle"):
    hold: Id


class BatchRelease(ReleaseBody, kw_only=True, tag_field="ask", tag="release"):
    hold: Id


class BatchRenew(RenewBody, kw_only=True, tag_field="ask", tag="renew"):
    hold: Id


class BatchObserve(ObservationBody, tag_field="ask", tag="observe"):
    pass


class BatchAdjust(AdjustmentBody, tag_field="ask", tag="adjust"):
    pass


class BatchFreeze(FreezeBody, tag_field="ask", tag="freeze"):
    pass


class BatchThaw(ThawBody, tag_field="ask", tag="thaw"):
    pass


class BatchRevoke(RevokeBody, tag_field="ask", tag="revoke"):
    pass


class BatchRestore(RestoreBody, tag_field="ask", tag="restore"):
    pass


BatchItem: TypeAlias = (
    BatchHold | BatchSettle | BatchRelease | BatchRenew | BatchObserve
    | BatchAdjust | BatchFreeze | BatchThaw | BatchRevoke | BatchRestore
)  # fmt: skip


class BatchBody(Request, kw_only=True):
    """Asks in order; each stands alone and sees the ones before it. If one cannot be read, none is sent."""

    asks: Annotated[list[BatchItem], Meta(min_length=1, extra_json_schema={"maxItems": limits.MESSAGE_ASKS_MAX})]
