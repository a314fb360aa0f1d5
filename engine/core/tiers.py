"""Which grade of answer is still affordable, by how much of a budget is used: the plan's tiers, ready to be looked up.

Integers only: part and whole are multiplied crosswise, so that "up to 50 %" means the smallest part. It knows no hold
and no wallet, and never decides about money.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

import msgspec

from engine.core.plan import TIMES_ONE, UP_TO_FULL, Plan, Tiers

FULL = UP_TO_FULL * TIMES_ONE
"""100 % as thresholds count it, once a cohort's times are multiplied in."""

Steps: TypeAlias = tuple[tuple[int, int], ...]
"""(Threshold, grade), rising."""


class Used(Protocol):
    """A meter as far as tiers look at it."""

    @property
    def used(self) -> int: ...

    @property
    def limit(self) -> int: ...


class Ladder(msgspec.Struct, frozen=True, gc=False):
    """The thresholds of a plan, for everybody and for each cohort that has times of its own."""

    common: Steps
    cohorts: dict[str, Steps]

    def grade(self, meter: Used, cohort: str | None) -> int | None:
        """The least grade that is affordable while `meter` is this full; None: none is."""
        used, limit = _part(meter)
        for threshold, grade in self.common if cohort is None else self.cohorts.get(cohort, self.common):
            if used * FULL <= limit * threshold:
                return grade
        return None


def ladder_of(plan: Plan) -> Ladder | None:
    """The plan's tiers, None if it has none."""
    tiers = plan.tiers
    if isinstance(tiers, msgspec.UnsetType):
        return None
    return Ladder(_steps(tiers, TIMES_ONE), {cohort: _steps(tiers, times) for cohort, times in tiers.times.items()})


def _steps(tiers: Tiers, times: int) -> Steps:
    return tuple((min(tier.up_to * times, FULL), tier.grade) for tier in tiers.steps)


def fuller(one: Used, other: Used) -> bool:
    """Whether a larger part of `one` is used than of `other`."""
    used, limit = _part(one)
    other_used, other_limit = _part(other)
    return used * other_limit > other_used * limit


def _part(meter: Used) -> tuple[int, int]:
    """Used, and of how much. Of a limit of zero all is used, and more than all once something is."""
    return (meter.used, meter.limit) if meter.limit > 0 else (2 if meter.used > 0 else 1, 1)
