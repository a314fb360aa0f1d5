"""Who spent what in a day: the costs of its calls by model, user, key and provider.

A cost counts to the day in which its call was held, whenever it was settled. Only so many values of a label are told
apart; what comes beyond that is added up together and said so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from engine.core.messages import Amounts

LABELS = ("model", "user", "key", "provider")
TOP = 20
VALUES_MAX = 50_000


class Spender(msgspec.Struct, gc=False):
    """One value of a label, None for calls without that label: its calls, and what they cost of each unit."""

    value: str | None
    calls: int = 0
    spent: Amounts = msgspec.field(default_factory=dict)


Who: TypeAlias = tuple[Spender, ...]
"""The spender of every label in `LABELS`, of one call."""


class Spenders:
    """The values of every label in `LABELS`."""

    def __init__(self) -> None:
        self._by: dict[str, dict[str | None, Spender]] = {label: {} for label in LABELS}
        self._others: dict[str, Spender] = {label: Spender(None) for label in LABELS}

    @property
    def untold_apart(self) -> list[str]:
        """Labels that had more values than are told apart."""
        return [label for label in LABELS if self._others[label].calls or self._others[label].spent]

    def who(self, labels: Mapping[str, str]) -> Who:
        found: list[Spender] = []
        for label, known in self._by.items():
            value = labels.get(label)
            found.append(known.get(value) or self._of(label, value))
        return tuple(found)

    def call(self, labels: Mapping[str, str]) -> Who:
        """Count a call; whose it is."""
        who = self.who(labels)
        for spender in who:
            spender.calls += 1
        return who

    def charge(self, who: Who, changes: Amounts) -> None:
        for unit, change in changes.items():
            if change:
                for spender in who:
                    spent = spender.spent
                    spent[unit] = spent.get(unit, 0) + change

    def top(self, label: str, unit: str) -> tuple[list[Spender], int, Spender]:
        """The values that spent most of a unit; of how many others, and these added up."""
        spenders = [one for one in self._by[label].values() if one.spent.get(unit)]
        spenders.sort(key=lambda one: (-one.spent[unit], one.value or ""))
        rest = [*spenders[TOP:], *([self._others[label]] if self._others[label].spent.get(unit) else [])]
        other = Spender(None, sum(one.calls for one in rest), {unit: sum(one.spent.get(unit, 0) for one in rest)})
        return spenders[:TOP], len(rest), other

    def units(self) -> list[str]:
        """Every unit that anything was spent of."""
        return sorted({unit for one in self._by[LABELS[0]].values() for unit in one.spent})

    def _of(self, label: str, value: str | None) -> Spender:
        known = self._by[label]
        found = known.get(value)
        if found is None:
            if len(known) >= VALUES_MAX:
                return self._others[label]
            found = known[value] = Spender(value)
        return found
