"""The official Anthropic client over a whole wallet, with providers behind it that keep a bill of their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import anthropic
import pytest
import pytest_asyncio
from providers.fake_anthropic import FakeAnthropic, fake_anthropic
from providers.fake_workers_ai import LLAMA, FakeWorkersAI, fake_workers_ai
from providers.faults import NO_FAULT, Fault
from running_purse import RunningPurse, running_purse

from engine.core.amounts import parse

PURSE_TOML = """
[budgets.dollars]
unit = "usd"
limit = "0.10"
per = "total"
where = {{ provider = "anthropic" }}

[budgets.neurons]
unit = "neurons"
limit = "10000"
per = "day"
source = "cloudflare"

[upstreams.anthropic]
base_url = "{anthropic}"
key_env = "TEST_ANTHROPIC_KEY"

[upstreams.workers-ai]
base_url = "{workers_ai}"
key_env = "TEST_CLOUDFLARE_KEY"
"""
ASK: dict[str, Any] = {
    "model": "claude-haiku-4-5",
    "max_tokens": 1000,
    "messages": [{"role": "user", "content": "What is a purse?"}],
}
TOOL = {"name": "weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}


async def post(purse: RunningPurse, path: str, body: object) -> tuple[int, Any]:
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {purse.key}"}) as http,
        http.post(purse.url + path, json=body) as answer,
    ):
        return answer.status, await answer.json()


@dataclass
class World:
    purse: RunningPurse
    anthropic: FakeAnthropic
    workers_ai: FakeWorkersAI
    client: anthropic.AsyncAnthropic

    async def budget(self, name: str) -> dict[str, Any]:
        """The budget as the API shows it."""
        async with (
            aiohttp.ClientSession() as http,
            http.get(f"{self.purse.url}/v1/status", headers={"Authorization": f"Bearer {self.purse.key}"}) as answer,
        ):
            said = await answer.json()
        found: dict[str, Any] = next(budget for budget in said["budgets"] if budget["name"] == name)
        return found

    async def settled(self, name: str, amount: int, scale: int) -> None:
        """Waits until nothing is held and so much is settled: the projector shows it a moment later."""
        async with asyncio.timeout(60):
            while True:
                budget = await self.budget(name)
                held, settled = (parse(budget[name], unit="x", scale=scale) for name in ("held", "settled"))
                if (held, settled) == (0, amount):
                    return
                await asyncio.sleep(0.05)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    folder: Path = tmp_path_factory.mktemp("guarded")
    async with fake_anthropic() as claude, fake_workers_ai() as workers_ai:
        config = folder / "purse.toml"
        config.write_text(PURSE_TOML.format(anthropic=claude.url, workers_ai=workers_ai.base_url))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TEST_ANTHROPIC_KEY", claude.key)
            patch.setenv("TEST_CLOUDFLARE_KEY", workers_ai.key)
            with running_purse(folder / "data", "--config", str(config)) as purse:
                async with anthropic.AsyncAnthropic(base_url=f"{purse.url}/anthropic", api_key=purse.key) as client:
                    yield World(purse, claude, workers_ai, client)


async def test_what_the_wallet_settles_is_what_the_provider_bills(world: World) -> None:
    plain = await world.client.messages.create(**ASK)
    assert plain.content[0].text == world.anthropic.reply.text
    async with world.client.messages.stream(**ASK, tools=[TOOL]) as stream:
        final = await stream.get_final_message()
    assert final.content[0].input == {"city": "Zürich"}
    counted = await world.client.messages.count_tokens(model=ASK["model"], messages=ASK["messages"])
    assert counted.input_tokens == plain.usage.input_tokens
    assert len(world.anthropic.ledger.lines) == 2
    await world.settled("dollars", world.anthropic.ledger.total, 9)


async def test_a_client_that_leaves_is_charged_and_the_provider_is_left(world: World) -> None:
    world.anthropic.fault, before = Fault(pause_after=4), world.anthropic.ledger.total
    number = len(world.anthropic.requests)
    stream = await world.client.messages.create(**ASK, stream=True)
    seen = await world.anthropic.request(number)
    async with asyncio.timeout(60):
        await seen.paused.wait()
        await stream.close()
        await seen.aborted.wait()
        await seen.ended.wait()
        while (await world.budget("dollars"))["held"] != "0":  # noqa: ASYNC110 - another process ends it
            await asyncio.sleep(0.05)
    world.anthropic.fault = NO_FAULT
    settled = parse((await world.budget("dollars"))["settled"], unit="usd", scale=9)
    assert settled - before >= world.anthropic.ledger.total - before > 0


async def test_what_can_never_fit_is_refused_after_one_request(world: World) -> None:
    number = len(world.anthropic.requests)
    with pytest.raises(anthropic.BadRequestError) as caught:
        await world.client.messages.create(**{**ASK, "max_tokens": 20_001}, timeout=60)
    assert caught.value.error_code == "never"
    assert 10_000 < caught.value.body["error"]["details"]["affordable_max_tokens"] < 20_000  # type: ignore[index, call-overload]
    assert len(world.anthropic.requests) == number


async def test_what_is_used_up_is_refused_after_one_request(world: World) -> None:
    number = len(world.anthropic.requests)
    budget = await world.budget("dollars")
    adjustment = {"id": "a", "budget": "dollars", "period": budget["period"], "amount": "0.0999", "reason": "a test"}
    await post(world.purse, "/v1/adjustments", adjustment)
    with pytest.raises(anthropic.PaymentRequiredError) as caught:
        await world.client.messages.create(**ASK)
    assert caught.value.error_code == "spent"
    assert caught.value.response.headers["x-should-retry"] == "false"
    assert len(world.anthropic.requests) == number


async def test_k6_the_end_of_the_allocation_closes_the_budget_for_the_day(world: World) -> None:
    world.workers_ai.allocation = 1
    ask = {"prompt": "hi", "max_tokens": 9}
    said = [await post(world.purse, f"/workers-ai/run/{LLAMA}", ask) for _ in range(3)]
    assert [(status, body["success"]) for status, body in said] == [(200, True), (429, False), (402, False)]
    assert len(world.workers_ai.requests) == 2
    await world.settled("neurons", world.workers_ai.ledger.total, 6)
    assert (await world.budget("neurons"))["observed"]["figure"] == "10000"
