"""The arithmetic of one budget in one period. Integers in, integers out; it knows no limit and never judges."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

MeterKey: TypeAlias = tuple[str, int, str | None, int]
"""Budget, its generation (a restart begins a new one), the value of its `each` label, start of the period."""


class Meter(msgspec.Struct, gc=False):
    """`settled` is spent, `held` is promised to open holds, `figure` the highest the provider has said.

    `extra` is the gap between the two ("others on the account"): it only grows, so that `base` is never below the
    figure and spending after an observation comes on top. `holders` counts the open and provisional holds bound here.
    """

    budget: str
    generation: int
    each: str | None
    unit: str
    period: str
    start: int
    end: int
    settled: int = 0
    held: int = 0
    figure: int = 0
    extra: int = 0
    as_of: int = 0
    holders: int = 0

    @property
    def key(self) -> MeterKey:
        return (self.budget, self.generation, self.each, self.start)

    @property
    def base(self) -> int:
        return self.settled + self.extra

    @property
    def used(self) -> int:
        return self.settled + self.extra + self.held

    def used_after(self, settled: int, held: int) -> int:
        """What `used` would be if `settled` and `held` changed by this much."""
        spent = self.settled + settled
        extra = max(self.extra, self.figure - spent) if settled < 0 else self.extra
        return spent + extra + self.held + held

    def move(self, settled: int, held: int) -> None:
        """Change both at once. Where settled falls, the provider's figure still stands: the gap grows."""
        self.settled += settled
        self.held += held
        if settled < 0:
            self.extra = max(self.extra, self.figure - self.settled)

    def raised_by(self, figure: int) -> int:
        """How much `base` would rise if the provider said `figure`."""
        return max(self.extra, max(self.figure, figure) - self.settled) - self.extra

    def observe(self, figure: int, *, as_of: int) -> None:
        """Take the provider's figure. It raises, it never lowers."""
        self.extra += self.raised_by(figure)
        if figure >= self.figure:
            self.figure, self.as_of = figure, max(self.as_of, as_of)
