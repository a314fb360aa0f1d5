"""The naive auditor on guards: who comes too often, from too many places? Written from the rules alone.

It keeps every hold that ever came to the budgets and counts them again at every question.
"""

from __future__ import annotations

import msgspec
from property.naive_books import LABEL, Books
from property.naive_calendar import SECOND

from engine.core.messages import AnyOutcome, Cooling, Hold, Revoke, Revoked
from engine.core.plan import Guard, Plan


class GuardRules(Books):
    """Predicts which guards a hold sets off, and what is told then."""

    def __init__(self) -> None:
        super().__init__()
        self.came: list[tuple[int, dict[str, str]]] = []
        self.counts_from: dict[str, int] = {}  # guard -> the first of `came` that it looks at
        self.set_off_before: dict[tuple[str, str], int] = {}  # guard, value -> likewise, since it went off
        self.cooling: dict[tuple[str, str], tuple[int, str]] = {}  # label, value -> until, guard
        self.restored: list[str] = []  # what the newest restore undid

    def guards(self) -> dict[str, Guard]:
        return guards_of(self.plan)

    def plan_guards(self, plan: Plan) -> None:
        """A guard that is new or reads otherwise than before begins to count."""
        before = self.guards()
        for name, guard in guards_of(plan).items():
            if before.get(name) != guard:
                self.counts_from[name] = len(self.came)

    def sets_off(self, ask: Hold, action: str) -> list[str]:
        return [name for name, guard in self.guards().items() if guard.action == action and self._over(name, ask)]

    def _over(self, name: str, ask: Hold) -> bool:
        guard, value = self.guards()[name], ask.labels.get(self.guards()[name].label)
        if value is None or (guard.distinct is not None and guard.distinct not in ask.labels):
            return False
        first = max(self.counts_from[name], self.set_off_before.get((name, value), 0))
        counted = [
            labels for at, labels in [*self.came[first:], (self.at, ask.labels)]
            if labels.get(guard.label) == value and at > self.at - guard.within_s * SECOND
        ]  # fmt: skip
        if guard.distinct is None:
            return len(counted) > guard.more_than
        return len({labels[guard.distinct] for labels in counted if guard.distinct in labels}) > guard.more_than

    def stopped_by_guards(self, ask: Hold) -> AnyOutcome | None:
        for name in self.sets_off(ask, "revoke"):
            guard = self.guards()[name]
            value, what = ask.labels[guard.label], f"values of {guard.distinct}" if guard.distinct else "holds"
            reason = f"guard {name}: more than {guard.more_than} {what} within {guard.within_s} s"
            self.revoked[guard.label, value] = Revoke(id="", label=guard.label, value=value, reason=reason)
            self._begin_again(name, value)
            return Revoked(id=ask.id, label=guard.label, value=value, reason=reason, fired=[name])
        for name in self.sets_off(ask, "cool"):
            guard = self.guards()[name]
            value, until = ask.labels[guard.label], self.at + guard.for_s * SECOND
            self.cooling[guard.label, value] = until, name
            self._begin_again(name, value)
            return Cooling(id=ask.id, label=guard.label, until=until, value=value, guard=name, fired=[name])
        return None

    def _begin_again(self, name: str, value: str) -> None:
        self.set_off_before[name, value] = len(self.came)

    def came_to_the_budgets(self, ask: Hold) -> list[str]:
        """It counts, but not for the guards that it sets off now. Their names."""
        fired = self.sets_off(ask, "alert")
        self.came.append((self.at, ask.labels))
        for name in fired:
            self._begin_again(name, ask.labels[self.guards()[name].label])
        return fired

    def cooled(self, id_: str, labels: dict[str, str]) -> Cooling | None:
        for label in sorted(labels):
            until, guard = self.cooling.get((label, labels[label]), (0, ""))
            if self.at < until:
                return Cooling(id=id_, label=label, until=until, value=labels[label], guard=guard)
        return None

    def warm(self, label: str, value: str) -> bool:
        """End a cooling, if there is one."""
        until, _ = self.cooling.pop((label, value), (0, ""))
        return self.at < until


def guards_of(plan: Plan | None) -> dict[str, Guard]:
    return {} if plan is None or isinstance(plan.guards, msgspec.UnsetType) else plan.guards


def guards_are_sound(plan: Plan) -> bool:
    if isinstance(plan.guards, msgspec.UnsetType):
        return True
    return 1 <= len(plan.guards) <= 16 and all(guard_is_sound(guard) for guard in plan.guards.values())


def guard_is_sound(guard: Guard) -> bool:
    month = 31 * 24 * 3600
    labels = [guard.label] if guard.distinct is None else [guard.label, guard.distinct]
    cools = 1 <= guard.for_s <= month if guard.action == "cool" else guard.for_s == 0
    return (
        cools and 1 <= guard.more_than <= 1_000 and 1 <= guard.within_s <= month
        and len(set(labels)) == len(labels) and all(LABEL.fullmatch(label) for label in labels)
    )  # fmt: skip
