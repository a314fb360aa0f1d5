"""A program that guards its calls with Cycles' official client, by each of its four ways: what it costs in the end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from integration.rig import eventually
from sdk.clients import Clients
from sdk.cycles_relay import LosingRelay
from sdk.cycles_world import LIMIT, Caller, CyclesWallet, Spending

pytestmark = pytest.mark.timeout(600)  # beyond the clients' own deadlines

WAYS: dict[str, dict[str, Any]] = {
    "decorated": {"actual": 25_000},
    "streamed": {"tokens": 250, "a_token": 100},
    "decorated-async": {"actual": 25_000},
    "streamed-async": {"tokens": 250, "a_token": 100},
}
"""The way -> how it says what the call cost: 25,000 microcents."""

every_way = pytest.mark.parametrize("way", WAYS)


async def guarded(caller: Caller, way: str, **more: Any) -> dict[str, Any]:
    """One call that may cost 60,000 microcents, and costs 25,000."""
    return await caller.ask(way, **{"estimate": 60_000, "work": "", **WAYS[way], **more})


@every_way
async def test_a_guarded_call_costs_what_it_cost(caller: Caller, way: str) -> None:
    said = await guarded(caller, way)
    assert said["returned"] == "an answer", said
    assert await caller.spending() == Spending(settled=25_000, held=0, remaining=75_000)


@every_way
async def test_a_guarded_call_is_two_requests(caller: Caller, way: str) -> None:
    """What the client cannot read of an answer it asks for again, and what it is not told of a lease it extends."""
    async with LosingRelay(caller.wallet.purse.url) as relay:
        caller.url = relay.url
        await guarded(caller, way)
    assert [end for end, _ in relay.came] == ["reservations", "commit"]


@every_way
async def test_a_call_that_does_not_fit_is_not_made(caller: Caller, way: str) -> None:
    said = await guarded(caller, way, estimate=LIMIT + 1)
    assert (said["raised"], said["status"], said["code"]) == ("BudgetExceededError", 409, "BUDGET_EXCEEDED"), said
    assert not said["retryable"]
    assert "reservation" not in said, "its work has begun"
    assert await caller.spending() == Spending(settled=0, held=0, remaining=LIMIT)


@every_way
async def test_a_call_that_fails_holds_nothing_any_more(caller: Caller, way: str) -> None:
    said = await guarded(caller, way, work="raises")
    assert said["failed"], said
    assert await caller.spending() == Spending(settled=0, held=0, remaining=LIMIT)
    got = await caller.call("list_reservations", query={"agent": caller.agent})
    assert [row["status"] for row in got["body"]["reservations"]] == ["RELEASED"]


@every_way
async def test_a_call_that_outlives_its_lease_is_charged_once_at_what_it_cost(caller: Caller, way: str) -> None:
    """Its hold has lapsed, charged at its worst; the client's commit is 410, so it tells an event in its place."""
    said = await guarded(caller, way, work="outlives", ttl_ms=1_000, grace_period_ms=0)
    assert said["returned"] == "an answer", said
    assert await caller.spending() == Spending(settled=25_000, held=0, remaining=75_000)
    listed = await caller.call("list_reservations", query={"agent": caller.agent})
    assert [row["reservation_id"] for row in listed["body"]["reservations"]] == [said["reservation"]]
    await caller.wallet.audited()


@every_way
async def test_a_call_that_takes_long_keeps_its_lease(caller: Caller, way: str) -> None:
    """The client extends it by itself, once no more is left of it than two attempts and a second."""
    said = await guarded(caller, way, work="is extended", ttl_ms=26_500)
    assert said["returned"] == "an answer", said
    times, more = divmod(said["extended_by_ms"], 26_500)
    assert (times >= 1, more) == (True, 0)
    assert await caller.spending() == Spending(settled=25_000, held=0, remaining=75_000)


