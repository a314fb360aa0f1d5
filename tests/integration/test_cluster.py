"""The cluster of `compose.yaml`, every process as it says and all of them there: one of each kind is killed under load.

Callers hold and settle through both web processes and through the broker meanwhile. Afterwards what they wrote down,
what the record proves and what the projector shows must be the same, to the nano-dollar (`bench.chaos.verdict`). A
stream whose leader dies is silent for 4 to 9 seconds: holds fail closed then, and every settlement gets there.

`PURSE_SOAK=1` (`make chaos`) kills more often.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import aiohttp
import msgspec
import pytest
from integration.cluster import ADMIN_KEY, ENGINES, NODES, WEBS, Cluster, cluster_in
from integration.rig import eventually

from bench.chaos.caller import Caller
from bench.chaos.deeds import NARROW, WIDE, Deed
from bench.chaos.over_http import ONE_WAIT_S, WebCaller, settled_shown
from bench.chaos.verdict import differences, told_to_the_end
from engine.client import Purse
from engine.errors import NoAnswer
from engine.journal import Journal
from engine.recorded import Recorded

SOAK = bool(os.environ.get("PURSE_SOAK"))
ROUNDS = 5 if SOAK else 1
CALLS_AFTER = 60  # a death, before the next one
PAUSE_S = 0.02  # of a caller between two calls: traffic, not a benchmark
WITHIN_S = 60.0
AUTHORIZED = {"Authorization": f"Bearer {ADMIN_KEY}"}
PLAN = {
    "budgets": {
        WIDE: {"unit": "usd", "limit": "1000000", "per": "total", "where": {"lane": WIDE}},
        NARROW: {"unit": "usd", "limit": "0.04", "per": "total", "where": {"lane": NARROW}},
    }
}

pytestmark = pytest.mark.timeout(0 if SOAK else 240)  # 20 s where nothing else runs


class _Peer(msgspec.Struct):
    name: str
    current: bool = False


class _Members(msgspec.Struct):
    leader: str = ""
    replicas: list[_Peer] = []


class _Info(msgspec.Struct):
    cluster: _Members = msgspec.field(default_factory=_Members)
    error: dict[str, object] | None = None


async def members(journal: Journal, stream: str) -> _Members:
    """Who leads a stream and who follows it, as the cluster sees it now."""
    try:
        return (await journal.api(f"STREAM.INFO.{stream}", {}, _Info)).cluster
    except NoAnswer:
        return _Members()


async def all_current(journal: Journal, stream: str = "") -> bool:
    found = await members(journal, stream or journal.names.stream)
    return {found.leader, *(peer.name for peer in found.replicas if peer.current)} == set(NODES)


class Calling(Protocol):
    async def call(self, id: str) -> Deed: ...


class Crowd:
    """Callers at work, each with one call under way, until told to stop."""

    def __init__(self) -> None:
        self.deeds: list[Deed] = []
        self.silence_s, self._heard_at = 0.0, time.monotonic()
        self._stopping = False

    async def work(self, caller: Calling, name: str) -> None:
        number = 0
        while not self._stopping:
            number += 1
            deed = await caller.call(f"{name}-{number}")
            self.deeds.append(deed)
            if deed.held is not None:
                now = time.monotonic()
                self.silence_s, self._heard_at = max(self.silence_s, now - self._heard_at), now
            await asyncio.sleep(PAUSE_S)

    async def more(self) -> None:
        """Until some more calls were decided."""
        wanted = self.decided + CALLS_AFTER
        await eventually(lambda: self.decided >= wanted, within_s=WITHIN_S)

    @property
    def decided(self) -> int:
        return sum(deed.held is not None for deed in self.deeds)

    def stop(self) -> None:
        self._stopping = True


@asynccontextmanager
async def crowd_at(cluster: Cluster, folder: Path, session: aiohttp.ClientSession) -> AsyncIterator[Crowd]:
    """Callers through the broker and through both webs, until the block ends; then all finish what they began."""
    crowd = Crowd()
    async with Purse.connect(cluster.role_urls["client"], data=folder) as purse, asyncio.TaskGroup() as callers:
        for number in range(3):
            direct = Caller(purse, random.Random(f"direct {number}"))
            callers.create_task(crowd.work(direct, f"direct{number}"))
            over_http = WebCaller(session, cluster.pages, random.Random(f"http {number}"))
            callers.create_task(crowd.work(over_http, f"http{number}"))
        try:
            yield crowd
        finally:
            crowd.stop()


@asynccontextmanager
async def deployed(folder: Path) -> AsyncIterator[Cluster]:
    """Everything that `compose.yaml` starts, in its order, and its first plan."""
    async with cluster_in(folder) as cluster:
        parts = dict(cluster.parts)
        for node in NODES:
            await eventually(parts.pop(node).healthy, within_s=WITHIN_S)
        for part in parts.values():
            await part.start()
        await cluster.parts["first-plan"].ended_well()
        yield cluster


async def ready(session: aiohttp.ClientSession, page: str) -> bool:
    try:
        async with session.get(f"{page}/readyz") as answer:
            return answer.status == 200
    except aiohttp.ClientError:
        return False


async def give_plan(session: aiohttp.ClientSession, page: str) -> bool:
    """Once the web knows which plan there is: two budgets that count the callers' two lanes."""
    async with session.get(f"{page}/v1/plan", headers=AUTHORIZED) as shown:
        if shown.status != 200:
            return False
        replaces = (await shown.json())["digest"]
    async with session.post(f"{page}/v1/plan", json={"plan": PLAN, "replaces": replaces}) as answer:
        return answer.status == 200


