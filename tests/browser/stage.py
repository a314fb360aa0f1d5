"""A stage for the page: a bare app with `add_page`, a Status that the test sets, and a stream like the API's.

The test moves everything: which figures stand, what time it is, when a document is sent, when the stream breaks.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec
from aiohttp import web

from engine.core.documents import BudgetStatus, Figure, Status
from web.page import NOW, STATUS, add_page
from web.status import document

SECOND = 1_000_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


def moment(written: str) -> int:
    """Nanoseconds since 1970 of `"2026-11-30 17:47:12"` UTC."""
    return int(datetime.fromisoformat(written).replace(tzinfo=UTC).timestamp()) * SECOND


NOON = moment("2026-11-30 17:47:30")
"""What time it is on the stage, 6 h 12 min before the reset."""


def neurons(**changes: object) -> BudgetStatus:
    """A shared daily budget of 10,000 neurons: 52.8 % spent, 6.2 % others, 11.0 % held."""
    budget = BudgetStatus(
        name="neurons", unit="neurons", scale=6, per="day", zone="UTC", period="2026-11-30",
        start=moment("2026-11-30 00:00:00"), resets_at=moment("2026-12-01 00:00:00"), limit=10_000_000_000,
        settled=5_281_400_000, extra=620_000_000, held=1_104_250_000, source="cloudflare",
        observed=Figure("cloudflare", 5_901_400_000, NOON - 20 * SECOND),
    )  # fmt: skip
    return msgspec.structs.replace(budget, **changes)


def dollars(**changes: object) -> BudgetStatus:
    """A shared daily budget of one dollar, amounts public: 31.2 % spent, 4.0 % held."""
    budget = BudgetStatus(
        name="jev", unit="usd", scale=9, per="day", zone="UTC", period="2026-11-30",
        start=moment("2026-11-30 00:00:00"), resets_at=moment("2026-12-01 00:00:00"), limit=1_000_000_000,
        settled=312_640_000, extra=0, held=40_500_000, public="amounts",
    )  # fmt: skip
    return msgspec.structs.replace(budget, **changes)


def standing(*budgets: BudgetStatus, **changes: object) -> Status:
    status = Status("main", seq=123_456, as_of=NOON - 18 * SECOND, plan="p", budgets=list(budgets) or [neurons()])
    return msgspec.structs.replace(status, **changes)


@dataclass
class Stage:
    """`status` is what `GET /` draws. `tell` sends a document to every page that listens, `cut` ends their streams."""

    status: Status | None = None
    now: int = NOON
    refuse_streams: bool = False
    url: str = ""
    _open: set[web.StreamResponse] = field(default_factory=set)
    _cut: asyncio.Event = field(default_factory=asyncio.Event)
    _heard: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def tell(self, status: Status, *, live: bool = True) -> None:
        self.status = status
        for stream in self._open:
            await stream.write(_event(document(status, audience="public", live=live)))

    async def listeners(self, count: int) -> None:
        """Wait until that many pages listen."""
        async with asyncio.timeout(20), self._heard:
            await self._heard.wait_for(lambda: len(self._open) == count)

    def cut(self) -> None:
        self._cut.set()
        self._cut = asyncio.Event()

    async def stream(self, request: web.Request) -> web.StreamResponse:
        if self.refuse_streams:
            raise web.HTTPServiceUnavailable
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        await stream.prepare(request)
        await stream.write(b"retry: 200\n\n")
        await self._count(stream, opened=True)
        try:
            await self._cut.wait()
        finally:
            await self._count(stream, opened=False)
        return stream

    async def _count(self, stream: web.StreamResponse, *, opened: bool) -> None:
        async with self._heard:
            (self._open.add if opened else self._open.discard)(stream)
            self._heard.notify_all()


def _event(said: dict[str, object]) -> bytes:
    return f"event: status\nid: {said['seq']}\ndata: {json.dumps(said)}\n\n".encode()


@asynccontextmanager
async def staged() -> AsyncIterator[Stage]:
    stage = Stage()
    app = web.Application()
    app[STATUS] = lambda: stage.status
    app[NOW] = lambda: stage.now
    app.router.add_get("/v1/status/stream", stage.stream)
    add_page(app)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    stage.url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    try:
        yield stage
    finally:
        stage.cut()
        await runner.cleanup()
