"""The other world: a wallet that parts from the record's as the day begins, and is asked the same under another plan.

It is the engine's own `tell` and `decide`. What cannot be the same is decided here, one rule a method, and counted: a
call that was refused there has no real cost, one that is refused here needs none, and a smaller grant caps the cost.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import msgspec

from engine.core import evolve, limits
from engine.core.decide import decide
from engine.core.messages import (
    Amounts,
    AnyAsk,
    AnyOutcome,
    ApplyPlan,
    Conflict,
    Entry,
    Forgotten,
    Held,
    Hold,
    Observe,
    Observed,
    Planned,
    Renew,
    Settle,
    Stray,
    Unknown,
)
from engine.core.meter import Meter
from engine.core.periods import PeriodError, period_named
from engine.core.plan import Plan, digest
from engine.core.tell import tell
from engine.core.wallet import HoldRecord, Wallet
from engine.errors import Misconfigured
from engine.plan_change import describe_change
from projector.audit.facts import Facts
from projector.replay import Answered
from projector.whatif.change import Change
from projector.whatif.habits import Habits

PLAN_ID = "whatif"


class Counted(msgspec.Struct):
    """Where the other world could not simply do as the record did.

    `assumed`: calls whose cost is a guess, and what these cost by unit. `capped`: costs that a smaller grant cut.
    `skipped`: what the record has and this world has no use for, by kind of ask.
    """

    assumed: int = 0
    assumed_amounts: Amounts = msgspec.field(default_factory=dict)
    capped: int = 0
    figures_moved: int = 0
    skipped: dict[str, int] = msgspec.field(default_factory=dict)


class OtherWorld:
    """`wallet` and `facts` as they were when the day began, from then on its own."""

    def __init__(self, wallet: Wallet, facts: Facts, change: Change, habits: Habits) -> None:
        self.wallet, self.facts = wallet, facts
        self.counted = Counted()
        self.changes: list[str] = []  # what the other plan changes, in words
        self._change, self._habits = change, habits
        self._plan = change.plan  # None: plans are those of the record
        self._ends: list[tuple[int, str]] = []  # heap of calls with an assumed cost
        self._assumed: dict[str, int] = {}
        self._answered: Answered | None = None
        self._asks: list[AnyAsk] = []
        self._out: list[AnyOutcome] = []
        self._entry = Entry(wallet.upto, wallet.at)

    def begin_with(self, answered: Answered) -> None:
        """Put the other plan in force, before anything of the day. `answered`: its first message.

        Raises `Misconfigured` where that plan cannot follow the one before.
        """
        self._answered = answered
        if self._plan is None or self.wallet.plan is None:
            return
        if _same(self._plan, self.wallet.plan):
            self._plan = None
            return
        self.changes = _changes(self.wallet.plan, self._plan)
        ask = ApplyPlan(PLAN_ID, self._plan, self.wallet.plan_digest)
        outcome = self._replan(ask)
        evolve.evolve(self.wallet, ask, outcome)
        self._note([ask], [outcome])

    # --- one message --------------------------------------------------------------------------------------------------

    def begin(self, answered: Answered) -> list[AnyOutcome]:
        """The next message: what is due by then happens. The settlements that were assumed."""
        stored = answered.stored
        self._answered = answered
        assumed = self._settle_assumed(answered.entry.at)
        asks: list[AnyAsk] | None = None if answered.asks is None else []
        self._entry = tell(self.wallet, seq=stored.seq, ts=stored.ts, asks=asks, skipped=answered.skipped)
        self._asks, self._out = [], list(self._entry.out)
        return assumed

    def ask(self, ask: AnyAsk, was: AnyOutcome, real: Wallet) -> AnyOutcome | None:
        """The next ask of it: what it comes to here, None if it has no place here. `real`: the record's wallet."""
        here = self._here(ask, was, real)
        if here is None:
            self._skip(ask)
            return None
        outcome = self._replan(here) if isinstance(here, ApplyPlan) and here is not ask else self._decide(here)
        if isinstance(ask, Settle | Renew) and _has_no_place(outcome, was):
            self._skip(ask)
            return None
        evolve.evolve(self.wallet, here, outcome)
        if isinstance(ask, Hold):
            self._guess(ask, was, outcome)
        self._asks.append(here)
        self._out.append(outcome)
        return outcome

    def end(self) -> None:
        """All asks of it are decided."""
        assert self._answered is not None
        asks = None if self._answered.asks is None else self._asks
        entry = msgspec.structs.replace(self._entry, out=self._out)
        self.facts.fold(msgspec.structs.replace(self._answered, asks=asks, entry=entry))

    def _decide(self, ask: AnyAsk) -> AnyOutcome:
        return decide(self.wallet, ask, self.wallet.at)

    def _skip(self, ask: AnyAsk) -> None:
        kind = str(ask.__struct_config__.tag)
        self.counted.skipped[kind] = self.counted.skipped.get(kind, 0) + 1

    def _note(self, asks: Sequence[AnyAsk], out: Sequence[AnyOutcome]) -> None:
        """Something that happens here between two messages."""
        assert self._answered is not None
        entry = Entry(self.wallet.upto, self.wallet.at, [], list(out))
        self.facts.fold(msgspec.structs.replace(self._answered, asks=list(asks), entry=entry))

    # --- the same ask here --------------------------------------------------------------------------------------------

    def _here(self, ask: AnyAsk, was: AnyOutcome, real: Wallet) -> AnyAsk | None:
        match ask:
            case Hold():
                return self._change.hold(ask)
            case Renew():
                return self._change.renew(ask, self._model(ask.hold, {}, real))
            case Settle():
                return self._settle(ask, real)
            case Observe() if isinstance(was, Observed):
                return self._observe(ask, real)
            case ApplyPlan():
                return self._planned(ask, was)
            case _:
                return ask

    def _planned(self, ask: ApplyPlan, was: AnyOutcome) -> ApplyPlan | None:
        """The other plan stays in force; of a wallet that had none as the day began, it stands for the first."""
        if self._plan is None:
            return ask
        if self.wallet.plan is not None or not isinstance(was, Planned):
            return None
        if _same(self._plan, ask.plan):
            self._plan = None
            return ask
        self.changes = _changes(ask.plan, self._plan)
        return msgspec.structs.replace(ask, plan=self._plan)

    def _replan(self, ask: ApplyPlan) -> AnyOutcome:
        outcome = self._decide(ask)
        if not isinstance(outcome, Planned):
            field, why = getattr(outcome, "field", "plan"), getattr(outcome, "why", "it cannot follow the plan before")
            raise Misconfigured(f"the other plan cannot be put in force as the day begins: {field}: {why}")
        return outcome

    def _observe(self, ask: Observe, real: Wallet) -> Observe:
        """Others on the account spend what they did: the figure has our own calls in it, as many as there are here."""
        mine, theirs = _meter(self.wallet, ask), _meter(real, ask)
        moved = (mine.settled if mine is not None else 0) - (theirs.settled if theirs is not None else 0)
        if not moved:
            return ask
        self.counted.figures_moved += 1
        return msgspec.structs.replace(ask, figure=max(0, min(limits.AMOUNT_MAX, ask.figure + moved)))

    def _settle(self, ask: Settle, real: Wallet) -> Settle:
        model = self._model(ask.hold, ask.labels, real)
        here = self._change.settle(ask, model)
        mine, theirs = _record(self.wallet, ask.hold), _record(real, ask.hold)
        if mine is None or theirs is None or mine.ask is None or theirs.ask is None or ask.release:
            return here
        if (mine.option, mine.granted) == (theirs.option, self._change.held(theirs.granted, model)):
            return here
        if mine.granted.keys() != theirs.granted.keys():
            return msgspec.structs.replace(here, amounts=self._guessed(mine)) if ask.final else here
        capped = {
            unit: min(amount, mine.granted[unit]) if _within(ask.amounts, unit, theirs) else amount
            for unit, amount in here.amounts.items()
        }
        if ask.final and capped != here.amounts:
            self.counted.capped += 1
        return msgspec.structs.replace(here, amounts=capped)

    def _model(self, hold: str, labels: dict[str, str], real: Wallet) -> str | None:
        known = _record(self.wallet, hold) or _record(real, hold)
        return (known.labels if known is not None else labels).get("model")

    # --- calls that were never made -----------------------------------------------------------------------------------

    def _guess(self, ask: Hold, was: AnyOutcome, outcome: AnyOutcome) -> None:
        """A call that is served here alone ends when such calls do; one that is served there too ends as it did."""
        if isinstance(was, Held):
            self._assumed.pop(ask.id, None)
            return
        if isinstance(outcome, Held):
            lasts = self._habits.lasts(ask.labels.get("model"))
            last = outcome.expires_at - 1
            ends = last if lasts is None else min(last, outcome.at + lasts)
            self._assumed[ask.id] = ends
            heapq.heappush(self._ends, (ends, ask.id))

    def _settle_assumed(self, at: int) -> list[AnyOutcome]:
        settled: list[AnyOutcome] = []
        while self._ends and self._ends[0][0] <= at:
            ends, id = heapq.heappop(self._ends)
            if self._assumed.get(id) != ends:
                continue
            del self._assumed[id]
            record = self.wallet.open.get(id)
            if record is None:
                continue
            ask = Settle(id, self._guessed(record))
            outcome = self._decide(ask)
            evolve.evolve(self.wallet, ask, outcome)
            self._note([ask], [outcome])
            settled.append(outcome)
        return settled

    def _guessed(self, record: HoldRecord) -> Amounts:
        amounts = record.granted
        if self._change.assume == "mean":
            model = record.labels.get("model")
            amounts = self._habits.costs(model, amounts, hold_factor=self._change.hold_factor)
        self.counted.assumed += 1
        for unit, amount in amounts.items():
            self.counted.assumed_amounts[unit] = self.counted.assumed_amounts.get(unit, 0) + amount
        return amounts


