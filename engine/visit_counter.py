"""The engine's count of strangers' visits, shared by all web processes: over core NATS, in memory, on no record.

Every engine counts, so that a standby that takes over knows what was counted; the one that speaks answers. It guards no
money and decides nothing of the wallet.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from nats.aio.msg import Msg

from engine.core.messages import Visit
from engine.core.visits import Visits

_decoder = msgspec.json.Decoder(Visit)
_encoder = msgspec.json.Encoder()


class VisitCounter:
    """`now`: stream time (ns), whose calendar minutes count. `speaks`: whether this engine is the one that answers.

    `slowed` counts the visits that were told to wait, since this engine started.
    """

    def __init__(self, now: Callable[[], int], speaks: Callable[[], bool]) -> None:
        self.slowed = 0
        self._now, self._speaks = now, speaks
        self._visits = Visits()

    async def on_visit(self, message: Msg) -> None:
        """Count one visit. What is none is not answered: whoever sent it counts for itself."""
        try:
            visit = _decoder.decode(message.data)
        except msgspec.DecodeError:
            return
        counted = self._visits.count(visit.visitor, visit.kind, self._now(), most=visit.most)
        self.slowed += bool(counted.wait_s)
        if message.reply and self._speaks():
            await message.respond(_encoder.encode(counted))
