"""Who spent a budget: by the values of one label, with all else as Other, adding up to what was spent."""

from __future__ import annotations

from engine.core.documents import Breakdown, DayTotals, Spent
from web.html import Html, element, joined
from web.pages.amounts import amount, column, counted, share
from web.pages.budget_words import BUDGET
from web.pages.looked import Looked
from web.pages.tables import BARS, bar, table


def by_label(looked: Looked) -> Html:
    """Links to the labels there are, for whoever wants another."""
    links = (
        element(
            "li",
            element("a", BUDGET.label(label), href=f"{looked.choice.address(by=label)}#who",
                    aria_current="true" if label == looked.choice.by else None),
        )
        for label in looked.labels
    )  # fmt: skip
    return element("ul", joined(links), class_="tabs")


def spenders(looked: Looked) -> Html:
    """The table, and what is to be known of it."""
    totals, detail, breakdown = looked.totals, looked.detail, looked.breakdown
    if totals is None or detail is None or breakdown is None:
        return element("p", BUDGET.nothing_yet, class_="quiet")
    rows = rows_of(breakdown, totals, later=totals.settled - detail.settled)
    amounts = column([*(one.settled for _, one in rows), totals.settled], totals.scale)
    most = max((one.settled for _, one in rows), default=0)
    lines = [
        (
            name, joined([bar(one.settled, most)]), amounts[n], share(one.settled, totals.settled),
            counted(one.holds), counted(one.refused),
        )
        for n, (name, one) in enumerate(rows)
    ]  # fmt: skip
    label = BUDGET.label(looked.choice.by)
    holds, refused = (sum(getattr(one, what) for _, one in rows) for what in ("holds", "refused"))
    foot = (BUDGET.total, "", amounts[-1], share(totals.settled, totals.settled), counted(holds), counted(refused))
    head = (label, BARS, BUDGET.amount, BUDGET.share, BUDGET.holds, BUDGET.refused)
    caption = BUDGET.who_caption.format(label=label, unit=totals.unit)
    notes = []
    if totals.adjusted:
        said = BUDGET.adjusted.format(amount=amount(totals.adjusted, totals.scale), unit=totals.unit)
        notes.append(element("p", said, class_="quiet"))
    if detail.more_labels:
        notes.append(element("p", BUDGET.more_labels, class_="quiet"))
    return joined([table(caption, head, lines, words=2, foot=foot), *notes])


def rows_of(breakdown: Breakdown, totals: DayTotals, *, later: int) -> list[tuple[str, Spent]]:
    """Name and figures of every row. What came `later` than the breakdown was final is of Other."""
    rows = [(BUDGET.none if one.value is None else one.value, one) for one in breakdown.top]
    other = breakdown.other
    rest = Spent(None, other.settled + later, other.holds, other.refused)
    if not (rest.settled or rest.holds or rest.refused or breakdown.others):
        return rows
    if breakdown.uncounted:
        return [*rows, (BUDGET.other_uncounted, rest)]
    return [*rows, (BUDGET.other_many.format(n=breakdown.others) if breakdown.others else BUDGET.other, rest)]
