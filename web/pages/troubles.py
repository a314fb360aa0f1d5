"""What did not go as it should: refusals and why, what to look at, and whether the provider's figure is current."""

from __future__ import annotations

from engine.core.documents import AlertShown, BudgetStatus, DayTotals
from web import statement
from web.html import Html, element, joined
from web.pages.amounts import amount, counted, lasting
from web.pages.budget_words import BUDGET
from web.pages.looked import Looked
from web.pages.tables import BARS, bar, table
from web.statement import when


def refusals(looked: Looked) -> Html:
    refused = looked.totals.refused if looked.totals is not None else {}
    day = looked.day if looked.day is not None and looked.day.day == looked.choice.period else None
    every = sum(day.refused.values()) if day is not None else 0
    here = sum(refused.values())
    parts = [_refused(refused) if refused else element("p", BUDGET.no_refusals, class_="quiet")]
    if every > here:
        parts.append(element("p", BUDGET.wallet_refusals.format(n=counted(every)), class_="quiet"))
    return joined(parts)


def _refused(refused: dict[str, int]) -> Html:
    most = max(refused.values())
    rows = [
        (BUDGET.reasons.get(why, why), bar(count, most), counted(count))
        for why, count in sorted(refused.items(), key=lambda one: (-one[1], one[0]))
    ]
    return table(BUDGET.refusals_caption, (BUDGET.reason, BARS, BUDGET.count), rows, words=2)


def flags(looked: Looked, *, now: int) -> Html:
    totals = looked.totals
    found = [(said, getattr(totals, name)) for name, said in BUDGET.flagged.items() if totals is not None]
    rows = [(said, counted(count)) for said, count in found if count]
    table_ = table(BUDGET.flags_caption, (BUDGET.reason, BUDGET.count), rows) if rows else None
    parts = [table_ or element("p", BUDGET.no_flags, class_="quiet")]
    parts += [element("p", text, class_="quiet") for text in (_besides(totals, now) if totals is not None else ())]
    return joined(parts)


def _besides(totals: DayTotals, now: int) -> list[str]:
    said = []
    if totals.wasted:
        said.append(BUDGET.wasted.format(amount=amount(totals.wasted, totals.scale), unit=totals.unit))
    if totals.sealed is not None:
        said.append(BUDGET.sealed.format(seq=counted(totals.sealed.seq), at=when(totals.sealed.at, now)))
        after = totals.settled_after_seal + totals.extra_after_seal
        if after:
            said.append(BUDGET.after_seal.format(amount=amount(after, totals.scale), unit=totals.unit))
    return said


def alerts(looked: Looked, *, now: int) -> Html:
    """Alerts that were raised, and what became of each at every target."""
    if not looked.alerts:
        return element("p", BUDGET.no_alerts, class_="quiet")
    rows = [(f"{when(one.at, now)} UTC", one.text, _delivered(one)) for one in looked.alerts]
    return table(BUDGET.alerts_caption, (BUDGET.when, BUDGET.said, BUDGET.delivered), rows, words=3)


def _delivered(alert: AlertShown) -> str:
    told = (f"{target}: {BUDGET.deliveries.get(state, state)}" for target, state in alert.deliveries.items())
    return ", ".join(told) or BUDGET.told_nobody


def source(budget: BudgetStatus | None, *, now: int) -> Html:
    """How current the provider's own figure is."""
    read = statement.observation(budget) if budget is not None else None
    if budget is None or read is None:
        return element("p", BUDGET.no_source, class_="quiet")
    parts = [element("p", _figure(budget, read, now), class_="note" if read.stale(now) else None)]
    why = budget.reading.unreadable if budget.reading is not None else ""
    if why:
        parts.append(element("p", BUDGET.source_unreadable.format(why=why), class_="quiet"))
    return joined(parts)


def _figure(budget: BudgetStatus, read: statement.Observation, now: int) -> str:
    if read.at is None or budget.observed is None:
        return BUDGET.source_none.format(source=read.source)
    if read.stale(now):
        return BUDGET.source_stale.format(source=read.source, age=lasting(now - read.at))
    figure = amount(budget.observed.figure, budget.scale)
    return BUDGET.source_fresh.format(source=read.source, figure=figure, unit=budget.unit, age=lasting(now - read.at))
