"""The naive auditor on what operators and observers ask, and on plans. Written from the rules, not from the engine."""

from __future__ import annotations

from typing import TypeAlias
from zoneinfo import available_timezones

from msgspec import UNSET
from msgspec.structs import replace
from property.naive_books import LABEL, Bound, invalid, is_amount, is_id, limit_of
from property.naive_calendar import SECOND, period_at, period_named
from property.naive_guards import GuardRules, guards_are_sound
from property.naive_seals import DayRules
from property.naive_tiers import tiers_are_sound

from engine.core import limits
from engine.core.messages import (
    Adjust,
    Adjusted,
    Again,
    AnyOutcome,
    ApplyPlan,
    Clock,
    Conflict,
    Done,
    Dropped,
    Freeze,
    Invalid,
    KnownUse,
    Loss,
    Observe,
    Observed,
    Planned,
    Raised,
    Restore,
    Revoke,
    Thaw,
)  # fmt: skip
from engine.core.plan import Budget, Plan, PlanError, digest, validate

ZONES = available_timezones()  # 5 ms a look
UTC_DAY_SOURCES = ("cloudflare", "openai", "anthropic", "openrouter")

Operated: TypeAlias = Observe | Adjust | Freeze | Thaw | Revoke | Restore | Loss | Clock


