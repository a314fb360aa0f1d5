"""`[alerts]` of `purse.toml`: which rules raise alerts, and who hears of them.

    [alerts]
    percents = [50, 75, 90, 100]
    off = ["refused"]                      # rules that are on unless named here

    [alerts.burst]                         # or [[alerts.burst]], several
    budget = "jev"
    amount = "0.50"                        # more than this ...
    within_s = 300                         # ... within so many seconds

    [alerts.runaway]                       # or [[alerts.runaway]]
    budget = "jev"
    freeze = true

    [alerts.targets.ops]
    kind = "slack"                         # or "json"
    url_env = "OPS_WEBHOOK_URL"
    secret_env = "OPS_WEBHOOK_SECRET"      # what the signature is made with; required for "json"
    timeout_s = 10

Everything is checked before anything starts; addresses and secrets stand in the environment and are never shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast, get_args

import msgspec

from engine.core.limits import NAME_CHARS_MAX
from engine.core.plan import NAME, Plan
from engine.errors import Misconfigured
from engine.plan_file import read
from projector.alerts.rules import (
    BURST_S,
    BURST_S_MAX,
    BURST_S_MIN,
    BURSTS_MAX,
    OPTIONAL,
    PERCENT_MAX,
    PERCENTS,
    PERCENTS_MAX,
    RUNAWAYS_MAX,
    Burst,
    Rules,
    Runaway,
)
from projector.alerts.target import TargetKind, TargetSettings
from projector.secrets import secret_of, webhook_address

TARGETS_MAX = 8
TIMEOUT_S, TIMEOUT_S_MAX = 10, 15
_AMOUNT = re.compile(r"\d{1,18}(\.\d{1,12})?", re.ASCII)

Table = TypeVar("Table", bound=msgspec.Struct)


class _Alerts(msgspec.Struct, frozen=True):
    percents: list[int] = msgspec.field(default_factory=lambda: list(PERCENTS))
    off: list[str] = []
    burst: object = msgspec.field(default_factory=list)
    runaway: object = msgspec.field(default_factory=list)
    targets: dict[str, object] = {}


class _Burst(msgspec.Struct, frozen=True):
    budget: str
    amount: str
    within_s: int = BURST_S


class _Runaway(msgspec.Struct, frozen=True):
    budget: str
    freeze: bool = True


class _Target(msgspec.Struct, frozen=True):
    kind: str
    url_env: str
    secret_env: str = ""
    timeout_s: int = TIMEOUT_S


@dataclass(frozen=True, slots=True)
class AlertSettings:
    rules: Rules
    targets: tuple[TargetSettings, ...] = ()


def alerts_of(config: Path | None, *, environment: Mapping[str, str]) -> AlertSettings:
    """The settings of a `purse.toml`, the defaults without one. Raises `Misconfigured` naming file and place."""
    if config is None:
        return AlertSettings(Rules())
    found = read(config)
    try:
        return read_alerts(found.local.alerts, environment=environment, plan=found.plan)
    except Misconfigured as error:
        raise Misconfigured(f"{config}: {error}") from None


def read_alerts(
    written: Mapping[str, object], *, environment: Mapping[str, str], plan: Plan | None = None
) -> AlertSettings:
    """What the table asks for. `plan`: the one in the same file; budgets are then held against it.

    Raises `Misconfigured` naming the place.
    """
    table = _shaped(written, _Alerts, "alerts")
    bursts = tuple(_burst(one, place, plan) for one, place in _several(table.burst, "alerts.burst", BURSTS_MAX))
    runaways = tuple(
        _runaway(one, place, plan) for one, place in _several(table.runaway, "alerts.runaway", RUNAWAYS_MAX)
    )
    rules = Rules(percents=_percents(table.percents), bursts=bursts, runaways=runaways, off=_off(table.off))
    if len(table.targets) > TARGETS_MAX:
        raise Misconfigured(f"alerts.targets: at most {TARGETS_MAX}")
    targets = tuple(_target(name, one, environment) for name, one in table.targets.items())
    return AlertSettings(rules, targets)


# --- rules ------------------------------------------------------------------------------------------------------------


def _percents(written: list[int]) -> tuple[int, ...]:
    if len(written) > PERCENTS_MAX or not all(1 <= each <= PERCENT_MAX for each in written):
        raise Misconfigured(f"alerts.percents: expected at most {PERCENTS_MAX} whole numbers from 1 to {PERCENT_MAX}")
    return tuple(sorted(set(written)))


def _off(written: list[str]) -> frozenset[str]:
    if not all(each in OPTIONAL for each in written):
        raise Misconfigured(f"alerts.off: expected some of {', '.join(OPTIONAL)}")
    return frozenset(written)


def _several(written: object, place: str, most: int) -> list[tuple[object, str]]:
    """One table, or a list of them, each with its place."""
    if not isinstance(written, list):
        return [(written, place)]
    if len(written) > most:
        raise Misconfigured(f"{place}: at most {most}")
    return [(one, f"{place}[{index}]") for index, one in enumerate(written)]


def _burst(written: object, place: str, plan: Plan | None) -> Burst:
    table = _shaped(written, _Burst, place)
    _check_budget(table.budget, plan, place)
    if not _AMOUNT.fullmatch(table.amount):
        raise Misconfigured(f'{place}.amount: expected a decimal string in units, such as "0.50"')
    if not BURST_S_MIN <= table.within_s <= BURST_S_MAX:
        raise Misconfigured(f"{place}.within_s: expected {BURST_S_MIN} to {BURST_S_MAX} seconds")
    return Burst(budget=table.budget, amount=table.amount, within_s=table.within_s)


def _runaway(written: object, place: str, plan: Plan | None) -> Runaway:
    table = _shaped(written, _Runaway, place)
    _check_budget(table.budget, plan, place)
    return Runaway(budget=table.budget, freeze=table.freeze)


def _check_budget(budget: str, plan: Plan | None, place: str) -> None:
    if not NAME.fullmatch(budget):
        raise Misconfigured(f"{place}.budget: expected the name of a budget")
    if plan is None:
        return
    known = plan.budgets.get(budget)
    if known is None:
        raise Misconfigured(f"{place}.budget: the plan has no such budget")
    if known.each is not None:
        raise Misconfigured(f"{place}.budget: it has a meter for each {known.each}; alerts are of shared budgets")


# --- targets ----------------------------------------------------------------------------------------------------------


def _target(name: str, written: object, environment: Mapping[str, str]) -> TargetSettings:
    if not NAME.fullmatch(name):
        raise Misconfigured(f"alerts.targets: a name is {NAME.pattern}")
    place = f"alerts.targets.{name}"
    table = _shaped(written, _Target, place)
    if table.kind not in get_args(TargetKind):
        raise Misconfigured(f"{place}.kind: expected one of {', '.join(get_args(TargetKind))}")
    if not 1 <= table.timeout_s <= TIMEOUT_S_MAX:
        raise Misconfigured(f"{place}.timeout_s: expected 1 to {TIMEOUT_S_MAX} seconds")
    if table.kind == "json" and not table.secret_env:
        raise Misconfigured(f"{place}.secret_env: is required: who receives must be able to tell that it is ours")
    url = webhook_address(secret_of(table.url_env, environment, f"{place}.url_env"), f"{place}.url_env")
    secret = secret_of(table.secret_env, environment, f"{place}.secret_env") if table.secret_env else ""
    kind = cast("TargetKind", table.kind)
    return TargetSettings(name=name, kind=kind, url=url, secret=secret, timeout_s=table.timeout_s)


# --- shapes -----------------------------------------------------------------------------------------------------------


def _shaped(written: object, kind: type[Table], place: str) -> Table:
    """The table as a `kind`. Raises `Misconfigured` naming what is unknown, missing or of the wrong kind."""
    if not isinstance(written, dict):
        raise Misconfigured(f"{place}: expected a table of names and values")
    known = kind.__struct_fields__
    for name in written:
        if name not in known:
            shown = name[:NAME_CHARS_MAX] if name.isprintable() else "(a name that cannot be shown)"
            raise Misconfigured(f"{place}.{shown}: unknown; known here: {', '.join(known)}")
    for each in msgspec.structs.fields(kind):
        if each.required and each.name not in written:
            raise Misconfigured(f"{place}.{each.name}: is required")
    try:
        return msgspec.convert(written, kind)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$.")
        raise Misconfigured(f"{place}.{path.rstrip('`')}: {what.replace('`', '').lower()}") from None
