"""The sentences of alerts, all of them. Pure: exact integers in, text out. A percentage is always of what is used."""

from __future__ import annotations

from engine.core.amounts import format_amount

NS = 1_000_000_000
_DAY_MIN = 24 * 60
_CENTS = 2


def money(amount: int, *, unit: str, scale: int) -> str:
    """`$4.00`, `8,000 neurons`: every digit that counts, and of dollars at least the cents."""
    written = format_amount(abs(amount), scale=scale)
    whole, _, part = written.partition(".")
    sign = "-" if amount < 0 else ""
    if unit == "usd":
        return f"{sign}${int(whole):,}.{part.ljust(_CENTS, '0')}"
    return f"{sign}{int(whole):,}{'.' + part if part else ''} {unit}"


def of_limit(used: int, limit: int, *, unit: str, scale: int) -> str:
    """`80 % used: $4.00 of $5.00`. The percentage is rounded down: 100 only when nothing is left."""
    said = money(used, unit=unit, scale=scale)
    if unit != "usd":
        said = said.removesuffix(f" {unit}")
    return f"{used * 100 // limit} % used: {said} of {money(limit, unit=unit, scale=scale)}"


def pace(remaining: int, *, spent: int, span_ns: int, resets_in_ns: int | None) -> str:
    """`, about 2 h 10 min left at this pace`, of what was `spent` in `span_ns`. "" where nothing was."""
    if remaining <= 0:
        return ", nothing left"
    if spent <= 0 or span_ns <= 0:
        return ""
    left_ns = remaining * span_ns // spent
    if resets_in_ns is not None and left_ns >= resets_in_ns:
        return ", enough until it resets at this pace"
    return f", {lasting(left_ns)} left at this pace"


def lasting(ns: int) -> str:
    """`about 2 h 10 min`, rounded down: nobody should count on more."""
    minutes = ns // NS // 60
    if minutes >= 2 * _DAY_MIN:
        return f"about {minutes // _DAY_MIN} d {minutes % _DAY_MIN // 60} h"
    if minutes >= 60:
        return f"about {minutes // 60} h {minutes % 60} min"
    return f"about {minutes} min" if minutes else "less than a minute"


def refused(used: str) -> str:
    return f"a call did not fit any more and was refused, {used}"


def burst(spent: str, most: str, within_s: int) -> str:
    return f"{spent} spent within {_seconds(within_s)}, more than {most}"


def runaway(spent: str, usual: str) -> str:
    return f"{spent} spent in this hour, more than 4 times what the same hour usually costs ({usual})"


FREEZES = "new calls on it are frozen until an operator lifts it"

FREEZE_REASON = "this hour costs more than 4 times what the same hour usually does"
"""Strangers read it, so it has no amounts."""


def lapses(count: int) -> str:
    calls = "1 call was" if count == 1 else f"{count:,} calls were"
    return f"{calls} never settled today; lapsed holds are charged as the plan says"


def conflicts(count: int, hold: str) -> str:
    some = "1 settlement contradicts" if count == 1 else f"{count:,} settlements contradict"
    return f"{some} what stands, today; the last one is of hold {hold}. Nothing was charged for that"


def unreadable(source: str) -> str:
    return f"the figure of {source} cannot be read; the wallet counts its own calls alone"


def guard(name: str, did: str, label: str, value: str, count: int) -> str:
    times = "" if count == 1 else f" ({count:,} times today)"
    return f"guard {name} {did} {label} {value}{times}"


def loss(first: int, last: int, reason: str) -> str:
    return f"an operator goes on although the store has lost sequences {first:,} to {last:,}: {reason}"


def silent(asks: int, since_s: int) -> str:
    waiting = "1 message waits" if asks == 1 else f"{asks:,} messages wait"
    return f"no engine answers: {waiting} for a decision, the oldest for {_seconds(since_s)}. New calls are not allowed"


TEST = "this is a test; nothing is wrong"


def _seconds(seconds: int) -> str:
    if seconds % 3600 == 0:
        return f"{seconds // 3600} h"
    return f"{seconds // 60} min" if seconds % 60 == 0 else f"{seconds} s"
