"""`http.md`: every route with its body, its answers and one call, from the route tables and the OpenAPI document."""

from __future__ import annotations

import json
import re
import textwrap

from api_document import DOCUMENT
from reference.markdown import Json, anchor, members, page, prose, table, type_of

from web.app import _TABLES
from web.auth import _ENDED, _OPEN, _ROLES
from web.examples import EXAMPLES, Example
from web.openapi import ITEM, openapi_route
from web.problem_shapes import OF_ANY
from web.routes import Route

ROUTES = (*_TABLES, openapi_route(_TABLES))
SCHEMAS: Json = DOCUMENT["components"]["schemas"]
ADDRESS = "http://127.0.0.1:8080"
WIDTH = 110
_AMONG_ANY = {kind.__name__ for kind in OF_ANY}
_ENDS_QUICKLY = {"GET /v1/status/stream": 5, "GET /metrics": 3}
"""Of an answer that is long or never ends: how many of its lines the example takes."""

_BEGINS = """
What `GET /openapi.json` says, to read. Amounts are decimal strings, moments RFC 3339 in UTC. Every answer carries
`x-request-id`: the caller's own, if it sent one of up to 64 letters, digits and `._:-`, else a fresh one. Where `GET`
is answered so is `HEAD`, but for live streams; `OPTIONS` is answered 204 with `Allow`, another method 405 with the
same. From 400 on the body is `application/problem+json`: [every kind of problem](errors.md). Types for TypeScript:
[types.ts](types.ts). Answers are not to be kept (`Cache-Control: no-store`), but for `/openapi.json`, which has an
`ETag`.

The providers' own addresses, guarded, are not among these: their bodies are the providers'. See
[what a refusal is to a client](../refusals.md). Nor are the routes of Cycles (`/v1/reservations`, `/v1/balances`,
`/v1/decide`, `/v1/events`), which are as its own document has them:
[a client of Cycles](../guides/cycles-clients.md).

The examples can be made one after another on a new wallet with the default plan (`purse up`), and a test makes them:

```sh
export PURSE_KEY=$(cat data/admin.key)
TODAY=$(date -u +%F)
```
"""


def http_page() -> str:
    parts = [_BEGINS, "## Routes", table(("route", "who", "what for"), map(_row, ROUTES))]
    for tag in dict.fromkeys(route.tag for route in ROUTES):
        parts.append(f"## {tag.capitalize()}")
        for route in ROUTES:
            if route.tag == tag:
                parts.extend(_route(route))
    parts += ["## Bodies", "Each has the members that are named and no others.", *_bodies()]
    return page("HTTP", *parts)


def _row(route: Route) -> tuple[str, str, str]:
    return f"[`{route.named}`]({anchor(route.named)})", _who(route), route.summary


def _who(route: Route) -> str:
    if route.access == "public":
        return "anybody"
    roles = ", ".join([*sorted(_ROLES[route.access]), "admin"])
    ended = ", a key that has ended" if route.access in _ENDED else ""
    return f"{roles}{ended}{'; anybody with `--open`' if route.access in _OPEN else ''}"


def _route(route: Route) -> list[str]:
    said = DOCUMENT["paths"][route.path][route.method.lower()]
    parts = [f"### {route.named}", route.summary, f"Who: {_who(route)}."]
    if parameters := table(
        ("parameter", "in", "type", "", "meaning"),
        (
            (f"`{one['name']}`", one["in"], type_of(one["schema"]), "" if one.get("required") else "optional",
             one.get("description", ""))
            for one in said["parameters"]
        ),
    ):  # fmt: skip
        parts.append(parameters)
    if route.takes is not None:
        name = route.takes.__name__
        optional = " It may be empty." if route.body_optional else ""
        parts.append(f"Body: [`{name}`]({anchor(name)}).{optional}")
    rows = [_answer(status, answer) for status, answer in said["responses"].items()]
    parts.append(table(("status", "body", "meaning"), rows))
    return [*parts, example(route, EXAMPLES[route.named])]


