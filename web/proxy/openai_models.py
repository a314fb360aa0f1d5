"""Which models there are: asked of the provider for whoever may spend. No money is involved, and nothing is held."""

from __future__ import annotations

from aiohttp import web
from yarl import URL

from web.desk import DESK
from web.proxy.bodies import path_of
from web.proxy.failures import KEY_REFUSED, failed, failing, read, without_account
from web.proxy.flow import caller_of
from web.proxy.guard import GUARD
from web.proxy.headers import lowered, passed_on
from web.proxy.openai import OPENAI

LIST_BYTES_MAX = 16 * 1024 * 1024


async def models(request: web.Request) -> web.StreamResponse:
    """`GET /openai/v1/models` and `/openai/v1/models/{id}`."""
    await caller_of(request, request.app[DESK])
    guard = request.app[GUARD]
    upstream = guard.upstream(OPENAI.name)
    id = request.match_info.get("id")
    path = "/models" if id is None else f"/models/{path_of(id, field='model')}"
    url = URL(upstream.base_url + path, encoded=True)
    headers = {"Accept": "application/json", **OPENAI.identify(upstream.key)}
    with failing(upstream):
        async with guard.session.get(url, headers=headers, allow_redirects=False, timeout=upstream.timeout) as answer:
            if 300 <= answer.status < 400:
                raise failed(upstream, "upstream_redirects")
            if answer.status in KEY_REFUSED:
                raise failed(upstream, "upstream_key_refused")
            raw = await read(answer, upstream, most=LIST_BYTES_MAX)
            said = passed_on(lowered(answer.headers))
            return web.Response(status=answer.status, body=without_account(raw), headers=said)
