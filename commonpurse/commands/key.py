"""`purse key`: make a key for somebody, list the keys there are, end one. A key is printed once, when it is made."""

from __future__ import annotations

import re
from typing import TypeVar

import click
import msgspec

from commonpurse.commands import ApiCommand, Face, Failed, fields, pairs, plain, say
from commonpurse.commands.asking import get, post
from commonpurse.http import Answer
from commonpurse.said import Keys, KeySaid

PATH = "/v1/keys"
ROLES = ("spend", "observe", "audit", "admin")
UNITS_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_TIME = re.compile(r"([1-9]\d{0,8})([smhd])", re.ASCII)

Said = TypeVar("Said", bound=msgspec.Struct)

_UNHEARD = " - whether it was made is not known; `purse key list` shows it, and an unheard key is best revoked"


def _seconds(_: click.Context, __: click.Parameter, written: str | None) -> int | None:
    if written is None:
        return None
    found = _TIME.fullmatch(written)
    if found is None:
        raise click.BadParameter(f"expected a time like 30d, 12h or 90m, got {plain(written)!r}")
    return int(found[1]) * UNITS_S[found[2]]


def _names(_: click.Context, __: click.Parameter, written: str | None) -> list[str]:
    return [name for name in (written or "").split(",") if name]


@click.group()
def key() -> None:
    """Make a key, list them, end one."""


@key.command(cls=ApiCommand)
@click.option("--role", type=click.Choice(ROLES), help="What it may do; that of the key it replaces, if not given.")
@click.option("--user", help="Whose it is: the label `user` of all it asks for.")
@click.option("--cohort", help="Which group that is, for limits: the label `cohort`.")
@click.option("--label", multiple=True, callback=pairs("NAME=VALUE like team=x"), metavar="NAME=VALUE",
              help="A label of all it asks for; what a caller says cannot change it.")  # fmt: skip
@click.option("--names", callback=_names, metavar="user,cohort",
              help="For an app's own server: which of these it may say itself, for each call.")  # fmt: skip
@click.option("--expires", callback=_seconds, metavar="TIME", help="It lives so long, like 30d or 12h; else for ever.")
@click.option("--replaces", metavar="ID", help="The key after which this one comes: it settles that one's holds.")
@click.option("--note", help="What it is for.")
@click.pass_obj
def new(
    face: Face,
    role: str | None,
    user: str | None,
    cohort: str | None,
    label: dict[str, str],
    names: list[str],
    expires: int | None,
    replaces: str | None,
    note: str | None,
) -> None:
    """Make a key and print it, once: only its hash is kept.

    Whoever has a key with the role spend reports its own costs. Give strangers the guarded calls, never a key.

        purse key new --role spend --user alice --expires 30d
    """
    if role is None and replaces is None:
        raise click.UsageError("say --role, or --replaces")
    body = fields(
        role=role, user=user, cohort=cohort, labels=label, names=tuple(names), expires_s=expires, replaces=replaces,
        note=note,
    )  # fmt: skip
    answer = post(face, PATH, body, unheard=_UNHEARD)
    if face.as_json:
        return click.echo(answer.one_line)
    made = _read(face, answer, KeySaid)
    click.echo(made.key)  # alone on standard output, for a program to take
    click.echo(f"purse: {_line(made)}. It is not shown again.", err=True)
    return None


@key.command("list", cls=ApiCommand)
@click.pass_obj
def list_(face: Face) -> None:
    """Print every key by its short id: whose it is, what it may, whether it has ended."""
    answer = get(face, PATH)
    if face.as_json:
        return click.echo(answer.one_line)
    for one in _read(face, answer, Keys).keys:
        say(_line(one), colour=None if one.state == "active" else "red")
    return None


@key.command(cls=ApiCommand)
@click.argument("id_", metavar="ID")
@click.option("--reason", required=True, help="Why; it goes on the record.")
@click.pass_obj
def revoke(face: Face, id_: str, reason: str) -> None:
    """End the key with the short id ID, for good.

    It may still settle, release and look at the holds it opened.
    """
    if not id_.isascii() or not id_.isalnum():
        raise click.UsageError("expected a short id, as `purse key list` prints it")
    answer = post(face, f"{PATH}/{id_}/revoke", {"reason": reason})
    if face.as_json:
        return click.echo(answer.one_line)
    say(_line(_read(face, answer, KeySaid)))
    return None


def _line(key: KeySaid) -> str:
    said = [key.id, key.role, key.state, *(f"{name}={value}" for name, value in _claims(key).items())]
    if key.names:
        said.append(f"names {', '.join(key.names)}")
    if key.revoked_at is not None:
        said.append(f"revoked {key.revoked_at} by {key.revoked_by}: {key.reason}")
    elif key.expires_at is not None:
        said.append(f"expires {key.expires_at}")
    if key.note:
        said.append(f"({key.note})")
    return "  ".join(said)


def _claims(key: KeySaid) -> dict[str, str]:
    named = {"user": key.user, "cohort": key.cohort, "replaces": key.replaces}
    return {**{name: value for name, value in named.items() if value}, **key.labels}


def _read(face: Face, answer: Answer, kind: type[Said]) -> Said:
    try:
        return msgspec.json.decode(answer.body, type=kind)
    except msgspec.MsgspecError as error:
        raise Failed(f"{face.url} answered with something this command cannot read: {error}") from error
