"""`purse drive`: the options of one run over a trace, its progress while it runs, its sums at the end."""

from __future__ import annotations

import asyncio
import secrets
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from commonpurse.call_log import CallLog
from commonpurse.commands import EXIT_ERROR, ApiCommand, Face, on_terminal, pairs, plain, say
from commonpurse.drive import Drive, Load, Tally
from commonpurse.http import Api
from commonpurse.progress import shown
from commonpurse.summary import report_lines, summary
from commonpurse.trace import Prices, Trace
from engine.core.amounts import AmountError

RUN_CHARS_MAX = 40  # of the 64 that a caller's id may have


def _run_name(_: click.Context, __: click.Parameter, written: str | None) -> str:
    if written is None:
        return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    allowed = written.isascii() and all(each.isalnum() or each in "._-" for each in written)
    if not allowed or not 1 <= len(written) <= RUN_CHARS_MAX:
        raise click.BadParameter(f"a run's name is 1 to {RUN_CHARS_MAX} letters, digits and . _ -")
    return written


@click.command(cls=ApiCommand)
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--input-usd-per-mtok", default="0.15", show_default=True, metavar="USD", help="A million input tokens.")
@click.option("--output-usd-per-mtok", default="0.60", show_default=True, metavar="USD",
              help="A million output tokens.")  # fmt: skip
@click.option("--output-cap", type=click.IntRange(min=0, max=10**9), default=1024, show_default=True, metavar="TOKENS",
              help="What each call is held for; a longer answer is an overrun and charged in full.")  # fmt: skip
@click.option("--speed", type=click.FloatRange(min=0, min_open=True), metavar="N",
              help="N times the file's own pace; as fast as it goes if not given.")  # fmt: skip
@click.option("--concurrency", type=click.IntRange(1, 1_024), default=64, show_default=True, help="Requests at once.")
@click.option("--batch", type=click.IntRange(1, 1_000), default=1, show_default=True, help="Rows a request.")
@click.option("--limit-rows", type=click.IntRange(min=1), metavar="ROWS", help="Only the first rows of the file.")
@click.option("--label", multiple=True, callback=pairs("NAME=VALUE like provider=jev"), metavar="NAME=VALUE",
              help="On every hold; may be repeated.")  # fmt: skip
@click.option("--run", callback=_run_name, metavar="NAME",
              help="Names the run: the same name again goes on where it stopped; fresh if not given.")  # fmt: skip
@click.option("--log", type=click.Path(path_type=Path, dir_okay=False), metavar="CSV",
              help="Append each call that was made and what it cost, for a later backfill.")  # fmt: skip
@click.pass_context
def drive(
    ctx: click.Context,
    file: Path,
    input_usd_per_mtok: str,
    output_usd_per_mtok: str,
    output_cap: int,
    speed: float | None,
    concurrency: int,
    batch: int,
    limit_rows: int | None,
    label: dict[str, str],
    run: str,
    log: Path | None,
) -> None:
    """Send recorded traffic through the wallet: hold each call's worst case, settle its real cost.

    FILE is a CSV with the columns TIMESTAMP, ContextTokens and GeneratedTokens. Whatever dies on the way, a call is
    asked again under its own id and counts once. Exit code 0 says that every row was answered and that the wallet
    settled exactly what the trace says.
    """
    try:
        prices = Prices.of(
            input_usd_per_mtok=input_usd_per_mtok, output_usd_per_mtok=output_usd_per_mtok, output_cap=output_cap
        )
    except AmountError as error:
        raise click.UsageError(str(error)) from error
    load = Load(run, prices, labels=label, speed=speed or 0.0, concurrency=concurrency, batch=batch)
    trace = Trace(file, rows_max=limit_rows)
    face = ctx.ensure_object(Face)
    click.echo(f"run {run}: {plain(str(file))} to {face.url}", err=True)
    started_at = time.monotonic()
    with nullcontext() if log is None else CallLog(log) as lines:
        tally = _run(face, trace, load, lines)
    _report(face, tally, run, time.monotonic() - started_at)
    ctx.exit(0 if tally.exact else EXIT_ERROR)


def _run(face: Face, trace: Trace, load: Load, log: CallLog | None) -> Tally:
    try:
        import uvloop
    except ImportError:
        return asyncio.run(_drive(face, trace, load, log))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_drive(face, trace, load, log))


async def _drive(face: Face, trace: Trace, load: Load, log: CallLog | None) -> Tally:
    """The first Ctrl-C settles what is held and ends; the second ends at once."""
    async with Api.open(face.url, face.key, connections=load.concurrency) as api:
        run = Drive(api, trace, load, log=log)
        async with shown(run.tally, trace, drawn=on_terminal()):
            running = asyncio.create_task(run.run())
            with _stopped_by_ctrl_c(run, running), suppress(asyncio.CancelledError):
                await running
    return run.tally


@contextmanager
def _stopped_by_ctrl_c(run: Drive, running: asyncio.Task[None]) -> Iterator[None]:
    def interrupt() -> None:
        if run.tally.stopped:
            running.cancel()
        else:
            run.stop("Ctrl-C")
            click.echo("purse: settling what is held; Ctrl-C again ends at once", err=True)

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def _report(face: Face, tally: Tally, run: str, seconds: float) -> None:
    if face.as_json:
        return click.echo(msgspec.json.encode(summary(tally, run=run, seconds=seconds)).decode())
    for line in report_lines(tally, run=run, seconds=seconds):
        say(line)
    return None
