"""`[observers.NAME]` of `purse.toml`: who reads which account's figure, for which budget, with whose key.

Everything is checked before anything starts. A key is named by its environment variable and never shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast, get_args
from urllib.parse import urlsplit

import msgspec

from engine.core.limits import NAME_CHARS_MAX, TEXT_CHARS_MAX
from engine.core.plan import NAME, Plan
from engine.errors import Misconfigured
from engine.plan_file import read
from projector.observers.fitting import unfit
from projector.observers.kinds import KINDS, Name
from projector.secrets import is_here, secret_of

OBSERVERS_MAX = 16
EVERY_S_MIN = 30  # the figures are minutes old anyway, and the reports have limits of their own
EVERY_S_MAX = 24 * 3600
_ACCOUNT = re.compile(r"[A-Za-z0-9_-]{1,128}", re.ASCII)


class _Table(msgspec.Struct, frozen=True):
    """`[observers.NAME]` as written."""

    source: str
    budget: str
    key_env: str
    account: str = ""
    every_s: int = EVERY_S_MIN
    base_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserverSettings:
    """One observer. `key` is a secret and stands in no error, log or representation."""

    name: str
    source: Name
    budget: str
    account: str
    every_s: int
    base_url: str
    key: str = field(repr=False)


def observers_of(config: Path | None, *, environment: Mapping[str, str], at: int) -> list[ObserverSettings]:
    """The observers of a `purse.toml`, none without one. Raises `Misconfigured` naming file and place."""
    if config is None:
        return []
    found = read(config)
    try:
        return read_observers(found.local.observers, environment=environment, plan=found.plan, at=at)
    except Misconfigured as error:
        raise Misconfigured(f"{config}: {error}") from None


def read_observers(
    written: Mapping[str, object], *, environment: Mapping[str, str], plan: Plan | None, at: int
) -> list[ObserverSettings]:
    """The observers that the tables ask for. Raises `Misconfigured` naming the place.

    `plan`: the one in the same file, if it has one; budgets are then held against it as of `at` (ns since 1970).
    """
    if len(written) > OBSERVERS_MAX:
        raise Misconfigured(f"observers: at most {OBSERVERS_MAX}")
    found: list[ObserverSettings] = []
    for name, table in written.items():
        if not NAME.fullmatch(name):
            raise Misconfigured(f"observers: a name is {NAME.pattern}")
        observer = _observer(name, table, environment)
        other = next((other for other in found if other.budget == observer.budget), None)
        if other is not None:
            raise Misconfigured(
                f"observers.{name}.budget: observers.{other.name} reads for it; a budget has one figure"
            )
        if plan is not None:
            _check_budget(observer, plan, at)
        found.append(observer)
    return found


def _observer(name: str, written: object, environment: Mapping[str, str]) -> ObserverSettings:
    place = f"observers.{name}"
    table = _shaped(written, place)
    if table.source not in KINDS:
        raise Misconfigured(f"{place}.source: expected one of {', '.join(get_args(Name))}")
    source = cast("Name", table.source)
    if not NAME.fullmatch(table.budget):
        raise Misconfigured(f"{place}.budget: expected the name of a budget")
    if not EVERY_S_MIN <= table.every_s <= EVERY_S_MAX:
        raise Misconfigured(f"{place}.every_s: expected {EVERY_S_MIN} to {EVERY_S_MAX} seconds")
    _check_account(table.account, source, place)
    return ObserverSettings(
        name=name,
        source=source,
        budget=table.budget,
        account=table.account,
        every_s=table.every_s,
        base_url=_base_url(table.base_url, place) or KINDS[source].base_url,
        key=secret_of(table.key_env, environment, f"{place}.key_env"),
    )


def _shaped(written: object, place: str) -> _Table:
    if not isinstance(written, dict):
        raise Misconfigured(f"{place}: expected a table of names and values")
    known = _Table.__struct_fields__
    for name in written:
        if name not in known:
            shown = name[:NAME_CHARS_MAX] if name.isprintable() else "(a name that cannot be shown)"
            raise Misconfigured(f"{place}.{shown}: unknown; known here: {', '.join(known)}")
    for required in ("source", "budget", "key_env"):
        if required not in written:
            raise Misconfigured(f"{place}.{required}: is required")
    try:
        return msgspec.convert(written, _Table)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$.")
        raise Misconfigured(f"{place}.{path.rstrip('`')}: {what.replace('`', '').lower()}") from None


def _check_account(account: str, source: Name, place: str) -> None:
    kind = KINDS[source]
    if kind.account == "none" and account:
        raise Misconfigured(f"{place}.account: not with {source}: {kind.account_means}")
    if kind.account == "required" and not account:
        raise Misconfigured(f"{place}.account: is required with {source}: {kind.account_means}")
    if account and not _ACCOUNT.fullmatch(account):
        raise Misconfigured(f"{place}.account: expected {kind.account_means}")


def _base_url(written: str, place: str) -> str:
    """An address without anything secret in it, and encrypted unless it is on this machine."""
    if not written:
        return ""
    wrong = Misconfigured(f"{place}.base_url: expected https://host/path, or http:// on this machine")
    if len(written) > TEXT_CHARS_MAX or not written.isascii() or not written.isprintable():
        raise wrong
    try:
        parts = urlsplit(written)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise wrong from None
    if parts.query or parts.fragment or parts.username is not None or not host:
        raise wrong
    if parts.scheme != "https" and not (parts.scheme == "http" and is_here(host)):
        raise wrong
    return written.rstrip("/")


def _check_budget(observer: ObserverSettings, plan: Plan, at: int) -> None:
    budget = plan.budgets.get(observer.budget)
    if budget is None:
        raise Misconfigured(f"observers.{observer.name}.budget: the plan has no such budget")
    if budget.each is not None:
        raise Misconfigured(
            f"observers.{observer.name}.budget: it has a meter for each {budget.each}, and an account has one figure"
        )
    wrong = unfit(
        observer.source, unit=budget.unit, per=budget.per, zone=budget.zone, source=budget.source or "", at=at
    )
    if wrong is not None:
        raise Misconfigured(f"observers.{observer.name}.budget: {wrong}")
