"""`python -m bench.bare PORT`: as little as a hold over HTTP can be, a bare aiohttp handler that awaits the client.

What it leaves out is what the web does beside: whose key it is, what may be asked, problems, ids, amounts in words. The
broker's address, which has credentials in it, comes in `PURSE_NATS_URL`.
"""

from __future__ import annotations

import asyncio
import os
import sys

import msgspec
from aiohttp import web

from bench.loop import loop_factory
from engine.client import Purse


async def serve(port: int) -> None:
    """Until it is killed."""
    async with Purse.connect(os.environ["PURSE_NATS_URL"]) as purse:

        async def hold(request: web.Request) -> web.Response:
            asked = msgspec.json.decode(await request.read())
            outcome = await purse.hold(asked["amounts"], labels=asked["labels"])
            return web.Response(body=msgspec.json.encode(outcome), content_type="application/json")

        app = web.Application()
        app.router.add_post("/v1/holds", hold)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        await asyncio.Event().wait()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(serve(int(sys.argv[1])))
