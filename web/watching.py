"""The routes for whoever watches the wallet: its status, now and live."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from aiohttp import web

from web.answers import json_response
from web.auth import Caller
from web.desk import Desk
from web.problem_shapes import NoStatusProblem, TooManyViewersProblem
from web.read_shapes import OperatorStatus, StatusAnswer
from web.routes import Route
from web.status import Audience, Board, document

WRITE_TIMEOUT_S = 10.0  # a viewer that takes nothing for so long is gone
AT_ONCE_BYTES_MAX = 16_384  # well below the 64 KiB at which a transport makes its writer wait


def _audience(caller: Caller) -> Audience:
    return "operator" if caller.sees_all else "public"


async def _status(_request: web.Request, desk: Desk, caller: Caller) -> web.Response:
    status = await desk.board.now()
    return json_response(document(status, audience=_audience(caller), live=True))


async def _stream(request: web.Request, desk: Desk, caller: Caller) -> web.StreamResponse:
    return await stream(request, desk.board, desk.board.frames(_audience(caller)))


async def stream(request: web.Request, board: Board, frames: AsyncIterator[bytes]) -> web.StreamResponse:
    """Send one more viewer these events until the viewer leaves or they end. A slow viewer only ever waits for itself.

    Raises `Problem` 503 when too many watch.
    """
    board.admit()
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    )
    try:
        await response.prepare(request)
        async for frame in frames:
            if _is_taken_at_once(request, frame):
                await response.write(frame)
                continue
            async with asyncio.timeout(WRITE_TIMEOUT_S):
                await response.write(frame)
    except (ConnectionError, TimeoutError):
        pass  # a closed tab is not an error
    finally:
        board.leave()
    return response


def _is_taken_at_once(request: web.Request, frame: bytes) -> bool:
    """Nothing is under way to this viewer and there is room for the frame: the write cannot wait, no timeout is due."""
    transport = request.transport
    return transport is not None and not transport.get_write_buffer_size() and len(frame) <= AT_ONCE_BYTES_MAX


ROUTES = (
    Route(
        method="GET", path="/v1/status", access="public", handler=_status, tag="watching",
        summary="The shared budgets now. Without a key: names, percentages, times; amounts where the plan says so.",
        answers={200: "The status.", 503: "There are no figures yet."},
        gives={200: (StatusAnswer, OperatorStatus)}, problems=(NoStatusProblem,),
    ),
    Route(
        method="GET", path="/v1/status/stream", access="public", handler=_stream, tag="watching",
        media_type="text/event-stream",
        summary="The same document live, as server-sent events named `status`, at most four a second.",
        answers={200: "Events until you leave.", 503: "Too many are watching."},
        gives={200: (StatusAnswer, OperatorStatus)}, problems=(TooManyViewersProblem,),
    ),
)  # fmt: skip
