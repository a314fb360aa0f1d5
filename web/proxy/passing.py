"""Passes on a call that costs nothing, for those who may spend: no hold, no settle. Nothing billed goes this way."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aiohttp import web

from web.desk import DESK
from web.proxy.bodies import most_bytes, read_body, text_of
from web.proxy.dialect import Provider
from web.proxy.failures import KEY_REFUSED, failed, failing, read, without_account
from web.proxy.flow import Handler, caller_of
from web.proxy.guard import GUARD
from web.proxy.headers import lowered, passed_on

ANSWER_BYTES_MAX = 1024 * 1024


def free(provider: Provider, path: str, headers: Callable[[Mapping[str, str]], Mapping[str, str]]) -> Handler:
    """The handler of a POST that the provider does not bill. `headers`: what of the client's goes along."""

    async def call(request: web.Request) -> web.StreamResponse:
        desk, guard = request.app[DESK], request.app[GUARD]
        with desk.crowd.admitted("call"), desk.crowd.carrying(most_bytes(request)):
            await caller_of(request, desk)
            upstream = guard.upstream(provider.name)
            body = await read_body(request)
            text_of(body.value, "model")
            said = {**headers(lowered(request.headers)), **provider.identify(upstream.key)}
            with failing(upstream):
                async with guard.session.post(
                    upstream.base_url + path, data=body.with_(), headers={"Content-Type": "application/json", **said},
                    allow_redirects=False, timeout=upstream.timeout,
                ) as answer:  # fmt: skip
                    if 300 <= answer.status < 400:
                        raise failed(upstream, "upstream_redirects")
                    if answer.status in KEY_REFUSED:
                        raise failed(upstream, "upstream_key_refused")
                    raw = without_account(await read(answer, upstream, most=ANSWER_BYTES_MAX))
                    return web.Response(status=answer.status, body=raw, headers=passed_on(lowered(answer.headers)))

    return call
