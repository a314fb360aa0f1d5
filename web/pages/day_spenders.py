"""Who spent a day, who was refused and why, its other periods, and how to take it along: its page's lower half."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.core.documents import Breakdown, DayTotals, Detail
from web.html import Html, element, joined
from web.pages.amounts import amount, column, counted, share
from web.pages.budget_words import BUDGET
from web.pages.day_found import Found
from web.pages.past_words import DAY, DAYS
from web.pages.tables import bar, table


def who(found: Found) -> Html:
    tables = [
        _breakdown(one, total, found.details[total.budget])
        for total in found.totals
        if total.budget in found.details
        for one in found.details[total.budget].breakdowns
        if any(spent.value is not None for spent in one.top)
    ]
    if not tables:
        return Html("")
    return element(
        "section", element("h2", DAY.who), element("div", *tables, class_="breakdowns"), class_="day-part card"
    )


def _breakdown(one: Breakdown, total: DayTotals, detail: Detail) -> Html:
    later = total.settled - detail.settled
    other = one.other.settled + later
    written = column([*(spent.settled for spent in one.top), other], total.scale)
    most = max([spent.settled for spent in one.top], default=0)
    rows: list[Sequence[str | int]] = [
        (spent.value if spent.value is not None else DAY.none, bar(spent.settled, most), figure,
         share(spent.settled, total.settled), counted(spent.holds))
        for spent, figure in zip(one.top, written, strict=False)
    ]  # fmt: skip
    if other or one.others or one.other.holds:
        name = DAY.other.format(n=counted(one.others))
        rows.append((name, bar(other, most), written[-1], share(other, total.settled), counted(one.other.holds)))
    label = BUDGET.label(one.label)
    caption = DAY.who_caption.format(budget=total.budget, label=label.lower(), unit=total.unit)
    head = (label, element("span", DAY.drawn, class_="unseen"), DAY.spent, BUDGET.share, DAY.calls_short)
    return table(caption, head, rows, words=2, unseen=False)


def refusals(found: Found) -> Html:
    refused = dict(found.wallet_day.refused) if found.wallet_day is not None else {}
    if not refused:
        body: Html = element("p", DAY.no_refusals, class_="quiet")
    else:
        rows = [
            (BUDGET.reasons.get(why, why), counted(count))
            for why, count in sorted(refused.items(), key=lambda one: -one[1])
        ]
        link = element("a", DAY.one_by_one, href=f"/days/{found.day}/decisions?only=refused")
        found_table = table(DAY.refusals_caption, (DAY.reason, DAY.count), rows)
        body = joined([found_table, element("p", link, class_="quiet exports")])
    return element("section", element("h2", DAY.refusals), body, class_="day-part card")


def other_periods(found: Found) -> Html:
    if not found.others:
        return Html("")
    rows = [
        (one.budget, one.period, share(one.settled + one.extra + one.held, one.limit),
         f"{amount(one.settled + one.extra + one.held, one.scale)} {one.unit}", counted(sum(one.refused.values())))
        for one in found.others
    ]  # fmt: skip
    head = (DAYS.budget, DAY.period, DAYS.share, DAYS.amount, DAYS.refusals)
    inside = table(DAY.other_caption, head, rows, words=2)
    return element("details", element("summary", DAY.other_periods), inside, class_="card day-part")


def exports(found: Found) -> Html:
    day = found.day
    links: Iterable[str | Html] = (
        element("a", DAY.decisions, href=f"/days/{day}/decisions"),
        element("a", DAY.csv, href=f"/days/{day}/events.csv", download=True),
        element("a", DAY.lines, href=f"/days/{day}/events.jsonl", download=True),
        element("a", DAY.json, href=f"/days/{day}/totals.json", download=True),
    )
    return element("p", DAY.export, *links, class_="quiet exports")
