"""`types.ts`: every body of the API as a TypeScript type, and every route with its body and answers by status.

Made from the OpenAPI document by hand: what the document uses of JSON Schema is little.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator

from api_document import DOCUMENT
from reference.markdown import Json, prose

from web.openapi import ITEM

_HEAD = """
// The bodies of Common Purse's HTTP API. Made by `make reference` from the OpenAPI document; a test compares.
// Amounts are decimal strings: keep them strings, or use a decimal library, never a float.
"""
_NAME = re.compile(r"[A-Za-z_]\w*")


def types_file() -> str:
    parts = [_HEAD.strip("\n")]
    for name, schema in DOCUMENT["components"]["schemas"].items():
        parts.append(f"{_comment(schema.get('description', ''))}export interface {name} {_object(schema, '')}")
    parts.append("/** Every route: what it takes, and what it answers by status. */\n" + _routes())
    return "\n\n".join(parts) + "\n"


def _routes() -> str:
    lines = ["export interface Routes {"]
    for path, operations in DOCUMENT["paths"].items():
        for method, said in operations.items():
            lines += [f'  "{method.upper()} {path}": {{', *_route(said), "  };"]
    return "\n".join([*lines, "}"])


def _route(said: Json) -> Iterator[str]:
    if (body := said.get("requestBody")) is not None:
        [content] = body["content"].values()
        yield f"    body{'' if body['required'] else '?'}: {_type(content['schema'], '    ')};"
    yield "    answers: {"
    for status, answer in said["responses"].items():
        kinds = [_type(one.get(ITEM, one["schema"]), "      ") for one in answer.get("content", {}).values()]
        yield f"      {status}: {' | '.join(kinds) or 'null'};"
    yield "    };"


def _type(schema: Json, indent: str) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_type(one, indent) for one in schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return " | ".join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
    match schema.get("type"):
        case "object":
            return _object(schema, indent) if "properties" in schema else _map(schema, indent)
        case "array":
            of = _type(schema.get("items", {}), indent)
            return f"({of})[]" if " | " in of else f"{of}[]"
        case "integer" | "number":
            return "number"
        case "string" | "boolean" | "null" as kind:
            return str(kind)
        case list() as kinds:
            return " | ".join(_type({"type": kind}, indent) for kind in kinds)
    return "unknown"


def _map(schema: Json, indent: str) -> str:
    more = schema.get("additionalProperties")
    return f"{{ [name: string]: {_type(more, indent) if isinstance(more, dict) else 'unknown'} }}"


def _object(schema: Json, indent: str) -> str:
    """Where other members may come, any of them is unknown."""
    deeper = indent + "  "
    must = schema.get("required", ())
    lines = []
    for name, of in schema.get("properties", {}).items():
        key = name if _NAME.fullmatch(name) else json.dumps(name)
        comment = _comment(of.get("description", "") if "$ref" not in of else "", deeper)
        lines.append(f"{comment}{deeper}{key}{'' if name in must else '?'}: {_type(of, deeper)};")
    if schema.get("additionalProperties") is not False:
        lines.append(f"{deeper}[name: string]: unknown;")
    return "{\n" + "\n".join(lines or [f"{deeper}[name: string]: never;"]) + f"\n{indent}}}"


def _comment(text: str, indent: str = "") -> str:
    if not text:
        return ""
    lines = [line for part in prose(text).split("\n") for line in textwrap.wrap(part, 110)]
    if len(lines) == 1:
        return f"{indent}/** {lines[0]} */\n"
    return f"{indent}/**\n" + "".join(f"{indent} * {line}\n" for line in lines) + f"{indent} */\n"
