"""Dates and times of the wallet's own zone, as people read them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from web.pages.past_words import DAYS

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def local(at: int, zone: str) -> datetime:
    """The moment (ns) by the clocks of that zone, to the microsecond."""
    return (_EPOCH + timedelta(microseconds=at // 1_000)).astimezone(ZoneInfo(zone))


def clock(at: int, zone: str) -> str:
    """`17:03`."""
    return local(at, zone).strftime("%H:%M")


def clock_s(at: int, zone: str) -> str:
    """`17:03:21`."""
    return local(at, zone).strftime("%H:%M:%S")


def clock_ms(at: int, zone: str) -> str:
    """`17:03:21.042`: cut, never rounded."""
    return f"{clock_s(at, zone)}.{at // 1_000_000 % 1_000:03}"


def month_words(day: date) -> str:
    return DAYS.month.format(month=DAYS.months[day.month - 1], year=day.year)


def date_words(day: date) -> str:
    """`30 November 2026`."""
    return DAYS.date.format(day=day.day, month=DAYS.months[day.month - 1], year=day.year)


def whole_date_words(day: date) -> str:
    """`Monday, 30 November 2026`."""
    weekday, month = DAYS.weekdays[day.weekday()], DAYS.months[day.month - 1]
    return DAYS.whole_date.format(weekday=weekday, day=day.day, month=month, year=day.year)
