"""The lock on a data folder: one `purse up` at a time writes there.

A file lock belongs to the open descriptor, not to a process: a child that inherits it keeps the folder taken after its
parent was killed, until it ends itself. So the lock never says "free" while something still writes.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from engine.errors import Misconfigured

LOCK_WAIT_S = 3.0  # a server whose parent was killed closes its store first: measured 6 ms, a large one takes longer
POLL_S = 0.02


@asynccontextmanager
async def locked(data: Path) -> AsyncIterator[int]:
    """Hold the folder, making it where it is missing; yields the descriptor to pass on to children.

    Waits up to `LOCK_WAIT_S` for whoever has it, then raises `Misconfigured` naming the folder.
    """
    lock = _open(data)
    try:
        await _take(lock, data)
        yield lock
    finally:
        os.close(lock)


def _open(data: Path) -> int:
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.open(data / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


async def _take(lock: int, data: Path) -> None:
    gives_up_at = time.monotonic() + LOCK_WAIT_S
    while not _taken(lock):
        if time.monotonic() >= gives_up_at:
            raise Misconfigured(f"the data folder {data} is in use by another `purse up`: stop it or choose --data")
        await asyncio.sleep(POLL_S)


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
