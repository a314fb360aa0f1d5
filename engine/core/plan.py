"""The plan: everything a decision reads besides the ask and the meters. It stands on the stream, for all to see.

`Plan` is the stored format with every default filled in; amounts in it are integers. `engine/plan_file.py` reads the
`purse.toml` that people write into this shape. Nothing here looks at time, files or the wallet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Literal

import msgspec

from engine.core import limits
from engine.core.amounts import SCALE_MAX, SCALES

RULES = 1
"""The rules this code decides by. An engine that meets a plan with another number stops."""

Per = Literal["minute", "hour", "day", "week", "month", "year", "total"]
LapsePolicy = Literal["charge", "release"]
Public = Literal["percent", "amounts"]
GuardAction = Literal["cool", "revoke", "alert"]

NAME = re.compile(rf"[a-z0-9][a-z0-9_.-]{{0,{limits.NAME_CHARS_MAX - 1}}}", re.ASCII)
LABEL = re.compile(rf"[a-z][a-z0-9_.-]{{0,{limits.NAME_CHARS_MAX - 1}}}", re.ASCII)


class Budget(msgspec.Struct, frozen=True, gc=False):
    """A limit on one unit in one kind of period. `limit` is in the unit's smallest part.

    Stored with every default filled in: msgspec omits a default string only where it is the very same object, and the
    digest must not depend on how a plan came into memory.
    """

    unit: str
    limit: int
    per: Per = "day"
    zone: str = "UTC"
    where: dict[str, str] = {}
    each: str | None = None
    required: bool = False
    limit_for: dict[str, int] = {}
    source: str | None = None
    public: Public = "percent"
    note: str = ""
    link: str = ""


PERCENT_SCALE = 4
UP_TO_FULL = 100 * 10**PERCENT_SCALE
"""100 % as `Tier.up_to` counts it: percent with four digits after the point, millionths of the limit."""

TIMES_SCALE = 6
TIMES_ONE = 10**TIMES_SCALE
"""A factor of 1 as `Tiers.times` counts it: with six digits after the point."""


class Tier(msgspec.Struct, frozen=True, gc=False):
    """While at most `up_to` (millionths of the limit) is used, options from `grade` on are affordable."""

    up_to: int
    grade: int


class Tiers(msgspec.Struct, frozen=True, gc=False):
    """Cheaper answers as money runs low. `steps` rise; past the last nothing with a grade is affordable.

    `times`: cohort -> what its thresholds are multiplied by, in millionths, never past 100 %.
    """

    steps: list[Tier]
    times: dict[str, int] = {}


class Guard(msgspec.Struct, frozen=True, gc=False):
    """More than `more_than` holds with one value of `label` within `within_s` seconds set it off.

    With `distinct` it counts the different values of that label instead. What happens to the label's value: `cool`
    refuses its holds for `for_s` seconds, `revoke` until it is restored, `alert` only says so on the record.
    """

    label: str
    more_than: int
    within_s: int
    action: GuardAction
    for_s: int = 0
    distinct: str | None = None


class Plan(msgspec.Struct, frozen=True, gc=False):
    """What decides. `budgets` keeps the order in which the operator wrote them: ties are broken by it.

    A plan without tiers or guards is stored without a word of them, as it was before there were any: its digest stays.
    """

    budgets: dict[str, Budget]
    rules: int = RULES
    units: dict[str, int] = msgspec.field(default_factory=lambda: dict(SCALES))
    ttl_s: int = limits.TTL_S_DEFAULT
    ttl_s_min: int = limits.TTL_S_MIN
    ttl_s_max: int = limits.TTL_S_MAX
    on_lapse: LapsePolicy = "charge"
    remember_s: int = limits.REMEMBER_S_DEFAULT
    zone: str = "UTC"
    tzdata: str = ""
    tiers: Tiers | msgspec.UnsetType = msgspec.UNSET
    guards: dict[str, Guard] | msgspec.UnsetType = msgspec.UNSET


class PlanError(ValueError):
    """The plan cannot be used. `field` names the place (`budgets.neurons.limit`), the text says what is allowed."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"{field}: {why}")
        self.field, self.why = field, why


def digest(plan: Plan) -> str:
    """The plan's name: BLAKE2b-128 over its stored JSON, 32 hex digits. Order counts, since ties are broken by it."""
    return blake2b(msgspec.json.encode(plan), digest_size=16).hexdigest()


