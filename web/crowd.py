"""How many requests may be inside at once. Past it they are turned away at the door, before their body is read.

Settles have a bound of their own, much larger, so that however many want to spend, those who have spent get in.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias

from web.problems import Problem, unavailable

Queue: TypeAlias = Literal["hold", "settle", "call", "events"]

INSIDE_MAX: dict[Queue, int] = {"hold": 4_096, "settle": 16_384, "call": 2_048, "events": 16}
"""A hold inside costs about 10 KB and waits 5 s: more could not be answered in time anyway. A call through a proxy may
bring some megabytes and stay for minutes. Whoever reads a day's decisions has a consumer on the stream meanwhile."""


BYTES_INSIDE_MAX = 256 * 1024 * 1024
"""Of the bodies of guarded calls, which are kept as long as the call runs. Read, they take a few times as much."""


class Crowd:
    """One web process's count of who is inside."""

    def __init__(self) -> None:
        self._inside: dict[Queue, int] = dict.fromkeys(INSIDE_MAX, 0)
        self._bytes = 0

    @contextmanager
    def admitted(self, queue: Queue) -> Iterator[None]:
        """Inside for the length of the block. Raises `Problem` 503 when there are too many."""
        if self._inside[queue] >= INSIDE_MAX[queue]:
            raise _too_many(queue)
        self._inside[queue] += 1
        try:
            yield
        finally:
            self._inside[queue] -= 1

    @contextmanager
    def carrying(self, count: int) -> Iterator[None]:
        """Inside with a body of at most so many bytes for the length of the block. Raises `Problem` 503."""
        if self._bytes + count > BYTES_INSIDE_MAX:
            raise _too_many("call")
        self._bytes += count
        try:
            yield
        finally:
            self._bytes -= count


def _too_many(queue: Queue) -> Problem:
    if queue == "events":
        return unavailable("overloaded", "Too many are reading the stream at this moment; ask again.")
    what = "Nothing may be spent on it" if queue != "settle" else "Nothing was recorded"
    return unavailable("overloaded", f"Too many are asking at this moment. {what}; ask again with the same id.")
