"""Kills the parts of a running `purse up`, the children of this process, with SIGKILL and at random.

Every part has its turn in each round, so that a short storm spares none.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter
from contextlib import suppress
from pathlib import Path

PARTS = ("nats-server", "engine", "projector", "web")
EVERY_S = (1.2, 2.8)
POLL_S = 0.02


class Storm:
    """Runs until cancelled. `kills` counts by part."""

    def __init__(self, dice: random.Random) -> None:
        self.kills: Counter[str] = Counter()
        self._dice = dice

    async def run(self) -> None:
        while True:
            for part in self._dice.sample(PARTS, len(PARTS)):
                await asyncio.sleep(self._dice.uniform(*EVERY_S))
                await self._kill(part)

    async def _kill(self, part: str) -> None:
        while (pid := running(part)) is None:  # noqa: ASYNC110  nobody says when it was started again
            await asyncio.sleep(POLL_S)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self.kills[part] += 1


def running(part: str) -> int | None:
    """The process id of a part that runs now."""
    for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        with suppress(FileNotFoundError):
            command = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
            if part.encode() in (os.path.basename(command[0]), *command[2:4]):
                return int(child)
    return None
