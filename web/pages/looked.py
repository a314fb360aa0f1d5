"""What an operator looks at: which budget, which period, by which label; and all that is known of it at one moment.

It reads documents of the projector and the wallet's status. It works nothing out and writes no HTML.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

import msgspec

from engine.core.documents import AlertShown, Breakdown, BudgetStatus, DayTotals, Detail, Status, WalletDay
from engine.errors import BadAsk
from web.desk import Desk

CHOICE_CHARS_MAX = 128
ALERTS_SHOWN_MAX = 20
PERIODS_SHOWN_MAX = 62  # in the list to choose from; an address may name any

_days = msgspec.json.Decoder(list[DayTotals])
_alerts = msgspec.json.Decoder(list[AlertShown])
_details = msgspec.json.Decoder(tuple[list[DayTotals], WalletDay | None, list[Detail]])


class Choice(msgspec.Struct, frozen=True):
    """What the address says: "" where it leaves the choice to us."""

    budget: str = ""
    by: str = ""
    period: str = ""

    def address(self, path: str = "/budget", **other: str) -> str:
        """The address of this choice, or of one that differs from it."""
        said = {name: value for name, value in (msgspec.structs.asdict(self) | other).items() if value}
        return f"{path}?{urlencode(said)}" if said else path


class Looked(msgspec.Struct, frozen=True):
    """Everything about one budget in one period. `budget`: as it stands now, None where the plan has it no more.

    `totals`, `detail`: None where nothing was decided yet. `periods`: that there are figures of, newest first.
    `alerts`: of this budget in this period, and those of no one budget; newest first.
    """

    choice: Choice
    status: Status
    budget: BudgetStatus | None
    totals: DayTotals | None
    detail: Detail | None
    day: WalletDay | None
    periods: list[str]
    alerts: list[AlertShown]

    @property
    def running(self) -> bool:
        """Whether the period is the current one."""
        return self.budget is not None and self.budget.period == self.choice.period

    @property
    def labels(self) -> list[str]:
        """By what it can be broken down."""
        return [one.label for one in self.detail.breakdowns] if self.detail is not None else []

    @property
    def breakdown(self) -> Breakdown | None:
        breakdowns = self.detail.breakdowns if self.detail is not None else []
        return next((one for one in breakdowns if one.label == self.choice.by), None)


def choice_of(query: Mapping[str, str]) -> Choice:
    """Raises `BadAsk` naming what cannot be meant."""
    for name in ("budget", "by", "period"):
        said = query.get(name, "")
        if len(said) > CHOICE_CHARS_MAX or not said.isprintable():
            raise BadAsk(name, f"expected at most {CHOICE_CHARS_MAX} printable characters")
    return Choice(query.get("budget", ""), query.get("by", ""), query.get("period", ""))


async def look(desk: Desk, choice: Choice) -> Looked | None:
    """All that is known of what was chosen; None while there is no status, or no such budget or period.

    Raises `PurseError` and `Problem` 503.
    """
    status = await desk.board.now()
    days = _days.decode(await desk.purse.read("days"))
    names = list(dict.fromkeys([*(one.name for one in status.budgets), *(total.budget for total in days)]))
    name = choice.budget or next(iter(names), "")
    if name not in names:
        return None
    budget = next((one for one in status.budgets if one.name == name), None)
    known = {total.period: total for total in days if total.budget == name}
    period = choice.period or (budget.period if budget is not None else next(iter(known), ""))
    if period not in known and (budget is None or period != budget.period):
        return None
    alerts = _alerts.decode(await desk.purse.read("alerts"))
    totals, day, details = _details.decode(await desk.purse.read("details", period.encode()))
    return Looked(
        choice=Choice(name, choice.by or "model", period),
        status=status,
        budget=budget,
        totals=next((one for one in totals if (one.budget, one.period) == (name, period)), known.get(period)),
        detail=next((one for one in details if (one.budget, one.period) == (name, period)), None),
        day=day,
        periods=_periods(known, budget),
        alerts=[one for one in alerts if not one.budget or (one.budget, one.period) == (name, period)][
            :ALERTS_SHOWN_MAX
        ],
    )


def _periods(known: Mapping[str, DayTotals], budget: BudgetStatus | None) -> list[str]:
    newest = sorted(known.values(), key=lambda one: -one.start)
    current = [budget.period] if budget is not None else []
    return list(dict.fromkeys([*current, *(one.period for one in newest)]))[:PERIODS_SHOWN_MAX]
