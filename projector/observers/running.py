"""All observers of one projector: their session, their client, their loops, and what the status says of them.

Imported only where observers are configured, since it brings an HTTP client along.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import aiohttp
import msgspec

from engine.client import Purse
from engine.core.documents import Status
from projector.observers.anthropic import Anthropic
from projector.observers.cloudflare import Cloudflare
from projector.observers.fetch import Fetch, open_session
from projector.observers.kinds import KINDS
from projector.observers.observer import Observer, StatusNow
from projector.observers.openai import OpenAI
from projector.observers.openrouter import OpenRouter
from projector.observers.pace import Pace
from projector.observers.settings import ObserverSettings
from projector.observers.source import Source


class Observers:
    """Observers that run side by side; at most one request to each provider is under way."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = {observer.settings.budget: observer for observer in observers}

    async def run(self, status: StatusNow) -> None:
        """Observe until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for observer in self._observers.values():
                tasks.create_task(observer.run(status))

    def shown(self, status: Status) -> Status:
        """The status, with how reading fares beside each budget that is read."""
        if not any(budget.name in self._observers for budget in status.budgets):
            return status
        budgets = [
            msgspec.structs.replace(budget, reading=self._observers[budget.name].reading(budget.period))
            if budget.name in self._observers
            else budget
            for budget in status.budgets
        ]
        return msgspec.structs.replace(status, budgets=budgets)


@asynccontextmanager
async def observing(settings: Sequence[ObserverSettings], url: str, wallet: str) -> AsyncIterator[Observers]:
    """The observers of these settings, with a client of the wallet at `url`. Raises `NoAnswer` if nobody is there.

    The client keeps no spool: what cannot be recorded now is read anew later.
    """
    turns = {one.source: asyncio.Lock() for one in settings}
    async with Purse.connect(url, wallet=wallet) as purse, open_session() as session:
        yield Observers(
            [Observer(one, source_of(one, session), purse, turn=turns[one.source], pace=_pace(one)) for one in settings]
        )


def _pace(settings: ObserverSettings) -> Pace:
    return Pace(settings.every_s, random.random)


def source_of(settings: ObserverSettings, session: aiohttp.ClientSession) -> Source:
    """The reader of this account's report."""
    headers = KINDS[settings.source].headers(settings.key)
    fetch = Fetch(session, base_url=settings.base_url, headers=headers)
    match settings.source:
        case "cloudflare":
            return Cloudflare(fetch, account=settings.account)
        case "openrouter":
            return OpenRouter(fetch)
        case "openai":
            return OpenAI(fetch, project=settings.account)
        case "anthropic":
            return Anthropic(fetch, workspace=settings.account)
