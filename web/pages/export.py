"""What the page about a budget shows, for programs: the same rows, the same figures, exact. It writes no HTML."""

from __future__ import annotations

import csv
import io
from itertools import chain

from engine.core.amounts import format_amount
from engine.core.documents import Spent
from web.moments import format_bound, format_moment
from web.pages import pace
from web.pages.looked import Looked
from web.pages.pace import Step
from web.pages.spenders import rows_of

_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would work out
_COLUMNS = ("what", "name", "from", "to", "unit", "settled", "held", "holds", "refused")


def as_csv(looked: Looked) -> str:
    """One table: `what` says whether a row is of the total, of a label's value, a step of the course, or a refusal."""
    document = as_document(looked)
    written = io.StringIO()
    writer = csv.DictWriter(written, _COLUMNS, restval="", extrasaction="ignore")
    writer.writeheader()
    total = {"what": "total", **document["total"]} if isinstance(document["total"], dict) else None
    parts = (("by " + looked.choice.by, "rows"), ("step", "steps"), ("refused", "refused"))
    rows = chain(
        [total] if total else [], ({"what": what, **row} for what, part in parts for row in _list(document[part]))
    )
    writer.writerows({name: _plain(value) for name, value in row.items()} for row in rows)
    return written.getvalue()


def _list(rows: object) -> list[dict[str, object]]:
    assert isinstance(rows, list)
    return rows


def _plain(value: object) -> object:
    """A label's value is whatever somebody wrote: a spreadsheet must not take it for a formula. Amounts are amounts."""
    if isinstance(value, str) and value.startswith(_FORMULA) and not _is_amount(value):
        return f"'{value}"
    return value


def _is_amount(value: str) -> bool:
    return value.removeprefix("-").replace(".", "", 1).isdecimal()


def as_document(looked: Looked) -> dict[str, object]:
    """The same as JSON: what was chosen, the total, the rows of the label, the steps of the course, the refusals."""
    totals, choice = looked.totals, looked.choice
    body: dict[str, object] = {
        "budget": choice.budget, "period": choice.period, "by": choice.by, "seq": looked.status.seq,
        "as_of": format_moment(looked.status.as_of), "total": None, "rows": [], "steps": [], "refused": [],
    }  # fmt: skip
    if totals is None:
        return body
    unit = {"unit": totals.unit}
    body["total"] = {
        "name": choice.budget, "from": format_moment(totals.start), "to": format_bound(totals.end), **unit,
        "limit": format_amount(totals.limit, scale=totals.scale),
        "settled": format_amount(totals.settled, scale=totals.scale),
        "held": format_amount(totals.held, scale=totals.scale),
        "extra": format_amount(totals.extra, scale=totals.scale),
        "holds": totals.holds, "refused": sum(totals.refused.values()),
    }  # fmt: skip
    detail = looked.detail
    if looked.breakdown is not None and detail is not None:
        rows = rows_of(looked.breakdown, totals, later=totals.settled - detail.settled)
        body["rows"] = [{"name": name, **unit, **_spent(one, totals.scale)} for name, one in rows]
    if detail is not None and detail.series is not None:
        steps = pace.steps(detail.series, start=totals.start, end=totals.end)
        body["steps"] = [{**_step(step, totals.scale), **unit} for step in steps]
    body["refused"] = [{"name": why, "refused": count} for why, count in totals.refused.items()]
    return body


def _spent(spent: Spent, scale: int) -> dict[str, object]:
    settled = format_amount(spent.settled, scale=scale)
    return {"settled": settled, "holds": spent.holds, "refused": spent.refused}


def _step(step: Step, scale: int) -> dict[str, object]:
    return {
        "from": format_moment(step.at), "to": format_moment(step.until),
        "settled": format_amount(step.settled, scale=scale), "held": format_amount(step.held, scale=scale),
        "holds": step.holds, "refused": step.refused,
    }  # fmt: skip
