"""Whether a source's figure is one of this budget: the same unit, the same days, and the plan says so. Pure."""

from __future__ import annotations

from engine.core.plan import Per
from projector.observers.days import period_of, utc_day
from projector.observers.kinds import KINDS, Name


def unfit(observed: Name, *, unit: str, per: Per, zone: str, source: str, at: int) -> str | None:
    """Why figures of `observed` cannot be a budget's with these fields at `at` (ns since 1970); None if they can."""
    kind = KINDS[observed]
    if source != observed:
        return f'its `source` in the plan is {_quoted(source)}, not "{observed}"'
    if unit != kind.unit:
        return f"it counts {unit}, {observed} counts {kind.unit}"
    if per != "day":
        return f"{observed} counts by days, this budget {'is for all time' if per == 'total' else f'by the {per}'}"
    if period_of(utc_day(at), per=per, zone=zone) is None:
        return f"{observed} counts by UTC days, this budget by those of {zone}"
    return None


def _quoted(source: str) -> str:
    return f'"{source}"' if source else "not said"
