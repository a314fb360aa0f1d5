"""`python -m bench.audit`: how fast a day is audited, and how soon the wallet is shown as it was at a moment.

It makes a day of a million asks with every flag in it (a wallet of its own tells them, at stream time), writes it as a
raw export, and audits that: with everything, with one process, and without deciding again. Then `--at` at several
moments with snapshots. Rates are of the clock and of CPU: on a crowded machine the second says more.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import resource
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import msgspec
import structlog

from bench.core import NS
from engine.core import chain
from engine.core.messages import (
    Adjust,
    AnyAsk,
    ApplyPlan,
    AskMessage,
    Freeze,
    Hold,
    Observe,
    Option,
    Revoke,
    Settle,
    Thaw,
    Told,
)
from engine.core.plan import Budget, Plan
from engine.core.tell import read, tell
from engine.core.wallet import Wallet
from engine.journal import Stored
from engine.snapshots import FOLDER, SUFFIX, Snapshot, encode
from projector.audit.apart import Task
from projector.audit.moment import wallet_at
from projector.audit.report import Report
from projector.audit.running import audit
from projector.day_range import parse
from projector.raw_export import RawBounds, RawLine
from projector.raw_source import RawSource

DAY = "2026-11-30"
MIDNIGHT = 1_795_996_800 * NS
ASKS = 200  # a message
TOLD = 16  # messages a told covers
USERS = 5_000
NANOS = 1_000_000
WANTED = 150_000
AT_WANTED_S = 3.0
CORRECTED_AFTER = 48 + 60 * 101  # calls later one that lapsed is settled after all
SNAPSHOTS = 8  # over the day

PLAN = Plan(
    {
        "usd": Budget("usd", 10**15, source="cloudflare"),
        "neurons": Budget("neurons", 10**15),
        "user-daily": Budget("usd", 10**13, each="user"),
        "tight": Budget("usd", 50 * NANOS, where={"provider": "tight"}),
    },
    ttl_s=600,
)

_encoder = msgspec.json.Encoder()


class Day:
    """A record being made: `message` tells one, and gives what lies on the stream by it."""

    def __init__(self) -> None:
        self.wallet = Wallet("main")
        self.asks = 0
        self.told = 0
        self.chain = chain.GENESIS
        self._seq = 0
        self._untold: list[tuple[Stored, bytes]] = []

    def message(self, asks: list[AnyAsk], ts: int, *, kind: str = "ask") -> Iterator[Stored]:
        raw = _encoder.encode(AskMessage(asks=asks))
        self._seq += 1
        stored = Stored(self._seq, ts, kind, raw)
        message = read(raw)
        assert message is not None
        entry = tell(self.wallet, seq=stored.seq, ts=ts, asks=message.asks)
        self.asks += len(asks)
        self._untold.append((stored, _encoder.encode(entry)))
        yield stored
        if len(self._untold) >= TOLD:
            yield from self.tell(ts)

    def tell(self, ts: int) -> Iterator[Stored]:
        if not self._untold:
            return
        covered = [one for one, _ in self._untold]
        head = _encoder.encode(Told(engine="bench", upto=self._seq, n=len(covered), told=[]))
        body = head.removesuffix(b"[]}") + b"[" + b",".join(entry for _, entry in self._untold) + b"]"
        self.chain = chain.link(self.chain, ((one.seq, one.ts, one.data) for one in covered), body)
        self._seq += 1
        self.told = self._seq
        self._untold = []
        yield Stored(self._seq, ts, "told", chain.seal(body, self.chain))


def messages(day: Day, asks: int) -> Iterator[Stored]:
    """The whole day: calls in turn of holds and settlements, and now and then everything that is worth a flag."""
    yield from day.message([ApplyPlan("plan", PLAN, "")], MIDNIGHT, kind="admin")
    numbers = itertools.count()
    rounds = max(1, asks // (2 * ASKS))
    step = 23 * 3_600 * NS // (2 * rounds + 1)
    ts = MIDNIGHT
    for turn in range(rounds):
        calls = list(itertools.islice(numbers, ASKS))
        ts += step
        yield from day.message([_hold(number, ts) for number in calls], ts)
        ts += min(step, 60 * NS)
        yield from day.message(list(_settles(calls, ts)), ts)
        if turn % 50 == 25:
            yield from day.message(_operators(turn, ts), ts, kind="admin")
            yield from day.message([Observe(f"o{turn}", "usd", DAY, NANOS * turn, ts, "cloudflare")], ts)
    yield from day.message([], MIDNIGHT + 24 * 3_600 * NS + NS)
    yield from day.tell(MIDNIGHT + 24 * 3_600 * NS + NS)


def _hold(number: int, ts: int) -> Hold:
    labels = {
        "user": f"u{number % USERS:05d}", "model": f"m{number % 7}", "key": f"k{number % 40}",
        "provider": "tight" if number % 89 == 0 else "jev",
    }  # fmt: skip
    amounts = {"usd": NANOS} if number % 61 else {"usd": NANOS, "neurons": 1_000}
    return Hold(f"h-{number:012d}", [Option(amounts)], ts + 30 * NS, labels)


def _settles(calls: list[int], ts: int) -> Iterator[Settle]:
    for number in calls:
        id = f"h-{number:012d}"
        cost = {"usd": NANOS * 2 if number % 50 == 1 else NANOS // 2}
        if number % 101 == 2:
            continue  # it lapses
        if number % 97 == 3:
            cost["neurons"] = 7  # nobody held any
        yield Settle(id, cost, estimated=number % 113 == 4)
        if number % 211 == 5:
            yield Settle(id, {"usd": 1})  # a conflict
        if number % 131 == 6:
            yield Settle(f"s-{number:012d}", {"usd": 9}, labels={"user": "nobody", "provider": "jev"})
        if number % 997 == 7:
            yield Settle(f"f-{number:012d}", {"usd": 9}, held_at=ts - 72 * 3_600 * NS)
        if number % 101 == 50 and number > CORRECTED_AFTER:
            yield Settle(f"h-{number - CORRECTED_AFTER:012d}", {"usd": 5})


def _operators(turn: int, ts: int) -> list[AnyAsk]:
    return [
        Freeze(f"f{turn}", "user=u00001", "an incident", until=ts + NS),
        Thaw(f"t{turn}", "user=u00001"),
        Revoke(f"r{turn}", "user", f"x{turn}", "stolen"),
        Adjust(f"a{turn}", "usd", DAY, 3, "the invoice"),
    ]


@click.command()
@click.option("--asks", default=1_000_000, show_default=True, help="Holds, settlements and the rest.")
@click.option("--folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=tempfile.gettempdir())
def main(asks: int, folder: Path) -> None:
    """Print the rates."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(30))  # warnings
    gc.disable()
    with tempfile.TemporaryDirectory(prefix="purse-audit-", dir=folder) as root:
        record, data = Path(root) / "record.jsonl", Path(root) / "data"
        made = _make(record, data, asks)
        print(f"a day of {made:,} asks: {record.stat().st_size / 1e6:.0f} MB", flush=True)
        for name, redecide, apart in (
            ("all of it, two processes", True, True),
            ("without deciding again", False, False),
            ("all of it, one process", True, False),
        ):
            _apart(lambda redecide=redecide, apart=apart, name=name: _audit(name, record, redecide, apart))  # type: ignore[misc]  # defaults bind the loop
        _apart(lambda: _moments(record, data))


