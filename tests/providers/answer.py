"""How a fake's answers go out: plain or a stream of events, cut, compressed and mislabelled as the fault says."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import Mapping
from typing import Any

from aiohttp import web
from providers.faults import Fault
from providers.production import pieces_of

JSON = "application/json"
EVENTS = "text/event-stream"


def dumped(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


async def say(
    request: web.Request, fault: Fault, body: object, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.StreamResponse:
    """A plain answer."""
    raw = fault.body if fault.body is not None else dumped(_padded(body, fault))
    headers = {**(headers or {}), **fault.headers, "Content-Type": fault.content_type or JSON}
    if fault.gzip:
        raw, headers["Content-Encoding"] = gzip.compress(raw), "gzip"
    if fault.piece_bytes is None:
        return web.Response(status=status, body=raw, headers=headers)
    response = web.StreamResponse(status=status, headers=headers)
    await response.prepare(request)
    for piece in pieces_of(raw, fault.piece_bytes):
        await response.write(piece)
        await asyncio.sleep(0)
    await response.write_eof()
    return response


def _padded(body: object, fault: Fault) -> object:
    if fault.padding_bytes and isinstance(body, dict):
        return {**body, "padding": "x" * fault.padding_bytes}
    return body


class EventStream:
    """A stream of Server-Sent Events going out."""

    def __init__(self, request: web.Request, fault: Fault, headers: Mapping[str, str] | None = None) -> None:
        self._request, self._fault = request, fault
        kind = fault.content_type or f"{EVENTS}; charset=utf-8"
        self._response = web.StreamResponse(
            headers={**(headers or {}), **fault.headers, "Content-Type": kind, "Cache-Control": "no-cache"}
        )
        self._gzip = zlib.compressobj(wbits=31) if fault.gzip else None
        self._kept = bytearray()
        self._events = 0
        if self._gzip is not None:
            self._response.headers["Content-Encoding"] = "gzip"

    async def open(self) -> None:
        await self._response.prepare(self._request)

    async def event(self, data: object, name: str | None = None) -> None:
        """One event. `data` is said as JSON, or as it is if it is text."""
        text = data if isinstance(data, str) else dumped(self._padded(data)).decode()
        lines = ([f"event: {name}"] if name else []) + [f"data: {text}", "", ""]
        if self._fault.comments:
            lines = [": keep-alive", "", *lines]
        self._events += 1
        await self._write(self._fault.line_end.join(lines).encode())

    def _padded(self, data: object) -> object:
        return _padded(data, self._fault) if self._events == 1 else data

    async def _write(self, raw: bytes) -> None:
        if self._fault.one_piece:
            self._kept += raw
            return
        await self._send(raw)

    async def _send(self, raw: bytes, *, last: bool = False) -> None:
        if self._gzip is not None:
            raw = self._gzip.compress(raw) + self._gzip.flush(zlib.Z_FINISH if last else zlib.Z_SYNC_FLUSH)
        for piece in pieces_of(raw, self._fault.piece_bytes):
            await self._response.write(piece)
            await asyncio.sleep(0)

    async def close(self) -> web.StreamResponse:
        await self._send(bytes(self._kept), last=True)
        await self._response.write_eof()
        return self._response


Body = dict[str, Any]
