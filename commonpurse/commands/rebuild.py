"""`purse rebuild`: fold the record from zero and hold the projector's documents against it, byte for byte."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import click
import msgspec

from commonpurse.commands import DEFAULT_DATA, EXIT_ERROR, CannotTrust, Face, Failed, on_terminal, say
from commonpurse.reading import Whence, log_errors_only, opened, progress_shown
from engine.errors import NoAnswer, PurseError, Untrusted
from engine.journal import Journal
from projector.days.rebuild import Rebuilt
from projector.days.rebuild import rebuild as rebuild_documents
from projector.days.shelf import BucketShelf

SHOWN_MAX = 20
ASK_WAIT_S = 5.0

_WHY = {
    "missing": "was missing",
    "behind": "was right as far as it went, but more has happened since",
    "other": "said something else",
    "unknown": "is of nothing on the record",
}


@click.command()
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), default=DEFAULT_DATA, envvar="PURSE_DATA",
              show_envvar=True, show_default=True, help="The folder everything is kept in.")  # fmt: skip
@click.option("--nats", metavar="URL", envvar="PURSE_NATS_URL", show_envvar=True,
              help="The nats-server or cluster, if it is not the one in the data folder.")  # fmt: skip
@click.option("--wallet", default="main", envvar="PURSE_WALLET", show_envvar=True, show_default=True,
              help="The wallet's name on the stream.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Compare, and change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def rebuild(ctx: click.Context, data: Path, nats: str | None, wallet: str, dry_run: bool, as_json: bool) -> None:
    """Fold the whole record again and compare every document of the days with it.

    They must be the same, byte for byte; those that are not are written anew. Runs beside a running wallet, comparing
    each document at the sequence it is of, or on a stopped one.

    Exit codes: 0 all were the same, 1 some were not (they are now, unless --dry-run) or an error, 2 usage, 4 the stream
    cannot be trusted.
    """
    log_errors_only()
    try:
        rebuilt = asyncio.run(_rebuild(Whence(data, wallet, nats), dry_run=dry_run))
    except Untrusted as error:
        raise CannotTrust(str(error)) from error
    except PurseError as error:
        raise Failed(str(error)) from error
    if as_json or ctx.ensure_object(Face).as_json:
        click.echo(msgspec.json.encode(rebuilt).decode())
    else:
        _tell(rebuilt, dry_run=dry_run)
    ctx.exit(EXIT_ERROR if rebuilt.differed else 0)


async def _rebuild(whence: Whence, *, dry_run: bool) -> Rebuilt:
    gc.disable()  # what is read makes no cycles, and looking for them takes a tenth of the time
    async with opened(whence) as record:
        assert record.journal is not None
        live = await _projector_runs(record.journal)
        with progress_shown(drawn=on_terminal()) as progress:
            shelf = BucketShelf(record.journal)
            return await rebuild_documents(record.source, shelf, live=live, dry_run=dry_run, progress=progress)


async def _projector_runs(journal: Journal) -> bool:
    """Whether one answers, and so writes on."""
    try:
        await journal.request(journal.names.subject("read.status"), wait_s=ASK_WAIT_S)
    except NoAnswer:
        return False
    return True


def _tell(rebuilt: Rebuilt, *, dry_run: bool) -> None:
    differed = len(rebuilt.differed)
    how = "all the same, byte for byte" if not differed else f"{differed:,} differed"
    colour = "red" if differed else "green"
    say(f"{rebuilt.documents:,} documents folded anew up to sequence {rebuilt.upto:,}: {how}.", colour=colour)
    for key, why in list(rebuilt.differed.items())[:SHOWN_MAX]:
        say(f"  {key} {_WHY[why]}")
    if differed > SHOWN_MAX:
        say(f"  and {differed - SHOWN_MAX:,} more")
    if differed and not dry_run:
        moved = f"; {rebuilt.moved:,} changed meanwhile: run it again" if rebuilt.moved else ""
        say(f"{rebuilt.rewritten:,} were put right{moved}. A projector that runs may still know better or worse: start")
        say("it anew without its snapshots (DATA/snapshots/WALLET/projector) if they differ again.")
