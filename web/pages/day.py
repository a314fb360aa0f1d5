"""`/days/{day}`: what one day came to, how it went, who spent it, what was refused; and the wallet at any moment of it.

The figures are the projector's; the moment is made again from the record. Both say where they stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from aiohttp import web

from engine.core.documents import DayTotals
from engine.errors import PurseError
from web.desk import Desk
from web.html import Html, element, joined
from web.moments import NS_PER_S
from web.pages import pace
from web.pages.amounts import amount, counted, drawn, share
from web.pages.budget_words import BUDGET
from web.pages.calendar import mark, proof_of
from web.pages.charts import Chart, Line, draw
from web.pages.day_found import Found, find
from web.pages.day_spenders import exports, other_periods, refusals, who
from web.pages.frame import SignedIn, show
from web.pages.meters import meter
from web.pages.moment import moment_part
from web.pages.past_words import DAY
from web.pages.serving import Page
from web.pages.tables import table
from web.pages.zoned import clock, clock_s, local, whole_date_words
from web.problems import Problem

CHARTS_MAX = 3
SLIDER_STEP_S = 60


async def _day(request: web.Request, desk: Desk, visitor: SignedIn) -> web.Response:
    found = await find(request, desk)
    title = whole_date_words(date.fromisoformat(found.day.first))
    body = joined([
        _head(found, title),
        _totals(found),
        await _moments(request, desk, found),
        who(found),
        refusals(found),
        other_periods(found),
        exports(found),
    ])  # fmt: skip
    return show(visitor, title=title, body=body, here="/days", styles=("past.css",), scripts=("day.js",))


# --- head -------------------------------------------------------------------------------------------------------------


def _head(found: Found, title: str) -> Html:
    name = found.day.first
    proof = proof_of(name, found.totals, {name: found.audit} if found.audit is not None else {})
    earlier, later = found.neighbours
    links = [element("a", "\N{LEFTWARDS ARROW} ", earlier, href=f"/days/{earlier}", rel="prev") if earlier else ""]
    links.append(element("a", DAY.back, href="/days"))
    if later:
        links.append(element("a", later, " \N{RIGHTWARDS ARROW}", href=f"/days/{later}", rel="next"))
    nav = element("nav", *links, aria_label=DAY.around, class_="around")
    said = element("p", mark(proof), element("span", _proof_words(found)), class_="proof")
    return joined([nav, element("h1", title), said])


def _proof_words(found: Found) -> str:
    zone, audit = found.day.zone, found.audit
    if audit is not None:
        at = local(audit.at, "UTC").strftime("%Y-%m-%d %H:%M")
        return DAY.audited.format(at=at) if audit.right else DAY.wrong.format(at=at, day=found.day)
    sealed = next((one.sealed for one in found.totals if one.sealed is not None), None)
    if sealed is not None and sealed.day == found.day.first:
        at = local(sealed.at, zone).strftime("%Y-%m-%d %H:%M:%S")
        return DAY.sealed.format(at=at, zone=zone, seq=counted(sealed.seq))
    return DAY.unsealed if found.over else DAY.running


# --- totals -----------------------------------------------------------------------------------------------------------


def _totals(found: Found) -> Html:
    cards = [_budget(one, found.day.zone) for one in found.totals] or [element("p", DAY.nothing, class_="quiet")]
    return element(
        "section", element("h2", DAY.totals, class_="unseen"), element("div", *cards, class_="panels"),
        class_="day-part",
    )  # fmt: skip


def _budget(one: DayTotals, zone: str) -> Html:
    used = one.settled + one.extra + one.held
    drawing, said = meter(limit=one.limit, settled=one.settled, extra=one.extra, held=one.held, name=one.budget)
    of = DAY.of_limit.format(used=amount(used, one.scale), limit=amount(one.limit, one.scale), unit=one.unit)
    exhausted = one.first_exhausted_at
    words = [
        DAY.exhausted.format(at=clock_s(exhausted, zone)) if exhausted is not None else DAY.never_exhausted,
        DAY.peak.format(share=share(one.peak, one.limit).removesuffix(" %"), at=clock_s(one.peak_at, zone))
        if one.peak_at is not None
        else "",
        DAY.calls.format(
            holds=counted(one.holds), settles=counted(one.settles), refused=counted(sum(one.refused.values()))
        ),
        DAY.wasted.format(amount=amount(one.wasted, one.scale), unit=one.unit) if one.wasted > 0 else "",
    ]
    after = one.settled_after_seal + one.extra_after_seal
    if after:
        words.append(DAY.after_seal.format(amount=amount(after, one.scale), unit=one.unit))
    return element(
        "article",
        element("h3", one.budget),
        element("p", said, class_="figure"),
        element("p", of, class_="quiet"),
        drawing,
        *(element("p", text, class_="quiet") for text in words if text),
        class_="panel card",
        data_budget=one.budget,
    )


# --- the moment -------------------------------------------------------------------------------------------------------


async def _moments(request: web.Request, desk: Desk, found: Found) -> Html:
    """The course of the day over a slider, and the wallet at the moment that was asked for."""
    drawn_ = [_course(one, found) for one in found.totals[:CHARTS_MAX]]
    shown = await _shown(desk, found) if found.at is not None else Html("")
    part = element(
        "div", shown, id="moment", data_address=f"/days/{found.day}/moment",
        data_looking=DAY.looking, data_failed=DAY.not_now,
    )  # fmt: skip
    return element(
        "section",
        element("h2", DAY.moment),
        element("p", DAY.moment_lead, class_="quiet"),
        element("div", *drawn_, _slider(found), class_="over-slider"),
        _form(found),
        part,
        element("p", id="heard", class_="unseen", role="status"),
        element("div", *(_course_table(one, found) for one in found.totals[:CHARTS_MAX]), class_="tables"),
        class_="day-part card",
    )


async def _shown(desk: Desk, found: Found) -> Html:
    assert found.at is not None
    try:
        moment = await desk.lookback.moment(found.at, now=found.now)
    except Problem as problem:
        return element("p", str(problem.body["detail"]), class_="note")
    except PurseError:
        return element("p", DAY.not_now, class_="note")
    return moment_part(found.day, found.at, moment, scales=desk.known.terms.scales)


def _slider(found: Found) -> Html:
    """Only a script can make use of it: it shows it."""
    day = found.day
    most = (found.last - day.start) // NS_PER_S
    slider = element(
        "input", type="range", id="slider", min="0", max=str(most), step=str(SLIDER_STEP_S),
        value=str((found.shown_at - day.start) // NS_PER_S), aria_label=DAY.slider,
        aria_valuetext=clock_s(found.shown_at, day.zone), data_start=str(day.start // 1_000_000), data_zone=day.zone,
        data_length=str((day.end - day.start) // NS_PER_S),
    )  # fmt: skip
    return element("div", Html(slider.removesuffix("</input>")), class_="slider", hidden=True)


def _form(found: Found) -> Html:
    field = element(
        "input", type="time", id="at", name="at", step="1", value=clock_s(found.shown_at, found.day.zone),
        required=True, aria_describedby="at-wrong" if found.wrong else None,
    )  # fmt: skip
    wrong = element("p", found.wrong, class_="note", id="at-wrong") if found.wrong else ""
    label = element("label", DAY.time.format(zone=found.day.zone), for_="at")
    button = element("button", DAY.show, type="submit", class_="main")
    return element(
        "form", label, Html(field.removesuffix("</input>")), button, wrong, method="get",
        action=f"/days/{found.day}", class_="moment-form",
    )  # fmt: skip


# --- how it went ------------------------------------------------------------------------------------------------------


def _course(total: DayTotals, found: Found) -> Html:
    detail = found.details.get(total.budget)
    series = detail.series if detail is not None else None
    if series is None:
        return element("p", DAY.no_course, class_="quiet")
    marks = pace.marks(series, start=found.day.start, end=found.day.end, now=found.now)
    at = [one.at for one in marks]
    limit = drawn(total.limit, total.scale)
    says = DAY.course_says.format(
        budget=total.budget, used=share(total.settled + total.held + total.extra, total.limit).removesuffix(" %")
    )
    chart = Chart(
        name=f"course-{total.budget}", says=says, unit=total.unit, start=found.day.start, end=found.day.end,
        lines=[
            Line(DAY.line_spent, "area", at, [drawn(one.settled, total.scale) for one in marks]),
            Line(DAY.line_used, "line", at, [drawn(one.settled + one.held, total.scale) for one in marks]),
            Line(DAY.line_limit, "even", [found.day.start, found.day.end], [limit, limit]),
        ],
        now=found.shown_at,
    )  # fmt: skip
    title = element("h3", total.budget) if len(found.totals) > 1 else ""
    return element("div", title, draw(chart), class_="course")


def _course_table(total: DayTotals, found: Found) -> Html:
    detail = found.details.get(total.budget)
    series = detail.series if detail is not None else None
    if series is None:
        return Html("")
    so_far = series.before.settled if series.before is not None else 0
    rows: list[Sequence[str | int]] = []
    for point in series.points:
        so_far += point.settled
        figures = (amount(value, total.scale) for value in (point.settled, so_far, point.held))
        rows.append((clock(point.at, found.day.zone), *figures, counted(point.holds), counted(point.refused)))
    head = (
        DAY.step.format(zone=found.day.zone), DAY.in_step, DAY.so_far, BUDGET.line_held, BUDGET.holds, BUDGET.refused,
    )  # fmt: skip
    found_table = table(DAY.course_caption.format(budget=total.budget, unit=total.unit), head, rows)
    return element("details", element("summary", DAY.as_table.format(budget=total.budget)), found_table)


PAGES = (Page(path="/days/{day}", handler=_day),)
