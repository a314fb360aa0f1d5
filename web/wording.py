"""What a person reads when a call is refused: which budget, why, and when trying again helps.

Pure: every moment comes in. Amounts come in as text, because only the edge knows how a unit is written.
"""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from engine.core.periods import TOTAL
from engine.core.plan import Budget, Per
from web.moments import NS_PER_S

_OF_PERIOD: dict[Per, str] = {
    "minute": "This minute's", "hour": "This hour's", "day": "Today's", "week": "This week's",
    "month": "This month's", "year": "This year's", "total": "The",
}  # fmt: skip
_KIND: dict[Per, str] = {
    "minute": "minutely", "hour": "hourly", "day": "daily", "week": "weekly", "month": "monthly", "year": "yearly",
    "total": "whole",
}  # fmt: skip


def used_up(budget: Budget | None, *, fits: str, at: int, resets_at: int) -> str:
    """`Today's shared budget is used up. It resets at 00:00 UTC (in 6 h 12 min).`

    Where something still fits, it says so: `Today's shared budget has 0.46 usd left, not enough for this call.`
    """
    state = f"has {fits} left, not enough for this call" if fits else "is used up"
    return f"{_whose(budget)} {state}. {resets(resets_at, at=at, zone=budget.zone if budget else 'UTC')}"


def _whose(budget: Budget | None) -> str:
    whose = "budget" if budget is None or budget.each is not None else "shared budget"
    return f"{_OF_PERIOD[budget.per] if budget is not None else 'The'} {whose}"


def busy(retry_s: int) -> str:
    return f"Other calls are using what is left. Try again in about {retry_s} second{'s' if retry_s != 1 else ''}."


def never_fits(budget: Budget | None, *, limit: str, unit: str, fits: str) -> str:
    """Waiting does not help: the call has to become smaller."""
    kind = _KIND[budget.per] if budget is not None else "whole"
    return (
        f"This call could cost more than the {kind} budget of {limit} {unit}, so it can never be allowed. "
        f"The most that would fit now is {fits} {unit}."
    )


def only_cheaper(budget: Budget | None, *, grade: int | None, at: int, resets_at: int) -> str:
    """`Today's shared budget is nearly used up: cache only. It resets at 00:00 UTC (in 6 h 12 min).`

    Where `grade` is still affordable: `... is running low: only options of grade 2 and above are allowed.`
    """
    left = "is nearly used up: cache only" if grade is None else (
        f"is running low: only options of grade {grade} and above are allowed"
    )  # fmt: skip
    return f"{_whose(budget)} {left}. {resets(resets_at, at=at, zone=budget.zone if budget else 'UTC')}"


def resets(resets_at: int, *, at: int, zone: str) -> str:
    """When it resets, by the clock of the budget's zone, and in how long."""
    if resets_at >= TOTAL.end:
        return "It does not reset."
    local = datetime.fromtimestamp(resets_at // NS_PER_S, UTC).astimezone(ZoneInfo(zone))
    day = f" on {local.day} {local:%B}" if resets_at - at > 86_400 * NS_PER_S else ""
    clock = f"{local:%H:%M}" if local.second == 0 else f"{local:%H:%M:%S}"
    return f"It resets{day} at {clock} {zone} ({within(resets_at - at)})."


def within(ns: int) -> str:
    """`in 6 h 12 min`, rounded up so that nobody comes too early."""
    seconds = max(0, -(-ns // NS_PER_S))
    if seconds < 60:
        return f"in {seconds} s"
    minutes = -(-seconds // 60)
    days, hours, minutes = minutes // 1440, minutes % 1440 // 60, minutes % 60
    if days:
        return f"in {days} d {hours} h" if hours else f"in {days} d"
    if hours:
        return f"in {hours} h {minutes} min" if minutes else f"in {hours} h"
    return f"in {minutes} min"
