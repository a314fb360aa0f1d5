"""Who spent each budget in each period, and when: kept while anything may change, then put down for good.

A period is final once the wallet no longer remembers it (`horizon`): no call can settle there any more. What is charged
to it later still, an adjust say, reaches its totals alone, and whoever shows both adds the difference to `other`. So
what is in memory is what the wallet itself remembers, and a document that is final is written once. When that is
follows from the stream alone.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from engine.core.documents import DayTotals, Detail
from projector.days.course import Course, course_of
from projector.days.spenders import Known, Spenders

DetailKey: TypeAlias = tuple[str, str]
"""Budget and period."""

_encoder = msgspec.json.Encoder()


class OneKnown(msgspec.Struct, frozen=True):
    """What a snapshot remembers of one period."""

    budget: str
    period: str
    seq: int
    spenders: Known
    course: Course | None = None


class AllKnown(msgspec.Struct, frozen=True):
    """What a snapshot remembers of all: those that may still change, and those that are final but not written."""

    open: list[OneKnown] = []
    final: list[tuple[str, str, bytes]] = []


class _Open:
    """One budget and period that may still change. `seq`: up to where it is folded, `written` up to where written."""

    __slots__ = ("course", "seq", "spenders", "totals", "written")

    def __init__(self, totals: DayTotals, course: Course | None, spenders: Spenders, seq: int = 0) -> None:
        self.totals, self.course, self.spenders, self.seq = totals, course, spenders, seq
        self.written = 0

    def document(self) -> bytes:
        totals, spenders = self.totals, self.spenders
        series = self.course.series(totals) if self.course is not None else None
        breakdowns = spenders.breakdowns(totals.settled)
        detail = Detail(
            totals.budget, totals.period, self.seq, totals.settled, breakdowns, series, spenders.more_labels
        )
        return _encoder.encode(detail)


class Details:
    """The details of every budget and period. `final`: those that will not change again and are not written yet."""

    def __init__(self) -> None:
        self.final: dict[DetailKey, bytes] = {}
        self._open: dict[DetailKey, _Open] = {}
        self._ends: list[tuple[int, DetailKey]] = []  # heap
        self._seq = self._at = self._horizon = 0
        self._zone = "UTC"

    def begin(self, *, seq: int, at: int, horizon: int, zone: str) -> None:
        """A new ask message. What is past the wallet's memory becomes final."""
        self._seq, self._at, self._horizon, self._zone = seq, at, horizon, zone
        while self._ends and self._ends[0][0] <= horizon:
            key = heapq.heappop(self._ends)[1]
            one = self._open.pop(key)
            if one.written != one.seq:
                self.final[key] = one.document()

    def touch(self, key: DetailKey, totals: DayTotals) -> Spenders | None:
        """These totals are about to change. Their spenders; None where the detail is final."""
        one = self._open.get(key)
        if one is None:
            if totals.end <= self._horizon:
                return None
            one = self._open[key] = _Open(totals, course_of(totals.start, totals.end), Spenders())
            heapq.heappush(self._ends, (totals.end, key))
        one.seq = self._seq
        course = one.course
        if course is not None and self._at >= course.until:
            course.turn(totals, self._at, self._zone)
        return one.spenders

    # --- writing and keeping ------------------------------------------------------------------------------------------

    def unwritten(self) -> list[DetailKey]:
        """Those that may still change, and have changed since they were written."""
        return [key for key, one in self._open.items() if one.written != one.seq]

    def upto(self, key: DetailKey) -> int:
        """Up to which sequence this is folded."""
        return self._open[key].seq

    def written(self, key: DetailKey, seq: int) -> None:
        """As it was at this sequence it is written."""
        one = self._open.get(key)
        if one is None:
            return
        one.written = seq
        if one.totals.end <= self._at:  # hardly any call comes to it any more
            one.spenders.forget_rows()

    def in_memory(self) -> list[DetailKey]:
        """All but those that are final and written."""
        return [*self._open, *self.final]

    def document(self, key: DetailKey) -> bytes | None:
        """As it stands in the bucket; None where it is only there."""
        one = self._open.get(key)
        return one.document() if one is not None else self.final.get(key)

    def known(self) -> AllKnown:
        return AllKnown(
            [OneKnown(*key, one.seq, one.spenders.known(), one.course) for key, one in self._open.items()],
            [(*key, document) for key, document in self.final.items()],
        )

    def load(self, known: AllKnown, totals: Mapping[DetailKey, DayTotals]) -> None:
        """Remember that and nothing else. Whether any was written is not known: none was."""
        self.final = {(budget, period): document for budget, period, document in known.final}
        for one in known.open:
            key = (one.budget, one.period)
            self._open[key] = _Open(totals[key], one.course, Spenders.restored(one.spenders), one.seq)
        self._ends = [(one.totals.end, key) for key, one in self._open.items()]
        heapq.heapify(self._ends)
