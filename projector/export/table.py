"""`export`: what was decided in some days, as a table in a file, proved as it is read.

It reads from the first message on, since what a row says follows from all before it, and stops behind the last day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from engine.core.wallet import Wallet
from projector import day_range
from projector.day_range import DayRange
from projector.export.files import Bounds, Sink, sink, whole
from projector.export.rows import Row, Rows, utc
from projector.reading import Source
from projector.replay import Answered, replay

ALL = "all"
"""In place of a day: the whole record."""

DEFAULT_ZONE = "UTC"  # of a record without a plan


class Beside:
    """An export of days that somebody else reads: an audit. `take` every answered message, in order."""

    def __init__(self, rows: Sink, days: DayRange) -> None:
        self._written, self._days = _Written(rows), days
        self._fold = Rows(self._written.write, self._wants)

    def take(self, answered: Answered) -> None:
        """Raises `BrokenRecord`. What is behind the days is no row of theirs."""
        if answered.entry.at < self._days.end:
            self._fold.take(answered)

    def bounds(self, wallet: str) -> Bounds:
        return self._written.bounds(wallet, _Named(self._days), self._fold.wallet)

    def _wants(self, _: Wallet, at: int) -> bool:
        return at in self._days


@contextmanager
def beside(wallet: str, days: DayRange, out: Path) -> Iterator[Beside]:
    """The rows decided in `days` go to `out` as the block takes them, in the format that it ends in.

    All days are those of one zone. Raises `Misconfigured` (the format) and `OSError`; then, and where the block fails,
    there is no file.
    """
    with sink(out) as rows, whole(out) as unfinished:
        found = Beside(rows, days)
        yield found
        rows.finish(found.bounds(wallet), unfinished)


class _Named:
    """Days whose bounds are known beforehand."""

    def __init__(self, days: DayRange) -> None:
        self._days = days

    def bounds(self, wallet: Wallet, first: int, last: int) -> tuple[str, str, int, int]:
        return str(self._days), self._days.zone, self._days.start, self._days.end


class _Behind(Exception):
    """The last day is over: nothing that comes belongs to it."""


async def export(
    source: Source, days: str, out: Path, *, now: int, progress: Callable[[int, int], None] | None = None
) -> Bounds:
    """Write the rows decided in `days` (`projector.day_range`, or `all`), in the format that `out` ends in.

    A day is that of the plan in force at each moment; `now` (ns) is when `today` is said. The amounts of a day's own
    budgets may change after it (late settles, corrections): those rows are in the day on which they were decided.
    Raises `DayError`, `Misconfigured` (the format), `OSError`, `BrokenRecord`, `Untrusted`, `NoAnswer`,
    `StreamRefused`; then there is no file.
    """
    chosen = _Chosen(days, now)
    with sink(out) as rows, whole(out) as unfinished:
        written = _Written(rows)
        fold = Rows(written.write, chosen.wants)
        with suppress(_Behind):
            await replay(source, fold.take, progress=progress)
        bounds = written.bounds(source.wallet, chosen, fold.wallet)
        rows.finish(bounds, unfinished)
    return bounds


class _Chosen:
    """Which moments are exported. Days are cut by the zone of the plan in force."""

    def __init__(self, days: str, now: int) -> None:
        self._days, self._now = days, now
        self._ranges: dict[str, DayRange] = {}
        if days != ALL:
            self.range_in(DEFAULT_ZONE)  # what is no day anywhere is said before anything is read
        self._used: dict[str, DayRange] = {}

    def range_in(self, zone: str) -> DayRange:
        found = self._ranges.get(zone)
        if found is None:
            found = self._ranges[zone] = day_range.parse(self._days, zone=zone, now=self._now)
        return found

    def wants(self, wallet: Wallet, at: int) -> bool:
        if self._days == ALL:
            return True
        found = self.range_in(_zone(wallet))
        if at >= found.end:
            raise _Behind
        if at >= found.start:
            self._used[found.zone] = found
        return at >= found.start

    def bounds(self, wallet: Wallet, first: int, last: int) -> tuple[str, str, int, int]:
        """Name, zone and [start, end) of what was chosen; of everything, from its first row until behind its last."""
        if self._days == ALL:
            return ALL, _zone(wallet), first, last + 1 if last else 0
        used = list(self._used.values()) or [self.range_in(_zone(wallet))]
        return str(used[-1]), used[-1].zone, min(one.start for one in used), max(one.end for one in used)


class _Written:
    """Counts what goes by."""

    def __init__(self, rows: Sink) -> None:
        self._rows = rows
        self._count = self._first = self._last = 0

    def write(self, row: Row) -> None:
        self._rows.write(row)
        self._count += 1
        self._first, self._last = self._first or row.at, row.at

    def bounds(self, wallet_name: str, chosen: _Chosen | _Named, wallet: Wallet) -> Bounds:
        days, zone, start, end = chosen.bounds(wallet, self._first, self._last)
        return Bounds(
            wallet=wallet_name,
            days=days,
            zone=zone,
            start=utc(start),
            end=utc(end),
            start_ns=start,
            end_ns=end,
            rows=self._count,
            upto=wallet.upto,
        )


def _zone(wallet: Wallet) -> str:
    return wallet.plan.zone if wallet.plan is not None else DEFAULT_ZONE
