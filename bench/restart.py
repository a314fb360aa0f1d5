"""`python -m bench.restart`: how long an engine takes to be ready again, from the beginning and from a snapshot.

It makes a stream of a million asks (messages of 1,000, appended by hand and told by a real engine), stops the engine,
and starts it twice: both times as `python -m engine`, from the start of the process to its answer that it is ready.
Then, in a process of its own, how long a fork stops an engine that knows so much.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import click
import msgspec
import structlog

from bench.child import Child, EndedError, child
from bench.contender import COST, Call
from bench.core import NOON, STEP_NS, Teller
from bench.purse import PLAN, WALLET, hold_of
from engine.core.closed import ClosedRecord
from engine.core.messages import AnyAsk, ApplyPlan, AskMessage, Settle
from engine.embedded import embedded_nats
from engine.errors import NoAnswer
from engine.forked import Forked
from engine.journal import Journal
from engine.recorded import Recorded

ASKS = 1_000  # a message
OPEN = 10_000  # holds that nobody settles
USERS = 1_000
AHEAD = 8  # messages that may wait for their told
APPEND_WAIT_S = 60.0
READY_WAIT_S = 600.0
POLL_S = 0.005
READY_WANTED_S = 2.0
FORKS = 9
HOUR_NS = 3_600 * 1_000_000_000

_encoder = msgspec.json.Encoder()


class _Ready(msgspec.Struct, frozen=True):
    """What an engine answers to `ready`."""

    upto: int
    told: int


@click.command()
@click.option("--asks", default=1_000_000, show_default=True, help="Holds and settlements on the stream.")
@click.option("--folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=tempfile.gettempdir())
def main(asks: int, folder: Path) -> None:
    """Print both times, and the pause."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(30))  # warnings
    with tempfile.TemporaryDirectory(prefix="purse-restart-", dir=folder) as root:
        asyncio.run(_restart(Path(root), asks))
    for line in _pauses():
        print(line, flush=True)


async def _restart(root: Path, asks: int) -> None:
    async with embedded_nats(root) as server, Journal.connect(server.url, wallet=WALLET, name="bench") as journal:
        await journal.ensure_stream()
        began = time.monotonic()
        async with _engine(server.url, root, "building", data=root) as engine:
            last = await _build(journal, engine, asks)
            await _told(journal, engine, last)
            await _ended(engine)
        print(f"{asks:,} asks told in {time.monotonic() - began:.0f} s", flush=True)
        (newest,) = sorted((root / "snapshots" / WALLET).iterdir())[-1:]
        print(f"snapshot: {newest.stat().st_size / 1e6:.0f} MB", flush=True)
        for name, data in (("with a snapshot", root), ("from the beginning", None), ("with a snapshot", root)):
            began = time.monotonic()
            async with _engine(server.url, root, name, data=data) as engine:
                await _ready(journal, engine)
                took_s, (user_s, system_s) = time.monotonic() - began, _cpu_s(engine.pid)
            busy_s = user_s + system_s
            wanted = f"wanted: {READY_WANTED_S:g} s" if data is not None else f"{asks / busy_s:,.0f} asks/s of CPU"
            print(
                f"ready {name}: {took_s:.2f} s, {busy_s:.2f} s of them its CPU "
                f"(user {user_s:.2f}, system {system_s:.2f}), {wanted}",
                flush=True,
            )


