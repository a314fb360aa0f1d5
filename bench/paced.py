"""Holds, each with its settle, at an even pace: by turns straight at the engine, and over HTTP through the web.

It says how long each hold took. Nobody waits for anybody: a slow answer does not slow the pace. An ask that is not
granted raises.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator

import aiohttp

from bench.contender import Call
from bench.drive import calls
from bench.purse import PurseClient
from engine.client import Purse


class Paced:
    """`rate`: pairs a second, both ways together."""

    def __init__(self, purse: Purse, session: aiohttp.ClientSession, *, rate: float) -> None:
        self._straight, self._session, self._rate = PurseClient(purse, ()), session, rate
        self._calls: Iterator[Call] = calls()

    async def run(self, seconds: float) -> tuple[list[float], list[float]]:
        """Times of the holds in ms, straight and through the web, each in order of size."""
        straight: list[float] = []
        through: list[float] = []
        began = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for number in itertools.count():
                due_s = number / self._rate
                if due_s >= seconds:
                    break
                await asyncio.sleep(max(0.0, began + due_s - time.perf_counter()))
                tasks.create_task(self._by_web(through) if number % 2 else self._by_engine(straight))
        return sorted(straight), sorted(through)

    async def _by_engine(self, took_ms: list[float]) -> None:
        call, began = next(self._calls), time.perf_counter()
        await self._straight.hold(call)
        took_ms.append(1e3 * (time.perf_counter() - began))
        await self._straight.settle(call)

    async def _by_web(self, took_ms: list[float]) -> None:
        call, began = next(self._calls), time.perf_counter()
        await self._post("/v1/holds", {"id": call.id, "amounts": {"usd": "0.01"}})
        took_ms.append(1e3 * (time.perf_counter() - began))
        await self._post(f"/v1/holds/{call.id}/settle", {"amounts": {"usd": "0.004"}})

    async def _post(self, path: str, body: dict[str, object]) -> None:
        async with self._session.post(path, json=body) as answer:
            answer.raise_for_status()
            await answer.read()
