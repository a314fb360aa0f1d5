"""A world in which time passes only when nobody has anything left to do, and processes that can die or sleep in it.

    loop ──runs──> what is ready ──nothing left──> the clock jumps to the next timer

The same seed gives the same run to the last step. A process is whatever runs in its context: killed, none of its
callbacks ever runs again (no `finally`, as with kill -9); stopped, they pile up until it is resumed (as with SIGSTOP),
while its clocks go on.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from unittest import mock

NS = 1_000_000_000
BOOTED_AT_S = 1_000.0  # what the monotonic clock shows when a world begins

NEVER = float("inf")
THREAD_S = (0.0003, 0.02)  # until a thread has done its work, most of it waiting for a disk

Result = TypeVar("Result")

here: ContextVar[Process | None] = ContextVar("here", default=None)
"""The process whose code runs."""


class Died(BaseException):
    """A process died in the middle of a thread's work: nothing of that thread runs any more."""


class Deadlocked(AssertionError):
    """Nothing is ready and no timer runs: whoever waits would wait for ever."""


class Process:
    """One program. `skew_ns`: how far its wall clock is off."""

    def __init__(self, name: str, *, skew_ns: int = 0) -> None:
        self.name = name
        self.skew_ns = skew_ns
        self.alive = True
        self.died_at_s = NEVER
        self.ended = False  # by itself, as after SIGTERM: it could finish what it did
        self.asleep = False
        self.tasks: list[asyncio.Task[Any]] = []
        self.on_death: list[Callable[[], None]] = []
        self.fuse: Fuse | None = None
        self.context = copy_context()
        self.context.run(here.set, self)
        self._piled_up: list[Guarded] = []
        self._buried = False

    def spawn(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        """Run `work` as this process."""
        task = asyncio.get_running_loop().create_task(work, context=self.context)
        self.tasks.append(task)
        return task

    async def step(self, what: str) -> None:
        """One thing done to the world outside. Never returns if it was the last."""
        if self.fuse is not None and self.fuse.burns(what):
            fuse, self.fuse = self.fuse, None
            fuse.act(self)
            await asyncio.sleep(0)

    def arrives(self, what: str) -> bool:
        """Whether what comes from outside still finds somebody."""
        if self.fuse is not None and self.fuse.burns(what):
            fuse, self.fuse = self.fuse, None
            fuse.act(self)
        return self.alive

    def kill(self) -> None:
        if not self.alive:
            return
        self.alive = False
        self.died_at_s = time.monotonic()
        for gone in self.on_death:
            gone()

    def sleep(self) -> None:
        self.asleep = True

    def wake(self) -> None:
        self.asleep = False
        if self.alive:
            self._catch_up()

    def bury(self) -> None:
        """The world is over: let even the dead run to their end, so that nothing is left to the garbage collector."""
        self.kill()
        self._buried = True
        self._catch_up()
        for task in self.tasks:
            task.cancel()

    def _catch_up(self) -> None:
        piled_up, self._piled_up = self._piled_up, []
        for one in piled_up:
            asyncio.get_running_loop().call_soon(one.late, context=one.context)

    def take(self, callback: Guarded) -> bool:
        """Whether the callback may run now. A sleeping process finds it when it wakes, a dead one never."""
        runs = self._buried or (self.alive and not self.asleep)
        if not runs:
            self._piled_up.append(callback)
        return runs


@dataclass
class Fuse:
    """Something that happens to a process at the `count`th step whose name ends in `suffix`."""

    count: int
    suffix: str
    act: Callable[[Process], None]

    def burns(self, what: str) -> bool:
        if what.endswith(self.suffix):
            self.count -= 1
        return self.count <= 0


class Guarded:
    """A callback of a process that may be dead or asleep when its time comes."""

    __slots__ = ("args", "callback", "context", "handle", "process")

    def __init__(self, process: Process, callback: Callable[..., object], args: Any, context: Context) -> None:
        self.process, self.callback, self.args, self.context = process, callback, args, context
        self.handle: asyncio.Handle | None = None

    def __call__(self) -> None:
        if self.process.take(self):
            self.callback(*self.args)

    def late(self) -> None:
        """What should have run while the process slept; unless it was cancelled since."""
        if self.handle is None or not self.handle.cancelled():
            self()


class _Jump:
    """Stands where a loop has its selector: instead of waiting, the time is then."""

    def __init__(self) -> None:
        self.now = BOOTED_AT_S

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise Deadlocked("nothing is ready, and no timer runs")
        self.now += max(0.0, timeout)
        return []

    def close(self) -> None:
        """There is nothing to close."""


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop without a world outside."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = _Jump()
        self._clock_resolution = 1e-9
        self.in_thread = False  # what runs is a thread of its process, where any step can be the last at once
        self.troubles: list[dict[str, Any]] = []
        self.set_exception_handler(lambda _, trouble: self.troubles.append(trouble))

    def time(self) -> float:
        return self._selector.now

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> asyncio.Handle:
        return self._guard(super().call_soon, callback, args, context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> asyncio.TimerHandle:
        def at(guarded: Any, *args: Any, context: Context | None) -> asyncio.TimerHandle:
            return super(VirtualLoop, self).call_at(when, guarded, *args, context=context)

        return self._guard(at, callback, args, context)

    def _guard(self, schedule: Any, callback: Any, args: Any, context: Context | None) -> Any:
        context = context if context is not None else copy_context()
        process = context.get(here)
        if process is None:
            return schedule(callback, *args, context=context)
        guarded = Guarded(process, callback, args, context)
        guarded.handle = schedule(guarded, context=context)
        return guarded.handle

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """A thread's work: begun a little later, done at one moment, known a little later again."""
        future = self.create_future()

        def work() -> None:
            self.in_thread = True
            try:
                settle = partial(future.set_result, func(*args))
            except Died:
                return
            except Exception as error:
                settle = partial(future.set_exception, error)
            finally:
                self.in_thread = False
            self.call_later(random.uniform(*THREAD_S), lambda: None if future.done() else settle())

        self.call_later(random.uniform(*THREAD_S), work)
        return future

    def _process_events(self, event_list: Any) -> None:
        assert not event_list

    def _write_to_self(self) -> None:
        """Nobody sleeps here."""


def wall_ns(loop: VirtualLoop, began_ns: int) -> int:
    """The true time in this world."""
    return began_ns + round((loop.time() - BOOTED_AT_S) * NS)


@contextmanager
def virtual_time(*, began_ns: int, seed: int) -> Iterator[VirtualLoop]:
    """A loop, and every clock and die of this interpreter following it for as long as the block lasts."""
    loop = VirtualLoop()

    def time_ns() -> int:
        process = here.get()
        return wall_ns(loop, began_ns) + (process.skew_ns if process is not None else 0)

    clocks: dict[str, Callable[[], float]] = {
        "monotonic": loop.time,
        "monotonic_ns": lambda: round(loop.time() * NS),
        "time_ns": time_ns,
        "time": lambda: time_ns() / NS,
    }
    before = random.getstate()
    random.seed(seed)
    try:
        with mock.patch.multiple(time, **clocks):
            yield loop
    finally:
        random.setstate(before)
        loop.close()
