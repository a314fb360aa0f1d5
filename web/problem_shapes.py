"""What a problem looks like, for the document and the reference: one Struct a kind of `web.problems` or refusal.

`type`, `status` and the headers belong together and are said here once. As in `web.shapes`, the tests hold every
problem they get against these.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from msgspec import UNSET, Meta, UnsetType

from engine.core.messages import HoldState
from web.shapes import AmountsText, AmountText, MomentText, Percent, Receipt, Shape

RETRY_AFTER = "Retry-After"
NEVER = "x-should-retry"
AUTHENTICATE = "WWW-Authenticate"


class ProblemShape(Shape):
    """RFC 9457. `title` is of the kind, `detail` of this one case; `headers` names what comes with it."""

    headers: ClassVar[tuple[str, ...]] = ()

    type: str
    title: str
    status: int
    detail: str


# --- refusals by the wallet: understood, and no -----------------------------------------------------------------------


class Refusal(ProblemShape):
    """`x-should-retry: false` where trying again cannot help, `Retry-After` where it can."""

    headers = (NEVER,)

    id: str
    receipt: Receipt


class ExhaustedShape(Refusal):
    """It does not fit. Speaks of one budget; `fits`: the largest amount of `unit` that would have fitted.

    `each`: whose meter it is, where the budget has one for each value of a label. `note`, `link`: the operator's.
    """

    type: Literal["/problems/exhausted"]
    outcome: Literal["exhausted"]
    why: str
    budget: str
    unit: str
    period: str
    limit: AmountText
    settled: AmountText
    held: AmountText
    extra: AmountText
    remaining: AmountText
    fits: AmountText
    used_pct: Percent
    resets_at: Annotated[MomentText | None, Meta(description="Null: never, the budget is for good.")]
    each: str | UnsetType = UNSET
    note: str | UnsetType = UNSET
    link: str | UnsetType = UNSET


class SpentProblem(ExhaustedShape):
    """Used up until `resets_at`. The status is the operator's choice, 402 unless said (`refusal_status`)."""

    status: Literal[402, 403, 429]
    why: Literal["spent"]


class TierProblem(ExhaustedShape, kw_only=True):
    """Only cheaper answers are left: `tier` is the least grade still affordable, null where none is."""

    status: Literal[402, 403, 429]
    why: Literal["tier"]
    tier: int | None


class BusyProblem(ExhaustedShape):
    """Only calls in progress are in the way: trying again helps once they end."""

    headers = (RETRY_AFTER,)

    status: Literal[429]
    why: Literal["busy"]


class NeverProblem(ExhaustedShape):
    """Larger than the whole budget."""

    status: Literal[400]
    why: Literal["never"]


class FrozenProblem(Refusal):
    """An operator stopped spending in this scope; `until`: null until it is lifted."""

    type: Literal["/problems/frozen"]
    status: Literal[403]
    outcome: Literal["frozen"]
    scope: str
    reason: str
    until: MomentText | None


class RevokedProblem(Refusal):
    """New holds with this label's value are refused."""

    type: Literal["/problems/revoked"]
    status: Literal[403]
    outcome: Literal["revoked"]
    label: str
    reason: str


class CoolingProblem(Refusal):
    """A guard refuses this label's value for so many seconds."""

    type: Literal["/problems/cooling"]
    status: Literal[429]
    outcome: Literal["cooling"]
    label: str
    until: MomentText
    seconds: Annotated[int, Meta(ge=1)]


class LateProblem(Refusal):
    """Decided after its caller stopped waiting. Nothing was held."""

    headers = (RETRY_AFTER,)

    type: Literal["/problems/late"]
    status: Literal[503]
    outcome: Literal["late"]
    by: MomentText


class ClosedProblem(Refusal):
    """The hold has ended: no permission to call."""

    type: Literal["/problems/closed"]
    status: Literal[409]
    outcome: Literal["closed"]
    state: HoldState
    charged: AmountsText


class ConflictProblem(Refusal):
    """The id stands for something else; `field` differs. For a settle, `charged` is what stands."""

    type: Literal["/problems/conflict"]
    status: Literal[422]
    outcome: Literal["conflict"]
    field: str
    charged: AmountsText | UnsetType = UNSET


