"""`python -m projector`: one projector process.

Settings: PURSE_NATS_URL, PURSE_WALLET (main), PURSE_DATA (the folder for snapshots and the witness; without it every
start reads the stream from its beginning), PURSE_CONFIG (a `purse.toml`, of which only `[observers]` is read).
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import structlog

from engine.journal import Journal
from engine.process import main
from engine.snapshots import Snapshots
from projector.observers.settings import ObserverSettings, observers_of
from projector.service import Observing, Projector

log = structlog.get_logger()


async def serve() -> None:
    url = os.environ.get("PURSE_NATS_URL", "nats://127.0.0.1:4222")
    wallet = os.environ.get("PURSE_WALLET", "main")
    data = Path(os.environ["PURSE_DATA"]) if os.environ.get("PURSE_DATA") else None
    snapshots = Snapshots(data, wallet, of="projector") if data is not None else None
    config = Path(os.environ["PURSE_CONFIG"]) if os.environ.get("PURSE_CONFIG") else None
    observers = observers_of(config, environment=os.environ, at=time.time_ns())
    async with (
        Journal.connect(url, wallet=wallet, name="purse-projector") as journal,
        _observing(observers, url, wallet) as observing,
    ):
        log.info("projector_starting", wallet=wallet, observers=[observer.name for observer in observers])
        gc.freeze()
        await Projector(journal, snapshots=snapshots, data=data, observers=observing).run()


@asynccontextmanager
async def _observing(settings: list[ObserverSettings], url: str, wallet: str) -> AsyncIterator[Observing | None]:
    if not settings:
        yield None
        return
    from projector.observers.running import observing  # an HTTP client, only where somebody needs one

    async with observing(settings, url, wallet) as observers:
        yield observers


if __name__ == "__main__":
    main(serve)
