"""The web application with guarded routes, over a fake purse and an upstream, as a provider's client sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from desk_client import DOLLAR, KEY, Desk, Heard, open_desk
from integration.rig import eventually
from providers.fake_openai import FakeOpenAI
from providers.faults import NO_FAULT, Fault
from providers.production import Reply
from scripted_upstream import ScriptedUpstream, scripted_upstream

from engine.core.messages import Hold, Renew, Settle
from engine.core.plan import Budget, Plan
from web.proxy.sse import Parser
from web.proxy.upstreams import PRICED_AS, Upstream

UPSTREAM_KEY = "sk-upstream-secret"
ONE_DOLLAR = Plan(budgets={"day": Budget("usd", DOLLAR)})
MESSAGES = [{"role": "user", "content": "Say hello"}]
ASKED = {"model": "gpt-4o-mini", "messages": MESSAGES, "max_tokens": 100}
CHAT = "/openai/v1/chat/completions"
NOTHING: Mapping[str, Any] = {}


class Guarded:
    """A desk with guarded routes, and what its wallet was asked."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self.purse = desk, desk.purse

    async def chat(self, body: object = None, **more: Any) -> Heard:
        return await self.desk.post(CHAT, ASKED if body is None else body, **more)

    async def stream(self, **more: Any) -> list[str]:
        """The data of every event of a streamed chat completion."""
        return list(await self.events(CHAT, {**ASKED, "stream": True, **more}))

    async def events(self, path: str, body: object) -> list[str]:
        headers = {"Authorization": f"Bearer {KEY}"}
        async with self.desk.client.post(path, json=body, headers=headers) as answer:
            assert (answer.status, answer.content_type) == (200, "text/event-stream"), await answer.text()
            raw = await answer.read()
        parser = Parser()
        return [event.data for event in [*parser.feed(raw), *parser.end()] if event.data is not None]

    @property
    def holds(self) -> list[Hold]:
        return [ask for ask in self.purse.asked if isinstance(ask, Hold)]

    @property
    def settles(self) -> list[Settle]:
        return [ask for ask in self.purse.asked if isinstance(ask, Settle)]

    @property
    def last(self) -> Settle:
        return self.settles[-1]

    async def settled(self) -> None:
        """Until no hold is open."""
        await eventually(lambda: self.settles and not self.purse.wallet.open)

    async def renewed(self, times: int) -> None:
        await eventually(lambda: sum(isinstance(ask, Renew) for ask in self.purse.asked) >= times)

    def meter(self, budget: str = "day") -> tuple[int, int]:
        """Settled and held of a budget."""
        found = [(meter[0], meter[1]) for place, meter in self.purse.wallet.meters().items() if place[0] == budget]
        return found[0] if found else (0, 0)


class Scripted(Guarded):
    """Over an upstream that answers what a test tells it to."""

    def __init__(self, desk: Desk, upstream: ScriptedUpstream) -> None:
        super().__init__(desk)
        self.upstream = upstream


class OverOpenAI(Guarded):
    """Over a fake of OpenAI that bills."""

    def __init__(self, desk: Desk, fake: FakeOpenAI) -> None:
        super().__init__(desk)
        self.fake = fake

    @property
    def billed(self) -> int:
        return self.fake.ledger.total


@asynccontextmanager
async def scripted(
    plan: Plan | None = ONE_DOLLAR, *, table: Mapping[str, Any] = NOTHING, **settings: Any
) -> AsyncIterator[Scripted]:
    """Every provider's calls go to one scripted upstream; `table`: what its table says beside that."""
    async with scripted_upstream() as upstream:
        common: dict[str, Any] = {"base_url": upstream.base_url, "key": UPSTREAM_KEY, **table}
        upstreams = {name: Upstream(name=name, **{"provider": of, **common}) for name, of in PRICED_AS.items()}
        async with open_desk(plan, upstreams=upstreams, **settings) as desk:
            yield Scripted(desk, upstream)


@asynccontextmanager
async def over_openai(
    plan: Plan | None = ONE_DOLLAR,
    *,
    reply: Reply | None = None,
    fault: Fault = NO_FAULT,
    table: Mapping[str, Any] = NOTHING,
    **settings: Any,
) -> AsyncIterator[OverOpenAI]:
    async with FakeOpenAI(reply=reply, fault=fault) as fake:
        upstream = Upstream(name="openai", provider="openai", base_url=f"{fake.url}/v1", key=fake.key, **table)
        async with open_desk(plan, upstreams={"openai": upstream}, **settings) as desk:
            yield OverOpenAI(desk, fake)


def completion(prompt: int = 10, output: int = 5, model: str = "gpt-4o-mini", **more: Any) -> dict[str, Any]:
    """A chat completion as the provider answers it."""
    choice = {"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}
    usage = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
    answer = {"id": "c", "object": "chat.completion", "created": 1, "model": model, "choices": [choice]}
    return {**answer, "usage": usage, **more}
