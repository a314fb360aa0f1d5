"""Ask the API one thing, print what it said, end with the exit code that says how it went. Asks once, never again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NoReturn

import click
import msgspec

from commonpurse.commands import EXIT_ERROR, EXIT_REFUSED, CannotTrust, Face, Failed, say
from commonpurse.http import Answer, Api
from commonpurse.said import VERDICTS, Said
from commonpurse.show import sentence
from commonpurse.telling import api_error, read_said, untrusted
from engine.errors import NoAnswer

DONE = frozenset({"held", "settled", "stray", "forgotten", "again", "observed", "adjusted", "planned", "done"})


def ask(face: Face, path: str, body: Mapping[str, object], *, verb: str, unheard: str = "") -> Said:
    """Post one ask and tell the answer; comes back only if it was done. `unheard`: what to know if nobody answers."""
    return tell(face, asyncio.run(_post(face, path, body, unheard)), verb=verb)


def get(face: Face, path: str) -> Answer:
    """What stands at `path`. A problem ends the command."""
    answer = asyncio.run(fetch(face, path))
    if answer.status >= 400:
        fail(face, answer)
    return answer


def post(face: Face, path: str, body: Mapping[str, object], *, unheard: str = "") -> Answer:
    """What is answered to a body sent to `path`. A problem ends the command."""
    answer = asyncio.run(_post(face, path, body, unheard))
    if answer.status >= 400:
        fail(face, answer)
    return answer


def tell(face: Face, answer: Answer, *, verb: str) -> Said:
    """Print the answer; ends the command unless it was done: a refusal is 3 for who asked to spend, else an error."""
    said = _read(face, answer)
    if said.outcome not in DONE | VERDICTS or (answer.status >= 500 and said.outcome != "late"):
        fail(face, answer)
    if face.as_json:
        click.echo(answer.one_line)
    else:
        say(sentence(said, verb=verb, now=datetime.now(UTC)), colour="green" if said.outcome in DONE else "red")
    if said.outcome in VERDICTS:
        click.get_current_context().exit(EXIT_REFUSED if verb in {"hold", "renew"} else EXIT_ERROR)
    return said


def fail(face: Face, answer: Answer) -> NoReturn:
    """End the command with the API's own problem."""
    if face.as_json and answer.one_line:
        click.echo(answer.one_line)
    said = _read(face, answer)
    kind = CannotTrust if untrusted(said) else Failed
    raise kind(api_error(answer.status, said))


def unreachable(error: NoAnswer, unheard: str = "") -> Failed:
    """Nobody answers at the URL: says which, and what to do."""
    return Failed(f"{error}{unheard}; start a wallet with `purse up`, or name another with --url")


def _read(face: Face, answer: Answer) -> Said:
    try:
        return read_said(answer)
    except msgspec.MsgspecError as error:
        raise Failed(f"{face.url} answered with something this command cannot read: {error}") from error


async def _post(face: Face, path: str, body: Mapping[str, object], unheard: str) -> Answer:
    try:
        async with Api.open(face.url, face.key) as api:
            return await api.post(path, body)
    except NoAnswer as error:
        raise unreachable(error, unheard) from error


async def fetch(face: Face, path: str) -> Answer:
    """What stands at `path`, or the problem there."""
    try:
        async with Api.open(face.url, face.key) as api:
            return await api.get(path)
    except NoAnswer as error:
        raise unreachable(error) from error
