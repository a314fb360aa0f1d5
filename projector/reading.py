"""Where a record is read from: the stream itself, or a copy of it in memory. It hands messages on and judges nothing.

What is wrong with them is for `replay` to say; only what the stream's own follower finds (`engine.follower`) is raised
here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from engine.core.tell import read
from engine.errors import NoAnswer
from engine.follower import Follower
from engine.journal import Journal, Kind, Stored
from engine.losses import Contradiction, KnownLosses, Losses

SILENCE_S_MAX = 30.0  # nothing comes for so long: nobody will send the rest

Take = Callable[[Stored], None]


class Source(Protocol):
    """A wallet's record. `losses`: those an operator has put on it, as far as any was needed."""

    wallet: str

    @property
    def losses(self) -> KnownLosses: ...

    async def last(self) -> int:
        """The highest sequence that can be read now, 0 if there is none."""

    async def any_loss(self) -> bool:
        """Whether an operator has ever accepted a loss on it."""

    async def read(self, take: Take, *, after: int, upto: int | None) -> None:
        """Give every message behind sequence `after` to `take`, in order, up to `upto`; None: for ever."""

    async def at(self, seq: int) -> Stored | None:
        """The one message at this sequence; None if there is none."""

    async def next_of(self, kind: Kind, after: int) -> Stored | None:
        """The first message of this kind behind sequence `after`; None if there is none."""


class _Whole(Exception):
    """The last message has been read."""


class StreamSource:
    """The stream on its server."""

    def __init__(self, journal: Journal) -> None:
        self.wallet = journal.names.wallet
        self.losses = Losses(journal)
        self._journal = journal

    async def last(self) -> int:
        """Raises `Untrusted` where messages are gone from its end, unless a loss covers them."""
        last = end = (await self._journal.check_stream()).last_seq
        while last and await self._journal.read(last) is None:  # nothing would come after the last that can be read
            last -= 1
        if last < end:
            why = f"sequences {last + 1:,} to {end:,} are missing from the stream"
            await self.losses.accept(Contradiction(last + 1, end, why))
        return last

    async def any_loss(self) -> bool:
        return await self.losses.any()

    async def read(self, take: Take, *, after: int, upto: int | None) -> None:
        """Raises `Untrusted`, and `NoAnswer` if the rest does not come."""
        if upto is None:
            await self._follow(take, after)
            return
        clock = asyncio.get_running_loop().time

        async def on_message(stored: Stored) -> None:
            take(stored)
            if stored.seq >= upto:
                raise _Whole
            deadline.reschedule(clock() + SILENCE_S_MAX)

        try:
            async with asyncio.timeout(SILENCE_S_MAX) as deadline:
                with suppress(_Whole):
                    await Follower(self._journal, after=after, on_message=on_message, losses=self.losses).run()
        except TimeoutError as error:
            raise NoAnswer(f"the stream was not heard to its end, sequence {upto:,}") from error

    async def _follow(self, take: Take, after: int) -> None:
        async def on_message(stored: Stored) -> None:
            take(stored)

        await Follower(self._journal, after=after, on_message=on_message, losses=self.losses).run()

    async def at(self, seq: int) -> Stored | None:
        return await self._journal.read(seq)

    async def next_of(self, kind: Kind, after: int) -> Stored | None:
        return await self._journal.next_of(kind, after)


class CopySource:
    """A copy of a stream: every message that is left of it, in any state. Its messages are in memory."""

    def __init__(self, messages: Sequence[Stored], wallet: str = "main") -> None:
        self.wallet = wallet
        self.losses = KnownLosses()
        self._messages = messages
        for stored in messages:  # a loss lies behind the gap that it covers
            if stored.kind == "admin" and (message := read(stored.data)) is not None:
                self.losses.hear(stored.seq, message.asks)

    async def last(self) -> int:
        return self._messages[-1].seq if self._messages else 0

    async def any_loss(self) -> bool:
        return bool(self.losses.ids)

    async def read(self, take: Take, *, after: int, upto: int | None) -> None:
        """Ends with the copy: nothing ever comes behind it."""
        for stored in self._messages:
            if stored.seq > after and (upto is None or stored.seq <= upto):
                take(stored)

    async def at(self, seq: int) -> Stored | None:
        return next((stored for stored in self._messages if stored.seq == seq), None)

    async def next_of(self, kind: Kind, after: int) -> Stored | None:
        return next((stored for stored in self._messages if stored.seq > after and stored.kind == kind), None)
