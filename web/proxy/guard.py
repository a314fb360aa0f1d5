"""What every guarded call works with: upstreams, prices, one session, and the settlements still on their way."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web

from engine.prices import PriceBook
from web.desk import DESK
from web.proxy import tokens
from web.proxy.hold import Endings
from web.proxy.refusals import Declined, Refusal
from web.proxy.upstreams import Upstream, open_session
from web.settings import Settings


@dataclass(slots=True)
class Guard:
    """One a process."""

    upstreams: Mapping[str, Upstream]
    book: PriceBook
    endings: Endings = field(default_factory=Endings)
    _session: aiohttp.ClientSession | None = None

    @property
    def session(self) -> aiohttp.ClientSession:
        assert self._session is not None, "the application does not run"
        return self._session

    def upstream(self, name: str) -> Upstream:
        """Raises `Declined` 404 where the operator has set up none."""
        found = self.upstreams.get(name)
        if found is None:
            message = f"This wallet guards no calls to {name}: its purse.toml has no [upstreams.{name}]."
            raise Declined(Refusal(status=404, reason="no_upstream", message=message))
        return found


GUARD: web.AppKey[Guard] = web.AppKey("guard", Guard)


def add_guard(app: web.Application, settings: Settings) -> None:
    """Takes a second where calls are guarded: their tokenizers are loaded before anything is served."""
    if settings.upstreams:
        tokens.load()
    app[GUARD] = Guard(settings.upstreams, app[DESK].book)
    app.cleanup_ctx.append(_running)


async def _running(app: web.Application) -> AsyncIterator[None]:
    guard = app[GUARD]
    async with open_session() as session:
        guard._session = session
        yield
        await guard.endings.close()
