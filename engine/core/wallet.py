"""The wallet's state: the plan, the meters, the open holds, what is remembered. The fold of the stream, nothing else.

Reading it is free for all; only `engine.core.evolve` changes it. `check()` states the invariants, `dump()` the whole
state in canonical bytes: same stream, same bytes, however tolds were grouped.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from engine.core import periods
from engine.core.closed import Closed
from engine.core.guards import Cooled, Watch
from engine.core.memory import Memory
from engine.core.messages import (
    Again,
    Amounts,
    AnyAsk,
    AnyOutcome,
    Frost,
    Held,
    Hold,
    HoldState,
    Lapsed,
    Left,
    Line,
    Option,
    Renew,
    Settle,
    Settled,
)
from engine.core.meter import Meter, MeterKey
from engine.core.plan import Budget, Plan, limit_of
from engine.core.tiers import Ladder

NS = 1_000_000_000
UNCHANGED = (0, 0)
SCHEMA = 5  # of `Wallet.dump`: another shape of the state needs another number


class Gone(msgspec.Struct, frozen=True, gc=False):
    """A period a hold is bound to whose meter is no longer in memory."""

    budget: str
    unit: str
    each: str | None
    period: str


class Bound(msgspec.Struct, gc=False):
    """A meter a hold is bound to, and the limit that was used when it was. `remaining`: what the hold was told then."""

    meter: Meter
    limit: int
    remaining: int = 0


class HoldRecord(msgspec.Struct, gc=False):
    """A hold that is open, or closed provisionally. Strays look the same, with nothing granted.

    `first` and `changed` are sequences of ask messages; `by` the latest deadline seen under the id; `charged` counts
    once the hold is provisional, `progress` the non-final amounts at any time. `ask` and `held` are what was asked and
    first answered, where the record does not show it by itself: `first_ask` and `first_answer` say it in either case.
    """

    id: str
    state: HoldState
    first: int
    changed: int
    at: int
    by: int
    labels: dict[str, str]
    granted: Amounts
    progress: Amounts
    charged: Amounts
    bound: tuple[Bound, ...]
    gone: tuple[Gone, ...] = ()
    ask: Hold | None = None
    option: int = 0
    tier: int = 0
    held: Held | None = None
    renewed: Held | None = None
    renewal: Renew | None = None
    expires_at: int = 0
    charge_on_lapse: bool = True
    forget_at: int = 0

    def takes(self) -> Amounts:
        """What it takes of each unit now: the larger of grant and progress, once closed what was charged."""
        if self.state != "open":
            return self.charged
        if not self.progress:
            return self.granted
        return {unit: max(self.granted.get(unit, 0), self.progress.get(unit, 0)) for unit in self.units()}

    def costs(self) -> Amounts:
        """The settled part of what it takes; units it has cost nothing of may be missing."""
        return self.progress if self.state == "open" else self.charged

    def sums(self) -> tuple[Amounts, Amounts]:
        """`takes` and `costs` at once."""
        if self.state != "open":
            return self.charged, self.charged
        return (self.takes() if self.progress else self.granted), self.progress

    def units(self) -> Iterable[str]:
        """Every unit of the hold: those of the grant, then those that came later."""
        if not self.progress and not self.charged:
            return self.granted.keys()
        return dict.fromkeys((*self.granted, *self.progress, *self.charged)).keys()

    @property
    def stray(self) -> bool:
        """Whether nobody asked before it was settled. A hold is granted something, be it nothing of a unit."""
        return not self.granted

    def first_ask(self) -> Hold | None:
        """What was asked, but for its deadline; None for a stray. To keep it takes 200 bytes a hold."""
        if self.ask is not None or self.stray:
            return self.ask
        return Hold(self.id, [Option(self.granted)], self.by, self.labels)

    def first_answer(self) -> Held | None:
        """What the hold was told, None for a stray. To keep it takes 400 bytes a hold, and few ask again."""
        if self.held is not None or self.stray:
            return self.held
        lines = {
            bound.meter.budget: Line(
                bound.meter.period, bound.meter.start, bound.meter.end, bound.limit, bound.remaining, bound.meter.each
            )
            for bound in self.bound
        }
        return Held(self.id, self.option, self.granted, lines, self.at, self.expires_at, self.tier)

    def lapse_charge(self) -> Amounts:
        """What it costs if it lapses."""
        if self.charge_on_lapse:
            return self.takes()
        return {unit: self.progress.get(unit, 0) for unit in self.units()}


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """A refused attempt, remembered until its `by`, so that asking again is answered alike."""

    ask: Hold
    outcome: AnyOutcome
    first: int
    forget_at: int


class SettleId(msgspec.Struct, frozen=True, gc=False):
    """A settle id of the caller's choice, bound to one hold."""

    hold: str
    forget_at: int


