"""One call by one client, through a wallet, to a provider that keeps a bill."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from desk_client import KEY
from guarded_provider import DOLLAR_A_DAY, GuardedProvider, guarded_provider
from providers.fake_anthropic import fake_anthropic
from providers.fake_openai import fake_openai
from providers.faults import NO_FAULT, Fault
from providers.production import Reply
from sdk.clients import Client, Running

from engine.core.plan import Plan

MODELS = {"openai": "gpt-4o-mini", "anthropic": "claude-haiku-4-5"}
EMBEDDER = "text-embedding-3-small"
MAX_TOKENS = 100


@asynccontextmanager
async def guarding(
    client: Client, plan: Plan = DOLLAR_A_DAY, *, reply: Reply | None = None, fault: Fault = NO_FAULT, **settings: Any
) -> AsyncIterator[GuardedProvider]:
    """The provider of this client, behind a wallet."""
    fake = {"openai": fake_openai, "anthropic": fake_anthropic}[client.provider](reply=reply, fault=fault)
    async with guarded_provider(fake, client.provider, plan, **settings) as guard:
        yield guard


async def ask(running: Running, guard: GuardedProvider, does: str, **more: Any) -> dict[str, Any]:
    """What the client saw. `more` stands in for what a plain call says."""
    model = EMBEDDER if does == "embeddings" else MODELS[running.client.provider]
    call = {"url": guard.url + running.client.path, "key": KEY, "model": model, "max_tokens": MAX_TOKENS}
    return await running.ask(does, **{**call, **more})
