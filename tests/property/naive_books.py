"""What the naive auditor keeps: every call there ever was, and no running total.

Whatever is settled or held is summed again over all of them at every question.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from property.naive_calendar import SECOND, period_at

from engine.core import limits
from engine.core.messages import Amounts, AnyAsk, Freeze, Hold, HoldState, Invalid, Lapsed, Line, Renew, Revoke
from engine.core.plan import Budget, Plan

ID = re.compile(r"[A-Za-z0-9._:/-]{1,96}", re.ASCII)
LABEL = re.compile(r"[a-z][a-z0-9_.-]{0,31}", re.ASCII)

Key = tuple[str, int, str | None, str]
"""Budget, its generation (one more at every restart), `each` value, period."""


@dataclass
class Meter:
    end: int
    adjusted: int = 0
    figure: int = 0
    extra: int = 0


@dataclass
class Bound:
    """A meter that a call is charged to. `gone`: its period was past the memory, charges to it are only told."""

    key: Key
    unit: str
    start: int
    end: int
    limit: int
    gone: bool = False

    @property
    def budget(self) -> str:
        return self.key[0]


@dataclass
class Call:
    """A hold's whole life, or a stray's. `charged` is what is settled: the progress, while it is open."""

    id: str
    at: int
    first: int
    last: int
    state: HoldState
    labels: dict[str, str]
    grant: Amounts
    charged: Amounts
    bounds: list[Bound]
    ask: Hold | None = None
    option: int = 0
    tier: int = 0
    granted: tuple[str, ...] = ()
    by: int = 0
    expires_at: int = 0
    on_lapse: str = "charge"
    n: int = 0
    renewal: Renew | None = None
    progress: Amounts = field(default_factory=dict)
    forget_at: int = 0
    given_up_by: int | None = None

    def held(self, unit: str) -> int:
        if self.state != "open":
            return 0
        return max(0, self.grant.get(unit, 0) - self.progress.get(unit, 0))

    def worst(self) -> Amounts:
        return {unit: max(grant, self.progress.get(unit, 0)) for unit, grant in self.grant.items()}

    def reported(self) -> Amounts:
        return {unit: self.progress.get(unit, 0) for unit in self.grant}

    def on_lapsing(self) -> Amounts:
        return self.worst() if self.on_lapse == "charge" else self.reported()

    def lets_in(self, by: int) -> bool:
        """Whether it was given up with nothing charged, so that a later attempt may have its id."""
        return self.given_up_by is not None and not any(self.charged.values()) and by > self.given_up_by

    @property
    def provisional(self) -> bool:
        return self.state in ("lapsed", "estimated")


Memory = dict[tuple[str, str], tuple[AnyAsk, int, int]]
"""(Kind, id) -> the ask, the sequence of its message, when it is forgotten."""


class Books:
    """The record, the sums over it, what the passing of time does to it, and which budgets look at what."""

    def __init__(self) -> None:
        self.at = self.seq = self.planned_at = self.horizon = 0
        self.plan: Plan | None = None
        self.units: dict[str, int] = {}
        self.unit_of: dict[str, str] = {}
        self.generation: dict[str, int] = {}
        self.history: list[Call] = []
        self.calls: dict[str, Call] = {}
        self.refused: list[tuple[Hold, int]] = []
        self.settle_ids: dict[str, tuple[str, int]] = {}
        self.done: Memory = {}
        self.frozen: dict[str, Freeze] = {}
        self.revoked: dict[tuple[str, str], Revoke] = {}
        self.alive: dict[Key, Meter] = {}

    def settled_in(self, key: Key) -> int:
        meter = self.alive.get(key)
        return 0 if meter is None else meter.adjusted + sum(
            call.charged.get(bound.unit, 0) for call in self.history for bound in call.bounds
            if bound.key == key and not bound.gone
        )  # fmt: skip

    def held_in(self, key: Key) -> int:
        return sum(call.held(bound.unit) for call in self.history for bound in call.bounds if bound.key == key)

    def base(self, key: Key) -> int:
        return self.settled_in(key) + (self.alive[key].extra if key in self.alive else 0)

    def used(self, key: Key) -> int:
        return self.base(key) + self.held_in(key)

    def raise_extras(self) -> None:
        # Figure minus settled grows only when the figure rises or settled falls: looking every time is the same rule.
        for key, meter in self.alive.items():
            meter.extra = max(meter.extra, meter.figure - self.settled_in(key))

    # --- time ---

    def remembered_until(self) -> int:
        assert self.plan is not None
        return self.at + self.plan.remember_s * SECOND

    def pass_time(self) -> list[Lapsed]:
        at = self.at
        if self.plan is not None:
            self.horizon = max(self.horizon, at - self.plan.remember_s * SECOND)
        self.calls = {id_: call for id_, call in self.calls.items() if call.state == "open" or at < call.forget_at}
        self.refused = [(ask, seq) for ask, seq in self.refused if at <= ask.by]
        self.settle_ids = {id_: bound for id_, bound in self.settle_ids.items() if at < bound[1]}
        self.done = {id_: known for id_, known in self.done.items() if at < known[2]}
        due = sorted((call for call in self.calls.values() if self.due(call)), key=lambda c: (c.expires_at, c.id))
        lapsed = self.lapse_all(due[: limits.LAPSES_MAX])
        self.frozen = {scope: ask for scope, ask in self.frozen.items() if ask.until is None or at < ask.until}
        self.drop_meters()
        return lapsed

    def lapse_all(self, due: list[Call]) -> list[Lapsed]:
        return [self.lapse(call) for call in due]

    def due(self, call: Call) -> bool:
        return call.state == "open" and call.expires_at <= self.at

    def lapse(self, call: Call) -> Lapsed:
        call.charged = call.on_lapsing()
        self.end(call, "lapsed")
        return Lapsed(hold=call.id, charged=dict(call.charged))

    def end(self, call: Call, state: HoldState) -> None:
        call.state, call.last, call.forget_at = state, self.seq, self.remembered_until()
        self.raise_extras()

    def drop_meters(self) -> None:
        needed = {
            bound.key for call in self.calls.values() for bound in call.bounds
            if call.state == "open" or call.provisional
        }  # fmt: skip
        gone = {key for key, meter in self.alive.items() if meter.end <= self.horizon and key not in needed}
        self.alive = {key: meter for key, meter in self.alive.items() if key not in gone}

    # --- budgets ---

    def matching(self, unit: str, labels: dict[str, str]) -> list[tuple[str, Budget]]:
        assert self.plan is not None
        return [
            (name, budget) for name, budget in self.plan.budgets.items()
            if budget.unit == unit and applies(budget, labels) and (budget.each is None or budget.each in labels)
        ]  # fmt: skip

    def bind(self, unit: str, labels: dict[str, str], at: int) -> list[Bound]:
        """The meters that a charge at `at` goes to, made if they were not there."""
        bounds = []
        for name, budget in self.matching(unit, labels):
            each = None if budget.each is None else labels[budget.each]
            period, start, end = period_at(at, budget.per, budget.zone)
            key = (name, self.generation[name], each, period)
            gone = not self.make(key, end)
            bounds.append(Bound(key, unit, start, end, limit_of(budget, labels), gone))
        return bounds

    def make(self, key: Key, end: int) -> bool:
        """Whether the meter is there, or could be made: a period past the memory never comes back."""
        if key not in self.alive and end <= self.horizon:
            return False
        self.alive.setdefault(key, Meter(end))
        return True

    def limit(self, bound: Bound, labels: dict[str, str]) -> int:
        """The limit in force, or the one of the hold where the budget is gone or was restarted."""
        assert self.plan is not None
        budget = self.plan.budgets.get(bound.budget)
        if budget is None or self.generation[bound.budget] != bound.key[1]:
            return bound.limit
        return limit_of(budget, labels)

    def line(self, bound: Bound, labels: dict[str, str]) -> Line:
        limit = self.limit(bound, labels)
        left = limit - self.used(bound.key)
        _, _, each, period = bound.key
        return Line(period=period, start=bound.start, end=bound.end, limit=limit, remaining=left, each=each)


# --- small questions --------------------------------------------------------------------------------------------------


def invalid(id_: str) -> Invalid:
    """An `invalid` whose text is left open."""
    return Invalid(id=id_, field="", why="")


def is_id(text: str) -> bool:
    return ID.fullmatch(text) is not None


def is_amount(amount: int) -> bool:
    return 0 <= amount <= limits.AMOUNT_MAX


def labels_are_sound(labels: dict[str, str]) -> bool:
    return len(labels) <= limits.LABELS_MAX and all(
        LABEL.fullmatch(label) and len(value) <= limits.LABEL_VALUE_CHARS_MAX for label, value in labels.items()
    )


def applies(budget: Budget, labels: dict[str, str]) -> bool:
    return all(labels.get(label) == value for label, value in budget.where.items())


def limit_of(budget: Budget, labels: dict[str, str]) -> int:
    """An entry naming the `each` label wins, else the largest match, else the limit."""
    carried = [f"{label}={value}" for label, value in labels.items()]
    matching = {rule: limit for rule, limit in budget.limit_for.items() if rule in carried}
    own = [limit for rule, limit in matching.items() if rule.split("=")[0] == budget.each]
    return max(own or matching.values(), default=budget.limit)
