"""`/days/{day}/decisions`: every decision of a day, a page at a time, each leading to its call."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from urllib.parse import quote, urlencode

import msgspec
from aiohttp import web

from engine.core.documents import Span
from projector.days.decisions import Decision, Decisions
from web.days import AFTER, day_of, nothing_of, number
from web.desk import Desk
from web.html import Html, element, joined
from web.pages.amounts import counted
from web.pages.budget_words import BUDGET
from web.pages.frame import SignedIn, show
from web.pages.happenings import written
from web.pages.past_words import DECISIONS
from web.pages.serving import Page
from web.pages.tables import table
from web.pages.zoned import clock_ms
from web.past import range_of

SHOWN_MAX = 100
READ_MAX = 20_000  # messages for one page: where few fit what is looked for, the next page goes on

_spans: msgspec.json.Decoder[Span | None] = msgspec.json.Decoder(Span | None)
_REFUSED = frozenset({"exhausted", "frozen", "cooling", "revoked", "late", "invalid"})


async def span_of(desk: Desk, day: str) -> Span:
    """The ask messages of a day. Raises `Problem` 404."""
    await desk.board.catch_up()
    span = _spans.decode(await desk.purse.read("span", day.encode()))
    if span is None:
        raise nothing_of(day)
    return span


class Looked(msgspec.Struct):
    """What a page shows, and behind which message the next one goes on; 0 at the end."""

    found: list[Decision]
    next: int = 0


async def look(desk: Desk, span: Span, *, after: int, refused: bool) -> Looked:
    looked, decisions = Looked([]), Decisions(span, after=after)
    if decisions.done:
        return looked
    first = decisions.after
    with desk.crowd.admitted("events"):
        async with aclosing(desk.purse.read_stream(after=first)) as messages:
            async for stored in messages:
                for seq, made in decisions.take(stored):
                    looked.found += [one for one in made if not refused or one.outcome in _REFUSED]
                    if len(looked.found) >= SHOWN_MAX or seq - first >= READ_MAX:
                        looked.next = seq
                        return looked
                if decisions.done:
                    return looked
    return looked


async def _decisions(request: web.Request, desk: Desk, visitor: SignedIn) -> web.Response:
    name = day_of(request)
    day = await range_of(desk, name)
    after, refused = number(request, AFTER, 0), request.query.get("only") == "refused"
    looked = await look(desk, await span_of(desk, name), after=after, refused=refused)
    rows = [_row(one, day.zone) for one in looked.found]
    title = DECISIONS.title.format(day=name)
    parts = [
        element("nav", element("a", name, href=f"/days/{name}"), aria_label=DECISIONS.around, class_="around"),
        element("h1", title),
        _choice(name, refused=refused),
        element("div", _table(rows, day.zone) if rows else element("p", DECISIONS.none, class_="quiet"), class_="card"),
        _next(name, looked, refused=refused),
    ]
    return show(visitor, title=title, body=joined(parts), here="/days", styles=("past.css",))


def _choice(name: str, *, refused: bool) -> Html:
    address = f"/days/{name}/decisions"
    links = (
        element("a", DECISIONS.all, href=address, class_="button", aria_current=None if refused else "true"),
        element("a", DECISIONS.refused, href=f"{address}?only=refused", class_="button",
                aria_current="true" if refused else None),
    )  # fmt: skip
    return element("p", *links, class_="actions choice")


def _table(rows: list[tuple[str, ...]], zone: str) -> Html:
    head = (DECISIONS.time.format(zone=zone), DECISIONS.call, DECISIONS.decision, DECISIONS.amount, DECISIONS.event)
    return table(DECISIONS.caption, head, rows, words=3)


def _row(one: Decision, zone: str) -> tuple[str, ...]:
    call: str | Html = one.id
    if one.kind in ("hold", "settle", "renew", "lapse") and one.id:
        call = element("a", one.id, href=f"/holds/{quote(one.id, safe='')}?after={one.seq - 1}")
        if one.outcome not in _REFUSED:
            call = element("a", one.id, href=f"/holds/{quote(one.id, safe='')}")
    return (clock_ms(one.at, zone), call, _said(one), written(one.amounts) if one.amounts else "", counted(one.seq))


def _said(one: Decision) -> str:
    outcomes: Mapping[str, str] = DECISIONS.outcomes
    said = outcomes.get(one.outcome, one.outcome)
    why = "never_fits" if one.why == "never" else one.why or one.outcome
    return f"{said}: {BUDGET.reasons[why]}" if one.outcome in _REFUSED and why in BUDGET.reasons else said


def _next(name: str, looked: Looked, *, refused: bool) -> Html:
    if not looked.next:
        return Html("")
    query = {"after": str(looked.next), **({"only": "refused"} if refused else {})}
    return element(
        "p", element("a", DECISIONS.next, href=f"/days/{name}/decisions?{urlencode(query)}", class_="button"),
        class_="actions",
    )  # fmt: skip


PAGES = (Page(path="/days/{day}/decisions", handler=_decisions),)
