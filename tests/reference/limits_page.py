"""`limits.md`: every limit that the code names, with its value and reason, from the modules that keep them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

from reference.markdown import page, table

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("engine", "projector", "web", "commonpurse")
LIMIT = re.compile(r"(?!_)[A-Z0-9_]+", re.ASCII)
WORDS = {"MAX", "MIN", "DEFAULT", "TIMEOUT"}
OF_THE_LANGUAGE = "engine.core.limits"

_BEGINS = """
Each is named in one place in the code, which is where this page reads it. The name says what of, and last in what:
`_S` seconds, `_MS` milliseconds, `_BYTES`, `_CHARS`; `_MAX` is the most that is taken, `_MIN` the least. What an
operator may change: [configuration](configuration.md).
"""


@dataclass(frozen=True, slots=True)
class Limit:
    module: str
    name: str
    value: Any
    why: str

    @property
    def counts(self) -> bool:
        """A number, or a size in words (`8MB`), or several by name: a default plan, address or version is none."""
        values = self.value.values() if isinstance(self.value, Mapping) else [self.value]
        return all(isinstance(one, int | float | Decimal) or re.fullmatch(r"\d+[KMG]B", str(one)) for one in values)


def limits_page() -> str:
    by_module: dict[str, list[Limit]] = {}
    for limit in found():
        by_module.setdefault(limit.module, []).append(limit)
    language = by_module.pop(OF_THE_LANGUAGE)
    rest = [limit for limits in by_module.values() for limit in limits]
    return page(
        "Limits",
        _BEGINS,
        "## Of the language",
        f"What any ask, plan or message may be (`{OF_THE_LANGUAGE}`): the same on every wallet.",
        table(("limit", "value", "of what, or why"), [(f"`{one.name}`", _shown(one), one.why) for one in language]),
        "## Of one process",
        "What a part of the wallet takes, keeps or waits for.",
        table(
            ("module", "limit", "value", "of what, or why"),
            [(f"`{one.module}`", f"`{one.name}`", _shown(one), one.why) for one in rest],
        ),
    )


def found() -> Iterator[Limit]:
    """Every limit that a module of ours defines at its top level."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield from _of(path)


def _of(path: Path) -> Iterator[Limit]:
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    body = ast.parse(source).body
    for place, statement in enumerate(body):
        name = _assigned(statement)
        if name is None or not LIMIT.fullmatch(name) or not _is_limit(name, module):
            continue
        behind = lines[(statement.end_lineno or 1) - 1].partition("  # ")[2]
        why = behind or _docstring(body[place + 1] if place + 1 < len(body) else None)
        limit = Limit(module, name, getattr(import_module(module), name), why)
        if limit.counts:
            yield limit


def _is_limit(name: str, module: str) -> bool:
    return module == OF_THE_LANGUAGE or bool(WORDS & set(name.split("_")))


def _assigned(statement: ast.stmt) -> str | None:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
    return None


def _docstring(statement: ast.stmt | None) -> str:
    match statement:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return text.split("\n\n")[0]
    return ""


def _shown(limit: Limit) -> str:
    value = limit.value
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_number(one, limit.name)}" for key, one in value.items())
    return _number(value, limit.name)


def _number(value: object, name: str) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        return f"{value:g} s" if isinstance(value, float) and _seconds(name) else str(value)
    if value == 2**63 - 1:
        return "2^63 - 1"
    if "BYTES" in name.split("_"):
        for size, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
            if value >= size and value % size == 0:
                return f"{value // size} {unit}"
    if _seconds(name):
        for size, unit in ((24 * 3600, "days"), (3600, "h"), (60, "min")):
            if value >= 2 * size and value % size == 0:
                return f"{value // size} {unit}"
        return f"{value:,} s"
    return f"{value:,}"


def _seconds(name: str) -> bool:
    return "S" in name.split("_")
