"""The naive auditor on tiers: which grade of answer is still affordable? Written from the rules, with fractions."""

from __future__ import annotations

from fractions import Fraction

import msgspec
from property.naive_books import Key, limit_of
from property.naive_calendar import period_at
from property.naive_guards import GuardRules

from engine.core.messages import Exhausted, Option
from engine.core.plan import Plan, Tiers

MILLION = 1_000_000


class TierRules(GuardRules):
    """Predicts which options of a hold the plan's tiers let pass, and what is told where none does."""

    def tiers(self) -> Tiers | None:
        assert self.plan is not None
        return None if isinstance(self.plan.tiers, msgspec.UnsetType) else self.plan.tiers

    def fullness(self, option: Option, labels: dict[str, str]) -> list[tuple[Fraction, Key, int]]:
        """How full each meter is that the option would take from, its key and its limit, in plan order."""
        assert self.plan is not None
        found = []
        for name, budget in self.plan.budgets.items():
            if option.amounts.get(budget.unit, 0) > 0 and name in dict(self.matching(budget.unit, labels)):
                period, _, _ = period_at(self.at, budget.per, budget.zone)
                key = (name, self.generation[name], labels[budget.each] if budget.each else None, period)
                limit = limit_of(budget, labels)
                found.append((full(self.used(key), limit), key, limit))
        return found

    def is_judged(self, option: Option, labels: dict[str, str]) -> bool:
        return self.tiers() is not None and option.grade is not None and bool(self.fullness(option, labels))

    def affordable(self, option: Option, labels: dict[str, str]) -> int | None:
        """The grade that the fullest meter still allows, None if it allows none."""
        tiers = self.tiers()
        assert tiers is not None
        worst = max(fullness for fullness, _, _ in self.fullness(option, labels))
        times = Fraction(tiers.times.get(labels.get("cohort", ""), MILLION), MILLION)
        allowing = [step.grade for step in tiers.steps if worst <= min(1, Fraction(step.up_to, MILLION) * times)]
        return min(allowing, default=None)

    def tier_of(self, option: Option, labels: dict[str, str]) -> int | None:
        """The tier under which the option may be taken, 0 where nobody judges it, None where it may not be."""
        if not self.is_judged(option, labels):
            return 0
        grade = self.affordable(option, labels)
        assert option.grade is not None
        return grade if grade is not None and option.grade >= grade else None

    def too_full(self, id_: str, option: Option, labels: dict[str, str]) -> Exhausted:
        """What is told where no option may be taken, of this last one."""
        assert self.plan is not None
        meters = self.fullness(option, labels)
        worst = max(fullness for fullness, _, _ in meters)
        key, limit = next((key, limit) for fullness, key, limit in meters if fullness == worst)
        budget = self.plan.budgets[key[0]]
        _, _, end = period_at(self.at, budget.per, budget.zone)
        meter = self.alive.get(key)
        return Exhausted(
            id=id_, why="tier", budget=key[0], unit=budget.unit, period=key[3], settled=self.settled_in(key),
            held=self.held_in(key), extra=meter.extra if meter else 0, limit=limit,
            remaining=limit - self.used(key), fits=0, resets_at=end, each=key[2],
            tier=self.affordable(option, labels),
        )  # fmt: skip


def full(used: int, limit: int) -> Fraction:
    """The part that is used. Of nothing: all of it, and more than all once something is used."""
    if limit == 0:
        return Fraction(1 if used == 0 else 2)
    return Fraction(used, limit)


def tiers_are_sound(plan: Plan) -> bool:
    """Rising thresholds and grades, sensible times."""
    if isinstance(plan.tiers, msgspec.UnsetType):
        return True
    ups, grades = [0, *(t.up_to for t in plan.tiers.steps)], [-1, *(t.grade for t in plan.tiers.steps)]
    rising = all(sorted(set(row)) == row for row in (ups, grades))
    times = plan.tiers.times
    return (
        rising and 1 <= len(plan.tiers.steps) <= 16 and ups[-1] <= MILLION and grades[-1] <= 100
        and len(times) <= 64 and all(0 < factor <= 100 * MILLION for factor in times.values())
        and all(1 <= len(cohort) <= 128 and cohort.isprintable() for cohort in times)
    )  # fmt: skip
