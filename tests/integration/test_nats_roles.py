"""What each user may say on the broker, by trying: on the server of `purse up`, and on that of `deploy/nats`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import nats
import pytest
import pytest_asyncio
from integration.cluster import Cluster
from integration.rig import engine_on, eventually, projector_on
from nats.aio.client import Client

from engine.client import Purse
from engine.core.messages import ApplyPlan, Freeze, Held, Hold, Option
from engine.core.plan import Budget, Plan
from engine.embedded import embedded_nats
from engine.errors import NoAnswer
from engine.journal import Journal
from engine.nats_roles import ROLES, STREAM_ACTS, Role

KEYS = "KV_PURSE_main_keys"
ACTS = [f"$JS.API.STREAM.{act}.PURSE_main" for act in STREAM_ACTS] + ["$JS.API.STREAM.CREATE.PURSE_main"]
READS_KEYS = [
    f"$JS.API.STREAM.MSG.GET.{KEYS}", f"$JS.API.DIRECT.GET.{KEYS}", f"$JS.API.DIRECT.GET.{KEYS}.$KV.PURSE_main_keys.k",
    f"$JS.API.CONSUMER.CREATE.{KEYS}", f"$JS.API.CONSUMER.CREATE.{KEYS}.c.$KV.PURSE_main_keys.k",
]  # fmt: skip
TOLD, ADMIN, ASK, KEY, DAY, SENT = (
    "purse.main.told", "purse.main.admin", "purse.main.ask", "$KV.PURSE_main_keys.abcdefghij",
    "$KV.PURSE_main_days.jev.d", "$KV.PURSE_main_alerts.ops.d",
)  # fmt: skip

FORBIDDEN: Mapping[Role, list[str]] = {
    "engine": [*ACTS, *READS_KEYS, ADMIN, KEY, DAY, SENT],
    "projector": [*ACTS, *READS_KEYS, TOLD, KEY],
    "web": [*ACTS, TOLD, DAY, SENT],
    "client": [
        *ACTS, *READS_KEYS, TOLD, ADMIN, KEY, DAY, SENT, "purse.main.live", "purse.main.look", "purse.other.ask",
        "purse.main.alerts.test",
        "_INBOX.somebody.1", "$JS.API.STREAM.CREATE.ANY", "$JS.API.CONSUMER.CREATE.PURSE_main", "$JS.API.STREAM.NAMES",
    ],
}  # fmt: skip
ALLOWED: Mapping[Role, list[str]] = {
    "engine": [TOLD, ASK, "_INBOX.somebody.1", "$JS.API.STREAM.INFO.PURSE_main"],
    "projector": [ASK, ADMIN, DAY, SENT, "purse.main.live", "_INBOX.somebody.1"],
    "web": [
        ASK,
        ADMIN,
        KEY,
        "purse.main.alerts.test",
        READS_KEYS[0],
        f"$JS.API.STREAM.CREATE.{KEYS}",
        "purse.main.look",
    ],
    "client": [ASK, "purse.main.ready", "purse.main.read.status", "$JS.API.STREAM.INFO.PURSE_main"],
}
EARS: Mapping[Role, list[str]] = {
    "engine": ["$KV.PURSE_main_keys.>"],
    "projector": ["$KV.PURSE_main_keys.>"],
    "web": [],
    "client": [">", "purse.main.ask", TOLD, "purse.main.ready", "$KV.PURSE_main_keys.>", "$JS.API.>"],
}
"""What may not even be listened to."""


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=["embedded", "deployed"])
async def urls(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Mapping[Role, str]]:
    """A server without a stream, and every role's address. A broker that is alone judges permissions all the same."""
    folder = tmp_path_factory.mktemp("roles")
    async with AsyncExitStack() as stack:
        if request.param == "embedded":
            server = await stack.enter_async_context(embedded_nats(folder, wallet="main"))
            yield {role: server.url_for(role) for role in ROLES}
        else:
            cluster = Cluster(folder)
            node = cluster.nodes["nats-1"]
            await node.start()
            stack.push_async_callback(node.kill)
            yield {role: cluster.role_urls[role].partition(",")[0] for role in ROLES}


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[tuple[Client, list[str]]]:
    complaints: list[str] = []

    async def hear(error: Exception) -> None:
        complaints.append(str(error).lower())

    client = await nats.connect(url, error_cb=hear, max_reconnect_attempts=600, reconnect_time_wait=0.1)
    try:
        yield client, complaints
    finally:
        await client.close()


@pytest.mark.parametrize("role", ROLES)
async def test_what_a_role_may_not_say_is_refused_and_what_it_must_say_is_not(
    urls: Mapping[Role, str], role: Role
) -> None:
    async with connected(urls[role]) as (client, complaints):
        for subject in ALLOWED[role]:
            await client.publish(subject, b"{}")
        await client.flush(timeout=60)
        complaints = [one for one in complaints if "violation" in one]
        assert complaints == []
    async with connected(urls[role]) as (client, complaints):
        for subject in FORBIDDEN[role]:
            await client.publish(subject, b"{}")
        await eventually(lambda: len(complaints) >= len(FORBIDDEN[role]))
        for subject, complaint in zip(FORBIDDEN[role], complaints, strict=True):
            assert f'permissions violation for publish to "{subject.lower()}"' in complaint


@pytest.mark.parametrize("role", ROLES)
async def test_what_a_role_may_not_hear_it_cannot_listen_to(urls: Mapping[Role, str], role: Role) -> None:
    async with connected(urls[role]) as (client, complaints):
        for subject in EARS[role]:
            await client.subscribe(subject)
        await eventually(lambda: len(complaints) >= len(EARS[role]))
        assert all("permissions violation for subscription" in complaint for complaint in complaints)


async def test_a_wallet_whose_parts_have_their_own_users_works_and_a_client_can_only_ask(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(embedded_nats(tmp_path, wallet="main"))
        operator = await stack.enter_async_context(Journal.connect(server.url))
        await operator.ensure_stream()
        await stack.enter_async_context(engine_on(server.url_for("engine"), "main"))
        await stack.enter_async_context(projector_on(server.url_for("projector"), "main"))
        web = await stack.enter_async_context(Purse.connect(server.url_for("web")))
        await web.ask(ApplyPlan("p", Plan({"jev": Budget("usd", 10**9, per="total")}), ""))
        await web.bucket("keys").make()
        assert await web.bucket("keys").put("abcdefghij", b"{}", after=0) == 1
        client = await stack.enter_async_context(Purse.connect(server.url_for("client")))
        hold = Hold("a", [Option({"usd": 1})], by=client.by(60))
        assert isinstance((await client.ask(hold, wait_s=60)).outcome, Held)
        status = await eventually(client.status)
        assert status is not None
        before = await operator.last_seq()
        with pytest.raises(NoAnswer):
            await client.ask(Freeze("f", "all", "mischief"), wait_s=0.5)
        assert await operator.last_seq() == before
        elsewhere = await stack.enter_async_context(Journal.connect(server.url_for("client")))
        for word in ("ready", "read.status"):  # whoever answers may tell, but not because somebody names that as inbox
            await elsewhere.client.publish(f"purse.main.{word}", b"", reply="purse.main.told")
        await elsewhere.client.flush()
        assert await client.ready()
        assert await client.status() is not None  # both have read what came before
        assert await operator.last_seq() == before
