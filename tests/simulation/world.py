"""A whole wallet in virtual time: server, engines, projector, clients, and what troubles them, from one seed.

    world = World(seed); world.run()  ->  a storm, then calm weather until everything has come to its end

Nothing of ours is replaced: `Journal`, `Follower`, `Engine`, `Asker`, `Purse` and `Projector` run as they are.
"""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import structlog
from simulation.callers import CENT, Caller, Handed, Notes
from simulation.disk import Disk
from simulation.memory_nats import MemoryServer, Stream
from simulation.storm import Storm
from simulation.troubles import Troubles
from simulation.virtual_time import NS, Process, VirtualLoop, here, virtual_time

from engine.client import Purse
from engine.core.messages import ApplyPlan, AskMessage, Settle
from engine.core.plan import Budget, Plan
from engine.core.tell import read
from engine.errors import NoAnswer, PurseError, Untrusted
from engine.journal import Journal, Stored
from engine.replaying import DECIDED_AGAIN
from engine.service import Engine
from engine.snapshots import Snapshots
from projector.days.bucket import documents as documents_of
from projector.projection import Projection
from projector.service import Projector

NATS = "nats://in-memory"
WALLET = "main"
BUCKET = f"$KV.PURSE_{WALLET}_days."
MIDNIGHT_NS = int(datetime(2026, 12, 1, tzinfo=UTC).timestamp()) * NS
CALM_WITHIN_S = 300.0  # of virtual time: far more than any retry, lapse or restart takes
SAFE_WITHIN_S = 2.0  # what was settled is on the stream or on disk by then: 1 s, the door before it, the disk after it
SNAPSHOTS_AFTER_S = (2.0, 10.0, 60.0)
DECIDE_AGAIN = (0, 8, DECIDED_AGAIN)  # of the newest sequences, at an engine's start
EVERYTHING = frozenset({"spool", "snapshots", "witness"})
STORMS_S = (12.0, 30.0, 170.0)

PLAN = Plan(
    {
        "jev": Budget("usd", 100 * CENT, per="day", where={"provider": "jev"}),
        "each-user": Budget("usd", 70 * CENT, per="hour", each="user"),
    }
)


class Slot:
    """A place where one program runs, and is started again when it has ended."""

    def __init__(self, world: World, name: str, work: Callable[[Slot], Awaitable[None]], *, skew_ns: int = 0) -> None:
        self.world, self.name, self.skew_ns = world, name, skew_ns
        self.folder = name
        self._work = work
        self.starts = 0
        self.process = Process(f"{name}-0")
        self.process.alive = False
        self.task: asyncio.Task[None] | None = None
        self.ends: list[BaseException] = []

    def start(self) -> None:
        self.starts += 1
        self.process = Process(f"{self.name}-{self.starts}", skew_ns=self.skew_ns)
        self.world.processes.append(self.process)
        self.task = self.process.spawn(self._work(self))  # type: ignore[arg-type]

    def stop(self) -> None:
        """SIGTERM."""
        if self.task is not None:
            self.task.cancel()

    @property
    def running(self) -> bool:
        """Runs, or sleeps. A program that ended by itself says why in `ends`."""
        if self.task is not None and self.task.done():
            if not self.task.cancelled() and (error := self.task.exception()) is not None:
                while isinstance(error, BaseExceptionGroup):
                    error = error.exceptions[0]
                self.ends.append(error)
            self.task = None
            self.process.ended = self.process.alive
            self.process.kill()
        return self.process.alive


