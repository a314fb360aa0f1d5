"""What each shared budget has cost lately: for the pace, for bursts, and what an hour usually costs. Pure.

Settled amounts alone, whichever period they count to: what others spend on the account comes in leaps, as it is read.
"""

from __future__ import annotations

import msgspec

from projector.alerts.rules import PACE_SLOT_S, PACE_SLOTS, RUNAWAY_DAYS, Burst
from projector.alerts.slots import Slots

HOUR_S = 3600
HOURS = RUNAWAY_DAYS * 24 + 1


class Spending(msgspec.Struct, gc=False):
    """One budget. `first_hour`: when anything was first charged to it; history begins there. `bursts` by slot width."""

    minutes: Slots = msgspec.field(default_factory=lambda: Slots(PACE_SLOT_S, PACE_SLOTS))
    hours: Slots = msgspec.field(default_factory=lambda: Slots(HOUR_S, HOURS))
    first_hour: int = -1
    bursts: dict[str, Slots] = {}

    def add(self, amount: int, at: int) -> None:
        self.minutes.add(amount, at)
        self.hours.add(amount, at)
        if self.first_hour < 0:
            self.first_hour = self.hours.slot(at)

    def within(self, burst: Burst, amount: int, at: int) -> int:
        """Add to this burst's window; what it comes to now."""
        slots = self.bursts.setdefault(f"{burst.slot_s}x{burst.slots}", Slots(burst.slot_s, burst.slots))
        slots.add(amount, at)
        return slots.total

    def this_hour(self, at: int) -> int:
        return self.hours.sums.get(self.hours.slot(at), 0)

    def same_hour_before(self, at: int) -> list[int]:
        """What this hour of the day has cost on each of the last seven days that have history."""
        now = self.hours.slot(at)
        hours = (now - 24 * day for day in range(1, RUNAWAY_DAYS + 1))
        return [self.hours.sums.get(hour, 0) for hour in hours if hour >= self.first_hour >= 0]
