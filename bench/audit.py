"""`python -m bench.audit`: how fast a day is audited, and how soon the wallet is shown as it was at a moment.

It makes a day of a million asks with every flag in it (`bench.day`), writes it as a raw export, and audits that: with
everything, with snapshots kept, with one process, and without deciding again. Then `--at` at ten moments, before and
after. Rates are of the clock and of CPU: on a crowded machine the second says more.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import click
import msgspec
import structlog

from bench.core import NS
from bench.day import MIDNIGHT, NAME, Day
from projector.audit.apart import Task
from projector.audit.moment import wallet_at
from projector.audit.report import Report
from projector.audit.running import audit
from projector.day_range import parse
from projector.export.raw import RawBounds, RawLine
from projector.export.raw_source import RawSource

WANTED = 150_000
AT_WANTED_S = 3.0
MOMENTS = 10

_encoder = msgspec.json.Encoder()


@click.command()
@click.option("--asks", default=1_000_000, show_default=True, help="Holds, settlements and the rest.")
@click.option("--seed", default=1, show_default=True, help="The same seed makes the same day.")
@click.option("--folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=tempfile.gettempdir())
@click.option("--brief", is_flag=True, help="Only the whole audit, not its parts.")
def main(asks: int, seed: int, folder: Path, brief: bool) -> None:
    """Print the rates."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(30))  # warnings
    gc.disable()
    with tempfile.TemporaryDirectory(prefix="purse-audit-", dir=folder) as root:
        record, data = Path(root) / "record.jsonl", Path(root) / "data"
        data.mkdir()
        made = _make(record, asks, seed)
        print(f"a day of {made:,} asks: {record.stat().st_size / 1e6:.0f} MB", flush=True)
        if not brief:
            _apart(lambda: _moments("without snapshots", record, None))
        for name, redecide, apart, keep in (
            ("all of it, two processes", True, True, None),
            ("the same, and snapshots kept", True, True, data),
            ("without deciding again", False, False, None),
            ("all of it, one process", True, False, None),
        )[: 2 if brief else 4]:
            _apart(
                lambda name=name, redecide=redecide, apart=apart, keep=keep: asyncio.run(  # type: ignore[misc]  # defaults bind the loop
                    _measured(name, record, redecide, apart, keep)
                )
            )
        kept = list(data.rglob("*.snapshot"))
        print(f"kept: {len(kept)} snapshots of {sum(one.stat().st_size for one in kept) / 1e6:.0f} MB", flush=True)
        _apart(lambda: _moments("from a snapshot", record, data))


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


def _make(record: Path, asks: int, seed: int) -> int:
    """Write the record; in a child, which gives its memory back."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        day = Day(asks, seed=seed)
        write(day, record)
        os.write(writing, str(day.record.asks).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        made = told.read()
    os.wait()
    return int(made)


def write(day: Day, record: Path) -> None:
    """The day as a raw export."""
    with record.open("wb") as file:
        file.write(_encoder.encode(RawBounds(wallet="main", first_seq=1, last_seq=0, start="", end="")) + b"\n")
        for stored in day:
            file.write(_encoder.encode(RawLine.of(stored)) + b"\n")


async def _measured(name: str, record: Path, redecide: bool, apart: bool, keep: Path | None) -> None:
    began, busy = time.perf_counter(), _cpu_s()
    source = RawSource(record)
    resident: list[tuple[int, int]] = []
    ends = await source.last()

    def on_progress(seq: int, end: int) -> None:
        resident.append((seq * 100 // end, _resident_mb()))

    report = await audit(
        source,
        parse(NAME, zone="UTC", now=MIDNIGHT),
        redecide=redecide,
        apart=Task("main", ends, record=str(record)) if apart else None,
        keep=keep,
        progress=on_progress,
    )
    took_s, busy_s = time.perf_counter() - began, _cpu_s() - busy
    _check(report)
    asks = report.read["asks"]
    memory = ", ".join(f"{mb} MB at {at} %" for at, mb in _spread(resident))
    print(
        f"{name}: {asks / took_s:,.0f} asks/s of the clock, {asks / busy_s:,.0f} asks/s of CPU "
        f"({took_s:.1f} s, {busy_s:.1f} s of CPU; wanted {WANTED:,}); resident here: {memory}, "
        f"peak {_peak_mb(resource.RUSAGE_SELF)} MB, of the second process {_peak_mb(resource.RUSAGE_CHILDREN)} MB",
        flush=True,
    )


def _check(report: Report) -> None:
    assert report.right, report
    assert len(report.seals) == 1, report.seals


def _spread(resident: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [next(one for one in resident if one[0] >= at) for at in (25, 50, 100) if resident and resident[-1][0] >= at]


def _moments(how: str, record: Path, data: Path | None) -> None:
    source = RawSource(record)
    took: list[tuple[float, float]] = []
    for number in range(1, MOMENTS + 1):
        began, busy = time.perf_counter(), time.process_time()
        asyncio.run(wallet_at(source, MIDNIGHT + number * 24 * 3_600 * NS // (MOMENTS + 1), data=data))
        took.append((time.perf_counter() - began, time.process_time() - busy))
    each = ", ".join(f"{took_s:.2f} ({busy_s:.2f})" for took_s, busy_s in took)
    print(
        f"--at {MOMENTS} moments over the day, {how}: {each} s of the clock (of CPU; wanted {AT_WANTED_S:g} s)",
        flush=True,
    )


def _peak_mb(whose: int) -> int:
    return resource.getrusage(whose).ru_maxrss * 1_024 // 1_000_000


def _cpu_s() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def _resident_mb() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1_000_000


if __name__ == "__main__":
    main()
