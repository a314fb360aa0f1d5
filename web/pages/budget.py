"""The page about the shared budgets: today against the limit first, then how one goes, who spent it, and why not.

`/budget`, the same live as `/budget/stream`, and exactly what is shown as CSV and JSON. It changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Final

import msgspec
from aiohttp import web

from engine.core.documents import Status
from engine.errors import PurseError
from web import statement
from web.assets import is_there
from web.desk import Desk
from web.html import Html, element, fill, joined
from web.pages import export
from web.pages.acts_words import ACTS
from web.pages.budget_words import BUDGET
from web.pages.course import course, course_table
from web.pages.frame import SignedIn, show
from web.pages.looked import Choice, Looked, choice_of, look
from web.pages.panels import in_progress, panels
from web.pages.serving import Page, still_in
from web.pages.spenders import by_label, spenders
from web.pages.stopped import forms, options, stopped
from web.pages.troubles import alerts, flags, refusals, source
from web.problems import Problem
from web.status import RETRY_MS, STILL_HERE, Board
from web.watching import stream

REFRESH_S: Final = 5.0  # everything but the figures on top is read again at most so often
CHARTS: Final = "uplot.js"

Parts = dict[str, Html]
"""Name -> HTML of each part of the page that changes while it is open."""


async def looked_at(request: web.Request, desk: Desk) -> Looked:
    """What the address asks for. Raises `Problem` 404 and 503, `BadAsk`, `PurseError`."""
    looked = await look(desk, choice_of(request.query))
    if looked is None:
        raise Problem(404, "no-budget", BUDGET.nothing_there, more={"field": "budget"})
    return looked


async def _page(request: web.Request, desk: Desk, visitor: SignedIn) -> web.Response:
    looked, now = await looked_at(request, desk), desk.purse.now()
    parts = {**top_parts(looked.status, looked.choice, now=now), **parts_of(looked, visitor, now=now)}
    totals, choice = looked.totals, looked.choice
    ended = totals is not None and not looked.running
    body = fill(
        "budget_page.html",
        title=BUDGET.title,
        done=_done(request),
        stream=choice.address("/budget/stream"),
        reconnecting=BUDGET.reconnecting,
        no_script=BUDGET.no_script,
        budgets_title=BUDGET.budgets,
        budgets=_region("panels", parts),
        fresh=_region("fresh", parts),
        name=choice.budget,
        of=choice.period,
        filters=_filters(looked),
        course_title=BUDGET.course_was if ended else BUDGET.course,
        course=_region("course", parts),
        chart_table=BUDGET.chart_table,
        course_table=_region("table", parts),
        who=BUDGET.who,
        by_label=by_label(looked),
        spenders=_region("who", parts),
        refusals_title=BUDGET.refusals,
        refusals=_region("refusals", parts),
        flags_title=BUDGET.flags,
        flags=_region("flags", parts),
        alerts_title=BUDGET.alerts,
        alerts=_region("alerts", parts),
        source_title=BUDGET.source,
        source=_region("source", parts),
        stopped_title=BUDGET.stopped,
        stopped=_region("stopped", parts),
        acts=forms(looked, visitor),
        export=BUDGET.export,
        csv=_link(choice.address("/budget.csv"), BUDGET.csv),
        json=_link(choice.address("/budget.json"), BUDGET.json),
    )
    charts = is_there(CHARTS)
    return show(
        visitor, title=f"{choice.budget} \N{MIDDLE DOT} {choice.period}", body=body, here="/budget",
        styles=("budget.css", *(("uplot.css",) if charts else ())),
        scripts=(*((CHARTS, "charts.js") if charts else ()), "live.js"),
    )  # fmt: skip


def _region(name: str, parts: Parts) -> Html:
    """A part that the script replaces when another comes."""
    return element("div", parts[name], data_part=name)


def _link(address: str, said: str) -> Html:
    return element("a", said, href=address)


def _done(request: web.Request) -> Html:
    said = ACTS.done.get(request.query.get("done", ""))
    return element("p", said, class_="note good", role="status") if said else Html("")


def _filters(looked: Looked) -> Html:
    choice, names = looked.choice, [budget.name for budget in looked.status.budgets]
    now = looked.budget.period if looked.budget is not None else ""
    periods = [(one, BUDGET.current.format(period=one) if one == now else one) for one in looked.periods]
    if choice.period not in looked.periods:
        periods.append((choice.period, choice.period))
    return fill(
        "filters.html",
        filters=BUDGET.filters,
        budget=BUDGET.budget,
        budgets=options(((name, name) for name in dict.fromkeys([*names, choice.budget])), choice.budget),
        period=BUDGET.period,
        periods=options(periods, choice.period),
        by=BUDGET.by,
        labels=options(((one, BUDGET.label(one)) for one in looked.labels or [choice.by]), choice.by),
        apply=BUDGET.apply,
    )


# --- what changes while it is open ------------------------------------------------------------------------------------


def top_parts(status: Status, choice: Choice, *, now: int, live: bool = True) -> Parts:
    """The figures on top, and how fresh they are."""
    as_of = statement.as_of_words(status, now)
    said = BUDGET.live if live else BUDGET.stale.format(at=statement.when(status.as_of, now, seconds=True))
    badge = element("span", said, class_="badge", data_state="live" if live else "stale")
    fresh = joined([badge, element("span", as_of), element("span", in_progress(status))])
    return {"panels": panels(status, choice.budget, now=now), "fresh": fresh}


def parts_of(looked: Looked, visitor: SignedIn, *, now: int) -> Parts:
    """All other parts."""
    return {
        "course": course(looked, now=now),
        "table": course_table(looked),
        "who": spenders(looked),
        "refusals": refusals(looked),
        "flags": flags(looked, now=now),
        "alerts": alerts(looked, now=now),
        "source": source(looked.budget, now=now),
        "stopped": stopped(looked.status, visitor, back=looked.choice.address(), now=now),
    }


async def _stream(request: web.Request, desk: Desk, visitor: SignedIn) -> web.StreamResponse:
    """Parts that have changed, until the viewer leaves or the process stops. Opening it is one look, on record."""
    choice = (await looked_at(request, desk)).choice
    return await stream(request, desk.board, _frames(request, desk, visitor, choice))


async def _frames(request: web.Request, desk: Desk, visitor: SignedIn, choice: Choice) -> AsyncIterator[bytes]:
    yield b"retry: %d\n\n" % RETRY_MS
    sent: Parts = {}
    read_at, read_seq = float("-inf"), -1
    async for status, live in _shown(desk.board):
        if status is None:
            yield STILL_HERE
            continue
        now = desk.purse.now()
        parts = top_parts(status, choice, now=now, live=live)
        if status.seq != read_seq and time.monotonic() - read_at >= REFRESH_S:
            try:
                if not await still_in(request):
                    return
                looked = await look(desk, choice)
            except (PurseError, Problem):
                looked = None  # the badge says that nothing newer comes
            read_at, read_seq = time.monotonic(), status.seq
            parts |= parts_of(looked, visitor, now=now) if looked is not None else {}
        changed = {name: str(html) for name, html in parts.items() if sent.get(name) != html}
        sent |= parts
        yield b"event: parts\nid: %d\ndata: %b\n\n" % (status.seq, msgspec.json.encode(changed))


async def _shown(board: Board) -> AsyncIterator[tuple[Status | None, bool]]:
    """Each newer status and whether it is live, at most one a second; None as a sign of life."""
    async for changed in board.changes(every_s=1.0):
        yield (board.latest, board.live) if changed else (None, False)


# --- exactly what is shown --------------------------------------------------------------------------------------------


async def _csv(request: web.Request, desk: Desk, _visitor: SignedIn) -> web.Response:
    looked = await looked_at(request, desk)
    return _download(looked, export.as_csv(looked).encode(), "csv", "text/csv")


async def _json(request: web.Request, desk: Desk, _visitor: SignedIn) -> web.Response:
    looked = await looked_at(request, desk)
    return _download(looked, msgspec.json.encode(export.as_document(looked)), "json", "application/json")


def _download(looked: Looked, body: bytes, ending: str, content_type: str) -> web.Response:
    choice = looked.choice
    name = "".join(
        one if one.isalnum() or one in "-_" else "-" for one in f"{choice.budget}_{choice.period}_{choice.by}"
    )
    headers = {"Content-Disposition": f'attachment; filename="{name}.{ending}"', "Cache-Control": "no-store"}
    return web.Response(body=body, content_type=content_type, charset="utf-8", headers=headers)


PAGES = (
    Page(path="/budget", handler=_page),
    Page(path="/budget/stream", handler=_stream),
    Page(path="/budget.csv", handler=_csv),
    Page(path="/budget.json", handler=_json),
)
