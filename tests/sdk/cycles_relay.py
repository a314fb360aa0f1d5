"""A network between a client and the wallet that loses what a test tells it to lose, as networks do."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import aiohttp
from aiohttp import web

PASSED_ON = ("X-Cycles-API-Key", "X-Idempotency-Key", "Content-Type")


@dataclass
class LosingRelay:
    """`async with` it; a client talks to `url`."""

    wallet: str
    answers_lost: deque[str] = field(default_factory=deque)
    """Ends of paths: the wallet gets and answers the next request to each, and nobody hears it."""
    cut: set[str] = field(default_factory=set)
    """Ends of paths: no request to them gets to the wallet while they stand here."""
    came: list[tuple[str, str]] = field(default_factory=list)
    """End of the path and idempotency key of each POST that came in."""
    url: str = ""
    _lost: asyncio.Event = field(default_factory=asyncio.Event)

    async def lost(self) -> None:
        """Waits until something was lost."""
        async with asyncio.timeout(60):
            await self._lost.wait()

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        end = request.path.rpartition("/")[2]
        if request.method == "POST":
            self.came.append((end, request.headers["X-Idempotency-Key"]))
        if end in self.cut:
            return self._lose(request)
        headers = {name: request.headers[name] for name in PASSED_ON if name in request.headers}
        body = await request.read()
        async with self._http.request(
            request.method, f"{self.wallet}{request.path_qs}", data=body, headers=headers
        ) as answer:
            said = web.Response(status=answer.status, body=await answer.read(), content_type="application/json")
        if end in self.answers_lost:
            self.answers_lost.remove(end)
            return self._lose(request)
        return said

    def _lose(self, request: web.Request) -> web.StreamResponse:
        self._lost.set()
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._pass_on)
        self._http = aiohttp.ClientSession()
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()
        await self._http.close()