class Heard(msgspec.Struct, frozen=True, gc=False):
    """An admin ask or observation that changed something."""

    ask: AnyAsk
    first: int
    forget_at: int


class Rule(msgspec.Struct, frozen=True, gc=False):
    """A budget of the plan in force, ready for matching. `limit` is None where it depends on the labels."""

    name: str
    budget: Budget
    generation: int
    unit: str
    each: str | None
    where: tuple[tuple[str, str], ...]
    limit: int | None
    calendar: periods.Calendar

    @classmethod
    def of(cls, name: str, budget: Budget, generation: int) -> Rule:
        """The rule of a budget."""
        limit = None if budget.limit_for else budget.limit
        calendar = periods.calendar(budget.per, budget.zone)
        return cls(name, budget, generation, budget.unit, budget.each, tuple(budget.where.items()), limit, calendar)

    def applies(self, labels: Mapping[str, str]) -> bool:
        """Whether every `where` pair is among the labels."""
        for label, value in self.where:  # noqa: SIM110 a generator takes three times as long
            if labels.get(label) != value:
                return False
        return True


class Place(msgspec.Struct, frozen=True, gc=False):
    """Where an amount would go: a budget, one of its periods, the limit for these labels, the meter if there is one."""

    budget: str
    unit: str
    each: str | None
    period: periods.Period
    limit: int
    meter: Meter | None
    used: int

    @property
    def base(self) -> int:
        return self.meter.base if self.meter is not None else 0

    @property
    def room(self) -> int:
        return self.limit - self.used


