"""A cluster of three, started from the files that are deployed: what callers lose when the stream's leader is killed.

Nothing that was acknowledged, and nothing twice; but 4 to 9 seconds in which no new call gets permission.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest_asyncio
from integration.cluster import NODES, Cluster, cluster_in
from integration.rig import DOLLAR, audited, engine_process, eventually, process_of, projector_on
from integration.traffic import Traffic, traffic_on

from engine.client import Purse
from engine.core.messages import Held, Settled
from engine.errors import NoAnswer, StreamRefused
from engine.journal import NO_STREAM, Journal

SILENCE_S_MAX = 20.0  # elections take 4 to 9 s by the server's own constants; on a busy machine some more
COST = DOLLAR // 100_000
WALLET = "main"  # of which the deployed permissions speak


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


@pytest_asyncio.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with cluster_in(tmp_path) as cluster:
        yield cluster


async def elected(journal: Journal) -> bool:
    """Whether the nodes have found each other: then they know that there is no stream yet."""
    try:
        await journal.check_stream()
    except StreamRefused as refused:
        return refused.code == NO_STREAM
    except NoAnswer:
        pass
    return False


async def first_plan(cluster: Cluster, folder: Path) -> bool:
    """As the deployment does it: a process that makes stream and plan, started again until it ends well."""
    config = folder / "purse.toml"
    config.write_text('[budgets.jev]\nunit = "usd"\nlimit = "1.00"\nper = "total"\n')
    said = {"PURSE_NATS_URL": cluster.url, "PURSE_WALLET": WALLET, "PURSE_DATA": str(folder)}
    async with process_of(["-m", "commonpurse.first_plan"], PURSE_CONFIG=str(config), **said) as process:
        return await process.wait() == 0


async def test_when_the_leader_is_killed_nothing_is_lost_and_nothing_told_twice(
    cluster: Cluster, tmp_path: Path
) -> None:
    url, roles = cluster.url, cluster.role_urls
    async with Journal.connect(url) as journal:
        await eventually(lambda: elected(journal))
    async with (
        Journal.connect(url) as journal,
        engine_process(roles["engine"], WALLET, patience_ms=50, ready=False),
        engine_process(roles["engine"], WALLET, patience_ms=150, ready=False),
        projector_on(roles["projector"], WALLET, ready=False) as projector,
        Purse.connect(roles["client"]) as purse,
    ):
        await eventually(lambda: first_plan(cluster, tmp_path))
        await eventually(lambda: all_current(journal))
        async with traffic_on(purse) as traffic:
            await traffic.more(50)
            leader = (await members(journal, journal.names.stream)).leader
            await cluster.nodes[leader].kill()
            await traffic.more(100)
        await cluster.nodes[leader].start()
        await eventually(lambda: all_current(journal))
        await eventually(lambda: nothing_held(journal))
        found = await audited(journal)
        check(traffic, [o.id for o in found.outcomes if isinstance(o, Held)],
              [o.id for o in found.outcomes if isinstance(o, Settled) and o.charged.get("usd")])  # fmt: skip
        assert found.wallet.meters()["jev", None, "total"] == (len(traffic.handed) * COST, 0, 0, 0)
        await eventually(lambda: projector.service.projection.wallet.upto >= found.wallet.upto)
        await eventually(lambda: all_current(journal, f"KV_PURSE_{WALLET}_days"))
        assert (await refused_to_change(journal)) == "denied"
    print(f"\nsilent for {traffic.silence_s:.2f} s: {len(traffic.waits_s):,} answers, {len(traffic.unanswered):,} none")
    assert traffic.silence_s < SILENCE_S_MAX


def check(traffic: Traffic, held: list[str], settled: list[str]) -> None:
    """Every permission that was heard is on the record, each once, and every cost that was handed over is charged."""
    assert not traffic.refused
    assert len(held) == len(set(held))
    assert set(traffic.held) <= set(held)
    assert sorted(settled) == sorted(traffic.handed)


async def nothing_held(journal: Journal) -> bool:
    found = await audited(journal)
    return not found.untold and not found.wallet.open


async def refused_to_change(journal: Journal) -> str:
    """What becomes of a request for other settings, made with the processes' own credentials."""
    try:
        answer = await journal.request(f"$JS.API.STREAM.UPDATE.{journal.names.stream}", b"{}", wait_s=0.5)
    except NoAnswer:
        return "denied"  # the server says nothing to whom may not ask
    return answer.decode()
