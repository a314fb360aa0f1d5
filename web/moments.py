"""Moments as people and programs write them at the edge: RFC 3339 in, RFC 3339 UTC out.

Inside, a moment is an integer of nanoseconds since 1970. No float comes near one.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from engine.core.periods import TOTAL
from engine.errors import BadAsk

NS_PER_S = 1_000_000_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WRITTEN = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def format_moment(at: int) -> str:
    """`"2026-11-30T14:05:00.123Z"`: cut to the millisecond, never rounded up past a deadline."""
    second, ns = divmod(at, NS_PER_S)
    return f"{_second(second)}.{ns // 1_000_000:03}Z"


@lru_cache(maxsize=4_096)  # every hold writes two moments, and most of one second are alike
def _second(second: int) -> str:
    return (_EPOCH + timedelta(seconds=second)).isoformat()[:-6]


def format_bound(at: int) -> str | None:
    """As `format_moment`, `None` for a moment that never comes (the end of a `total` budget's period)."""
    return format_moment(at) if at < TOTAL.end else None


def parse_moment(text: str, *, field: str) -> int:
    """Nanoseconds since 1970 of an RFC 3339 time with its offset. Raises `BadAsk` naming `field`."""
    found = _WRITTEN.fullmatch(text)
    if found is None:
        raise BadAsk(field, 'expected a time with its offset, such as "2026-11-30T14:05:00Z"')
    date, clock, fraction, offset = found.groups()
    try:
        moment = datetime.fromisoformat(f"{date}T{clock}{offset.upper().replace('Z', '+00:00')}")
        whole_s = (moment - _EPOCH) // timedelta(seconds=1)
    except (ValueError, OverflowError):
        raise BadAsk(field, "there is no such date or time of day") from None
    at = whole_s * NS_PER_S + int((fraction or "").ljust(9, "0"))
    if not 0 <= at < TOTAL.end:
        raise BadAsk(field, "expected a time from 1970 to 2262")
    return at
