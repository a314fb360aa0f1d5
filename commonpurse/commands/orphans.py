"""`purse orphans`: the calls whose real cost nobody has said, and a file in which to say it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from commonpurse.commands import CannotTrust, Face, Failed, on_terminal, say
from commonpurse.reading import Whence, log_errors_only, opened, progress_shown, record_options
from engine.errors import PurseError, Untrusted
from projector.backfill.orphans import OLDER_THAN_S, Orphan, as_csv, totals
from projector.backfill.orphans import orphans as find_orphans

ROWS_SHOWN = 20


@click.command()
@click.option("--older-than", "older_than_s", type=click.IntRange(min=0), default=OLDER_THAN_S, show_default=True,
              metavar="SECONDS", help="Of holds that are still open, only those.")  # fmt: skip
@click.option("--csv", "csv", is_flag=True, help="Print the file that `purse backfill` takes, for you to fill in.")
@click.option("--rows", "first", type=click.IntRange(min=0), default=ROWS_SHOWN, show_default=True,
              help="How many are shown.")  # fmt: skip
@record_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document with every call.")
@click.pass_context
def orphans(
    ctx: click.Context,
    older_than_s: int,
    csv: bool,
    first: int,
    data: Path,
    nats: str | None,
    wallet: str,
    record: Path | None,
    as_json: bool,
) -> None:
    """List the calls whose real cost nobody has said, the oldest first.

    These are holds that are open for long, that lapsed or were settled at an estimate, and settlements that came after
    the wallet had forgotten their hold and so were not charged. Reads the whole record and changes nothing.

    Exit codes: 0 done, 1 error, 2 usage, 4 the stream cannot be trusted.
    """
    as_json = as_json or ctx.ensure_object(Face).as_json
    if csv and as_json:
        raise click.UsageError("choose one: --csv or --json")
    log_errors_only()
    try:
        found = asyncio.run(_found(Whence(data, wallet, nats, record), older_than_s))
    except Untrusted as error:
        raise CannotTrust(str(error)) from error
    except PurseError as error:
        raise Failed(str(error)) from error
    if csv:
        click.echo(as_csv(found), nl=False)
    elif as_json:
        document = {"orphans": found, "at_stake": totals(found)}
        click.echo(msgspec.json.encode(document).decode())
    else:
        _print(found, first)


async def _found(whence: Whence, older_than_s: int) -> list[Orphan]:
    async with opened(whence) as record:
        with progress_shown(drawn=on_terminal()) as progress:
            return await find_orphans(record.source, older_than_s=older_than_s, now=record.now, progress=progress)


def _print(found: Sequence[Orphan], first: int) -> None:
    for orphan in found[:first]:
        say(_line(orphan))
    if len(found) > first:
        say(f"and {len(found) - first:,} more (--rows shows more, --csv and --json all)")
    for stake in totals(found):
        say(f"at stake in {stake.budget}: {stake.amount} {stake.unit}")
    calls = "1 call has" if len(found) == 1 else f"{len(found):,} calls have"
    say(f"{calls} no real cost." + (" --csv prints the file to fill in for `purse backfill`." if found else ""))


def _line(orphan: Orphan) -> str:
    takes = ", ".join(f"{amount} {unit}" for unit, amount in orphan.takes.items())
    said = ", ".join(f"{amount} {unit}" for unit, amount in orphan.said.items())
    budgets = ", ".join(f"{stake.budget} of {stake.period}" for stake in orphan.at_stake)
    parts = [f"{orphan.at}  {orphan.state:<9} {orphan.hold}"]
    parts += [f"takes {takes}"] if takes else []
    parts += [f"in {budgets}"] if budgets else []
    parts += [f"said to have cost {said}"] if said else []
    return "  ".join(parts)
