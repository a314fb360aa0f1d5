"""The projector: follows the stream, keeps the read models, answers who reads, pushes what changed.

It may lag and it may be killed: the engine neither waits for it nor reads what it wrote. Started again it folds from
its newest good snapshot, or from the beginning, and writes the same documents, since each carries the sequence it is
folded up to.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec
import nats.errors
import structlog
from nats.aio.msg import Msg

from engine.core import chain
from engine.core.documents import DayTotals, NotedAt, NotedPage, ProjectorFigures, Status
from engine.core.messages import AnyAsk, Hold
from engine.core.restore import NotRestoredError
from engine.core.tell import read
from engine.errors import NoAnswer, StreamRefused, Untrusted
from engine.follower import Follower
from engine.journal import INBOX, Journal, Stored
from engine.keeper import Keeper
from engine.losses import Losses
from engine.recorded import Recorded
from engine.snapshots import Snapshot, Snapshots, usable
from engine.stream_clock import StreamClock
from engine.witness import Seen, Witness, check_own
from projector.alerts.fold import State
from projector.alerts.running import Alerting
from projector.audited import Audited, earned_of
from projector.days.bucket import Bucket
from projector.days.totals import days_before
from projector.foresight import outcome_of, standings
from projector.projection import Projection
from projector.seals.witness import Line, SealWitness

PUSH_S = 0.25  # at most 4 a second: faster is only flicker
HEARTBEAT_S = 1.0
DETAILS_S = 1.0  # they are larger, and nobody looks so often
DAYS_SHOWN_MAX = 400

log = structlog.get_logger()

_encoder = msgspec.json.Encoder()
_pages = msgspec.json.Decoder(NotedPage)
_labels = msgspec.json.Decoder(dict[str, str])
_holds = msgspec.json.Decoder(Hold)


class _Untold(msgspec.Struct, frozen=True, gc=False):
    """An ask message that waits for its told."""

    seq: int
    ts: int
    raw: bytes
    asks: list[AnyAsk] | None


class _Beside(msgspec.Struct, frozen=True):
    """What a snapshot remembers beside the wallet."""

    projection: msgspec.Raw
    alerts: State


class Observing(Protocol):
    """Whoever reads providers' figures beside the fold. `projector.observers.running.Observers` does."""

    async def run(self, status: Callable[[], Status]) -> None:
        """Observe until cancelled; `status` gives the wallet as of now."""

    def shown(self, status: Status) -> Status:
        """The status, with how reading fares."""


class Running(Protocol):
    """Something that goes on beside the projector."""

    async def run(self) -> None:
        """Until cancelled."""


