"""The disk of a world: real files in a folder of its own, whose writers may die in the middle of a write.

    Spool, Snapshots, Witness ──os, secrets, Forked──> Disk ──> the real files

They run as they are; only the calls by which they reach the disk go through here. A process that dies lets go of its
locks, and what it had not synced may be gone, as after a power cut. Nothing here knows what a file says.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from simulation.virtual_time import Died, Process, VirtualLoop, here

WRITERS = ("engine.spool_file", "engine.snapshots", "engine.witness")
HELD = ".spool"  # files that stay open, and locked, for as long as their process lives
CHILD_S = (0.01, 2.0)  # how long the writer of a snapshot takes
CHILD_DIES = 0.15


class _Open:
    """A file that somebody holds. `synced`: its size when it was last safe from a power cut."""

    def __init__(self, path: Path, process: Process | None) -> None:
        self.path, self.process = path, process
        self.synced = 0


class Disk:
    """All disks of one world. `calm`: nobody's writing ends by itself any more."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.calm = False
        self.seen: Counter[str] = Counter()
        self._random = random.Random(f"disk {seed}")
        self._open: dict[int, _Open] = {}
        self._tearing = False  # a child writes that will not come to its end

    @contextmanager
    def instead_of_the_real_one(self) -> Iterator[None]:
        """Whoever keeps files writes here for as long as the block lasts."""
        with ExitStack() as stack:
            for module in WRITERS:
                stack.enter_context(mock.patch(f"{module}.os", self))
            for module in WRITERS[:2]:
                stack.enter_context(mock.patch(f"{module}.secrets", self))
            stack.enter_context(mock.patch("engine.keeper.Forked", self._fork))
            try:
                yield
            finally:
                for descriptor in list(self._open):
                    self.close(descriptor)

    def token_hex(self, size: int) -> str:
        """A name nobody else has, the same in every run."""
        return self._random.randbytes(size).hex()

    def kept(self) -> list[str]:
        """What lies in spools and was not struck, as it lies there."""
        return [line for path in sorted(self.folder.glob(f"*/spool/*/*{HELD}")) for line in _unstruck(path)]

    # --- what stands in place of `os` ---------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, path: str | Path, flags: int, mode: int = 0o777) -> int:
        self._alive()
        descriptor = os.open(path, flags, mode)
        if Path(path).suffix == HELD:
            process = here.get()
            self._open[descriptor] = held = _Open(Path(path), process)
            held.synced = os.fstat(descriptor).st_size
            if process is not None and self._died not in process.on_death:
                process.on_death.append(self._died)
        return descriptor

    def close(self, descriptor: int) -> None:
        process = here.get()
        if process is None or process.alive:  # what the dead held is closed
            self._open.pop(descriptor, None)
            os.close(descriptor)

    def pwrite(self, descriptor: int, data: bytes, offset: int) -> int:
        self._alive()
        self.seen["a settlement was kept in the spool"] += b'"asks":[' in data
        if self._about_to_burn():  # what reached the disk if this write is the last thing it does
            os.pwrite(descriptor, data[: self._random.randint(0, len(data))], offset)
        self._step("spool write")
        return os.pwrite(descriptor, data, offset)

    def ftruncate(self, descriptor: int, size: int) -> None:
        self._alive()
        os.ftruncate(descriptor, size)

    def fsync(self, descriptor: int) -> None:
        """Safe from here on. The disk under the tests is not asked to sync: only the dead of a world lose anything."""
        self._alive()
        held = self._open.get(descriptor)
        if held is not None:
            self._step("spool sync")
            held.synced = os.fstat(descriptor).st_size
        else:
            self._step("sync")
            self._maybe_torn(descriptor)

    # --- dying --------------------------------------------------------------------------------------------------------

    def _alive(self) -> None:
        process = here.get()
        if process is not None and not process.alive:
            raise OSError(errno.EBADF, "its process is dead")

    def _about_to_burn(self) -> bool:
        process = here.get()
        return process is not None and process.fuse is not None and _in_thread()

    def _step(self, what: str) -> None:
        """One thing done to the disk. A thread ends here if its process does."""
        process = here.get()
        if process is not None and _in_thread() and not process.arrives(what):
            raise Died

    def _died(self) -> None:
        """Locks are let go; after a power cut what was not synced is gone, whole or in part."""
        for descriptor, held in list(self._open.items()):
            if held.process is None or held.process.alive:
                continue
            size = os.fstat(descriptor).st_size
            if size > held.synced and self._random.random() < 0.5:
                self.seen["a power cut took what was not synced"] += 1
                os.ftruncate(descriptor, self._random.randint(held.synced, size - 1))
            del self._open[descriptor]
            os.close(descriptor)

    # --- children that write snapshots --------------------------------------------------------------------------------

    def _fork(self, work: Callable[[], None]) -> _Child:
        process = here.get()
        if process is not None:
            process.arrives("fork")  # it may be the last thing its parent does; the child goes on
        dies = not self.calm and self._random.random() < CHILD_DIES
        return _Child(self, work, dies=dies, takes_s=self._random.uniform(*CHILD_S))

    def in_child(self, work: Callable[[], None], *, dies: bool) -> None:
        """Do a child's work at once. What it writes when it `dies` is torn, and it never gets further."""
        self._tearing = dies
        token = here.set(None)
        try:
            work()
        except Died:
            self.seen["a snapshot's writer died"] += 1
        finally:
            here.reset(token)
            self._tearing = False

    def _maybe_torn(self, descriptor: int) -> None:
        if self._tearing:
            os.ftruncate(descriptor, self._random.randint(0, os.fstat(descriptor).st_size))
            raise Died


class _Child:
    """Stands in place of `Forked`: a child that has all its parent knew, and cannot disturb it."""

    def __init__(self, disk: Disk, work: Callable[[], None], *, dies: bool, takes_s: float) -> None:
        self._ends_at = time.monotonic() + takes_s
        self.failed = dies
        disk.in_child(work, dies=dies)

    def done(self, *, wait: bool = False) -> bool:
        return wait or time.monotonic() >= self._ends_at


def _in_thread() -> bool:
    loop = asyncio.get_running_loop()
    return isinstance(loop, VirtualLoop) and loop.in_thread


def _unstruck(path: Path) -> list[str]:
    """Read without the code that wrote it: length, checksum, JSON."""
    lines: dict[int, str] = {}
    for line in path.read_text().splitlines():
        record = json.loads(line.split(" ", 2)[2])
        if record.get("asks"):
            lines[record["n"]] = line
        for n in record.get("struck", ()):
            lines.pop(n, None)
    return list(lines.values())
