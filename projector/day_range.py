"""Days as people name them: `2026-11-30`, `today`, `2026-11-01..2026-11-30`: the wallet's own, in its zone.

A day is the wallet's (`plan.zone`), as `engine.core.periods` has it: of 23 or 25 hours where the clocks change. What
"today" means depends on a moment, which is an argument; nothing here reads a clock.
"""

from __future__ import annotations

from datetime import date, timedelta

import msgspec

from engine.core.periods import PeriodError, period_at, period_named

DAYS_MAX = 366  # in one range

TODAY, YESTERDAY = "today", "yesterday"


class DayError(ValueError):
    """Not a day or a range of days. The text says what one looks like, and repeats nothing."""


class DayRange(msgspec.Struct, frozen=True):
    """[start, end) in nanoseconds since 1970 (UTC): the days from `first` to `last`, both included, of `zone`."""

    first: str
    last: str
    zone: str
    start: int
    end: int

    def __contains__(self, at: object) -> bool:
        return isinstance(at, int) and self.start <= at < self.end

    def __str__(self) -> str:
        return self.first if self.first == self.last else f"{self.first}..{self.last}"


def parse(written: str, *, zone: str, now: int) -> DayRange:
    """The days in `written`; `now` (ns) is the moment that `today` is said. Raises `DayError`."""
    first_name, dots, last_name = written.partition("..")
    first = _day(first_name, zone, now)
    last = _day(last_name, zone, now) if dots else first
    try:
        start = period_named(first, per="day", zone=zone).start
        end = period_named(last, per="day", zone=zone).end
    except PeriodError as error:
        raise DayError(f"a day: {error}") from error
    if end <= start:
        raise DayError("a range of days: expected the earlier day first")
    if (date.fromisoformat(last) - date.fromisoformat(first)).days >= DAYS_MAX:
        raise DayError(f"a range of days: expected at most {DAYS_MAX} days")
    return DayRange(first, last, zone, start, end)


def _day(name: str, zone: str, now: int) -> str:
    if name not in (TODAY, YESTERDAY):
        return name
    today = period_at(now, per="day", zone=zone).name
    if name == TODAY:
        return today
    return (date.fromisoformat(today) - timedelta(days=1)).isoformat()
