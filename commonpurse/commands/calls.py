"""The commands of one model call: `hold` before it, `renew` while it runs, `settle` or `release` when it is over."""

from __future__ import annotations

import secrets

import click

from commonpurse.client.asks import path_of
from commonpurse.commands import ApiCommand, Face, amounts, fields, pairs
from commonpurse.commands.asking import ask
from engine.core.limits import GRADE_MAX

SAFE_TO_REPEAT = " - whether it was decided is not known, and asking again with the same id is safe"


@click.command(cls=ApiCommand)
@click.option("--id", "hold", help="Your name for the call, to settle it by. A fresh one is made if not given.")
@click.option("--amount", "amount", multiple=True, callback=amounts, required=True, metavar="UNIT=AMOUNT",
              help="The most the call could cost, like usd=0.01. Once a unit.")  # fmt: skip
@click.option("--least", multiple=True, callback=amounts, metavar="UNIT=AMOUNT",
              help="Take what is left if that is less than --amount, but at least this.")  # fmt: skip
@click.option("--grade", type=click.IntRange(0, GRADE_MAX), metavar="GRADE",
              help="How cheap an answer it is, 0 the best; the plan's tiers decide which may be made.")  # fmt: skip
@click.option("--label", multiple=True, callback=pairs("NAME=VALUE like provider=jev"), metavar="NAME=VALUE",
              help="What the call is about: budgets are found by it. May be repeated.")  # fmt: skip
@click.option("--ttl", type=click.IntRange(min=1), metavar="SECONDS", help="How long; the plan's if not given.")
@click.option("--on-lapse", type=click.Choice(["charge", "release"]), help="What a hold that nobody settles comes to.")
@click.option("--wait", type=click.FloatRange(min=0.01, max=30), metavar="SECONDS",
              help="How long to wait for the verdict; 5 if not given.")  # fmt: skip
@click.pass_obj
def hold(
    face: Face,
    hold: str | None,
    amount: dict[str, str],
    least: dict[str, str],
    grade: int | None,
    label: dict[str, str],
    ttl: int | None,
    on_lapse: str | None,
    wait: float | None,
) -> None:
    """Ask whether a call may cost this much, and set it aside.

    Exit code 0 is permission to make the call; anything else is not.

        purse hold --id call-1 --amount usd=0.01 --label provider=jev
    """
    id = hold or f"cli-{secrets.token_hex(6)}"
    option = {"amounts": amount, **fields(least=least, grade=grade)}
    body = {
        "id": id,
        **({"options": [option]} if len(option) > 1 else option),
        **fields(labels=label, ttl_s=ttl, on_lapse=on_lapse, wait_s=wait),
    }
    said = ask(face, "/v1/holds", body, verb="hold", unheard=f"{SAFE_TO_REPEAT} (--id {id})")
    if hold is None and not face.as_json:
        click.echo(f"its id is {said.id or id}")


@click.command(cls=ApiCommand)
@click.argument("hold")
@click.option("--amount", multiple=True, callback=amounts, required=True, metavar="UNIT=AMOUNT",
              help="What the call cost, like usd=0.004. Once a unit; zero must be said.")  # fmt: skip
@click.option("--progress", is_flag=True, help="The call still runs: this is its cost so far.")
@click.option("--estimated", is_flag=True, help="This is an estimate; one exact settle may correct it later.")
@click.option("--held-at", metavar="TIME",
              help="When it was held, like 2026-11-30T14:05:00Z, if the wallet may not know it.")  # fmt: skip
@click.option("--label", multiple=True, callback=pairs("NAME=VALUE like provider=jev"), metavar="NAME=VALUE",
              help="What the call was about, if the wallet may not know the hold.")  # fmt: skip
@click.pass_obj
def settle(
    face: Face,
    hold: str,
    amount: dict[str, str],
    progress: bool,
    estimated: bool,
    held_at: str | None,
    label: dict[str, str],
) -> None:
    """Say what the call HOLD really cost.

    It is recorded in full, always: more than was held, late, or while all is frozen.

        purse settle call-1 --amount usd=0.004
    """
    told = fields(final=False if progress else None, estimated=estimated or None, held_at=held_at, labels=label)
    ask(face, path_of(hold, "settle"), {"amounts": amount, **told}, verb="settle", unheard=SAFE_TO_REPEAT)


@click.command(cls=ApiCommand)
@click.argument("hold")
@click.pass_obj
def release(face: Face, hold: str) -> None:
    """Give the hold HOLD back: the call did not happen.

    What was reported as its progress stays charged.
    """
    ask(face, path_of(hold, "release"), {}, verb="release", unheard=SAFE_TO_REPEAT)


@click.command(cls=ApiCommand)
@click.argument("hold")
@click.option("--n", type=click.IntRange(min=1), required=True, help="Which renewal of this hold it is: 1, 2, ...")
@click.option("--ttl", type=click.IntRange(min=1), metavar="SECONDS", help="From now; the plan's if not given.")
@click.option("--amount", multiple=True, callback=amounts, metavar="UNIT=AMOUNT", help="The new total, if it is more.")
@click.pass_obj
def renew(face: Face, hold: str, n: int, ttl: int | None, amount: dict[str, str]) -> None:
    """Hold on longer to HOLD, maybe with a larger total.

    Asked twice with the same number it counts once.

        purse renew call-1 --n 1 --ttl 600
    """
    body = {"n": n, **fields(ttl_s=ttl, amounts=amount)}
    ask(face, path_of(hold, "renew"), body, verb="renew", unheard=SAFE_TO_REPEAT)
