"""Calendar periods in any IANA zone: which one a moment is in, what it is called, when the next begins.

The periods of one kind in one zone partition time, whatever the clocks there do: days of 23 and 25 hours, nights
without a midnight, dates that never were. Moments are integers of nanoseconds since 1970 (UTC); nothing here reads a
clock or knows what day it is, and no float comes near a boundary.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from functools import cache, lru_cache
from typing import Literal, TypeAlias
from zoneinfo import ZoneInfo, available_timezones

import msgspec

from engine.core.plan import Per

SECOND = 1_000_000_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EXAMPLE_AT = 1_796_047_500 * SECOND  # 2026-11-30T14:05Z: what error texts show
_CALENDARS_MAX = 128  # a plan has at most 64 budgets; past this some are worked out again, with the same answers

_Clocked: TypeAlias = Literal["minute", "hour"]
_Dated: TypeAlias = Literal["day", "week", "month", "year"]


class Period(msgspec.Struct, frozen=True, gc=False):
    """[start, end) in nanoseconds since 1970 (UTC), and the one name it has among the periods of its kind and zone."""

    name: str
    start: int
    end: int


TOTAL = Period("total", 0, 2**63 - 1)
"""The period that never ends. No other ends later, so that every moment fits a signed 64-bit integer."""


class PeriodError(ValueError):
    """Not the name of a period of that kind in that zone. The text says what one looks like, and repeats nothing."""


def period_at(at: int, *, per: Per, zone: str) -> Period:
    """The period that contains `at` (0 <= at < 2**63 - 1).

    Days, weeks (from Monday), months and years begin at the first local midnight of their date. Hours and minutes are
    the wall clock's, within one stretch of equal offset: a change of offset ends one and begins another.
    """
    return calendar(per, zone).at(at)


def period_named(name: str, *, per: Per, zone: str) -> Period:
    """The period of that canonical name: what `period_at` calls it and nothing else. Raises `PeriodError`."""
    try:
        moments = _moments(name, per, ZoneInfo(zone))
    except (ValueError, OverflowError):
        moments = ()
    for at in moments:
        if 0 <= at < TOTAL.end and (found := _find(at, per, zone)).name == name:
            return found
    example = period_at(_EXAMPLE_AT, per=per, zone=zone).name
    raise PeriodError(f'expected the name of {_A[per]} in {zone}, such as "{example}"')


def end_of_day(name: str, zone: str) -> int:
    """When the clocks of `zone` first show a later date than that of the day so named in any zone."""
    following = _next(date.fromisoformat(name), "day")
    return min(_midnight(following, ZoneInfo(zone)) * SECOND, TOTAL.end)


def zone_known(zone: str) -> bool:
    """Whether `zone` is a key of the pinned tzdata package, spelled exactly so. Paths and "localtime" are not."""
    return zone in _zones()


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones()) - {"localtime", "Factory"}


# --- the hot path: a hold asks for the period of every budget it touches ----------------------------------------------


class Calendar:
    """One kind of period in one zone. `latest` only saves work: every answer follows from `at` alone."""

    __slots__ = ("latest", "per", "zone")

    def __init__(self, per: Per, zone: str) -> None:
        self.per, self.zone = per, zone
        self.latest = Period("", 0, 0)

    def at(self, at: int) -> Period:
        latest = self.latest
        if latest.start <= at < latest.end:
            return latest
        self.latest = found = _find(at, self.per, self.zone)
        return found


@lru_cache(maxsize=_CALENDARS_MAX)
def calendar(per: Per, zone: str) -> Calendar:
    """The calendar of that kind and zone, the same one for all who ask."""
    return Calendar(per, zone)


def _find(at: int, per: Per, zone: str) -> Period:
    at_s = at // SECOND
    match per:
        case "total":
            return TOTAL
        case "minute" | "hour":
            name, start_s, end_s = _on_the_clock(at_s, per, ZoneInfo(zone))
        case "day" | "week" | "month" | "year":
            name, start_s, end_s = _on_the_calendar(at_s, per, ZoneInfo(zone))
    return Period(name, start_s * SECOND, min(end_s * SECOND, TOTAL.end))


# --- hours and minutes: stretches of one offset -----------------------------------------------------------------------

_STEP_S: dict[_Clocked, int] = {"minute": 60, "hour": 3600}


def _on_the_clock(at_s: int, per: _Clocked, tz: ZoneInfo) -> tuple[str, int, int]:
    offset = _offset(at_s, tz)
    first = _floor(_datetime(at_s).astimezone(timezone(offset)), per)
    start_s = _seconds(first)
    end_s = start_s + _STEP_S[per]
    if _offset(start_s, tz) != offset:
        start_s = _turn(start_s, at_s, tz)
    if _offset(end_s - 1, tz) != offset:
        end_s = _turn(at_s, end_s - 1, tz)
    return _clock_name(first, per, tz), start_s, end_s


def _floor(there: datetime, per: _Clocked) -> datetime:
    there = there.replace(second=0, microsecond=0)
    return there if per == "minute" else there.replace(minute=0)


def _clock_name(first: datetime, per: _Clocked, tz: ZoneInfo) -> str:
    name = first.isoformat(timespec="minutes" if per == "minute" else "hours")
    # "Z" says that UTC is meant; an offset of zero is what some other zone has in winter.
    return name.removesuffix("+00:00") + "Z" if tz.key == "UTC" else name


# --- days and what is made of days ------------------------------------------------------------------------------------


def _on_the_calendar(at_s: int, per: _Dated, tz: ZoneInfo) -> tuple[str, int, int]:
    first = _FIRST[per](_datetime(at_s).astimezone(tz).date())
    start_s = _midnight(first, tz)
    # A clock set back over midnight shows yesterday's date again; the new day has begun all the same and goes on.
    while at_s >= (end_s := _midnight(_next(first, per), tz)):
        first, start_s = _next(first, per), end_s
    return _NAME[per](first), start_s, end_s


_FIRST: dict[_Dated, Callable[[date], date]] = {
    "day": lambda day: day,
    "week": lambda day: day - timedelta(days=day.weekday()),
    "month": lambda day: day.replace(day=1),
    "year": lambda day: day.replace(month=1, day=1),
}
_DAYS_MAX: dict[_Dated, int] = {"day": 1, "week": 7, "month": 31, "year": 366}
_NAME: dict[_Dated, Callable[[date], str]] = {
    "day": lambda first: first.isoformat(),
    "week": lambda first: "{}-W{:02}".format(*first.isocalendar()),
    "month": lambda first: first.isoformat()[:7],
    "year": lambda first: first.isoformat()[:4],
}


def _next(first: date, per: _Dated) -> date:
    return _FIRST[per](first + timedelta(days=_DAYS_MAX[per]))


def _midnight(day: date, tz: ZoneInfo) -> int:
    """The second in which the clocks first show `day` or later: its first midnight, or the jump that left it out."""
    midnight = datetime(day.year, day.month, day.day, tzinfo=tz)  # fold=0: the first of two
    by_old_offset, by_new_offset = _seconds(midnight), _seconds(midnight.replace(fold=1))
    if by_new_offset < by_old_offset:  # the clocks were put forward over it
        return _turn(by_new_offset, by_old_offset, tz)
    return by_old_offset


# --- names ------------------------------------------------------------------------------------------------------------


def _moments(name: str, per: Per, tz: ZoneInfo) -> tuple[int, ...]:
    """Moments of which one is in the period of that name, if there is one. Raises `ValueError`, `OverflowError`."""
    match per:
        case "total":
            return (TOTAL.start,)
        case "minute" | "hour":
            first_s = _seconds(_aware(name))
            return first_s * SECOND, (first_s + _STEP_S[per] - 1) * SECOND  # a change of offset may cut off either end
        case "day" | "week" | "month" | "year":
            first = date.fromisoformat(name + _REST[per])
            # The last moment too: the period that contains 1970-01-01T00:00Z begins before it in half of the world.
            return _midnight(first, tz) * SECOND, (_midnight(_next(first, per), tz) - 1) * SECOND


_REST: dict[_Dated, str] = {"day": "", "week": "-1", "month": "-01", "year": "-01-01"}  # of its first date, as ISO 8601
_A: dict[Per, str] = {
    "minute": "a minute", "hour": "an hour", "day": "a day", "week": "a week",
    "month": "a month", "year": "a year", "total": "the one period",
}  # fmt: skip


def _aware(name: str) -> datetime:
    found = datetime.fromisoformat(name)
    if found.tzinfo is None:
        raise ValueError("no offset")
    return found


# --- seconds since 1970 -----------------------------------------------------------------------------------------------


def _datetime(at_s: int) -> datetime:
    return _EPOCH + timedelta(seconds=at_s)


def _seconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(seconds=1)


def _offset(at_s: int, tz: ZoneInfo) -> timedelta:
    offset = _datetime(at_s).astimezone(tz).utcoffset()
    assert offset is not None
    return offset


def _turn(low_s: int, high_s: int, tz: ZoneInfo) -> int:
    """The second at which the offset in force at `high_s` begins; another one is in force at `low_s`.

    Right if the offset changes once in between. The two are at most a day apart, and since 1970 no zone has changed
    twice within six days (tzdata 2026.6).
    """
    offset = _offset(high_s, tz)
    while high_s - low_s > 1:
        middle_s = (low_s + high_s) // 2
        if _offset(middle_s, tz) == offset:
            high_s = middle_s
        else:
            low_s = middle_s
    return high_s
