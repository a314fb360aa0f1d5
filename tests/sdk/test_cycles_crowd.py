"""Many processes with Cycles' official client on one budget or one reservation: nothing counts twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from sdk.clients import Clients
from sdk.cycles_world import LIMIT, Caller, Spending, amount

pytestmark = pytest.mark.timeout(600)  # beyond the clients' own deadlines

PROCESSES = 4
CALLS = 30


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def processes() -> AsyncIterator[list[Clients]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(Clients()) for _ in range(PROCESSES)]


@pytest.fixture
def crowd(caller: Caller, processes: list[Clients]) -> list[Caller]:
    """Each a process of its own, all with the same budget."""
    return [
        replace(caller, wallet=replace(caller.wallet, clients=each), journal=caller.journal / str(number))
        for number, each in enumerate(processes)
    ]


async def at_once(crowd: list[Caller], method: str, *path: str, bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What each was answered."""
    asking = [each.call(method, *path, body=body) for each, body in zip(crowd, bodies, strict=True)]
    return list(await asyncio.gather(*asking))


async def test_many_processes_on_one_budget_never_spend_more_than_there_is(crowd: list[Caller]) -> None:
    """Each call takes a thirtieth of the budget and costs half of that; there are twice as many as fit."""
    estimate, actual = LIMIT // 30, LIMIT // 60
    asking = [each.ask("crowd", estimate=estimate, actual=actual, calls=CALLS) for each in crowd]
    said = await asyncio.gather(*asking)
    answered = sum(one["answered"] for one in said)
    assert sum(one["refused"] for one in said) == PROCESSES * CALLS - answered > 0
    spending = await crowd[0].spending()
    assert spending == Spending(settled=answered * actual, held=0, remaining=LIMIT - answered * actual)
    assert spending.remaining >= 0
    assert spending.remaining < PROCESSES * estimate, "what was left in the end was too little for all of them"
    await crowd[0].wallet.audited()


async def test_a_reservation_that_all_ask_for_under_one_key_is_held_once(crowd: list[Caller]) -> None:
    said = await asyncio.gather(*(each.reserve("same", 60_000) for each in crowd))
    assert [one["status"] for one in said] == [200] * PROCESSES, said
    assert len({one["body"]["reservation_id"] for one in said}) == 1
    assert await crowd[0].spending() == Spending(settled=0, held=60_000, remaining=40_000)


async def test_of_many_commits_of_one_reservation_one_counts(crowd: list[Caller]) -> None:
    held = await crowd[0].reserve("r", 60_000)
    bodies = [{"idempotency_key": f"c-{number}", "actual": amount(1_000 * number)} for number in range(PROCESSES)]
    said = await at_once(crowd, "commit_reservation", held["body"]["reservation_id"], bodies=bodies)
    counted = [one["body"]["charged"]["amount"] for one in said if one["status"] == 200]
    refused = [one["body"]["error"] for one in said if one["status"] == 409]
    assert (len(counted), refused) == (1, ["RESERVATION_FINALIZED"] * (PROCESSES - 1)), said
    assert await crowd[0].spending() == Spending(settled=counted[0], held=0, remaining=LIMIT - counted[0])


async def test_a_commit_that_all_send_under_one_key_counts_once_and_is_answered_alike(crowd: list[Caller]) -> None:
    held = await crowd[0].reserve("r", 60_000)
    bodies = [{"idempotency_key": "same", "actual": amount(25_000)}] * PROCESSES
    said = await at_once(crowd, "commit_reservation", held["body"]["reservation_id"], bodies=bodies)
    assert [(one["status"], one["body"]) for one in said] == [(200, said[0]["body"])] * PROCESSES
    assert await crowd[0].spending() == Spending(settled=25_000, held=0, remaining=75_000)


async def test_extensions_at_once_add_up(crowd: list[Caller]) -> None:
    held = await crowd[0].reserve("r", 60_000)
    bodies = [{"idempotency_key": f"e-{number}", "extend_by_ms": 10_000} for number in range(PROCESSES)]
    said = await at_once(crowd, "extend_reservation", held["body"]["reservation_id"], bodies=bodies)
    assert [one["status"] for one in said] == [200] * PROCESSES, said
    began_with = held["body"]["expires_at_ms"]
    later = sorted(one["body"]["expires_at_ms"] - began_with for one in said)
    assert later == [10_000 * (number + 1) for number in range(PROCESSES)]


async def test_an_event_that_all_report_under_one_key_counts_once(crowd: list[Caller]) -> None:
    event = {"idempotency_key": "same", "subject": crowd[0].subject, "action": {"kind": "tool", "name": "search"}}
    said = await at_once(crowd, "create_event", bodies=[{**event, "actual": amount(25_000)}] * PROCESSES)
    assert [(one["status"], one["body"]) for one in said] == [(201, said[0]["body"])] * PROCESSES
    assert await crowd[0].spending() == Spending(settled=25_000, held=0, remaining=75_000)