def _has_no_place(outcome: AnyOutcome, was: AnyOutcome) -> bool:
    """Whether it speaks of a call that was not made here, or that an assumed cost has ended."""
    return isinstance(outcome, Stray | Forgotten | Unknown | Conflict) and not isinstance(was, type(outcome))


def _same(plan: Plan, known: Plan) -> bool:
    """Whether both decide alike, whatever zone data they were written for."""
    return digest(msgspec.structs.replace(plan, tzdata=known.tzdata)) == digest(known)


def _changes(known: Plan, plan: Plan) -> list[str]:
    return describe_change(known, msgspec.structs.replace(plan, tzdata=known.tzdata))


def _record(wallet: Wallet, hold: str) -> HoldRecord | None:
    return wallet.open.get(hold) or wallet.provisional.get(hold)


def _within(amounts: Amounts, unit: str, record: HoldRecord) -> bool:
    """Whether a call kept to its grant. One that did not would not have kept to another."""
    return unit in record.granted and amounts[unit] <= record.granted[unit]


def _meter(wallet: Wallet, ask: Observe) -> Meter | None:
    rule = wallet.named.get(ask.budget)
    if rule is None:
        return None
    try:
        period = period_named(ask.period, per=rule.budget.per, zone=rule.budget.zone)
    except PeriodError:
        return None
    return wallet.metering.get((rule.name, rule.generation, ask.each, period.start))
