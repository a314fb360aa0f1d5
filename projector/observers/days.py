"""Which UTC days are read at a moment, and which period of a budget each of them is. Pure.

All sources count by UTC days, so only a budget whose period is that very day can be observed.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from engine.core import periods
from engine.core.plan import Per

SECOND = 1_000_000_000
_EPOCH = date(1970, 1, 1)
_DAY_S = 86_400


def utc_day(at: int) -> date:
    """The UTC day that contains `at` (ns since 1970)."""
    return datetime.fromtimestamp(at // SECOND, UTC).date()


def start_s(day: date) -> int:
    """The UTC midnight with which `day` begins, in seconds since 1970."""
    return (day - _EPOCH).days * _DAY_S


def days_to_read(at: int, *, quiet_s: int, read_on_s: int) -> list[date]:
    """The days whose figure is to be read at `at`, oldest first.

    Figures lag, so for `read_on_s` after midnight the day that has just ended is read on. In the first `quiet_s` of a
    day it is not read itself: a source that does not say which day it speaks of may still speak of the last one.
    """
    today = utc_day(at)
    into_s = at // SECOND - start_s(today)
    ended = [today - timedelta(days=1)] if into_s < read_on_s else []
    return ended + ([today] if into_s >= quiet_s else [])


def period_of(day: date, *, per: Per, zone: str) -> str | None:
    """The name of the budget's period that is exactly this UTC day; None if there is none."""
    at = start_s(day) * SECOND
    period = periods.period_at(at, per=per, zone=zone)
    return period.name if period == periods.period_at(at, per="day", zone="UTC") else None
