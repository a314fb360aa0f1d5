"""Sends every alert to one target: at least once, never after it was recorded as sent, none that is old.

    look at its record ─> claim it ─> send ─> record that it was taken
                              └─ not taken: record when to try again, for whichever projector comes first then

One alert at a time; while one waits for its next try the others go on. A projector that dies while it sends leaves its
claim behind: another takes it over once it has stood unchanged, by its own clock, for longer than a sending may take.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable, Mapping

import structlog

from engine.errors import NoAnswer, StreamRefused
from projector.alerts.alert import Alert
from projector.alerts.records import Record, Records, SendState
from projector.alerts.target import Target, parcel_of
from projector.delivery.parcel import NotTaken
from projector.observers.pace import Pace

LOOK_S = 0.5
FIRST_WAIT_S = 1  # before the second try; then twice as long each time, up to 15 minutes
CLAIM_SPARE_S = 5  # a claim is another's for so long past the answer's deadline
AGE_S_MAX = 24 * 3600  # an alert that is older is recorded as missed, not sent
RECORD_AGAIN_S = 0.5

log = structlog.get_logger()


class Sending:
    """One target of one projector. `instance` names this projector; `now` is stream time in ns."""

    def __init__(
        self,
        target: Target,
        records: Records,
        *,
        wallet: str,
        instance: str,
        now: Callable[[], int],
        pace: Pace | None = None,
    ) -> None:
        self.target = target
        self._records, self._wallet, self._instance, self._now = records, wallet, instance, now
        self._pace = pace if pace is not None else Pace(FIRST_WAIT_S, random.random)
        self._known: dict[str, Record] = {}
        self._again_at: dict[str, int] = {}  # by this machine's clock, ns
        self._foreign: dict[str, tuple[int, float]] = {}  # others' claims: their place, and since when it is seen

    @property
    def name(self) -> str:
        return self.target.settings.name

    def known(self, id: str) -> Record | None:
        """What is known here of this alert's record."""
        return self._known.get(id)

    async def run(self, alerts: Callable[[], Mapping[str, Alert]]) -> None:
        """Send what is raised, until cancelled."""
        while True:
            raised = alerts()
            for alert in list(raised.values()):
                await self._try(alert)
            self._forget(raised)
            await asyncio.sleep(LOOK_S)

    async def _try(self, alert: Alert) -> None:
        known = self._known.get(alert.id)
        if (known is not None and known.over) or self._again_at.get(alert.id, 0) > time.time_ns():
            return
        try:
            await self.look(alert)
        except (NoAnswer, StreamRefused) as error:  # nothing is sent of which nobody could record it
            log.warning("alert_not_recorded", to=self.name, id=alert.id, why=str(error))

    async def look(self, alert: Alert) -> None:
        """Bring one alert as far as it can be brought now. Raises `NoAnswer` or `StreamRefused`."""
        record, place = await self._records.read(alert.id, self.name)
        if record is not None:
            self._known[alert.id] = record
            if record.over or self._is_anothers(record, place):
                return
        tries = record.tries if record is not None else 0
        if alert.at < self._now() - AGE_S_MAX * 1_000_000_000:
            await self._write(self._record(alert, "missed", tries), place)
            return
        if record is not None and record.state == "waiting" and record.again_at > time.time_ns():
            self._again_at[alert.id] = record.again_at
            return
        claimed = await self._write(self._record(alert, "sending", tries + 1), place)
        if claimed is not None:
            await self._send(alert, tries + 1, claimed)

    def _is_anothers(self, record: Record, place: int) -> bool:
        """Whether somebody else may be sending it at this moment."""
        if record.state != "sending" or record.by == self._instance:
            return False
        since = self._foreign.setdefault(record.alert, (place, time.monotonic()))
        if since[0] != place:
            since = self._foreign[record.alert] = (place, time.monotonic())
        return time.monotonic() - since[1] < self.target.settings.timeout_s + CLAIM_SPARE_S

    async def _send(self, alert: Alert, tries: int, claimed: int) -> None:
        try:
            await self.target.carrier.carry(parcel_of(alert, self.target.settings.kind, self._wallet))
        except NotTaken as error:
            wait_s = self._pace.again_s(tries - 1, retry_after_s=error.retry_after_s)
            again_at = time.time_ns() + int(wait_s * 1_000_000_000)
            log.warning("alert_not_taken", to=self.name, id=alert.id, why=str(error), tries=tries)
            record = self._record(alert, "waiting", tries, again_at=again_at, why=str(error))
            await self._write_at_last(record, claimed)
            return
        log.info("alert_sent", to=self.name, id=alert.id, tries=tries)
        await self._write_at_last(self._record(alert, "sent", tries), claimed)

    async def _write_at_last(self, record: Record, instead_of: int) -> None:
        """What has happened must be recorded, however long the stream is away. Somebody who took over writes for us."""
        while True:
            try:
                await self._write(record, instead_of)
                return
            except (NoAnswer, StreamRefused) as error:
                log.warning("alert_not_recorded", to=self.name, id=record.alert, why=str(error))
                await asyncio.sleep(RECORD_AGAIN_S)

    async def _write(self, record: Record, instead_of: int) -> int | None:
        place = await self._records.write(record, instead_of=instead_of)
        if place is not None:
            self._known[record.alert] = record
            self._again_at[record.alert] = record.again_at
        return place

    def _record(self, alert: Alert, state: SendState, tries: int, *, again_at: int = 0, why: str = "") -> Record:
        return Record(alert.id, self.name, state, self._instance, self._now(), tries, again_at, why)

    def _forget(self, raised: Iterable[str]) -> None:
        """What is remembered no more as raised need not be known here."""
        kept = set(raised)
        for memory in (self._known, self._again_at, self._foreign):
            for id in [id for id in memory if id not in kept]:
                del memory[id]
