"""What befalls a world: crashes, stops, sleeps, lost connections, wrong clocks, a storm on the wires; by one die.

Each trouble is a method; what it did is counted in `storm.seen` and written into the world's trace.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from simulation.memory_client import MemoryClient
from simulation.storm import WINDOWS
from simulation.virtual_time import NS, Fuse, Process

if TYPE_CHECKING:
    from simulation.world import Slot, World

LONG_SLEEP_S = 60.0
LONG_SILENCE_S = 135.0  # longer than the stream remembers names
SILENT = ("up", "full", "acks", "appends")
CLOCK_STEPS_S = (-100, -20, -1, 1, 5, 30, 100)
CLOCK_OFF_S_MAX = 150  # engines stop beyond five minutes, and their own clocks are up to one off


class Troubles:
    """The troubles of one world."""

    def __init__(self, world: World) -> None:
        self.world, self.die, self.storm = world, world.die, world.storm

    async def go_on(self) -> None:
        """One thing after the other, until the storm is over."""
        world, die, spent_s = self.world, self.die, 0.0
        if world.storm_s > LONG_SILENCE_S and die.random() < 0.8:
            self._long_silence()
        pace_s = die.choice((0.3, 1.0, 3.0))
        while spent_s < world.storm_s:
            wait_s = die.uniform(0, 2 * pace_s)
            spent_s += wait_s
            await asyncio.sleep(wait_s)
            trouble = die.choices(*zip(*self._kinds(), strict=True))[0]
            trouble()

    def _kinds(self) -> list[tuple[Callable[[], None], int]]:
        return [
            (self._strike, 10),
            (self._crash, 7),
            (self._sleep, 2),
            (self._cut, 2),
            (self._restart_server, 1),
            (self._step_clock, 1),
            (self._leave, 1),
            (self._leave_in_silence, 2),
            (self._stop, 1),
        ]

    # --- on the wires -------------------------------------------------------------------------------------------------

    def _strike(self) -> None:
        die = self.die
        window = die.choice(WINDOWS)
        place = die.choice(("", *(slot.process.name for slot in self.world.slots)))
        for_s = die.uniform(0.2, 6)
        self.note(f"{window} at {place or 'all'} for {for_s:.1f} s")
        self.storm.open(window, place, for_s=for_s, chance=die.choice((0.2, 0.5, 1.0)))

    def _long_silence(self) -> None:
        """What a client sends is stored, and for minutes nobody tells it so."""
        slot = self.die.choice(self.world.client_slots)
        self.note(f"nothing reaches {slot.process.name} for {LONG_SILENCE_S:.0f} s")
        for window in ("acks", "replies"):
            self.storm.open(window, slot.process.name, for_s=LONG_SILENCE_S, chance=1.0)
        loop = asyncio.get_running_loop()
        loop.call_later(1.0, self.world.settle_more, slot, context=self.world.server.context)

    def _cut(self) -> None:
        clients = self.world.server.clients
        if clients:
            client = self.die.choice(clients)
            self.note(f"{client.process.name if client.process else '?'} is cut off")
            if client.is_connected:
                client.cut()
                asyncio.get_running_loop().call_later(self.die.uniform(0.05, 4), self._mend, client)

    def _mend(self, client: MemoryClient) -> None:
        if not self.world.server.down:
            client.mend()

    # --- at the server ------------------------------------------------------------------------------------------------

    def _restart_server(self) -> None:
        self.note("the server restarts")
        self.storm.seen["the server restarted"] += 1
        self.world.server_down()
        asyncio.get_running_loop().call_later(self.die.uniform(0.05, 3), self.world.server_up)

    def _step_clock(self) -> None:
        step_s = self.die.choice(CLOCK_STEPS_S)
        stepped = self.world.server.clock_step_ns + step_s * NS
        if abs(stepped) <= CLOCK_OFF_S_MAX * NS:
            self.note(f"the stream's clock steps by {step_s} s")
            self.storm.seen["the stream's clock was stepped back" if step_s < 0 else "the stream's clock jumped"] += 1
            self.world.server.clock_step_ns = stepped

    # --- processes that die, stop or sleep ----------------------------------------------------------------------------

    def lay_fuse(self, slot: Slot, fuse: Fuse) -> None:
        if slot.running and slot.process.fuse is None:
            self.note(f"{slot.process.name}: fuse at {fuse.count} x {fuse.suffix!r}")
            slot.process.fuse = fuse

    def killing(self, suffix: str) -> Callable[[Process], None]:
        """kill -9, at the end of a fuse on such steps."""

        def kill(process: Process) -> None:
            engine = self.world.engines.get(process.name)
            replaying = engine is not None and not engine.ready.is_set()
            self.note(f"{process.name} dies {suffix}")
            self.storm.seen[f"died {'in replay' if replaying else suffix or 'at some step'}"] += 1
            self.storm.seen["died a client"] += process.name.startswith("client")
            process.kill()

        return kill

    def _crash(self) -> None:
        world = self.world
        slot = self.die.choice([*world.engine_slots, *world.engine_slots, world.projector_slot])
        suffix = self.die.choice(("before told", "after told", "before _INBOX", "arrival", "fork", ""))
        self.lay_fuse(slot, Fuse(self.die.randint(1, 4) if suffix != "fork" else 1, suffix, self.killing(suffix)))

    def crash_again(self, slot: Slot) -> None:
        """Into the replay of what has just started."""
        self.lay_fuse(slot, Fuse(self.die.randint(1, 8), "arrival", self.killing("arrival")))

    def _leave(self) -> None:
        slot = self.die.choice(self.world.client_slots)
        suffix = self.die.choice(("before ask", "after ask", ""))
        self.lay_fuse(slot, Fuse(self.die.randint(1, 3), suffix, self.killing(suffix)))

    def _leave_in_silence(self) -> None:
        """The stream takes nothing from a client, so it keeps what it settles, and dies over it or soon after."""
        slot = self.die.choice(self.world.client_slots)
        window, for_s = self.die.choice(SILENT), self.die.uniform(3, 12)
        self.note(f"{window} at {slot.name} for {for_s:.1f} s")
        self.storm.open(window, slot.name, for_s=for_s, chance=1.0)
        suffix = self.die.choice(("spool write", "spool write", "spool sync", "before ask"))
        self.lay_fuse(slot, Fuse(self.die.randint(1, 2), suffix, self.killing(suffix)))
        loop = asyncio.get_running_loop()
        for _ in range(self.die.randint(1, 3)):
            loop.call_later(self.die.uniform(0, 2), self.world.settle_more, slot, context=self.world.server.context)

    def _stop(self) -> None:
        """SIGTERM: it may finish what it does."""
        slot = self.die.choice(self.world.slots)
        if slot.running and not slot.process.asleep:
            self.note(f"{slot.process.name} is told to stop")
            self.storm.seen["was told to stop"] += 1
            slot.stop()

    def _sleep(self) -> None:
        slot = self.die.choice(self.world.engine_slots)
        suffix = self.die.choice(("before told", "arrival"))
        self.lay_fuse(slot, Fuse(self.die.randint(1, 3), suffix, self.sleeping(suffix)))

    def sleeping(self, suffix: str = "", for_s: float = LONG_SLEEP_S) -> Callable[[Process], None]:
        """SIGSTOP, and SIGCONT after a while."""

        def sleep(process: Process) -> None:
            self.note(f"{process.name} sleeps {suffix}")
            self.storm.seen[f"slept {suffix or 'at some step'}"] += 1
            process.sleep()
            loop = asyncio.get_running_loop()
            loop.call_later(for_s, self._wake, process, context=self.world.server.context)

        return sleep

    def _wake(self, process: Process) -> None:
        if process.asleep:
            self.note(f"{process.name} wakes")
            process.wake()

    def note(self, what: str) -> None:
        self.world.trace.append(f"{asyncio.get_running_loop().time() - 1000:9.3f} {what}")