def limit_of(budget: Budget, labels: Mapping[str, str]) -> int:
    """The limit that holds for these labels.

    In `limit_for` an entry naming the budget's `each` label wins, else the largest match, else `limit`.
    """
    if not budget.limit_for:
        return budget.limit
    if budget.each is not None:
        own = budget.limit_for.get(f"{budget.each}={labels.get(budget.each, '')}")
        if own is not None:
            return own
    matching = [limit for rule, limit in budget.limit_for.items() if _holds(rule, labels)]
    return max(matching, default=budget.limit)


def _holds(rule: str, labels: Mapping[str, str]) -> bool:
    label, _, value = rule.partition("=")
    return labels.get(label) == value


def restarts(old: Budget, new: Budget) -> bool:
    """Whether this change makes the budget's meters start at zero. A changed limit does not."""
    return (old.per, old.zone, old.where, old.each) != (new.per, new.zone, new.where, new.each)


def validate(plan: Plan, *, zone_known: Callable[[str], bool]) -> None:
    """Raise `PlanError` for the first thing wrong. `zone_known` is `periods.zone_known`."""
    if plan.rules != RULES:
        raise PlanError("rules", f"this release knows rules {RULES}")
    _check_units(plan.units)
    _check_times(plan)
    if not zone_known(plan.zone):
        raise PlanError("zone", "not an IANA time zone")
    if len(plan.tzdata) > limits.NAME_CHARS_MAX or not plan.tzdata.isprintable():
        raise PlanError("tzdata", "expected the version of the time zone data, such as 2026.6")
    if not plan.budgets or len(plan.budgets) > limits.BUDGETS_MAX:
        raise PlanError("budgets", f"a plan has 1 to {limits.BUDGETS_MAX} budgets")
    for name, budget in plan.budgets.items():
        _check_budget(name, budget, units=plan.units, zone_known=zone_known)
    if plan.tiers is not msgspec.UNSET:
        _check_tiers(plan.tiers)
    if plan.guards is not msgspec.UNSET:
        _check_guards(plan.guards)


def _check_units(units: Mapping[str, int]) -> None:
    if len(units) > limits.UNITS_MAX:
        raise PlanError("units", f"a plan has at most {limits.UNITS_MAX} units")
    for name, scale in units.items():
        _check_name(f"units.{name[: limits.NAME_CHARS_MAX]}", name)
        if not 0 <= scale <= SCALE_MAX:
            raise PlanError(f"units.{name}", f"a scale is a whole number from 0 to {SCALE_MAX}")
        if name in SCALES and SCALES[name] != scale:
            raise PlanError(f"units.{name}", f"the scale of {name} is {SCALES[name]} and never changes")


def _check_times(plan: Plan) -> None:
    if not limits.TTL_S_MIN <= plan.ttl_s_min <= plan.ttl_s <= plan.ttl_s_max <= limits.TTL_S_MAX:
        raise PlanError(
            "ttl_s", f"expected {limits.TTL_S_MIN} <= ttl_s_min <= ttl_s <= ttl_s_max <= {limits.TTL_S_MAX} seconds"
        )
    if not 1 <= plan.remember_s <= limits.REMEMBER_S_MAX:
        raise PlanError("remember_s", f"expected 1 to {limits.REMEMBER_S_MAX} seconds")


def _check_budget(name: str, budget: Budget, *, units: Mapping[str, int], zone_known: Callable[[str], bool]) -> None:
    place = f"budgets.{name[: limits.NAME_CHARS_MAX]}"
    _check_name(place, name)
    if name == "all":
        raise PlanError(place, '"all" is the scope of everything and cannot name a budget')
    if budget.unit not in units:
        raise PlanError(f"{place}.unit", f"unknown unit; this plan has {', '.join(sorted(units))}")
    if not zone_known(budget.zone):
        raise PlanError(f"{place}.zone", 'not an IANA time zone such as "UTC" or "Asia/Tokyo"')
    _check_limit(f"{place}.limit", budget.limit)
    if budget.required and budget.each is None:
        raise PlanError(f"{place}.required", "says that the label `each` must be there; name one")
    if len(budget.where) > limits.LABELS_MAX:
        raise PlanError(f"{place}.where", f"at most {limits.LABELS_MAX} labels")
    for label, value in budget.where.items():
        _check_label(f"{place}.where", label, value)
    if budget.each is not None:
        _check_label(f"{place}.each", budget.each, "-")
    for rule, limit in budget.limit_for.items():
        label, equals, value = rule.partition("=")
        if not equals:
            raise PlanError(f"{place}.limit_for", 'expected "label=value" = "amount"')
        _check_label(f"{place}.limit_for", label, value)
        _check_limit(f"{place}.limit_for", limit)
    for field, text in (("source", budget.source or ""), ("note", budget.note), ("link", budget.link)):
        if len(text) > limits.TEXT_CHARS_MAX or not text.isprintable():
            raise PlanError(f"{place}.{field}", f"at most {limits.TEXT_CHARS_MAX} printable characters")