def _cpu_s(pid: int) -> tuple[float, float]:
    """User and system seconds of CPU: on a crowded machine these say something, and the time on the clock does not."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    return int(fields[11]) * tick_s, int(fields[12]) * tick_s


async def _build(journal: Journal, engine: Child, asks: int) -> int:
    """The whole stream, no faster than it is told: tolds would lie behind all asks. Returns the last sequence."""
    await journal.append("admin", _message([ApplyPlan("bench", PLAN, "")]), wait_s=APPEND_WAIT_S)
    last = 0
    for number, message in enumerate(_messages(asks)):
        last = (await journal.append("ask", message, wait_s=APPEND_WAIT_S)).seq
        if number % AHEAD == 0:
            await _told(journal, engine, last)
    return last


def _messages(asks: int) -> Iterator[bytes]:
    """Holds and settlements in turn; the last holds stay open."""
    numbers = itertools.count()
    for _ in range((asks - OPEN) // (2 * ASKS)):
        calls = [Call(f"h-{number:024d}", f"u{number % USERS:06d}") for number in itertools.islice(numbers, ASKS)]
        yield _message([hold_of(call, time.time_ns() + HOUR_NS // 2) for call in calls])
        yield _message([Settle(call.id, {"usd": COST}) for call in calls])
    for _ in range(OPEN // ASKS):
        calls = [Call(f"h-{number:024d}", f"u{number % USERS:06d}") for number in itertools.islice(numbers, ASKS)]
        yield _message([hold_of(call, time.time_ns() + HOUR_NS // 2) for call in calls])


def _message(asks: list[AnyAsk]) -> bytes:
    return _encoder.encode(AskMessage(asks=asks))


@asynccontextmanager
async def _engine(url: str, root: Path, name: str, *, data: Path | None) -> AsyncIterator[Child]:
    env = {
        "PURSE_NATS_URL": url,
        "PURSE_WALLET": WALLET,
        "PURSE_DATA": str(data) if data is not None else "",
        "PYTHONPATH": str(Path(__file__).parents[1]),
    }
    async with child(name, [sys.executable, "-m", "engine"], folder=root, env=env) as engine:
        yield engine


async def _ready(journal: Journal, engine: Child) -> _Ready:
    gives_up_at = time.monotonic() + READY_WAIT_S
    while True:
        try:
            answer = await journal.request(journal.names.subject("ready"), wait_s=POLL_S)
            return msgspec.json.decode(answer, type=_Ready)
        except NoAnswer:
            engine.check()
            if time.monotonic() > gives_up_at:
                raise
        await asyncio.sleep(POLL_S)


async def _told(journal: Journal, engine: Child, last: int) -> None:
    """Until the told that covers the last ask message is on record."""
    gives_up_at = time.monotonic() + READY_WAIT_S
    while time.monotonic() < gives_up_at:
        told = (await _ready(journal, engine)).told
        stored = await journal.read(told) if told > last else None
        if stored is not None and Recorded.read(stored).told.upto >= last:
            return
        await asyncio.sleep(POLL_S)
    raise NoAnswer(f"not told within {READY_WAIT_S:g} s")


async def _ended(engine: Child) -> None:
    """Stop it and let it put down its last snapshot, however busy the machine is."""
    os.kill(engine.pid, signal.SIGTERM)
    with suppress(EndedError):
        while True:
            engine.check()
            await asyncio.sleep(POLL_S)


# --- the pause --------------------------------------------------------------------------------------------------------


def _pauses() -> Iterator[str]:
    """What a fork costs an engine that knows so much: medians of this process, with all of it in memory."""
    gc.disable()
    teller = Teller()
    yield f"fork, knowing nothing: {_pause()}"
    for _ in range(1_000):
        teller.tell(teller.holds(users=USERS))
    yield f"fork, 100,000 open holds: {_pause()} ({_resident_mb()} MB resident)"
    for number in range(1_000_000):
        record = ClosedRecord("settled", {"usd": COST + number}, number, NOON + HOUR_NS + STEP_NS * number)
        teller.wallet.closed.put(f"r-{number:024d}", record)
    yield f"fork, 100,000 open holds and 1,000,000 remembered ids: {_pause()} ({_resident_mb()} MB resident)"


def _pause() -> str:
    """On the clock and on the CPU: on a crowded machine only the second says something."""
    took: list[tuple[float, float]] = []
    for _ in range(FORKS):
        began, busy = time.perf_counter(), time.process_time()
        forked = Forked(lambda: None)
        took.append((time.perf_counter() - began, time.process_time() - busy))
        forked.done(wait=True)
    pause_s, busy_s = (statistics.median(column) for column in zip(*took, strict=True))
    return f"{1_000 * pause_s:.1f} ms, {1_000 * busy_s:.1f} ms of them CPU"


def _resident_mb() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1_000_000


if __name__ == "__main__":
    main()
