"""Deciding holds and renewals: what fits, and what to say when it does not. Reads the wallet, changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from engine.core import checks, guards
from engine.core.limits import HOLD_LIFE_S_MAX, MATCHES_MAX
from engine.core.messages import (
    Again,
    Amounts,
    AnyOutcome,
    Closed,
    Conflict,
    Cooling,
    Exhausted,
    Frozen,
    Held,
    Hold,
    Invalid,
    Late,
    Line,
    Option,
    Renew,
    Revoked,
    Unknown,
    Why,
)
from engine.core.periods import Period
from engine.core.plan import Plan
from engine.core.tiers import Ladder, fuller
from engine.core.wallet import NS, HoldRecord, Place, Wallet, attempt

_NOT_COMPARED = ("origin", "cohort")  # labels the edge adds from authentication and may change between two tries
_WORST_FIRST: dict[Why, int] = {"never": 0, "spent": 1, "busy": 2, "tier": 3}


def decide_hold(wallet: Wallet, ask: Hold, at: int) -> AnyOutcome:
    plan = _plan_of(wallet)
    wrong = checks.hold(ask, plan, at) or _unmatched(wallet, ask)
    if wrong is not None:
        return checks.refuse(ask.id, wrong)
    known = _known(wallet, ask, at)
    if known is not None:
        return known
    if at > ask.by:
        return Late(ask.id, ask.by)
    if wallet.revoked or wallet.frozen or wallet.cooling:
        budgets = _budgets(wallet, ask) if wallet.frozen else set()
        stopped = (
            _revoked(wallet, ask.id, ask.labels)
            or _frozen(wallet, ask.id, ask.labels, budgets)
            or _cooling(wallet, ask.id, ask.labels)
        )
        if stopped is not None:
            return stopped
    if not wallet.watches:
        return _afford(wallet, ask, at, plan)
    set_off = _set_off(wallet, ask, at)
    if set_off is not None:
        return set_off
    outcome = _afford(wallet, ask, at, plan)
    fired = [watch.name for watch in guards.gone_off(wallet.watches, ask.labels, at, action="alert")]
    return msgspec.structs.replace(outcome, fired=fired) if fired else outcome


def _afford(wallet: Wallet, ask: Hold, at: int, plan: Plan) -> Held | Exhausted:
    """The first option that the tiers permit and that fits, or why there is none."""
    ladder, last, too_full = wallet.ladder, None, None
    for index, option in enumerate(ask.options):
        places = _places(wallet, option, ask.labels, at)
        tier = 0 if ladder is None or option.grade is None else _judge(wallet, ladder, ask, option, places)
        if isinstance(tier, Exhausted):
            too_full = tier
            continue
        granted = _grant(option, places)
        if granted is not None:
            ttl_s = ask.ttl_s if ask.ttl_s is not None else plan.ttl_s
            lines = {}
            for place in places:
                period, limit = place.period, place.limit
                left = limit - place.used - granted[place.unit]
                lines[place.budget] = Line(period.name, period.start, period.end, limit, left, place.each)
            return Held(ask.id, index, granted, lines, at, at + ttl_s * NS, tier)
        last = option, places
    if last is None:
        assert too_full is not None
        return too_full
    option, places = last
    needs = {**option.amounts, **option.least}
    return _exhausted(wallet, ask.id, [Need(place, needs[place.unit]) for place in places])


def _known(wallet: Wallet, ask: Hold, at: int) -> AnyOutcome | None:
    """What an id that was seen before is told, before anything else is looked at."""
    record = wallet.open.get(ask.id)
    if record is not None:
        if record.expires_at <= at:  # due, but beyond what could lapse before this message
            return Closed(ask.id, "lapsed", record.lapse_charge())
        field = _differs(record.first_ask(), ask)
        return Conflict(ask.id, field) if field else Again(ask.id, record.first, "open")
    record = wallet.provisional.get(ask.id)
    if record is not None:
        return Closed(ask.id, record.state, record.charged)
    closed = wallet.closed.get(ask.id, at)
    if closed is not None and (closed.ended_by is None or ask.by <= closed.ended_by):
        return Closed(ask.id, closed.state, closed.charged)
    if wallet.refused:
        refusal = wallet.refused.get(attempt(ask), at)
        if refusal is not None and not _differs(refusal.ask, ask):
            return Again(ask.id, refusal.first, "refused")
    return None


def _differs(known: Hold | None, ask: Hold) -> str:
    """The first field in which two asks under one id differ, "" if they are the same ask."""
    if known is None:
        return "id"
    if known.options != ask.options:
        return "options"
    if known.ttl_s != ask.ttl_s:
        return "ttl_s"
    if known.on_lapse != ask.on_lapse:
        return "on_lapse"
    return "" if known.labels == ask.labels or _own(known.labels) == _own(ask.labels) else "labels"


def _own(labels: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in labels.items() if name not in _NOT_COMPARED}


def _unmatched(wallet: Wallet, ask: Hold) -> checks.Wrong | None:
    """A label that a matching budget requires, or more matching budgets than one outcome may name."""
    if not wallet.has_required and len(_plan_of(wallet).budgets) <= MATCHES_MAX:
        return None
    for option in ask.options:
        matches = [rule for unit in option.amounts for rule, _ in wallet.matching(unit, ask.labels)]
        if len(matches) > MATCHES_MAX:
            return "labels", f"a hold touches at most {MATCHES_MAX} budgets"
        for unit in option.amounts:
            for rule in wallet.rules.get(unit, ()):
                each = rule.budget.each
                if rule.budget.required and each not in ask.labels and rule.applies(ask.labels):
                    return f"labels.{each}", f"budget {rule.name} requires this label"
    return None


def _budgets(wallet: Wallet, ask: Hold) -> set[str]:
    """Every budget that matches any option."""
    units = dict.fromkeys(unit for option in ask.options for unit in option.amounts)
    return {rule.name for unit in units for rule, _ in wallet.matching(unit, ask.labels)}


def _revoked(wallet: Wallet, id: str, labels: dict[str, str]) -> Revoked | None:
    for label in sorted(labels) if wallet.revoked else ():
        reason = wallet.revoked.get((label, labels[label]))
        if reason is not None:
            return Revoked(id, label, labels[label], reason)
    return None


def _frozen(wallet: Wallet, id: str, labels: dict[str, str], budgets: set[str]) -> Frozen | None:
    if not wallet.frozen:
        return None
    scopes = ["all"]
    scopes += [name for name in _plan_of(wallet).budgets if name in budgets]
    scopes += sorted(budgets - _plan_of(wallet).budgets.keys())
    scopes += sorted(f"{label}={value}" for label, value in labels.items())
    for scope in scopes:
        frost = wallet.frozen.get(scope)
        if frost is not None and (frost.until is None or wallet.at < frost.until):
            return Frozen(id, scope, frost.reason, frost.until)
    return None


def _cooling(wallet: Wallet, id: str, labels: dict[str, str]) -> Cooling | None:
    for label in sorted(labels) if wallet.cooling else ():
        cooled = wallet.cooling.get((label, labels[label]))
        if cooled is not None and wallet.at < cooled.until:
            return Cooling(id, label, cooled.until, labels[label], cooled.guard)
    return None


def _set_off(wallet: Wallet, ask: Hold, at: int) -> Revoked | Cooling | None:
    """What a guard says that this hold sets off: to revoke comes before to cool, then plan order."""
    for watch in guards.gone_off(wallet.watches, ask.labels, at, action="revoke"):
        label = watch.guard.label
        return Revoked(ask.id, label, ask.labels[label], watch.reason(), [watch.name])
    for watch in guards.gone_off(wallet.watches, ask.labels, at, action="cool"):
        label, until = watch.guard.label, at + watch.guard.for_s * NS
        return Cooling(ask.id, label, until, ask.labels[label], watch.name, [watch.name])
    return None


def _places(wallet: Wallet, option: Option, labels: dict[str, str], at: int) -> list[Place]:
    if len(option.amounts) == 1:
        return wallet.places(next(iter(option.amounts)), labels, at)
    return [place for unit in option.amounts for place in wallet.places(unit, labels, at)]


def _grant(option: Option, places: Sequence[Place]) -> Amounts | None:
    """What this option gets: its amounts, or with `least` what is left; None if it does not fit."""
    if not option.least:
        for place in places:
            amount = option.amounts[place.unit]
            if amount and place.used + amount > place.limit:
                return None
        return option.amounts
    granted = dict(option.amounts)
    for place in places:
        if granted[place.unit] > 0:
            granted[place.unit] = max(0, min(granted[place.unit], place.room))
    fits = all(amount >= option.least.get(unit, option.amounts[unit]) for unit, amount in granted.items())
    return granted if fits else None


def _judge(wallet: Wallet, ladder: Ladder, ask: Hold, option: Option, places: Sequence[Place]) -> int | Exhausted:
    """The tier under which this option is permitted, 0 if it takes nothing; or the refusal by the fullest meter."""
    fullest: Place | None = None
    for place in places if len(option.amounts) == 1 else sorted(places, key=_plan_order(wallet)):
        if option.amounts[place.unit] and (fullest is None or fuller(place, fullest)):
            fullest = place
    if fullest is None:
        return 0
    tier = ladder.grade(fullest, ask.labels.get("cohort"))
    if tier is not None and option.grade is not None and option.grade >= tier:
        return tier
    return _refusal(ask.id, fullest, why="tier", fits=0, tier=tier)


def _plan_order(wallet: Wallet) -> Callable[[Place], int]:
    order = {name: index for index, name in enumerate(wallet.named)}  # a renewal may be bound to a budget that is gone
    return lambda place: order.get(place.budget, len(order))


class Need(msgspec.Struct, frozen=True, gc=False):
    """What one budget would have to hold. A renewal's own share does not count against it: `own` is what it holds
    now, `granted` what it may spend already."""

    place: Place
    amount: int
    own: int = 0
    granted: int = 0

    @property
    def refused(self) -> bool:
        return self.amount > 0 and self.place.used - self.own + self.amount > self.place.limit

    @property
    def why(self) -> Why:
        if self.amount > self.place.limit:
            return "never"
        return "spent" if self.place.base + self.amount > self.place.limit else "busy"

    @property
    def fits(self) -> int:
        """The largest amount this budget would have granted."""
        return self.granted + max(0, self.place.room)


def _exhausted(wallet: Wallet, id: str, needs: Sequence[Need]) -> Exhausted:
    """Which budget to speak of: never before spent before busy, then the smallest room, then plan order."""
    refusing = [need for need in needs if need.refused]
    order = _plan_order(wallet)
    spoken = min(refusing, key=lambda need: (_WORST_FIRST[need.why], max(0, need.place.room), order(need.place)))
    fits = min(need.fits for need in refusing if need.place.unit == spoken.place.unit)
    return _refusal(id, spoken.place, why=spoken.why, fits=fits)


def _refusal(id: str, place: Place, *, why: Why, fits: int, tier: int | None = None) -> Exhausted:
    meter = place.meter
    return Exhausted(
        id,
        why,
        place.budget,
        place.unit,
        place.period.name,
        settled=meter.settled if meter is not None else 0,
        held=meter.held if meter is not None else 0,
        extra=meter.extra if meter is not None else 0,
        limit=place.limit,
        remaining=place.room,
        fits=fits,
        resets_at=place.period.end,
        each=place.each,
        tier=tier,
    )


def decide_renew(wallet: Wallet, ask: Renew, at: int) -> AnyOutcome:
    plan = _plan_of(wallet)
    wrong = checks.renew(ask, plan, wallet.scales)
    if wrong is not None:
        return checks.refuse(ask.hold, wrong)
    record = wallet.open.get(ask.hold)
    if record is None:
        return _not_open(wallet, ask, at)
    if record.expires_at <= at:
        return Closed(ask.hold, "lapsed", record.lapse_charge())
    last = record.renewal
    if last is not None and ask.n <= last.n:
        same = ask.n < last.n or (ask.ttl_s, ask.amounts) == (last.ttl_s, last.amounts)
        return Again(ask.hold, record.changed, "open") if same else Conflict(ask.hold, "n")
    for unit, total in ask.amounts.items():
        if unit not in record.granted:
            return Invalid(ask.hold, f"amounts.{unit}", "a renewal brings no new unit")
        if total < record.granted[unit]:
            return Invalid(ask.hold, f"amounts.{unit}", "a renewal names the new total, at least what is granted")
    granted = {**record.granted, **ask.amounts}
    if granted != record.granted:
        bound_to = {bound.meter.budget for bound in record.bound}
        stopped = (
            _revoked(wallet, ask.hold, record.labels)
            or _frozen(wallet, ask.hold, record.labels, bound_to)
            or _cooling(wallet, ask.hold, record.labels)
        )
        refused = stopped or _rise_refused(wallet, record, granted)
        if refused is not None:
            return refused

    ttl_s = ask.ttl_s if ask.ttl_s is not None else plan.ttl_s
    expires_at = max(record.expires_at, min(at + ttl_s * NS, record.at + HOLD_LIFE_S_MAX * NS))
    lines = {}
    for bound in record.bound:
        meter, limit = bound.meter, wallet.limit_now(bound, record.labels)
        remaining = limit - meter.used - _rise(record, granted, meter.unit)
        lines[meter.budget] = Line(meter.period, meter.start, meter.end, limit, remaining, meter.each)
    return Held(ask.hold, record.option, granted, lines, at, expires_at, record.tier, ask.n)


def _not_open(wallet: Wallet, ask: Renew, at: int) -> AnyOutcome:
    record = wallet.provisional.get(ask.hold)
    if record is not None:
        return Closed(ask.hold, record.state, record.charged)
    closed = wallet.closed.get(ask.hold, at)
    return Closed(ask.hold, closed.state, closed.charged) if closed is not None else Unknown(ask.hold)


def _rise(record: HoldRecord, granted: Amounts, unit: str) -> int:
    """By how much the meters of `unit` would hold more under the new totals."""
    progress = record.progress.get(unit, 0)
    held = max(0, record.granted.get(unit, 0) - progress)
    return max(0, granted.get(unit, 0) - progress) - held


def _rise_refused(wallet: Wallet, record: HoldRecord, granted: Amounts) -> Exhausted | None:
    """Judge a larger total as if the hold's own share were not there."""
    needs: list[Need] = []
    for bound in record.bound:
        meter = bound.meter
        progress, old = record.progress.get(meter.unit, 0), record.granted.get(meter.unit, 0)
        if _rise(record, granted, meter.unit) > 0:
            period = Period(meter.period, meter.start, meter.end)
            limit = wallet.limit_now(bound, record.labels)
            place = Place(meter.budget, meter.unit, meter.each, period, limit, meter, meter.used)
            needs.append(Need(place, granted[meter.unit] - progress, max(0, old - progress), max(old, progress)))
    return _exhausted(wallet, record.id, needs) if any(need.refused for need in needs) else None


def _plan_of(wallet: Wallet) -> Plan:
    assert wallet.plan is not None
    return wallet.plan
