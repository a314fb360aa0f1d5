"""Keys on the real thing: a bucket on a real server, and two web processes that hear of each other's keys."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result
from fake_purse import FakeBucket
from integration.rig import (
    DOLLAR,
    audited,
    engine_on,
    eventually,
    projector_on,
    record_of,
    wallet_on,
)
from integration.two_webs import KEY, Answer, Webs, webs_on

from commonpurse.__main__ import purse as command
from engine.bucket import Bucket
from engine.client import Purse
from engine.core.messages import Held, Revoke, Settled
from engine.core.plan import Budget, Plan
from engine.embedded import EmbeddedServer
from engine.journal import Journal
from engine.read_record import Look

PLAN = Plan({"year": Budget("usd", DOLLAR, per="year")})
HOLD = {"amounts": {"usd": "0.01"}}


@dataclass
class KeyWebs(Webs):
    """Two web processes on one wallet, and a caller of both."""

    async def ask(self, web: int, method: str, path: str, key: str, body: object = None) -> Answer:
        headers = {"Authorization": f"Bearer {key}"}
        async with self.session.request(method, self.urls[web] + path, json=body, headers=headers) as answer:
            return answer.status, await answer.json(content_type=None)

    async def hold(self, web: int, key: str, id: str) -> Answer:
        return await self.ask(web, "POST", "/v1/holds", key, {"id": id, **HOLD})

    async def command(self, *arguments: str) -> Result:
        """The `purse` command of an operator who speaks to the first of them."""
        said = ["--url", self.urls[0], "--key", KEY, *arguments]
        return await asyncio.to_thread(CliRunner().invoke, command, said, catch_exceptions=False)


@asynccontextmanager
async def two_webs(server: EmbeddedServer, wallet: str, data: Path) -> AsyncIterator[KeyWebs]:
    async with webs_on(server, wallet, data, PLAN) as webs, projector_on(server.url, wallet):
        yield KeyWebs(webs.urls, webs.journal, webs.session)


async def test_a_key_made_at_one_web_process_opens_the_other_until_it_is_revoked(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    async with two_webs(nats_server, wallet_name, tmp_path) as webs:
        made = await webs.command(
            "key", "new", "--role", "spend", "--user", "alice", "--label", "team=x", "--expires", "30d"
        )
        assert made.exit_code == 0, made.output
        key = made.stdout.strip()
        id = key.split("_")[1]
        status, held = await webs.hold(1, key, "a")  # at once, without waiting for anything
        assert (status, held["id"]) == (201, "a")
        assert (await webs.hold(0, key, "b"))[0] == 201

        listed = await webs.command("--json", "key", "list")
        assert [one["id"] for one in msgspec.json.decode(listed.stdout)["keys"]] == [id]
        assert key not in listed.output
        revoked = await webs.command("key", "revoke", id, "--reason", "lost it")
        assert (revoked.exit_code, "lost it" in revoked.output) == (0, True)

        async def refused() -> bool:
            return (await webs.ask(1, "GET", "/v1/status", key))[0] == 403

        await eventually(refused)
        assert (await webs.hold(1, key, "c"))[0] == 403
        settle = {"amounts": {"usd": "0.004"}}
        status, settled = await webs.ask(1, "POST", "/v1/holds/a/settle", key, settle)
        assert (status, settled["outcome"], settled["charged"]) == (200, "settled", {"usd": "0.004"})
        assert (await webs.ask(0, "POST", "/v1/holds/b/release", key))[0] == 200
        assert (await webs.ask(1, "GET", "/v1/holds/a", key))[1]["state"] == "settled"
        assert (await webs.ask(1, "POST", "/v1/holds/x/settle", key, settle))[0] == 403

        found = await audited(webs.journal)
        assert (found.count(Held), found.count(Settled)) == (2, 2)
        assert found.wallet.revoked == {("key", id): "lost it"}
        record = await record_of(webs.journal)
        whole = b"".join(stored.data for stored in record)
        assert key.encode() not in whole
        assert b"127.0.0.1" not in whole


async def test_two_web_processes_name_one_origin_alike(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    async with two_webs(nats_server, wallet_name, tmp_path) as webs:
        _, made = await webs.ask(1, "POST", "/v1/keys", KEY, {"role": "spend"})
        for web in (0, 1):
            assert (await webs.hold(web, made["key"], f"w{web}"))[0] == 201
        found = await audited(webs.journal)
        assert len({record.labels["origin"] for record in found.wallet.open.values()}) == 1
        assert {record.labels["key"] for record in found.wallet.open.values()} == {made["id"]}


async def test_a_hold_that_was_on_its_way_when_its_key_was_revoked_is_refused_by_the_engine(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(wallet_on(nats_server.url, wallet_name, plan=PLAN))
        await stack.enter_async_context(engine_on(nats_server.url, wallet_name))
        purse = await stack.enter_async_context(Purse.connect(nats_server.url, wallet=wallet_name))
        await purse.ask(Revoke("r", "key", "abcdefghij", "lost"))
        refused = await purse.hold({"usd": "0.01"}, labels={"key": "abcdefghij"})
        assert type(refused).__name__ == "Revoked"


# --- what they stand on -----------------------------------------------------------------------------------------------


@pytest.fixture
async def journal(nats_server: EmbeddedServer, wallet_name: str) -> AsyncIterator[Journal]:
    async with Journal.connect(nats_server.url, wallet=wallet_name, name="test") as journal:
        await journal.ensure_stream()
        yield journal


@pytest.mark.parametrize("kind", ["real", "fake"])
async def test_a_bucket_keeps_the_newest_and_gives_what_changed_in_order(journal: Journal, kind: str) -> None:
    bucket = Bucket(journal, "keys") if kind == "real" else FakeBucket()
    assert await bucket.next_after(0) is None  # there is none yet
    await bucket.make()
    await bucket.make()
    assert await bucket.put("a", b"1", after=0) == 1
    assert await bucket.put("b", b"1", after=0) == 2
    assert await bucket.put("a", b"lost", after=0) is None
    assert await bucket.put("a", b"2", after=1) == 3
    assert await bucket.put("a", b"lost", after=1) is None
    seen, at = [], 0
    while (kept := await bucket.next_after(at)) is not None:
        seen.append((kept.name, kept.seq, kept.document))
        at = kept.seq
    assert seen == [("b", 2, b"1"), ("a", 3, b"2")]


async def test_a_bucket_tells_that_something_was_written(journal: Journal) -> None:
    bucket = Bucket(journal, "keys")
    await bucket.make()
    heard = asyncio.Event()
    await bucket.on_change(heard.set)
    await bucket.put("a", b"1", after=0)
    await asyncio.wait_for(heard.wait(), 60)


async def test_who_looked_stands_on_a_stream_of_its_own(
    nats_server: EmbeddedServer, journal: Journal, wallet_name: str
) -> None:
    async with Purse.connect(nats_server.url, wallet=wallet_name) as purse:
        looks = [Look("eve", "/v1/days", "r1"), Look("eve", "/v1/keys", "r2")]
        for look in looks:
            await purse.note(look)
        jetstream = journal.client.jetstream()
        kept = [await jetstream.get_msg(f"PURSE_{wallet_name}_looks", seq) for seq in (1, 2)]
    assert [msgspec.json.decode(one.data or b"", type=Look) for one in kept] == looks
    assert await journal.last_seq() == 0  # nothing of it on the wallet's own
