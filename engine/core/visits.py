"""How often a visitor came within one calendar minute. Pure, and in memory alone: nothing of it is ever on the stream.

These limits slow down, they guard no money: that is what budgets are for.
"""

from __future__ import annotations

from engine.core import limits
from engine.core.messages import Counted, VisitKind

MINUTE_NS = 60_000_000_000
SECOND_NS = 1_000_000_000
PER_MINUTE: dict[VisitKind, int] = {
    "ask": limits.VISITS_ASK_PER_MINUTE,
    "estimate": limits.VISITS_ESTIMATE_PER_MINUTE,
}


class Visits:
    """Counts by visitor and kind. A new minute forgets everything; a clock that steps back does not bring an old one.

    Past `VISITORS_MAX` of a minute whoever is not known yet waits for the next one, so memory stays bounded however
    many addresses somebody has.
    """

    def __init__(self) -> None:
        self._minute = 0
        self._counts: dict[tuple[bytes, VisitKind], int] = {}

    def count(self, visitor: bytes, kind: VisitKind, at: int, *, most: int | None = None) -> Counted:
        """One more visit at `at` (ns). `visitor` is a keyed hash, never an address; `most` a minute go on."""
        most = PER_MINUTE[kind] if most is None else most
        minute = at // MINUTE_NS
        if minute > self._minute:
            self._minute = minute
            self._counts.clear()
        came = self._counts.get((visitor, kind), 0)
        if came >= most or (came == 0 and len(self._counts) >= limits.VISITORS_MAX):
            until = (self._minute + 1) * MINUTE_NS
            return Counted(-(-(until - at) // SECOND_NS), until)
        self._counts[visitor, kind] = came + 1
        return Counted()
