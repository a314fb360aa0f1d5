"""`purse status`: what is used, held and left, once or live. Reads only."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from datetime import UTC, datetime

import click
import msgspec

from commonpurse.commands import ApiCommand, Face, Failed, plain, say
from commonpurse.commands.asking import fail, get, unreachable
from commonpurse.http import Answer, Api
from commonpurse.said import Wallet
from commonpurse.show import wallet_lines
from engine.errors import NoAnswer

COME_BACK_S = 2.0  # the wallet's pages do the same


@click.command(cls=ApiCommand)
@click.option("--watch", is_flag=True, help="Go on showing it as it changes, until Ctrl-C.")
@click.pass_obj
def status(face: Face, watch: bool) -> None:
    """Show what is used, held and left of each shared budget.

    Without a key: only percentages and times, but where the plan makes amounts public.
    """
    if watch:
        return _watch(face)
    answer = get(face, "/v1/status")
    if face.as_json:
        return click.echo(answer.one_line)
    for line in _lines(face, answer):
        say(line)
    return None


def _lines(face: Face, answer: Answer) -> list[str]:
    try:
        wallet = msgspec.json.decode(answer.body, type=Wallet)
    except msgspec.MsgspecError as error:
        raise Failed(f"{face.url} answered with something this command cannot read: {error}") from error
    return wallet_lines(wallet, now=datetime.now(UTC))


def _watch(face: Face) -> None:
    try:
        if face.as_json or not sys.stdout.isatty():
            asyncio.run(_follow(face, lambda answer: _print(face, answer)))
        else:
            _watch_drawn(face)
    except KeyboardInterrupt:
        return


def _print(face: Face, answer: Answer) -> None:
    for line in [answer.one_line] if face.as_json else _lines(face, answer):
        click.echo(plain(line))
    sys.stdout.flush()


def _watch_drawn(face: Face) -> None:
    """In place, so that the eye need not move."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(Text("connecting"), console=Console(), auto_refresh=False) as live:

        def draw(answer: Answer) -> None:
            live.update(Text("\n".join(map(plain, _lines(face, answer)))), refresh=True)

        asyncio.run(_follow(face, draw))


async def _follow(face: Face, show: Callable[[Answer], None]) -> None:
    """Show each document as it comes. The first connection must succeed; a later one that breaks is made again."""
    shown = False
    async with Api.open(face.url, face.key) as api:
        while True:
            try:
                async for answer in api.events("/v1/status/stream"):
                    if answer.status >= 400:
                        fail(face, answer)
                    show(answer)
                    shown = True
            except NoAnswer as error:
                if not shown:
                    raise unreachable(error) from error
                click.echo(f"purse: {error}; trying again", err=True)
            await asyncio.sleep(COME_BACK_S)
