"""An upstream that answers what a test tells it to, and keeps what it was asked. It knows nothing of any provider."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.test_utils import TestServer

Script = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Asked:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return msgspec.json.decode(self.raw)


class ScriptedUpstream:
    """`script` answers the next requests. `aborted` is set when a client of a running answer goes away."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.script: Script = _teapot
        self.aborted = asyncio.Event()
        self.base_url = ""

    @property
    def last(self) -> Asked:
        return self.asked[-1]

    def answers(self, body: object, *, status: int = 200, **headers: str) -> None:
        """With this JSON from now on."""

        async def answer(_: web.Request) -> web.Response:
            written = {name.replace("_", "-"): value for name, value in headers.items()}
            return web.Response(status=status, body=msgspec.json.encode(body), headers=written, content_type=_JSON)

        self.script = answer

    def streams(self, pieces: Iterable[bytes], *, then: Callable[[], Awaitable[None]] | None = None) -> None:
        """These bytes, piece by piece, as a stream of events. `then`: awaited after the last, before the end."""
        kept = list(pieces)

        async def stream(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            for piece in kept:
                await response.write(piece)
            if then is not None:
                await then()
            return response

        self.script = stream

    def streams_for_ever(self, piece: bytes, *, first: bytes = b"") -> None:
        """This piece again and again, until whoever listens leaves."""

        async def stream(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            await response.write(first)
            while True:
                await response.write(piece)
                await asyncio.sleep(0)

        self.script = stream

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        self.asked.append(Asked(request.method, request.path_qs, dict(request.headers), raw))
        try:
            return await self.script(request)
        except (asyncio.CancelledError, ConnectionError):
            self.aborted.set()
            raise


_JSON = "application/json"


async def _teapot(_: web.Request) -> web.StreamResponse:
    return web.Response(status=418)


@asynccontextmanager
async def scripted_upstream() -> AsyncIterator[ScriptedUpstream]:
    """Served on a free port for as long as the block runs."""
    upstream = ScriptedUpstream()
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_route("*", "/{tail:.*}", upstream._handle)
    server = TestServer(app)
    await server.start_server()
    upstream.base_url = str(server.make_url("/v1"))
    try:
        yield upstream
    finally:
        await server.close()
