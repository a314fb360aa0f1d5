"""How a budget goes: a sentence, what is left beside an even pace, what was spent and held in steps, and a table."""

from __future__ import annotations

from engine.core.documents import DayTotals, Series
from engine.core.periods import TOTAL
from web.html import Html, element, fill, joined
from web.pages import pace
from web.pages.amounts import amount, column, counted, drawn, lasting, percent
from web.pages.budget_words import BUDGET
from web.pages.charts import Chart, Line, draw
from web.pages.looked import Looked
from web.pages.pace import Mark, Step
from web.pages.tables import table
from web.statement import SECOND, when


def course(looked: Looked, *, now: int) -> Html:
    """The whole part of the page. `now`: stream time."""
    totals, series = looked.totals, looked.detail.series if looked.detail is not None else None
    if totals is None:
        return element("p", BUDGET.nothing_yet, class_="lead")
    if series is None or totals.end >= TOTAL.end:
        said = (
            [sentence(looked, [], now=now)]
            if totals.end >= TOTAL.end
            else [sentence(looked, [], now=now), BUDGET.no_course]
        )
        return joined(element("p", text, class_="lead") for text in said)
    line = line_of(looked, totals, series, now=now)
    steps = pace.steps(series, start=totals.start, end=totals.end)
    return fill(
        "course.html",
        sentence=sentence(looked, line, now=now),
        others=_others_off(totals),
        burn_down=BUDGET.burn_down,
        left=draw(_left(looked, totals, line, now=now)),
        in_steps=BUDGET.in_steps,
        steps=draw(_in_steps(totals, steps, now=now if looked.running else None)),
    )


def line_of(looked: Looked, totals: DayTotals, series: Series, *, now: int) -> list[Mark]:
    """The course up to now, or the end; it ends in what the totals say, which is newer than the last step."""
    line = pace.marks(series, start=totals.start, end=totals.end, now=now)
    return [*line[:-1], Mark(line[-1].at, totals.settled, totals.held)]


# --- the sentence -----------------------------------------------------------------------------------------------------


def sentence(looked: Looked, line: list[Mark], *, now: int) -> str:
    """How it goes, in words."""
    totals = looked.totals
    assert totals is not None
    used = percent(totals.settled + totals.extra, totals.limit)
    if totals.end >= TOTAL.end:
        return BUDGET.never_ends.format(used=used)
    if not looked.running or now >= totals.end:
        return " ".join([BUDGET.was.format(used=used), *_extremes(totals, now)])
    said = [BUDGET.pace_now.format(used=used, passed=percent(now - totals.start, totals.end - totals.start))]
    if line:
        said += _outlook(totals, line, now=now)
    return " ".join([*said, *_extremes(totals, now)])


def _outlook(totals: DayTotals, line: list[Mark], *, now: int) -> list[str]:
    at = pace.pace(line, limit=totals.limit, others=totals.extra, start=totals.start, end=totals.end, now=now)
    left = totals.limit - totals.settled - totals.extra
    if left <= 0:
        return [BUDGET.used_up_now.format(left=lasting(totals.end - now))]
    ahead = totals.settled + totals.extra > at.even
    said = [BUDGET.ahead if ahead else BUDGET.behind.format(even=percent(at.even, totals.limit))]
    window = lasting(at.window_ns)
    if not at.spent:
        return [*said, BUDGET.resting.format(window=window)]
    if at.used_up_at is None:
        return [*said, BUDGET.left_at_end.format(window=window, left=percent(at.left_at_end, totals.limit))]
    before = lasting(totals.end - at.used_up_at)
    return [*said, BUDGET.used_up_at.format(window=window, at=when(at.used_up_at, now), before=before)]


def _extremes(totals: DayTotals, now: int) -> list[str]:
    said = []
    used = percent(totals.settled + totals.extra + totals.held, totals.limit)
    if totals.peak_at is not None and percent(totals.peak, totals.limit) != used:
        said.append(BUDGET.peak.format(peak=percent(totals.peak, totals.limit), at=when(totals.peak_at, now)))
    if totals.first_exhausted_at is not None:
        said.append(BUDGET.exhausted.format(at=when(totals.first_exhausted_at, now)))
    return said


def _others_off(totals: DayTotals) -> Html:
    if not totals.extra:
        return Html("")
    said = BUDGET.others_off.format(others=amount(totals.extra, totals.scale), unit=totals.unit)
    return element("p", said, class_="quiet")


# --- the charts -------------------------------------------------------------------------------------------------------


def _left(looked: Looked, totals: DayTotals, line: list[Mark], *, now: int) -> Chart:
    scale, whole = totals.scale, totals.limit - totals.extra
    left = [drawn(max(0, whole - mark.settled), scale) for mark in line]
    lines = [
        Line(BUDGET.line_left, "area", [mark.at for mark in line], left),
        Line(BUDGET.line_even, "even", [totals.start, totals.end], [drawn(totals.limit, scale), 0.0]),
    ]
    if looked.running and totals.start < now < totals.end:
        at = pace.pace(line, limit=totals.limit, others=totals.extra, start=totals.start, end=totals.end, now=now)
        until, then = (at.used_up_at, 0) if at.used_up_at is not None else (totals.end, at.left_at_end)
        lines.append(Line(BUDGET.line_ahead, "ahead", [line[-1].at, until], [left[-1], drawn(then, scale)]))
    return Chart(
        "left", sentence(looked, line, now=now), totals.unit, totals.start, totals.end, lines,
        now if looked.running else None,
    )  # fmt: skip


def _in_steps(totals: DayTotals, steps: list[Step], *, now: int | None) -> Chart:
    scale = totals.scale
    lines = [
        Line(
            BUDGET.bar_spent, "bars", [step.at for step in steps], [drawn(step.settled, scale) for step in steps],
            [step.until for step in steps],
        ),
        Line(BUDGET.line_held, "line", [step.at for step in steps], [drawn(step.held, scale) for step in steps]),
    ]  # fmt: skip
    return Chart("steps", BUDGET.in_steps, totals.unit, totals.start, totals.end, lines, now)


# --- the table --------------------------------------------------------------------------------------------------------


def course_table(looked: Looked) -> Html:
    """What the charts show, newest step first."""
    totals, series = looked.totals, looked.detail.series if looked.detail is not None else None
    if totals is None or series is None:
        return Html("")
    steps = pace.steps(series, start=totals.start, end=totals.end)[::-1]
    spent, held = (column([getattr(one, name) for one in steps], totals.scale) for name in ("settled", "held"))
    rows = [
        (
            when(one.at, one.at) if _short(totals) else when(one.at, 0),
            spent[n],
            held[n],
            counted(one.holds),
            counted(one.refused),
        )
        for n, one in enumerate(steps)
    ]
    wide = lasting(steps[0].until - steps[0].at) if steps else ""
    head = (BUDGET.time, BUDGET.amount, BUDGET.held, BUDGET.holds, BUDGET.refused)
    return table(BUDGET.chart_caption.format(step=wide, unit=totals.unit), head, rows, unseen=False)


def _short(totals: DayTotals) -> bool:
    return totals.end - totals.start <= 2 * 86_400 * SECOND
