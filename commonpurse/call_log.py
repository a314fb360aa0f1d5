"""What each call of a drive really cost, on the disk before anybody settles it. A backfill reads it after a crash.

Lines that come while one flush runs share the next, so that a slow disk makes a flush larger and not a queue.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

HEADER = "hold,usd\n"


class CallLog:
    """A CSV file that grows. `with` it; one process at a time."""

    def __init__(self, path: Path) -> None:
        """Raises `OSError` where it cannot be written."""
        self._file = path.open("a", encoding="utf-8")
        self._flushing: asyncio.Task[None] | None = None
        self._written = self._flushed = 0
        if self._file.tell() == 0:
            self._file.write(HEADER)

    def __enter__(self) -> CallLog:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    async def add(self, costs: Iterable[tuple[str, str]]) -> None:
        """Hold and cost of each call, in the file and on the disk. Raises `OSError`."""
        self._file.writelines(f"{hold},{cost}\n" for hold, cost in costs)
        self._file.flush()  # from here on it outlives us, though not yet the machine
        self._written += 1
        mine = self._written
        while self._flushed < mine:
            if self._flushing is None or self._flushing.done():
                self._flushing = asyncio.create_task(self._flush())
            await asyncio.shield(self._flushing)

    async def _flush(self) -> None:
        upto = self._written
        await asyncio.to_thread(os.fsync, self._file.fileno())
        self._flushed = upto
