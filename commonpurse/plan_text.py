"""Writes a plan as the `purse.toml` it could have come from, so that what is shown can be edited and applied again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from engine.core.plan import Plan, digest
from engine.plan_file import plan_to_json

_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


def plan_text(plan: Plan) -> str:
    """TOML with every default said. `engine.plan_file.parse_toml` reads the same plan from it."""
    tables = plan_to_json(plan)
    lines = [f"# plan {digest(plan)}"]
    for name in ("plan", "units"):
        lines += ["", f"[{name}]", *_fields(_table(tables[name]))]
    for name, budget in _table(tables["budgets"]).items():
        lines += ["", f"[budgets.{_key(name)}]", *_fields(_table(budget))]
    for tier in _list(tables.get("tiers", [])):
        lines += ["", "[[tiers]]", *_fields(_table(tier))]
    if "tier_times" in tables:
        lines += ["", "[tier_times]", *_fields(_table(tables["tier_times"]))]
    return "\n".join(lines)


def _table(found: object) -> Mapping[str, object]:
    assert isinstance(found, Mapping)
    return found


def _list(found: object) -> list[object]:
    assert isinstance(found, list)
    return found


def _fields(table: Mapping[str, object]) -> Iterator[str]:
    return (f"{_key(name)} = {_value(value)}" for name, value in table.items())


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _string(name)


def _value(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case Mapping():
            return "{ " + ", ".join(_fields(value)) + " }"
        case _:
            return _string(str(value))


def _string(text: str) -> str:
    """TOML's basic strings escape as JSON does, and DEL besides."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
