"""`python -m projector`: one projector process.

Settings: PURSE_NATS_URL, PURSE_WALLET (main), PURSE_DATA (the folder for snapshots and the witness; without it every
start reads the stream from its beginning), PURSE_CONFIG (a `purse.toml`, of which only `[observers]`, `[seals]` and
`[alerts]` are read).
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import structlog

from engine.errors import Misconfigured
from engine.journal import Journal
from engine.process import main
from engine.snapshots import Snapshots
from projector.alerts.running import alerting
from projector.alerts.settings import alerts_of
from projector.observers.settings import ObserverSettings, observers_of
from projector.seals.settings import SealSettings, seals_of
from projector.service import Observing, Projector, Running

log = structlog.get_logger()


async def serve() -> None:
    url = os.environ.get("PURSE_NATS_URL", "nats://127.0.0.1:4222")
    wallet = os.environ.get("PURSE_WALLET", "main")
    data = Path(os.environ["PURSE_DATA"]) if os.environ.get("PURSE_DATA") else None
    snapshots = Snapshots(data, wallet, of="projector") if data is not None else None
    config = Path(os.environ["PURSE_CONFIG"]) if os.environ.get("PURSE_CONFIG") else None
    observers = observers_of(config, environment=os.environ, at=time.time_ns())
    seals = seals_of(config, environment=os.environ)
    alerts = alerts_of(config, environment=os.environ)
    if seals and data is None:
        raise Misconfigured("[seals] needs PURSE_DATA: what is delivered is the witness that is kept there")
    async with (
        Journal.connect(url, wallet=wallet, name="purse-projector") as journal,
        _observing(observers, url, wallet) as observing,
        _delivering(seals, data, wallet) as deliveries,
        alerting(alerts, url, wallet) as alerting_,
    ):
        log.info("projector_starting", wallet=wallet, observers=[observer.name for observer in observers])
        gc.freeze()
        await Projector(
            journal, snapshots=snapshots, data=data, observers=observing, deliveries=deliveries, alerts=alerting_
        ).run()


@asynccontextmanager
async def _observing(settings: list[ObserverSettings], url: str, wallet: str) -> AsyncIterator[Observing | None]:
    if not settings:
        yield None
        return
    from projector.observers.running import observing  # an HTTP client, only where somebody needs one

    async with observing(settings, url, wallet) as observers:
        yield observers


@asynccontextmanager
async def _delivering(settings: SealSettings, data: Path | None, wallet: str) -> AsyncIterator[Running | None]:
    if not settings or data is None:
        yield None
        return
    from projector.seals.deliveries import delivering  # an HTTP client, only where somebody needs one

    async with delivering(settings, data, wallet) as deliveries:
        yield deliveries


if __name__ == "__main__":
    main(serve)
