"""The naive auditor on the days of the wallet: when one is over, and what its seal says. Written from the rules."""

from __future__ import annotations

from datetime import date, timedelta

from property.naive_books import Books, Call
from property.naive_calendar import FOREVER, period_at, start_of

from engine.core import limits
from engine.core.messages import Lapsed, Seal, SealedBudget
from engine.core.plan import Plan


class DayRules(Books):
    """Seals the days that are over among the holds that lapse, each thing in the order in which it was due."""

    def __init__(self) -> None:
        super().__init__()
        self.before = 0  # the sequence of the message before
        self.day, self.day_ends = "", FOREVER
        self.sealed: list[Seal] = []  # by the newest message
        self.last_sealed = 0  # the end of the newest day that is sealed

    def lapse_all(self, due: list[Call]) -> list[Lapsed]:
        lapsed, self.sealed = [], []
        ends = [(end, "a day", day) for day, end in self.days_over()]
        for moment, what, name in sorted([*ends, *((call.expires_at, "hold", call.id) for call in due)]):
            if what == "hold":
                lapsed.append(self.lapse(self.calls[name]))
            else:  # "a day" comes before "hold": who is held until midnight is not over when the day is
                self.sealed.append(self.seal(name, moment))
                self.last_sealed = moment
        return lapsed

    def days_over(self) -> list[tuple[str, int]]:
        over = []
        while self.plan is not None and self.day_ends <= self.at:
            over.append((self.day, self.day_ends))
            self.day, _, self.day_ends = period_at(self.day_ends, "day", self.plan.zone)
        return over[: limits.SEALS_MAX]

    def seal(self, day: str, end: int) -> Seal:
        assert self.plan is not None
        budgets = {}
        touched = {key[0] for key in self.alive if key[2] is None}  # of nobody in particular: no budget with `each`
        for name, budget in self.plan.budgets.items():
            if name not in touched:
                continue
            period, _, _ = period_at(end - 1, budget.per, budget.zone)
            key = (name, self.generation[name], None, period)
            if key in self.alive:
                settled, held, extra = self.settled_in(key), self.held_in(key), self.alive[key].extra
                budgets[name] = SealedBudget(period=period, limit=budget.limit, settled=settled, held=held, extra=extra)
        still = sum(call.state == "open" for call in self.calls.values())
        return Seal(day=day, end=end, upto=self.before, open_holds=still, budgets=budgets)

    def plan_days(self, old: Plan | None, new: Plan) -> None:
        """The first plan begins the first day. Another zone moves the end of the day, never back before now."""
        if old is None:
            self.day, _, self.day_ends = period_at(self.at, "day", new.zone)
        elif old.zone != new.zone:
            tomorrow = date.fromisoformat(self.day) + timedelta(days=1)
            self.day_ends = max(self.at, start_of(tomorrow, new.zone))
