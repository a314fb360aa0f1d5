"""Faults of bypass (E) where providers are guarded: every address that spends, over one budget for all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from desk_client import Desk, open_desk
from guarded_provider import DOLLAR_A_DAY
from providers.fake_anthropic import FakeAnthropic, fake_anthropic
from providers.fake_openai import FakeOpenAI, fake_openai
from providers.fake_workers_ai import BGE, LLAMA, FakeWorkersAI, fake_workers_ai

from engine.core.messages import Hold
from web.proxy.routes import GUARDED
from web.proxy.upstreams import PRICED_AS, Upstream

MESSAGES = [{"role": "user", "content": "What is a purse?"}]
SPENDS: dict[str, dict[str, Any]] = {
    "/openai/v1/chat/completions": {"model": "gpt-4o-mini", "messages": MESSAGES, "max_tokens": 50},
    "/openai/v1/responses": {"model": "gpt-4o-mini", "input": "What is a purse?", "max_output_tokens": 50},
    "/openai/v1/embeddings": {"model": "text-embedding-3-small", "input": "What is a purse?"},
    "/anthropic/v1/messages": {"model": "claude-haiku-4-5", "messages": MESSAGES, "max_tokens": 50},
    "/workers-ai/run/{model:.+}": {"prompt": "What is a purse?", "max_tokens": 50},
    "/workers-ai/v1/chat/completions": {"model": LLAMA, "messages": MESSAGES, "max_tokens": 50},
    "/workers-ai/v1/embeddings": {"model": BGE, "input": "What is a purse?"},
}
"""A body for every address."""


@dataclass
class Everything:
    """One wallet before three providers."""

    desk: Desk
    openai: FakeOpenAI
    anthropic: FakeAnthropic
    workers_ai: FakeWorkersAI

    async def call(self, path: str) -> int:
        heard = await self.desk.post(path.replace("{model:.+}", LLAMA), SPENDS[path])
        return heard.status

    @property
    def requests(self) -> int:
        return sum(len(fake.requests) for fake in (self.openai, self.anthropic, self.workers_ai))

    @property
    def billed(self) -> int:
        """In nano-dollars; a million neurons are 11 dollars."""
        neurons = sum(-(-line.amount * 11 // 1000) for line in self.workers_ai.ledger.lines)
        return self.openai.ledger.total + self.anthropic.ledger.total + neurons

    @property
    def settled(self) -> int:
        return sum(meter[0] for meter in self.desk.purse.wallet.meters().values())


@asynccontextmanager
async def everything() -> AsyncIterator[Everything]:
    async with AsyncExitStack() as stack:
        openai = await stack.enter_async_context(fake_openai())
        anthropic = await stack.enter_async_context(fake_anthropic())
        workers_ai = await stack.enter_async_context(fake_workers_ai())
        tables = [
            ("openai", openai.base_url, openai.key),
            ("anthropic", anthropic.url, anthropic.key),
            ("workers-ai", workers_ai.base_url, workers_ai.key),
        ]
        upstreams = {
            name: Upstream(name=name, provider=PRICED_AS[name], base_url=url, key=key) for name, url, key in tables
        }
        desk = await stack.enter_async_context(open_desk(DOLLAR_A_DAY, upstreams=upstreams))
        yield Everything(desk, openai, anthropic, workers_ai)


def test_e3_no_address_that_spends_is_forgotten_here() -> None:
    assert SPENDS.keys() == {path for path, _ in GUARDED}


@pytest.mark.parametrize("path", SPENDS)
async def test_e3_e4_every_address_is_held_and_charged_to_the_one_budget(path: str) -> None:
    async with everything() as all_of_it:
        assert await all_of_it.call(path) == 200
        holds = [ask for ask in all_of_it.desk.purse.asked if isinstance(ask, Hold)]
        assert [hold.labels["provider"] for hold in holds] == [PRICED_AS[path.split("/")[1]]]
        assert holds[0].options[0].amounts["usd"] >= all_of_it.settled == all_of_it.billed > 0


async def test_e3_a_budget_used_up_at_one_address_is_used_up_at_all() -> None:
    async with everything() as all_of_it:
        spent = {"id": "a", "budget": "day", "period": "2026-11-30", "amount": "1", "reason": "spent elsewhere"}
        assert (await all_of_it.desk.post("/v1/adjustments", spent)).status == 200
        assert {path: await all_of_it.call(path) for path in SPENDS} == dict.fromkeys(SPENDS, 402)
        assert all_of_it.requests == 0
