"""The web application over a fake purse, a fake provider behind it: an unchanged SDK here, a bill there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anthropic
import openai
from desk_client import DOLLAR, KEY, NEURON, Desk, open_desk
from providers.provider import FakeProvider

from engine.core.messages import Hold, Observe, Settle
from engine.core.plan import Budget, Plan
from web.proxy.upstreams import PRICED_AS, Upstream

SETTLED_WAIT_S = 30.0
DOLLAR_A_DAY = Plan(budgets={"day": Budget("usd", DOLLAR)})
NEURONS_A_DAY = Plan(budgets={"neurons": Budget("neurons", 10_000 * NEURON, source="cloudflare")})


@dataclass
class GuardedProvider:
    """`url`: what a client is given in place of the provider's own address."""

    desk: Desk
    fake: Any
    url: str
    sent: int = 0
    """Requests that the clients given out here have sent."""

    @property
    def purse(self) -> Any:
        return self.desk.purse

    @property
    def holds(self) -> list[Hold]:
        return [ask for ask in self.purse.asked if isinstance(ask, Hold)]

    @property
    def settles(self) -> list[Settle]:
        """The ends of calls, in order."""
        return [ask for ask in self.purse.asked if isinstance(ask, Settle) and ask.final]

    @property
    def observed(self) -> list[Observe]:
        return [ask for ask in self.purse.asked if isinstance(ask, Observe)]

    async def settled(self, count: int = 1) -> list[Settle]:
        """The ends of so many calls, waiting for them: a call may end after its client has left."""
        async with asyncio.timeout(SETTLED_WAIT_S):
            while True:
                if len(self.settles) >= count:
                    return self.settles
                await asyncio.sleep(0.005)  # whoever asked has left: nothing to wait for but time

    def meter(self) -> tuple[int, int]:
        """Settled and held of the plan's one budget, today."""
        found = [meter[:2] for meter in self.purse.wallet.meters().values()]
        return found[0] if found else (0, 0)

    def anthropic(self, **more: Any) -> anthropic.AsyncAnthropic:
        http = anthropic.DefaultAsyncHttpxClient(event_hooks={"request": [self._count]})
        return anthropic.AsyncAnthropic(base_url=self.url, http_client=http, **{"api_key": KEY, **more})

    def openai(self, **more: Any) -> openai.AsyncOpenAI:
        http = openai.DefaultAsyncHttpx2Client(event_hooks={"request": [self._count]})
        return openai.AsyncOpenAI(base_url=f"{self.url}/v1", http_client=http, **{"api_key": KEY, **more})

    async def _count(self, request: object) -> None:
        self.sent += 1


@asynccontextmanager
async def guarded_provider(
    fake: FakeProvider, name: str, plan: Plan = DOLLAR_A_DAY, *, upstream: Mapping[str, Any] | None = None, **more: Any
) -> AsyncIterator[GuardedProvider]:
    """`name`: of the upstream. `upstream`: what its table says beside address and key; `more`: other settings."""
    async with fake:
        table = {"base_url": getattr(fake, "base_url", fake.url), "key": fake.key, **(upstream or {})}
        upstreams = {name: Upstream(name=name, provider=PRICED_AS[name], **table)}
        async with open_desk(plan, upstreams=upstreams, **more) as desk:
            yield GuardedProvider(desk, fake, str(desk.client.make_url(f"/{name}")).rstrip("/"))
