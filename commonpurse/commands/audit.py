"""`purse audit`: a day's spending, replayed and proved to the last decision; or the wallet at a moment, or one call."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec
import structlog

from commonpurse.commands import EXIT_ERROR, CannotTrust, Face, Failed, on_terminal, say
from commonpurse.reading import (
    Opened,
    Whence,
    days_of,
    log_errors_only,
    opened,
    progress_shown,
    receipts_kept,
    record_options,
    seals_kept,
)
from engine.errors import PurseError, Untrusted
from engine.receipts import Receipt
from projector.audit.following import follow as follow_on
from projector.audit.life import Event, Life
from projector.audit.moment import Moment, wallet_at
from projector.audit.report import Report
from projector.audit.running import audit as audit_day
from projector.audit.shown import lines
from projector.audited import SealsRead, put_down
from projector.day_range import DayError, DayRange
from projector.export.table import Beside, beside
from projector.replay import Answered, BrokenRecord, replay

NS = 1_000_000_000

log = structlog.get_logger()


def _moment(_: click.Context, __: click.Parameter, written: str | None) -> int | None:
    if written is None:
        return None
    try:
        found = datetime.fromisoformat(written)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise click.BadParameter("expected a time with its zone, like 2026-11-30T14:05:00Z")
    whole = found.astimezone(UTC).replace(microsecond=0)
    return int(whole.timestamp()) * NS + found.microsecond * 1_000


def _receipts(_: click.Context, __: click.Parameter, written: tuple[str, ...]) -> list[Receipt]:
    found = [Receipt.read(one.replace(":", " ", 1)) for one in written]
    if any(receipt is None for receipt in found):
        raise click.BadParameter("expected SEQ:CHAIN, the chain as 64 hexadecimal digits")
    return [receipt for receipt in found if receipt is not None]


@click.command()
@click.argument("day", required=False)
@click.option("--at", metavar="TIME", callback=_moment, help="Show the wallet as it was at this moment instead.")
@click.option("--hold", "hold_id", metavar="ID", help="Show one call's whole life instead.")
@click.option("--follow", is_flag=True, help="Go on afterwards, and check everything as it comes.")
@click.option("--export", "out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.parquet|csv|jsonl",
              help="Write the day's rows as `purse export DAY` does, in the same reading.")  # fmt: skip
@click.option("--receipt", "receipts", multiple=True, metavar="SEQ:CHAIN", callback=_receipts,
              help="A receipt kept elsewhere that the record must bear out; may be given several times.")  # fmt: skip
@click.option("--seals", "seals", multiple=True, type=click.Path(path_type=Path, dir_okay=False, exists=True),
              metavar="FILE.jsonl", help="A copy of a witness of seals that the record must bear out.")  # fmt: skip
@click.option("--no-redecide", is_flag=True, help="Do not decide anything again: faster, and the report says so.")
@click.option("--one-process", is_flag=True, help="Decide again in this process, not in a second one beside it.")
@click.option("--no-keep", is_flag=True, help="Leave no snapshots in the data folder for a later --at.")
@record_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document (with --follow one a line).")
@click.pass_context
def audit(
    ctx: click.Context,
    day: str | None,
    at: int | None,
    hold_id: str | None,
    follow: bool,
    out: Path | None,
    receipts: list[Receipt],
    seals: tuple[Path, ...],
    no_redecide: bool,
    one_process: bool,
    no_keep: bool,
    data: Path,
    nats: str | None,
    wallet: str,
    record: Path | None,
    as_json: bool,
) -> None:
    """Replay a DAY (2026-11-30, today, yesterday, 2026-11-01..2026-11-30) and prove it.

    Reads the whole record, while the wallet runs or while it does not, and changes nothing of it. Every chain is
    proved, every ask decided again, every total added up twice. The report says what happened, and what was not
    checked.

    Exit codes: 0 all is right, 1 something is off (its first sequence is named) or an error, 2 usage, 4 the stream
    cannot be trusted.
    """
    if (day is not None) + (at is not None) + (hold_id is not None) != 1:
        raise click.UsageError("say what to look at: a DAY, --at TIME or --hold ID")
    if follow and (day is None or record is not None):
        raise click.UsageError("--follow goes with a DAY of a stream")
    if out is not None and (day is None or follow):
        raise click.UsageError("--export goes with a DAY, and not with --follow")
    log_errors_only()
    whence = Whence(data, wallet, nats, record)
    as_json = as_json or ctx.ensure_object(Face).as_json
    if at is not None:
        return _print_moment(_run(_at(whence, at, keep=not no_keep), as_json=as_json), as_json=as_json)
    if hold_id is not None:
        return _print_life(_run(_life(whence, hold_id), as_json=as_json), as_json=as_json)
    assert day is not None
    how = _How(
        redecide=not no_redecide, apart=not one_process, keep=not no_keep, follow=follow, out=out, as_json=as_json
    )
    audited = _audit(whence, day, receipts, seals, how)
    ctx.exit(_run(audited, as_json=as_json))
    return None


def _run(work: Coroutine[Any, Any, Any], *, as_json: bool) -> Any:
    try:
        return asyncio.run(work)
    except BrokenRecord as broken:
        if as_json:
            document = {"right": False, "trusted": False, "first_wrong": broken.seq, "covers": broken.covers}
            click.echo(json.dumps({**document, "why": str(broken)}))
        raise CannotTrust(_broken(broken)) from broken
    except Untrusted as error:
        if as_json:
            click.echo(json.dumps({"right": False, "trusted": False, "first_wrong": None, "why": str(error)}))
        raise CannotTrust(str(error)) from error
    except DayError as error:
        raise click.UsageError(str(error)) from error
    except PurseError as error:
        raise Failed(str(error)) from error
    except OSError as error:
        raise Failed(f"the file cannot be written ({error.strerror})") from error


def _broken(broken: BrokenRecord) -> str:
    covers = ""
    if broken.covers is not None:
        first, last = broken.covers
        asks = f"messages {first:,} to {last:,}" if first != last else f"message {first:,}"
        covers = f"; it covers {asks}: any of these may be the one that was changed"
    return f"the record cannot be trusted, first at sequence {broken.seq:,}: {broken}{covers}"


# --- a day ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _How:
    """What the flags of the command say."""

    redecide: bool
    apart: bool
    keep: bool
    follow: bool
    out: Path | None
    as_json: bool


async def _audit(whence: Whence, day: str, receipts: list[Receipt], seals: Sequence[Path], how: _How) -> int:
    witnessed = seals_kept(whence, seals)  # first: the file may grow while the record is read
    gc.disable()  # what is read makes no cycles, and looking for them takes a tenth of the time
    async with opened(whence) as found:
        days = await days_of(found, day)
        kept = [*receipts, *receipts_kept(whence)]
        read = SealsRead(days)
        with progress_shown(drawn=on_terminal()) as progress, _export(found.source.wallet, days, how.out) as export:

            def also(answered: Answered) -> None:
                read.fold(answered)
                if export is not None:
                    export.take(answered)

            report = await audit_day(
                found.source,
                days,
                receipts=kept,
                witnessed=witnessed,
                redecide=how.redecide,
                apart=found.task if how.apart and not how.follow else None,
                keep=whence.data if how.keep and whence.record is None else None,
                also=also,
                progress=progress,
            )
        if export is not None:
            bounds = msgspec.to_builtins(export.bounds(found.source.wallet))
            report = msgspec.structs.replace(report, export={"file": str(how.out), **bounds})
        if how.redecide and whence.record is None:
            _put_down(whence.data, found, read, report)
        _print_report(report, as_json=how.as_json)
        if not how.follow or not report.right:
            return report.exit_code
        gc.enable()
        async for newer in follow_on(found.source, days, receipts=kept, witnessed=witnessed, after=report.read["last"]):
            _print_news(newer, as_json=how.as_json)
            if not newer.right:
                return EXIT_ERROR
        return 0


def _put_down(data: Path, found: Opened, read: SealsRead, report: Report) -> None:
    """What was found of days that are over, for the pages that show them. A disk that takes nothing stops no audit."""
    if not read.lines or not data.is_dir():
        return
    at = found.now if found.now is not None else time.time_ns()
    said = read.audited(at=at, right=report.right, asks=report.read["asks"])
    try:
        put_down(data, found.source.wallet, said)
    except OSError as error:
        log.warning("verdict_not_kept", why=error.strerror)


def _export(wallet: str, days: DayRange, out: Path | None) -> AbstractContextManager[Beside | None]:
    return beside(wallet, days, out) if out is not None else nullcontext()


def _print_report(report: Report, *, as_json: bool) -> None:
    if as_json:
        return click.echo(msgspec.json.encode(report).decode())
    for line in lines(report):
        colour = "red" if line.startswith("SOMETHING") else "green" if line.startswith("All is right") else None
        say(line, colour=colour)
    return None


def _print_news(report: Report, *, as_json: bool) -> None:
    if as_json:
        return click.echo(msgspec.json.encode(report).decode())
    read = report.read
    used = ", ".join(f"{one['budget']} {one['used']} of {one['limit']}" for one in report.budgets if not one["each"])
    right = "all right" if report.right else "OFF"
    say(f"{read['as_of']}  up to {read['last']:,}: {read['asks']:,} asks, {right}; {used}")
    if not report.right:
        _print_report(report, as_json=False)
    return None


# --- a moment, a call -------------------------------------------------------------------------------------------------


async def _at(whence: Whence, at: int, *, keep: bool) -> Moment:
    async with opened(whence) as found:
        data = None if whence.record is not None else whence.data
        return await wallet_at(found.source, at, data=data, keep=keep)


def _print_moment(moment: Moment, *, as_json: bool) -> None:
    if as_json:
        return click.echo(msgspec.json.encode(moment).decode())
    for line in _moment_lines(moment):
        say(line)
    return None


def _moment_lines(moment: Moment) -> Iterator[str]:
    since = f"from the snapshot at {moment.start:,} on" if moment.start else "from the first message on"
    yield f"Wallet {moment.wallet} at {moment.at}: ask messages up to {moment.upto:,}, read {since}"
    for one in moment.budgets:
        each = f" for {one['each']}" if one["each"] is not None else ""
        yield (
            f"  {one['budget']} of {one['period']}{each}: {one['used']} of {one['limit']} {one['unit']} used "
            f"(settled {one['settled']}, held {one['held']}, extra {one['extra']}), {one['remaining']} left"
        )
    if moment.more:
        yield f"  and {moment.more:,} more meters"
    due = f", {moment.due:,} of them due to lapse" if moment.due else ""
    yield f"  {moment.open_holds:,} holds open{due}"
    for frost in moment.frozen:
        yield f"  frozen: {frost['scope']} since {frost['since']} ({frost['reason']})"
    for revoked in moment.revoked:
        yield f"  revoked: {revoked}"


async def _life(whence: Whence, id: str) -> Life:
    life = Life(id)
    async with opened(whence) as found:
        with progress_shown(drawn=on_terminal()) as progress:
            await replay(found.source, life.fold, progress=progress)
    if not life.events:
        raise Failed("no ask on the record names this hold")
    return life


def _print_life(life: Life, *, as_json: bool) -> None:
    if as_json:
        return click.echo(msgspec.json.encode({"id": life.id, "events": life.events, "more": life.more}).decode())
    say(f"{life.id}:")
    for event in life.events:
        for line in _event_lines(event):
            say(line)
    if life.more:
        say(f"  and {life.more:,} more")
    return None


def _event_lines(event: Event) -> Iterator[str]:
    outcome = {name: value for name, value in event.outcome.items() if name not in ("outcome", "id", "hold")}
    kind = event.outcome.get("outcome", "")
    asked = "by time" if event.ask is None else str(event.ask.get("ask", ""))
    yield f"  {event.at}  message {event.seq:,}: {asked} -> {kind}"
    if event.ask is not None:
        said = {name: value for name, value in event.ask.items() if name not in ("ask", "id", "hold")}
        yield f"    asked    {json.dumps(said)}"
    yield f"    told     {json.dumps(outcome)}"
    yield f"    receipt  {event.receipt['seq']}:{event.receipt['chain']}"
