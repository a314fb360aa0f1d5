"""What every guarded call works with: upstreams, prices, one session, and the settlements still on their way."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web

from engine.prices import PriceBook
from web import builtin
from web.desk import DESK
from web.proxy import tokens
from web.proxy.hold import Endings
from web.proxy.refusals import Declined, Refusal
from web.proxy.upstreams import Upstream, open_session
from web.settings import Settings

STAND_IN = "built-in"


@dataclass(slots=True)
class Guard:
    """One a process."""

    upstreams: dict[str, Upstream]
    book: PriceBook
    endings: Endings = field(default_factory=Endings)
    _session: aiohttp.ClientSession | None = None

    @property
    def session(self) -> aiohttp.ClientSession:
        assert self._session is not None, "the application does not run"
        return self._session

    def upstream(self, name: str) -> Upstream:
        """Raises `Declined` 404 where the operator has set up none. For OpenAI's clients the stand-in is there then."""
        found = self.upstreams.get(name) or (self.upstreams.get(STAND_IN) if name == "openai" else None)
        if found is None:
            message = f"This wallet guards no calls to {name}: its purse.toml has no [upstreams.{name}]."
            raise Declined(Refusal(status=404, reason="no_upstream", message=message))
        return found


GUARD: web.AppKey[Guard] = web.AppKey("guard", Guard)


def add_guard(app: web.Application, settings: Settings) -> None:
    """Takes a second where calls are guarded: their tokenizers are loaded before anything is served."""
    if settings.upstreams:
        tokens.load()
    app[GUARD] = Guard(dict(settings.upstreams), app[DESK].book)
    app.cleanup_ctx.append(_running)


async def _running(app: web.Application) -> AsyncIterator[None]:
    guard = app[GUARD]
    async with open_session() as session, builtin.built_in() as stand_in:
        guard._session = session
        guard.upstreams[STAND_IN] = Upstream(
            name=STAND_IN, provider=builtin.PROVIDER, base_url=stand_in.base_url, key=stand_in.key
        )
        yield
        await guard.endings.close()
