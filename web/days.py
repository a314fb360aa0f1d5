"""The routes about days: what each came to, who spent it and when, and every decision of one, line by line."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import aclosing

import msgspec
import structlog
from aiohttp import web

from engine.core.amounts import format_amount
from engine.core.documents import Breakdown, DayTotals, Detail, Point, Sealed, Series, Span, Spent, WalletDay
from engine.errors import BadAsk, PurseError
from projector.days.decisions import Decision, Decisions
from web.answers import Body, json_response, percent
from web.auth import Caller
from web.desk import Desk
from web.moments import format_bound, format_moment
from web.past_shapes import DayAnswer, DaysAnswer, DecisionLine
from web.problem_shapes import InvalidProblem, NotFoundProblem
from web.problems import Problem
from web.routes import Parameter, Route

DAY_CHARS_MAX = 64
SEQ_MAX = 2**63 - 1
EVENTS_MAX = 1_000_000  # lines that one request may ask for
WRITE_TIMEOUT_S = 30.0  # a reader that takes nothing for so long is gone
NDJSON = "application/x-ndjson"
AFTER = Parameter(
    "after", "Begin behind the ask message of this sequence. 0, the default: at the beginning of the day.", 0, SEQ_MAX
)
LIMIT = Parameter("limit", "End after so many lines, and with a whole message: there may be a few more.", 1, EVENTS_MAX)

log = structlog.get_logger()

_days = msgspec.json.Decoder(list[DayTotals])
_details = msgspec.json.Decoder(tuple[list[DayTotals], WalletDay | None, list[Detail]])
_spans: msgspec.json.Decoder[Span | None] = msgspec.json.Decoder(Span | None)


async def _all_days(_request: web.Request, desk: Desk, _caller: Caller) -> web.Response:
    await desk.board.catch_up()
    totals = _days.decode(await desk.purse.read("days"))
    return json_response({"days": all_days(totals)})


def all_days(totals: Iterable[DayTotals]) -> list[Body]:
    """Totals as they are shown."""
    return [_total(total) for total in totals]


async def _one_day(request: web.Request, desk: Desk, _caller: Caller) -> web.Response:
    return json_response(await day_body(desk, day_of(request)))


async def day_body(desk: Desk, day: str) -> Body:
    """A day with all its budgets. Raises `Problem` 404."""
    await desk.board.catch_up()
    totals, wallet_day, details = _details.decode(await desk.purse.read("details", day.encode()))
    if not totals and wallet_day is None:
        raise nothing_of(day)
    sealed = next((total.sealed for total in totals if total.sealed is not None and total.sealed.day == day), None)
    known = {(detail.budget, detail.period): detail for detail in details}
    body: Body = {"day": day, "sealed": _sealed(sealed)}
    if wallet_day is not None:
        body["decided"] = _wallet_day(wallet_day)
    body["budgets"] = [_shown(total, known, day) for total in totals]
    return body


def _shown(total: DayTotals, known: dict[tuple[str, str], Detail], day: str) -> Body:
    """Hours of a day and days of a month come with it, by their totals alone."""
    detail = _detail(total, known.get((total.budget, total.period))) if total.period == day else {}
    return _total(total) | detail


def day_of(request: web.Request) -> str:
    day = request.match_info["day"]
    if not 1 <= len(day) <= DAY_CHARS_MAX or not day.isascii() or not day.isprintable():
        raise BadAsk("day", 'expected the name of a period, such as "2026-11-30"')
    return day


def nothing_of(day: str) -> Problem:
    return Problem(404, "not-found", "Nothing is recorded for that day.", more={"day": day})


# --- documents --------------------------------------------------------------------------------------------------------


def _total(total: DayTotals) -> Body:
    used = total.settled + total.extra + total.held
    amounts = {
        "limit": total.limit, "settled": total.settled, "held": total.held, "extra": total.extra, "used": used,
        "remaining": total.limit - used, "peak": total.peak, "wasted": total.wasted, "adjusted": total.adjusted,
        "unreconciled": total.unreconciled,
    }  # fmt: skip
    after = {"settled": total.settled_after_seal, "extra": total.extra_after_seal}
    return {
        "budget": total.budget,
        "unit": total.unit,
        "period": total.period,
        "starts_at": format_moment(total.start),
        "ends_at": format_bound(total.end),
        **{name: format_amount(amount, scale=total.scale) for name, amount in amounts.items()},
        "used_pct": percent(used, total.limit),
        "peak_at": _moment(total.peak_at),
        "first_exhausted_at": _moment(total.first_exhausted_at),
        "holds": total.holds,
        "open_holds": total.open_holds,
        "settles": total.settles,
        "refused": total.refused,
        "overruns": total.overruns,
        "strays": total.strays,
        "lapsed": total.lapsed,
        "late": total.late,
        "unheld": total.unheld,
        "unreported": total.unreported,
        "corrected": total.corrected,
        "estimated": total.estimated,
        "conflicts": total.conflicts,
        "unreconciled_holds": total.unreconciled_holds,
        "sealed": _sealed(total.sealed),
        "after_seal": {name: format_amount(amount, scale=total.scale) for name, amount in after.items()},
        "seq": total.seq,
    }


def _moment(at: int | None) -> str | None:
    return None if at is None else format_moment(at)


def _sealed(sealed: Sealed | None) -> Body | None:
    """By which day's seal, where it stands, and when it was told."""
    return None if sealed is None else {"day": sealed.day, "seq": sealed.seq, "at": format_moment(sealed.at)}


def _wallet_day(day: WalletDay) -> Body:
    return {
        "refused": day.refused,
        "conflicts": day.conflicts,
        "invalid": day.invalid,
        "unknown": day.unknown,
        "forgotten": day.forgotten,
    }


