"""Who and what takes no new holds now, why, until when, and the way back; for an admin also the way to stop more."""

from __future__ import annotations

from collections.abc import Iterable

from engine.core.documents import Barred, Status
from engine.core.messages import Frost
from web.html import Html, element, fill, hidden_field, joined
from web.pages.acts import FREEZE_HOURS
from web.pages.acts_words import ACTS
from web.pages.amounts import counted
from web.pages.budget_words import BUDGET
from web.pages.frame import SignedIn
from web.pages.looked import Looked
from web.pages.tables import table
from web.statement import when


def stopped(status: Status, visitor: SignedIn, *, back: str, now: int) -> Html:
    """A table of all that is stopped, each with its way back."""
    rows = [
        *(_frozen(frost, visitor, back, now) for frost in status.frozen if frost.until is None or frost.until > now),
        *(_barred(barred, visitor, back, now) for barred in status.barred),
    ]
    if not rows:
        return element("p", BUDGET.nobody_stopped, class_="quiet")
    head = [BUDGET.how, BUDGET.what, BUDGET.why, BUDGET.until, *([ACTS.act] if visitor.acts else [])]
    parts = [table(BUDGET.stopped, head, rows, words=len(head))]
    if status.barred_more:
        parts.append(element("p", BUDGET.stopped_more.format(n=counted(status.barred_more)), class_="quiet"))
    return joined(parts)


def _frozen(frost: Frost, visitor: SignedIn, back: str, now: int) -> list[str]:
    what = BUDGET.everything if frost.scope == "all" else frost.scope
    until = BUDGET.until_lifted if frost.until is None else f"{when(frost.until, now)} UTC"
    way = [_way_back("thaw", ACTS.thaw, visitor, {"scope": frost.scope, "back": back})] if visitor.acts else []
    return [BUDGET.frozen, what, frost.reason, until, *way]


def _barred(barred: Barred, visitor: SignedIn, back: str, now: int) -> list[str]:
    what = f"{barred.label} {barred.value}"
    fields = {"label": barred.label, "value": barred.value, "back": back}
    way = [_way_back("restore", ACTS.restore, visitor, fields)] if visitor.acts else []
    if barred.until is None:
        return [BUDGET.revoked, what, barred.reason, BUDGET.until_restored, *way]
    return [BUDGET.cooling, what, barred.guard, f"{when(barred.until, now)} UTC", *way]


def _way_back(act: str, said: str, visitor: SignedIn, fields: dict[str, str]) -> Html:
    inside = [visitor.token_field, *(hidden_field(name, value) for name, value in fields.items())]
    button = element("button", said, type="submit")
    return element("form", *inside, button, method="post", action=f"/acts/{act}")


# --- stopping, and correcting -----------------------------------------------------------------------------------------


def forms(looked: Looked, visitor: SignedIn) -> Html:
    """For an admin: freeze, revoke, adjust. Each is shown once more before it is done."""
    if not visitor.acts:
        return Html("")
    hours = [("", ACTS.until_lifted), *((str(n), _hours(n)) for n in FREEZE_HOURS)]
    unit = looked.totals.unit if looked.totals is not None else looked.budget.unit if looked.budget is not None else ""
    return fill(
        "acts.html",
        heading=ACTS.heading,
        on_record=ACTS.on_record,
        token=visitor.token_field,
        back=hidden_field("back", looked.choice.address()),
        freeze=ACTS.freeze,
        scope=ACTS.scope,
        scope_hint=ACTS.scope_hint,
        scopes=joined(element("option", value=one) for one in ("all", *(b.name for b in looked.status.budgets))),
        lasts=ACTS.lasts,
        hours=options(hours, ""),
        reason=ACTS.reason,
        reason_hint=ACTS.reason_hint,
        revoke=ACTS.revoke,
        label=ACTS.label,
        label_hint=ACTS.label_hint,
        value=ACTS.value,
        adjust=ACTS.adjust,
        adjusted=f"{looked.choice.budget} \N{MIDDLE DOT} {looked.choice.period}",
        meter=joined([hidden_field("budget", looked.choice.budget), hidden_field("period", looked.choice.period)]),
        amount=ACTS.amount.format(unit=unit),
        amount_hint=ACTS.amount_hint,
    )


def _hours(n: int) -> str:
    return ACTS.hours_one if n == 1 else ACTS.hours.format(n=n)


def options(choices: Iterable[tuple[str, str]], chosen: str) -> Html:
    """The `<option>`s of a list: value and what it is called."""
    return joined(element("option", said, value=value, selected=value == chosen) for value, said in choices)
