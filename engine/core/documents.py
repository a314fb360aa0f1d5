"""What readers get: the wallet at a glance, the totals of a period, the life of one call. None of it is on the stream.

Integers of the smallest part, with the scale beside them; whoever shows them writes them as people read them.
"""

from __future__ import annotations

import msgspec

from engine.core.messages import Amounts, Frost, HoldState


class Figure(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The provider's own figure for a period, and when the provider said it."""

    source: str
    figure: int
    as_of: int


class Reading(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """How the reader of a budget's figure fares, where the projector that answers has one. Not folded from the stream.

    `read_at`: stream time of the newest try that gave a figure for this period, 0 if none did; the figure may be the
    same as before. `unreadable`: why the newest try gave none, "" if it gave one.
    """

    source: str
    every_s: int
    read_at: int = 0
    unreadable: str = ""


class BudgetStatus(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One shared budget in its current period. Integers of the smallest part; `scale` says how to write them."""

    name: str
    unit: str
    scale: int
    per: str
    zone: str
    period: str
    start: int
    resets_at: int
    limit: int
    settled: int
    held: int
    extra: int
    public: str = "percent"
    source: str = ""
    note: str = ""
    link: str = ""
    first_exhausted_at: int | None = None
    observed: Figure | None = None
    earlier_open: int = 0
    reading: Reading | None = None

    @property
    def used(self) -> int:
        return self.settled + self.extra + self.held

    @property
    def remaining(self) -> int:
        return self.limit - self.used


class Barred(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A label's value that takes no new holds: revoked, or cooling until a moment because `guard` went off."""

    label: str
    value: str
    reason: str = ""
    until: int | None = None
    guard: str = ""


class AlertBrief(msgspec.Struct, frozen=True, gc=False):
    """One alert at a glance. `delivered`: every target has taken it."""

    id: str
    text: str
    at: int
    delivered: bool


class AlertShown(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One alert. `figures` are decimal strings of `unit`.

    `deliveries`: by target new, sending, waiting, sent or missed, as the projector that answers knows it.
    """

    id: str
    rule: str
    text: str
    at: int
    seq: int = 0
    budget: str = ""
    period: str = ""
    threshold: str = ""
    unit: str = ""
    figures: dict[str, str] = {}
    deliveries: dict[str, str] = {}


class TriedTarget(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What became of a test alert at one target. `why`: how it failed."""

    target: str
    delivered: bool
    why: str = ""


class Status(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The wallet as of sequence `seq`, at stream time `as_of`: what the page shows. `plan`: its digest, "" if none.

    `barred`: the newest of those that take no new holds; `barred_more`: how many are not in it.
    `alerts`: the newest few, newest first. Not for strangers: their sentences have amounts in them.
    """

    wallet: str
    seq: int
    as_of: int
    plan: str
    budgets: list[BudgetStatus]
    frozen: list[Frost] = []
    open_holds: int = 0
    alerts: list[AlertBrief] = []
    barred: list[Barred] = []
    barred_more: int = 0


class Life(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One call as the wallet remembers it. `first`: sequence of the message in which it was held or came as a stray.

    `key`: the short id of the key that held it, "" where none did.
    """

    id: str
    state: HoldState
    first: int
    at: int
    charged: Amounts
    amounts: Amounts = {}
    progress: Amounts = {}
    expires_at: int | None = None
    periods: dict[str, str] = {}
    key: str = ""


class Standing(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A budget that a call with some labels would count to, as its meter for them stands."""

    budget: str
    unit: str
    period: str
    start: int
    resets_at: int
    limit: int
    settled: int = 0
    held: int = 0
    extra: int = 0
    each: str | None = None

    @property
    def base(self) -> int:
        return self.settled + self.extra


class Noted(msgspec.Struct, omit_defaults=True, gc=False):
    """A call that an edge left a memo with, and what became of it: kept as long as the wallet remembers the call.

    `number` counts them, in the order in which they came. `first`: sequence of the message in which it was held or came
    as a stray. `renewed`: the memos of its renewals, `renewals` the `n` of the newest. `ended_at`: when it lapsed or
    was settled, 0 while it is open; `ended`: the memo of the settle that ended it; `released`: that was a release.
    `hold`: the hold that was settled, where this is a settle under an id of its own.
    """

    id: str
    number: int
    memo: str
    labels: dict[str, str]
    first: int
    at: int
    state: HoldState
    amounts: Amounts = {}
    charged: Amounts = {}
    expires_at: int = 0
    renewed: list[str] = []
    renewals: int = 0
    ended_at: int = 0
    ended: str = ""
    released: bool = False
    hold: str = ""
    forget_at: int = 0


class NotedAt(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What is noted under an id, None if nothing is, folded up to ask message `upto`."""

    upto: int
    noted: Noted | None = None


class NotedPage(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Which calls with a memo: those whose ids begin with `namespace` and a "/", oldest or `newest` first.

    `beyond`: those behind the one of this number, 0 for the first page.
    """

    namespace: str
    beyond: int = 0
    newest: bool = False


class EngineFigures(msgspec.Struct, frozen=True, gc=False):
    """What an engine counts of its own work since it started. `latency`: a count a bound, and one above them all.

    `told_upto`: the last ask message that is told; `waiting`: how many are decided and not told yet.
    """

    told_upto: int
    waiting: int
    visits_slowed: int
    latency_bounds_s: list[float]
    latency: list[int]
    latency_sum_s: float


class ProjectorFigures(msgspec.Struct, frozen=True, gc=False):
    """What was decided since the wallet began, folded up to ask message `upto`.

    `outcomes`: "ask outcome" -> how often.
    """

    upto: int
    outcomes: dict[str, int]
    lapsed: int


class Sealed(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A day of the wallet that was sealed at its `end`: by the entry of ask message `seq`, at stream time `at`."""

    day: str
    end: int
    seq: int
    at: int


class DayTotals(msgspec.Struct, omit_defaults=True, gc=False):
    """One shared budget in one period, folded up to sequence `seq`: the projector's document.

    `limit` is the newest limit a decision used, `peak` the highest `used` that was reached, the counts are of outcomes
    that touched this budget. `sealed`: the first day that was sealed at or after the period's end; `settled` and
    `extra` have changed by `settled_after_seal` and `extra_after_seal` since.

    `refused`: by why; by "frozen" where the freeze was of this budget. `adjusted`: of `settled`, what operators
    adjusted. `unreconciled`: by how much exact settlements that came too late to be charged (conflicts) differ from
    what is charged, and of how many holds; an adjust that names the hold ends that. `wasted`: of every hold that has
    ended, what it was granted and did not cost, so what nobody else could hold meanwhile; an overrun wastes nothing.
    """

    budget: str
    unit: str
    scale: int
    period: str
    start: int
    end: int
    seq: int
    limit: int
    settled: int = 0
    held: int = 0
    extra: int = 0
    peak: int = 0
    first_exhausted_at: int | None = None
    holds: int = 0
    settles: int = 0
    refused: dict[str, int] = {}
    overruns: int = 0
    strays: int = 0
    lapsed: int = 0
    sealed: Sealed | None = None
    settled_after_seal: int = 0
    extra_after_seal: int = 0
    peak_at: int | None = None
    open_holds: int = 0
    wasted: int = 0
    adjusted: int = 0
    late: int = 0
    unheld: int = 0
    unreported: int = 0
    corrected: int = 0
    estimated: int = 0
    conflicts: int = 0
    unreconciled: int = 0
    unreconciled_holds: int = 0


class Spent(msgspec.Struct, omit_defaults=True, gc=False):
    """One value of a label in one budget and period; None: of calls without that label."""

    value: str | None = None
    settled: int = 0
    holds: int = 0
    refused: int = 0


class Breakdown(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A budget and period by the values of one label: those with most settled, and `other`, all else added up.

    `others`: how many values are in `other`. `uncounted`: there are still more, beyond those that are told apart.
    `other` also has what operators adjusted, which is of no call.
    """

    label: str
    top: list[Spent]
    other: Spent
    others: int = 0
    uncounted: bool = False


class Point(msgspec.Struct, omit_defaults=True, gc=False):
    """One step of a series, from `at` on: what came to be settled in it, and what was held as it ended."""

    at: int
    settled: int = 0
    held: int = 0
    holds: int = 0
    refused: int = 0


class Series(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """How a budget went in one period. A step in which nothing happened has no point.

    `step_s`: 300, or 86,400 for days of the wallet. A point at the period's end has all that came after it. `before`:
    the steps before the first point, added up, where there were too many to keep.
    """

    step_s: int
    points: list[Point]
    before: Point | None = None


class Detail(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Who spent a budget in one period, and when, folded up to sequence `seq`. Once final it never changes.

    Each breakdown's rows and `other` add up to `settled`. Final is what the wallet no longer remembers: what the
    totals have settled beyond this `settled` was charged later still, and is of `other`. `more_labels`: calls had
    more labels than are broken down. `series`: none for periods shorter than a day.
    """

    budget: str
    period: str
    seq: int
    settled: int
    breakdowns: list[Breakdown]
    series: Series | None = None
    more_labels: bool = False


class WalletDay(msgspec.Struct, omit_defaults=True, gc=False):
    """What was decided on one day of the wallet and is of no one budget, folded up to sequence `seq`.

    `refused` has every refusal of the day by its reason, those that budgets count too.
    """

    day: str
    seq: int
    refused: dict[str, int] = {}
    conflicts: int = 0
    invalid: int = 0
    unknown: int = 0
    forgotten: int = 0


class Span(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The ask messages of a day of the wallet, by sequence: from `first` on and before `until`, both known.

    `closed`: the day is over. `scales`: of every unit that any plan had; `units`: of every budget.
    """

    day: str
    first: int
    until: int
    closed: bool
    scales: dict[str, int] = {}
    units: dict[str, str] = {}
