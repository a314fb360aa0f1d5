"""Waits until a server that was just started answers over HTTP."""

from __future__ import annotations

import asyncio
import time

import aiohttp

from bench.child import Child
from engine.errors import NoAnswer

POLL_S = 0.05
ANSWER_WAIT_S = 10.0


async def until_answering(url: str, server: Child, *, wait_s: float) -> None:
    """Until `url` answers with 200. Raises `NoAnswer` after `wait_s`, `EndedError` if the server has ended."""
    gives_up_at = time.monotonic() + wait_s
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ANSWER_WAIT_S)) as session:
        while True:
            try:
                async with session.get(url) as answer:
                    if answer.status == 200:
                        return
            except (aiohttp.ClientError, TimeoutError):
                pass  # it does not listen yet
            server.check()
            if time.monotonic() > gives_up_at:
                raise NoAnswer(f"{server.name} did not answer within {wait_s:g} s: {server.last_words()}")
            await asyncio.sleep(POLL_S)