class Wallet:
    """One wallet as of ask message `upto`, at stream time `at`."""

    def __init__(self, name: str = "main") -> None:
        self.name = name
        self.at = 0
        self.upto = 0
        self.day = ""  # the wallet's day, which the next message at or after its end seals
        self.day_ends = periods.TOTAL.end  # never, before the first plan
        self.horizon = 0  # what ended by then is past the memory; it never moves back, whatever a new plan says
        self.plan: Plan | None = None
        self.plan_digest = ""
        self.plan_first = 0
        self.rules: dict[str, list[Rule]] = {}  # of the plan in force by unit, in plan order
        self.named: dict[str, Rule] = {}  # the same by budget
        self.has_required = False
        self.ladder: Ladder | None = None  # the tiers of the plan in force
        self.scales: dict[str, int] = {}  # every unit any plan had
        self.budget_units: dict[str, str] = {}  # every budget any plan had
        self.generations: dict[str, int] = {}
        self.metering: dict[MeterKey, Meter] = {}
        self.open: dict[str, HoldRecord] = {}
        self.provisional: dict[str, HoldRecord] = {}
        self.closed = Closed()
        self.refused: Memory[Refusal] = Memory(bucket_s=60)  # a refusal is remembered for seconds
        self.settle_ids: Memory[SettleId] = Memory()
        self.heard: Memory[Heard] = Memory()
        self.frozen: dict[str, Frost] = {}
        self.revoked: dict[tuple[str, str], str] = {}
        self.watches: dict[str, Watch] = {}  # the guards of the plan in force, in plan order
        self.cooling: dict[tuple[str, str], Cooled] = {}
        self.warmings: list[tuple[int, str, str]] = []  # heap of the ends of coolings; of one that was restored: stale
        self.expiries: list[tuple[int, str]] = []  # heap; entries of holds that ended or were renewed are stale
        self.forgets: list[tuple[int, str]] = []  # heap of provisional holds, stale in the same way
        self.drops: dict[int, list[MeterKey]] = {}  # meters by the end of their period: a day's all go at once
        self.ends: list[int] = []  # heap of those ends
        self.overdue: set[MeterKey] = set()  # past their time, kept by their holders

    # --- looking ------------------------------------------------------------------------------------------------------

    def moment(self, timestamp: int) -> int:
        """The moment at which a message with this stream timestamp is decided: time never runs backwards."""
        return max(self.at, timestamp)

    def matching(self, unit: str, labels: Mapping[str, str]) -> list[tuple[Rule, str | None]]:
        """The budgets of `unit` that these labels touch, in plan order, each with its `each` value."""
        found: list[tuple[Rule, str | None]] = []
        for rule in self.rules.get(unit, ()):
            each = None if rule.each is None else labels.get(rule.each)
            if (rule.each is None or each is not None) and (not rule.where or rule.applies(labels)):
                found.append((rule, each))
        return found

    def place(self, rule: Rule, each: str | None, labels: Mapping[str, str], at: int) -> Place:
        period = rule.calendar.latest
        if not period.start <= at < period.end:
            period = rule.calendar.at(at)
        meter = self.metering.get((rule.name, rule.generation, each, period.start))
        limit = rule.limit if rule.limit is not None else limit_of(rule.budget, labels)
        used = 0 if meter is None else meter.settled + meter.extra + meter.held
        return Place(rule.name, rule.unit, each, period, limit, meter, used)

    def places(self, unit: str, labels: Mapping[str, str], at: int) -> list[Place]:
        """Where amounts of `unit` go: what `matching` finds, each with its `place`."""
        found: list[Place] = []
        for rule in self.rules.get(unit, ()):
            label = rule.each
            each = None if label is None else labels.get(label)
            if (label is None or each is not None) and (not rule.where or rule.applies(labels)):
                found.append(self.place(rule, each, labels, at))
        return found

    def gone(self, place: Place) -> bool:
        """Whether this period is past the memory. Its meter is dropped or was never made, and is not made anew."""
        return place.meter is None and place.period.end <= self.horizon

    def limit_now(self, bound: Bound, labels: Mapping[str, str]) -> int:
        """The current limit of a bound meter; where the budget is gone or was restarted, the one it was bound with."""
        rule = self.named.get(bound.meter.budget)
        if rule is None or rule.generation != bound.meter.generation:
            return bound.limit
        return rule.limit if rule.limit is not None else limit_of(rule.budget, labels)

    def left(self, record: HoldRecord, changes: Mapping[str, tuple[int, int]]) -> dict[str, Left]:
        """What every bound budget has left after `changes`: unit -> (change of settled, change of held)."""
        told: dict[str, Left] = {}
        for bound in record.bound:
            meter = bound.meter
            settled, held = changes.get(meter.unit, UNCHANGED)
            limit = self.limit_now(bound, record.labels)
            told[meter.budget] = Left(limit, limit - meter.used_after(settled, held))
        return told

    def due(self, at: int, *, most: int) -> list[Lapsed]:
        """The holds that end by time at `at`: earliest expiry first, then by id, at most `most`."""
        self._let_stale_go(at)
        if not self.expiries or self.expiries[0][0] > at:
            return []
        found = heapq.nsmallest(most, {entry for entry in _up_to(self.expiries, at) if self._expires(entry)})
        return [Lapsed(id, self.open[id].lapse_charge()) for _, id in found]

    def next_due(self) -> int | None:
        """When something is due by time alone: a lapse, the end of a freeze, a cooling, the day. None: nothing."""
        self._let_stale_go(periods.TOTAL.end)
        moments = [self.expiries[0][0]] if self.expiries else []
        moments += [frost.until for frost in self.frozen.values() if frost.until is not None]
        while self.warmings and not self._cools(self.warmings[0]):
            heapq.heappop(self.warmings)
        if self.warmings:
            moments.append(self.warmings[0][0])
        if self.plan is not None:
            moments.append(self.day_ends)
        return min(moments, default=None)

    def _let_stale_go(self, at: int) -> None:
        """Take entries of holds that have ended off the front of the heap, or every message would pass over them."""
        expiries = self.expiries
        while expiries and expiries[0][0] <= at and not self._expires(expiries[0]):
            heapq.heappop(expiries)

    def _expires(self, entry: tuple[int, str]) -> bool:
        record = self.open.get(entry[1])
        return record is not None and record.expires_at == entry[0]

    def _cools(self, entry: tuple[int, str, str]) -> bool:
        until, label, value = entry
        cooled = self.cooling.get((label, value))
        return cooled is not None and cooled.until == until

    def recall(self, ask: AnyAsk, outcome: Again) -> AnyOutcome | None:
        """The first answer to an ask that is told `again`, for the caller alone."""
        match ask:
            case Hold() if outcome.state == "refused":
                refusal = self.refused.get(attempt(ask), self.at)
                return refusal.outcome if refusal is not None else None
            case Hold():
                return self.open[ask.id].first_answer()
            case Renew():
                return self.open[ask.hold].renewed
            case Settle():
                return self._standing(ask.hold)
            case _:
                return None

    def _standing(self, hold: str) -> Settled | None:
        record = self.open.get(hold) or self.provisional.get(hold)
        if record is not None:
            charged = {unit: record.costs().get(unit, 0) for unit in record.units()}
            return Settled(id=hold, state=record.state, charged=charged, left=self.left(record, {}))
        closed = self.closed.get(hold, self.at)
        return Settled(id=hold, state=closed.state, charged=closed.charged) if closed is not None else None

    # --- proving ------------------------------------------------------------------------------------------------------

    def meters(self) -> dict[tuple[str, str | None, str], tuple[int, int, int, int]]:
        """(budget, each, period) -> settled, held, extra, figure, of each budget's newest generation."""
        return {
            (m.budget, m.each, m.period): (m.settled, m.held, m.extra, m.figure)
            for m in self.metering.values()
            if m.generation == self.generations[m.budget]
        }

    def check(self) -> None:
        """The invariants of the state. Raises `AssertionError` with the one that is broken."""
        held: dict[MeterKey, int] = {}
        holders: dict[MeterKey, int] = {}
        for record in (*self.open.values(), *self.provisional.values()):
            takes, costs = record.takes(), record.costs()
            for bound in record.bound:
                key, unit = bound.meter.key, bound.meter.unit
                assert self.metering.get(key) is bound.meter, f"{record.id} is bound to a meter that was dropped"
                held[key] = held.get(key, 0) + takes.get(unit, 0) - costs.get(unit, 0)
                holders[key] = holders.get(key, 0) + 1
        for key, meter in self.metering.items():
            assert meter.key == key, f"meter {key} stands under another name"
            assert meter.held == held.get(key, 0), (
                f"held of {key} is {meter.held}, its open holds say {held.get(key, 0)}"
            )
            assert meter.holders == holders.get(key, 0), (
                f"{key} counts {meter.holders} holders, has {holders.get(key, 0)}"
            )
            assert meter.base >= meter.figure, f"base of {key} is below the provider's figure"
            assert meter.held >= 0, f"held of {key} is negative"
            assert meter.extra >= 0, f"extra of {key} is negative"
        assert self.at <= self.day_ends, f"{self.day} is over and was not sealed"
        self._check_records()
        self._check_guards()

    def _check_records(self) -> None:
        waiting = set(self.expiries)
        for id, record in self.open.items():
            assert record.id == id
            assert record.state == "open"
            assert (record.expires_at, id) in waiting, f"{id} would never lapse"
        for id, record in self.provisional.items():
            assert record.id == id
            assert record.state in ("lapsed", "estimated"), f"{id} is provisional in state {record.state}"
        both = self.open.keys() & self.provisional.keys()
        assert not both, f"open and closed at once: {sorted(both)[:3]}"
        for id, closed in self.closed.items(self.at):
            if id in self.open:
                assert closed.ended_by is not None, f"{id} is open although it is closed for good"

    def _check_guards(self) -> None:
        waiting = set(self.warmings)
        for (label, value), cooled in self.cooling.items():
            assert cooled.until > self.at, f"the cooling of a {label} is over and was kept"
            assert (cooled.until, label, value) in waiting, f"the cooling of a {label} would never end"
        for name, watch in self.watches.items():
            for window in watch.windows.values():
                assert 0 < len(window) <= watch.guard.more_than, f"guard {name} should have gone off"

    def dump(self) -> bytes:
        """The whole state in canonical bytes; `core.restore` reads them.

        What derives from it (rules, heaps) is left out. Maps that come from the stream keep the
        order they have there, since a plan's order breaks ties.
        """
        meters = sorted(self.metering.values(), key=_meter_order)
        places = {id(meter): place for place, meter in enumerate(meters)}
        state = {
            "schema": SCHEMA,
            "name": self.name,
            "at": self.at,
            "upto": self.upto,
            "day": self.day,
            "day_ends": self.day_ends,
            "horizon": self.horizon,
            "plan": self.plan,
            "plan_digest": self.plan_digest,
            "plan_first": self.plan_first,
            "scales": self.scales,
            "budget_units": self.budget_units,
            "generations": self.generations,
            "meters": meters,
            "open": _dump_records(self.open, places),
            "provisional": _dump_records(self.provisional, places),
            "closed": self.closed.dump(self.at),
            "refused": self.refused.dump(self.at),
            "settle_ids": self.settle_ids.dump(self.at),
            "heard": self.heard.dump(self.at),
            "frozen": self.frozen,
            "revoked": [(*key, reason) for key, reason in self.revoked.items()],
            "watches": [watch.dump() for watch in self.watches.values()],
            "cooling": [(*key, cooled) for key, cooled in self.cooling.items()],
        }
        return msgspec.json.encode(state)


