"""What may be tried again is tried again by every client, without a word from its user. They wait side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from guarded_provider import GuardedProvider
from integration.rig import eventually
from sdk.calls import ask, guarding
from sdk.clients import CALL_WAIT_S, CLIENTS, Client, Clients, Running
from sdk.refusals import BUSY, CODES, ENDED, IDEMPOTENT, RAISES, RETRIED, TRIES, caught_as, code_of, give_back, hold_all

from engine.errors import NoAnswer

pytestmark = pytest.mark.timeout(600)  # beyond the clients' own deadlines

LAST_SECOND = 1_796_083_199 * 10**9
"""Of the day: nobody who waits for the reset is asked to wait for longer."""


@dataclass(frozen=True)
class Story:
    """What a client saw in the end, and what came in of it."""

    said: Mapping[str, Any]
    requests: int
    sent: int
    """On to the provider."""


async def busy_for_a_moment(running: Running) -> Story:
    async with guarding(running.client) as guard:
        await be_busy(guard)
        asking = asyncio.create_task(ask(running, guard, "plain"))
        await eventually(lambda: any(hold.labels for hold in guard.holds), within_s=CALL_WAIT_S)
        await give_back(guard)
        return story(await asking, guard)


async def busy_all_along(running: Running) -> Story:
    async with guarding(running.client) as guard:
        await be_busy(guard)
        return story(await ask(running, guard, "plain"), guard)


async def nobody_for_a_moment(running: Running) -> Story:
    """An engine that is away for one try."""
    async with guarding(running.client) as guard:
        await ask(running, guard, "plain")
        await guard.settled()
        guard.desk.came.clear()
        guard.fake.requests.clear()
        guard.purse.error, before = NoAnswer("nobody"), guard.purse.messages
        asking = asyncio.create_task(ask(running, guard, "plain"))
        await eventually(lambda: guard.purse.messages > before, within_s=CALL_WAIT_S)
        guard.purse.error = None
        return story(await asking, guard)


async def ended(running: Running) -> Story:
    """The same call under the same key, once it has its answer."""
    async with guarding(running.client) as guard:
        await ask(running, guard, "plain", **IDEMPOTENT)
        await guard.settled()
        guard.desk.came.clear()
        guard.fake.requests.clear()
        return story(await ask(running, guard, "plain", **IDEMPOTENT), guard)


async def be_busy(guard: GuardedProvider) -> None:
    guard.purse.clock = LAST_SECOND
    await hold_all(guard)


def story(said: Mapping[str, Any], guard: GuardedProvider) -> Story:
    return Story(said, len(guard.desk.came), len(guard.fake.requests))


STORIES = (ended, busy_for_a_moment, busy_all_along, nobody_for_a_moment)

Stories = Mapping[tuple[str, str], Story]


async def tell(there: Sequence[Client], starting: asyncio.Lock) -> dict[tuple[str, str], Story]:
    """One process, one client after the other."""
    async with Clients() as clients:
        async with starting, guarding(there[0]) as guard:  # a dozen that start at once would take each other's time
            await ask(Running(there[0], clients), guard, "plain")
        return {
            (client.name, what.__name__): await what(Running(client, clients)) for client in there for what in STORIES
        }


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stories() -> Stories:
    """Every client that is here in every story. JavaScript's, who wait longest, get a process each."""
    processes: dict[tuple[str, str], list[Client]] = {}
    for client in CLIENTS:
        if not client.missing:
            own = client.which if client.packages == "npm" else client.packages
            processes.setdefault((client.script, own), []).append(client)
    starting = asyncio.Lock()
    told = await asyncio.gather(*(tell(there, starting) for there in processes.values()))
    return {place: story for stories in told for place, story in stories.items()}


@pytest.mark.parametrize("when", ["busy_for_a_moment", "nobody_for_a_moment"])
def test_k7_a_client_that_is_told_when_to_come_again_gets_its_answer(
    client: Running, stories: Stories, when: str
) -> None:
    told = stories[client.client.name, when]
    assert "error" not in told.said, told.said
    assert told.said["text"]
    assert (told.requests, told.sent) == (2, 1)


def test_k2_a_client_that_gives_up_says_that_others_were_in_the_way(client: Running, stories: Stories) -> None:
    told, family = stories[client.client.name, "busy_all_along"], client.client.family
    error = told.said["error"]
    assert caught_as(error) == RETRIED.get(family, RAISES[family][BUSY.status])
    assert error["status"] == BUSY.status
    assert BUSY.words in error["message"]
    assert code_of(error) == CODES["busy"][client.client.provider == "anthropic"]
    assert (told.requests, told.sent) == (TRIES, 0)


def test_what_has_ended_is_no_permission_and_nothing_is_sent(client: Running, stories: Stories) -> None:
    """The AI SDK alone tries it again: it does not read `x-should-retry`."""
    told, family = stories[client.client.name, "ended"], client.client.family
    error = told.said["error"]
    assert caught_as(error) == RETRIED.get(family, RAISES[family][ENDED.status])
    assert error["status"] == ENDED.status
    assert ENDED.words in error["message"]
    assert code_of(error) == CODES["ended"][client.client.provider == "anthropic"]
    assert (told.requests, told.sent) == (TRIES if family in RETRIED else 1, 0)
