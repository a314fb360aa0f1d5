"""What was asked for on the command line, and how far the run has come."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import msgspec


class Plan(msgspec.Struct, frozen=True):
    """`only`: nothing but what has this in its name. `folder`: on which disk."""

    seconds: float
    quick: bool
    runs: int
    only: str
    folder: Path

    def wants(self, name: str) -> bool:
        return self.only.casefold() in name.casefold()


class Progress:
    """A line for each step, with the time since the beginning. On stderr, so that tables can be kept apart."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    @property
    def took_s(self) -> float:
        return time.monotonic() - self._began

    def say(self, what: str) -> None:
        minutes, seconds = divmod(int(self.took_s), 60)
        print(f"[{minutes:2}:{seconds:02}] {what}", file=sys.stderr, flush=True)
