"""What is measured, in one small protocol for us and for every peer, so that all are driven by the same code.

A contender keeps two daily budgets for each call: one that everybody shares, one for each user. A *decision* is a hold
that was granted, or a settlement that was taken, and that survives a power cut by the time its caller hears of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

HELD = 10_000_000  # nano-dollars: one cent at most ...
COST = 4_000_000  # ... and what it then costs
LIMIT = 9 * 10**15  # of every budget: never reached, and exact where a peer counts in doubles (2**53)
TTL_S = 600
USERS = 1_000
DAY = "2026-11-30"  # for peers, which are told the period by their caller


class Call(NamedTuple):
    """One model call to be held for."""

    id: str
    user: str


class Client(Protocol):
    """One open connection (or pool) to a contender. Every method raises if anything but a grant comes back."""

    @property
    def pids(self) -> Sequence[int]:
        """The processes that do the work, so that their CPU time can be read. Empty: it happens in this process."""

    async def hold(self, call: Call) -> None:
        """Hold `HELD` in both budgets, or raise."""

    async def settle(self, call: Call) -> None:
        """Settle the call at `COST`."""

    async def hold_all(self, calls: Sequence[Call]) -> None:
        """Hold for all of them in one request, each standing alone."""

    async def used(self) -> int:
        """What the shared budget has used, held and settled. Compared with what was granted, after it was measured."""


@dataclass(frozen=True)
class Shape:
    """How a contender is driven: `callers` of them, each with one request at a time, each request with `asks` holds."""

    title: str
    group: str  # shapes of one group are compared with each other
    callers: int
    asks: int = 1
    settles: bool = False


def callers(count: int) -> Shape:
    """So many callers, each waiting for its one hold."""
    title = f"{count:,} caller{'s' if count > 1 else ''}"
    return Shape(title, title, count)


def pairs(count: int) -> Shape:
    """So many callers, each holding and then settling."""
    title = f"{count:,} callers, hold + settle"
    return Shape(title, title, count, settles=True)


def batches(in_flight: int, size: int) -> Shape:
    """Explicit batches: so many requests at a time with so many holds each."""
    return Shape(f"batches, {in_flight} x {size:,}", "batches", in_flight, asks=size)


@dataclass(frozen=True)
class Contender:
    """Somebody to measure. `open` starts everything under an empty folder, and ends all of it when the block ends."""

    name: str
    about: str
    networked: bool  # reached over a socket: only such a peer is what ours is compared with
    shapes: tuple[Shape, ...]
    open: Callable[[Path], AbstractAsyncContextManager[Client]]
    missing: Callable[[], str | None] = lambda: None
    """Why it cannot run on this machine, None if it can."""