def _detail(total: DayTotals, detail: Detail | None) -> Body:
    """Who spent it, and when. What came after the detail was final is of `other`, so that rows add up to the totals."""
    if detail is None:
        return {"by": {}, "series": None}
    later = total.settled - detail.settled
    by = {one.label: _breakdown(one, later, total.scale) for one in detail.breakdowns}
    series = None if detail.series is None else _series(detail.series, total.scale)
    return {"by": by, "more_labels": detail.more_labels, "series": series}


def _breakdown(one: Breakdown, later: int, scale: int) -> Body:
    other = {**_spent(one.other, later, scale), "values": one.others, "uncounted": one.uncounted}
    return {"top": [{"value": spent.value, **_spent(spent, 0, scale)} for spent in one.top], "other": other}


def _spent(spent: Spent, later: int, scale: int) -> Body:
    settled = format_amount(spent.settled + later, scale=scale)
    return {"settled": settled, "holds": spent.holds, "refused": spent.refused}


def _series(series: Series, scale: int) -> Body:
    before = None if series.before is None else _point(series.before, scale)
    return {"step_s": series.step_s, "before": before, "points": [_point(one, scale) for one in series.points]}


def _point(point: Point, scale: int) -> Body:
    return {
        "at": format_moment(point.at),
        "settled": format_amount(point.settled, scale=scale),
        "held": format_amount(point.held, scale=scale),
        "holds": point.holds,
        "refused": point.refused,
    }


# --- every decision ---------------------------------------------------------------------------------------------------


async def _events(request: web.Request, desk: Desk, _caller: Caller) -> web.StreamResponse:
    return await stream_decisions(request, desk)


def _line(decision: Decision) -> bytes:
    shown = msgspec.to_builtins(decision) | {"at": format_moment(decision.at)}
    return msgspec.json.encode(shown) + b"\n"


async def stream_decisions(
    request: web.Request,
    desk: Desk,
    *,
    media_type: str = NDJSON,
    head: bytes = b"",
    write: Callable[[Decision], bytes] = _line,
) -> web.StreamResponse:
    """Lines as they are read from the stream, a few messages ahead of their reader; who leaves ends the reading.

    `head` comes before them all, `write` writes one.
    """
    day = day_of(request)
    after, limit = number(request, AFTER, 0), number(request, LIMIT, EVENTS_MAX)
    await desk.board.catch_up()
    span = _spans.decode(await desk.purse.read("span", day.encode()))
    if span is None:
        raise nothing_of(day)
    response = web.StreamResponse(headers={"Content-Type": media_type, "X-Accel-Buffering": "no"})
    await response.prepare(request)
    if request.method == "HEAD":
        return response
    try:
        await response.write(head)
        await _write_lines(response, desk, Decisions(span, after=after), limit, write)
    except (PurseError, TimeoutError) as error:  # cut off, so that it cannot be taken for all there was
        log.warning("events_cut_off", error=type(error).__name__)
        if request.transport is not None:
            request.transport.close()
    return response


async def _write_lines(
    response: web.StreamResponse, desk: Desk, decisions: Decisions, limit: int, write: Callable[[Decision], bytes]
) -> None:
    left = limit
    if decisions.done:
        return
    async with aclosing(desk.purse.read_stream(after=decisions.after)) as messages:
        async for stored in messages:
            for _, made in decisions.take(stored):
                if made:
                    async with asyncio.timeout(WRITE_TIMEOUT_S):
                        await response.write(b"".join(map(write, made)))
                left -= len(made)
                if left <= 0:
                    return
            if decisions.done:
                return


def number(request: web.Request, of: Parameter, default: int) -> int:
    """What the request says of this whole number. Raises `BadAsk`."""
    written = request.query.get(of.name)
    if written is None:
        return default
    assert of.least is not None
    assert of.most is not None
    found = int(written) if written.isascii() and written.isdigit() and len(written) <= 19 else -1
    if not of.least <= found <= of.most:
        raise BadAsk(of.name, f"expected a whole number from {of.least} to {of.most}")
    return found


CLOSED = {
    401: "A key is needed.",
    403: "The key's role may not look at this.",
    503: "Nobody answers now, or too many are reading.",
}

ROUTES = (
    Route(
        method="GET", path="/v1/days", access="audit", handler=_all_days, tag="watching",
        summary="What was spent in each period of each shared budget, newest first.",
        answers={200: "The days.", **CLOSED}, gives={200: (DaysAnswer,)},
    ),
    Route(
        method="GET", path="/v1/days/{day}", access="audit", handler=_one_day, tag="watching",
        summary="What was spent on one day: totals, refusals, flags, who spent it (`by`), and its course (`series`).",
        answers={
            200: "Its budgets.",
            400: "That is no name of a period.",
            **CLOSED, 404: "Nothing is recorded for it.",
        },
        gives={200: (DayAnswer,)}, problems=(InvalidProblem, NotFoundProblem),
    ),
    Route(
        method="GET", path="/v1/days/{day}/events", access="audit", handler=_events, tag="watching",
        media_type=NDJSON, queue="events",
        summary="Every decision of a day of the wallet, one JSON object a line, in order; of a running day those so "
        "far. The cursor is the last line's `seq`: `?after=` it begins behind that message.",
        query=(AFTER, LIMIT),
        answers={
            200: "The lines. Fewer than `limit` are all there were.",
            400: "`after` or `limit` is no number.",
            **CLOSED, 404: "There was no such day.",
        },
        gives={200: (DecisionLine,)}, problems=(InvalidProblem, NotFoundProblem),
    ),
)  # fmt: skip
