"""Says in plain lines what another plan changes, for the person who is about to apply it.

It decides nothing: whether meters restart is `core.plan.restarts`, whether a plan is taken is the wallet's decision.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from engine.core.amounts import format_amount
from engine.core.plan import PERCENT_SCALE, TIMES_SCALE, Budget, Guard, Plan, Tiers, digest, restarts

_SETTINGS = ("rules", "ttl_s", "ttl_s_min", "ttl_s_max", "on_lapse", "remember_s", "zone", "tzdata")
_RESTARTING = ("per", "zone", "where", "each")
_SPOKEN = ("required", "source", "public", "note", "link")


def describe_change(old: Plan | None, new: Plan) -> list[str]:
    """What `new` changes, one line each, named as in `purse.toml`. Empty if it is the same plan.

    `old` is the plan in force, None before the first. A line about a budget that starts at zero has the word RESTARTS.
    """
    if old is None:
        return list(_first(new))
    settings = [f"plan.{line}" for line in _fields(old, new, _SETTINGS, after_name=": ")]
    lines = [
        *settings,
        *_units(old.units, new.units),
        *_budgets(old, new),
        *_tiers(_of(old), _of(new)),
        *_guards(old, new),
    ]
    if not lines and digest(old) != digest(new):
        return ["plan: written in another order; it decides the same"]
    return lines


def _first(new: Plan) -> Iterator[str]:
    for name, budget in new.budgets.items():
        yield f"budgets.{name}: added, {_in_words(budget, new)}"
    yield from _tiers(None, _of(new))
    yield from _guards(None, new)


def _of(plan: Plan) -> Tiers | None:
    return None if isinstance(plan.tiers, msgspec.UnsetType) else plan.tiers


def _tiers(before: Tiers | None, after: Tiers | None) -> Iterator[str]:
    if after is None:
        if before is not None:
            yield "tiers: removed; every grade is affordable"
        return
    if before is None or before.steps != after.steps:
        was = "" if before is None else f"{_steps(before)} -> "
        yield f"tiers: {'added, ' if before is None else ''}{was}{_steps(after)}; above that no grade is affordable"
    old = before.times if before is not None else {}
    for cohort in [*old, *(cohort for cohort in after.times if cohort not in old)]:
        was, now = _factor(old, cohort), _factor(after.times, cohort)
        if was != now:
            yield f"tier_times.{cohort}: {was} -> {now}"


def _guards(old: Plan | None, new: Plan) -> Iterator[str]:
    before, after = _guards_of(old), _guards_of(new)
    for name, guard in before.items():
        if name not in after:
            yield f"guards.{name}: removed; what it cooled or revoked stays so"
        elif after[name] != guard:
            yield f"guards.{name}: {_guard(guard)} -> {_guard(after[name])}; it counts anew"
    for name, guard in after.items():
        if name not in before:
            yield f"guards.{name}: added, {_guard(guard)}"


def _guards_of(plan: Plan | None) -> Mapping[str, Guard]:
    return {} if plan is None or isinstance(plan.guards, msgspec.UnsetType) else plan.guards


def _guard(guard: Guard) -> str:
    what = "holds" if guard.distinct is None else f"values of {guard.distinct}"
    act = f"cool for {guard.for_s} s" if guard.action == "cool" else guard.action
    return f"more than {guard.more_than} {what} of one {guard.label} within {guard.within_s} s: {act}"


def _factor(times: Mapping[str, int], cohort: str) -> str:
    return format_amount(times[cohort], scale=TIMES_SCALE) if cohort in times else "none of its own"


def _steps(tiers: Tiers) -> str:
    return ", ".join(
        f"up to {format_amount(tier.up_to, scale=PERCENT_SCALE)} % grade {tier.grade}" for tier in tiers.steps
    )


def _units(old: Mapping[str, int], new: Mapping[str, int]) -> Iterator[str]:
    for name in [*old, *(name for name in new if name not in old)]:
        if name not in new:
            yield f"units.{name}: removed"
        elif name not in old:
            yield f"units.{name}: added, {new[name]} digits after the point"
        elif old[name] != new[name]:
            yield f"units.{name}: {old[name]} -> {new[name]}; the wallet refuses this, a scale never changes"


def _budgets(old: Plan, new: Plan) -> Iterator[str]:
    for name, budget in old.budgets.items():
        if name in new.budgets:
            yield from _budget(f"budgets.{name}", budget, new.budgets[name], old=old, new=new)
        else:
            yield f"budgets.{name}: removed; the calls it holds for still settle to it"
    for name, budget in new.budgets.items():
        if name not in old.budgets:
            yield f"budgets.{name}: added, {_in_words(budget, new)}"
    stay, now = (
        [name for name in old.budgets if name in new.budgets],
        [name for name in new.budgets if name in old.budgets],
    )
    if stay != now:
        yield f"budgets: in another order ({', '.join(new.budgets)}); of refusals alike the first budget's is told"


def _budget(place: str, before: Budget, after: Budget, *, old: Plan, new: Plan) -> Iterator[str]:
    if before.unit != after.unit:
        yield f"{place}.unit: {before.unit} -> {after.unit}; the wallet refuses this, another unit needs another name"
    if restarts(before, after):
        yield f"{place}: RESTARTS at zero, {', '.join(_fields(before, after, _RESTARTING, after_name=' '))}"
    yield from _limits(place, before, after, old=old, new=new)
    for line in _fields(before, after, _SPOKEN, after_name=": "):
        yield f"{place}.{line}"


def _fields(before: Budget | Plan, after: Budget | Plan, fields: tuple[str, ...], *, after_name: str) -> Iterator[str]:
    for field in fields:
        was, now = getattr(before, field), getattr(after, field)
        if was != now:
            yield f"{field}{after_name}{_said(was)} -> {_said(now)}"


def _limits(place: str, before: Budget, after: Budget, *, old: Plan, new: Plan) -> Iterator[str]:
    was, now = _amount(before.limit, before, old), _amount(after.limit, after, new)
    if was != now:
        yield f"{place}.limit: {was} -> {now}{'' if restarts(before, after) else '; what was used stays'}"
    for who in [*before.limit_for, *(who for who in after.limit_for if who not in before.limit_for)]:
        was = _amount(before.limit_for[who], before, old) if who in before.limit_for else "none of its own"
        now = _amount(after.limit_for[who], after, new) if who in after.limit_for else "none of its own"
        if was != now:
            yield f"{place}.limit_for.{who}: {was} -> {now}"


def _in_words(budget: Budget, plan: Plan) -> str:
    period = "in total" if budget.per == "total" else f"a {budget.per} in {budget.zone}"
    each = f" for each {budget.each}" if budget.each is not None else ""
    where = f" where {_said(budget.where)}" if budget.where else ""
    return f"{_amount(budget.limit, budget, plan)} {period}{each}{where}"


def _amount(amount: int, budget: Budget, plan: Plan) -> str:
    return f"{format_amount(amount, scale=plan.units[budget.unit])} {budget.unit}"


def _said(value: object) -> str:
    match value:
        case None | "":
            return "none"
        case bool():
            return "yes" if value else "no"
        case {}:
            return ", ".join(f"{label}={wanted}" for label, wanted in sorted(value.items())) or "every call"
        case _:
            return str(value)
