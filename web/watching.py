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


# --- days -------------------------------------------------------------------------------------------------------------


async def _all_days(_request: web.Request, desk: Desk, _caller: Caller) -> web.Response:
    await desk.board.catch_up()
    totals = _days.decode(await desk.purse.read("days"))
    return json_response({"days": [_total(total) for total in totals]})


async def _one_day(request: web.Request, desk: Desk, _caller: Caller) -> web.Response:
    day = request.match_info["day"]
    if not 1 <= len(day) <= DAY_CHARS_MAX or not day.isascii() or not day.isprintable():
        raise BadAsk("day", 'expected the name of a period, such as "2026-11-30"')
    await desk.board.catch_up()
    totals = _days.decode(await desk.purse.read("day", day.encode()))
    if not totals:
        raise Problem(404, "not-found", "Nothing is recorded for that day.", more={"day": day})
    sealed = next((total.sealed for total in totals if total.sealed is not None and total.sealed.day == day), None)
    return json_response({"day": day, "sealed": _sealed(sealed), "budgets": [_total(total) for total in totals]})


def _total(total: DayTotals) -> Body:
    used = total.settled + total.extra + total.held
    amounts = {
        "limit": total.limit, "settled": total.settled, "held": total.held, "extra": total.extra, "used": used,
        "remaining": total.limit - used, "peak": total.peak,
    }  # fmt: skip
    after = {"settled": total.settled_after_seal, "extra": total.extra_after_seal}
    first = total.first_exhausted_at
    return {
        "budget": total.budget,
        "unit": total.unit,
        "period": total.period,
        "starts_at": format_moment(total.start),
        "ends_at": format_bound(total.end),
        **{name: format_amount(amount, scale=total.scale) for name, amount in amounts.items()},
        "used_pct": percent(used, total.limit),
        "first_exhausted_at": None if first is None else format_moment(first),
        "holds": total.holds,
        "settles": total.settles,
        "refused": total.refused,
        "overruns": total.overruns,
        "strays": total.strays,
        "lapsed": total.lapsed,
        "sealed": _sealed(total.sealed),
        "after_seal": {name: format_amount(amount, scale=total.scale) for name, amount in after.items()},
        "seq": total.seq,
    }


def _sealed(sealed: Sealed | None) -> Body | None:
    """By which day's seal, where it stands, and when it was told."""
    return None if sealed is None else {"day": sealed.day, "seq": sealed.seq, "at": format_moment(sealed.at)}


_CLOSED = {401: "A key is needed.", 403: "The key's role may not look at this.", 503: "Nobody answers now."}

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
    Route(
        method="GET", path="/v1/days", access="audit", handler=_all_days, tag="watching",
        summary="What was spent in each period of each shared budget, newest first.",
        answers={200: "The days.", **_CLOSED},
    ),
    Route(
        method="GET", path="/v1/days/{day}", access="audit", handler=_one_day, tag="watching",
        summary="What was spent on one day.",
        answers={200: "Its budgets.", **_CLOSED, 404: "Nothing is recorded for it."},
    ),
)  # fmt: skip
