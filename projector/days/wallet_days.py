"""What was decided on each day of the wallet and is of no one budget: refusals by reason, conflicts, the invalid."""

from __future__ import annotations

from collections.abc import Iterable

from engine.core.documents import WalletDay
from engine.core.messages import (
    AnyOutcome,
    Conflict,
    Cooling,
    Exhausted,
    Forgotten,
    Frozen,
    Invalid,
    Late,
    Revoked,
    Unknown,
)


class WalletDays:
    """Every day on which anything was refused or wrong. `dirty`: those that changed since they were written."""

    def __init__(self, days: Iterable[WalletDay] = ()) -> None:
        self.days = {one.day: one for one in days}
        self.dirty = set(self.days)

    def take(self, day: str, seq: int, outcome: AnyOutcome) -> None:
        """Count an outcome that was told on this day; what was granted or charged passes by."""
        match outcome:
            case Exhausted():
                self._refused(day, seq, outcome.why)
            case Frozen() | Cooling() | Revoked() | Late():
                self._refused(day, seq, str(outcome.__struct_config__.tag))
            case Conflict():
                self._of(day, seq).conflicts += 1
            case Invalid():
                self._of(day, seq).invalid += 1
            case Unknown():
                self._of(day, seq).unknown += 1
            case Forgotten():
                self._of(day, seq).forgotten += 1
            case _:
                pass

    def _refused(self, day: str, seq: int, why: str) -> None:
        one = self._of(day, seq)
        one.refused = {**one.refused, why: one.refused.get(why, 0) + 1}

    def _of(self, day: str, seq: int) -> WalletDay:
        one = self.days.get(day)
        if one is None:
            one = self.days[day] = WalletDay(day, seq)
        one.seq = seq
        self.dirty.add(day)
        return one
