"""Whose spending a request is about: the tenant of its key, the levels it names, the labels and scopes that follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.core import checks
from engine.core.plan import Budget, Plan
from engine.errors import BadAsk
from web.auth import Caller
from web.cycles.refusals import Refused, invalid
from web.cycles.requests import Subject, Unit
from web.cycles.units import NAMES, UNITS

LEVELS = ("tenant", "workspace", "app", "workflow", "agent", "toolset")
"""From the widest to the narrowest: the order of every scope."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """`levels`: those that are known, in order; `labels`: of the hold."""

    tenant: str
    levels: Mapping[str, str]
    labels: dict[str, str]

    @property
    def scopes(self) -> list[str]:
        """From the tenant's own to the narrowest."""
        segments = [f"{level}:{value}" for level, value in self.levels.items()]
        return ["/".join(segments[: count + 1]) for count in range(len(segments))]

    @property
    def path(self) -> str:
        return self.scopes[-1]

    def budgets(self, plan: Plan) -> dict[str, Budget]:
        """The budgets of the plan that count this spending, whatever their unit."""
        return {
            name: budget
            for name, budget in plan.budgets.items()
            if budget.where.items() <= self.labels.items() and (budget.each is None or budget.each in self.labels)
        }


def own_tenant(caller: Caller) -> str | None:
    """The tenant that a key speaks for: its label `tenant`, else its user, else its own namespace. None: for any."""
    if caller.role != "spend":
        return None
    user = "" if "user" in caller.may_name else caller.labels.get("user", "")
    return caller.labels.get("tenant") or user or caller.namespace


def tenant_of(caller: Caller, said: str | None, *, field: str) -> str:
    """Raises `Refused` 403 for another tenant than the key's, 400 where there is none."""
    own = own_tenant(caller)
    if own is None:
        if said is None:
            raise invalid(field, "this key speaks for no tenant of its own: name one")
        return said
    if said is not None and said != own:
        raise Refused(403, "FORBIDDEN", f"{field}: this key speaks for another tenant")
    return own


def resolve(subject: Subject, caller: Caller) -> Resolved:
    """Raises `Refused` 400 and 403, `BadAsk` for what no label may be."""
    said = {level: value for level in LEVELS if isinstance(value := getattr(subject, level), str)}
    if not said:
        raise invalid("subject", f"name at least one of {', '.join(LEVELS)}")
    return resolved(said, caller, field="subject")


def resolved(said: Mapping[str, str], caller: Caller, *, field: str) -> Resolved:
    tenant = tenant_of(caller, said.get("tenant"), field=f"{field}.tenant")
    for level, value in said.items():
        if caller.labels.get(level, value) != value:
            raise Refused(403, "FORBIDDEN", f"{field}.{level}: this key says otherwise")
    known = {**said, "tenant": tenant}
    levels = {level: known[level] for level in LEVELS if level in known}
    labels = caller.claimed(levels)
    wrong = checks.labels(labels)
    if wrong is not None:
        raise BadAsk(f"{field}: {wrong[0]}", wrong[1])
    return Resolved(tenant, levels, labels)


def is_counted(resolved: Resolved, plan: Plan, unit: Unit, *, field: str) -> bool:
    """Whether any budget counts this. Raises `Refused` 400 where there are some, but in other units."""
    units = {budget.unit for budget in resolved.budgets(plan).values()}
    expected = sorted(NAMES[each] for each in units if each in NAMES)
    if expected and UNITS[unit][0] not in units:
        raise Refused(
            400, "UNIT_MISMATCH", f"{field}.unit: the budgets here are in {', '.join(expected)}",
            details={"scope": resolved.path, "requested_unit": unit, "expected_units": expected},
        )  # fmt: skip
    return bool(expected)


def no_budget(resolved: Resolved) -> Refused:
    """None counts it, so nothing would bind it: that is refused, and not free."""
    return Refused(
        404, "NOT_FOUND", "No budget of this wallet counts this subject.", details={"scopes": resolved.scopes}
    )


def scope_of(budget: Budget, levels: Mapping[str, str]) -> str | None:
    """The scope a budget is the budget of; None where it is of no level, or of more than levels."""
    named = {*budget.where, *([budget.each] if budget.each is not None else [])}
    if not named or not named <= set(LEVELS):
        return None
    return "/".join(f"{level}:{value}" for level, value in levels.items() if level in named or level == "tenant")
