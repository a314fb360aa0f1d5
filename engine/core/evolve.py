"""evolve(): what was told has happened. It touches the wallet and never judges, so it never refuses.

Everything it needs stands in the ask, the outcome and the state; it does not match budgets or compare with limits.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

import msgspec

from engine.core import guards, periods
from engine.core.closed import ClosedRecord
from engine.core.messages import (
    Adjust,
    Adjusted,
    Again,
    Amounts,
    AnyAsk,
    AnyOutcome,
    ApplyPlan,
    Clock,
    Cooling,
    Done,
    Dropped,
    Exhausted,
    Freeze,
    Frost,
    Frozen,
    Held,
    Hold,
    HoldState,
    Lapsed,
    Line,
    Loss,
    Observe,
    Observed,
    Planned,
    Renew,
    Restore,
    Revoke,
    Revoked,
    Settle,
    Settled,
    Stray,
    Thaw,
)
from engine.core.meter import Meter, MeterKey
from engine.core.plan import restarts
from engine.core.tiers import ladder_of
from engine.core.wallet import (
    NS,
    Bound,
    Gone,
    Heard,
    HoldRecord,
    Refusal,
    Rule,
    SettleId,
    Wallet,
    attempt,
    shows_itself,
)

NOTHING: Amounts = {}
STALE_ENTRIES_SPARE = 1_024  # a heap is rebuilt when it has this many more entries than twice its live ones


def begin(wallet: Wallet, *, seq: int, at: int) -> None:
    """A new ask message: forget what has aged out. Lapses follow, then `settle_in`."""
    wallet.upto, wallet.at = seq, at
    if wallet.plan is not None:
        wallet.horizon = max(wallet.horizon, at - wallet.plan.remember_s * NS)
    while wallet.forgets and wallet.forgets[0][0] <= at:
        forget_at, id = heapq.heappop(wallet.forgets)
        record = wallet.provisional.get(id)
        if record is not None and record.forget_at == forget_at:
            del wallet.provisional[id]
            for bound in record.bound:
                bound.meter.holders -= 1
    for memory in (wallet.closed, wallet.refused, wallet.settle_ids, wallet.heard):
        memory.let_go(at)


def lapse(wallet: Wallet, lapsed: Lapsed) -> None:
    """A hold ended by time."""
    record = wallet.open.pop(lapsed.hold)
    _become(record, state="lapsed", charged=lapsed.charged)
    _remember_provisional(wallet, record)


def settle_in(wallet: Wallet) -> None:
    """After the lapses, which end freezes, coolings, the day, and meters that have no holders: all that is over."""
    if wallet.at >= wallet.day_ends:
        _begin_day(wallet)
    if wallet.frozen:
        wallet.frozen = {s: f for s, f in wallet.frozen.items() if f.until is None or f.until > wallet.at}
    while wallet.warmings and wallet.warmings[0][0] <= wallet.at:
        until, label, value = heapq.heappop(wallet.warmings)
        cooled = wallet.cooling.get((label, value))
        if cooled is not None and cooled.until == until:
            del wallet.cooling[label, value]
    for watch in wallet.watches.values():
        watch.let_go(wallet.at)
    for key in [key for key in wallet.overdue if not wallet.metering[key].holders]:
        wallet.overdue.discard(key)
        del wallet.metering[key]
    while wallet.ends and wallet.ends[0] <= wallet.horizon:
        _drop(wallet, wallet.drops.pop(heapq.heappop(wallet.ends)))


def _drop(wallet: Wallet, keys: Iterable[MeterKey]) -> None:
    """Their period is past the memory. What holds are still bound to stays as long as they."""
    for key in keys:
        if wallet.metering[key].holders:
            wallet.overdue.add(key)
        else:
            del wallet.metering[key]


def _begin_day(wallet: Wallet) -> None:
    assert wallet.plan is not None
    day = periods.period_at(wallet.at, per="day", zone=wallet.plan.zone)
    wallet.day, wallet.day_ends = day.name, day.end


def evolve(wallet: Wallet, ask: AnyAsk, outcome: AnyOutcome) -> None:
    """Take one outcome into the state. Outcomes that changed nothing (invalid, conflict, closed, late ...) pass by."""
    match outcome:
        case Held():
            if type(ask) is Hold:
                _held(wallet, ask, outcome)
                if wallet.watches:
                    guards.count(wallet.watches, ask.labels, wallet.at, fired=outcome.fired)
            else:
                assert isinstance(ask, Renew)
                _renewed(wallet, ask, outcome)
        case Settled():
            assert isinstance(ask, Settle)
            _settled(wallet, ask, outcome)
        case Exhausted() | Frozen() | Cooling() | Revoked():
            if isinstance(ask, Hold):
                wallet.refused.put(attempt(ask), Refusal(ask, outcome, wallet.upto, ask.by + 1))
                _watched(wallet, ask, outcome)
        case Again():
            _asked_again(wallet, ask, outcome)
        case Stray():
            assert isinstance(ask, Settle)
            _stray(wallet, ask, outcome)
        case Observed() | Adjusted() | Planned() | Done():
            _operated(wallet, ask, outcome)
        case _:
            pass


def _watched(wallet: Wallet, ask: Hold, told: Exhausted | Frozen | Cooling | Revoked) -> None:
    """What a refusal is to the guards: one that came to the budgets counts, one that a guard told is its act."""
    match told:
        case Exhausted():
            guards.count(wallet.watches, ask.labels, wallet.at, fired=told.fired)
        case Cooling(fired=[name]):
            wallet.cooling[told.label, told.value] = guards.Cooled(told.until, name)
            heapq.heappush(wallet.warmings, (told.until, told.label, told.value))
            wallet.watches[name].forget(told.value)
        case Revoked(fired=[name]):
            wallet.revoked[told.label, told.value] = told.reason
            wallet.watches[name].forget(told.value)


def _asked_again(wallet: Wallet, ask: AnyAsk, outcome: Again) -> None:
    """Nothing changes but the latest deadline seen under the id."""
    if isinstance(ask, Hold) and outcome.state == "open":
        record = wallet.open[ask.id]
        record.by = max(record.by, ask.by)
    elif isinstance(ask, Settle) and ask.release and ask.by is not None:
        closed = wallet.closed.get(ask.hold, wallet.at)
        if closed is not None and closed.ended_by is not None and closed.ended_by < ask.by:
            wallet.closed.put(ask.hold, msgspec.structs.replace(closed, ended_by=ask.by))


def _operated(wallet: Wallet, ask: AnyAsk, outcome: AnyOutcome) -> None:
    """What an operator or an observer asked for has happened."""
    match ask, outcome:
        case Observe(), Observed():
            _meter(wallet, ask.budget, outcome.line).observe(ask.figure, as_of=ask.as_of)
        case Adjust(), Adjusted():
            if outcome.line is not None:
                _meter(wallet, ask.budget, outcome.line).move(ask.amount, 0)
        case ApplyPlan(), Planned():
            _planned(wallet, ask, outcome)
        case Loss(), Done():
            _lost(wallet, ask, outcome)
        case Clock(), Done():
            pass  # it changed when earlier messages were decided
        case ((Freeze() | Thaw() | Revoke() | Restore()), Done()):
            _switched(wallet, ask)
        case _:
            raise AssertionError(f"{type(outcome).__name__} is no answer to {type(ask).__name__}")
    forget_at = _forget_at(wallet)
    wallet.heard.put(f"{ask.__struct_config__.tag} {ask.id}", Heard(ask, wallet.upto, forget_at))


def _held(wallet: Wallet, ask: Hold, told: Held) -> None:
    assert wallet.plan is not None
    on_lapse, upto = ask.on_lapse or wallet.plan.on_lapse, wallet.upto
    amounts, metering, generations = told.amounts, wallet.metering, wallet.generations
    bound = []
    for budget, line in told.budgets.items():
        meter = metering.get((budget, generations[budget], line.each, line.start)) or _meter(wallet, budget, line)
        meter.holders += 1
        meter.held += amounts[meter.unit]
        bound.append(Bound(meter, line.limit, line.remaining))
    held = told if told.tier or told.n or told.fired else None
    known = None if shows_itself(ask) else ask
    # By position, in the order in which the fields are declared: by name a record takes six times as long to make.
    record = HoldRecord(
        ask.id, "open", upto, upto, told.at, ask.by, ask.labels, told.amounts, NOTHING, NOTHING,
        tuple(bound), (), known, told.option, told.tier, held, None, None, told.expires_at, on_lapse == "charge",
    )  # fmt: skip
    wallet.open[ask.id] = record
    wallet.closed.reopen(ask.id)
    _expire(wallet, record)


def _renewed(wallet: Wallet, ask: Renew, told: Held) -> None:
    record = wallet.open[ask.hold]
    record.ask, record.held = record.first_ask(), record.first_answer()
    _become(record, state="open", granted=told.amounts)
    record.renewed, record.renewal, record.changed = told, ask, wallet.upto
    if told.expires_at != record.expires_at:
        record.expires_at = told.expires_at
        _expire(wallet, record)


def _settled(wallet: Wallet, ask: Settle, told: Settled) -> None:
    record = wallet.open.get(ask.hold) or wallet.provisional[ask.hold]
    if told.budgets or told.dropped:
        _bind_all(wallet, record, told.budgets, told.dropped)
    if ask.id:
        _remember_settle_id(wallet, ask)
    record.changed = wallet.upto
    progress = record.progress if ask.final else _highest(record.progress, ask.amounts)
    if told.state == "open":
        _become(record, state="open", progress=told.charged)
    elif told.state in ("lapsed", "estimated"):
        was_open = wallet.open.pop(ask.hold, None) is not None
        _become(record, state=told.state, charged=told.charged, progress=progress)
        if was_open:
            _remember_provisional(wallet, record)
    else:
        if wallet.open.pop(ask.hold, None) is None:
            del wallet.provisional[ask.hold]
        _become(record, state=told.state, charged=told.charged)
        _close(wallet, ask, record)


def _stray(wallet: Wallet, ask: Settle, told: Stray) -> None:
    _remember_settle_id(wallet, ask)
    record = HoldRecord(
        id=ask.hold,
        state="estimated",
        first=wallet.upto,
        changed=wallet.upto,
        at=told.at,
        by=ask.by or 0,
        labels=ask.labels,
        granted=NOTHING,
        progress=NOTHING if ask.final else told.charged,
        charged=NOTHING,
        bound=(),
    )
    _bind_all(wallet, record, told.budgets, told.dropped)
    _become(record, state=told.state, charged=told.charged)
    if told.state == "estimated":
        _remember_provisional(wallet, record)
    else:
        _close(wallet, ask, record)


def _become(
    record: HoldRecord,
    *,
    state: HoldState,
    granted: Amounts | None = None,
    progress: Amounts | None = None,
    charged: Amounts | None = None,
) -> None:
    """Change the hold, and its meters by exactly the difference that makes."""
    took, cost = record.sums()
    record.state = state
    if granted is not None:
        record.granted = granted
    if progress is not None:
        record.progress = progress
    if charged is not None:
        record.charged = charged
    takes, costs = record.sums() if state == "open" else (record.charged, record.charged)
    for bound in record.bound:
        meter = bound.meter
        unit = meter.unit
        settled = costs.get(unit, 0) - cost.get(unit, 0)
        meter.move(settled, takes.get(unit, 0) - took.get(unit, 0) - settled)


def _close(wallet: Wallet, ask: Settle, record: HoldRecord) -> None:
    """The hold has ended exactly: let its meters go and keep only what answers a repeat."""
    for bound in record.bound:
        bound.meter.holders -= 1
    charged = record.charged
    gave_up = ask.release and not any(charged.values())
    at_progress, ended_by = _same(charged, record.progress), ask.by if gave_up else None
    closed = ClosedRecord(record.state, charged, wallet.upto, _forget_at(wallet), at_progress, ended_by)
    wallet.closed.add(ask.hold, closed)


def _remember_provisional(wallet: Wallet, record: HoldRecord) -> None:
    record.changed = wallet.upto
    record.forget_at = _forget_at(wallet)
    wallet.provisional[record.id] = record
    heapq.heappush(wallet.forgets, (record.forget_at, record.id))


def _remember_settle_id(wallet: Wallet, ask: Settle) -> None:
    if ask.id and ask.id != f"{ask.hold}:s" and wallet.settle_ids.get(ask.id, wallet.at) is None:
        wallet.settle_ids.put(ask.id, SettleId(ask.hold, _forget_at(wallet)))


def _forget_at(wallet: Wallet) -> int:
    assert wallet.plan is not None
    return wallet.at + wallet.plan.remember_s * NS


def _bind(wallet: Wallet, record: HoldRecord, budget: str, line: Line) -> Meter:
    meter = _meter(wallet, budget, line)
    meter.holders += 1
    record.bound += (Bound(meter, line.limit),)
    return meter


def _bind_all(wallet: Wallet, record: HoldRecord, lines: dict[str, Line], dropped: list[Dropped]) -> None:
    if lines:
        record.held = record.first_answer()
    for budget, line in lines.items():
        _bind(wallet, record, budget, line)
    if dropped:
        known = {gone.budget for gone in record.gone}
        new = (drop for drop in dropped if drop.budget not in known)
        record.gone += tuple(Gone(d.budget, wallet.budget_units[d.budget], d.each, d.period) for d in new)


def _meter(wallet: Wallet, budget: str, line: Line) -> Meter:
    """The meter a line of an outcome speaks of, made now if it is the first."""
    generation = wallet.generations[budget]
    key = (budget, generation, line.each, line.start)
    meter = wallet.metering.get(key)
    if meter is None:
        unit = wallet.budget_units[budget]
        meter = Meter(budget, generation, line.each, unit, line.period, line.start, line.end)
        add_meter(wallet, key, meter)
    return meter


def add_meter(wallet: Wallet, key: MeterKey, meter: Meter) -> None:
    """Have it in memory until its time is over. A heap of all of them took half a second to drop 100,000 at once."""
    wallet.metering[key] = meter
    if meter.end not in wallet.drops:
        wallet.drops[meter.end] = []
        heapq.heappush(wallet.ends, meter.end)
    wallet.drops[meter.end].append(key)


def _expire(wallet: Wallet, record: HoldRecord) -> None:
    heapq.heappush(wallet.expiries, (record.expires_at, record.id))
    if len(wallet.expiries) > 2 * len(wallet.open) + STALE_ENTRIES_SPARE:
        wallet.expiries = [(open_.expires_at, open_.id) for open_ in wallet.open.values()]
        heapq.heapify(wallet.expiries)


def _same(one: Amounts, other: Amounts) -> bool:
    """Whether all amounts of `one` are those of `other`. Zero and absent are the same."""
    for unit, amount in one.items():  # noqa: SIM110 a generator takes three times as long
        if amount != other.get(unit, 0):
            return False
    return True


def _highest(known: Amounts, said: Amounts) -> Amounts:
    """Totals so far, per unit only upwards. Zero of a unit is nothing."""
    return known | {unit: amount for unit, amount in said.items() if amount > known.get(unit, 0)}


def _planned(wallet: Wallet, ask: ApplyPlan, told: Planned) -> None:
    old = wallet.plan
    for name, budget in ask.plan.budgets.items():
        known = old.budgets.get(name) if old is not None else None
        if known is None or restarts(known, budget):
            wallet.generations[name] = wallet.generations.get(name, -1) + 1
        wallet.budget_units[name] = budget.unit
    wallet.scales |= ask.plan.units
    wallet.plan, wallet.plan_digest, wallet.plan_first = ask.plan, told.digest, wallet.upto
    put_in_force(wallet)
    if old is None:
        _begin_day(wallet)
    elif old.zone != ask.plan.zone:  # the day keeps its name; where it is already over there, it ends now
        wallet.day_ends = max(periods.end_of_day(wallet.day, ask.plan.zone), wallet.at)


def put_in_force(wallet: Wallet) -> None:
    """Make what derives from the plan: the rules by which holds find their budgets, its tiers and its guards."""
    assert wallet.plan is not None
    wallet.rules, wallet.named = {}, {}
    wallet.ladder = ladder_of(wallet.plan)
    wallet.watches = guards.watches_of(wallet.plan, wallet.watches)
    wallet.has_required = any(budget.required for budget in wallet.plan.budgets.values())
    for name, budget in wallet.plan.budgets.items():
        rule = Rule.of(name, budget, wallet.generations[name])
        wallet.rules.setdefault(budget.unit, []).append(rule)
        wallet.named[name] = rule


def _lost(wallet: Wallet, ask: Loss, told: Done) -> None:
    for raised in told.raised:
        _meter(wallet, raised.budget, raised.line).extra += raised.by
    for budget, until in told.frozen.items():
        frost = wallet.frozen.get(budget)
        if frost is None or frost.until != until:
            wallet.frozen[budget] = Frost(budget, ask.reason, wallet.at, until)


def _switched(wallet: Wallet, ask: Freeze | Thaw | Revoke | Restore) -> None:
    match ask:
        case Freeze():
            wallet.frozen[ask.scope] = Frost(ask.scope, ask.reason, wallet.at, ask.until)
        case Thaw():
            wallet.frozen.pop(ask.scope)
        case Revoke():
            wallet.revoked[ask.label, ask.value] = ask.reason
        case Restore():
            wallet.revoked.pop((ask.label, ask.value), None)
            wallet.cooling.pop((ask.label, ask.value), None)
