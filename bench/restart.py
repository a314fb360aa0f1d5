"""`python -m bench.restart`: how long an engine takes to be ready again, from the beginning and from a snapshot.

It makes a stream of a million asks (messages of 1,000, appended by hand and told by a real engine). At 10,000, at
100,000 and at the end it stops the engine and starts it again, as `python -m engine`, from the start of the process to
its answer that it is ready: without a data folder, so that it reads and decides all of the stream on one core, and with
its newest snapshot. While it replays, its memory is looked at. Then how long a fork stops an engine that knows so much.
With `--json` it prints its figures as `python -m bench` reads them.
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
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import click
import msgspec
import structlog

from bench import report
from bench.child import Child, EndedError, child
from bench.contender import COST, Call
from bench.core import NOON, STEP_NS, Figure, Teller
from bench.drive import cpu_s
from bench.loop import run_until_signalled
from bench.purse import PLAN, WALLET, hold_of
from engine.core.closed import ClosedRecord
from engine.core.messages import AnyAsk, ApplyPlan, AskMessage, Settle
from engine.embedded import embedded_nats
from engine.errors import NoAnswer
from engine.forked import Forked
from engine.journal import Journal
from engine.recorded import Recorded

ASKS = 1_000  # a message
SETTLED = 990  # of a thousand holds; the others stay open
USERS = 1_000
COUNTS: Sequence[int] = (10_000, 100_000, 1_000_000)
COUNTS_QUICK: Sequence[int] = (1_000, 5_000)
ROUNDS = 3
AHEAD = 8  # messages that may wait for their told
APPEND_WAIT_S = 60.0
READY_WAIT_S = 600.0
POLL_S = 0.005
FORKS = 9
KNOWN, KNOWN_QUICK = 1_000_000, 10_000  # remembered ids of an engine that forks
HOUR_NS = 3_600 * 1_000_000_000
PARTS = (0.25, 0.5, 0.75, 1.0)  # of the time of a replay, at which its memory is told

_encoder = msgspec.json.Encoder()


class _Ready(msgspec.Struct, frozen=True):
    """What an engine answers to `ready`."""

    upto: int
    told: int


@dataclass(frozen=True)
class Start:
    """One start of an engine. `resident_mb`: its memory, looked at evenly until ready; `most_mb`: the most ever."""

    took_s: float
    busy_s: float
    resident_mb: Sequence[float]
    most_mb: float


def zero_name(asks: int) -> str:
    """The row that says how long a start without a snapshot takes."""
    return f"restart: ready from zero after {asks:,} asks"


def snapshot_name(asks: int) -> str:
    """The row that says how long a start with one takes."""
    return f"restart: ready with a snapshot after {asks:,} asks"


def resident_name(part: float) -> str:
    """The row that says what a replay keeps when so much of its time is over."""
    return f"restart: memory after {part:.0%} of a replay's time"


@click.command()
@click.option("--rounds", default=ROUNDS, show_default=True, help="Starts of each kind, of which the median is told.")
@click.option("--quick", is_flag=True, help=f"A stream of {COUNTS_QUICK[-1]:,} asks, one round.")
@click.option("--json", "as_json", is_flag=True, help="Figures for programs.")
@click.option("--folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=tempfile.gettempdir())
def main(rounds: int, quick: bool, as_json: bool, folder: Path) -> None:
    """How soon an engine is ready again, what it keeps on the way, and what a snapshot's fork costs it."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(30))  # warnings
    made: list[Figure] = []

    async def run() -> None:
        made.extend(await measure(Path(root), COUNTS_QUICK if quick else COUNTS, 1 if quick else rounds))

    with tempfile.TemporaryDirectory(prefix="purse-restart-", dir=folder) as root:
        if status := run_until_signalled(run()):
            sys.exit(status)
    made += _pauses(KNOWN_QUICK if quick else KNOWN)
    report.say_figures(report.console(), "How soon an engine is ready again", made, as_json=as_json)


async def measure(root: Path, counts: Sequence[int], rounds: int) -> list[Figure]:
    """All starts on one stream, which grows from count to count."""
    made: list[Figure] = []
    asks = _asks()
    async with embedded_nats(root) as server, Journal.connect(server.url, wallet=WALLET, name="bench") as journal:
        await journal.ensure_stream()
        await journal.append("admin", _message([ApplyPlan("bench", PLAN, "")]), wait_s=APPEND_WAIT_S)
        there = 0
        for count in counts:
            _say(f"restart: a stream of {count:,} asks")
            async with _engine(server.url, root, "building", data=root) as engine:
                await _told(journal, engine, await _build(journal, engine, asks, count - there))
                await _ended(engine)
            there = count
            starts: dict[str, list[Start]] = {"zero": [], "snapshot": []}
            for number in range(rounds):
                for name, data in (("zero", None), ("snapshot", root)):
                    _say(f"restart: start {number + 1} of {rounds} with {count:,} asks, from {name}")
                    starts[name].append(await _start(server.url, journal, root, data))
            made += _figures(count, starts["zero"], starts["snapshot"])
        made += _replay(counts[-1], starts["zero"])
        (newest,) = sorted((root / "snapshots" / WALLET).iterdir())[-1:]
        made.append(Figure("restart: a snapshot", newest.stat().st_size / 1e6, "MB"))
    return made