class PlanConflictProblem(Refusal):
    """The plan changed meanwhile: `replaces` is not the digest of the one in force."""

    type: Literal["/problems/conflict"]
    status: Literal[409]
    outcome: Literal["conflict"]
    field: str


class RefusedAskProblem(Refusal):
    """The engine found what the edge could not: the ask names what does not exist. Nothing changed."""

    type: Literal["/problems/invalid"]
    status: Literal[400]
    outcome: Literal["invalid"]
    field: str
    why: str


class PlanlessProblem(ProblemShape):
    """The wallet has no plan yet, by the engine's word."""

    headers = (RETRY_AFTER,)

    type: Literal["/problems/invalid"]
    status: Literal[503]
    outcome: Literal["invalid"]
    why: Literal["no_plan"]
    receipt: Receipt


class UnknownProblem(ProblemShape):
    """The wallet does not know this hold, or has forgotten it."""

    headers = (NEVER,)

    type: Literal["/problems/unknown"]
    status: Literal[404]
    outcome: Literal["unknown"]
    id: str
    receipt: Receipt | UnsetType = UNSET


# --- what was sent cannot be taken ------------------------------------------------------------------------------------


class InvalidProblem(ProblemShape):
    """`field` is a JSON path, or a header's or parameter's name; `why` says what is allowed there."""

    type: Literal["/problems/invalid"]
    status: Literal[400]
    outcome: Literal["invalid"]
    field: str
    why: str


class BrokenJsonProblem(ProblemShape):
    """The body is no JSON; where, if it can be said."""

    type: Literal["/problems/broken-json"]
    status: Literal[400]
    field: Literal["body"]
    line: int | UnsetType = UNSET
    column: int | UnsetType = UNSET


class BrokenBodyProblem(ProblemShape):
    """The body did not arrive whole."""

    type: Literal["/problems/broken-body"]
    status: Literal[400]
    field: Literal["body"]


class NotPricedProblem(ProblemShape):
    """The model has no price here, so what it could cost is not known."""

    type: Literal["/problems/model-not-priced"]
    status: Literal[400]
    outcome: Literal["model_not_priced"]
    field: Literal["model"]


class TooSlowProblem(ProblemShape):
    """The body came too slowly."""

    type: Literal["/problems/too-slow"]
    status: Literal[408]


class TooLargeProblem(ProblemShape):
    """The body, or what it asks for, is larger than the limit that `detail` names."""

    type: Literal["/problems/too-large"]
    status: Literal[413]


class NotJsonProblem(ProblemShape):
    """The body is not `application/json` in UTF-8, or is encoded."""

    type: Literal["/problems/not-json"]
    status: Literal[415]


class SlowDownProblem(ProblemShape):
    """A stranger comes too often; `seconds` says when to come again."""

    headers = (NEVER,)

    type: Literal["/problems/slow-down"]
    status: Literal[429]
    seconds: Annotated[int, Meta(ge=1)]


# --- who asks ---------------------------------------------------------------------------------------------------------


class NoKeyProblem(ProblemShape):
    """A key is needed, and none was brought."""

    headers = (AUTHENTICATE,)

    type: Literal["/problems/no-key"]
    status: Literal[401]


class WrongKeyProblem(ProblemShape):
    """The key that was brought is none of this wallet's."""

    headers = (AUTHENTICATE,)

    type: Literal["/problems/wrong-key"]
    status: Literal[401]


class RoleProblem(ProblemShape):
    """A key with this role may not do this."""

    type: Literal["/problems/role"]
    status: Literal[403]


class KeyEndedProblem(ProblemShape):
    """The key was revoked or has expired. It may still settle, release and look at the holds it opened."""

    type: Literal["/problems/key-ended"]
    status: Literal[403]


# --- there is no such thing -------------------------------------------------------------------------------------------


class NotFoundProblem(ProblemShape):
    """Nothing is there; `day` or `id`: what was looked for."""

    type: Literal["/problems/not-found"]
    status: Literal[404]
    day: str | UnsetType = UNSET
    id: str | UnsetType = UNSET


