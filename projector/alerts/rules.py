"""When somebody should hear of it: the thresholds, apart from the code that compares with them. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from projector.alerts.alert import RULES, RuleName

PERCENTS = (50, 75, 90, 100)
PERCENTS_MAX = 16
PERCENT_MAX = 1_000

BURST_S = 300
BURST_S_MIN, BURST_S_MAX = 1, 24 * 3600
BURST_SLOTS = 60  # a window is counted in sixtieths, in seconds at least
BURSTS_MAX = 16

RUNAWAY_TIMES = 4
RUNAWAY_DAYS = 7
RUNAWAY_DAYS_MIN = 4  # with history; before that, nobody can say what is usual
RUNAWAY_FLOOR_PERCENT = 10  # of the limit: less than that in an hour is never a runaway
RUNAWAYS_MAX = 16

PACE_SLOT_S, PACE_SLOTS = 60, 60  # the pace is that of the last hour

EACH_MAX = 100  # revocations of one guard and day that are alerts each; beyond, powers of ten

OPTIONAL: tuple[RuleName, ...] = tuple(rule for rule in RULES if rule not in ("burst", "runaway", "test"))
"""Rules that are on unless switched off. The two that are left out need a table of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """More than `amount` (as written, in units) spent from a budget within `within_s` seconds."""

    budget: str
    amount: str
    within_s: int = BURST_S

    @property
    def name(self) -> str:
        """Its threshold, as alerts name it."""
        return f"{self.amount}/{self.within_s}s"

    @property
    def slot_s(self) -> int:
        return max(1, -(-self.within_s // BURST_SLOTS))

    @property
    def slots(self) -> int:
        return -(-self.within_s // self.slot_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Runaway:
    """An hour that costs more than four times what the same hour usually does. `freeze`: and the budget is frozen."""

    budget: str
    freeze: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """`off`: rules that raise nothing."""

    percents: tuple[int, ...] = PERCENTS
    bursts: tuple[Burst, ...] = ()
    runaways: tuple[Runaway, ...] = ()
    off: frozenset[str] = frozenset()


def steps(before: int, after: int) -> list[int]:
    """The powers of ten that a count has reached on its way: 1, 10, 100, ... A storm of them is a few alerts."""
    reached, step = [], 1
    while step <= after:
        if step > before:
            reached.append(step)
        step *= 10
    return reached


def each_at_first(before: int, after: int) -> list[int]:
    """Every count up to a limit, beyond it the powers of ten: of what somebody should look at one by one."""
    few = list(range(before + 1, min(after, EACH_MAX) + 1))
    return few + [step for step in steps(before, after) if step > EACH_MAX]


def is_runaway(spent: int, usual: list[int], limit: int) -> bool:
    """Whether an hour's `spent` is one, where the same hour has cost `usual` on the days with history. Exact."""
    if len(usual) < RUNAWAY_DAYS_MIN or spent * 100 <= limit * RUNAWAY_FLOOR_PERCENT:
        return False
    return spent * 2 > RUNAWAY_TIMES * twice_median(usual)


def twice_median(found: list[int]) -> int:
    """The sum of the two in the middle (twice the one, of an odd number): no half is lost."""
    ordered = sorted(found)
    return ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]
