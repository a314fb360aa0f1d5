"""Every line of the witness of seals, delivered to the other witnesses: a second stream, a webhook.

The file is what is delivered from: what a projector that was killed has not sent goes out after the next start.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import structlog

from projector.delivery.delivery import Delivery
from projector.delivery.parcel import Parcel
from projector.delivery.second_stream import SecondStream
from projector.delivery.sent import Sent
from projector.delivery.webhook import Webhook
from projector.seals.settings import SealSettings
from projector.seals.witness import Line, known, path_of

LOOK_S = 1.0

log = structlog.get_logger()


class SealDeliveries:
    """What the file holds, to all of `deliveries`."""

    def __init__(self, path: Path, wallet: str, deliveries: list[Delivery]) -> None:
        self._path, self._wallet, self._deliveries = path, wallet, deliveries
        self._size = 0

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for delivery in self._deliveries:
                tasks.create_task(delivery.run())
            tasks.create_task(self._look())

    async def _look(self) -> None:
        while True:
            if (size := self._file_bytes()) != self._size:
                lines = await asyncio.to_thread(self._lines)
                self._size = size if lines is not None and self._put(lines) else 0
            await asyncio.sleep(LOOK_S)

    def _file_bytes(self) -> int:
        try:
            return self._path.stat().st_size
        except OSError:
            return 0

    def _lines(self) -> list[Line] | None:
        try:
            return list(known(self._path).lines.values())
        except OSError as error:
            log.warning("seals_not_delivered", why=error.strerror)
            return None

    def _put(self, lines: list[Line]) -> bool:
        """Whether each receiver has, or will have, each of them."""
        taken = [delivery.put(self._parcel(line)) for delivery in self._deliveries for line in lines]
        return all(taken)

    def _parcel(self, line: Line) -> Parcel:
        return Parcel(f"seal:{self._wallet}:{line.seal.day}", msgspec.json.encode(line))


@asynccontextmanager
async def delivering(settings: SealSettings, data: Path, wallet: str) -> AsyncIterator[SealDeliveries]:
    """The deliveries that the settings ask for."""
    from projector.observers.fetch import open_session  # an HTTP client, only where somebody needs one

    async with open_session() as session:
        deliveries = []
        if settings.nats_url:
            stream = SecondStream(settings.nats_url, settings.subject)
            deliveries.append(Delivery("seals_stream", stream, Sent(data, f"{wallet}-seals-stream")))
        if settings.webhook_url:
            webhook = Webhook(session, url=settings.webhook_url, secret=settings.webhook_secret, now=time.time)
            deliveries.append(Delivery("seals_webhook", webhook, Sent(data, f"{wallet}-seals-webhook")))
        yield SealDeliveries(path_of(data, wallet), wallet, deliveries)
