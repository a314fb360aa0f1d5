"""Exact settlements that came too late to be charged, and by how much they differ from what is: until an adjust names
their hold. Nothing here is charged to anybody."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from engine.core.documents import Life
from engine.core.messages import Amounts

DIFFERENCES_MAX = 10_000  # holds whose difference is remembered by name, the oldest first


class Difference(msgspec.Struct, gc=False):
    """What a hold is said to have cost, and by how much that differs, by budget and period, until it was adjusted."""

    hold: str
    said: Amounts
    open: dict[str, tuple[str, int]]


class Differences:
    """The newest difference of every hold that has any. One that was adjusted stays, so that it is not told again."""

    def __init__(self, known: Iterable[Difference] = ()) -> None:
        self.by_hold = {one.hold: one for one in known}

    def show(self, hold: str, said: Amounts, found: dict[str, tuple[str, int]]) -> Difference | None:
        """What is known of this hold gives way to `found` (budget -> period, difference).

        Returns what gave way, with nothing in it if there was none; None if the same was said before.
        """
        before = self.by_hold.get(hold)
        if before is not None and before.said == said:
            return None
        if before is None and len(self.by_hold) >= DIFFERENCES_MAX:
            self._let_go()
        self.by_hold[hold] = Difference(hold, said, found)
        return before if before is not None else Difference(hold, {}, {})

    def adjusted(self, hold: str, budget: str, period: str) -> int | None:
        """The difference that an adjust of this hold ends; None if there is none."""
        one = self.by_hold.get(hold)
        if one is None or one.open.get(budget, ("", 0))[0] != period:
            return None
        return one.open.pop(budget)[1]

    def _let_go(self) -> None:
        """The oldest that was adjusted, else the oldest, whose difference then stays in its totals."""
        oldest = next((hold for hold, one in self.by_hold.items() if not one.open), next(iter(self.by_hold)))
        del self.by_hold[oldest]


def differences_of(
    life: Life, said: Amounts, units: Mapping[str, str], *, rest_is_zero: bool
) -> dict[str, tuple[str, int]]:
    """By how much what is said of a call differs from what it was charged: budget -> period, difference.

    `units`: of every budget. Of a unit that is not said nothing differs, unless the rest is zero.
    """
    found = {}
    for budget, period in life.periods.items():
        charged = life.charged.get(units[budget], 0)
        difference = said.get(units[budget], 0 if rest_is_zero else charged) - charged
        if difference:
            found[budget] = (period, difference)
    return found
