"""The shared budgets as they stand now: one panel each, with its share, its meter and its lines."""

from __future__ import annotations

from engine.core.documents import BudgetStatus, Status
from web import statement
from web.html import Html, element, fill, hidden, joined
from web.page import bar_edges
from web.pages.amounts import NO_FIGURE, amount, counted
from web.pages.budget_words import BUDGET
from web.statement import Shares, tenths
from web.words import WORDS


def panels(status: Status, chosen: str, *, now: int) -> Html:
    """One panel a shared budget; the chosen one is marked."""
    return joined(_panel(budget, budget.name == chosen, now=now) for budget in status.budgets)


def in_progress(status: Status) -> str:
    many = BUDGET.open_holds.format(n=counted(status.open_holds))
    return BUDGET.open_holds_one if status.open_holds == 1 else many


def _panel(budget: BudgetStatus, chosen: bool, *, now: int) -> Html:
    over = statement.ended(budget, now)
    share = Shares(0, 0, 0, 0) if over else statement.shares(budget)
    notes = [("note", statement.full_words(budget, now)), ("quiet", statement.own_calls_words(budget, now))]
    resets = f"{statement.resets_words(budget, now)} {statement.resets_in_words(budget, now)}".strip()
    return fill(
        "panel.html",
        name=budget.name,
        marked="true" if chosen else "false",
        class_="panel card chosen" if chosen else "panel card",
        per=WORDS.per[budget.per],
        used=statement.used_words(budget, now).rstrip("."),
        of_limit="" if over else BUDGET.of_limit.format(
            used=amount(budget.used, budget.scale), limit=amount(budget.limit, budget.scale), unit=budget.unit
        ),
        value=tenths(min(1000, share.used)),
        meter=WORDS.unknown if over else statement.meter_words(share),
        lines=_lines(budget, share, blank=over),
        resets=resets,
        notes=joined(element("p", text, class_=kind) for kind, text in notes if text),
        **bar_edges(share),
    )  # fmt: skip


def _lines(budget: BudgetStatus, share: Shares, *, blank: bool) -> Html:
    lines = [
        ("spent", BUDGET.spent, share.spent, budget.settled),
        ("others", BUDGET.others, share.others, budget.extra),
        ("held", BUDGET.held, share.held, budget.held),
        ("left", BUDGET.left, share.left, max(0, budget.remaining)),
    ]
    return joined(
        fill(
            "panel_line.html",
            line=line,
            name=name,
            share=NO_FIGURE if blank else WORDS.percent.format(share=tenths(tenth)),
            amount="" if blank else amount(value, budget.scale),
            not_there=hidden(line == "others" and not budget.source and not value),
        )
        for line, name, tenth, value in lines
    )
