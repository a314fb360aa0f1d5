"""Whether the stream's time runs ahead of this machine's clock. It only ever stops an engine, and decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.decided import Decided
from engine.errors import NoAnswer, StreamRefused, Untrusted
from engine.journal import Journal
from engine.stream_clock import NS, written

CLOCK_AHEAD_S_MAX = 300
CLOCKS_AGREE_S_MAX = 60


class ClockCheck:
    """`now`: this machine's clock, ns."""

    def __init__(self, journal: Journal, now: Callable[[], int]) -> None:
        self._journal, self._now = journal, now

    async def check(self, waiting: Sequence[Decided]) -> None:
        """Raises `Untrusted` if one of these is too far ahead. Waits for nothing if all is well."""
        limit = self._now() + CLOCK_AHEAD_S_MAX * NS
        if waiting[-1].entry.at > limit:  # moments never run backwards: it is the latest
            raise Untrusted(await self._which(next(one for one in waiting if one.entry.at > limit)))

    async def _which(self, decided: Decided) -> str:
        """Which message is ahead, by how much, and which clock may be wrong."""
        now, at = self._now(), decided.entry.at
        whose = "bears the stamp" if at == decided.ts else "comes after one that was told at"
        ahead = (
            f"message {decided.seq:,} {whose} {written(at)}, {(at - now) // NS:,} s ahead of this machine's clock, "
            f"which says {written(now)}: periods would begin and holds lapse too early"
        )
        try:
            off_s = (await self._journal.now() - now) // NS
        except (NoAnswer, StreamRefused):
            return f"{ahead}. One of the two clocks is wrong"
        if abs(off_s) > CLOCKS_AGREE_S_MAX:
            return f"{ahead}. The server's clock is {off_s:+,} s off this machine's now: set the wrong one right"
        return f"{ahead}. The server's clock agrees now, so it was wrong then: `purse doctor` says what can be done"
