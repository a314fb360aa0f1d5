"""The words on the stream: asks, outcomes, and the messages that carry them.

These Structs *are* the stored format. A field may be added with a default; none is ever renamed, retyped or removed.
Amounts are integers of a unit's smallest part, moments are nanoseconds since 1970 (UTC) by the stream's clock.
Reading the past tolerates unknown fields; whoever takes asks from strangers refuses them at the door.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from engine.core.limits import MEMO_CHARS_MAX, VISITOR_BYTES_MAX
from engine.core.plan import LapsePolicy, Plan

Amounts: TypeAlias = dict[str, int]
"""Unit -> integer of its smallest part."""

Memo: TypeAlias = Annotated[str, Meta(max_length=MEMO_CHARS_MAX)]
"""What an edge wants kept with an ask, in its own words. It is on the record and decides nothing."""


# --- asks -----------------------------------------------------------------------------------------------------------


class Ask(msgspec.Struct, frozen=True, tag_field="ask", omit_defaults=True, gc=False):
    """What a front end appends. `id` is its idempotency key."""


class Option(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One way to make the call, and the most it could cost. `least`: grant what is left, but at least this much.

    `grade`: how cheap an answer it is, 0 the best; the plan's tiers judge it. None: money alone does.
    """

    amounts: Amounts
    least: Amounts = {}
    grade: int | None = None
    name: str = ""


class Hold(Ask, frozen=True, tag="hold"):
    """May I spend at most this? Options come best first; the first that fits is taken.

    `by` is the moment the caller stops waiting, in stream time. `ttl_s` and `on_lapse` default to the plan's.
    """

    id: str
    options: list[Option]
    by: int
    labels: dict[str, str] = {}
    ttl_s: int | None = None
    on_lapse: LapsePolicy | None = None
    price_book: str = ""
    memo: Memo = ""


class Settle(Ask, frozen=True, tag="settle"):
    """The call cost this (`final`), or this much so far. Never refused. `id` defaults to `<hold>:s`.

    `release` stands for "an exact final at the progress so far" and carries no amounts; with `by` it is a caller giving
    up on that attempt. `held_at` and `labels` are used only where the hold is not known.
    """

    hold: str
    amounts: Amounts = {}
    release: bool = False
    final: bool = True
    estimated: bool = False
    held_at: int | None = None
    by: int | None = None
    labels: dict[str, str] = {}
    id: str = ""
    memo: Memo = ""


class Renew(Ask, frozen=True, tag="renew"):
    """Hold on longer (`n` counts 1, 2, ...), maybe with a larger total grant."""

    hold: str
    n: int
    ttl_s: int | None = None
    amounts: Amounts = {}
    id: str = ""
    memo: Memo = ""


class Observe(Ask, frozen=True, tag="observe"):
    """The provider's own figure for one period of one budget."""

    id: str
    budget: str
    period: str
    figure: int
    as_of: int
    source: str
    each: str | None = None


class Adjust(Ask, frozen=True, tag="adjust"):
    """An operator's correction of what was settled, up or down, with its reason."""

    id: str
    budget: str
    period: str
    amount: int
    reason: str
    by_whom: str = ""
    each: str | None = None
    hold: str | None = None


class Freeze(Ask, frozen=True, tag="freeze"):
    """Refuse new holds in a scope: `all`, a budget's name, or `label=value`."""

    id: str
    scope: str
    reason: str
    by_whom: str = ""
    until: int | None = None


class Thaw(Ask, frozen=True, tag="thaw"):
    """Lift the freeze of exactly this scope."""

    id: str
    scope: str
    reason: str = ""
    by_whom: str = ""


class Revoke(Ask, frozen=True, tag="revoke"):
    """Refuse new holds that carry this label."""

    id: str
    label: str
    value: str
    reason: str
    by_whom: str = ""


class Restore(Ask, frozen=True, tag="restore"):
    """Undo a revocation of this label, and a cooling."""

    id: str
    label: str
    value: str
    reason: str = ""
    by_whom: str = ""


class ApplyPlan(Ask, frozen=True, tag="plan"):
    """Decide by this plan from now on. `replaces` is the digest of the plan it was made from, "" for the first."""

    id: str
    plan: Plan
    replaces: str
    by_whom: str = ""


