"""What calls of a model have come to so far: which part of their grant, and after how long. Facts of the record alone.

From them a guess is made for a call that was never made: it was refused on the record, and in the other world it is
not. A guess says what such calls had cost up to its moment, never what this one would have.
"""

from __future__ import annotations

from fractions import Fraction

import msgspec

from engine.core.amounts import round_up
from engine.core.messages import Amounts

MODELS_MAX = 10_000  # told apart; the others are one


class Habit(msgspec.Struct, gc=False):
    """The sums over calls that have ended: granted and charged by unit, how long they took (ns)."""

    calls: int = 0
    ns: int = 0
    granted: Amounts = msgspec.field(default_factory=dict)
    charged: Amounts = msgspec.field(default_factory=dict)

    def learn(self, granted: Amounts, charged: Amounts, ns: int) -> None:
        self.calls += 1
        self.ns += ns
        for unit, amount in granted.items():
            self.granted[unit] = self.granted.get(unit, 0) + amount
            self.charged[unit] = self.charged.get(unit, 0) + min(amount, charged.get(unit, 0))


class Habits:
    """By model, and of all calls together."""

    def __init__(self) -> None:
        self._all = Habit()
        self._models: dict[str, Habit] = {}

    def learn(self, model: str | None, granted: Amounts, charged: Amounts, ns: int) -> None:
        """A call has ended."""
        self._all.learn(granted, charged, ns)
        if model is not None and (model in self._models or len(self._models) < MODELS_MAX):
            self._models.setdefault(model, Habit()).learn(granted, charged, ns)

    def lasts(self, model: str | None) -> int | None:
        """How long (ns) a call of this model takes, None while nobody knows."""
        habit = self._of(model)
        return habit.ns // habit.calls if habit.calls else None

    def costs(self, model: str | None, granted: Amounts, *, hold_factor: Fraction) -> Amounts:
        """What a call comes to that was granted so much: the mean part of the grant that such calls used, rounded up.

        A grant that is a `hold_factor` too large is not used more for that. All of the grant where nothing is known.
        """
        habit = self._of(model)
        return {unit: self._part(habit, unit, amount, hold_factor) for unit, amount in granted.items()}

    def _part(self, habit: Habit, unit: str, amount: int, hold_factor: Fraction) -> int:
        granted = habit.granted.get(unit, 0)
        if not granted:
            habit, granted = self._all, self._all.granted.get(unit, 0)
        if not granted:
            return amount
        part = Fraction(habit.charged.get(unit, 0), granted) / hold_factor
        return round_up(amount * part.numerator, part.denominator)

    def _of(self, model: str | None) -> Habit:
        return self._models.get(model or "", self._all)