async def shows(session: aiohttp.ClientSession, page: str, books: dict[str, int]) -> bool:
    return await settled_shown(session, page) == books


async def speaker(journal: Journal, cluster: Cluster) -> str:
    """The engine that told last."""
    newest = await journal.last_of("told")
    assert newest is not None
    name = Recorded.read(newest).told.engine
    return next(engine for engine in ENGINES if cluster.parts[engine].said(name))


async def test_one_of_each_is_killed_and_every_book_says_the_same(tmp_path: Path) -> None:
    timeout = aiohttp.ClientTimeout(total=2 * ONE_WAIT_S)
    async with (
        deployed(tmp_path) as cluster,
        Journal.connect(cluster.url) as journal,
        aiohttp.ClientSession(headers=AUTHORIZED, timeout=timeout) as session,
    ):
        for page in cluster.pages:
            await eventually(lambda page=page: ready(session, page), within_s=WITHIN_S)
        await eventually(lambda: give_plan(session, cluster.pages[0]), within_s=WITHIN_S)
        await eventually(lambda: all_current(journal), within_s=WITHIN_S)
        async with crowd_at(cluster, tmp_path, session) as crowd:
            await crowd.more()
            for turn in range(ROUNDS):
                web = WEBS[turn % 2]
                for name in (web, "projector", await speaker(journal, cluster)):
                    await cluster.parts[name].die()
                    await crowd.more()
                await eventually(cluster.parts[web].healthy, within_s=WITHIN_S)
                leader = (await members(journal, journal.names.stream)).leader
                await cluster.nodes[leader].kill()
                await crowd.more()
                await cluster.nodes[leader].start()
                await eventually(lambda: all_current(journal), within_s=WITHIN_S)
                await crowd.more()
        record, proof, status = await told_to_the_end(cluster.url, tmp_path)
        assert list(differences(crowd.deeds, record, proof, status)) == []
        assert proof.untold == 0
        refused = sum(deed.held is not None and deed.held.outcome == "exhausted" for deed in crowd.deeds)
        assert refused > 0, "the narrow budget was asked for more than it has"
        books = {budget.name: budget.settled for budget in status.budgets}
        for page in cluster.pages:
            await eventually(lambda page=page: shows(session, page, books))
        await eventually(lambda: all_current(journal, f"KV_PURSE_{journal.names.wallet}_days"), within_s=WITHIN_S)
        code, audited = await cluster.parts["projector"].run("purse", "audit", "today")
        assert code == 0, audited.decode()
        assert (await refused_to_change(journal)) == "denied"
    unheard = sum(deed.held is None for deed in crowd.deeds)
    print(f"\nsilent for {crowd.silence_s:.2f} s: {crowd.decided:,} holds decided, {unheard:,} not, {ROUNDS} rounds")


async def refused_to_change(journal: Journal) -> str:
    """What becomes of a request for other settings, made with the processes' own credentials."""
    try:
        answer = await journal.request(f"$JS.API.STREAM.UPDATE.{journal.names.stream}", b"{}", wait_s=0.5)
    except NoAnswer:
        return "denied"  # the server says nothing to whom may not ask
    return answer.decode()
