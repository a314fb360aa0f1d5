"""The naive auditor on holds and renewals: may this be spent? Written from the rules, never from the engine."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace
from property.naive_books import Call, Key, applies, invalid, is_amount, is_id, labels_are_sound, limit_of
from property.naive_calendar import SECOND, period_at
from property.naive_tiers import TierRules

from engine.core import limits
from engine.core.messages import (
    Again,
    Amounts,
    AnyOutcome,
    Closed,
    Conflict,
    Exhausted,
    Frozen,
    Held,
    Hold,
    Late,
    Option,
    Renew,
    Revoked,
    Unknown,
    Why,
)  # fmt: skip
from engine.core.plan import Budget


@dataclass
class Refusing:
    """A budget that does not let a call through. `this`: what was asked of it; `had`: what the call has in it."""

    budget: str
    key: Key
    unit: str
    end: int
    limit: int
    this: int
    had: int = 0


class HoldRules(TierRules):
    """Predicts what is told of a hold or a renewal."""

    def _hold_is_sound(self, ask: Hold) -> bool:
        assert self.plan is not None
        units = {unit for option in ask.options for unit in option.amounts}
        ttl_s = self.plan.ttl_s if ask.ttl_s is None else ask.ttl_s
        return (
            is_id(ask.id)
            and 1 <= len(ask.options) <= limits.OPTIONS_MAX
            and len(units) <= limits.ASK_UNITS_MAX
            and all(self._option_is_sound(option, ask.labels) for option in ask.options)
            and labels_are_sound(ask.labels)
            and self.plan.ttl_s_min <= ttl_s <= self.plan.ttl_s_max
            and ask.by <= self.at + limits.BY_AHEAD_S_MAX * SECOND
            and not any(self._lacks_required(budget, units, ask.labels) for budget in self.plan.budgets.values())
        )

    def _option_is_sound(self, option: Option, labels: dict[str, str]) -> bool:
        assert self.plan is not None
        matching = [budget for unit in option.amounts for budget in self.matching(unit, labels)]
        return (
            bool(option.amounts)
            and (option.grade is None or is_amount(option.grade))
            and all(unit in self.plan.units and is_amount(amount) for unit, amount in option.amounts.items())
            and all(0 <= least <= option.amounts.get(unit, -1) for unit, least in option.least.items())
            and len(matching) <= limits.MATCHES_MAX
        )

    @staticmethod
    def _lacks_required(budget: Budget, units: set[str], labels: dict[str, str]) -> bool:
        missing = budget.each is not None and budget.each not in labels
        return budget.required and missing and budget.unit in units and applies(budget, labels)

    def hold(self, ask: Hold) -> AnyOutcome:
        if not self._hold_is_sound(ask):
            return invalid(ask.id)
        if (known := self._hold_by_id(ask)) is not None:
            return known
        if self.at > ask.by:
            return Late(id=ask.id, by=ask.by)
        refusal = self.barred(ask.id, self._looking_at(ask), ask.labels) or self.stopped_by_guards(ask)
        if refusal is None:
            fired = self.came_to_the_budgets(ask)
            permitted = [option for option in ask.options if self.tier_of(option, ask.labels) is not None]
            for index, option in enumerate(ask.options):
                if option in permitted and (grant := self._fitting(option, ask.labels)) is not None:
                    return replace(self._grant(ask, index, grant), fired=fired)
            too_much = (
                self._too_much(ask, permitted[-1]) if permitted else self.too_full(ask.id, ask.options[-1], ask.labels)
            )
            refusal = replace(too_much, fired=fired)
        others = [(old, seq) for old, seq in self.refused if (old.id, old.by) != (ask.id, ask.by)]
        self.refused = [*others, (ask, self.seq)]
        return refusal

    def _looking_at(self, ask: Hold) -> list[str]:
        """The budgets that match any option, in plan order."""
        assert self.plan is not None
        units = {unit for option in ask.options for unit in option.amounts}
        matching = [name for unit in units for name, _ in self.matching(unit, ask.labels)]
        return [name for name in self.plan.budgets if name in matching]

    def _hold_by_id(self, ask: Hold) -> AnyOutcome | None:
        call = self.calls.get(ask.id)
        if call is not None and call.state == "open" and not self.due(call):
            return self._held_before(ask, call)
        if call is not None and self.due(call):
            return Closed(id=ask.id, state="lapsed", charged=call.on_lapsing())
        if call is not None and not call.lets_in(ask.by):
            return Closed(id=ask.id, state=call.state, charged=dict(call.charged))
        for refused, seq in self.refused:
            if refused.id == ask.id and refused.by == ask.by and compared(refused) == compared(ask):
                return Again(id=ask.id, first=seq, state="refused")
        return None

    @staticmethod
    def _held_before(ask: Hold, call: Call) -> AnyOutcome:
        assert call.ask is not None
        for name in SAME_HOLD:
            if compared(ask)[name] != compared(call.ask)[name]:
                return Conflict(id=ask.id, field=name)
        call.by = max(call.by, ask.by)
        return Again(id=ask.id, first=call.first, state="open")

    def barred(self, id_: str, budgets: list[str], labels: dict[str, str]) -> AnyOutcome | None:
        for label in sorted(labels):
            if (label, labels[label]) in self.revoked:
                reason = self.revoked[label, labels[label]].reason
                return Revoked(id=id_, label=label, value=labels[label], reason=reason)
        for scope in ["all", *budgets, *sorted(f"{label}={value}" for label, value in labels.items())]:
            if scope in self.frozen:
                freeze = self.frozen[scope]
                if freeze.until is None or self.at < freeze.until:
                    return Frozen(id=id_, scope=scope, reason=freeze.reason, until=freeze.until)
        return self.cooled(id_, labels)

    def candidates(self, unit: str, this: int, labels: dict[str, str]) -> list[Refusing]:
        """Every budget that looks at this unit, whether or not it refuses."""
        found = []
        for name, budget in self.matching(unit, labels):
            each = None if budget.each is None else labels[budget.each]
            period, _, end = period_at(self.at, budget.per, budget.zone)
            key = (name, self.generation[name], each, period)
            found.append(Refusing(name, key, unit, end, limit_of(budget, labels), this))
        return found

    def room(self, candidate: Refusing) -> int:
        return candidate.limit - self.used(candidate.key)

    def _fitting(self, option: Option, labels: dict[str, str]) -> Amounts | None:
        grant = {}
        for unit, amount in option.amounts.items():
            rooms = [self.room(candidate) for candidate in self.candidates(unit, amount, labels)]
            if unit in option.least:
                grant[unit] = max(0, min([amount, *rooms]))
                if grant[unit] < option.least[unit]:
                    return None
            else:
                grant[unit] = amount
                if amount > 0 and any(amount > room for room in rooms):
                    return None
        return grant

    def _too_much(self, ask: Hold, last: Option) -> Exhausted:
        refusing = [
            candidate for unit, amount in last.amounts.items()
            for candidate in self.candidates(unit, last.least.get(unit, amount), ask.labels)
            if candidate.this > 0 and self.used(candidate.key) + candidate.this > candidate.limit
        ]  # fmt: skip
        assert self.plan is not None
        order = list(self.plan.budgets)
        return self.exhausted(ask.id, sorted(refusing, key=lambda refused: order.index(refused.budget)))

    def exhausted(self, id_: str, refusing: list[Refusing]) -> Exhausted:
        def own_room(one: Refusing) -> int:
            return max(0, self.room(one))

        told = min(refusing, key=lambda one: (["never", "spent", "busy"].index(self._why(one)), own_room(one)))
        meter = self.alive.get(told.key)
        return Exhausted(
            id=id_, why=self._why(told), budget=told.budget, unit=told.unit, period=told.key[3],
            settled=self.settled_in(told.key), held=self.held_in(told.key), extra=meter.extra if meter else 0,
            limit=told.limit, remaining=self.room(told), resets_at=told.end, each=told.key[2],
            fits=told.had + min(own_room(one) for one in refusing if one.unit == told.unit),
        )  # fmt: skip

    def _why(self, one: Refusing) -> Why:
        if one.this > one.limit:
            return "never"
        return "spent" if self.base(one.key) + one.this > one.limit else "busy"

    def _grant(self, ask: Hold, index: int, grant: Amounts) -> Held:
        assert self.plan is not None
        ttl_s = self.plan.ttl_s if ask.ttl_s is None else ask.ttl_s
        call = Call(
            id=ask.id, at=self.at, first=self.seq, last=self.seq, state="open", labels=ask.labels,
            grant=grant, charged=dict.fromkeys(grant, 0), ask=ask, option=index, granted=tuple(grant), by=ask.by,
            tier=self.tier_of(ask.options[index], ask.labels) or 0,
            expires_at=self.at + ttl_s * SECOND, on_lapse=ask.on_lapse or self.plan.on_lapse,
            bounds=[bound for unit in grant for bound in self.bind(unit, ask.labels, self.at)],
        )  # fmt: skip
        order = list(self.plan.budgets)
        call.bounds.sort(key=lambda bound: order.index(bound.budget))
        self.calls[ask.id] = call
        self.history.append(call)
        return self._held_outcome(call)

    def _held_outcome(self, call: Call) -> Held:
        budgets = {bound.budget: self.line(bound, call.labels) for bound in call.bounds if not bound.gone}
        amounts = {unit: call.grant[unit] for unit in call.granted}
        return Held(
            id=call.id, option=call.option, amounts=amounts, budgets=budgets, at=self.at,
            expires_at=call.expires_at, tier=call.tier, n=call.n,
        )  # fmt: skip

    def _renew_is_sound(self, ask: Renew) -> bool:
        assert self.plan is not None
        ttl_s = self.plan.ttl_s if ask.ttl_s is None else ask.ttl_s
        return (
            is_id(ask.hold)
            and ask.n >= 1
            and self.plan.ttl_s_min <= ttl_s <= self.plan.ttl_s_max
            and all(unit in self.units and is_amount(amount) for unit, amount in ask.amounts.items())
        )

    def renew(self, ask: Renew) -> AnyOutcome:
        if not self._renew_is_sound(ask):
            return invalid(ask.hold)
        call = self.calls.get(ask.hold)
        if call is None:
            return Unknown(id=ask.hold)
        if call.state != "open":
            return Closed(id=call.id, state=call.state, charged=dict(call.charged))
        if self.due(call):
            return Closed(id=call.id, state="lapsed", charged=call.on_lapsing())
        if ask.n <= call.n:
            return self._renewed_before(ask, call)
        if not all(unit in call.granted and total >= call.grant[unit] for unit, total in ask.amounts.items()):
            return invalid(ask.hold)
        larger = {unit: total for unit, total in ask.amounts.items() if total > call.grant[unit]}
        refusal = self._refuse_larger(call, larger) if larger else None
        return refusal or self._renewed(ask, call, larger)

    def _renewed_before(self, ask: Renew, call: Call) -> AnyOutcome:
        last = call.renewal
        assert last is not None
        if ask.n == call.n and (ask.ttl_s, ask.amounts) != (last.ttl_s, last.amounts):
            return Conflict(id=call.id, field="n")
        return Again(id=call.id, first=call.last, state="open")

    def _refuse_larger(self, call: Call, larger: Amounts) -> AnyOutcome | None:
        if barred := self.barred(call.id, [bound.budget for bound in call.bounds], call.labels):
            return barred
        refusing = []
        for bound in call.bounds:
            if bound.unit not in larger:
                continue
            progress = call.progress.get(bound.unit, 0)
            this = max(0, larger[bound.unit] - progress)
            limit, rise = self.limit(bound, call.labels), this - call.held(bound.unit)
            if rise > 0 and self.used(bound.key) + rise > limit:
                had = max(call.grant[bound.unit], progress)
                refusing.append(Refusing(bound.budget, bound.key, bound.unit, bound.end, limit, this, had))
        return self.exhausted(call.id, refusing) if refusing else None

    def _renewed(self, ask: Renew, call: Call, larger: Amounts) -> Held:
        assert self.plan is not None
        ttl_s = self.plan.ttl_s if ask.ttl_s is None else ask.ttl_s
        latest = call.at + limits.HOLD_LIFE_S_MAX * SECOND
        call.expires_at = max(call.expires_at, min(self.at + ttl_s * SECOND, latest))
        call.grant.update(larger)
        call.n, call.renewal, call.last = ask.n, ask, self.seq
        return self._held_outcome(call)


SAME_HOLD = ("options", "ttl_s", "on_lapse", "labels")


def compared(ask: Hold) -> dict[str, object]:
    """What makes two holds the same ask."""
    labels = {label: value for label, value in ask.labels.items() if label not in ("origin", "cohort")}
    return {"options": ask.options, "ttl_s": ask.ttl_s, "on_lapse": ask.on_lapse, "labels": labels}
