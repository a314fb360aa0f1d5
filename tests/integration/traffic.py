"""Calls through one client, with its own defaults, while something happens to the wallet: what its callers felt."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from integration.rig import eventually

from engine.client import Purse
from engine.core.messages import Held
from engine.errors import NoAnswer, StreamRefused

ABREAST = 8
PAUSE_S = 0.01  # of a caller between two calls: traffic, not a benchmark
COST = "0.00001"


@dataclass
class Traffic:
    """What became of the calls. `waits_s`: every answered ask's. `handed`: ids whose cost was handed over."""

    held: list[str] = field(default_factory=list)
    handed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)
    waits_s: list[float] = field(default_factory=list)
    silence_s: float = 0.0
    _heard_at: float = field(default_factory=time.monotonic)

    def hear(self, *, began: float) -> None:
        """An answer came. `silence_s` is the longest time in which none did."""
        now = time.monotonic()
        self.waits_s.append(now - began)
        self.silence_s, self._heard_at = max(self.silence_s, now - self._heard_at), now

    @property
    def longest_s(self) -> float:
        return max(self.waits_s)

    async def more(self, calls: int) -> None:
        """Until this many more calls were answered."""
        wanted = len(self.held) + calls
        await eventually(lambda: len(self.held) >= wanted)


@asynccontextmanager
async def traffic_on(purse: Purse, name: str = "t") -> AsyncIterator[Traffic]:
    """Callers at work, each with one call under way, until the block ends; then all finish what they began."""
    traffic, going, numbers = Traffic(), asyncio.Event(), itertools.count(1)
    going.set()

    async def caller() -> None:
        while going.is_set():
            await _call(purse, f"{name}-{next(numbers)}", traffic)
            await asyncio.sleep(PAUSE_S)

    async with asyncio.TaskGroup() as callers:
        for _ in range(ABREAST):
            callers.create_task(caller())
        try:
            yield traffic
        finally:
            going.clear()


async def _call(purse: Purse, id: str, traffic: Traffic) -> None:
    began = time.monotonic()
    try:
        outcome = await purse.hold({"usd": COST}, id=id)
    except (NoAnswer, StreamRefused):
        traffic.unanswered.append(id)
        return
    traffic.hear(began=began)
    if not isinstance(outcome, Held):
        traffic.refused.append(id)
        return
    traffic.held.append(id)
    began = time.monotonic()
    traffic.handed.append(id)
    try:
        await purse.settle(id, {"usd": COST})
        traffic.hear(began=began)
    except (NoAnswer, StreamRefused):
        traffic.unanswered.append(f"{id}:s")
