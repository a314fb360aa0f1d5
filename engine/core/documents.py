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


class Status(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The wallet as of sequence `seq`, at stream time `as_of`: what the page shows. `plan`: its digest, "" if none."""

    wallet: str
    seq: int
    as_of: int
    plan: str
    budgets: list[BudgetStatus]
    frozen: list[Frost] = []
    open_holds: int = 0


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
