"""Guarded calls through web processes that are killed under load: the provider's bill never passes the budget."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
from desk_client import KEY
from integration.rig import (
    DOLLAR,
    WITHIN_S,
    Audit,
    Process,
    engine_on,
    eventually,
    process_of,
    projector_on,
    told,
    wallet_on,
)
from integration.test_guarded_money import CALL, CHAT, FAULTS, PATIENCE_S, exact_charges, total
from providers.fake_openai import FakeOpenAI
from providers.production import Reply, words

from engine.core.plan import Budget, Plan
from engine.embedded import EmbeddedServer

CALLERS, CALLS, KILLS = 200, 4, 2
SHORT_CALL = {**CALL, "max_tokens": 160}
"""Holds a sixth of a cent: what the kills leave open must not use up the dollar at once."""
STREAMING = 0.6
PLAN = Plan({"day": Budget("usd", DOLLAR, per="year")}, ttl_s=10)
"""What a killed process leaves open lapses soon, and is charged."""


class Webs:
    """One web process after the other, each on a port of its own."""

    def __init__(self, stack: AsyncExitStack, environment: dict[str, str]) -> None:
        self.url = ""
        self.up = asyncio.Event()
        self._stack, self._environment = stack, environment
        self._running: Process | None = None

    async def next(self) -> None:
        """kill -9 of the one that runs, and another in its place."""
        self.up.clear()
        if self._running is not None:
            await self._running.close()
        self._running = running = await self._stack.enter_async_context(process_of(["-m", "web"], **self._environment))
        self.url = str((await running.until("web_listening"))["url"])
        self.up.set()


async def test_a15_killed_web_processes_let_nothing_past_the_dollar(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    chance = random.Random(11)
    heard: Counter[int] = Counter()
    async with AsyncExitStack() as stack:
        fake = await stack.enter_async_context(FakeOpenAI(reply=Reply(tokens=words(150), cache_read=3)))
        journal = await stack.enter_async_context(wallet_on(nats_server.url, wallet_name, plan=PLAN))
        await stack.enter_async_context(engine_on(nats_server.url, wallet_name))
        await stack.enter_async_context(projector_on(nats_server.url, wallet_name))
        (tmp_path / "admin.key").write_text(KEY)
        (tmp_path / "purse.toml").write_text(
            f'[upstreams.openai]\nbase_url = "{fake.url}/v1"\nkey_env = "THE_KEY"\nidle_s = {PATIENCE_S}\n'
        )
        webs = Webs(stack, {
            "PURSE_NATS_URL": nats_server.url, "PURSE_WALLET": wallet_name, "PURSE_DATA": str(tmp_path),
            "PURSE_PORT": "0", "PURSE_CONFIG": str(tmp_path / "purse.toml"), "THE_KEY": fake.key,
        })  # fmt: skip
        await webs.next()
        session = await stack.enter_async_context(
            aiohttp.ClientSession(
                headers={"Authorization": f"Bearer {KEY}"}, connector=aiohttp.TCPConnector(limit=0, force_close=True)
            )
        )
        fake.next_faults.extend(chance.choice(FAULTS) for _ in range(CALLS * CALLERS))

        async def call() -> None:
            body = {**SHORT_CALL, "stream": chance.random() < STREAMING}
            await webs.up.wait()
            try:
                async with session.post(webs.url + CHAT, json=body) as answer:
                    await answer.read()
                    heard[answer.status] += 1
            except aiohttp.ClientError:
                heard[0] += 1

        async def caller() -> None:
            for _ in range(CALLS):
                await call()

        def reached(requests: int) -> bool:
            return len(fake.requests) >= requests or heard.total() == CALLS * CALLERS

        async def kill() -> None:
            for number in range(1, KILLS + 1):
                await eventually(lambda goal=number * 250: reached(goal), within_s=4 * WITHIN_S)
                await webs.next()

        await asyncio.gather(kill(), *(caller() for _ in range(CALLERS)))

        async def ended() -> Audit | None:
            found = await told(journal)
            return None if found.wallet.open else found

        found = await eventually(ended, within_s=4 * WITHIN_S)
    settled, held = total(found)
    assert held == 0
    assert fake.ledger.total <= settled <= DOLLAR, "every call the provider billed is charged, and none past the limit"
    assert heard[0], "somebody was cut off by a kill"
    assert heard[200], "somebody was answered"
    billed = Counter(line.amount for line in fake.ledger.lines if line.ended == "done")
    assert not Counter(exact_charges(found).values()) - billed, "what was reported is charged to the nano-dollar"
    print(f"{dict(heard)}; billed {fake.ledger.total:,}, settled {settled:,} of {DOLLAR:,} nano-dollars")
