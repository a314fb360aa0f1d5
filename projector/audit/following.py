"""An audit that goes on: the record is read from its beginning once more, then as it grows, and everything is checked.

Nothing is said more often than every few seconds, and only if something came.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable

from engine.journal import Stored
from engine.receipts import Receipt
from projector.audit.report import Report
from projector.audit.running import Auditing
from projector.day_range import DayRange
from projector.reading import Source
from projector.replay import Replay
from projector.seals.witness import Line

EVERY_S = 2.0


async def follow(
    source: Source,
    day: DayRange,
    *,
    receipts: Iterable[Receipt] = (),
    witnessed: Iterable[Line] = (),
    after: int,
    every_s: float = EVERY_S,
) -> AsyncIterator[Report]:
    """A report whenever something new was told behind sequence `after`, until something is off, or for ever.

    Raises as `replay` does.
    """
    auditing = Auditing(source, day, receipts=receipts, witnessed=witnessed, decides=True)
    reading = Replay(losses=source.losses)

    def take(stored: Stored) -> None:
        for answered in reading.take(stored):
            auditing.fold(answered)

    following = asyncio.ensure_future(source.read(take, after=0, upto=None))
    said = after
    try:
        while True:
            await asyncio.wait([following], timeout=every_s)
            if following.done():
                await following
            if reading.told > said:
                said = reading.told
                yield auditing.report(reading)
            if following.done():
                return
    finally:
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([following])
