"""`python -m bench.proxy.load`: reads a `Load`, calls as it says, writes a `Heard`. A process of its own.

It reads of HTTP only what answers here have, so that it is not what limits a figure: a whole answer ends by its length
or its last chunk, a stream when `[DONE]` and its last chunk are there. Everything but that is counted as an error.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from pathlib import Path
from typing import cast

import msgspec

from bench.drive import percentile
from bench.loop import loop_factory

ROOT = Path(__file__).parents[2]
ANSWER_WAIT_S = 120.0
WINDOW_S_MAX = 30.0
LAST_CHUNK = b"0\r\n\r\n"
ERRORS_MAX = 100
"""Of one load. Past it whoever is called does not work, and calling on only burns time."""


class ClientFailedError(RuntimeError):
    """The process that calls ended with an error of its own."""


class Load(msgspec.Struct, frozen=True):
    """So many callers at 127.0.0.1, each with one call under way at a time, on one connection each."""

    port: int
    request: bytes
    """A whole request, head and body."""
    stream: bool
    callers: int
    warm_up_s: float
    seconds: float
    """How long answers count at least. Longer where fewer came than there are callers: slow is no error."""
    status: str = "200"
    """Of a good answer."""


class Times(msgspec.Struct, frozen=True):
    """0 where nothing was measured."""

    p50_ms: float
    p99_ms: float


class Heard(msgspec.Struct, frozen=True):
    """`answers`: calls that ended in the time that counts, `took_s`. `total`, `first`: of these, from the first byte
    sent to the last, and to the first, of the answer. `calls`: all that were answered well, before and after too."""

    calls: int
    answers: int
    took_s: float
    total: Times
    first: Times
    errors: dict[str, int]
    cpu_s: float


class Caller(asyncio.Protocol):
    """One connection. `call` sends a request; its answer is complete when `done` is."""

    def __init__(self, load: Load) -> None:
        self._load, self._status = load, load.status.encode()
        self._came = bytearray()
        self._transport: asyncio.Transport | None = None
        self._first_at = 0.0
        self._done: asyncio.Future[tuple[float, str]] | None = None

    async def call(self) -> tuple[float, float, str]:
        """When the first and the last byte came, and what was wrong with it, "" for nothing."""
        loop = asyncio.get_running_loop()
        if self._transport is None:
            await loop.create_connection(lambda: self, "127.0.0.1", self._load.port)
        self._came.clear()
        self._first_at = 0.0
        self._done = loop.create_future()
        assert self._transport is not None
        self._transport.write(self._load.request)
        try:
            async with asyncio.timeout(ANSWER_WAIT_S):
                last_at, wrong = await self._done
        except TimeoutError:
            last_at, wrong = time.perf_counter(), "no answer"
        if wrong:
            self.close()
        return self._first_at, last_at, wrong

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by its class

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._end("connection lost")

    def data_received(self, data: bytes) -> None:
        if not self._first_at:
            self._first_at = time.perf_counter()
        self._came += data
        if not self._came.endswith(LAST_CHUNK) and not _whole(self._came):
            return
        status = bytes(self._came[9:12])
        if status != self._status:
            self._end(f"status {status.decode()}")
        else:
            self._end("no [DONE]" if self._load.stream and b"data: [DONE]" not in self._came else "")

    def _end(self, wrong: str) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_result((time.perf_counter(), wrong))


def _whole(came: bytearray) -> bool:
    """Whether an answer with a length is there."""
    end = came.find(b"\r\n\r\n")
    if end < 0:
        return False
    head = bytes(came[:end]).lower()
    at = head.find(b"content-length:")
    return at >= 0 and len(came) >= end + 4 + int(head[at + 15 :].split(b"\r\n", 1)[0])


async def run(load: Load) -> Heard:
    """Call until the time is over; calls that run then are waited for, and do not count."""
    total_ms: list[float] = []
    first_ms: list[float] = []
    errors: Counter[str] = Counter()
    calls = 0
    all_begun, not_begun = asyncio.Event(), load.callers
    opens_at = closed_at = float("inf")

    def over() -> bool:
        """Whether enough was heard, or the time that counts has been long enough."""
        nonlocal closed_at
        now = time.perf_counter()
        enough = load.seconds if len(total_ms) >= load.callers else WINDOW_S_MAX
        if now - opens_at >= enough:
            closed_at = min(closed_at, now)
        return now >= closed_at

    async def caller() -> None:
        nonlocal calls, not_begun
        connection, begun_at_all = Caller(load), False
        while not over() and errors.total() < ERRORS_MAX:
            began = time.perf_counter()
            try:
                first_at, last_at, wrong = await connection.call()
            except OSError as error:
                first_at, last_at, wrong = 0.0, 0.0, type(error).__name__
            if not begun_at_all:
                begun_at_all, not_begun = True, not_begun - 1
                if not not_begun:
                    all_begun.set()
            if wrong:
                errors[wrong] += 1
                continue
            calls += 1
            if opens_at <= last_at <= closed_at:
                total_ms.append(1e3 * (last_at - began))
                first_ms.append(1e3 * (first_at - began))
        connection.close()

    tasks = [asyncio.create_task(caller()) for _ in range(load.callers)]
    async with asyncio.timeout(ANSWER_WAIT_S):
        await all_begun.wait()  # connections are open, and everything that is made once is made
    opens_at = time.perf_counter() + load.warm_up_s
    cpu_s = time.process_time()
    await asyncio.wait(tasks)
    for task in tasks:
        task.result()
    took_s = min(closed_at, time.perf_counter()) - opens_at
    cpu_s = time.process_time() - cpu_s
    return Heard(calls, len(total_ms), took_s, _times(total_ms), _times(first_ms), dict(errors), cpu_s)


def _times(took_ms: list[float]) -> Times:
    ordered = sorted(took_ms)
    return Times(percentile(ordered, 0.50), percentile(ordered, 0.99)) if ordered else Times(0.0, 0.0)


async def called(load: Load) -> Heard:
    """Call as it says from a process of its own. Raises `ClientFailedError` if that ends with an error."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.proxy.load", cwd=ROOT, stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        said, _ = await process.communicate(msgspec.json.encode(load))
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise ClientFailedError(f"the client ended with status {process.returncode}")
    return msgspec.json.decode(said, type=Heard)


def main() -> None:
    load = msgspec.json.decode(sys.stdin.buffer.read(), type=Load)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        heard = runner.run(run(load))
    print(msgspec.json.encode(heard).decode())


if __name__ == "__main__":
    main()
