"""Guarded calls over the real wallet: whatever happens to them, the provider's bill never passes the budget."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
from aiohttp.test_utils import TestServer
from desk_client import KEY
from integration.rig import (
    DOLLAR,
    WITHIN_S,
    Audit,
    engine_on,
    eventually,
    process_of,
    projector_on,
    told,
    wallet_on,
)
from providers.fake_openai import FakeOpenAI
from providers.faults import HANGS_BEFORE_ANSWER, NO_FAULT, Fault, hangs_after
from providers.ledger import Line
from providers.production import Reply, words

from engine.client import Purse
from engine.core.messages import Settled
from engine.core.plan import Budget, Plan
from engine.embedded import EmbeddedServer
from engine.journal import Journal
from web.app import make_app
from web.desk import DESK
from web.proxy.upstreams import Upstream
from web.settings import Settings

PLAN = Plan({"day": Budget("usd", DOLLAR, per="year")})
"""A year, so that no midnight comes in between."""

CHAT = "/openai/v1/chat/completions"
CALL = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Say what you know"}], "max_tokens": 1000}
"""Holds one cent and a little."""

CALLERS = 200
PATIENCE_S = 5.0
"""Past it a call that says nothing is given up. One that is only slow is charged as well, so no test depends on it."""
LEAVING, STREAMING = 0.25, 0.6
FAULTS = [
    *([NO_FAULT] * 12), Fault(status=500), Fault(status=503), Fault(status=429), Fault(reset_before_answer=True),
    Fault(reset_after=80), Fault(error_after=60), Fault(end_after=40), HANGS_BEFORE_ANSWER, hangs_after(50),
]  # fmt: skip


@dataclass
class Guarded:
    """One web application on a real wallet, in front of a provider that bills."""

    url: str
    fake: FakeOpenAI
    journal: Journal
    session: aiohttp.ClientSession
    heard: list[Heard] = field(default_factory=list)

    async def call(self, *, stream: bool = False, leaves_after: int | None = None) -> int:
        """The status. A client that leaves does so after so many bytes."""
        body = {**CALL, "stream": stream}
        async with self.session.post(self.url + CHAT, json=body) as answer:
            number = answer.headers.get("x-purse-upstream-request-id", "req_-1").removeprefix("req_")
            self.heard.append(Heard(answer.headers.get("x-purse-hold", ""), int(number), answer.status))
            if leaves_after is not None:
                await answer.content.read(leaves_after)
                answer.close()
            else:
                await answer.read()
            return answer.status

    async def all_ended(self) -> Audit:
        """The record, once no hold is open."""

        async def ended() -> Audit | None:
            found = await told(self.journal)
            return None if found.wallet.open else found

        return await eventually(ended)


@dataclass(frozen=True)
class Heard:
    """What a client can tell of one call."""

    hold: str
    request: int
    status: int


@asynccontextmanager
async def guarded_on(
    server: EmbeddedServer, wallet: str, fake: FakeOpenAI, data: Path, *, idle_s: float = WITHIN_S
) -> AsyncIterator[Guarded]:
    upstream = Upstream(name="openai", provider="openai", base_url=f"{fake.url}/v1", key=fake.key, idle_s=idle_s)
    settings = Settings(wallet=wallet, admin_key=KEY, upstreams={"openai": upstream})
    async with AsyncExitStack() as stack:
        journal = await stack.enter_async_context(wallet_on(server.url, wallet, plan=PLAN))
        await stack.enter_async_context(engine_on(server.url, wallet))
        await stack.enter_async_context(projector_on(server.url, wallet))
        await told(journal)
        purse = await stack.enter_async_context(Purse.connect(server.url, wallet=wallet, data=data))
        app = make_app(purse, settings)
        served = TestServer(app)
        await served.start_server(auto_decompress=False)
        stack.push_async_callback(served.close)
        board = asyncio.create_task(app[DESK].board.run())
        stack.callback(board.cancel)
        session = aiohttp.ClientSession(
            headers={"Authorization": f"Bearer {KEY}"}, connector=aiohttp.TCPConnector(limit=0)
        )
        await stack.enter_async_context(session)
        yield Guarded(str(served.make_url("")).rstrip("/"), fake, journal, session)


def exact_charges(found: Audit) -> dict[str, int]:
    """What was charged by the provider's own report, by hold."""
    settled = (outcome for outcome in found.outcomes if isinstance(outcome, Settled))
    return {told.id: told.charged["usd"] for told in settled if told.state == "settled" and told.charged["usd"]}


def total(found: Audit) -> tuple[int, int]:
    settled, held, _, _ = found.wallet.meters()[("day", None, found_period(found))]
    return settled, held


def found_period(found: Audit) -> str:
    return next(period for _, _, period in found.wallet.meters())


