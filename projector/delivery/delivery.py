"""Parcels on their way to one receiver: none is lost while the process lives, none is waited for, few are in memory.

At least once: an id is noted as sent after it was taken. What is not taken is tried again for ever, later each time
(one second, then twice as long up to 15 minutes, by chance, and as long as the receiver asks for), behind the others.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque

import structlog

from projector.delivery.parcel import Carrier, NotTaken, Parcel
from projector.delivery.sent import Sent
from projector.observers.pace import Pace

WAITING_MAX = 1_000
BODY_BYTES_MAX = 64 * 1024
FIRST_WAIT_S = 1

log = structlog.get_logger()


class Delivery:
    """One receiver. `name` is how logs call it: never an address."""

    def __init__(self, name: str, carrier: Carrier, sent: Sent, *, pace: Pace | None = None) -> None:
        self.name = name
        self._carrier, self._sent = carrier, sent
        self._pace = pace if pace is not None else Pace(FIRST_WAIT_S, random.random)
        self._waiting: deque[Parcel] = deque()
        self._ids: set[str] = set()
        self._some = asyncio.Event()

    @property
    def waiting(self) -> int:
        """How many parcels are on their way."""
        return len(self._waiting)

    def put(self, parcel: Parcel) -> bool:
        """Deliver this, unless it was or is about to be. False: too many wait (put it again), or it is too large."""
        if parcel.id in self._ids or parcel.id in self._sent:
            return True
        if len(self._waiting) >= WAITING_MAX or len(parcel.body) > BODY_BYTES_MAX:
            log.error("delivery_refused", to=self.name, id=parcel.id, waiting=len(self._waiting))
            return False
        self._waiting.append(parcel)
        self._ids.add(parcel.id)
        self._some.set()
        return True

    async def run(self) -> None:
        """Carry what comes, until cancelled."""
        failures = 0
        while True:
            await self._some.wait()
            try:
                await self._carry()
                failures = 0
            except NotTaken as error:
                failures += 1
                self._waiting.rotate(-1)
                log.warning("not_delivered", to=self.name, why=str(error), tries=failures, waiting=len(self._waiting))
                await asyncio.sleep(self._pace.again_s(failures - 1, retry_after_s=error.retry_after_s))
            if not self._waiting:
                self._some.clear()

    async def _carry(self) -> None:
        parcel = self._waiting[0]
        await self._carrier.carry(parcel)
        self._waiting.popleft()
        self._ids.discard(parcel.id)
        await asyncio.to_thread(self._sent.note, parcel.id)
        log.info("delivered", to=self.name, id=parcel.id)
