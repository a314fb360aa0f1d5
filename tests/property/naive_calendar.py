"""The calendar of the naive auditor: periods found by looking at what clocks show, a quarter of an hour at a time.

It must share nothing with `engine.core.periods`, whose boundaries it checks.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

SECOND = 1_000_000_000
FOREVER = 2**63 - 1

Period = tuple[str, int, int]
"""Name, start, end."""


def local(at: int, zone: str) -> datetime:
    return datetime.fromtimestamp(at // SECOND, UTC).astimezone(ZoneInfo(zone))


def first_day(day: date, per: str) -> date:
    if per == "week":
        return day - timedelta(days=day.weekday())
    if per == "month":
        return day.replace(day=1)
    return day.replace(month=1, day=1) if per == "year" else day


@cache
def next_first_day(day: date, per: str) -> date:
    later = day + timedelta(days=1)
    while first_day(later, per) == day:
        later += timedelta(days=1)
    return later


@cache
def start_of(day: date, zone: str) -> int:
    """The first quarter of an hour in which a clock there shows `day` or a later one."""
    quarter = 900 * SECOND
    at = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * SECOND - 96 * quarter
    while local(at, zone).date() < day:
        at += quarter
    return at


def clock_name(at: int, per: str, zone: str) -> str:
    name = local(at, zone).isoformat(timespec="hours" if per == "hour" else "minutes")
    return name.replace("+00:00", "Z") if zone == "UTC" else name


def period_at(at: int, per: str, zone: str) -> Period:
    if per == "total":
        return "total", 0, FOREVER
    return clock_period(at, per, zone) if per in ("minute", "hour") else dated_period(at, per, zone)


def clock_period(at: int, per: str, zone: str) -> Period:
    minute = 60 * SECOND
    name = clock_name(at, per, zone)
    start = end = at - at % minute
    while clock_name(start - minute, per, zone) == name:
        start -= minute
    while clock_name(end, per, zone) == name:
        end += minute
    return name, start, end


def dated_period(at: int, per: str, zone: str) -> Period:
    day = first_day(local(at, zone).date(), per)
    name = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m", "year": "%Y"}[per]
    return day.strftime(name), start_of(day, zone), start_of(next_first_day(day, per), zone)


def period_named(name: str, per: str, zone: str) -> Period | None:
    """The period so called, found by trying moments that could be in it; None if there is none."""
    moments = [0]
    try:
        if per in ("minute", "hour"):
            first = int(datetime.fromisoformat(name).astimezone(UTC).timestamp()) * SECOND
            moments = [first + minute * 60 * SECOND for minute in range(60)]
        elif per != "total":
            rest = {"day": "", "week": "-1", "month": "-01", "year": "-01-01"}[per]
            moments = [start_of(date.fromisoformat(name + rest), zone)]
    except ValueError:
        return None
    return next((period for at in moments if (period := period_at(at, per, zone))[0] == name), None)
