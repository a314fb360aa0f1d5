"""What commands that read a record share: where it is, what somebody kept of it, and a bar while it is read."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
import structlog

from commonpurse.aside import store_of
from commonpurse.commands import DEFAULT_DATA, CannotTrust, Failed
from commonpurse.record_server import server_of
from commonpurse.survey import witnesses
from engine.errors import Misconfigured, PurseError, Untrusted
from engine.journal import Journal
from engine.receipts import Receipt
from projector.audit.apart import Task
from projector.audit.running import wallet_zone
from projector.day_range import DayError, DayRange, parse
from projector.export.raw_source import RawSource
from projector.reading import Source, StreamSource
from projector.seals.witness import Line, known, path_of

Progress = Callable[[int, int], None]
Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Whence:
    """Where the record is: on the server of a data folder, on one at `nats`, or in a raw export `record`."""

    data: Path
    wallet: str = "main"
    nats: str | None = None
    record: Path | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A record that can be read. `task`: how another process finds it. `now`: its server's clock, None for a file.

    `journal`: the connection it is read over, None for a file.
    """

    source: Source
    task: Task
    now: int | None
    journal: Journal | None = None


def record_options(command: Command) -> Command:
    """The options of `Whence`."""
    for option in (
        click.option("--record", type=click.Path(path_type=Path, dir_okay=False, exists=True), metavar="FILE.jsonl",
                     help="Read a raw export (`purse export --raw`) instead of the stream."),
        click.option("--wallet", default="main", envvar="PURSE_WALLET", show_envvar=True, show_default=True,
                     help="The wallet's name on the stream."),
        click.option("--nats", metavar="URL", envvar="PURSE_NATS_URL", show_envvar=True,
                     help="The nats-server or cluster, if it is not the one in the data folder."),
        click.option("--data", type=click.Path(path_type=Path, file_okay=False), default=DEFAULT_DATA,
                     envvar="PURSE_DATA", show_envvar=True, show_default=True,
                     help="The folder everything is kept in."),
    ):  # fmt: skip
        command = option(command)
    return command


@asynccontextmanager
async def opened(whence: Whence) -> AsyncIterator[Opened]:
    """Raises `Misconfigured` where there is no record, `NoAnswer` where no server answers."""
    if whence.record is not None:
        source = RawSource(whence.record)
        yield Opened(source, Task(source.wallet, 0, record=str(whence.record)), None)
        return
    if whence.nats is None and not store_of(whence.data).is_dir():
        raise Misconfigured(f"there is no store in {whence.data} yet: `purse up` makes it")
    async with (
        server_of(whence.data, wallet=whence.wallet, nats=whence.nats) as server,
        Journal.connect(server.url, wallet=whence.wallet, name="purse-audit") as journal,
    ):
        yield Opened(StreamSource(journal), Task(whence.wallet, 0, url=server.url), await journal.now(), journal)


def receipts_kept(whence: Whence) -> list[Receipt]:
    """What the processes on this data folder have written down of the stream: a fork or a cut shows against it."""
    if whence.record is not None or not whence.data.is_dir():
        return []
    return [Receipt(seen.told, seen.chain) for seen in witnesses(whence.data, whence.wallet) if seen.told]


def seals_kept(whence: Whence, copies: Iterable[Path]) -> list[Line]:
    """What the witness of seals in the data folder has seen, and every copy of one. Raises `Misconfigured`."""
    files = list(copies)
    if whence.record is None and whence.data.is_dir():
        files.append(path_of(whence.data, whence.wallet))
    found: list[Line] = []
    for file in files:
        try:
            witnessed = known(file)
        except OSError as error:
            raise Misconfigured(f"{file}: cannot be read: {error.strerror}") from error
        if witnessed.damaged:
            raise Misconfigured(f"{file}: {witnessed.damaged:,} of its lines are no seals: was it changed?")
        found += witnessed.lines.values()
    return found


def log_errors_only() -> None:
    """Standard output is for the answer alone."""
    logging.getLogger("nats").setLevel(logging.CRITICAL)
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger("error"),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


async def days_of(found: Opened, written: str) -> DayRange:
    """The days that a user wrote, in the wallet's zone. Raises `DayError`."""
    zone = await wallet_zone(found.source)
    return parse(written, zone=zone, now=found.now if found.now is not None else time.time_ns())


@contextmanager
def ends_plainly() -> Iterator[None]:
    """What may go wrong as a record is read, as one line and the exit code that says it."""
    try:
        yield
    except Untrusted as error:
        raise CannotTrust(str(error)) from error
    except DayError as error:
        raise click.UsageError(str(error)) from error
    except PurseError as error:
        raise Failed(str(error)) from error


@contextmanager
def progress_shown(*, drawn: bool, noun: str = "sequence") -> Iterator[Progress | None]:
    """A bar on standard error where a person watches. `noun`: what is counted."""
    if not drawn:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("", total=None)
        yield lambda seq, last: progress.update(bar, completed=seq, total=last, description=f"{noun} {seq:,}")