def _figures(asks: int, zero: Sequence[Start], snapshot: Sequence[Start]) -> Iterator[Figure]:
    yield Figure(zero_name(asks), statistics.median(start.took_s for start in zero), "s")
    yield Figure(f"{zero_name(asks)}, CPU", statistics.median(start.busy_s for start in zero), "s")
    yield Figure(snapshot_name(asks), statistics.median(start.took_s for start in snapshot), "s")
    yield Figure(f"{snapshot_name(asks)}, CPU", statistics.median(start.busy_s for start in snapshot), "s")


def _replay(asks: int, zero: Sequence[Start]) -> Iterator[Figure]:
    """By the clock, everything in it from the start of the process on. One process with one thread that works."""
    took_s = statistics.median(start.took_s for start in zero)
    yield Figure(f"restart: replay of {asks:,} asks from zero", asks / took_s, "1/s")
    busy_s = statistics.median(start.busy_s for start in zero)
    yield Figure(f"restart: replay of {asks:,} asks from zero, of CPU", asks / busy_s, "1/s")
    for part in PARTS:
        at = [start.resident_mb[max(0, int(part * len(start.resident_mb)) - 1)] for start in zero]
        yield Figure(resident_name(part), statistics.median(at), "MB")
    ratio = statistics.median(start.most_mb / start.resident_mb[-1] for start in zero)
    yield Figure("restart: memory at its most / when ready", ratio, "x")


async def _start(url: str, journal: Journal, root: Path, data: Path | None) -> Start:
    began = time.monotonic()
    resident: list[float] = []
    async with _engine(url, root, "starting", data=data) as engine:

        def look() -> None:
            resident.append(_memory_mb(engine.pid, "VmRSS"))

        await _ready(journal, engine, look)
        took_s, busy_s = time.monotonic() - began, cpu_s([engine.pid])
        look()
        return Start(took_s, busy_s, resident, _memory_mb(engine.pid, "VmHWM"))


def _memory_mb(pid: int, what: str) -> float:
    """A line of the system's about a process; 0 where it says nothing."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) * 1_024 / 1e6 for line in lines if line.startswith(f"{what}:")), 0.0)


async def _build(journal: Journal, engine: Child, asks: Iterator[AnyAsk], count: int) -> int:
    """So many more, no faster than they are told: tolds would lie behind all asks. Returns the last sequence."""
    last = 0
    for number, done in enumerate(range(0, count, ASKS)):
        message = _message(list(itertools.islice(asks, min(ASKS, count - done))))
        last = (await journal.append("ask", message, wait_s=APPEND_WAIT_S)).seq
        if number % AHEAD == 0:
            await _told(journal, engine, last)
    return last


def _asks() -> Iterator[AnyAsk]:
    """A thousand holds and most of their settlements in turn, without end."""
    numbers = itertools.count()
    while True:
        calls = [Call(f"h-{number:024d}", f"u{number % USERS:06d}") for number in itertools.islice(numbers, ASKS)]
        yield from (hold_of(call, time.time_ns() + HOUR_NS // 2) for call in calls)
        yield from (Settle(call.id, {"usd": COST}) for call in calls[:SETTLED])


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


async def _ready(journal: Journal, engine: Child, look: Callable[[], None] = lambda: None) -> _Ready:
    """What it answers once it does; `look` is called again and again until then."""
    gives_up_at = time.monotonic() + READY_WAIT_S
    while True:
        try:
            answer = await journal.request(journal.names.subject("ready"), wait_s=POLL_S)
            return msgspec.json.decode(answer, type=_Ready)
        except NoAnswer:
            engine.check()
            look()
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


def _pauses(known: int) -> Iterator[Figure]:
    """What a fork costs an engine that knows so much, on the clock: medians, with all of it in memory."""
    gc.disable()
    teller = Teller()
    yield Figure("restart: a fork's pause, knowing nothing", _pause_ms(), "ms")
    for _ in range(known // 1_000):
        teller.tell(teller.holds(users=USERS))
    yield Figure(f"restart: a fork's pause, {known // 10:,} open holds", _pause_ms(), "ms")
    for number in range(known):
        record = ClosedRecord("settled", {"usd": COST + number}, number, NOON + HOUR_NS + STEP_NS * number)
        teller.wallet.closed.put(f"r-{number:024d}", record)
    yield Figure(f"restart: a fork's pause, the same and {known:,} remembered ids", _pause_ms(), "ms")


def _pause_ms() -> float:
    took_s: list[float] = []
    for _ in range(FORKS):
        began = time.perf_counter()
        forked = Forked(lambda: None)
        took_s.append(time.perf_counter() - began)
        forked.done(wait=True)
    return 1e3 * statistics.median(took_s)


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
