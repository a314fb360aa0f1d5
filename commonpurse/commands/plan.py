"""`purse plan`: the budgets in force, what a file would change, and changing it. The wallet decides about it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import click
import msgspec

from commonpurse.commands import ApiCommand, Face, Failed, say
from commonpurse.commands.asking import ask, fail, fetch, get
from commonpurse.http import Answer
from commonpurse.plan_text import plan_text
from commonpurse.said import PlanInForce
from commonpurse.telling import read_said
from engine.core.plan import Plan, PlanError, restarts
from engine.errors import Misconfigured
from engine.plan_file import describe_change, plan_from_json, plan_to_json, read

PATH = "/v1/plan"
NO_PLAN = "/problems/no-plan"

_file = click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))


@dataclass(frozen=True)
class Change:
    """From the plan in force to the one in a file. `replaces` is the digest it is made from, "" before the first."""

    new: Plan
    replaces: str
    lines: list[str]
    restarting: list[str]


@click.group()
def plan() -> None:
    """Show the budgets, or change them."""


@plan.command(cls=ApiCommand)
@click.pass_obj
def show(face: Face) -> None:
    """Print the plan in force as a purse.toml, to be edited and applied."""
    answer = get(face, PATH)
    click.echo(answer.one_line if face.as_json else plan_text(_in_force(face, answer)[0]))


@plan.command(cls=ApiCommand)
@_file
@click.pass_obj
def diff(face: Face, file: Path) -> None:
    """Say what applying FILE would change."""
    change = _change(face, file)
    if face.as_json:
        return click.echo(msgspec.json.encode({"changes": change.lines, "restarts": change.restarting}).decode())
    for line in change.lines or ["nothing: this plan is in force"]:
        say(line)
    return None


@plan.command(cls=ApiCommand)
@_file
@click.option("--yes", is_flag=True, help="Also if budgets start at zero by it.")
@click.pass_obj
def apply(face: Face, file: Path, yes: bool) -> None:
    """Decide by the plan in FILE from now on.

    Changing a limit keeps what was used. Where a change makes a budget start at zero, it is shown, and done only with
    --yes.
    """
    change = _change(face, file)
    if not face.as_json:
        for line in change.lines:
            say(line)
    if change.restarting and not yes:
        raise Failed(f"{', '.join(change.restarting)} would start at zero; if that is meant, say --yes")
    ask(face, PATH, {"plan": plan_to_json(change.new), "replaces": change.replaces}, verb="plan")


def _change(face: Face, file: Path) -> Change:
    new = plan_in(file)
    answer = asyncio.run(fetch(face, PATH))
    old, replaces = (None, "") if _is_none_yet(answer) else _in_force(face, answer)
    restarting = [
        name
        for name, budget in new.budgets.items()
        if old is not None and name in old.budgets and restarts(old.budgets[name], budget)
    ]
    return Change(new, replaces, describe_change(old, new), restarting)


def plan_in(file: Path) -> Plan:
    """The plan that somebody wrote into a purse.toml."""
    try:
        found = read(file).plan
    except Misconfigured as error:
        raise Failed(str(error)) from error
    if found is None:
        raise Failed(f"{file} has no plan: no [budgets.NAME] in it")
    return found


def _is_none_yet(answer: Answer) -> bool:
    return answer.status == 503 and read_said(answer).type == NO_PLAN


def _in_force(face: Face, answer: Answer) -> tuple[Plan, str]:
    if answer.status >= 400:
        fail(face, answer)
    try:
        told = msgspec.json.decode(answer.body, type=PlanInForce)
        return plan_from_json(told.plan), told.digest
    except (msgspec.MsgspecError, PlanError) as error:
        raise Failed(f"the plan in force at {face.url} cannot be read: {error}") from error
