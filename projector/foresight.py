"""What would be told: how budgets stand for a call with some labels, what a hold would hear now. It changes nothing.

The engine's own `decide` looks at the wallet as it is folded here. Nothing is promised: the engine may know more.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.core.decide import decide
from engine.core.documents import Standing
from engine.core.messages import AnyOutcome, Hold
from engine.core.wallet import Wallet


def standings(wallet: Wallet, labels: Mapping[str, str], at: int) -> list[Standing]:
    """Every budget that a call with these labels touches at `at`, whatever its unit, in plan order."""
    found: list[Standing] = []
    for unit in wallet.rules:
        for place in wallet.places(unit, labels, at):
            meter, period = place.meter, place.period
            used = (meter.settled, meter.held, meter.extra) if meter is not None else (0, 0, 0)
            found.append(
                Standing(place.budget, unit, period.name, period.start, period.end, place.limit, *used, place.each)
            )
    order = {name: index for index, name in enumerate(wallet.named)}
    return sorted(found, key=lambda standing: order[standing.budget])


def outcome_of(wallet: Wallet, hold: Hold, at: int) -> AnyOutcome:
    """What this hold would be told at `at`, were it asked."""
    return decide(wallet, hold, max(at, wallet.at))