def _answer(status: str, answer: Json) -> tuple[str, str, str]:
    found = []
    for content in answer.get("content", {}).values():
        schema = content.get(ITEM, content["schema"])
        for one in schema.get("anyOf", [schema]):
            name = one.get("$ref", "").rpartition("/")[2]
            if not name:
                found.append("text")
            elif name.endswith("Problem"):
                found.append(f"[`{name.removesuffix('Problem')}`](errors.md{anchor(name.removesuffix('Problem'))})")
            else:
                found.append(f"[`{name}`]({anchor(name)})")
    return status, ", ".join(found), answer["description"]


# --- examples ---------------------------------------------------------------------------------------------------------


def example(route: Route, one: Example) -> str:
    """One call and its answer."""
    shown = "\n".join(one.lines) if one.answer is None else _json(one.answer)
    kept = "".join(f"\n{name}=...  # `{member}` of this answer, for what follows" for name, member in one.keeps.items())
    status = "" if one.status == 200 else f"\n\nIt is answered {one.status}:"
    kind = "json" if one.answer is not None else "text"
    return f"```sh\n{curl(route, one)}{kept}\n```{status}\n\n```{kind}\n{shown}\n```"


def curl(route: Route, one: Example) -> str:
    """The command line. Variables stand where the shell puts their values."""
    address = (one.address or route.path).replace("$NOW", "$(date -u +%T)")
    url = f"{ADDRESS}{address}"
    parts = ["curl -sN" if route.named in _ENDS_QUICKLY else "curl -s"]
    if route.access != "public" or route.tag == "spending" or route.named == "GET /v1/status":
        parts.append('-H "Authorization: Bearer $PURSE_KEY"')
    parts.append(f'"{url}"' if "$" in url or "?" in url else url)
    if one.body is not None:
        parts += ["-H 'Content-Type: application/json'", f"-d {_quoted(one.body)}"]
    line = parts[0]
    width = len(line)
    for part in parts[1:]:
        if width + len(part) + 1 > WIDTH:
            line += f" \\\n  {part}"
            width = len(part.rpartition("\n")[2]) + 2
        else:
            line += f" {part}"
            width += len(part) + 1
    lines = _ENDS_QUICKLY.get(route.named)
    return line if lines is None else f"{line} | head -n {lines}"


def _quoted(body: object) -> str:
    written = json.dumps(body)
    if len(written) > WIDTH - 10:
        written = _json(body)
    return "'" + re.sub(r'"(\$[A-Z_]+)"', "\"'\\1'\"", written) + "'"


def _json(value: object, indent: str = "") -> str:
    """JSON that fills its lines: what is short stands on one."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) + len(indent) <= WIDTH or not isinstance(value, dict | list) or not value:
        return flat
    deeper = indent + "  "
    if isinstance(value, list):
        inside = [_json(one, deeper) for one in value]
        return "[\n" + ",\n".join(deeper + one for one in inside) + f"\n{indent}]"
    inside = [f"{json.dumps(name)}: {_json(one, deeper)}" for name, one in value.items()]
    if any("\n" in one for one in inside):
        return "{\n" + ",\n".join(deeper + one for one in inside) + f"\n{indent}}}"
    glued = textwrap.fill(
        ", ".join(one.replace(" ", "\0") for one in inside), width=WIDTH - len(deeper), break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    return "{\n" + textwrap.indent(glued.replace("\0", " "), deeper) + f"\n{indent}}}"


# --- bodies -----------------------------------------------------------------------------------------------------------


def _bodies() -> list[str]:
    parts = []
    for name, schema in SCHEMAS.items():
        if not name.endswith("Problem"):
            parts += [f"### {name}", prose(schema.get("description")), _members(schema)]
    return parts


def _members(schema: Json) -> str:
    text = members(schema)
    return re.sub(r"\[`(\w+)Problem`\]\([^)]*\)", lambda found: f"[`{found[1]}`](errors.md{anchor(found[1])})", text)
