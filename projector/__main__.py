"""`python -m projector`: one projector process.

Settings: PURSE_NATS_URL, PURSE_WALLET (main), PURSE_DATA (the folder for snapshots and the witness; without it every
start reads the stream from its beginning).
"""

from __future__ import annotations

import gc
import os
from pathlib import Path

import structlog

from engine.journal import Journal
from engine.process import main
from engine.snapshots import Snapshots
from projector.service import Projector

log = structlog.get_logger()


async def serve() -> None:
    url = os.environ.get("PURSE_NATS_URL", "nats://127.0.0.1:4222")
    wallet = os.environ.get("PURSE_WALLET", "main")
    data = Path(os.environ["PURSE_DATA"]) if os.environ.get("PURSE_DATA") else None
    snapshots = Snapshots(data, wallet, of="projector") if data is not None else None
    async with Journal.connect(url, wallet=wallet, name="purse-projector") as journal:
        log.info("projector_starting", wallet=wallet)
        gc.freeze()
        await Projector(journal, snapshots=snapshots, data=data).run()


if __name__ == "__main__":
    main(serve)
