"""`purse alerts`: what was alerted and whether it arrived, and a test to whoever should hear. It raises none."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TypeVar

import click
import msgspec

from commonpurse.commands import EXIT_ERROR, ApiCommand, Face, Failed, fields, say
from commonpurse.commands.asking import fail, get, unreachable
from commonpurse.http import Answer, Api
from commonpurse.said import Alerts, AlertTest
from commonpurse.show import alert_lines
from engine.errors import NoAnswer

PATH = "/v1/alerts"

Document = TypeVar("Document", bound=msgspec.Struct)


@click.group()
def alerts() -> None:
    """Show what was alerted; send a test.

    Which rules there are and who hears of them stands in [alerts] of the projector's purse.toml.
    """


@alerts.command("list", cls=ApiCommand)
@click.pass_obj
def list_(face: Face) -> None:
    """Show the newest alerts, newest first, and whether each target has taken them."""
    answer = get(face, PATH)
    if face.as_json:
        return click.echo(answer.one_line)
    found = _decoded(face, answer, Alerts).alerts
    for line in alert_lines(found, now=datetime.now(UTC)) or ["no alerts"]:
        say(line)
    return None


@alerts.command(cls=ApiCommand)
@click.option("--target", metavar="NAME", help="Only to this one, as it is called in [alerts.targets.NAME].")
@click.pass_obj
def test(face: Face, target: str | None) -> None:
    """Send a test alert now, and say what each target answered.

    Ends with 1 if one of them did not take it.
    """
    answer = asyncio.run(_post(face, fields(target=target)))
    if answer.status >= 400:
        fail(face, answer)
    tested = _decoded(face, answer, AlertTest).targets
    if face.as_json:
        click.echo(answer.one_line)
    else:
        for one in tested:
            said = "took it" if one.delivered else f"did not take it: {one.why}"
            say(f"{one.target} {said}", colour="green" if one.delivered else "red")
    if not all(one.delivered for one in tested):
        click.get_current_context().exit(EXIT_ERROR)


async def _post(face: Face, body: dict[str, object]) -> Answer:
    try:
        async with Api.open(face.url, face.key) as api:
            return await api.post(f"{PATH}/test", body)
    except NoAnswer as error:
        raise unreachable(error) from error


def _decoded(face: Face, answer: Answer, kind: type[Document]) -> Document:
    try:
        return msgspec.json.decode(answer.body, type=kind)
    except msgspec.MsgspecError as error:
        raise Failed(f"{face.url} answered with something this command cannot read: {error}") from error
