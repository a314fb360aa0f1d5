"""`purse backfill`: real costs from a log or an export, held against the record, and settled where it lacks them."""

from __future__ import annotations

import asyncio
import gc
import time
from pathlib import Path

import click
import msgspec

from commonpurse.backfill_shown import document, left, lines, summary
from commonpurse.call_logs import CallReader
from commonpurse.commands import EXIT_REFUSED, CannotTrust, Face, Failed, on_terminal, say
from commonpurse.commands.prices import SHIPPED, book_named
from commonpurse.reading import Opened, Whence, log_errors_only, opened, progress_shown, record_options
from engine.client import Purse
from engine.errors import Misconfigured, NoAnswer, PurseError, StreamRefused, Untrusted
from engine.plan_file import read as read_plan
from engine.prices.book import PriceBook, load_book
from projector.backfill.applying import apply as apply_all
from projector.backfill.judging import Finding, judge
from projector.backfill.known import Register
from projector.backfill.reading import FORMATS, FileReader, Format
from projector.backfill.rows import RowError, Rows
from projector.replay import replay

ROWS_SHOWN = 5
ENGINE_WAIT_S = 5.0
ENGINE_AGAIN_S = 0.25


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--apply", is_flag=True, help="Do it. Without, nothing is changed.")
@click.option("--format", "kind", type=click.Choice(FORMATS), default="auto", show_default=True,
              help="What kind of file it is; found by looking if not given.")  # fmt: skip
@click.option("--hold-field", metavar="FIELD",
              help="Where a logged call names its hold, like metadata.call; looked for if not given.")  # fmt: skip
@click.option("--price-book", "book", default=SHIPPED, envvar="PURSE_PRICE_BOOK", show_envvar=True, metavar="BOOK",
              help="What usage without a cost is priced with: a file, or a digest.")  # fmt: skip
@click.option("--config", type=click.Path(path_type=Path, exists=True, dir_okay=False), envvar="PURSE_CONFIG",
              show_envvar=True, help="A purse.toml with your own prices.")  # fmt: skip
@click.option("--no-strays", is_flag=True, help="Leave out calls nobody held: do not charge them.")
@click.option("--rows", "first", type=click.IntRange(min=0), default=ROWS_SHOWN, show_default=True,
              help="How many rows of each kind are shown.")  # fmt: skip
@record_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document with every row.")
@click.pass_context
def backfill(
    ctx: click.Context,
    file: Path,
    apply: bool,
    kind: Format,
    hold_field: str | None,
    book: str,
    config: Path | None,
    no_strays: bool,
    first: int,
    data: Path,
    nats: str | None,
    wallet: str,
    record: Path | None,
    as_json: bool,
) -> None:
    """Settle what a crash left open, from a FILE of what calls really cost.

    FILE is CSV (hold,usd) or JSON lines of holds and amounts, a `purse drive --log`, an export of ours, logged answers
    of OpenAI or Anthropic that name their hold, or spend logs of LiteLLM. Ids are those on the stream.

    Every row is held against the whole record first, and what would be done with it is shown. With --apply, which needs
    a running wallet, it is done. Running it again changes nothing, however late; killed on the way, run it again.

    Exit codes: 0 every row is, or can be, there; 3 some are in conflict or cannot be used, and nothing is done with
    those; 1 an error, 2 usage, 4 the stream cannot be trusted.
    """
    if apply and record is not None:
        raise click.UsageError("--apply needs the wallet itself, not a file of its record")
    log_errors_only()
    try:
        calls = CallReader(_book(book, config, data), hold_field=hold_field)
        rows = Rows(FileReader(calls, kind=kind, hold_field=hold_field).read(file))
        whence = Whence(data, wallet, nats, record)
        findings = asyncio.run(_backfill(whence, rows, apply=apply, strays=not no_strays))
    except Untrusted as error:
        raise CannotTrust(str(error)) from error
    except (NoAnswer, StreamRefused) as error:
        raise Failed(f"{error}{'; run it again: what has landed counts once' if apply else ''}") from error
    except RowError as error:
        raise Failed(f"{file}: {error}") from error
    except PurseError as error:
        raise Failed(str(error)) from error
    except OSError as error:
        raise Failed(f"{file} cannot be read ({error.strerror})") from error
    if as_json or ctx.ensure_object(Face).as_json:
        used = calls.book.digest if rows.priced else None
        click.echo(msgspec.json.encode(document(rows, findings, applied=apply, price_book=used)).decode())
    else:
        _print(rows, findings, calls.book, applied=apply, first=first)
    ctx.exit(EXIT_REFUSED if left(findings) else 0)


def _book(named: str, config: Path | None, data: Path) -> PriceBook:
    found = book_named(named, data)
    return load_book(read_plan(config).local.prices, book=found) if config is not None else found


async def _backfill(whence: Whence, rows: Rows, *, apply: bool, strays: bool) -> list[Finding]:
    async with opened(whence) as found:
        findings = await _judged(found, rows)
        if not strays:
            findings = [finding for finding in findings if finding.found != "stray"]
        return await _applied(found, whence, findings) if apply else findings


async def _judged(found: Opened, rows: Rows) -> list[Finding]:
    gc.disable()  # what is read makes no cycles, and looking for them takes a tenth of the time
    try:
        register = Register(found.source.wallet, wanted=rows.by_hold.keys())
        with progress_shown(drawn=on_terminal()) as progress:
            await replay(found.source, register.fold, progress=progress)
        if register.wallet.plan is None:
            raise Misconfigured("this wallet has no plan yet: there is nothing to settle")
        return list(judge(rows, register))
    finally:
        gc.enable()


async def _applied(found: Opened, whence: Whence, findings: list[Finding]) -> list[Finding]:
    assert found.task.url is not None
    async with Purse.connect(found.task.url, wallet=whence.wallet) as purse:
        if not await _engine_answers(purse):
            raise Misconfigured("no engine answers: --apply needs a running wallet (`purse up`)")
        with progress_shown(drawn=on_terminal(), noun="row") as progress:
            return await apply_all(purse, findings, progress=progress)


async def _engine_answers(purse: Purse) -> bool:
    """One that has just been started may still be replaying."""
    deadline = time.monotonic() + ENGINE_WAIT_S
    while not await purse.ready():
        if time.monotonic() >= deadline:
            return False
        await asyncio.sleep(ENGINE_AGAIN_S)
    return True


def _print(rows: Rows, findings: list[Finding], book: PriceBook, *, applied: bool, first: int) -> None:
    for line in lines(rows, findings, first=first):
        say(line)
    if rows.priced:
        say(f"{rows.priced:,} rows were priced from their usage with price book {book.digest[:12]}.")
    say(summary(findings, applied=applied) + ".")
