"""Amounts of Cycles into ours and back. Its US dollars come in parts of 10^-8, ours are finer, so nothing is lost."""

from __future__ import annotations

from collections.abc import Mapping

from engine.core.limits import AMOUNT_MAX
from engine.core.messages import Amounts
from web.cycles.refusals import invalid
from web.cycles.requests import Amount, Unit

UNITS: dict[Unit, tuple[str, int]] = {
    "USD_MICROCENTS": ("usd", 8),
    "TOKENS": ("tokens", 0),
    "CREDITS": ("credits", 0),
    "RISK_POINTS": ("risk_points", 0),
}
"""Its name -> ours, and how many digits after the point its amounts have."""

NAMES: dict[str, Unit] = {ours: name for name, (ours, _) in UNITS.items()}


def parts_of(unit: Unit, scales: Mapping[str, int]) -> int:
    """How many of our smallest parts are one of Cycles'."""
    ours, digits = UNITS[unit]
    return int(10 ** max(0, scales[ours] - digits))


def ours(amount: Amount, each: int, *, field: str) -> Amounts:
    """Raises `Refused` 400 for more than a wallet can count."""
    parts = amount.amount * each
    if parts > AMOUNT_MAX:
        raise invalid(f"{field}.amount", "more than this wallet can count")
    return {UNITS[amount.unit][0]: parts}


def up(parts: int, each: int) -> int:
    """What was used is rounded up."""
    return -(-parts // each)


def written(unit: Unit, amount: int) -> dict[str, object]:
    return {"unit": unit, "amount": amount}
