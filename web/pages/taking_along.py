"""What the pages of the past show, as files: the same figures, from the same documents, for other programs."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from io import StringIO

import msgspec
from aiohttp import web

from projector.days.decisions import Decision
from web.answers import json_response
from web.asks import check_hold
from web.days import all_days, day_body, day_of, stream_decisions
from web.desk import Desk
from web.moments import format_moment
from web.pages.calendar import Day, before_of, read_days
from web.pages.frame import SignedIn
from web.pages.serving import Page
from web.past import after_of, life_of

CSV = "text/csv; charset=utf-8; header=present"
_DAY_COLUMNS = (
    "day", "budget", "unit", "limit", "settled", "held", "extra", "used", "used_pct", "refused", "first_exhausted_at",
    "proof",
)  # fmt: skip
_DECISION_COLUMNS = (
    "seq", "told", "at", "kind", "outcome", "id", "unit", "amount", "why", "budget", "state", "flags",
)  # fmt: skip


# --- the calendar -----------------------------------------------------------------------------------------------------


async def _days_json(request: web.Request, desk: Desk, _visitor: SignedIn) -> web.Response:
    return json_response({"days": _day_rows(await _shown_days(request, desk))})


async def _days_csv(request: web.Request, desk: Desk, _visitor: SignedIn) -> web.Response:
    rows = _day_rows(await _shown_days(request, desk))
    body = lines([_DAY_COLUMNS, *([row[name] for name in _DAY_COLUMNS] for row in rows)])
    return web.Response(body=body, headers={"Content-Type": CSV})


async def _shown_days(request: web.Request, desk: Desk) -> list[Day]:
    return (await read_days(desk, before_of(request.query)))[0]


def _day_rows(days: Iterable[Day]) -> list[dict[str, object]]:
    rows = []
    for day in days:
        for total in all_days(day.totals):
            refused = sum(total["refused"].values()) if isinstance(total["refused"], dict) else 0
            rows.append({**total, "day": day.date.isoformat(), "proof": day.proof, "refused": refused})
    return [{name: row[name] for name in _DAY_COLUMNS} for row in rows]


# --- a day ------------------------------------------------------------------------------------------------------------


async def _totals(request: web.Request, desk: Desk, _visitor: SignedIn) -> web.Response:
    return json_response(await day_body(desk, day_of(request)))


async def _lines(request: web.Request, desk: Desk, _visitor: SignedIn) -> web.StreamResponse:
    with desk.crowd.admitted("events"):
        return await stream_decisions(request, desk)


async def _csv(request: web.Request, desk: Desk, _visitor: SignedIn) -> web.StreamResponse:
    with desk.crowd.admitted("events"):
        return await stream_decisions(request, desk, media_type=CSV, head=lines([_DECISION_COLUMNS]), write=_decision)


def _decision(one: Decision) -> bytes:
    """A row for each unit, so that a sheet can add them up."""
    amounts = one.amounts.items() or [("", "")]
    return lines(
        [one.seq, one.told, format_moment(one.at), one.kind, one.outcome, one.id, unit, amount, one.why, one.budget,
         one.state, " ".join(one.flags)]
        for unit, amount in amounts
    )  # fmt: skip


def lines(rows: Iterable[Iterable[object]]) -> bytes:
    """Rows as CSV. A cell that a spreadsheet would take for a formula is made text."""
    written = StringIO()
    csv.writer(written, lineterminator="\r\n").writerows([_cell(cell) for cell in row] for row in rows)
    return written.getvalue().encode()


def _cell(cell: object) -> object:
    if isinstance(cell, str) and cell[:1] in "=+-@\t\r" and not cell.lstrip("-").replace(".", "", 1).isdigit():
        return f"'{cell}"
    return cell


# --- a call -----------------------------------------------------------------------------------------------------------


async def _hold(request: web.Request, desk: Desk, visitor: SignedIn) -> web.Response:
    id = check_hold(request.match_info["id"], field="id", caller=visitor.caller)
    life, seen = await life_of(desk, id, after_of(request))
    state = life.state if life is not None else None
    return json_response({"id": id, "state": state, **msgspec.to_builtins(seen)})


PAGES = (
    Page(path="/days.json", handler=_days_json),
    Page(path="/days.csv", handler=_days_csv),
    Page(path="/days/{day}/totals.json", handler=_totals),
    Page(path="/days/{day}/events.jsonl", handler=_lines),
    Page(path="/days/{day}/events.csv", handler=_csv),
    Page(path="/holds/{id}/events.json", handler=_hold),
)
