"""Sends one call that is held, and brings its answer back: whole, or as a stream.

Nothing is sent here that is not held, and no redirect is followed. What the call costs at each of its ends stands in
`charges.py`. Neither our key nor our account at the provider is ever part of what comes back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import aiohttp
import msgspec
from aiohttp import Payload, web
from aiohttp.abc import AbstractStreamWriter
from yarl import URL

from engine.prices import PriceBook
from web.problems import NO_RETRY
from web.proxy.bodies import read_json
from web.proxy.charges import Charges
from web.proxy.dialect import Call, Dialect, Incoming, Outgoing
from web.proxy.failures import KEY_REFUSED, failed, failing, read, refusal, without_account
from web.proxy.headers import lowered, passed_on
from web.proxy.hold import OpenHold
from web.proxy.options import Priced
from web.proxy.stream import Stream
from web.proxy.upstreams import Upstream

ANSWER_BYTES_MAX = 64 * 1024 * 1024
ERROR_BYTES_MAX = 1024 * 1024
NO_ANSWER = "none"
MAY_HAVE_HAPPENED = frozenset({504, 524})  # somebody between us and the provider stopped waiting


class Leaving(Payload):
    """A body that calls `leaves` at the last moment before its first byte does. Its head goes with it, never before.

    It may be of any size, and goes as it is: aiohttp warns of more than a megabyte of plain bytes.
    """

    _autoclose = True  # nothing is open

    def __init__(self, body: bytes, leaves: Callable[[], None]) -> None:
        super().__init__(body, content_type="application/json")
        self._size = len(body)
        self._body, self._leaves = body, leaves

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self._body.decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        self._leaves()
        await writer.write(self._body)


class Relay(msgspec.Struct, frozen=True):
    """One call on its way. `said`: the headers of ours that the client gets; `sent`: counts it."""

    request: web.Request
    request_id: str
    session: aiohttp.ClientSession
    upstream: Upstream
    dialect: Dialect
    book: PriceBook
    incoming: Incoming
    call: Call
    priced: Priced
    said: Mapping[str, str]
    sent: Counter[tuple[str, str]]

    async def send(self, hold: OpenHold) -> web.StreamResponse:
        """The client's answer. Raises `Declined` where the upstream gave none that can be passed on."""
        outgoing = self.dialect.write(self.incoming, self.call, self.priced.way)
        came = NO_ANSWER
        try:
            with failing(self.upstream):
                async with self._post(outgoing, hold) as answer:
                    came = f"{answer.status // 100}xx"
                    try:
                        return await self._answered(answer, hold)
                    finally:
                        answer.close()  # whatever is left of it is not wanted
        finally:
            self.sent[self.upstream.name, came] += 1

    def _post(self, outgoing: Outgoing, hold: OpenHold) -> aiohttp.client._RequestContextManager:
        headers = {
            "Content-Type": "application/json",
            "Accept": "text/event-stream" if self.call.stream else "application/json",
            **outgoing.headers,
            **self.dialect.provider.identify(self.upstream.key),
        }
        url = URL(self.upstream.base_url + outgoing.path, encoded=True)
        return self.session.post(
            url, data=Leaving(outgoing.body, hold.sending), headers=headers, allow_redirects=False,
            timeout=self.upstream.timeout,
        )  # fmt: skip

    async def _answered(self, answer: aiohttp.ClientResponse, hold: OpenHold) -> web.StreamResponse:
        headers = lowered(answer.headers)
        if answer.status >= 300:
            return await self._error(answer, hold, headers)
        charges = Charges(hold, self.priced, self.call, self.book)
        if self.call.stream and answer.content_type != "application/json":
            meter = self.dialect.meter(self.incoming, self.call, self.priced.way, headers)
            broken = self.dialect.error_event(refusal("upstream_broken"), request_id=self.request_id)
            stream = Stream(self.request, hold, charges, meter, secret=self.upstream.key)
            return await stream.run(answer, {**passed_on(headers), **self.said}, broken=broken)
        raw = await read(answer, self.upstream, most=ANSWER_BYTES_MAX)
        charges.reported(self.dialect.reading(read_json(raw), headers))
        return web.Response(status=answer.status, body=raw, headers={**passed_on(headers), **self.said})

    async def _error(
        self, answer: aiohttp.ClientResponse, hold: OpenHold, headers: dict[str, str]
    ) -> web.StreamResponse:
        """An error of the provider's passes as it is, but for what would tell about our own account there."""
        if answer.status not in MAY_HAVE_HAPPENED:
            hold.release()
        if answer.status < 400:
            raise failed(self.upstream, "upstream_redirects")
        if answer.status in KEY_REFUSED:
            raise failed(self.upstream, "upstream_key_refused")
        raw = await read(answer, self.upstream, most=ERROR_BYTES_MAX)
        hold.allowance_gone = self.dialect.allowance_gone(answer.status, read_json(raw))
        useless = NO_RETRY if hold.allowance_gone else {}
        said = {**passed_on(headers), **self.said, **useless}
        return web.Response(status=answer.status, body=without_account(raw), headers=said)
