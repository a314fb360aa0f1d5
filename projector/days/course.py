"""How a budget went in one period, in steps of five minutes or of a day. Time only goes on: a point is added or grows.

Steps of five minutes begin at the period's own start, for days and weeks; longer periods go by the wallet's days, and
shorter ones have none, since their totals say as much. A point is what its totals have gained since it began, so that
nothing is done for an event but to see that its step has not ended.
"""

from __future__ import annotations

import msgspec

from engine.core import periods
from engine.core.documents import DayTotals, Point, Series

NS = 1_000_000_000
STEP_S = 300
DAY_S = 86_400
SHORT_NS = 6 * 3_600 * NS  # no day is so short
WEEK_NS = 8 * DAY_S * NS  # and no month
POINTS_MAX = 2_100  # a week of five minutes, with an hour that comes twice; nearly six years of days


class Course(msgspec.Struct, gc=False):
    """The points of one budget and period so far. `until`: the end of the newest point's step.

    `settled`, `holds` and `refused` are those of the totals as the newest point began.
    """

    start: int
    end: int
    step_s: int
    until: int = 0
    points: list[Point] = []
    before: Point | None = None
    settled: int = 0
    holds: int = 0
    refused: int = 0

    def turn(self, totals: DayTotals, at: int, zone: str) -> None:
        """The newest step has ended, at these totals; begin that of `at`. No later call has an earlier moment."""
        self._bring_up(totals)
        if at >= self.end:
            start, self.until = self.end, periods.TOTAL.end
        elif self.step_s == DAY_S:
            day = periods.period_at(at, per="day", zone=zone)
            start, self.until = max(day.start, self.until), min(day.end, self.end)
        else:
            step = STEP_S * NS
            start = self.start + max(0, at - self.start) // step * step
            self.until = min(start + step, self.end)
        self.points.append(Point(start))
        self.settled, self.holds, self.refused = totals.settled, totals.holds, _refused(totals)
        if len(self.points) > POINTS_MAX:
            self._add_up(self.points.pop(0))

    def series(self, totals: DayTotals) -> Series:
        self._bring_up(totals)
        return Series(self.step_s, self.points, self.before)

    def _bring_up(self, totals: DayTotals) -> None:
        if self.points:
            newest = self.points[-1]
            newest.settled = totals.settled - self.settled
            newest.holds = totals.holds - self.holds
            newest.refused = _refused(totals) - self.refused
            newest.held = totals.held

    def _add_up(self, oldest: Point) -> None:
        """The oldest step joins those before it."""
        if self.before is None:
            self.before = oldest
            return
        self.before.settled += oldest.settled
        self.before.holds += oldest.holds
        self.before.refused += oldest.refused
        self.before.held = oldest.held


def _refused(totals: DayTotals) -> int:
    return sum(totals.refused.values())


def course_of(start: int, end: int) -> Course | None:
    """An empty course of a period; None for one that is shorter than a day."""
    if end - start < SHORT_NS:
        return None
    return Course(start, end, STEP_S if end - start < WEEK_NS else DAY_S, points=[])
