"""Reads `purse.toml`, where people write the plan and what is local to a process, and the same plan as JSON.

Amounts are written as decimal strings and become integers here. A field nobody knows is refused by its place, because a
misspelt budget would be no budget. Nothing here talks to the stream: whoever applies a plan takes it there.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from difflib import get_close_matches
from importlib.metadata import version
from importlib.resources import files
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, TypeVar, get_args, get_type_hints

import msgspec
from msgspec import Meta

from engine.core import limits
from engine.core.amounts import SCALES, AmountError, format_amount, parse
from engine.core.periods import zone_known
from engine.core.plan import (
    PERCENT_SCALE,
    RULES,
    TIMES_SCALE,
    Budget,
    Guard,
    LapsePolicy,
    Per,
    Plan,
    PlanError,
    Public,
    Tier,
    Tiers,
    validate,
)
from engine.errors import Misconfigured
from engine.plan_change import describe_change

__all__ = [
    "DEFAULT_PLAN", "TZDATA", "PurseFile", "Local", "WebTable",
    "read", "parse_toml", "plan_from_json", "plan_to_json", "describe_change",
]  # fmt: skip

TZDATA = version("tzdata")
"""The zones that this process cuts days by; every plan names the ones it was written for."""

_NAME_SHOWN_MAX = 32
_PLAN_TABLES = ("plan", "units", "budgets", "tiers", "tier_times", "guards")


# --- what people write ------------------------------------------------------------------------------------------------


class _Settings(msgspec.Struct, frozen=True):
    """`[plan]`: all of a `Plan` that is neither a unit nor a budget."""

    rules: int = RULES
    ttl_s: int = limits.TTL_S_DEFAULT
    ttl_s_min: int = limits.TTL_S_MIN
    ttl_s_max: int = limits.TTL_S_MAX
    on_lapse: LapsePolicy = "charge"
    remember_s: int = limits.REMEMBER_S_DEFAULT
    zone: str = "UTC"
    tzdata: str = TZDATA


class _Budget(msgspec.Struct, frozen=True):
    """`[budgets.NAME]`: a `Budget` whose amounts are still as written."""

    unit: str
    limit: object
    per: Per = "day"
    zone: str = "UTC"
    where: dict[str, str] = {}
    each: str | None = None
    required: bool = False
    limit_for: dict[str, object] = {}
    source: str | None = None
    public: Public = "percent"
    note: str = ""
    link: str = ""


class _Tier(msgspec.Struct, frozen=True):
    """`[[tiers]]`: a `Tier` whose percentage is still as written."""

    up_to: object
    grade: int


PerMinute: TypeAlias = Annotated[int, Meta(ge=0, le=limits.VISITS_PER_MINUTE_MAX)]


class WebTable(msgspec.Struct, frozen=True):
    """`[web]`: where one web process listens, what a used-up budget answers, which proxies it believes,
    how often one stranger may come and how long an engine has to count that."""

    host: str = "127.0.0.1"
    port: int = 8080
    refusal_status: Literal[402, 403, 429] = 402
    trusted_proxies: list[str] = []
    asks_per_minute: PerMinute = limits.VISITS_ASK_PER_MINUTE
    estimates_per_minute: PerMinute = limits.VISITS_ESTIMATE_PER_MINUTE
    visit_wait_ms: Annotated[int, Meta(ge=1, le=limits.VISIT_WAIT_MS_MAX)] = 100


class Local(msgspec.Struct, frozen=True):
    """What stays in the process that read it. All but `web` are as written, with exact numbers: their readers check."""

    web: WebTable = WebTable()
    upstreams: dict[str, object] = {}
    prices: dict[str, object] = {}
    ask: dict[str, object] = {}
    alerts: dict[str, object] = {}
    observers: dict[str, object] = {}
    seals: dict[str, object] = {}


class PurseFile(msgspec.Struct, frozen=True):
    """One `purse.toml`. `plan` is None where the file has only local tables."""

    plan: Plan | None
    local: Local


# --- reading ----------------------------------------------------------------------------------------------------------


def read(path: Path) -> PurseFile:
    """The file at `path`. Raises `Misconfigured` with path, place and what is allowed there."""
    try:
        return parse_toml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Misconfigured(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Misconfigured(f"{path}: is not UTF-8 text at byte {error.start}") from error
    except PlanError as error:
        raise Misconfigured(f"{path}: {error}") from error


def parse_toml(text: str) -> PurseFile:
    """The text of a `purse.toml`. Raises `PlanError`."""
    try:
        tables = tomllib.loads(text, parse_float=Decimal)
    except ValueError as error:  # tomllib's own, with line and column, and what int() says to thousands of digits
        raise PlanError("file", f"is not TOML: {error}") from error
    _check_known(tables, (*_PLAN_TABLES, *Local.__struct_fields__), place="")
    written = {name: table for name, table in tables.items() if name in _PLAN_TABLES}
    local = {name: table for name, table in tables.items() if name not in _PLAN_TABLES}
    return PurseFile(plan=_plan(written) if written else None, local=_local(local))


def plan_from_json(raw: bytes | Mapping[str, object]) -> Plan:
    """The plan in the shape of `purse.toml`'s plan part, as JSON or read from it. Raises `PlanError`.

    Amounts are decimal strings; a JSON number is taken where whoever read it kept it exact (`int`, `Decimal`).
    """
    tables = _json(raw) if isinstance(raw, bytes) else raw
    _check_known(tables, _PLAN_TABLES, place="")
    return _plan(tables)


def plan_to_json(plan: Plan) -> dict[str, object]:
    """The plan as people write it, every default said. `plan_from_json` gives the same plan back."""
    settings = {field: getattr(plan, field) for field in _Settings.__struct_fields__}
    budgets = {name: _written(budget, plan.units[budget.unit]) for name, budget in plan.budgets.items()}
    return {
        "plan": settings,
        "units": dict(plan.units),
        "budgets": budgets,
        **_written_tiers(plan),
        **_written_guards(plan),
    }


def _written(budget: Budget, scale: int) -> dict[str, object]:
    """A budget without what it does not use; unit, limit and period are always said."""
    unsaid = Budget(unit="", limit=-1, per="total", zone="")
    stored: dict[str, object] = {
        field: value
        for field in Budget.__struct_fields__
        if (value := getattr(budget, field)) != getattr(unsaid, field) or field in ("per", "zone")
    }
    stored["limit"] = format_amount(budget.limit, scale=scale)
    if budget.limit_for:
        stored["limit_for"] = {who: format_amount(limit, scale=scale) for who, limit in budget.limit_for.items()}
    return stored


def _written_tiers(plan: Plan) -> dict[str, object]:
    if isinstance(plan.tiers, msgspec.UnsetType):
        return {}
    steps = [
        {"up_to": format_amount(tier.up_to, scale=PERCENT_SCALE), "grade": tier.grade} for tier in plan.tiers.steps
    ]
    times = {cohort: format_amount(factor, scale=TIMES_SCALE) for cohort, factor in plan.tiers.times.items()}
    return {"tiers": steps, **({"tier_times": times} if times else {})}


def _written_guards(plan: Plan) -> dict[str, object]:
    """Guards without what they do not use."""
    if isinstance(plan.guards, msgspec.UnsetType):
        return {}
    guards = {name: msgspec.structs.asdict(guard) for name, guard in plan.guards.items()}
    return {"guards": {name: {field: said for field, said in table.items() if said} for name, table in guards.items()}}


# --- the plan part ----------------------------------------------------------------------------------------------------


def _plan(tables: Mapping[str, object]) -> Plan:
    settings = _shaped(tables.get("plan", {}), _Settings, place="plan")
    units = _units(tables.get("units", {}))
    written = _table(tables.get("budgets", {}), place="budgets")
    budgets = {name: _budget(table, units, place=f"budgets.{_shown(name)}") for name, table in written.items()}
    plan = Plan(
        budgets=budgets, units=units, tiers=_tiers(tables), guards=_guards(tables), **msgspec.structs.asdict(settings)
    )
    try:
        validate(plan, zone_known=zone_known)
    except PlanError as error:
        raise PlanError(_place(error.field), error.why) from None
    return plan


def _place(field: str) -> str:
    return f"plan.{field}" if field in _Settings.__struct_fields__ else field


def _units(written: object) -> dict[str, int]:
    table = _table(written, place="units")
    try:
        units = msgspec.convert(table, dict[str, int])
    except msgspec.ValidationError:
        wrong = next(name for name, scale in table.items() if type(scale) is not int)
        raise PlanError(f"units.{_shown(wrong)}", "a scale is a whole number of digits after the point") from None
    # In the order written, so that a plan that was shown and comes back has the same digest.
    return units | {name: scale for name, scale in SCALES.items() if name not in units}


def _budget(written: object, units: Mapping[str, int], *, place: str) -> Budget:
    table = _shaped(written, _Budget, place=place)
    if table.unit not in units:
        raise PlanError(f"{place}.unit", f"unknown unit; this plan has {', '.join(sorted(units))}")
    if table.required and table.each is None:
        raise PlanError(f"{place}.required", "needs `each`: it says that this label must be there")
    if table.link and not table.link.startswith(("https://", "http://")):
        raise PlanError(f"{place}.link", "expected an address that begins with https:// or http://")
    limit = _amount(table.limit, table.unit, units, place=f"{place}.limit")
    limit_for = {
        who: _amount(amount, table.unit, units, place=f"{place}.limit_for.{_shown(who)}")
        for who, amount in table.limit_for.items()
    }
    return Budget(**{**msgspec.structs.asdict(table), "limit": limit, "limit_for": limit_for})


def _amount(written: object, unit: str, units: Mapping[str, int], *, place: str) -> int:
    try:
        return parse(written, unit=unit, scale=units[unit])  # type: ignore[arg-type]  # it refuses every other type
    except AmountError as error:
        raise PlanError(place, str(error)) from None


def _tiers(tables: Mapping[str, object]) -> Tiers | msgspec.UnsetType:
    """`[[tiers]]` and `[tier_times]`, unset where there are none."""
    written, times = tables.get("tiers", []), _table(tables.get("tier_times", {}), place="tier_times")
    if not isinstance(written, list):
        raise PlanError("tiers", "expected a list of tables, each under [[tiers]]")
    if not written:
        if times:
            raise PlanError("tier_times", "multiplies what [[tiers]] say; there are none")
        return msgspec.UNSET
    return Tiers(
        [_tier(tier, place=f"tiers[{index}]") for index, tier in enumerate(written)],
        {
            cohort: _amount(factor, "times", {"times": TIMES_SCALE}, place=f"tier_times.{_shown(cohort)}")
            for cohort, factor in times.items()
        },
    )


def _tier(written: object, *, place: str) -> Tier:
    table = _shaped(written, _Tier, place=place)
    return Tier(_amount(table.up_to, "percent", {"percent": PERCENT_SCALE}, place=f"{place}.up_to"), table.grade)


def _guards(tables: Mapping[str, object]) -> dict[str, Guard] | msgspec.UnsetType:
    """`[guards.NAME]`, unset where there are none."""
    written = _table(tables.get("guards", {}), place="guards")
    guards = {name: _shaped(table, Guard, place=f"guards.{_shown(name)}") for name, table in written.items()}
    return guards or msgspec.UNSET


# --- the local part ---------------------------------------------------------------------------------------------------


def _local(tables: Mapping[str, object]) -> Local:
    web = _shaped(tables.get("web", {}), WebTable, place="web")
    if not 0 <= web.port <= 65_535:
        raise PlanError("web.port", "expected 0 to 65535 (0: any that is free)")
    for number, network in enumerate(web.trusted_proxies):
        _check_network(network, place=f"web.trusted_proxies[{number}]")
    as_written = {name: _table(table, place=name) for name, table in tables.items() if name != "web"}
    return Local(web=web, **as_written)


def _check_network(network: str, *, place: str) -> None:
    try:
        ip_network(network)
    except ValueError:
        raise PlanError(place, 'expected an address or a network such as "10.0.0.0/8" or "::1"') from None


# --- shapes, and how their errors read --------------------------------------------------------------------------------

_T = TypeVar("_T", bound=msgspec.Struct)


def _shaped(written: object, kind: type[_T], *, place: str) -> _T:
    """The table as a `kind`. Raises `PlanError` naming the field that is unknown, missing or of the wrong kind."""
    table = _table(written, place=place)
    _check_known(table, kind.__struct_fields__, place=place)
    for field in msgspec.structs.fields(kind):
        if field.required and field.name not in table:
            raise PlanError(f"{place}.{field.name}", "is required")
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        raise _mistyped(str(error), kind, place=place) from None


def _table(written: object, *, place: str) -> dict[str, object]:
    if not isinstance(written, dict):
        raise PlanError(place, "expected a table of names and values")
    return written


def _check_known(table: Mapping[str, object], known: tuple[str, ...], *, place: str) -> None:
    for name in table:
        if name not in known:
            meant = get_close_matches(name[:_NAME_SHOWN_MAX], known, n=1)
            hint = f'did you mean "{meant[0]}"?' if meant else f"known here: {', '.join(known)}"
            raise PlanError(f"{place}.{_shown(name)}".lstrip("."), f"unknown; {hint}")


def _mistyped(message: str, kind: type[msgspec.Struct], *, place: str) -> PlanError:
    """msgspec's message (``Expected `int`, got `str` - at `$.ttl_s` ``) in the words of this file."""
    what, _, path = message.partition(" - at `$.")
    field = path.rstrip("`").removesuffix("[...]")
    if what.startswith("Invalid enum value"):
        allowed = get_args(get_type_hints(kind)[field])
        return PlanError(f"{place}.{field}", f"expected one of {', '.join(map(str, allowed))}")
    return PlanError(f"{place}.{field}", what.replace("`", "").lower())


def _shown(name: str) -> str:
    return name[:_NAME_SHOWN_MAX] if name.isprintable() else f"(a name of {len(name)} characters)"


def _json(raw: bytes) -> dict[str, object]:
    if len(raw) > limits.MESSAGE_BYTES_MAX:
        raise PlanError("plan", f"has at most {limits.MESSAGE_BYTES_MAX} bytes")
    try:
        found = json.loads(raw, parse_float=Decimal, object_pairs_hook=_once)
    except PlanError:
        raise
    except (ValueError, RecursionError) as error:
        raise PlanError("plan", f"is not JSON: {error}") from None
    return _table(found, place="plan")


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise PlanError(_shown(name), "is given twice")
        found[name] = value
    return found


# --- the plan that comes with us --------------------------------------------------------------------------------------


def _read_default() -> Plan:
    plan = parse_toml(files("engine").joinpath("plans", "default.toml").read_text(encoding="utf-8")).plan
    assert plan is not None
    return plan


DEFAULT_PLAN = _read_default()
"""10,000 neurons a day as Cloudflare counts them, and one dollar a day for calls labelled `provider=jev`."""
