"""The routes that look into the past: the wallet at any moment of a day, and every event of one call.

Both are read from the record itself, so they say where in it they stand; `purse audit --at` and `--hold` say the same.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import msgspec
from aiohttp import web

from engine.core.documents import Life
from engine.errors import BadAsk
from projector.audit.looking import SeenLife
from projector.audit.moment import Moment
from projector.day_range import DayError, DayRange, parse
from web.answers import json_response
from web.asks import check_hold
from web.auth import Caller
from web.days import CLOSED, SEQ_MAX, day_of, nothing_of, number
from web.desk import Desk
from web.moments import NS_PER_S, parse_moment
from web.past_shapes import EventsAnswer, MomentAnswer
from web.problem_shapes import (
    InvalidProblem,
    NoPlanProblem,
    NotFoundProblem,
    NotTrustedProblem,
    OverloadedProblem,
    TooFarProblem,
)  # fmt: skip
from web.problems import Problem
from web.routes import Parameter, Route

AFTER = Parameter("after", "Read behind this sequence instead, a stretch of the record.", 0, SEQ_MAX)
TIME = Parameter(
    "time", "A time of that day in the wallet's zone (`12:34:56`), or a moment with date and offset.", required=True
)
CLOCK_EXAMPLE = "12:34:56"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CLOCK = re.compile(r"[0-2]\d:[0-5]\d(:[0-5]\d)?", re.ASCII)


# --- days and moments -------------------------------------------------------------------------------------------------


async def range_of(desk: Desk, day: str) -> DayRange:
    """The day of the wallet that is so named, in its zone. Raises `Problem` 404 where there can be no such day."""
    terms = await desk.known.ready()
    assert terms.plan is not None
    try:
        days = parse(day, zone=terms.plan.zone, now=desk.purse.now())
    except DayError:
        raise nothing_of(day) from None
    if days.first != day or days.first != days.last or days.start > desk.purse.now():
        raise nothing_of(day)
    return days


def moment_of(day: DayRange, said: str, *, now: int) -> int:
    """The moment (ns) of this day that `said` names: `12:34:56` in the wallet's zone, or with date and offset.

    Raises `BadAsk`. An hour that the clocks repeat is taken for the first.
    """
    at = _clock(day, said)
    if at is None:
        at = parse_moment(said, field="time")
    if at not in day:
        raise BadAsk("time", f"expected a moment of {day}, {day.zone}")
    if at > now:
        raise BadAsk("time", "is still to come")
    return at


def _clock(day: DayRange, said: str) -> int | None:
    if not _CLOCK.fullmatch(said) or said >= "24":
        return None
    local = datetime.combine(date.fromisoformat(day.first), time.fromisoformat(said), ZoneInfo(day.zone))
    return (local.astimezone(UTC) - _EPOCH) // timedelta(seconds=1) * NS_PER_S


async def moment_at(desk: Desk, day: DayRange, said: str) -> Moment:
    """The wallet at the moment that `said` names. Raises `BadAsk`, `Problem`, `PurseError`."""
    now = desk.purse.now()
    return await desk.lookback.moment(moment_of(day, said, now=now), now=now)


async def _at(request: web.Request, desk: Desk, _caller: Caller) -> web.Response:
    day = await range_of(desk, day_of(request))
    said = request.query.get("time")
    if said is None:
        raise BadAsk("time", f'expected a time of that day, such as "{CLOCK_EXAMPLE}"')
    await desk.board.catch_up()
    return json_response(msgspec.to_builtins(await moment_at(desk, day, said)))


# --- one call ---------------------------------------------------------------------------------------------------------


async def life_of(desk: Desk, id: str, after: int | None) -> tuple[Life | None, SeenLife]:
    """What the wallet remembers of a call, and its events on the record: behind `after`, or from where it began.

    A call that the wallet does not remember, one that was refused say, is looked for among the newest messages.
    """
    terms = await desk.known.ready()
    await desk.board.catch_up()
    life = await desk.purse.life(id)
    if after is None and life is not None:
        after = life.first - 1
    return life, await desk.lookback.life(id, after=after, scales=terms.scales)


def after_of(request: web.Request) -> int | None:
    """Behind which sequence to read; None where nothing is said. Raises `BadAsk`."""
    return number(request, AFTER, 0) if "after" in request.query else None


async def _events(request: web.Request, desk: Desk, caller: Caller) -> web.Response:
    id = check_hold(request.match_info["id"], field="id", caller=caller)
    life, seen = await life_of(desk, id, after_of(request))
    if life is None and not seen.events:
        raise unseen(id)
    state = life.state if life is not None else None
    return json_response({"id": id, "state": state, **msgspec.to_builtins(seen)})


def unseen(id: str) -> Problem:
    detail = "Nothing names this call where it was looked for. `purse audit --hold ID` reads the whole record."
    return Problem(404, "not-found", detail, more={"id": id})


_PROBLEMS = (
    InvalidProblem, NotFoundProblem, NoPlanProblem, OverloadedProblem, NotTrustedProblem, TooFarProblem,
)  # fmt: skip

ROUTES = (
    Route(
        method="GET", path="/v1/days/{day}/at", access="audit", handler=_at, tag="watching",
        summary="The wallet at a moment of a day, folded from the record: what was spent, held and left of each "
        "budget, by which ask message and which told. `purse audit --at` shows the same.",
        query=(TIME,),
        answers={
            200: "The wallet as it was.", 400: "`time` is none of that day, or is still to come.",
            **CLOSED, 404: "There was no such day.",
        },
        gives={200: (MomentAnswer,)}, problems=_PROBLEMS,
    ),
    Route(
        method="GET", path="/v1/holds/{id}/events", access="audit", handler=_events, tag="watching",
        summary="Everything on the record that names a call, with its receipts: from where it began, as far as the "
        "wallet remembers that; else among the newest messages. `upto` and `end` say how far was read.",
        query=(AFTER,),
        answers={
            200: "Its events.", 400: "`after` is no number, or this is no id.",
            **CLOSED, 404: "Nothing names it there.",
        },
        gives={200: (EventsAnswer,)}, problems=_PROBLEMS,
    ),
)  # fmt: skip
