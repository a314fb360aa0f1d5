"""`configuration.md`: every key of `purse.toml` and every environment variable, from the Structs that read them.

What a key means is said here, once a key: one that the code has and this page does not is an error, and the other way
round.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
from reference.markdown import page, prose, table
from reference.sources import annotations

from engine import plan_file
from engine.core import limits
from engine.core.amounts import SCALE_MAX, SCALES
from engine.core.plan import Guard
from engine.plan_file import Local, WebTable
from engine.prices import own
from engine.process import LEVELS, RENDERERS
from projector.alerts import rules
from projector.alerts import settings as alerts
from projector.observers import settings as observers
from projector.observers.kinds import KINDS
from projector.seals import settings as seals
from web import ask_settings
from web.proxy import upstreams

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("engine", "projector", "web", "commonpurse")
VARIABLE = re.compile(r"PURSE_[A-Z][A-Z_]*[A-Z]")

_BEGINS = """
A `purse.toml` holds the plan, which goes onto the stream and decides, and beside it tables that stay in the process
that reads them: `purse up --config purse.toml`, or `PURSE_CONFIG`. A key that nobody knows is refused by its place.
Amounts are decimal strings. How to use it all: [operating](../operating.md).
"""

PLAN: Mapping[str, str] = {
    "rules": "The rules that decide; every engine that reads the stream must know them.",
    "ttl_s": "How long a hold lasts that does not say.",
    "ttl_s_min": f"The shortest that one may say, {limits.TTL_S_MIN} at least.",
    "ttl_s_max": f"The longest that one may say, {limits.TTL_S_MAX:,} at most.",
    "on_lapse": "What a hold that nobody settles comes to: the whole grant, or its progress.",
    "remember_s": f"How long ids and closed holds are remembered, {limits.REMEMBER_S_MAX:,} at most.",
    "zone": "The zone of the wallet's day, which is sealed when it is over: any IANA name.",
    "tzdata": "The zones' release that the plan was written for.",
}
BUDGET: Mapping[str, str] = {
    "unit": "What it counts: a unit of the plan.",
    "limit": "The most that may be used in one period.",
    "per": "The period. Weeks begin on Monday.",
    "zone": "Where it resets at midnight: any IANA name.",
    "where": "Label -> value: of the asks that have all of them.",
    "each": "One meter for each value of this label.",
    "required": "An ask without that label is invalid, and not merely uncounted.",
    "limit_for": '`"label=value"` -> a limit in place of the common one.',
    "source": "Whose figure may be observed for it.",
    "public": "What strangers see of it.",
    "note": "Stands in its refusals.",
    "link": "Stands in its refusals: http:// or https://.",
}
TIER: Mapping[str, str] = {
    "up_to": "Percent of the fullest budget that may be used, up to four digits after the point.",
    "grade": "The least grade that is affordable until then; larger is cheaper.",
}
GUARD: Mapping[str, str] = {
    "label": "Whose holds are counted, by the value of this label.",
    "more_than": "How many set it off, one past this.",
    "within_s": "Within so many seconds.",
    "action": "What happens to the label's value.",
    "for_s": "How long `cool` refuses its holds.",
    "distinct": "Count the different values of this label instead.",
}
WEB: Mapping[str, str] = {
    "host": "The address that is listened on; `PURSE_HOST` goes before it.",
    "port": "The port, 0 for any that is free; `PURSE_PORT` goes before it.",
    "refusal_status": "What a used-up budget is answered with; `PURSE_REFUSAL_STATUS` goes before it.",
    "trusted_proxies": "Addresses and networks whose `Forwarded` and `X-Forwarded-For` are believed.",
    "asks_per_minute": "Full questions of one stranger.",
    "estimates_per_minute": "Estimates of one stranger.",
    "visit_wait_ms": "How long an engine has to count a visit before the process counts for itself.",
}
UPSTREAM: Mapping[str, str] = {
    "base_url": "Where calls go: https:// or http://, without credentials, query or fragment.",
    "key_env": "The environment variable that has our key there.",
    "provider": "Whose prices it has; else that of its name.",
    "default_max_tokens": "The cap that is put into calls which name none.",
    "connect_s": "How long getting a connection may take, 3,600 at most.",
    "idle_s": "How long it may be silent, 3,600 at most.",
    "cheaper": "Model -> the one to take when budgets get short.",
}
ASK: Mapping[str, str] = {
    "model": "What the page's ask box asks; needed with `openai`.",
    "upstream": "Who answers; `built-in` makes its answers up and costs nothing.",
    "max_tokens": "The cap on each answer.",
}
ALERTS: Mapping[str, str] = {
    "percents": f"Shares that raise an alert, {rules.PERCENTS_MAX} at most, each up to {rules.PERCENT_MAX:,} %.",
    "off": f"Rules that are on unless named here: {', '.join(sorted(rules.OPTIONAL))}.",
    "burst": "A table, or several: more than so much within so long.",
    "runaway": "A table, or several: an hour that costs more than four times the usual.",
    "targets": f"Who hears of them, by name, {alerts.TARGETS_MAX} at most.",
}
BURST: Mapping[str, str] = {
    "budget": "Of which budget.",
    "amount": "More than this ...",
    "within_s": f"... within so many seconds, {rules.BURST_S_MIN} to {rules.BURST_S_MAX:,}.",
}
RUNAWAY: Mapping[str, str] = {"budget": "Of which budget.", "freeze": "Freeze it too."}
TARGET: Mapping[str, str] = {
    "kind": "`slack` or `json`.",
    "url_env": "The environment variable that has its address.",
    "secret_env": "The one that has the secret of the signature; needed with `json`.",
    "timeout_s": f"How long it may take to answer, {alerts.TIMEOUT_S_MAX} at most.",
}
OBSERVER: Mapping[str, str] = {
    "source": f"Whose figure: {', '.join(KINDS)}.",
    "budget": "For which budget.",
    "key_env": "The environment variable that has the key.",
    "account": "Which account, where the source needs one.",
    "every_s": f"How often, {observers.EVERY_S_MIN} to {observers.EVERY_S_MAX:,}.",
    "base_url": "Another address of the source.",
}
SEALS: Mapping[str, str] = {
    "nats_url_env": "The environment variable that has the address of another nats-server; with `subject`.",
    "subject": "Each day's seal goes to `<subject>.<day>` there.",
    "webhook_url_env": "The environment variable that has a webhook's address; with `webhook_secret_env`.",
    "webhook_secret_env": "The one that has the secret of its signature.",
}

VARIABLES: Mapping[str, tuple[str, str, str]] = {
    "PURSE_URL": ("the command, the clients", "http://127.0.0.1:8080", "Where the wallet answers."),
    "PURSE_KEY": ("the command, the clients", "", "The key that is brought."),
    "PURSE_DATA": ("`purse up`, every process", "`data` with the command, else none", "Where everything is kept."),
    "PURSE_CONFIG": ("`purse up`, projector, web", "", "The `purse.toml`."),
    "PURSE_HOST": ("`purse up`, web", "127.0.0.1", "Goes before `web.host`."),
    "PURSE_PORT": ("`purse up`, web", "8080", "Goes before `web.port`; 0 to 65,535."),
    "PURSE_OPEN": ("`purse up`, web", "", "`1`: holds are taken without a key."),
    "PURSE_REFUSAL_STATUS": ("web", "402", "Goes before `web.refusal_status`; 402, 403 or 429."),
    "PURSE_PRICE_BOOK": ("web, the command", "", "A price book in place of the one that ships."),
    "PURSE_NATS_URL": (
        "`purse up`, every process, the command", "nats://127.0.0.1:4222 in a process",
        "The nats-server or cluster; several with commas between.",
    ),
    "PURSE_WALLET": ("`purse up`, every process, the command", "main", "The wallet's name on the stream."),
    "PURSE_PATIENCE_MS": ("engine", "0", "A standby speaks when nobody has for so long; 0 speaks at once."),
    "PURSE_LOG": ("every process", "json", f"How logs are written: {' or '.join(RENDERERS)} (`key=value`)."),
    "PURSE_LOG_LEVEL": ("every process", "info", f"From which on they are: {', '.join(LEVELS)}."),
}  # fmt: skip


def configuration_page() -> str:
    return page(
        "Configuration",
        _BEGINS,
        "## The plan",
        "### [plan]", keys(plan_file._Settings, PLAN),
        "### [units]",
        f"Unit -> its scale: how many digits it has after the point, 0 to {SCALE_MAX}. At most {limits.UNITS_MAX}; a "
        f"scale never changes. Every plan has {', '.join(f'`{unit}` {scale}' for unit, scale in SCALES.items())}.",
        "### [budgets.NAME]", f"At most {limits.BUDGETS_MAX}.", keys(plan_file._Budget, BUDGET),
        "### [[tiers]]", f"At most {limits.TIERS_MAX}, in rising order.", keys(plan_file._Tier, TIER),
        "### [tier_times]",
        f"Cohort -> what its thresholds are multiplied by, a decimal string of at most {limits.TIER_TIMES_MAX}. "
        f"At most {limits.TIER_COHORTS_MAX} cohorts.",
        "### [guards.NAME]", f"At most {limits.GUARDS_MAX}.", keys(Guard, GUARD),
        "## Of one process",
        "### [web]", keys(WebTable, WEB),
        "### [upstreams.NAME]",
        f"The name is one of {', '.join(f'`{name}`' for name in upstreams.PRICED_AS)}.",
        keys(upstreams._Table, UPSTREAM),
        '### [prices."MODEL"]',
        f"`MODEL` is a model's id, or `{own.CEILING}` for every model without a price. At most {own.OWN_PRICES_MAX:,}. "
        "Decimal strings; beside the prices of tokens both directions are needed, and only a written zero is free. "
        "`provider` says whose model it is, any if not given.",
        prices(),
        "### [ask]", keys(ask_settings._Table, ASK),
        "### [alerts]", keys(alerts._Alerts, ALERTS),
        "### [alerts.burst]", f"At most {rules.BURSTS_MAX}.", keys(alerts._Burst, BURST),
        "### [alerts.runaway]", f"At most {rules.RUNAWAYS_MAX}.", keys(alerts._Runaway, RUNAWAY),
        "### [alerts.targets.NAME]", keys(alerts._Target, TARGET),
        "### [observers.NAME]", f"At most {observers.OBSERVERS_MAX}.", keys(observers._Table, OBSERVER),
        "### [seals]", table(("key", "meaning"), [(f"`{name}`", SEALS[name]) for name in seals.FIELDS]),
        "## Environment variables",
        "What a written option says goes before its variable. Keys and addresses of others stand in variables that a "
        "`purse.toml` names.",
        table(
            ("variable", "who reads it", "default", "meaning"),
            [(f"`{name}`", who, default, meaning) for name, (who, default, meaning) in VARIABLES.items()],
        ),
    )  # fmt: skip


def keys(kind: type[msgspec.Struct], meanings: Mapping[str, str]) -> str:
    """A table of the keys that this Struct reads. Raises `KeyError` for one that nobody explains."""
    written = annotations(kind)
    return table(
        ("key", "type", "default", "meaning"),
        [(f"`{one.name}`", _type(kind, one.name, written), _default(one), meanings[one.name])
         for one in msgspec.structs.fields(kind)],
    )  # fmt: skip


TABLES: tuple[tuple[type[msgspec.Struct], Mapping[str, str]], ...] = (
    (plan_file._Settings, PLAN), (plan_file._Budget, BUDGET), (plan_file._Tier, TIER), (Guard, GUARD), (WebTable, WEB),
    (upstreams._Table, UPSTREAM), (ask_settings._Table, ASK), (alerts._Alerts, ALERTS), (alerts._Burst, BURST),
    (alerts._Runaway, RUNAWAY), (alerts._Target, TARGET), (observers._Table, OBSERVER),
)  # fmt: skip
"""Every Struct that reads a table of `purse.toml`, and what this page says of its keys."""

OF_LOCAL = {"web", "upstreams", "prices", "ask", "alerts", "observers", "seals"}
"""The tables of one process that have a section here."""


def explained() -> Iterator[tuple[set[str], set[str]]]:
    """For every table what the code reads and what this page explains: the same."""
    for kind, meanings in TABLES:
        yield set(kind.__struct_fields__), set(meanings)
    yield set(seals.FIELDS), set(SEALS)
    yield set(Local.__struct_fields__), OF_LOCAL
    yield set(variables()), set(VARIABLES)


def variables() -> Iterator[str]:
    """Every variable of ours that the code reads: it stands there as a string of its own."""
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and VARIABLE.fullmatch(node.value):
                    yield node.value


def prices() -> str:
    return table(
        ("key", "meaning", "expected"),
        [(f"`{name}`", one.meant, f"{one.low} to {one.high}, or 0") for name, one in own.FIELDS.items()],
    )


_PLAIN = {
    "str": "text", "int": "whole number", "float": "number", "bool": "true or false", "object": "decimal string",
    "list[str]": "list of texts", "list[int]": "list of whole numbers", "dict[str, str]": "table of texts",
    "dict[str, object]": "table", "str | None": "text",
}  # fmt: skip


def _type(kind: type[msgspec.Struct], name: str, written: Mapping[str, str]) -> str:
    hint = get_type_hints(kind, vars(import_module(kind.__module__)), include_extras=True)[name]
    bounds = ""
    if get_origin(hint) is Annotated:
        hint, *metas = get_args(hint)
        bounds = "".join(_bounds(meta) for meta in metas)
    choices = [one for one in get_args(hint) if isinstance(one, str | int) and not isinstance(one, type)]
    if choices:
        return " or ".join(f"`{_toml(one)}`" for one in choices)
    if written[name] == "object" and name in ("burst", "runaway"):
        return "table or list of tables"
    if name in ("limit_for", "amount"):
        return "table of decimal strings" if name == "limit_for" else "decimal string"
    return _PLAIN.get(written[name], _PLAIN.get(getattr(hint, "__name__", ""), written[name])) + bounds


def _bounds(meta: Any) -> str:
    low = meta.ge if meta.ge is not None else meta.gt
    if meta.le is not None:
        return f", {'above ' if meta.gt is not None else ''}{low:,} to {meta.le:,}"
    return f", at most {meta.max_length} characters" if meta.max_length is not None else ""


def _default(one: msgspec.structs.FieldInfo) -> str:
    if one.required:
        return "required"
    value = one.default if one.default is not msgspec.NODEFAULT else one.default_factory()  # type: ignore[operator]
    return "" if value in (None, "", [], {}, ()) else f"`{_toml(value)}`"


def _toml(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f'"{prose(value)}"'
        case float():
            return f"{value:g}"
    return str(value)