def shows_itself(ask: Hold) -> bool:
    """Whether the record of this hold shows all that was asked: the grant is its one option, and there is no more."""
    if len(ask.options) > 1 or ask.ttl_s is not None or ask.on_lapse is not None:
        return False
    option = ask.options[0]
    return not option.least and option.grade is None and not option.name


def attempt(hold: Hold) -> str:
    """The name of one attempt under a hold's id: refusals are remembered for each `by`."""
    return f"{hold.id} {hold.by}"


def _up_to(heap: list[tuple[int, str]], at: int) -> Iterator[tuple[int, str]]:
    """All entries of a heap that are not after `at`, in no order, without touching it."""
    waiting = [0]
    while waiting:
        index = waiting.pop()
        if index < len(heap) and heap[index][0] <= at:
            yield heap[index]
            waiting += (2 * index + 1, 2 * index + 2)


def _meter_order(meter: Meter) -> tuple[str, int, str, int]:
    return (meter.budget, meter.generation, meter.each or "", meter.start)


def _dump_records(records: Mapping[str, HoldRecord], places: Mapping[int, int]) -> list[dict[str, object]]:
    return [_dump_record(records[id], places) for id in sorted(records)]


def _dump_record(record: HoldRecord, places: Mapping[int, int]) -> dict[str, object]:
    """A hold with its meters by their places among the dumped ones."""
    plain = {name: getattr(record, name) for name in record.__struct_fields__ if name != "bound"}
    return {**plain, "bound": [(places[id(bound.meter)], bound.limit, bound.remaining) for bound in record.bound]}