def _check_tiers(tiers: Tiers) -> None:
    if not 1 <= len(tiers.steps) <= limits.TIERS_MAX:
        raise PlanError("tiers", f"a plan that has tiers has 1 to {limits.TIERS_MAX}")
    up_to, grade = 0, -1
    for index, tier in enumerate(tiers.steps):
        if not up_to < tier.up_to <= UP_TO_FULL:
            raise PlanError(
                f"tiers[{index}].up_to", "expected more than the tier before, above 0 and at most 100 percent"
            )
        if not grade < tier.grade <= limits.GRADE_MAX:
            raise PlanError(f"tiers[{index}].grade", f"expected more than the tier before, 0 to {limits.GRADE_MAX}")
        up_to, grade = tier.up_to, tier.grade
    if len(tiers.times) > limits.TIER_COHORTS_MAX:
        raise PlanError("tier_times", f"at most {limits.TIER_COHORTS_MAX} cohorts")
    for cohort, times in tiers.times.items():
        _check_label("tier_times", "cohort", cohort)
        if not 0 < times <= limits.TIER_TIMES_MAX * TIMES_ONE:
            raise PlanError(
                f"tier_times.{cohort[: limits.NAME_CHARS_MAX]}", f"above 0 and at most {limits.TIER_TIMES_MAX}"
            )


def _check_guards(guards: Mapping[str, Guard]) -> None:
    if not 1 <= len(guards) <= limits.GUARDS_MAX:
        raise PlanError("guards", f"a plan that has guards has 1 to {limits.GUARDS_MAX}")
    for name, guard in guards.items():
        place = f"guards.{name[: limits.NAME_CHARS_MAX]}"
        _check_name(place, name)
        _check_label(f"{place}.label", guard.label, "-")
        if guard.distinct is not None:
            _check_label(f"{place}.distinct", guard.distinct, "-")
            if guard.distinct == guard.label:
                raise PlanError(f"{place}.distinct", "counts the values of another label than `label`")
        if not 1 <= guard.more_than <= limits.GUARD_MORE_THAN_MAX:
            raise PlanError(f"{place}.more_than", f"expected 1 to {limits.GUARD_MORE_THAN_MAX}")
        if not 1 <= guard.within_s <= limits.GUARD_S_MAX:
            raise PlanError(f"{place}.within_s", f"expected 1 to {limits.GUARD_S_MAX} seconds")
        if guard.action == "cool" and not 1 <= guard.for_s <= limits.GUARD_S_MAX:
            raise PlanError(f"{place}.for_s", f"expected 1 to {limits.GUARD_S_MAX} seconds of cooling")
        if guard.action != "cool" and guard.for_s:
            raise PlanError(f"{place}.for_s", 'is said only where the action is "cool"')


def _check_limit(field: str, amount: int) -> None:
    if not 0 <= amount <= limits.AMOUNT_MAX:
        raise PlanError(field, f"expected 0 to {limits.AMOUNT_MAX} of the unit's smallest part")


def _check_label(field: str, label: str, value: str) -> None:
    if not LABEL.fullmatch(label):
        raise PlanError(field, f"a label's name is {LABEL.pattern}")
    if not 1 <= len(value) <= limits.LABEL_VALUE_CHARS_MAX or not value.isprintable():
        raise PlanError(field, f"a label's value has 1 to {limits.LABEL_VALUE_CHARS_MAX} printable characters")


def _check_name(field: str, name: str) -> None:
    if not NAME.fullmatch(name):
        raise PlanError(field, f"a name is {NAME.pattern}")
