"""What time it is on the stream, as far as a reader can know. For waiting and showing, never for deciding."""

from __future__ import annotations

import time
from datetime import UTC, datetime

NS = 1_000_000_000


class StreamClock:
    """Estimates the stream's time from the newest timestamp and how long ago it was heard.

    Only what was heard just after it was stamped says anything: a message of a replay does not.
    """

    def __init__(self) -> None:
        self._ts = 0
        self._heard_at = time.monotonic_ns()

    def hear(self, ts: int) -> None:
        self._ts, self._heard_at = ts, time.monotonic_ns()

    def now(self) -> int:
        """ns; behind the stream's real time by what delivery took."""
        return self._ts + time.monotonic_ns() - self._heard_at


def written(at: int) -> str:
    """A moment (ns) for people, to the second and in UTC."""
    return f"{datetime.fromtimestamp(at // NS, UTC):%Y-%m-%dT%H:%M:%SZ}"
