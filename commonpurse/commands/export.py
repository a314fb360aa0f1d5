"""`purse export`: what was decided as a table for other programs, or the raw record that proves it all again."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import msgspec
import structlog

from commonpurse.aside import store_of
from commonpurse.commands import DEFAULT_DATA, CannotTrust, Face, Failed, on_terminal, say
from commonpurse.record_server import server_of
from engine.errors import Misconfigured, PurseError, Untrusted
from engine.journal import Journal
from projector.day_range import DayError
from projector.export import export as export_rows
from projector.export_files import Bounds, format_of
from projector.raw_export import RawBounds, export_raw
from projector.reading import StreamSource

Progress = Callable[[int, int], None]


@click.command()
@click.argument("days", metavar="[DAY]", required=False)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.parquet|csv|jsonl",
              help="A table: a row for each outcome and budget it touched, by sequence.")  # fmt: skip
@click.option("--raw", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.jsonl",
              help="The whole stream, byte for byte, for examples/verify.py.")  # fmt: skip
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), default=DEFAULT_DATA, envvar="PURSE_DATA",
              show_envvar=True, show_default=True, help="The folder everything is kept in.")  # fmt: skip
@click.option("--nats", metavar="URL", envvar="PURSE_NATS_URL", show_envvar=True,
              help="The nats-server or cluster, if it is not the one in the data folder.")  # fmt: skip
@click.option("--wallet", default="main", envvar="PURSE_WALLET", show_envvar=True, show_default=True,
              help="The wallet's name on the stream.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print what was written as one JSON document.")
@click.pass_context
def export(
    ctx: click.Context,
    days: str | None,
    out: Path | None,
    raw: Path | None,
    data: Path,
    nats: str | None,
    wallet: str,
    as_json: bool,
) -> None:
    """Write a DAY (2026-11-30, today, yesterday, 2026-11-01..2026-11-30, all) to a file.

    Reads the stream itself, while the wallet runs or while it does not, and changes nothing there. Parquet needs the
    extra: pip install 'commonpurse[audit]'.

    Exit codes: 0 written, 1 it could not be, 2 usage, 4 the stream cannot be trusted.
    """
    if (out is None) == (raw is None):
        raise click.UsageError("say where to: --out FILE for a table of a DAY, or --raw FILE for the whole record")
    if (days is None) != (out is None):
        raise click.UsageError("--out goes with a DAY (or `all`); --raw writes the whole record, which has none")
    try:
        if out is not None:
            format_of(out)
        written = asyncio.run(_export(days or "", out, raw, data=data, nats=nats, wallet=wallet))
    except Untrusted as error:
        raise CannotTrust(str(error)) from error
    except DayError as error:
        raise click.UsageError(str(error)) from error
    except PurseError as error:
        raise Failed(str(error)) from error
    except OSError as error:
        raise Failed(f"the file cannot be written ({error.strerror})") from error
    if as_json or ctx.ensure_object(Face).as_json:
        return click.echo(msgspec.json.encode(written).decode())
    return _tell(written, str(out or raw))


async def _export(
    days: str, out: Path | None, raw: Path | None, *, data: Path, nats: str | None, wallet: str
) -> Bounds | RawBounds:
    _log_errors_only()
    if nats is None and not store_of(data).is_dir():
        raise Misconfigured(f"there is no store in {data} yet: `purse up` makes it")
    async with (
        server_of(data, wallet=wallet, nats=nats) as server,
        Journal.connect(server.url, wallet=wallet, name="purse-export") as journal,
    ):
        source = StreamSource(journal)
        with _shown(drawn=on_terminal()) as progress:
            if out is None:
                assert raw is not None
                return await export_raw(source, raw, progress=progress)
            now = await journal.now() or time.time_ns()
            return await export_rows(source, days, out, now=now, progress=progress)


def _log_errors_only() -> None:
    """Standard output is for what was written alone."""
    logging.getLogger("nats").setLevel(logging.CRITICAL)
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger("error"),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


@contextmanager
def _shown(*, drawn: bool) -> Iterator[Progress | None]:
    """A bar on standard error where a person watches."""
    if not drawn:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("", total=None)
        yield lambda seq, last: progress.update(bar, completed=seq, total=last, description=f"sequence {seq:,}")


def _tell(written: Bounds | RawBounds, file: str) -> None:
    if isinstance(written, RawBounds):
        say(f"{file}: the whole record, sequences {written.first_seq:,} to {written.last_seq:,}, byte for byte.")
        return say(f"Prove it without this program: python verify.py {file}")
    say(f"{file}: {written.rows:,} rows of {written.days}, from {written.start} until {written.end}.")
    return None
