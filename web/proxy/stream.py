"""One stream on its way from a provider to a client: counted as it passes, cut at its grant, aborted if nobody listens.

The upstream's connection is closed before anything else is done: every token from then on costs money for nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

import aiohttp
import structlog
from aiohttp import web

from engine.core.messages import Amounts
from web.proxy.charges import Charges
from web.proxy.dialect import Meter
from web.proxy.hold import OpenHold
from web.proxy.sse import Parser, StreamBroken

CLIENT_STALL_S = 120.0  # a client that takes nothing for so long has left
SURELY_TAKEN_BYTES = 16 * 1024  # an empty connection takes four times this before anybody has to wait

log = structlog.get_logger()


class ClientLeft(ConnectionError):
    """Whoever asked is gone, or does not read any more."""


class Stream:
    """`secret` never passes, whatever a provider repeats."""

    def __init__(self, request: web.Request, hold: OpenHold, charges: Charges, meter: Meter, *, secret: str) -> None:
        self._request, self._hold, self._charges, self._meter = request, hold, charges, meter
        self._secret = secret.encode()
        self._parser = Parser()
        self._judged = False

    async def run(
        self, answer: aiohttp.ClientResponse, headers: Mapping[str, str], *, broken: bytes
    ) -> web.StreamResponse:
        """The response, all of it written. `broken`: the event that tells of a stream that broke."""
        response = web.StreamResponse(headers={**headers, "X-Accel-Buffering": "no"})
        self._hold.watch(self._seen)
        try:
            await self._relay(answer, response, broken)
        except ClientLeft:
            answer.close()
            self._left()
        except Exception:  # as at any edge: what nobody foresaw is logged, and said in the stream, which has begun
            answer.close()
            log.exception("stream_failed", hold=self._hold.held.id)
            with suppress(ClientLeft):
                await self._write(response, [broken])
        except BaseException:  # cancelled: the client has left, or this process ends
            answer.close()
            self._left()
            raise
        return response

    def _left(self) -> None:
        """Nobody listens any more: never go on paying."""
        self._meter.close()
        self._judge(self._charges.aborted)
        log.info("client_left", hold=self._hold.held.id)
        if self._request.transport is not None:
            self._request.transport.abort()  # it may be there and not read

    async def _relay(self, answer: aiohttp.ClientResponse, response: web.StreamResponse, broken: bytes) -> None:
        await self._begin(response)
        meter = self._meter
        try:
            async for chunk in answer.content.iter_any():
                out = self._count(chunk)
                if self._charges.used_up(meter) and not meter.ended:
                    answer.close()
                    self._judge(self._charges.aborted)
                    log.info("stream_cut", hold=self._hold.held.id)
                    await self._write(response, [*out, *meter.cut(self._charges.usage_seen(meter))])
                    return
                await self._write(response, out)
            rest = [out for event in self._parser.end() for out in meter.feed(event)]
        except (aiohttp.ClientError, StreamBroken, TimeoutError) as error:
            answer.close()
            log.warning("stream_broke", hold=self._hold.held.id, error=type(error).__name__)
            self._judge(self._charges.aborted if isinstance(error, TimeoutError) else self._charges.broken)
            await self._write(response, [broken])
            return
        await self._finish(response, rest, broken)

    async def _finish(self, response: web.StreamResponse, rest: list[bytes], broken: bytes) -> None:
        """The provider closed its stream: at its end, or in the midst of it."""
        self._meter.close()
        if self._meter.ended and not self._meter.failed:
            self._judge(self._charges.finished)
            await self._write(response, rest)
            return
        self._judge(self._charges.broken)
        await self._write(response, rest if self._meter.failed else [*rest, broken])

    def _judge(self, charge: Callable[[Meter], None]) -> None:
        """What the stream costs is said once: that its last words did not reach the client changes nothing."""
        if not self._judged:
            self._judged = True
            charge(self._meter)

    def _count(self, chunk: bytes) -> list[bytes]:
        return [passed for event in self._parser.feed(chunk) for passed in self._meter.feed(event)]

    def _seen(self) -> Amounts:
        return self._charges.seen(self._meter) if self._meter.output.most else {}

    async def _begin(self, response: web.StreamResponse) -> None:
        try:
            await response.prepare(self._request)
        except ConnectionError as error:
            raise ClientLeft from error

    async def _write(self, response: web.StreamResponse, pieces: Iterable[bytes]) -> None:
        data = b"".join(pieces).replace(self._secret, b"***")
        if not data:
            return
        transport = self._request.transport
        try:
            if transport is not None and not transport.get_write_buffer_size() and len(data) <= SURELY_TAKEN_BYTES:
                await response.write(data)  # nobody has to wait, so no clock is needed
                return
            async with asyncio.timeout(CLIENT_STALL_S):
                await response.write(data)
        except (ConnectionError, TimeoutError) as error:
            raise ClientLeft from error
