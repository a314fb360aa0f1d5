"""One engine speaks and another stands by, both as processes: what callers feel when the one that speaks is gone.

`PURSE_SOAK=1` (`make chaos`) lets it sleep for a minute instead of some seconds, and dies it more often.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import AsyncExitStack

import pytest
from integration.rig import DOLLAR, Audit, append, audited, engine_on, engine_process, eventually, wallet_on
from integration.traffic import Traffic, traffic_on

from engine import asking
from engine.client import Purse
from engine.core.messages import Held, Settled
from engine.decided import Decided
from engine.embedded import EmbeddedServer
from engine.journal import Journal
from engine.service import Engine

SOAK = bool(os.environ.get("PURSE_SOAK"))
SLEEP_S = 60.0 if SOAK else 4.0
DEATHS = 10 if SOAK else 2
FELT_S_MAX = 1.0  # only asked for where nothing else runs
COST = DOLLAR // 100_000


async def whole(journal: Journal) -> Audit:
    """The record once everything on it is told."""
    while True:
        found = await audited(journal)
        if not found.untold:
            return found
        await asyncio.sleep(0.05)


def check(traffic: Traffic, found: Audit) -> None:
    """Every call was answered, and everything stands on the record exactly once."""
    assert (traffic.unanswered, traffic.refused) == ([], [])
    held = [outcome.id for outcome in found.outcomes if isinstance(outcome, Held)]
    settled = [outcome.id for outcome in found.outcomes if isinstance(outcome, Settled)]
    assert sorted(held) == sorted(traffic.held)
    assert sorted(settled) == sorted(traffic.handed)
    assert found.wallet.meters()["jev", None, "total"] == (len(settled) * COST, 0, 0, 0)


async def test_when_the_engine_that_speaks_is_killed_no_ask_fails_and_none_waits_a_second(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    url = nats_server.url
    async with (
        wallet_on(url, wallet_name) as journal,
        Purse.connect(url, wallet=wallet_name) as purse,
        AsyncExitStack() as engines,
    ):
        active = await engines.enter_async_context(engine_process(url, wallet_name))
        async with traffic_on(purse) as traffic:
            for _ in range(DEATHS):
                standby = await engines.enter_async_context(engine_process(url, wallet_name, patience_ms=150))
                await traffic.more(50)
                active.signal(signal.SIGKILL)
                await active.wait()
                await traffic.more(50)
                active = standby
        found = await whole(journal)
    check(traffic, found)
    print(f"\nlongest wait over {DEATHS} kills: {traffic.longest_s:.3f} s, {len(traffic.waits_s):,} asks")
    assert not SOAK or traffic.longest_s < FELT_S_MAX


class Mute(Engine):
    """Dies, every time, between recording and saying."""

    async def _reply(self, covered: Sequence[Decided]) -> None:
        pass


async def test_what_was_recorded_and_not_said_is_said_by_whoever_takes_over(
    nats_server: EmbeddedServer, wallet_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "PATIENCE_S", 60)  # asking again would hide it
    url = nats_server.url
    async with (
        wallet_on(url, wallet_name) as journal,
        engine_on(url, wallet_name, kind=Mute) as mute,
        Purse.connect(url, wallet=wallet_name) as purse,
    ):
        await eventually(lambda: mute.service.told_seq)
        async with engine_on(url, wallet_name, patience_s=0.15) as standby:
            holding = asyncio.create_task(purse.hold({"usd": "0.01"}, id="h", wait_s=30))
            await eventually(lambda: standby.service.told_seq > 2)
            mute.asked = True
            mute.task.cancel()
            await asyncio.wait([mute.task])
            assert not holding.done()
            await append(journal)  # anything that waits shows the standby that nobody speaks
            assert isinstance(await holding, Held)
            assert (await whole(journal)).count(Held) == 1


async def test_m12_an_engine_that_wakes_beside_its_successor_says_nothing_and_follows(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    url = nats_server.url
    async with (
        wallet_on(url, wallet_name) as journal,
        engine_process(url, wallet_name, patience_ms=50) as sleeper,
        engine_process(url, wallet_name, patience_ms=150) as standby,
        Purse.connect(url, wallet=wallet_name) as purse,
    ):
        names = {one: one.events("engine_starting")[0]["engine"] for one in (sleeper, standby)}
        async with traffic_on(purse) as traffic:
            await traffic.more(50)
            sleeper.signal(signal.SIGSTOP)
            await asyncio.sleep(SLEEP_S)  # the fault itself
            awake_from = await append(journal)
            sleeper.signal(signal.SIGCONT)
            await traffic.more(200)
        overtaken = await whole(journal)
        standby.signal(signal.SIGTERM)
        assert await standby.wait() == 0
        async with traffic_on(purse, "last") as last:
            await last.more(20)
        found = await whole(journal)
    assert overtaken.tolds[-1].engine == names[standby]
    before = [told for told in overtaken.tolds if told.engine == names[sleeper]]
    assert before, "it spoke while it was awake"
    assert all(told.upto < awake_from for told in before), "what it appended on waking was refused"
    assert found.tolds[-1].engine == names[sleeper], "it followed, so it can go on alone"
    assert not sleeper.events("stream_not_trusted")
    traffic.held += last.held
    traffic.handed += last.handed
    traffic.unanswered += last.unanswered
    check(traffic, found)
    print(f"\nlongest wait over {SLEEP_S:g} s asleep: {traffic.longest_s:.3f} s, {len(traffic.waits_s):,} asks")
    assert not SOAK or traffic.longest_s < FELT_S_MAX
