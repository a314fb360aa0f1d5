"""`python -m projector`: one projector process. Settings: PURSE_NATS_URL, PURSE_WALLET (main)."""

from __future__ import annotations

import gc
import os

import structlog

from engine.journal import Journal
from engine.process import main
from projector.service import Projector

log = structlog.get_logger()


async def serve() -> None:
    url = os.environ.get("PURSE_NATS_URL", "nats://127.0.0.1:4222")
    wallet = os.environ.get("PURSE_WALLET", "main")
    async with Journal.connect(url, wallet=wallet, name="purse-projector") as journal:
        log.info("projector_starting", wallet=wallet)
        gc.freeze()
        await Projector(journal).run()


if __name__ == "__main__":
    main(serve)
