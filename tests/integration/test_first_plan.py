"""How a wallet gets its plan at `purse up`: with a real server, engine and projector."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import pytest
import pytest_asyncio

from commonpurse.first_plan import make_stream, prepare_wallet, wanted_plan
from engine.client import Purse
from engine.core.messages import ApplyPlan, Planned
from engine.core.plan import Plan, digest
from engine.embedded import EmbeddedServer
from engine.errors import Misconfigured
from engine.journal import Journal
from engine.plan_file import DEFAULT_PLAN, parse_toml
from engine.service import Engine
from projector.service import Projector

FILE = """
[budgets.team]
unit = "usd"
limit = "5"
"""
RAISED = FILE.replace('"5"', '"8"')
MONTHLY = FILE + 'per = "month"\n'

Start: TypeAlias = Callable[[str | None], Awaitable[None]]


def plan_of(text: str) -> Plan:
    plan = parse_toml(text).plan
    assert plan is not None
    return plan


@pytest_asyncio.fixture(loop_scope="session")
async def purse(nats_server: EmbeddedServer, wallet_name: str) -> AsyncIterator[Purse]:
    """A client of a wallet without a plan, with its engine and projector running."""
    await make_stream(nats_server.url, wallet_name)
    async with (
        Journal.connect(nats_server.url, wallet=wallet_name) as journal,
        Purse.connect(nats_server.url, wallet=wallet_name) as client,
        asyncio.TaskGroup() as group,
    ):
        running = [
            group.create_task(Engine(journal, instance="e-1").run()),
            group.create_task(Projector(journal).run()),
        ]
        yield client
        for task in running:
            task.cancel()


@pytest.fixture
def start(purse: Purse, nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path) -> Start:
    """What `purse up` does about the plan; the argument is what stands in `purse.toml`, None for no file."""

    async def prepare(text: str | None) -> None:
        file = tmp_path / "purse.toml"
        if text is not None:
            file.write_text(text)
        wanted = wanted_plan(file if text is not None else None)
        await prepare_wallet(nats_server.url, wallet_name, wanted, tmp_path)

    return prepare


async def in_force(purse: Purse) -> Plan | None:
    """By the stream, not by the projector, which may be behind: proposing a plan nobody has tells which one stands."""
    for plan in (DEFAULT_PLAN, *map(plan_of, (FILE, RAISED, MONTHLY))):
        answered = await purse.ask(ApplyPlan(id=f"is-it-{digest(plan)}", plan=plan, replaces="no such plan"))
        if answered.outcome.__struct_config__.tag == "again":
            return plan
    return None


async def shown(purse: Purse, plan: Plan) -> None:
    """Wait until the projector has read that far."""
    async with asyncio.timeout(10):
        async for status in purse.follow_status():
            if status.plan == digest(plan):
                return


async def test_without_a_file_a_new_wallet_gets_the_default_plan(purse: Purse, start: Start) -> None:
    await start(None)
    assert await in_force(purse) == DEFAULT_PLAN


async def test_a_second_start_changes_nothing(purse: Purse, start: Start) -> None:
    await start(FILE)
    before = await purse.journal.last_seq()
    await start(FILE)
    await start(None)
    assert await purse.journal.last_seq() == before


async def test_a_changed_file_is_applied(purse: Purse, start: Start) -> None:
    await start(None)
    await start(FILE)
    await start(RAISED)
    assert await in_force(purse) == plan_of(RAISED)


async def test_a_plan_changed_by_other_means_stays_until_the_file_changes(purse: Purse, start: Start) -> None:
    await start(FILE)
    changed = ApplyPlan(id="by-hand", plan=plan_of(RAISED), replaces=digest(plan_of(FILE)))
    assert isinstance((await purse.ask(changed)).outcome, Planned)
    await shown(purse, plan_of(RAISED))
    await start(FILE)
    assert await in_force(purse) == plan_of(RAISED)
    await start(FILE + "# read again\n")
    assert await in_force(purse) == plan_of(FILE)


async def test_a_plan_applied_by_hand_first_is_no_news(purse: Purse, start: Start) -> None:
    await start(None)
    by_hand = ApplyPlan(id="by-hand", plan=plan_of(FILE), replaces=digest(DEFAULT_PLAN))
    assert isinstance((await purse.ask(by_hand)).outcome, Planned)
    await start(FILE)
    before = await purse.journal.last_seq()
    await start(FILE)
    assert await purse.journal.last_seq() == before
    assert await in_force(purse) == plan_of(FILE)


async def test_a_file_that_would_restart_a_meter_is_refused_with_the_way_to_do_it(purse: Purse, start: Start) -> None:
    await start(FILE)
    with pytest.raises(Misconfigured, match=r"start at zero: team.*purse plan apply --yes"):
        await start(MONTHLY)
    assert await in_force(purse) == plan_of(FILE)


def test_a_wrong_file_is_refused_by_name_and_place(tmp_path: Path) -> None:
    file = tmp_path / "purse.toml"
    file.write_text(FILE.replace("limit", "limits"))
    with pytest.raises(Misconfigured, match=r"purse\.toml: budgets\.team\.limits"):
        wanted_plan(file)


def test_a_file_without_a_plan_wants_the_default_one(tmp_path: Path) -> None:
    file = tmp_path / "purse.toml"
    file.write_text("[web]\nport = 9000\n")
    assert wanted_plan(file).plan == DEFAULT_PLAN
    assert wanted_plan(file).file is None