async def test_a15_200_callers_at_once_never_cost_more_than_the_dollar_whatever_goes_wrong(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    chance = random.Random(7)
    async with (
        FakeOpenAI(reply=Reply(tokens=words(150), cache_read=3)) as fake,
        guarded_on(nats_server, wallet_name, fake, tmp_path, idle_s=PATIENCE_S) as guard,
    ):

        async def caller() -> list[int]:
            statuses = []
            for _ in range(3):
                leaves = chance.randrange(200, 30_000) if chance.random() < LEAVING else None
                try:
                    statuses.append(await guard.call(stream=chance.random() < STREAMING, leaves_after=leaves))
                except aiohttp.ClientError:
                    statuses.append(0)
            return statuses

        fake.next_faults.extend(chance.choice(FAULTS) for _ in range(3 * CALLERS))
        statuses = [status for each in await asyncio.gather(*(caller() for _ in range(CALLERS))) for status in each]
        found = await guard.all_ended()

        settled, held = total(found)
        assert held == 0
        assert fake.ledger.total <= DOLLAR
        assert settled <= DOLLAR, "nothing here used more than its grant"
        assert 200 in statuses
        assert {402, 429} & set(statuses), "the dollar was short"

        charged = exact_charges(found)
        billed = {line.request: line for line in fake.ledger.lines}
        compared = [
            (charged[heard.hold], billed[heard.request].amount)
            for heard in guard.heard
            if heard.hold in charged and heard.request in billed
        ]
        assert compared
        assert all(ours == theirs for ours, theirs in compared), "to the nano-dollar"
        done = [line for line in fake.ledger.lines if line.ended == "done"]
        assert sum(charged.values()) == sum(line.amount for line in reported(done, guard, charged))
        print(
            f"{dict(Counter(statuses))}; {dict(Counter(line.ended for line in billed.values()))}; "
            f"{len(compared)} compared;"
            f" billed {fake.ledger.total:,}, settled {settled:,} of {DOLLAR:,} nano-dollars"
        )


def reported(done: list[Line], guard: Guarded, charged: dict[str, int]) -> list[Line]:
    """The calls whose report reached us."""
    numbers = {heard.request for heard in guard.heard if heard.hold in charged}
    return [line for line in done if line.request in numbers]


async def test_a_call_is_refused_where_the_dollar_is_spent_and_nothing_is_sent(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    async with (
        FakeOpenAI(reply=Reply(tokens=words(1000))) as fake,
        guarded_on(nats_server, wallet_name, fake, tmp_path) as guard,
    ):
        statuses = await asyncio.gather(*(guard.call() for _ in range(CALLERS)))
        while (last := await guard.call()) in (200, 429):  # 429: the last settlements are still on their way
            await guard.all_ended()
        sent = len(fake.requests)
        assert last == 402
        assert {200} < set(statuses) <= {200, 402, 429}
        assert sent == len(fake.ledger.lines)
        found = await guard.all_ended()
        assert total(found) == (fake.ledger.total, 0)
        assert DOLLAR - fake.ledger.total < 2 * DOLLAR // 100
        assert fake.ledger.total <= DOLLAR


async def test_b18_b22_what_a_call_cost_while_the_stream_is_away_is_on_disk_and_lands_once(
    own_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    async with (
        FakeOpenAI(fault=HANGS_BEFORE_ANSWER) as fake,
        guarded_on(own_server, wallet_name, fake, tmp_path) as guard,
    ):
        calling = asyncio.create_task(guard.call())
        async with asyncio.timeout(WITHIN_S):
            await (await fake.request()).paused.wait()
        own_server.kill()
        await own_server.wait()
        fake.go.set()
        async with asyncio.timeout(WITHIN_S):
            assert await calling == 200, "the answer is not held up by the wallet"
        spool = tmp_path / "spool" / wallet_name
        await eventually(lambda: any(path.read_bytes() for path in spool.glob("*.spool")))
        assert await guard.call() == 503, "nothing is sent while nobody can decide"
        assert len(fake.requests) == 1
        await own_server.start()
        await eventually(lambda: guard.journal.client.is_connected)
        found = await guard.all_ended()
        assert total(found) == (fake.ledger.total, 0)
        assert exact_charges(found) == {guard.heard[0].hold: fake.ledger.total}


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
async def test_b18_a_web_process_that_is_killed_in_mid_call_leaves_a_hold_that_is_charged(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path, stream: bool
) -> None:
    plan = Plan({"day": Budget("usd", DOLLAR, per="year")}, ttl_s=2)
    async with AsyncExitStack() as stack:
        fake = await stack.enter_async_context(FakeOpenAI(fault=hangs_after(2)))
        journal = await stack.enter_async_context(wallet_on(nats_server.url, wallet_name, plan=plan))
        await stack.enter_async_context(engine_on(nats_server.url, wallet_name))
        await stack.enter_async_context(projector_on(nats_server.url, wallet_name))
        await told(journal)
        (tmp_path / "admin.key").write_text(KEY)
        (tmp_path / "purse.toml").write_text(f'[upstreams.openai]\nbase_url = "{fake.url}/v1"\nkey_env = "THE_KEY"\n')
        environment = {
            "PURSE_NATS_URL": nats_server.url, "PURSE_WALLET": wallet_name, "PURSE_DATA": str(tmp_path),
            "PURSE_PORT": "0", "PURSE_CONFIG": str(tmp_path / "purse.toml"), "THE_KEY": fake.key,
        }  # fmt: skip
        web = await stack.enter_async_context(process_of(["-m", "web"], **environment))
        url = (await web.until("web_listening"))["url"]
        session = await stack.enter_async_context(aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEY}"}))
        calling = asyncio.create_task(_until_cut_off(session, url + CHAT, {**CALL, "stream": stream}))
        seen = await fake.request()
        async with asyncio.timeout(WITHIN_S):
            await seen.paused.wait()
        await web.close()
        await calling
        found = await told(journal)
        (hold,) = found.wallet.open.values()
        granted = hold.granted["usd"]

        async def lapsed() -> Audit | None:
            found = await told(journal)
            return None if found.wallet.open else found

        assert total(await eventually(lapsed)) == (granted, 0)
        said = str(web.said)
        assert not [secret for secret in (fake.key, KEY, "Say what you know") if secret in said]


async def _until_cut_off(session: aiohttp.ClientSession, url: str, body: object) -> None:
    try:
        async with session.post(url, json=body) as answer:
            await answer.read()
    except aiohttp.ClientError:
        return
    raise AssertionError("the process was killed and yet it answered")
