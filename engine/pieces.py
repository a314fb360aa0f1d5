"""A stretch of the stream, message by message, for a reader that may be slow or leave: never much of it is in memory.

The reading half is `follower`'s. It waits while its reader does, and ends with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

from engine.errors import NoAnswer
from engine.follower import Follower
from engine.journal import Journal, Stored
from engine.losses import Losses

AHEAD_MAX = 64  # messages that wait for their reader: of 512 KB at most, mostly of one
SILENCE_S_MAX = 30.0  # nothing comes for so long: nobody will send the rest


async def messages(journal: Journal, *, after: int) -> AsyncGenerator[Stored, None]:
    """Every message behind sequence `after`, in order, for ever. To be closed by whoever has had enough (`aclosing`).

    Raises `Untrusted`, and `NoAnswer` where nothing more comes.
    """
    waiting: asyncio.Queue[Stored] = asyncio.Queue(AHEAD_MAX)
    left = False

    async def take(stored: Stored) -> None:
        if not left:
            await waiting.put(stored)

    following = asyncio.create_task(Follower(journal, after=after, on_message=take, losses=Losses(journal)).run())
    try:
        while True:
            yield await _next(waiting, following)
    finally:
        left = True
        while not waiting.empty():  # one that still waits to be taken must not keep the follower
            waiting.get_nowait()
        following.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await following


async def _next(waiting: asyncio.Queue[Stored], following: asyncio.Task[None]) -> Stored:
    """The next message, or whatever ended the follower."""
    if not waiting.empty():
        return waiting.get_nowait()
    taking = asyncio.create_task(waiting.get())
    try:
        await asyncio.wait({taking, following}, timeout=SILENCE_S_MAX, return_when=asyncio.FIRST_COMPLETED)
        if taking.done():
            return taking.result()
        if following.done():
            following.result()
        raise NoAnswer("the stream was not heard to the end of what was asked for")
    finally:
        taking.cancel()
