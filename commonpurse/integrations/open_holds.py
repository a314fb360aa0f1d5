"""Open holds between two callbacks of a framework: what the first put here the last takes, once.

A call whose end no callback ever tells lapses in the wallet; here it is forgotten some time after that.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Generic, Protocol, TypeVar

from commonpurse.client.answers import Held

OPEN_MAX = 10_000
LAPSED = timedelta(minutes=5)  # our clock need not be the wallet's


class Lapsing(Protocol):
    held: Held


Hold = TypeVar("Hold", bound=Lapsing)


class OpenHolds(Generic[Hold]):
    """By the framework's own id of a call. Safe for threads."""

    def __init__(self) -> None:
        self._open: dict[str, Hold] = {}
        self._lock = threading.Lock()

    def put(self, id: str, hold: Hold) -> None:
        """Past `OPEN_MAX`, those that have lapsed are forgotten; an open call never is."""
        with self._lock:
            if len(self._open) >= OPEN_MAX:
                gone = datetime.now(UTC) - LAPSED
                self._open = {name: kept for name, kept in self._open.items() if kept.held.expires_at > gone}
            self._open[id] = hold

    def take(self, id: str) -> Hold | None:
        """The hold of this call, if nobody has taken it."""
        with self._lock:
            return self._open.pop(id, None)
