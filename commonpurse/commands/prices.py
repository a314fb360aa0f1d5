"""`purse prices`: what a model costs here, a new price book from the catalogue, and what differs between two.

Works on files alone and asks no wallet: the same book, and the same purse.toml, say the same everywhere.
"""

from __future__ import annotations

import gzip
from datetime import UTC, date, datetime
from pathlib import Path

import click
import msgspec

from commonpurse.commands import DEFAULT_DATA, Face, Failed, say
from engine.errors import Misconfigured
from engine.plan_file import read
from engine.prices.book import PriceBook, load_book, read_book, shipped_book
from engine.prices.shelf import kept

SHIPPED = "shipped"

_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
_data = click.option("--data", type=click.Path(path_type=Path, file_okay=False), default=DEFAULT_DATA,
                     envvar="PURSE_DATA", show_envvar=True, show_default=True,
                     help="The folder where books that were in force are kept.")  # fmt: skip


@click.group()
def prices() -> None:
    """What models cost here.

    A BOOK is "shipped" (the one that comes with this program), a file, or the digest of one that was in force here.
    """


@prices.command()
@click.argument("model", required=False)
@click.option("--provider", default="", help="Whose model; if not given, the first guarded provider that has it.")
@click.option("--config", type=click.Path(path_type=Path, exists=True, dir_okay=False), envvar="PURSE_CONFIG",
              show_envvar=True, help="A purse.toml with your own prices.")  # fmt: skip
@click.option("--book", default=None, envvar="PURSE_PRICE_BOOK", show_envvar=True, help="Another book.")
@_data
@_json
@click.pass_context
def show(
    ctx: click.Context, model: str | None, provider: str, config: Path | None, book: str | None, data: Path,
    as_json: bool,
) -> None:  # fmt: skip
    """Show what MODEL costs, or which book is in force.

    Exit code 1 where the model has no price: a call to it would be refused.
    """
    from commonpurse.price_list import price_document, price_lines

    as_json = as_json or ctx.ensure_object(Face).as_json
    try:
        found = book_named(book or SHIPPED, data)
        if config is not None:
            found = load_book(read(config).local.prices, book=found)
    except Misconfigured as error:
        raise Failed(str(error)) from error
    if model is None:
        return _describe(found, as_json=as_json)
    price = found.find(provider, model)
    if price is None:
        raise Failed(f"{model} has no price here; a call to it would be refused (model_not_priced)")
    if as_json:
        return click.echo(msgspec.json.encode({**price_document(price), "price_book": found.digest}).decode())
    say(f"{price.provider or 'any provider'}: {price.model}")
    for line in price_lines(price):
        say(f"  {line}")
    return None


@prices.command("import")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), default="price-book.json.gz",
              show_default=True, help="Where the book goes; without .gz at the end it is plain JSON.")  # fmt: skip
@click.option("--as-of", metavar="DATE", default=None, help="The prices of that day (UTC); today if not given.")
@_json
@click.pass_context
def import_(ctx: click.Context, output: Path, as_of: str | None, as_json: bool) -> None:
    """Make a price book from the installed package genai-prices.

    `PURSE_PRICE_BOOK=FILE` puts it in force. What cannot be priced is left out and said.
    """
    from commonpurse.catalogue import import_catalogue

    try:
        imported = import_catalogue(as_of=_day(as_of))
        raw = gzip.compress(imported.raw, mtime=0) if output.suffix == ".gz" else imported.raw
        output.write_bytes(raw)
    except Misconfigured as error:
        raise Failed(str(error)) from error
    except OSError as error:
        raise Failed(f"{output}: cannot be written: {error.strerror}") from error
    book = PriceBook(imported.raw)
    if ctx.ensure_object(Face).as_json or as_json:
        document = {
            "file": str(output), "price_book": book.digest, "source": book.contents.source,
            "as_of": book.contents.as_of, "models": imported.models, "left_out": imported.left_out,
            "changing": {name: day.isoformat() for name, day in imported.changing.items()},
        }  # fmt: skip
        return click.echo(msgspec.json.encode(document).decode())
    _describe(book, as_json=False)
    say(f"{output}: {imported.models:,} models; {len(imported.left_out):,} left out (--json says why)")
    for name, day in sorted(imported.changing.items()):
        say(f"{name} changes on {day}: make a new book then")
    return None


@prices.command()
@click.argument("old", metavar="A")
@click.argument("new", metavar="B")
@_data
@_json
@click.pass_context
def diff(ctx: click.Context, old: str, new: str, data: Path, as_json: bool) -> None:
    """Say what differs from book A to book B."""
    from commonpurse.price_list import differences

    try:
        found = dict(differences(book_named(old, data), book_named(new, data)))
    except Misconfigured as error:
        raise Failed(str(error)) from error
    if ctx.ensure_object(Face).as_json or as_json:
        return click.echo(msgspec.json.encode({"changes": found}).decode())
    for name, change in found.items():
        say(f"{name}: {change}")
    if not found:
        say("nothing: both say the same")
    return None


def book_named(named: str, data: Path) -> PriceBook:
    """Raises `Misconfigured` where no book is named so."""
    if named == SHIPPED:
        return shipped_book()
    return kept(data, named) or read_book(Path(named))


def _describe(book: PriceBook, *, as_json: bool) -> None:
    models = {provider: len(book.prices(provider)) for provider in book.providers}
    contents = book.contents
    own = len(contents.own)
    if as_json:
        document = {
            "price_book": book.digest, "source": contents.source, "as_of": contents.as_of, "models": models,
            "own": own, "ceiling": contents.ceiling is not None,
        }  # fmt: skip
        return click.echo(msgspec.json.encode(document).decode())
    say(f"price book {book.digest}")
    say(f"  {sum(models.values()):,} models of {len(models)} providers, from {contents.source}, as of {contents.as_of}")
    if own or contents.ceiling is not None:
        ceiling = " and a ceiling for every other" if contents.ceiling is not None else ""
        say(f"  {own} {'price' if own == 1 else 'prices'} of your own{ceiling}")
    return None


def _day(written: str | None) -> date:
    if written is None:
        return datetime.now(UTC).date()
    try:
        return date.fromisoformat(written)
    except ValueError:
        raise click.BadParameter("expected a day such as 2026-12-01", param_hint="--as-of") from None
