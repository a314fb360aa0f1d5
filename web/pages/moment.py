"""The wallet at one moment of a past day, as a part of that day's page: server-made, also for the script that asks."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from engine.core.amounts import parse
from projector.audit.moment import Moment
from projector.day_range import DayRange
from web.days import day_of
from web.desk import Desk
from web.html import Html, element
from web.pages.amounts import counted, share
from web.pages.frame import SignedIn
from web.pages.meters import meter
from web.pages.past_words import DAY
from web.pages.serving import Page
from web.pages.zoned import clock_s
from web.past import moment_at, moment_of, range_of
from web.statement import aligned


async def _moment(request: web.Request, desk: Desk, _visitor: SignedIn) -> web.Response:
    """The part alone: what the page's script puts in the place of the one before."""
    day = await range_of(desk, day_of(request))
    said = request.query.get("at", "")
    at = moment_of(day, said, now=desk.purse.now())
    await desk.board.catch_up()
    html = moment_part(day, at, await moment_at(desk, day, said), scales=desk.known.terms.scales)
    return web.Response(text=html, content_type="text/html", headers={"Cache-Control": "no-store"})


def moment_part(day: DayRange, at: int, moment: Moment, *, scales: dict[str, int]) -> Html:
    """What was spent, held and left at that moment, and where on the record it stands."""
    shared = [one for one in moment.budgets if one["each"] is None]
    others = moment.more + len(moment.budgets) - len(shared)
    said = DAY.as_of.format(
        at=clock_s(at, day.zone), zone=day.zone, upto=counted(moment.upto), told=counted(moment.told)
    )
    parts = [element("p", said if moment.upto else DAY.nothing_yet, class_="as-of")]
    parts.append(element("div", *(_budget(one, scales[one["unit"]]) for one in shared), class_="meters"))
    parts.append(element("p", _in_progress(moment), class_="quiet"))
    parts += [
        element("p", DAY.frozen.format(scope=one["scope"], reason=one["reason"]), class_="note")
        for one in moment.frozen
    ]
    if moment.revoked:
        parts.append(element("p", DAY.revoked.format(what=", ".join(moment.revoked)), class_="quiet"))
    if others:
        parts.append(element("p", DAY.more_meters.format(n=counted(others)), class_="quiet"))
    since = DAY.since_snapshot.format(start=counted(moment.start)) if moment.start else DAY.since_first
    link = element("a", DAY.link, href=f"/days/{day}?at={clock_s(at, day.zone)}")
    parts.append(element("p", DAY.proved.format(since=since), " ", link, class_="quiet"))
    return element("div", *parts, class_="moment", data_upto=moment.upto, data_told=moment.told)


def _budget(one: dict[str, Any], scale: int) -> Html:
    figures = {name: parse(one[name], unit=one["unit"], scale=scale, signed=True) for name in _FIGURES}
    drawing, said = meter(
        limit=figures["limit"], settled=figures["settled"], extra=figures["extra"], held=figures["held"],
        name=f"{one['budget']} {one['period']}",
    )  # fmt: skip
    lines = ["settled", *(["extra"] if figures["extra"] else []), "held", "remaining"]
    column = aligned([one[name] for name in lines])
    shares = [share(figures[name], figures["limit"]) for name in lines]
    rows = (
        element(
            "div", element("dt", _LINES[name]), element("dd", tenths, " ", element("small", amount, " ", one["unit"]))
        )
        for name, tenths, amount in zip(lines, shares, column, strict=True)
    )
    head = element("h3", one["budget"], " ", element("span", one["period"], class_="quiet"))
    return element(
        "article", head, element("p", said, class_="figure"), drawing, element("dl", *rows, class_="lines"),
        data_budget=one["budget"], data_used=one["used"],
    )  # fmt: skip


_FIGURES = ("limit", "settled", "held", "extra", "remaining")
_LINES = {"settled": DAY.spent, "extra": DAY.others, "held": DAY.held, "remaining": DAY.left}


def _in_progress(moment: Moment) -> str:
    if not moment.open_holds:
        return f"{DAY.none_in_progress}."
    many = DAY.in_progress.format(n=counted(moment.open_holds))
    said = DAY.in_progress_one if moment.open_holds == 1 else many
    return f"{said}, {DAY.due.format(n=counted(moment.due))}." if moment.due else f"{said}."


PAGES = (Page(path="/days/{day}/moment", handler=_moment),)
