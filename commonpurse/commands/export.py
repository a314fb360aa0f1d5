"""`purse export`: what was decided as a table for other programs, or the raw record that proves it all again."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import click
import msgspec

from commonpurse.commands import DEFAULT_DATA, Face, Failed, on_terminal, say
from commonpurse.reading import Whence, ends_plainly, log_errors_only, opened, progress_shown
from projector.export.files import Bounds, format_of
from projector.export.raw import RawBounds, export_raw
from projector.export.table import export as export_rows


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
        with ends_plainly():
            if out is not None:
                format_of(out)
            written = asyncio.run(_export(days or "", out, raw, Whence(data, wallet, nats)))
    except OSError as error:
        raise Failed(f"the file cannot be written ({error.strerror})") from error
    if as_json or ctx.ensure_object(Face).as_json:
        return click.echo(msgspec.json.encode(written).decode())
    return _tell(written, str(out or raw))


async def _export(days: str, out: Path | None, raw: Path | None, whence: Whence) -> Bounds | RawBounds:
    log_errors_only()
    async with opened(whence) as record:
        with progress_shown(drawn=on_terminal()) as progress:
            if out is None:
                assert raw is not None
                return await export_raw(record.source, raw, progress=progress)
            now = record.now or time.time_ns()
            return await export_rows(record.source, days, out, now=now, progress=progress)


def _tell(written: Bounds | RawBounds, file: str) -> None:
    if isinstance(written, RawBounds):
        say(f"{file}: the whole record, sequences {written.first_seq:,} to {written.last_seq:,}, byte for byte.")
        return say(f"Prove it without this program: python verify.py {file}")
    say(f"{file}: {written.rows:,} rows of {written.days}, from {written.start} until {written.end}.")
    return None