class KnownUse(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One meter, and the highest `used` of it that whoever still remembers can vouch for."""

    budget: str
    period: str
    used: int
    each: str | None = None


class Loss(Ask, frozen=True, tag="loss"):
    """The store has lost something between these sequences, and an operator goes on from what is left.

    Receipts and witnesses of that range are accepted from here on. Every meter of `used` counts at least as much; the
    budgets of `freeze`, whose use nobody knows, take no holds until their period ends.
    """

    id: str
    from_seq: int
    to_seq: int
    reason: str
    by_whom: str = ""
    used: list[KnownUse] = []
    freeze: list[str] = []


class Clock(Ask, frozen=True, tag="clock"):
    """The stream's clock was wrong: stamps from `start` until before `end` say nothing.

    An ask message before this one that bears such a stamp, and that no told before this one covers, is decided at the
    moment of the message before it.
    """

    id: str
    start: int = msgspec.field(name="from")
    end: int = msgspec.field(name="to")
    reason: str
    by_whom: str = ""


AnyAsk: TypeAlias = (
    Hold | Settle | Renew | Observe | Adjust | Freeze | Thaw | Revoke | Restore | ApplyPlan | Loss | Clock
)  # fmt: skip

ADMIN_ASKS = (Adjust, Freeze, Thaw, Revoke, Restore, ApplyPlan, Loss, Clock)
"""Asks that go to the wallet's `admin` subject."""


# --- outcomes -------------------------------------------------------------------------------------------------------


class Outcome(msgspec.Struct, frozen=True, tag_field="outcome", omit_defaults=True, gc=False):
    """What was decided. It stands in the told message at the place of its ask."""


class Line(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One meter an outcome touched, under its budget's name: period with its bounds, the limit used, what is left."""

    period: str
    start: int
    end: int
    limit: int
    remaining: int
    each: str | None = None


class Left(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What is left in a budget whose `Line` an earlier outcome of this hold told."""

    limit: int
    remaining: int


class Dropped(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A charge to a period whose meter is gone from memory: recorded here, added to that day by whoever reads."""

    budget: str
    period: str
    amount: int
    each: str | None = None


HoldState: TypeAlias = Literal["open", "settled", "estimated", "lapsed", "corrected", "stray", "refused"]
Why: TypeAlias = Literal["never", "spent", "busy", "tier"]
Flag: TypeAlias = Literal["overrun", "late", "unheld", "unreported", "corrected", "estimated"]


class Held(Outcome, frozen=True, tag="held"):
    """The only permission to call. `n` counts renewals (0: the hold itself); `amounts` is then the new total grant.

    `tier`: the least grade that was affordable to it, 0 also where the plan's tiers did not judge it. `fired`: the
    guards it set off that only say so.
    """

    id: str
    option: int
    amounts: Amounts
    budgets: dict[str, Line]
    at: int
    expires_at: int
    tier: int = 0
    n: int = 0
    fired: list[str] = []


class Exhausted(Outcome, frozen=True, tag="exhausted"):
    """It does not fit. Speaks of one budget; `fits` is the largest amount of `unit` that would have fitted.

    `tier`, where the why is "tier": the least grade that would still have been affordable; None: none is. `fired`: the
    guards it set off that only say so.
    """

    id: str
    why: Why
    budget: str
    unit: str
    period: str
    settled: int
    held: int
    extra: int
    limit: int
    remaining: int
    fits: int
    resets_at: int
    each: str | None = None
    tier: int | None = None
    fired: list[str] = []


class Frozen(Outcome, frozen=True, tag="frozen"):
    id: str
    scope: str
    reason: str
    until: int | None = None


class Cooling(Outcome, frozen=True, tag="cooling"):
    """A guard refuses this label's value until then. `fired` names the guard in the outcome that began it, alone."""

    id: str
    label: str
    until: int
    value: str = ""
    guard: str = ""
    fired: list[str] = []


class Revoked(Outcome, frozen=True, tag="revoked"):
    """This label's value was revoked. `fired` names the guard in the outcome that revoked it, alone."""

    id: str
    label: str
    value: str
    reason: str
    fired: list[str] = []


class Late(Outcome, frozen=True, tag="late"):
    """Decided after the caller stopped waiting: nothing was held."""

    id: str
    by: int


class Closed(Outcome, frozen=True, tag="closed"):
    """The hold has ended; this is no permission to call."""

    id: str
    state: HoldState
    charged: Amounts


class Again(Outcome, frozen=True, tag="again"):
    """Already told. `first` is the sequence of the ask message whose entry holds the facts, 0 if there was no such.

    `was` is filled in for the caller who asks again, never on the record, so that nobody counts a fact twice.
    """

    id: str
    first: int
    state: str = ""
    was: AnyOutcome | None = None


class Conflict(Outcome, frozen=True, tag="conflict"):
    """The id is bound to something else. `field` names what differs; for a settle, `charged` is what stands."""

    id: str
    field: str
    charged: Amounts = {}


class Invalid(Outcome, frozen=True, tag="invalid"):
    """The ask cannot be understood or names what does not exist. Nothing changed."""

    id: str
    field: str
    why: str


class Settled(Outcome, frozen=True, tag="settled"):
    """`charged`: all the hold has cost so far; `released`: what came back; `budgets`: the meters of units it lacked."""

    id: str
    state: HoldState
    charged: Amounts
    released: Amounts = {}
    left: dict[str, Left] = {}
    budgets: dict[str, Line] = {}
    dropped: list[Dropped] = []
    flags: list[Flag] = []


class Stray(Outcome, frozen=True, tag="stray"):
    """A settlement of a hold nobody knows: charged all the same. `state`: "stray", or "estimated" while provisional."""

    id: str
    state: HoldState
    charged: Amounts
    at: int
    budgets: dict[str, Line] = {}
    dropped: list[Dropped] = []


class Forgotten(Outcome, frozen=True, tag="forgotten"):
    """A settlement of a hold older than the memory: nothing charged, listed for a backfill."""

    id: str


class Unknown(Outcome, frozen=True, tag="unknown"):
    id: str


class Observed(Outcome, frozen=True, tag="observed"):
    """`raised_by`: how much the budget's base rose, maybe 0."""

    id: str
    raised_by: int
    line: Line


class Adjusted(Outcome, frozen=True, tag="adjusted"):
    id: str
    line: Line | None = None
    dropped: Dropped | None = None


class Planned(Outcome, frozen=True, tag="planned"):
    """The plan in force from here on, and the budgets whose meters start at zero by it."""

    id: str
    digest: str
    restarts: list[str] = []


class Raised(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A meter that a loss was told of, and by how much it counts more now, maybe 0."""

    budget: str
    by: int
    line: Line


class Done(Outcome, frozen=True, tag="done"):
    """It is so from here on. Of a loss: what it raised, and until when each budget is frozen (None: until a thaw)."""

    id: str
    raised: list[Raised] = []
    frozen: dict[str, int | None] = {}


AnyOutcome: TypeAlias = (
    Held | Exhausted | Frozen | Cooling | Revoked | Late | Closed | Again | Conflict | Invalid
    | Settled | Stray | Forgotten | Unknown | Observed | Adjusted | Planned | Done
)  # fmt: skip


# --- what carries them ----------------------------------------------------------------------------------------------

MESSAGE_VERSION = 1
"""Of the two messages that are stored. Another way to read their bytes needs another number."""


class AskMessage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A list of asks, each standing alone. Empty: time passes. `sender` is the inbox that hears what was told."""

    v: int = MESSAGE_VERSION
    sender: str = msgspec.field(name="from", default="")
    asks: list[AnyAsk]


class Lapsed(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A hold that ended by time. `charged` is all that it has cost so far."""

    hold: str
    charged: Amounts


class SealedBudget(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A shared budget in the period that contains a day's last moment, as it stood when the day was sealed."""

    period: str
    limit: int
    settled: int = 0
    held: int = 0
    extra: int = 0


class Seal(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A day of the wallet that is over. `upto`: the last ask message decided before its `end`.

    `budgets` names the shared ones that were touched, `open_holds` counts what was held and had not ended.
    """

    day: str
    end: int
    upto: int
    open_holds: int = 0
    budgets: dict[str, SealedBudget] = {}


class Entry(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """All that was decided for one ask message: its moment, what lapsed before it, one outcome an ask in order.

    `sealed`: the days that were over before it, oldest first. What lapsed before a day's end lapsed before its seal.
    """

    seq: int
    at: int
    lapsed: list[Lapsed] = []
    out: list[AnyOutcome] = []
    sealed: list[Seal] = []


class Told(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The decision on the `n` ask messages up to sequence `upto`. On the stream its chain follows (`core.chain`)."""

    v: int = MESSAGE_VERSION
    engine: str
    upto: int
    n: int
    told: list[Entry]


class Answer(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One ask message's entry on its way back to the inbox it came from."""

    to: str
    seq: int
    at: int
    out: list[AnyOutcome]


class Reply(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What an engine says to one client once the told at sequence `told` is on record."""

    told: int
    chain: str
    answers: list[Answer]


VisitKind = Literal["ask", "estimate"]
"""`ask`: a full question. `estimate`: what is asked for while somebody types."""


class Visit(msgspec.Struct, frozen=True, gc=False):
    """A stranger came. Asked of the engines and never on the stream. `visitor`: a keyed hash of where they came from.

    `most`: how many of this kind go on in one calendar minute.
    """

    visitor: Annotated[bytes, Meta(max_length=VISITOR_BYTES_MAX)]
    kind: VisitKind
    most: int


class Counted(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What a visit was told. `wait_s`: 0 to go on, else the whole seconds after which it may come again.

    `until`: the same as a moment of stream time (ns), 0 to go on.
    """

    wait_s: int = 0
    until: int = 0


class Frost(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A freeze in force."""

    scope: str
    reason: str
    since: int
    until: int | None = None
