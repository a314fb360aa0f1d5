"""`python -m web`: one web process. Reads its settings from the environment (`web.settings`) and nothing else.

On SIGTERM it stops accepting, ends live streams, lets running requests finish for up to 10 seconds, and sends what must
not be lost. Exit codes are those of `engine.process`.
"""

from __future__ import annotations

import asyncio
import os

import structlog
from aiohttp import web

from engine.client import Purse
from engine.errors import Misconfigured
from engine.process import main
from web.app import make_app
from web.desk import DESK
from web.settings import Settings, from_environment

FINISH_S = 10.0
KEEP_ALIVE_S = 75.0

log = structlog.get_logger()


async def serve() -> None:
    """Serve until cancelled."""
    settings = from_environment(os.environ)
    async with (
        Purse.connect(settings.nats_url, wallet=settings.wallet, data=settings.data) as purse,
        asyncio.TaskGroup() as tasks,
    ):
        app = make_app(purse, settings)
        board = tasks.create_task(app[DESK].board.run())
        runner = web.AppRunner(
            app,
            access_log=None,
            shutdown_timeout=FINISH_S,
            keepalive_timeout=KEEP_ALIVE_S,
            handler_cancellation=True,  # whoever leaves cancels its request: the client then takes back what it held
        )
        try:
            await runner.setup()
            await _listen(runner, settings)
            await board  # for ever
        finally:
            await runner.cleanup()


async def _listen(runner: web.AppRunner, settings: Settings) -> None:
    site = web.TCPSite(runner, settings.host, settings.port)
    try:
        await site.start()
    except OSError as error:
        where = f"{settings.host}:{settings.port}"
        why = error.strerror or type(error).__name__
        raise Misconfigured(f"cannot listen on {where} ({why}); PURSE_HOST and PURSE_PORT choose another") from error
    log.info("web_listening", url=site.name, wallet=settings.wallet, open=settings.open, keys=bool(settings.admin_key))


if __name__ == "__main__":
    main(serve)
