"""`python -m bench.watchers`: opens live streams as a `Watch` says and counts what comes. A process of its own.

It talks to its parent by lines: the `Watch` comes, `Opened` goes; then each line that comes begins a stretch of time
anew and ends the one before, of which `Heard` goes. It ends when no more lines come. It never reads what its stalled
ones are sent.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from collections import Counter
from typing import cast

import msgspec

from bench.drive import percentile
from bench.loop import loop_factory

OPEN_WAIT_S = 60.0
AT_ONCE = 50  # connections that are being opened at a time
STALLED_BUFFER = 4_096  # bytes: so that it is full soon ...
STALLED_SEGMENT = 536  # ... and the server's as well, which loopback's large segments would make 2.5 MB


class Watch(msgspec.Struct, frozen=True):
    """Requests of streams at 127.0.0.1, and how many send each. `stalled`: so many send the first and read nothing."""

    port: int
    strangers: bytes
    operators: bytes
    stranger_count: int
    operator_count: int
    stalled: int


class Opened(msgspec.Struct, frozen=True):
    """How many strangers and operators have had their first event, and with which status others were turned away."""

    open: int
    turned_away: dict[str, int]


class Heard(msgspec.Struct, frozen=True):
    """Of one stretch. Events a stranger: the fewest, the mean, the most. `behind`: of each event, how much later than
    the first of them the others had it, reading them all in this one process included."""

    took_s: float
    fewest: int
    mean: float
    most: int
    operator_mean: float
    events: int
    behind_p50_ms: float
    behind_p99_ms: float
    cpu_s: float


class Stretch:
    """What came since it began."""

    def __init__(self) -> None:
        self.began, self._cpu_s = time.perf_counter(), time.process_time()
        self._first_at: dict[bytes, float] = {}
        self._behind_ms: list[float] = []

    def came(self, id: bytes) -> None:
        """An event of this id, which this viewer has not had before."""
        now = time.perf_counter()
        first_at = self._first_at.setdefault(id, now)
        if first_at != now:
            self._behind_ms.append(1e3 * (now - first_at))

    def heard(self, strangers: list[Viewer], operators: list[Viewer]) -> Heard:
        counts = [viewer.events for viewer in strangers] or [0]
        others = [viewer.events for viewer in operators] or [0]
        behind = sorted(self._behind_ms) or [0.0]
        return Heard(
            took_s=time.perf_counter() - self.began,
            fewest=min(counts), mean=sum(counts) / len(counts), most=max(counts),
            operator_mean=sum(others) / len(others), events=sum(counts) + sum(others),
            behind_p50_ms=percentile(behind, 0.50), behind_p99_ms=percentile(behind, 0.99),
            cpu_s=time.process_time() - self._cpu_s,
        )  # fmt: skip


class Viewer(asyncio.Protocol):
    """One stream that is read to the end of each event."""

    def __init__(self, watching: Watching, request: bytes) -> None:
        self._watching, self._request = watching, request
        self._rest = b""
        self._last_id = b""
        self.events = 0
        self.first: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        *events, self._rest = (self._rest + data).split(b"\n\n")
        if not self.first.done() and (self._rest[9:12] or b"200") != b"200" and self._rest.startswith(b"HTTP"):
            self.first.set_result(self._rest[9:12].decode())
        for event in events:
            if b"event: " in event:
                self._count(event)

    def _count(self, event: bytes) -> None:
        self.events += 1
        if not self.first.done():
            self.first.set_result("")
        id = event.partition(b"\nid: ")[2].partition(b"\n")[0]
        if id != self._last_id and b"event: status" in event:  # a sign of life has the id of the event before
            self._last_id = id
            self._watching.stretch.came(id)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.first.done():
            self.first.set_result("connection lost")


class Watching:
    """Everybody who watches."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.stretch = Stretch()
        self.strangers: list[Viewer] = []
        self.operators: list[Viewer] = []
        self._stalled: list[socket.socket] = []

    async def open(self) -> Opened:
        watch, gate = self._watch, asyncio.Semaphore(AT_ONCE)
        strangers = [self._viewer(watch.strangers, gate) for _ in range(watch.stranger_count)]
        operators = [self._viewer(watch.operators, gate) for _ in range(watch.operator_count)]
        turned: Counter[str] = Counter()
        for coming, here in ((strangers, self.strangers), (operators, self.operators)):
            for viewer in await asyncio.gather(*coming):
                if viewer.first.result():
                    turned[viewer.first.result()] += 1
                else:
                    here.append(viewer)
        self._stalled = [_stalled(watch) for _ in range(watch.stalled)]
        return Opened(len(self.strangers) + len(self.operators), dict(turned))

    async def _viewer(self, request: bytes, gate: asyncio.Semaphore) -> Viewer:
        viewer = Viewer(self, request)
        async with gate, asyncio.timeout(OPEN_WAIT_S):
            await asyncio.get_running_loop().create_connection(lambda: viewer, "127.0.0.1", self._watch.port)
            await viewer.first
        return viewer

    def begin(self) -> Heard:
        """Begin a stretch anew; what was heard in the one before."""
        heard = self.stretch.heard(self.strangers, self.operators)
        for viewer in (*self.strangers, *self.operators):
            viewer.events = 0
        self.stretch = Stretch()
        return heard


def _stalled(watch: Watch) -> socket.socket:
    stalled = socket.socket()
    stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, STALLED_BUFFER)
    stalled.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, STALLED_SEGMENT)
    stalled.connect(("127.0.0.1", watch.port))
    stalled.sendall(watch.strangers)
    return stalled


async def serve() -> None:
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    watching = Watching(msgspec.json.decode(await lines.readline(), type=Watch))
    _say(await watching.open())
    while await lines.readline():
        _say(watching.begin())


def _say(what: Opened | Heard) -> None:
    os.write(sys.stdout.fileno(), msgspec.json.encode(what) + b"\n")


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(serve())