class Projector:
    """One projector of one wallet.

    Without `snapshots` it starts from the beginning and keeps none; without `data` it has no witness; without
    `observers` nobody here asks providers for their figures; without `deliveries` seals go nowhere else; without
    `alerts` the usual ones are raised and sent to nobody.
    """

    def __init__(
        self,
        journal: Journal,
        *,
        snapshots: Snapshots | None = None,
        data: Path | None = None,
        observers: Observing | None = None,
        deliveries: Running | None = None,
        alerts: Alerting | None = None,
    ) -> None:
        self.projection = Projection(journal.names.wallet)
        self.caught_up = asyncio.Event()
        self._journal = journal
        self._observers, self._deliveries = observers, deliveries
        self.alerts = alerts if alerts is not None else Alerting()
        self._chain = chain.GENESIS
        self._told_seq = 0
        self._keeper = Keeper(snapshots, self._beside) if snapshots is not None else None
        self._untold: deque[_Untold] = deque()
        self._replay_to = 0
        self._clock = StreamClock()
        self._shown: Status | None = None
        self._told_seq = 0
        self._losses = Losses(journal)
        self._data = data
        self._witness = Witness(data, journal.names.wallet, "projector")
        self._seals = SealWitness(data, journal.names.wallet)
        self._follower = Follower(
            journal, after=0, on_message=self._on_message, losses=self._losses, check=self._check_past
        )
        self._kept: Seen | None = None  # how far all documents are in the bucket: no witness of what nobody can read

    async def run(self) -> None:
        """Fold and answer until cancelled. Raises `Untrusted` if the stream contradicts itself."""
        await self._journal.wait_for_stream()
        await self._witness.check(self._journal, self._losses)
        await self._restore()
        self._replay_to = await self._journal.last_seq()
        self._clock.hear(await self._journal.now())
        if not self._replay_to:
            self.caught_up.set()
        bucket = Bucket(self._journal, self.projection)
        await bucket.open()
        self._follower.last = self.projection.wallet.upto
        answers: dict[str, Callable[[bytes], bytes]] = {
            "status": lambda _: _encoder.encode(self._status()),
            "life": lambda id: _encoder.encode(self.projection.life(id.decode(errors="replace"))),
            "plan": lambda _: _encoder.encode(self.projection.wallet.plan),
            "figures": lambda _: _encoder.encode(self._figures()),
            "days": lambda _: _encoder.encode(self._days("")),
            "calendar": lambda before: _encoder.encode(
                days_before(self.projection.totals.values(), before.decode(errors="replace"))
            ),
            "audited": lambda _: _encoder.encode(self._audited()),
            "span": lambda day: _encoder.encode(self.projection.span(day.decode(errors="replace"))),
            "alerts": lambda _: _encoder.encode(self.alerts.shown()),
            **self._noted_answers(),
        }
        for word, answer in answers.items():
            subject = self._journal.names.subject(f"read.{word}")
            await self._journal.client.subscribe(subject, cb=self._answering(answer))
        details = self._journal.names.subject("read.details")
        await self._journal.client.subscribe(details, cb=self._answering_details(bucket))
        if self.alerts.targets:
            subject = self._journal.names.subject("alerts.test")
            await self._journal.client.subscribe(subject, queue="alerts", cb=self._test_alerts)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._follower.run())
                tasks.create_task(self._push())
                tasks.create_task(self._write(bucket))
                tasks.create_task(self._keep_witness())
                tasks.create_task(self._seals.keep())
                if self._observers is not None:
                    tasks.create_task(self._observe(self._observers))
                if self._deliveries is not None:
                    tasks.create_task(self._deliveries.run())
                tasks.create_task(self._alert())
        except asyncio.CancelledError:  # told to stop; whatever else ends it leaves no snapshot behind
            self._seals.write()
            if self._keeper is not None:
                self._keeper.keep_last(self._state())
            raise
        finally:
            if self._journal.client.is_connected and self.caught_up.is_set():
                await self._write_dirty(bucket)
                await bucket.write_final()
                await bucket.write_details()
            if self._kept is not None:
                self._witness.write(self._kept)

    async def _restore(self) -> None:
        """Begin where the newest good snapshot was taken. Raises `Untrusted` if the stream contradicts it."""
        if self._keeper is None:
            return
        for snapshot in self._keeper.snapshots.good():
            try:
                beside = msgspec.json.decode(snapshot.beside, type=_Beside)
                self.projection = Projection.restored(snapshot.wallet, bytes(beside.projection))
            except (NotRestoredError, msgspec.DecodeError, UnicodeDecodeError) as error:
                log.warning("snapshot_skipped", told=snapshot.told, why=str(error))
                continue
            if not await usable(snapshot, self._journal, self._losses):
                self.projection = Projection(self._journal.names.wallet)
                return
            self.alerts.restore(beside.alerts, snapshot.wallet)
            self._chain, self._told_seq = snapshot.chain, snapshot.told
            self._keeper.restored(snapshot.wallet)
            log.info("restored", upto=snapshot.wallet.upto, told=snapshot.told)
            return

    # --- folding ------------------------------------------------------------------------------------------------------

    async def _on_message(self, stored: Stored) -> None:
        if stored.seq > self._replay_to:
            self._clock.hear(stored.ts)
        if stored.kind == "told":
            if stored.seq > self._told_seq:  # a snapshot knows the others
                self._fold(Recorded.read(stored))
                self._keep_snapshot()
        elif stored.kind != "void":
            message = read(stored.data)
            asks = message.asks if message is not None else None
            if asks and stored.kind == "admin":
                self._losses.hear(stored.seq, asks)
            self._untold.append(_Untold(stored.seq, stored.ts, stored.data, asks))
        if not self.caught_up.is_set() and stored.seq >= self._replay_to:
            self.caught_up.set()
            log.info("caught_up", upto=self.projection.wallet.upto)

    def _fold(self, recorded: Recorded) -> None:
        told = recorded.told
        if len(self._untold) < told.n or len(told.told) != told.n:
            raise Untrusted(f"the told at sequence {recorded.seq:,} does not cover the asks before it")
        covered = [self._untold.popleft() for _ in range(told.n)]
        recorded.verify(self._chain, ((u.seq, u.ts, u.raw) for u in covered))
        self._chain, self._told_seq = recorded.chain, recorded.seq
        for untold, entry in zip(covered, told.told, strict=True):
            if entry.seq != untold.seq:
                raise Untrusted(f"the told at sequence {recorded.seq:,} speaks of another message than {untold.seq:,}")
            wallet, alerts = self.projection.wallet, self.alerts.fold
            touched = alerts.before(wallet, untold.asks, entry)
            self.projection.fold(seq=untold.seq, asks=untold.asks, entry=entry)
            alerts.after(wallet, untold.asks, entry, touched)
            for seal in entry.sealed:
                self._seals.see(Line(recorded.seq, recorded.chain.hex(), entry.seq, entry.at, seal))

    def _keep_snapshot(self) -> None:
        """A projection is always that of the newest told. Behind a seal nobody reads again, so its line comes first."""
        if self._keeper is None:
            return
        self._keeper.told()
        if self.caught_up.is_set() and not self._seals.behind and self._keeper.due(self.projection.wallet):
            self._keeper.keep(self._state())

    def _beside(self) -> bytes:
        return _encoder.encode(_Beside(msgspec.Raw(self.projection.beside()), self.alerts.fold.state()))

    def _state(self) -> Snapshot:
        return Snapshot(self.projection.wallet, self._told_seq, self._chain)

    # --- showing ------------------------------------------------------------------------------------------------------

    def _status(self) -> Status:
        status = self.projection.status(self._clock.now())
        status = status if self._observers is None else self._observers.shown(status)
        return msgspec.structs.replace(status, alerts=self.alerts.brief())

    def _figures(self) -> ProjectorFigures:
        folded = self.projection
        return ProjectorFigures(folded.wallet.upto, folded.outcomes, folded.lapsed)

    async def _observe(self, observers: Observing) -> None:
        await self.caught_up.wait()
        await observers.run(self._status)

    # --- alerting -----------------------------------------------------------------------------------------------------

    async def _alert(self) -> None:
        await self.caught_up.wait()
        await self.alerts.run(self._journal, self._status, self._waiting)

    def _waiting(self) -> tuple[int, int]:
        return len(self._untold), self._untold[0].ts if self._untold else 0

    async def _test_alerts(self, message: Msg) -> None:
        """Reads do not wait for it: a subscription of its own hears of this alone."""
        if not INBOX.fullmatch(message.reply):
            return
        found = await self.alerts.test(message.data.decode(errors="replace"), self._journal.names.wallet)
        with suppress(nats.errors.Error):  # who asked hears nothing, and may ask again
            await message.respond(_encoder.encode(found))

    # --- days ---------------------------------------------------------------------------------------------------------

    def _days(self, day: str) -> list[DayTotals]:
        """Totals of the periods of this day ("": all), newest first."""
        found = [totals for totals in self.projection.totals.values() if totals.period.startswith(day)]
        return sorted(found, key=lambda totals: (-totals.start, totals.budget))[:DAYS_SHOWN_MAX]

    def _noted_answers(self) -> dict[str, Callable[[bytes], bytes]]:
        """For edges that leave memos, and look before they hold."""
        return {
            "noted": lambda id: _encoder.encode(
                NotedAt(self.projection.wallet.upto, self.projection.memos.get(id.decode(errors="replace")))
            ),
            "noted_page": lambda asked: _encoder.encode(self.projection.memos.page(_pages.decode(asked))),
            "standings": lambda labels: _encoder.encode(
                standings(self.projection.wallet, _labels.decode(labels), self._clock.now())
            ),
            "would": lambda hold: _encoder.encode(
                outcome_of(self.projection.wallet, _holds.decode(hold), self._clock.now())
            ),
        }

    def _audited(self) -> list[Audited]:
        sealed = {one.day: one.seq for one in self.projection.sealed}
        return [] if self._data is None else earned_of(self._data, self._journal.names.wallet, sealed)

    def _answering(self, answer: Callable[[bytes], bytes]) -> Callable[[Msg], Awaitable[None]]:
        async def on_asked(message: Msg) -> None:
            if not INBOX.fullmatch(message.reply) or not self.caught_up.is_set():
                return
            try:
                said = answer(message.data)
            except msgspec.DecodeError:  # which a client may send; it hears nothing
                log.warning("question_unreadable", subject=message.subject)
                return
            await message.respond(said)

        return on_asked

    def _answering_details(self, bucket: Bucket) -> Callable[[Msg], Awaitable[None]]:
        """Of a day: totals, what was decided on it, details of the periods that are so named; all of one moment."""

        async def on_asked(message: Msg) -> None:
            if not INBOX.fullmatch(message.reply) or not self.caught_up.is_set():
                return
            day = message.data.decode(errors="replace")
            totals = msgspec.Raw(_encoder.encode(self._days(day)))
            wallet_day = self.projection.wallet_days.days.get(day)
            try:
                details = await bucket.details([key for key in self.projection.totals if key[1] == day])
            except (NoAnswer, StreamRefused):
                return  # as if nobody were here: who asks may ask again
            await message.respond(_encoder.encode((totals, wallet_day, details)))

        return on_asked

    async def _push(self) -> None:
        """The newest status whenever it has changed, and a heartbeat otherwise, so that a reader knows it is live."""
        await self.caught_up.wait()
        subject = self._journal.names.subject("live")
        quiet_s = 0.0
        while True:
            status = self._status()
            changed = self._shown is None or (status.seq, status.plan) != (self._shown.seq, self._shown.plan)
            if changed or quiet_s >= HEARTBEAT_S:
                self._shown, quiet_s = status, 0.0
                await self._publish(subject, _encoder.encode(status))
            await asyncio.sleep(PUSH_S)
            quiet_s += PUSH_S

    async def _publish(self, subject: str, document: bytes) -> None:
        try:
            await self._journal.client.publish(subject, document)
        except nats.errors.Error as error:  # the next one is at most a second away
            log.warning("push_failed", error=type(error).__name__)

    # --- keeping ------------------------------------------------------------------------------------------------------

    async def _write(self, bucket: Bucket) -> None:
        """Dirty documents, at most 4 times a second. What will never change again need not wait for the newest told."""
        quiet_s = 0.0
        while True:
            await bucket.write_final()
            if self.caught_up.is_set():
                await self._write_dirty(bucket)
                if quiet_s >= DETAILS_S:
                    await bucket.write_details()
                    quiet_s = 0.0
            await asyncio.sleep(PUSH_S)
            quiet_s += PUSH_S

    async def _write_dirty(self, bucket: Bucket) -> None:
        seen = self._seen()
        if await bucket.write_totals():  # what changed meanwhile is behind what was seen at the beginning
            self._kept = seen

    # --- trusting -----------------------------------------------------------------------------------------------------

    async def _check_past(self) -> None:
        await check_own(self._journal, told=self._told_seq, linked=self._chain)

    async def _keep_witness(self) -> None:
        await self.caught_up.wait()
        await self._witness.keep(lambda: self._kept)

    def _seen(self) -> Seen:
        names = self._journal.names
        return Seen(names.wallet, self._follower.last, self._told_seq, self._chain.hex(), list(self._losses.ids))
