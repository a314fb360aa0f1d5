"""`/days`: past days as months on a sheet, each day with what was used of its budgets, and whether it was audited.

A mark is shown only where it was earned: *sealed* where the projector has proved the chain up to the seal, *audited*
where an audit of this very record found the day right.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import Literal

import msgspec
from aiohttp import web

from engine.core.documents import DayTotals
from engine.errors import BadAsk
from projector.audited import Audited
from projector.days.totals import CALENDAR_MAX
from web.desk import Desk
from web.html import Html, element, joined
from web.pages.amounts import amount, counted, share
from web.pages.frame import SignedIn, show
from web.pages.past_words import DAYS
from web.pages.serving import Page
from web.pages.tables import table
from web.pages.zoned import clock, date_words, month_words

MONTHS_MAX = 6  # on one page
METERS_MAX = 3  # in one cell: the fullest; the list has all
DAY_FORM = 'expected a day, such as "2026-11-30"'

Proof = Literal["running", "sealed", "audited", "wrong"]

_calendar = msgspec.json.Decoder(list[DayTotals])
_audits = msgspec.json.Decoder(list[Audited])


class Day(msgspec.Struct, frozen=True):
    """One day that is on record: its budgets, and how far it is proved."""

    date: date
    totals: list[DayTotals]
    proof: Proof

    @property
    def refused(self) -> int:
        return sum(sum(one.refused.values()) for one in self.totals)

    @property
    def exhausted_at(self) -> int | None:
        return min((one.first_exhausted_at for one in self.totals if one.first_exhausted_at is not None), default=None)


async def read_audits(desk: Desk) -> dict[str, Audited]:
    """The newest word of an audit on each day, so far as the record bears it out. Raises `NoAnswer`."""
    return {one.day: one for one in _audits.decode(await desk.purse.read("audited"))}


def proof_of(day: str, totals: Iterable[DayTotals], audits: Mapping[str, Audited]) -> Proof:
    if day in audits:
        return "audited" if audits[day].right else "wrong"
    sealed = any(one.sealed is not None and one.sealed.day == day for one in totals)
    return "sealed" if sealed else "running"


async def read_days(desk: Desk, before: str) -> tuple[list[Day], bool]:
    """The days of the newest months before the day `before` ("": all), newest first; whether there are earlier ones."""
    await desk.board.catch_up()
    totals = _calendar.decode(await desk.purse.read("calendar", before.encode()))
    audits = await read_audits(desk)
    by_day: dict[str, list[DayTotals]] = {}
    for one in totals:
        by_day.setdefault(one.period, []).append(one)
    months = list(dict.fromkeys(day[:7] for day in by_day))
    cut = len(totals) >= CALENDAR_MAX and len(months) > 1  # the last month may not be whole
    shown = months[: len(months) - cut][:MONTHS_MAX]
    days = [
        Day(date.fromisoformat(day), found, proof_of(day, found, audits))
        for day, found in by_day.items()
        if day[:7] in shown
    ]
    return days, len(shown) < len(months)


def before_of(query: Mapping[str, str]) -> str:
    """Raises `BadAsk`."""
    said = query.get("before", "")
    if said:
        try:
            date.fromisoformat(said)
        except ValueError:
            raise BadAsk("before", DAY_FORM) from None
    return said


async def _days(request: web.Request, desk: Desk, visitor: SignedIn) -> web.Response:
    before = before_of(request.query)
    zone = await zone_of(desk)
    days, earlier = await read_days(desk, before)
    body = [element("h1", DAYS.title), element("p", DAYS.lead, class_="lead")]
    if days:
        body += [_legend(days), _months(days, zone), _pages(days, before, earlier), _list(days, zone)]
        body.append(_exports(before))
    else:
        body.append(element("p", DAYS.none, class_="card empty"))
    return show(visitor, title=DAYS.title, body=joined(body), here="/days", styles=("past.css",))


async def zone_of(desk: Desk) -> str:
    terms = await desk.known.ready()
    assert terms.plan is not None
    return terms.plan.zone


# --- months -----------------------------------------------------------------------------------------------------------


def _months(days: Sequence[Day], zone: str) -> Html:
    by_month: dict[date, dict[date, Day]] = {}
    for day in days:
        by_month.setdefault(day.date.replace(day=1), {})[day.date] = day
    return element("div", *(_month(first, found, zone) for first, found in by_month.items()), class_="months")


def _month(first: date, days: Mapping[date, Day], zone: str) -> Html:
    title = month_words(first)
    head = (
        element("th", element("abbr", name[:2], title=name, aria_label=name), scope="col") for name in DAYS.weekdays
    )
    begin = first - timedelta(days=first.weekday())
    last = first.replace(day=monthrange(first.year, first.month)[1])
    weeks = ((last - begin).days + 7) // 7
    rows = (
        element("tr", *(_cell(begin + timedelta(days=7 * week + n), first, days, zone) for n in range(7)))
        for week in range(weeks)
    )
    grid = element(
        "table",
        element("caption", DAYS.caption.format(month=title), class_="unseen"),
        element("thead", element("tr", *head)),
        element("tbody", *rows),
        class_="calendar",
    )
    return element("section", element("h2", title), grid, class_="month card")


def _cell(day: date, first: date, days: Mapping[date, Day], zone: str) -> Html:
    if day.month != first.month:
        return Html("<td></td>")
    found = days.get(day)
    if found is None:
        return element("td", element("span", day.day, class_="date"), class_="quiet-day")
    inside = [
        element("span", day.day, class_="date", aria_hidden="true"),
        element("span", date_words(day), class_="unseen"),
        mark(found.proof),
        *(_meter(one) for one in fullest(found.totals)),
    ]
    if found.refused:
        inside.append(element("span", _refused(found.refused), class_="refused"))
    if found.exhausted_at is not None:
        said = DAYS.exhausted.format(at=clock(found.exhausted_at, zone))
        inside.append(element("span", said, class_="unseen"))
    return element("td", element("a", *inside, href=f"/days/{day.isoformat()}"))


def fullest(totals: Iterable[DayTotals]) -> list[DayTotals]:
    """The few that fit into a cell, in one order on all days."""
    found = sorted(totals, key=lambda one: (-_tenths(one), one.budget))[:METERS_MAX]
    return sorted(found, key=lambda one: one.budget)


def _tenths(total: DayTotals) -> int:
    """Used of the limit in tenths of a percent, rounded down; a limit of zero is used up."""
    used = total.settled + total.extra + total.held
    return max(0, used) * 1000 // total.limit if total.limit > 0 else 1000


def _meter(total: DayTotals) -> Html:
    used = _tenths(total)
    width = f"{min(1000, used) / 10:.1f}%"
    drawing = Html(
        f'<svg class="tiny" aria-hidden="true" focusable="false"><rect class="{_fill(total)}" width="{width}" '
        'height="100%"/></svg>'
    )
    name = element("span", f"{total.budget} ", class_="unseen")
    figure = DAYS.percent.format(share=used // 10)
    return element("span", drawing, name, element("span", figure, class_="share"), class_="use")


def _fill(total: DayTotals) -> str:
    return "full" if _tenths(total) >= 1000 or total.first_exhausted_at is not None else "some"


def _refused(count: int) -> str:
    return DAYS.refused_one if count == 1 else DAYS.refused.format(n=counted(count))


# --- marks ------------------------------------------------------------------------------------------------------------


_SHAPES: Mapping[Proof, str] = {
    "audited": '<circle cx="8" cy="8" r="7"/><path d="M4.6 8.3l2.3 2.4 4.5-5"/>',
    "sealed": '<circle cx="8" cy="8" r="6"/>',
    "wrong": '<path d="M8 1.5 15 14.5H1z"/><path d="M8 6v4M8 11.6v1.2"/>',
    "running": '<circle cx="8" cy="8" r="2.2"/>',
}


def mark(proof: Proof) -> Html:
    """The drawing that says how far a day is proved, and the word for it."""
    drawing = Html(
        f'<svg class="mark-of {proof}" viewBox="0 0 16 16" aria-hidden="true" focusable="false">{_SHAPES[proof]}</svg>'
    )
    return joined([drawing, element("span", getattr(DAYS, proof), class_="unseen")])


def _legend(days: Sequence[Day]) -> Html:
    means = {"audited": DAYS.audited_means, "sealed": DAYS.sealed_means, "wrong": DAYS.wrong_means}
    seen = {day.proof for day in days}
    names = sorted({one.budget for day in days for one in day.totals})
    few = len(names) <= METERS_MAX
    bars = DAYS.bars.format(budgets=", ".join(names)) if few else DAYS.bars_fullest.format(n=METERS_MAX)
    lines = [element("li", mark(proof), element("span", means[proof])) for proof in means if proof in seen]
    if len(names) > 1:
        lines.insert(0, element("li", bars))
    return element("ul", *lines, class_="legend-marks", aria_label=DAYS.legend) if lines else Html("")


# --- below them -------------------------------------------------------------------------------------------------------


def _pages(days: Sequence[Day], before: str, earlier: bool) -> Html:
    links = []
    if before:
        links.append(element("a", DAYS.newest, href="/days", class_="button"))
    if earlier:
        oldest = min(day.date for day in days).replace(day=1)
        links.append(element("a", DAYS.earlier, href=f"/days?before={oldest.isoformat()}", class_="button"))
    return element("p", *links, class_="actions") if links else Html("")


def _list(days: Sequence[Day], zone: str) -> Html:
    head = (DAYS.day, DAYS.budget, DAYS.share, DAYS.amount, DAYS.refusals, DAYS.exhausted_at, DAYS.proof)
    rows = [_line(day, one, zone) for day in days for one in day.totals]
    found = table(DAYS.list_caption, head, rows, words=2)
    return element("details", element("summary", DAYS.as_list), found, class_="card below")


def _line(day: Day, one: DayTotals, zone: str) -> Sequence[str | int]:
    used = one.settled + one.extra + one.held
    return (
        element("a", day.date.isoformat(), href=f"/days/{day.date.isoformat()}"),
        one.budget,
        share(used, one.limit),
        f"{amount(used, one.scale)} {one.unit}",
        counted(sum(one.refused.values())),
        clock(one.first_exhausted_at, zone) if one.first_exhausted_at is not None else "",
        getattr(DAYS, day.proof),
    )


def _exports(before: str) -> Html:
    query = f"?before={before}" if before else ""
    links = (
        element("a", DAYS.csv, href=f"/days.csv{query}", download=True),
        element("a", DAYS.json, href=f"/days.json{query}", download=True),
    )
    return element("p", DAYS.export, " ", links[0], " ", links[1], class_="quiet exports")


PAGES = (Page(path="/days", handler=_days),)
