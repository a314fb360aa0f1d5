"""What every command shares: whom it speaks to, how it prints, how it ends. Imports nothing that takes time.

The API options stand before or after the command's name, whichever the user finds natural; the later one wins.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

EXIT_ERROR, EXIT_USAGE, EXIT_REFUSED, EXIT_UNTRUSTED = 1, 2, 3, 4

DEFAULT_URL = "http://127.0.0.1:8080"
DEFAULT_DATA = "data"
KEY_FILE = "admin.key"
AMOUNT = re.compile(r"\d+(\.\d+)?", re.ASCII)
THIS_MACHINE = frozenset({"localhost", "::1", "0.0.0.0"})  # noqa: S104  compared with, never bound


class Failed(click.ClickException):
    """The command could not do it: one line to standard error, exit code 1."""

    exit_code = EXIT_ERROR

    def show(self, file: Any = None) -> None:
        click.echo(f"purse: {plain(self.message)}", err=True)


class CannotTrust(Failed):
    """The stream contradicts itself: whoever goes on may grant money twice."""

    exit_code = EXIT_UNTRUSTED


@dataclass
class Face:
    """Whom the command speaks to, and whether a person or a program reads what it prints."""

    url: str = DEFAULT_URL
    given_key: str | None = None
    as_json: bool = False

    @property
    def key(self) -> str | None:
        """The key given, else the one `purse up` left on this machine; that one is never sent to another machine."""
        if self.given_key:
            return self.given_key
        return _local_key() if _is_this_machine(self.url) else None


def _is_this_machine(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return host in THIS_MACHINE or host.startswith("127.")


def _local_key() -> str | None:
    path = Path(os.environ.get("PURSE_DATA") or DEFAULT_DATA) / KEY_FILE
    try:
        return path.read_text(encoding="utf-8").strip() or None
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise Failed(f"cannot read the key in {path} ({error}); give one with --key or PURSE_KEY") from None


def _take_url(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is None:
        return
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise click.BadParameter(f"expected an address like {DEFAULT_URL}, got {plain(value)!r}")
    ctx.ensure_object(Face).url = value.rstrip("/")


def _take_key(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.ensure_object(Face).given_key = value.strip()


def _take_json(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(Face).as_json = True


def _api_options(*, environment: bool) -> list[click.Parameter]:
    """The options are the same in both places; the environment is read once, so that it never beats a written one."""
    return [
        click.Option(
            ["--url"],
            envvar="PURSE_URL" if environment else None,
            show_envvar=environment,
            expose_value=False,
            callback=_take_url,
            help=f"Where the wallet answers; {DEFAULT_URL} if not given.",
        ),
        click.Option(
            ["--key"],
            envvar="PURSE_KEY" if environment else None,
            show_envvar=environment,
            expose_value=False,
            callback=_take_key,
            help="Your key. If not given, the one `purse up` left in ./data or PURSE_DATA on this machine.",
        ),
        click.Option(
            ["--json", "as_json"],
            is_flag=True,
            expose_value=False,
            callback=_take_json,
            help="Print the API's answer as it came, on one line.",
        ),
    ]


API_OPTIONS_WITH_ENVIRONMENT = _api_options(environment=True)


class ApiCommand(click.Command):
    """A command that speaks to the wallet over HTTP."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += _api_options(environment=False)


def plain(text: str) -> str:
    """What others wrote, safe for a terminal: control characters could move the cursor or fake a line."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)


def say(text: str, *, colour: str | None = None) -> None:
    """Print one line for a person."""
    click.echo(click.style(plain(text), fg=colour) if colour else plain(text))


def on_terminal() -> bool:
    """Whether a person watches the progress, which goes to standard error."""
    return sys.stderr.isatty()


def fields(**given: object) -> dict[str, object]:
    """The fields of a request that were given: what is not said is left to the wallet's defaults."""
    return {name: value for name, value in given.items() if value not in (None, {}, ())}


def pairs(expected: str) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], dict[str, str]]:
    """A callback for a repeatable option `name=value`: the same name twice is an error, not the last one."""

    def take(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
        taken: dict[str, str] = {}
        for written in values:
            name, equals, value = written.partition("=")
            if not (name and equals and value):
                raise click.BadParameter(f"expected {expected}, got {plain(written)!r}")
            if name in taken:
                raise click.BadParameter(f"{plain(name)} is given twice")
            taken[name] = value
        return taken

    return take


def amounts(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """As `pairs`, for amounts: whether the unit exists and how many digits it takes is the wallet's to say."""
    taken = pairs("UNIT=AMOUNT like usd=0.01")(ctx, parameter, values)
    for unit, amount in taken.items():
        if not AMOUNT.fullmatch(amount):
            raise click.BadParameter(f"an amount is plain digits like 0.01, got {plain(f'{unit}={amount}')!r}")
    return taken
