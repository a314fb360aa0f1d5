"""One call's life from a stretch of the stream: what names it, and what was told of that. It proves nothing.

`life` proves what it shows and reads the whole record for it. Here nothing is decoded that does not have the id's own
bytes in it, so that a page can have the life of one call among many.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import msgspec

from engine.core.tell import read
from engine.journal import Stored
from engine.recorded import Recorded
from projector.audit.life import Life
from projector.replay import Answered


class Stretch:
    """Every event of the hold `id` among the messages that were taken. `scales`: those of the wallet's units."""

    def __init__(self, id: str, scales: Mapping[str, int]) -> None:
        self.life = Life(id)
        self.life.scales = dict(scales)
        self._bytes = msgspec.json.encode(id)[1:-1]
        self._waiting: deque[Stored] = deque()

    def take(self, stored: Stored) -> None:
        """The next message of the stream. Raises `Untrusted` where a told cannot be read."""
        if stored.kind == "told":
            if self._waiting or self._bytes in stored.data:
                self._told(Recorded.read(stored))
        elif stored.kind != "void" and self._bytes in stored.data:
            self._waiting.append(stored)

    def _told(self, recorded: Recorded) -> None:
        told = recorded.told
        for entry in told.told:
            while self._waiting and self._waiting[0].seq < entry.seq:
                self._waiting.popleft()  # a loss made its told void
            asked = self._waiting.popleft() if self._waiting and self._waiting[0].seq == entry.seq else None
            if asked is None and not entry.lapsed:
                continue
            message = read(asked.data) if asked is not None else None
            asks = message.asks if message is not None else None
            stored = asked or Stored(entry.seq, entry.at, "ask", b"")
            self.life.fold(
                Answered(stored, asks, entry, False, told=recorded.seq, chain=recorded.chain, engine=told.engine)
            )