async def test_a_frozen_budget_refuses_until_it_is_thawed(caller: Caller) -> None:
    await caller.wallet.said("freeze", "--budget", caller.agent, "--reason", "a bill to look at")
    said = await guarded(caller, "decorated")
    assert (said["raised"], said["status"], said["code"]) == ("CyclesProtocolError", 409, "BUDGET_FROZEN"), said
    await caller.wallet.said("thaw", "--budget", caller.agent, "--reason", "it was nothing")
    assert (await guarded(caller, "decorated"))["returned"] == "an answer"


async def test_a_decorator_may_only_look(caller: Caller) -> None:
    fits = await guarded(caller, "decorated", dry_run=True)
    assert fits["returned"]["decision"] == "ALLOW", fits
    refused = await guarded(caller, "decorated", dry_run=True, estimate=LIMIT + 1)
    assert (refused["raised"], refused["status"]) == ("CyclesProtocolError", 200), refused
    assert await caller.spending() == Spending(settled=0, held=0, remaining=LIMIT)


async def test_a_call_that_outlives_its_lease_may_have_cost_more_than_was_held(caller: Caller) -> None:
    await guarded(caller, "decorated", work="outlives", ttl_ms=1_000, grace_period_ms=0, actual=70_000)
    assert await caller.spending() == Spending(settled=70_000, held=0, remaining=30_000)


@pytest.mark.parametrize("part", ["web", "engine", "projector", "nats-server"])
async def test_a_call_during_which_a_part_of_the_wallet_is_killed_costs_what_it_cost(
    caller: Caller, part: str, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    asking = asyncio.create_task(guarded(caller, "decorated", work="waits", gate=str(gate)))
    await eventually(lambda: caller.spends(Spending(settled=0, held=60_000, remaining=40_000)), within_s=60)
    caller.wallet.purse.kill(part)
    gate.touch()
    assert (await asking)["returned"] == "an answer"
    await eventually(caller.wallet.answers, within_s=60)
    await eventually(lambda: caller.spends(Spending(settled=25_000, held=0, remaining=75_000)), within_s=60)


# --- a network that loses things --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lost", [["reservations"], ["commit"], ["release"], ["events"], ["reservations", "commit"]], ids="-".join
)
async def test_a_lost_answer_is_asked_for_again_under_its_key_and_counts_once(caller: Caller, lost: list[str]) -> None:
    async with LosingRelay(caller.wallet.purse.url) as relay:
        caller.url = relay.url
        relay.answers_lost.extend(lost)
        if lost == ["release"]:  # the client gives it up: the hold is released all the same
            await guarded(caller, "decorated", work="raises")
            expected = 0
        elif lost == ["events"]:
            await guarded(caller, "decorated", work="outlives", ttl_ms=1_000, grace_period_ms=0)
            expected = 25_000
        else:
            await guarded(caller, "decorated")
            expected = 25_000
        assert not relay.answers_lost
    for end in lost:
        keys = [key for path, key in relay.came if path == end]
        assert len(set(keys)) == 1
        assert len(keys) >= (1 if end == "release" else 2), relay.came
    assert await caller.spending() == Spending(settled=expected, held=0, remaining=LIMIT - expected)


async def test_a_program_that_dies_before_its_commit_is_heard_is_charged_once_when_it_starts_again(
    wallet: CyclesWallet, caller: Caller
) -> None:
    async with LosingRelay(wallet.purse.url) as relay:
        caller.url = relay.url
        relay.cut.add("commit")
        async with Clients() as doomed:
            caller.wallet = CyclesWallet(wallet.purse, wallet.keys, doomed)
            asking = asyncio.create_task(guarded(caller, "decorated"))
            await relay.lost()
            asking.cancel()
        assert (await caller.spending()).held == 60_000
        relay.cut.clear()
        async with Clients() as reborn:
            caller.wallet = CyclesWallet(wallet.purse, wallet.keys, reborn)
            await guarded(caller, "decorated", estimate=1_000, actual=1_000)
    commits = [key for path, key in relay.came if path == "commit"]
    assert len(set(commits)) == 2, "the one that was kept, and the new call's"
    assert await caller.spending() == Spending(settled=26_000, held=0, remaining=74_000)
