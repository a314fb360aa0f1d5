"""Amounts, shares and moments as operators read them. Exact: no float comes near an amount."""

from __future__ import annotations

from engine.core.amounts import format_amount
from web.statement import SECOND, aligned, grouped, tenths
from web.words import WORDS

NO_FIGURE = "\N{EN DASH}"


def amount(value: int, scale: int) -> str:
    """`1,234.5`: the shortest exact decimal, thousands set apart."""
    return grouped(format_amount(value, scale=scale))


def column(values: list[int], scale: int) -> list[str]:
    """Amounts of one column, written to one number of digits."""
    return aligned([format_amount(value, scale=scale) for value in values]) if values else []


def share(part: int, whole: int) -> str:
    """`70.3 %`, rounded down; a dash where there is no whole."""
    return WORDS.percent.format(share=tenths(max(0, part) * 1000 // whole)) if whole > 0 else NO_FIGURE


def percent(part: int, whole: int) -> str:
    """`70`: for a sentence that says the sign itself."""
    return f"{max(0, part) * 100 // whole}" if whole > 0 else "100"


def drawn(value: int, scale: int) -> float:
    """For a drawing alone."""
    return float(value) / float(10**scale)


def lasting(ns: int) -> str:
    """How long, in the two largest parts that matter: `3 days 4 h`, `6 h 12 min`, `12 min`, `40 s`."""
    seconds = max(0, ns) // SECOND
    minutes = seconds // 60
    if seconds < 90:
        return WORDS.seconds_left.format(s=seconds)
    if minutes < 60:
        return WORDS.minutes_left.format(m=minutes)
    if minutes < 2 * 24 * 60 and minutes % 60 == 0:
        return WORDS.hours_only.format(h=minutes // 60)
    if minutes < 2 * 24 * 60:
        return WORDS.hours_left.format(h=minutes // 60, m=minutes % 60)
    return WORDS.days_left.format(d=minutes // 1440, h=minutes % 1440 // 60)


def counted(number: int) -> str:
    return f"{number:,}"
