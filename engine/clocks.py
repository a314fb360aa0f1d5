"""The `clock` asks on one stream: which messages bear stamps that an operator has said are wrong.

A server whose clock was ahead has stamped messages with moments that had not come. An engine stops before it tells
them; a `clock` behind them lets it go on. That `clock` must be known before they are decided, and just as well by
whoever replays them years later, so the stream is looked through for them before reading begins.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from engine.core import checks
from engine.core.messages import AnyAsk, Clock
from engine.core.tell import read
from engine.journal import Journal, Stored
from engine.recorded import Recorded


class Skipping(msgspec.Struct, frozen=True, gc=False):
    """A `clock`, where it lies, and up to which ask message all was told before it."""

    seq: int
    clock: Clock
    upto: int

    def skips(self, seq: int, ts: int) -> bool:
        return self.upto < seq < self.seq and self.clock.start <= ts < self.clock.end


class Clocks:
    """Those that were met or looked for. Of two with the same id only the first counts."""

    def __init__(self) -> None:
        self._known: dict[str, Skipping] = {}

    def skips(self, seq: int, ts: int) -> bool:
        """Whether the message at `seq` with this timestamp is decided at the moment of the one before it."""
        return bool(self._known) and any(one.skips(seq, ts) for one in self._known.values())

    def hear(self, seq: int, asks: Sequence[AnyAsk], *, upto: int) -> bool:
        """Asks at `seq`, before which all messages up to `upto` were told. True if a `clock` among them is new."""
        new = [
            ask for ask in asks if isinstance(ask, Clock) and checks.clock(ask) is None and ask.id not in self._known
        ]
        for ask in new:
            self._known.setdefault(ask.id, Skipping(seq, ask, upto))
        return bool(new)

    async def look(self, journal: Journal, *, after: int) -> None:
        """Through the stream behind `after`: only messages of operators are read, and there are few.

        Raises `NoAnswer`, `StreamRefused`, and `Untrusted` where a told that must be looked at cannot be read.
        """
        while (stored := await journal.next_of("admin", after)) is not None:
            after = stored.seq
            message = read(stored.data)
            asks = message.asks if message is not None else []
            if any(isinstance(ask, Clock) for ask in asks):
                told = await _told_before(journal, stored.seq)
                self.hear(stored.seq, asks, upto=Recorded.read(told).told.upto if told is not None else 0)


async def _told_before(journal: Journal, seq: int) -> Stored | None:
    """The newest told before `seq`. JetStream only looks forward, so the place is halved until it is found."""
    found, low, high = None, 0, seq - 1  # none lies behind `high`; `low` is where the newest one known lies
    while low < high:
        middle = (low + high) // 2
        told = await journal.next_of("told", middle)
        if told is not None and told.seq < seq:
            found, low = told, told.seq
        else:
            high = middle
    return found
