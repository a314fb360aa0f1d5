"""`python -m bench.bare PORT`: a bare aiohttp handler that awaits the client's own hold.

The least that can hold over HTTP. No keys, no checks of what comes, no words for people: what our own web process
adds is measured against this. The server's address comes in `BENCH_NATS_URL`, since there may be a password in it.
"""

from __future__ import annotations

import asyncio
import os
import sys

from aiohttp import web

from bench.loop import loop_factory
from engine.client import Purse
from engine.core.messages import Held

LABELS = {"user": "admin", "provider": "openai", "model": "gpt-4.1-mini"}


async def serve(url: str, port: int) -> None:
    """Until it is killed."""
    async with Purse.connect(url) as purse:

        async def hold(request: web.Request) -> web.Response:
            body = await request.json()
            outcome = await purse.hold(body["amounts"], labels=LABELS)
            if not isinstance(outcome, Held):
                raise web.HTTPPaymentRequired
            return web.json_response({"outcome": "held"}, status=201)

        async def ready(request: web.Request) -> web.Response:
            return web.Response()

        app = web.Application()
        app.router.add_post("/v1/holds", hold)
        app.router.add_get("/readyz", ready)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        await asyncio.Event().wait()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=loop_factory()) as loop:
        loop.run(serve(os.environ["BENCH_NATS_URL"], int(sys.argv[1])))