class OperatorRules(DayRules, GuardRules):
    """Predicts what is told of everything that is neither hold, settle nor renewal."""

    def operate(self, ask: Operated) -> AnyOutcome:
        if not is_id(ask.id) or not is_told_right(ask):
            return invalid(ask.id)
        if (known := self._known(ask)) is not None:
            return known
        match ask:
            case Observe():
                outcome: AnyOutcome = self._observe(ask)
            case Adjust():
                outcome = self._adjust(ask)
            case Loss():
                outcome = self._lose(ask)
            case Clock():
                outcome = Done(id=ask.id)
            case Freeze():
                outcome = self._freeze(ask)
            case Thaw():
                outcome = self._thaw(ask)
            case Revoke():
                outcome = self._revoke(ask)
            case Restore():
                warmed, stood = self.warm(ask.label, ask.value), self.revoked.pop((ask.label, ask.value), None)
                self.restored = [*["a cooling that was restored"] * warmed, *of_guard(stood)]
                outcome = Done(id=ask.id) if warmed else self._lift(ask.id, stood)
        if not isinstance(outcome, Invalid | Again):
            self._remember(ask)
        return outcome

    def _known(self, ask: Operated | ApplyPlan) -> AnyOutcome | None:
        if (known := self.done.get((type(ask).__name__, ask.id))) is None:
            return None
        if known[0] == ask:
            return Again(id=ask.id, first=known[1])
        return Conflict(id=ask.id, field="id")

    def _remember(self, ask: Operated | ApplyPlan) -> None:
        self.done[type(ask).__name__, ask.id] = (ask, self.seq, self.remembered_until())

    def _named_meter(self, ask: Observe | Adjust | KnownUse) -> tuple[Bound, dict[str, str]] | None:
        """The meter of the newest generation that the ask names, if its period has begun."""
        assert self.plan is not None
        budget = self.plan.budgets.get(ask.budget)
        if budget is None or (budget.each is None) != (ask.each is None):
            return None
        period = period_named(ask.period, budget.per, budget.zone)
        if period is None or period[1] > self.at:
            return None
        labels = {} if budget.each is None or ask.each is None else {budget.each: ask.each}
        key = (ask.budget, self.generation[ask.budget], ask.each, ask.period)
        return Bound(key, budget.unit, period[1], period[2], limit_of(budget, labels)), labels

    def _observe(self, ask: Observe) -> AnyOutcome:
        named = self._named_meter(ask)
        if named is None or ask.as_of > self.at:
            return invalid(ask.id)
        bound, labels = named
        assert self.plan is not None
        source = self.plan.budgets[ask.budget].source
        if source is None or ask.source != source or (source in UTC_DAY_SOURCES and not is_utc_day(bound)):
            return invalid(ask.id)
        if not self.make(bound.key, bound.end):
            return invalid(ask.id)
        meter, base = self.alive[bound.key], self.base(bound.key)
        meter.figure = max(meter.figure, ask.figure)
        self.raise_extras()
        return Observed(id=ask.id, raised_by=self.base(bound.key) - base, line=self.line(bound, labels))

    def _adjust(self, ask: Adjust) -> AnyOutcome:
        named = self._named_meter(ask)
        if named is None:
            return invalid(ask.id)
        bound, labels = named
        if not self.make(bound.key, bound.end):
            dropped = Dropped(budget=ask.budget, period=ask.period, amount=ask.amount, each=ask.each)
            return Adjusted(id=ask.id, dropped=dropped)
        self.alive[bound.key].adjusted += ask.amount
        self.raise_extras()
        return Adjusted(id=ask.id, line=self.line(bound, labels))

    def _lose(self, ask: Loss) -> AnyOutcome:
        assert self.plan is not None
        named = [self._named_meter(use) for use in ask.used]
        if any(name not in self.plan.budgets for name in ask.freeze):
            return invalid(ask.id)
        meters = []
        for each in named:
            if each is None or (each[0].key not in self.alive and each[0].end <= self.horizon):
                return invalid(ask.id)
            meters.append(each)
        raised = []
        for use, (bound, labels) in zip(ask.used, meters, strict=True):
            self.make(bound.key, bound.end)
            by = max(0, use.used - self.used(bound.key))
            self.alive[bound.key].extra += by
            raised.append(Raised(budget=use.budget, by=by, line=self.line(bound, labels)))
        ends = {name: self._freeze_for_the_period(ask, name) for name in ask.freeze}
        return Done(id=ask.id, raised=raised, frozen=ends)

    def _freeze_for_the_period(self, ask: Loss, name: str) -> int | None:
        assert self.plan is not None
        budget = self.plan.budgets[name]
        _, _, end = period_at(self.at, budget.per, budget.zone)
        until = None if budget.per == "total" else end
        known = self.frozen.get(name)
        if known is not None and (known.until is None or (until is not None and known.until >= until)):
            return known.until
        self.frozen[name] = Freeze(id=ask.id, scope=name, reason=ask.reason, until=until)
        return until

    def _freeze(self, ask: Freeze) -> AnyOutcome:
        if not self._is_scope(ask.scope):
            return invalid(ask.id)
        self.frozen[ask.scope] = ask
        return Done(id=ask.id)

    def _thaw(self, ask: Thaw) -> AnyOutcome:
        if ask.scope not in self.frozen and not self._is_scope(ask.scope):
            return invalid(ask.id)
        return self._lift(ask.id, self.frozen.pop(ask.scope, None))

    def _is_scope(self, scope: str) -> bool:
        assert self.plan is not None
        label, equals, value = scope.partition("=")
        return scope == "all" or scope in self.plan.budgets or bool(equals and LABEL.fullmatch(label) and value)

    def _revoke(self, ask: Revoke) -> AnyOutcome:
        if (ask.label, ask.value) in self.revoked:
            return Again(id=ask.id, first=0)
        self.revoked[ask.label, ask.value] = ask
        return Done(id=ask.id)

    @staticmethod
    def _lift(id_: str, stood: Freeze | Revoke | None) -> AnyOutcome:
        return Again(id=id_, first=0) if stood is None else Done(id=id_)

    def apply(self, ask: ApplyPlan) -> AnyOutcome:
        if not is_id(ask.id):
            return invalid(ask.id)
        if (known := self._known(ask)) is not None:
            return known
        in_force = "" if self.plan is None else digest(self.plan)
        if digest(ask.plan) == in_force:
            return Again(id=ask.id, first=self.planned_at)
        if ask.replaces != in_force:
            return Conflict(id=ask.id, field="replaces")
        if not self._plan_is_sound(ask.plan):
            return invalid(ask.id)
        restarted = [name for name, budget in ask.plan.budgets.items() if self._restarts(name, budget)]
        for name, budget in ask.plan.budgets.items():
            self.generation[name] = self.generation.get(name, 0) + (name in restarted)
            self.unit_of[name] = budget.unit
        self.units.update(ask.plan.units)
        self.plan_days(self.plan, ask.plan)
        self.plan_guards(ask.plan)
        self.plan, self.planned_at = ask.plan, self.seq
        self._remember(ask)
        return Planned(id=ask.id, digest=digest(ask.plan), restarts=restarted)

    def _restarts(self, name: str, budget: Budget) -> bool:
        if name not in self.generation:
            return False
        assert self.plan is not None
        old = self.plan.budgets.get(name)
        return old is None or any(getattr(old, of) != getattr(budget, of) for of in ("per", "zone", "where", "each"))

    def _plan_is_sound(self, plan: Plan) -> bool:
        try:
            validate(replace(plan, tiers=UNSET, guards=UNSET), zone_known=lambda zone: zone in ZONES)
        except PlanError:
            return False
        if not tiers_are_sound(plan) or not guards_are_sound(plan):
            return False
        same_units = all(self.unit_of.get(name, budget.unit) == budget.unit for name, budget in plan.budgets.items())
        return same_units and all(self.units.get(unit, scale) == scale for unit, scale in plan.units.items())


def is_told_right(ask: Operated) -> bool:
    """Whether nothing is wrong with the ask by itself."""
    if isinstance(ask, Observe):
        return is_amount(ask.figure)
    if isinstance(ask, Loss):
        meters = {(use.budget, use.each, use.period) for use in ask.used}
        sound = len(meters) == len(ask.used) <= limits.LOSS_METERS_MAX and all(is_amount(use.used) for use in ask.used)
        return sound and 1 <= ask.from_seq <= ask.to_seq
    if isinstance(ask, Clock):
        return 0 <= ask.start < ask.end <= limits.AMOUNT_MAX
    return not isinstance(ask, Adjust) or abs(ask.amount) <= limits.AMOUNT_MAX


def of_guard(stood: Revoke | None) -> list[str]:
    return ["a revocation by a guard that was restored"] if stood is not None and not stood.id else []


def is_utc_day(bound: Bound) -> bool:
    day = 24 * 3600 * SECOND
    return bound.start % day == 0 and bound.end - bound.start == day
