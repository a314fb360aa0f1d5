"""The routes for whoever watches the wallet: its status, now and live."""

from __future__ import annotations

import asyncio

from aiohttp import web

from web.answers import json_response
from web.auth import Caller
from web.desk import Desk
from web.routes import Route
from web.status import Audience, document

WRITE_TIMEOUT_S = 10.0  # a viewer that takes nothing for so long is gone


def _audience(caller: Caller) -> Audience:
    return "operator" if caller.sees_all else "public"


async def _status(_request: web.Request, desk: Desk, caller: Caller) -> web.Response:
    status = await desk.board.now()
    return json_response(document(status, audience=_audience(caller), live=True))


async def _stream(request: web.Request, desk: Desk, caller: Caller) -> web.StreamResponse:
    """Events until the viewer leaves or the process stops. A slow viewer only ever waits for itself."""
    desk.board.admit()
    try:
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
        await response.prepare(request)
        async for frame in desk.board.frames(_audience(caller)):
            async with asyncio.timeout(WRITE_TIMEOUT_S):
                await response.write(frame)
    except (ConnectionError, TimeoutError):
        pass  # a closed tab is not an error
    finally:
        desk.board.leave()
    return response


ROUTES = (
    Route(
        method="GET", path="/v1/status", access="public", handler=_status, tag="watching",
        summary="The shared budgets now. Without a key: names, percentages, times; amounts where the plan says so.",
        answers={200: "The status.", 503: "There are no figures yet."},
    ),
    Route(
        method="GET", path="/v1/status/stream", access="public", handler=_stream, tag="watching",
        media_type="text/event-stream",
        summary="The same document live, as server-sent events named `status`, at most four a second.",
        answers={200: "Events until you leave.", 503: "Too many are watching."},
    ),
)  # fmt: skip