class NoTargetProblem(ProblemShape):
    """No target of that name, or no projector that sends alerts."""

    type: Literal["/problems/no-target"]
    status: Literal[404]


class MethodProblem(ProblemShape):
    """The address takes other methods; `Allow` names them."""

    headers = ("Allow",)

    type: Literal["/problems/method-not-allowed"]
    status: Literal[405]


class TooManyKeysProblem(ProblemShape):
    """A wallet has only so many keys."""

    type: Literal["/problems/too-many-keys"]
    status: Literal[409]


# --- nobody can answer: closed, never open ----------------------------------------------------------------------------


class InternalProblem(ProblemShape):
    """Our error, and no permission."""

    type: Literal["/problems/internal"]
    status: Literal[500]


class Unavailable(ProblemShape):
    """Whoever hears this must not make the call."""

    headers = (RETRY_AFTER,)

    status: Literal[503]


class NoAnswerProblem(Unavailable):
    """No answer in time. `spooled`: what was settled is kept and will count."""

    type: Literal["/problems/no-answer"]
    spooled: Literal[True] | UnsetType = UNSET


class NotKeptProblem(Unavailable):
    """Neither the stream nor the disk took this: send it again."""

    type: Literal["/problems/not-kept"]


class StreamRefusedProblem(Unavailable):
    """The stream did not take this."""

    type: Literal["/problems/stream-refused"]


class UntrustedProblem(Unavailable):
    """The wallet cannot be trusted now: an operator has to look at it."""

    type: Literal["/problems/untrusted"]


class NoPlanProblem(Unavailable):
    """The wallet has no plan yet."""

    type: Literal["/problems/no-plan"]


class NoStatusProblem(Unavailable):
    """The projector has no figures yet."""

    type: Literal["/problems/no-status"]


class OverloadedProblem(Unavailable):
    """Too many are asking, or reading, at this moment."""

    type: Literal["/problems/overloaded"]


class TooManyViewersProblem(Unavailable):
    """Too many watch the live stream."""

    type: Literal["/problems/too-many-viewers"]


class ReadyChecks(Shape):
    """What was looked at, and whether it is well."""

    engine: bool
    projector: bool
    plan: bool
    web: bool


class NotReadyProblem(Unavailable):
    """A hold would not be decided now; `checks` says what is missing."""

    type: Literal["/problems/not-ready"]
    ready: Literal[False]
    checks: ReadyChecks
    spool_depth: Annotated[int, Meta(ge=0)]


class NotTrustedProblem(ProblemShape):
    """What is on record contradicts itself, so it is not shown."""

    type: Literal["/problems/not-trusted"]
    status: Literal[503]


class TooFarProblem(ProblemShape):
    """It would take too long to read up to this moment."""

    type: Literal["/problems/too-far"]
    status: Literal[503]


Kinds: TypeAlias = tuple[type[ProblemShape], ...]

OF_ANY: Kinds = (
    WrongKeyProblem, KeyEndedProblem, InternalProblem,
    NoAnswerProblem, NotKeptProblem, StreamRefusedProblem, UntrustedProblem,
)  # fmt: skip
"""What any route may answer: who brings a key must bring a good one, and nobody may know."""

OF_A_ROLE: Kinds = (NoKeyProblem, RoleProblem)
OF_A_BODY: Kinds = (
    InvalidProblem, BrokenJsonProblem, BrokenBodyProblem, TooSlowProblem, TooLargeProblem, NotJsonProblem,
)  # fmt: skip
OF_A_QUEUE: Kinds = (OverloadedProblem,)
OF_A_HOLD: Kinds = (
    NeverProblem, RefusedAskProblem, SpentProblem, TierProblem, BusyProblem, FrozenProblem, RevokedProblem,
    CoolingProblem, ClosedProblem, ConflictProblem, LateProblem, PlanlessProblem, NoPlanProblem,
)  # fmt: skip
OF_AN_ASK: Kinds = (RefusedAskProblem, ConflictProblem, PlanlessProblem, NoPlanProblem)
OF_NO_ROUTE: Kinds = (NotFoundProblem, MethodProblem)
"""Of an address that is none, and of a method that it does not take."""