def _apart(work: Callable[[], object]) -> None:
    """In a child, so that each begins with nothing in memory."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def _make(record: Path, data: Path, asks: int) -> int:
    """Write the record and the snapshots of its moments; in a child, which gives its memory back."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        day = Day()
        kept = data / FOLDER / "main" / "audit"
        kept.mkdir(parents=True)
        every, due = asks // SNAPSHOTS, asks // SNAPSHOTS
        with record.open("wb") as file:
            file.write(_encoder.encode(RawBounds(wallet="main", first_seq=1, last_seq=0, start="", end="")) + b"\n")
            for stored in messages(day, asks):
                file.write(_encoder.encode(RawLine.of(stored)) + b"\n")
                if stored.kind == "told" and day.asks >= due:
                    snapshot = encode(Snapshot(day.wallet, day.told, day.chain))
                    (kept / f"{day.told:020}{SUFFIX}").write_bytes(snapshot)
                    due += every
        os.write(writing, str(day.asks).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        made = told.read()
    os.wait()
    return int(made)


def _audit(name: str, record: Path, redecide: bool, apart: bool) -> None:
    asyncio.run(_measured(name, record, redecide, apart))


async def _measured(name: str, record: Path, redecide: bool, apart: bool) -> None:
    source = RawSource(record)
    resident: list[tuple[int, int]] = []
    ends = await source.last()

    def on_progress(seq: int, end: int) -> None:
        resident.append((seq * 100 // end, _resident_mb()))

    began, busy = time.perf_counter(), _cpu_s()
    report = await audit(
        source,
        parse(DAY, zone="UTC", now=MIDNIGHT),
        redecide=redecide,
        apart=Task("main", ends, record=str(record)) if apart else None,
        progress=on_progress,
    )
    took_s, busy_s = time.perf_counter() - began, _cpu_s() - busy
    _check(report)
    asks = report.read["asks"]
    memory = ", ".join(f"{mb} MB at {at} %" for at, mb in _spread(resident))
    print(
        f"{name}: {asks / took_s:,.0f} asks/s of the clock, {asks / busy_s:,.0f} asks/s of CPU "
        f"({took_s:.1f} s, {busy_s:.1f} s of CPU; wanted {WANTED:,}); resident here: {memory}",
        flush=True,
    )


def _check(report: Report) -> None:
    assert report.right, report
    flags = {"overrun", "unheld", "late", "corrected", "stray", "forgotten", "conflict", "unreported", "lapsed",
             "estimated", "refused: spent"}  # fmt: skip
    assert flags <= report.flags.keys(), flags - report.flags.keys()


def _spread(resident: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [next(one for one in resident if one[0] >= at) for at in (25, 50, 100) if resident and resident[-1][0] >= at]


def _moments(record: Path, data: Path) -> None:
    source = RawSource(record)
    for hour in (3, 11, 20, 23):
        began = time.perf_counter()
        moment = asyncio.run(wallet_at(source, MIDNIGHT + hour * 3_600 * NS, data=data))
        took_s = time.perf_counter() - began
        print(
            f"--at {hour:02}:00, from the snapshot at {moment.start:,}: {took_s:.2f} s (wanted {AT_WANTED_S:g} s)",
            flush=True,
        )


def _cpu_s() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def _resident_mb() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1_000_000


if __name__ == "__main__":
    main()
