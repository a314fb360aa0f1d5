"""What is to be adjusted for a call that the wallet has forgotten: for every budget and period that counted it.

The ids follow from the hold and its cost, and all adjusts of a call go in one message: on the record they stand
together or not at all, and whoever finds one of them there need not look for the others.
"""

from __future__ import annotations

import hashlib

from engine.core.messages import Adjust, Amounts
from engine.core.wallet import Wallet
from projector.backfill.known import Known, MeterName

PREFIX = "backfill:"
BY_WHOM = "purse backfill"
REASON = "the real cost of a call that ended long ago"


def adjusts_of(wallet: Wallet, known: Known, costs: Amounts) -> tuple[list[Adjust], list[str]]:
    """What makes a charged call cost `costs`, and the budgets that count it no more: gone, or begun anew since."""
    moves: dict[MeterName, int] = {}
    gone: list[str] = []
    for place in known.places:
        if place.unit not in costs:
            continue
        rule = wallet.named.get(place.budget)
        if rule is None or rule.generation != place.generation:
            gone.append(place.budget)
            continue
        moves[place.budget, place.each, place.period] = costs[place.unit] - known.charged.get(place.unit, 0)
    counted = known.charged.keys() | {place.unit for place in known.places}
    new = {unit: amount for unit, amount in costs.items() if amount and unit not in counted}
    moves |= _matching(wallet, new, known.labels, known.at)
    return _adjusts(known.id, costs, moves), gone


def adjusts_of_stray(wallet: Wallet, hold: str, costs: Amounts, labels: dict[str, str], moment: int) -> list[Adjust]:
    """What charges a call nobody ever heard of, to the budgets that match its labels at its time. Zero is said too."""
    return _adjusts(hold, costs, _matching(wallet, costs, labels, moment))


def begun(known: Known, costs: Amounts) -> bool:
    """Whether a backfill of this very cost stands on the record."""
    ours = _prefix(known.id, costs)
    return any(ask.id.startswith(ours) for ask in known.adjusts)


def stands_at(known: Known, costs: Amounts) -> bool:
    """Whether all that was charged and adjusted for it comes to `costs`, in every budget that counts it."""
    adjusted = known.adjusted()
    for unit, amount in costs.items():
        charged = known.charged.get(unit, 0)
        places = [(one.budget, one.each, one.period) for one in known.places if one.unit == unit]
        if any(charged + adjusted[place] != amount for place in places):
            return False
        if not places and charged != amount:
            return False
    return True


def _matching(wallet: Wallet, costs: Amounts, labels: dict[str, str], moment: int) -> dict[MeterName, int]:
    return {
        (place.budget, place.each, place.period.name): amount
        for unit, amount in costs.items()
        for place in wallet.places(unit, labels, moment)
    }


def _adjusts(hold: str, costs: Amounts, moves: dict[MeterName, int]) -> list[Adjust]:
    ours = _prefix(hold, costs)
    return [
        Adjust(f"{ours}{_digest(*place)}", place[0], place[2], amount, REASON, BY_WHOM, place[1], hold)
        for place, amount in moves.items()
    ]


def _prefix(hold: str, costs: Amounts) -> str:
    said = [f"{unit}={amount}" for unit, amount in sorted(costs.items())]
    return f"{PREFIX}{_digest(hold, *said, size=16)}:"


def _digest(*said: str | None, size: int = 6) -> str:
    """Of the parts, each with its length before it, so that no two lists of parts read the same."""
    hashed = hashlib.blake2b(digest_size=size)
    for part in said:
        raw = b"" if part is None else part.encode()
        hashed.update(b"%d:" % (-1 if part is None else len(raw)) + raw)
    return hashed.hexdigest()
