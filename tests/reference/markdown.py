"""How the pages of `docs/reference` are written: tables, and types as people read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Json = dict[str, Any]

MADE = "<!-- Made by `make reference` from the code; a test compares. Change the code, not this page. -->"


def page(title: str, *parts: str) -> str:
    """A whole page."""
    return "\n\n".join([f"# {title}", MADE, *(part.strip("\n") for part in parts if part)]) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, "" without rows."""
    lines = [f"| {' | '.join(map(_cell, row))} |" for row in rows]
    if not lines:
        return ""
    return "\n".join([f"| {' | '.join(head)} |", "|" + "---|" * len(head), *lines])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def prose(docstring: str | None) -> str:
    """A docstring as one paragraph a paragraph."""
    return "\n\n".join(" ".join(part.split()) for part in (docstring or "").split("\n\n")).strip()


def anchor(heading: str) -> str:
    """Where a heading is linked to."""
    kept = "".join(each for each in heading.lower().replace(" ", "-") if each.isalnum() or each in "-_")
    return f"#{kept}"


def type_of(schema: Json) -> str:
    """A JSON schema as people read it: `string`, `integer, 1 to 8`, `list of X`, `X or null`."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[`{name}`]({anchor(name)})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(type_of, schema["anyOf"])))
    if "const" in schema or "enum" in schema:
        return " or ".join(f"`{_written(value)}`" for value in schema.get("enum", [schema.get("const")]))
    match schema.get("type"):
        case "array":
            bounds = _bounds(schema, "minItems", "maxItems")
            return f"list of {type_of(schema.get('items', {}))}{bounds}"
        case "object":
            more = schema.get("additionalProperties")
            of = f" of {type_of(more)}" if isinstance(more, dict) and more else ""
            return f"map{of}{_bounds(schema, 'minProperties', 'maxProperties')}"
        case "string":
            if "pattern" in schema and schema["pattern"].startswith("^-?[0-9]"):
                return "amount"
            if schema.get("format") == "date-time":
                return "moment"
            return f"string{_bounds(schema, 'minLength', 'maxLength', ' characters')}"
        case "integer" | "number" as kind:
            return f"{kind}{_bounds(schema, 'minimum', 'maximum')}"
        case list() as kinds:
            return " or ".join(kinds)
        case None:
            return "any"
        case other:
            return str(other)


def _written(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def _bounds(schema: Json, least: str, most: str, unit: str = "") -> str:
    low, high = schema.get(least), schema.get(most)
    if high is None:
        return "" if low in (None, 0) else f", at least {low:,}{unit}"
    return f", at most {high:,}{unit}" if low in (None, 0) else f", {low:,} to {high:,}{unit}"


def members(schema: Json) -> str:
    """The members of an object, a row each."""
    must = schema.get("required", ())
    rows = [
        (f"`{name}`", type_of(of), _presence(name, of, must), of.get("description", ""))
        for name, of in schema.get("properties", {}).items()
    ]
    return table(("member", "type", "", "meaning"), rows)


def _presence(name: str, of: Json, must: Sequence[str]) -> str:
    if name in must:
        return ""
    default = of.get("default")
    return "optional" if default in (None, {}, [], "") else f"default `{_written(default)}`"
