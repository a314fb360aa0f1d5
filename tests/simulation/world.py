"""A whole wallet in virtual time: server, engines, projector, clients, and what troubles them, from one seed.

    world = World(seed); world.run()  ->  a storm, then calm weather until everything has come to its end

Nothing of ours is replaced: `Journal`, `Follower`, `Engine`, `Asker`, `Purse` and `Projector` run as they are.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime

import msgspec
import structlog
from simulation.callers import CENT, Caller, Notes
from simulation.memory_nats import MemoryServer, Stream
from simulation.storm import WINDOWS, Storm
from simulation.virtual_time import NS, Fuse, Process, VirtualLoop, virtual_time

from engine.client import Purse
from engine.core.messages import ApplyPlan, AskMessage, Settle
from engine.core.plan import Budget, Plan
from engine.core.tell import read
from engine.errors import NoAnswer, PurseError, Untrusted
from engine.journal import Journal, Stored
from engine.service import Engine
from projector.service import Projector

NATS = "nats://in-memory"
WALLET = "main"
MIDNIGHT_NS = int(datetime(2026, 12, 1, tzinfo=UTC).timestamp()) * NS
CALM_WITHIN_S = 300.0  # of virtual time: far more than any retry, lapse or restart takes
LONG_SLEEP_S = 60.0
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

    @property
    def running(self) -> bool:
        """Runs, or sleeps. A program that ended by itself says why in `ends`."""
        if self.task is not None and self.task.done():
            if not self.task.cancelled() and (error := self.task.exception()) is not None:
                while isinstance(error, BaseExceptionGroup):
                    error = error.exceptions[0]
                self.ends.append(error)
            self.task = None
            self.process.kill()
        return self.process.alive


class World:
    """Everything of one seed. What is not given is drawn: `engines` by their patience, `befalls` what troubles them."""

    def __init__(
        self,
        seed: int,
        *,
        engines: Sequence[float] | None = None,
        clients: int | None = None,
        calls: int | None = None,
        storm_s: float | None = None,
        befalls: Callable[[World], Awaitable[None]] | None = None,
    ) -> None:
        self.seed = seed
        self.die = die = random.Random(f"world {seed}")
        self.storm = Storm(seed)
        self.notes = Notes()
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
        self.calls = die.randint(5, 12) if calls is None else calls
        self.storm_s = die.choices(STORMS_S, (6, 4, 1))[0] if storm_s is None else storm_s
        self._befalls = befalls or World.troubling
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
        with virtual_time(began_ns=began_ns, seed=self.seed) as loop, structlog.testing.capture_logs() as said:
            self.said, self._loop = said, loop
            loop.run_until_complete(self._run(loop))
        return self

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
            plan = AskMessage(asks=[ApplyPlan("first", PLAN, "")])
            await journal.append("admin", msgspec.json.encode(plan), wait_s=5)

    async def _mind(self) -> None:
        """The supervisor: what has ended is started again after a while. Clients do not come back: others come."""
        while True:
            await asyncio.sleep(0.25)
            for slot in self.slots:
                if not slot.running and not self.distrust() and (self.calm.is_set() or self.die.random() < 0.25):
                    slot.start()
                    if slot in self.engine_slots and not self.calm.is_set() and self.die.random() < 0.3:
                        self.lay_fuse(slot, Fuse(self.die.randint(1, 8), "arrival", self.killing("arrival")))

    async def _calm_down(self) -> None:
        self.storm.calm = True
        self.calm.set()
        self._server_up()
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
        self.troubles = [trouble for trouble in self._loop.troubles if "exception" in trouble]
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
        lost = [ask for process, ask in self.notes.settles if process.alive and _key(ask) not in written]
        if lost:
            return f"settlements that are not on the stream: {lost}"
        newest = self.stream.last_of.get(f"purse.{WALLET}.told", 0)
        for slot in self.engine_slots:
            engine = self.engines.get(slot.process.name)
            if engine is None or (engine.wallet.upto, engine.told_seq) != (asks[-1].seq, newest):
                return f"{slot.name} has not read all"
            if engine.wallet.open:
                return f"holds are open: {list(engine.wallet.open)}"
        if self.projector is None or self.projector.projection.wallet.upto != asks[-1].seq:
            return "the projector has not folded all"
        return ""

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

    # --- programs -----------------------------------------------------------------------------------------------------

    async def _engine(self, slot: Slot) -> None:
        number = self.engine_slots.index(slot)
        async with Journal.connect(NATS, wallet=WALLET, name="engine") as journal:
            engine = Engine(journal, instance=slot.process.name, patience_s=self.patience_s[number])
            self.engines[slot.process.name] = engine
            await engine.run()

    async def _projector(self, slot: Slot) -> None:
        async with Journal.connect(NATS, wallet=WALLET, name="projector") as journal:
            self.projector = Projector(journal)
            await self.projector.run()

    async def _client(self, slot: Slot) -> None:
        name = slot.process.name
        while True:
            try:
                async with Purse.connect(NATS, wallet=WALLET) as purse:
                    calls = 2 if self.calm.is_set() else self.calls
                    async with asyncio.TaskGroup() as tasks:
                        for number in range(calls):
                            caller = Caller(purse, slot.process, f"{name}.{number}", self.notes, self.seed)
                            tasks.create_task(self._call(caller))
                    self.finished.add(name)
                    await asyncio.Event().wait()
            except NoAnswer:
                continue

    async def _call(self, caller: Caller) -> None:
        if not self.calm.is_set():
            await asyncio.sleep(caller.die.uniform(0, self.storm_s * 0.9))
        await caller.run()

    # --- troubles -----------------------------------------------------------------------------------------------------

    async def troubling(self) -> None:
        """What befalls this world, one thing after the other."""
        die, spent_s = self.die, 0.0
        pace_s = die.choice((0.3, 1.0, 3.0))
        while spent_s < self.storm_s:
            wait_s = die.uniform(0, 2 * pace_s)
            spent_s += wait_s
            await asyncio.sleep(wait_s)
            trouble = die.choices(self._kinds(), self._weights())[0]
            trouble()

    def _kinds(self) -> list[Callable[[], None]]:
        return [
            self._strike,
            self._crash,
            self._long_sleep,
            self._cut,
            self._restart_server,
            self._step_clock,
            self._leave,
        ]

    def _weights(self) -> list[int]:
        return [10, 5, 1, 2, 1, 1, 1]

    def _strike(self) -> None:
        die = self.die
        window = die.choice(WINDOWS)
        place = die.choice(("", *(slot.process.name for slot in self.slots)))
        long = window == "acks" and self.storm_s > 140 and die.random() < 0.5
        for_s = 135.0 if long else die.uniform(0.2, 6)
        self.note(f"{window} at {place or 'all'} for {for_s:.1f} s")
        self.storm.open(window, place, for_s=for_s, chance=1.0 if long else die.choice((0.2, 0.5, 1.0)))

    def _crash(self) -> None:
        slot = self.die.choice([*self.engine_slots, *self.engine_slots, self.projector_slot])
        suffix = self.die.choice(("before told", "after told", "before _INBOX", "arrival", ""))
        self.lay_fuse(slot, Fuse(self.die.randint(1, 4), suffix, self.killing(suffix)))

    def lay_fuse(self, slot: Slot, fuse: Fuse) -> None:
        if slot.running and slot.process.fuse is None:
            self.note(f"{slot.process.name}: fuse at {fuse.count} x {fuse.suffix!r}")
            slot.process.fuse = fuse

    def killing(self, suffix: str) -> Callable[[Process], None]:
        def kill(process: Process) -> None:
            engine = self.engines.get(process.name)
            replaying = engine is not None and not engine.ready.is_set()
            self.note(f"{process.name} dies {suffix}")
            self.storm.seen[f"died {'in replay' if replaying else suffix or 'at some step'}"] += 1
            process.kill()

        return kill

    def _long_sleep(self) -> None:
        slot = self.die.choice(self.engine_slots)
        self.lay_fuse(slot, Fuse(self.die.randint(1, 3), self.die.choice(("before told", "arrival")), self.sleeping()))

    def sleeping(self, for_s: float = LONG_SLEEP_S) -> Callable[[Process], None]:
        """SIGSTOP, and SIGCONT after a while."""

        def sleep(process: Process) -> None:
            self.note(f"{process.name} sleeps")
            self.storm.seen["slept"] += 1
            process.sleep()
            loop = asyncio.get_running_loop()
            loop.call_later(for_s, self._wake, process, context=self.server.context)

        return sleep

    def _wake(self, process: Process) -> None:
        if process.asleep:
            self.note(f"{process.name} wakes")
            process.wake()

    def _cut(self) -> None:
        if self.server.clients:
            client = self.die.choice(self.server.clients)
            self.note(f"{client.process.name if client.process else '?'} is cut off")
            if client.is_connected:
                client.cut()
                asyncio.get_running_loop().call_later(self.die.uniform(0.05, 4), self._mend, client)

    def _mend(self, client: object) -> None:
        if not self.server.down:
            client.mend()  # type: ignore[attr-defined]

    def _restart_server(self) -> None:
        self.note("the server restarts")
        self.storm.seen["the server restarted"] += 1
        self.server.down = True
        for client in list(self.server.clients):
            if client.is_connected:
                client.cut()
        asyncio.get_running_loop().call_later(self.die.uniform(0.05, 3), self._server_up)

    def _server_up(self) -> None:
        self.server.down = False
        for client in list(self.server.clients):
            client.mend()

    def _step_clock(self) -> None:
        step_s = self.die.choice((-100, -20, -1, 1, 5, 30, 100))
        stepped = self.server.clock_step_ns + step_s * NS
        if abs(stepped) <= 150 * NS:  # engines stop beyond five minutes, and their own clocks are up to one off
            self.note(f"the stream's clock steps by {step_s} s")
            self.storm.seen["the stream's clock was stepped back" if step_s < 0 else "the stream's clock jumped"] += 1
            self.server.clock_step_ns = stepped

    def _leave(self) -> None:
        slot = self.die.choice(self.client_slots)
        if slot.running and self.die.random() < 0.5:
            self.lay_fuse(
                slot,
                Fuse(
                    self.die.randint(1, 3), self.die.choice(("before ask", "after ask", "")), self.killing("a client")
                ),
            )

    def note(self, what: str) -> None:
        self.trace.append(f"{asyncio.get_running_loop().time() - 1000:9.3f} {what}")


def _settles(message: AskMessage) -> list[bytes]:
    return [_key(ask) for ask in message.asks if isinstance(ask, Settle)]


def _key(ask: Settle) -> bytes:
    return msgspec.json.encode(ask)
