"""How a budget goes in its period: its course, the even pace beside it, and when it is used up at the pace of late.

Pure: `now` comes in, amounts are integers of the smallest part, moments nanoseconds since 1970. No float, no words.
"""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import Final

import msgspec

from engine.core.documents import Point, Series

SECOND: Final = 1_000_000_000
WINDOW_NS: Final = 3600 * SECOND  # the pace of late is that of the last hour
STEPS_SHOWN_MAX: Final = 96  # bars of a chart, and rows of its table


class Mark(msgspec.Struct, frozen=True):
    """What was settled since the period began, and what was held, at one moment."""

    at: int
    settled: int
    held: int


class Step(msgspec.Struct, frozen=True):
    """What came to be settled between two moments, what was held as they ended, and how many asked."""

    at: int
    until: int
    settled: int
    held: int
    holds: int
    refused: int


class Pace(msgspec.Struct, frozen=True):
    """`spent` in `window_ns` until now. `used_up_at`: when the limit is reached if it goes on so; None: not by the end.

    `left_at_end`: what is then left at the end, at least 0. `even`: what an even pace would have spent by now.
    """

    spent: int
    window_ns: int
    used_up_at: int | None
    left_at_end: int
    even: int


def marks(series: Series, *, start: int, end: int, now: int) -> list[Mark]:
    """The course as corners of a line, from the period's start on. Nothing happens between two points of a series."""
    line, settled, held, step = [Mark(start, 0, 0)], 0, 0, series.step_s * SECOND
    for point in _all(series, start):
        if point.at > line[-1].at:
            line.append(Mark(point.at, settled, held))
        settled, held = settled + point.settled, point.held
        line.append(Mark(max(line[-1].at, min(point.at + step, end, now)), settled, held))
    if min(now, end) > line[-1].at:
        line.append(Mark(min(now, end), settled, held))
    return line


def _all(series: Series, start: int) -> list[Point]:
    before = series.before
    first = [msgspec.structs.replace(before, at=start)] if before is not None else []
    return [*first, *series.points]


def steps(series: Series, *, start: int, end: int) -> list[Step]:
    """The course in steps of one width, few enough to be seen. Steps in which nothing happened are left out."""
    step = series.step_s * SECOND
    wide = step * -(-max(1, (end - start) // step) // STEPS_SHOWN_MAX)
    found = []
    for number, points in groupby(_all(series, start), key=lambda point: (min(point.at, end - 1) - start) // wide):
        group = list(points)
        at = start + number * wide
        found.append(
            Step(
                at, min(at + wide, end), sum(one.settled for one in group), group[-1].held,
                sum(one.holds for one in group), sum(one.refused for one in group),
            )
        )  # fmt: skip
    return found


def settled_at(line: list[Mark], at: int) -> int:
    """What was settled by then, on the straight line between the two marks around it."""
    for before, after in pairwise(line):
        if before.at <= at < after.at:
            return before.settled + (after.settled - before.settled) * (at - before.at) // (after.at - before.at)
    return line[-1].settled


def pace(line: list[Mark], *, limit: int, others: int, start: int, end: int, now: int) -> Pace:
    """How it goes at `now`. `others`: what others used on the account; it counts, and is not expected to grow."""
    window = min(WINDOW_NS, now - start)
    settled = line[-1].settled
    spent = settled - settled_at(line, now - window)
    left = limit - settled - others
    even = limit * (now - start) // max(1, end - start)
    if spent <= 0 or window <= 0:
        return Pace(0, window, None, max(0, left), even)
    used_up_at = now + max(0, left) * window // spent
    left_at_end = max(0, left - spent * (end - now) // window)
    return Pace(spent, window, used_up_at if used_up_at < end else None, left_at_end, even)