class World:
    """Everything of one seed. What is not given is drawn: `engines` by their patience, `befalls` what troubles them.

    `keeps`: what programs keep on disk, of `EVERYTHING`. `again`: the command that shows this world again.
    """

    def __init__(
        self,
        seed: int,
        *,
        engines: Sequence[float] | None = None,
        clients: int | None = None,
        calls: int | None = None,
        storm_s: float | None = None,
        befalls: Callable[[World], Awaitable[None]] | None = None,
        keeps: Collection[str] | None = None,
        plan: Plan | None = None,
        again: str = "",
    ) -> None:
        self.seed = seed
        self.plan = PLAN if plan is None else plan
        self.die = die = random.Random(f"world {seed}")
        self.again = again or f"pytest {os.environ.get('PYTEST_CURRENT_TEST', '').split(' ')[0]}"
        self.storm = Storm(seed)
        self.troubles = Troubles(self)
        self.notes = Notes()
        self.purses: dict[str, Purse] = {}
        self.engines: dict[str, Engine] = {}
        self.projector: Projector | None = None
        self.calm = asyncio.Event()
        self.trace: list[str] = []
        drawn = [die.choice((0.0, 0.15)), die.choice((0.0, 0.15, 0.3))][: die.choice((1, 2, 2, 2))]
        self.patience_s = drawn if engines is None else engines
        self.engine_slots = [
            Slot(self, f"engine{n}", self._engine, skew_ns=int(die.uniform(-60, 60) * NS))
            for n in range(len(self.patience_s))
        ]
        self.projector_slot = Slot(self, "projector", self._projector)
        self.client_slots = [
            Slot(self, f"client{n}", self._client, skew_ns=int(die.choice((0, 0, die.uniform(-90, 90))) * NS))
            for n in range(clients if clients is not None else die.choice((1, 2, 3)))
        ]
        if die.random() < 0.5:
            for slot in self.client_slots:
                slot.folder = "clients"
        self.calls = die.randint(5, 12) if calls is None else calls
        self.storm_s = die.choices(STORMS_S, (6, 4, 1))[0] if storm_s is None else storm_s
        drawn_keeps = {kind for kind in sorted(EVERYTHING) if die.random() < 0.85}
        self.keeps = drawn_keeps if keeps is None else keeps
        self.snapshot_after_s = die.choice(SNAPSHOTS_AFTER_S)
        self.decide_again = DECIDE_AGAIN[seed % len(DECIDE_AGAIN)]
        self.notes.spooling = "spool" in self.keeps
        self._befalls = befalls or World._troubling
        self.finished: set[str] = set()
        self.over = False
        self.processes: list[Process] = []
        self.record: list[Stored] = []
        self.server: MemoryServer

    @property
    def slots(self) -> list[Slot]:
        return [*self.engine_slots, self.projector_slot, *self.client_slots]

    @property
    def stream(self) -> Stream:
        return self.server.streams[f"PURSE_{WALLET}"]

    # --- running ------------------------------------------------------------------------------------------------------

    def run(self) -> World:
        """The storm, then the calm. Raises `AssertionError` where something never came to its end."""
        began_ns = MIDNIGHT_NS - int(self.die.uniform(1, max(2.0, self.storm_s)) * NS)
        with (
            self._on_disk() as self.disk,
            virtual_time(began_ns=began_ns, seed=self.seed) as self._loop,
            structlog.testing.capture_logs((_whose,)) as self.said,
            mock.patch("engine.keeper.UNKEPT_S_MAX", self.snapshot_after_s),
        ):
            self._loop.run_until_complete(self._run(self._loop))
        return self

    @contextmanager
    def _on_disk(self) -> Iterator[Disk]:
        with tempfile.TemporaryDirectory(prefix="purse-world-") as folder:
            disk = Disk(Path(folder), self.seed)
            with disk.instead_of_the_real_one():
                yield disk

    async def _run(self, loop: VirtualLoop) -> None:
        self.storm.begin(loop.time)
        self.server = MemoryServer(self.storm)
        with self.server.instead_of_nats():
            try:
                await self._make_wallet()
                for slot in self.slots:
                    slot.start()
                minding = loop.create_task(self._mind())
                await self._befalls(self)
                await self._calm_down()
                minding.cancel()
            finally:
                await self._tear_down()

    async def _make_wallet(self) -> None:
        async with Journal.connect(NATS, wallet=WALLET) as journal:
            await journal.ensure_stream()
            plan = AskMessage(asks=[ApplyPlan("first", self.plan, "")])
            await journal.append("admin", msgspec.json.encode(plan), wait_s=5)

    async def _mind(self) -> None:
        """The supervisor: what has ended is started again after a while. Clients do not come back: others come."""
        while True:
            await asyncio.sleep(0.25)
            for slot in self.slots:
                if not slot.running and not self.distrust() and (self.calm.is_set() or self.die.random() < 0.25):
                    slot.start()
                    if slot in self.engine_slots and not self.calm.is_set() and self.die.random() < 0.3:
                        self.troubles.crash_again(slot)

    async def _calm_down(self) -> None:
        self.storm.calm = self.disk.calm = True
        self.calm.set()
        self.server_up()
        for slot in self.slots:
            slot.process.fuse = None
            if slot.process.asleep:
                slot.process.wake()
        waited_s = 0.0
        while (unfinished := self.unfinished()) and waited_s < CALM_WITHIN_S and not self.distrust():
            await asyncio.sleep(0.5)
            waited_s += 0.5
        self.record = self.stream.record
        self.appends = list(self.server.appends)
        self.survivors = {process.name for process in self.processes if process.alive}
        self.bugs = [trouble for trouble in self._loop.troubles if "exception" in trouble]
        assert not self.distrust(), self.distrust()
        assert not unfinished, f"after {waited_s:.0f} s of calm: {unfinished}"

    def distrust(self) -> str:
        """A program that ended with a bug, or with `Untrusted`: no start helps then. "" if there was none."""
        for slot in self.slots:
            for error in slot.ends:
                if not isinstance(error, PurseError) or isinstance(error, Untrusted):
                    return f"{slot.name}: {error!r}"
        return ""

    def unfinished(self) -> str:
        """What has not come to its end, "" if all has."""
        busy = [slot.name for slot in self.client_slots if slot.process.name not in self.finished]
        if busy:
            return f"callers of {busy} still wait"
        record = self.stream.record
        asks = [stored for stored in record if stored.kind != "told"]
        if asks[-1].seq != self._told_upto():
            return f"told up to {self._told_upto()} of {asks[-1].seq}"
        written = {settle for stored in asks if (message := read(stored.data)) for settle in _settles(message)}
        lost = [handed.ask for handed in self.notes.settles if self._owed(handed) and _key(handed.ask) not in written]
        if lost:
            return f"settlements that are not on the stream: {lost}"
        if left := self.disk.kept():
            return f"settlements that are still in the spool: {left}"
        newest = self.stream.last_of.get(f"purse.{WALLET}.told", 0)
        for slot in self.engine_slots:
            engine = self.engines.get(slot.process.name)
            if engine is None or (engine.wallet.upto, engine.told_seq) != (asks[-1].seq, newest):
                return f"{slot.name} has not read all"
            if engine.wallet.open:
                return f"holds are open: {list(engine.wallet.open)}"
        if self.projector is None or self.projector.projection.wallet.upto != asks[-1].seq:
            return "the projector has not folded all"
        if self.written() != documents(self.projector.projection):
            return "the projector has not written all"
        return ""

    def _owed(self, handed: Handed) -> bool:
        """Whether this settlement must not be lost: its caller was told so, or its client had the time to see to it."""
        process = handed.process
        had_time = process.died_at_s - handed.at_s > SAFE_WITHIN_S or process.ended
        return handed.safe or (not handed.refused and (process.alive or (self.notes.spooling and had_time)))

    def written(self) -> dict[str, bytes]:
        """The documents in the projector's bucket."""
        return {place: document for place, document in self.server.documents.items() if place.startswith(BUCKET)}

    def _told_upto(self) -> int:
        last = self.stream.last_of.get(f"purse.{WALLET}.told", 0)
        return int(msgspec.json.decode(self.stream.messages[last].data)["upto"]) if last else 0

    async def _tear_down(self) -> None:
        """Everybody leaves, the dead too."""
        self.over = True
        for process in self.processes:
            process.bury()
        for _ in range(20):
            await asyncio.sleep(1)
            left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in left:
                task.cancel()
        assert not left, left

    def server_down(self) -> None:
        self.server.down = True
        for client in list(self.server.clients):
            if client.is_connected:
                client.cut()

    def server_up(self) -> None:
        self.server.down = False
        for client in list(self.server.clients):
            client.mend()

    # --- programs -----------------------------------------------------------------------------------------------------

    async def _engine(self, slot: Slot) -> None:
        number = self.engine_slots.index(slot)
        async with Journal.connect(NATS, wallet=WALLET, name="engine") as journal:
            engine = Engine(
                journal,
                instance=slot.process.name,
                patience_s=self.patience_s[number],
                snapshots=self._snapshots(slot),
                data=self._data(slot, "witness"),
                decide_again=self.decide_again,
            )
            self.engines[slot.process.name] = engine
            await engine.run()

    async def _projector(self, slot: Slot) -> None:
        async with Journal.connect(NATS, wallet=WALLET, name="projector") as journal:
            self.projector = Projector(journal, snapshots=self._snapshots(slot), data=self._data(slot, "witness"))
            await self.projector.run()

    def _snapshots(self, slot: Slot) -> Snapshots | None:
        """As `python -m engine` and `python -m projector` make them."""
        data = self._data(slot, "snapshots")
        if data is None:
            return None
        return Snapshots(data, WALLET, of="projector" if slot is self.projector_slot else "")

    def _data(self, slot: Slot, kind: str) -> Path | None:
        return self.disk.folder / slot.folder if kind in self.keeps else None

    async def _client(self, slot: Slot) -> None:
        name = slot.process.name
        while True:
            try:
                async with Purse.connect(NATS, wallet=WALLET, data=self._data(slot, "spool")) as purse:
                    self.purses[name] = purse
                    calls = 2 if self.calm.is_set() else self.calls
                    names = [f"{name}.{number}" for number in range(calls)]
                    callers = [Caller(purse, slot.process, one, self.notes, self.seed) for one in names]
                    await asyncio.gather(*map(self._call, callers))  # a task group would cancel them in any order
                    self.finished.add(name)
                    await asyncio.Event().wait()
            except NoAnswer:
                continue

    def settle_more(self, slot: Slot) -> None:
        """Another settlement by this client, at once."""
        purse, name = self.purses.get(slot.process.name), slot.process.name
        if purse is not None and slot.running:
            id = f"{name}.more{len(self.notes.settles)}"
            slot.process.spawn(Caller(purse, slot.process, id, self.notes, self.seed).settle_stray())

    async def _troubling(self) -> None:
        await self.troubles.go_on()

    async def _call(self, caller: Caller) -> None:
        if not self.calm.is_set():
            await asyncio.sleep(caller.die.uniform(0, self.storm_s * 0.9))
        await caller.run()


def documents(projection: Projection) -> dict[str, bytes]:
    """Where the documents of a projection should stand, and what they say."""
    return {BUCKET + key: document for key, document in documents_of(projection).items()}


def _settles(message: AskMessage) -> list[bytes]:
    return [_key(ask) for ask in message.asks if isinstance(ask, Settle)]


def _key(ask: Settle) -> bytes:
    return msgspec.json.encode(ask)


def _whose(_: Any, method: str, event: Any) -> Any:
    """Whose log line it is."""
    process = here.get()
    return {**event, "process": process.name if process is not None else ""}
