"""The OpenAPI 3.1 document, made from the same route table and body Structs that serve the requests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version

import msgspec
from aiohttp import web

from web.answers import Body
from web.auth import Caller
from web.desk import Desk
from web.problems import PROBLEM_JSON
from web.routes import Route
from web.spending import IDEMPOTENCY_KEY

_REF = "#/components/schemas/{name}"
_IN_PATH = re.compile(r"{(\w+)}")
_DESCRIPTION = (
    "Hold the most a call could cost before it is made, settle what it really cost. Amounts are decimal strings, "
    "times are RFC 3339 UTC, errors are problem+json. Every answer carries `x-request-id`. "
    "The routes of Cycles (`/v1/reservations`, `/v1/balances`, `/v1/decide`, `/v1/events`) are as its own document has "
    "them, and not described here."
)
_OF_ANY = {
    401: "The key that was brought is none of this wallet's, or no longer.",
    503: "Whether the key that was brought is one of this wallet's cannot be said now.",
}
_OF_A_ROLE = {403: "The key's role may not do this."}
_OF_ANY_BODY = {
    408: "The body came too slowly.",
    413: "The body is larger than 1 MiB.",
    415: "The body is not `application/json`.",
}
_PROBLEM = {
    "type": "object",
    "description": "RFC 9457. A refusal by the wallet also has `outcome` and what belongs to it.",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "outcome": {"type": "string"},
        "field": {"type": "string", "description": "Where in the request, as a JSON path."},
        "why": {"type": "string"},
    },
    "required": ["type", "title", "status", "detail"],
}


def openapi_route(routes: Sequence[Route]) -> Route:
    """The route that serves the document about `routes` and itself. The document is made once, when first asked for."""

    async def serve(_request: web.Request, _desk: Desk, _caller: Caller) -> web.Response:
        return web.Response(body=encoded(), content_type="application/json")

    @cache
    def encoded() -> bytes:
        return msgspec.json.encode(document([*routes, own]))

    own = Route(
        method="GET", path="/openapi.json", access="public", handler=serve, tag="health",
        summary="This document.", answers={200: "OpenAPI 3.1."},
    )  # fmt: skip
    return own


def document(routes: Iterable[Route]) -> Body:
    """The whole document."""
    table = list(routes)
    bodies = [route.takes for route in table if route.takes is not None]
    _, schemas = msgspec.json.schema_components(bodies, ref_template=_REF)
    paths: dict[str, dict[str, object]] = {}
    for route in table:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Common Purse",
            "version": _version(),
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": {**schemas, "Problem": _PROBLEM},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Route) -> Body:
    closed = _OF_A_ROLE if route.access != "public" else {}
    answers = {**_OF_ANY, **closed, **(_OF_ANY_BODY if route.takes is not None else {}), **route.answers}
    body: Body = {
        "operationId": _name(route),
        "tags": [route.tag],
        "summary": route.summary,
        "parameters": _parameters(route),
        "responses": {str(status): _response(status, meaning, route) for status, meaning in sorted(answers.items())},
    }
    match route.access:
        case "observe" | "audit" | "admin":
            body["security"] = [{"key": []}]
        case _:  # with a key, or without one where that is allowed
            body["security"] = [{"key": []}, {}]
    if route.takes is not None:
        schema = {"$ref": _REF.format(name=route.takes.__name__)}
        body["requestBody"] = {
            "required": not route.body_optional,
            "content": {"application/json": {"schema": schema}},
        }
    return body


def _name(route: Route) -> str:
    words = re.sub(r"[{}]", "", route.path).replace(":", "/").replace(".", "/").split("/")
    return "_".join([route.method.lower(), *(word for word in words if word and word != "v1")])


def _parameters(route: Route) -> list[Body]:
    found: list[Body] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _IN_PATH.findall(route.path)
    ]
    if route.keyed:
        meaning = "The id, if the body has none. Quoted or bare."
        found.append({"name": IDEMPOTENCY_KEY, "in": "header", "description": meaning, "schema": {"type": "string"}})
    for kind, named in (("integer", route.query), ("string", route.said)):
        for name, meaning in named.items():
            found.append({"name": name, "in": "query", "description": meaning, "schema": {"type": kind}})
    if route.path == "/readyz":
        found.append({"name": "verbose", "in": "query", "allowEmptyValue": True, "schema": {"type": "string"}})
    return found


def _response(status: int, meaning: str, route: Route) -> Body:
    if status >= 400:
        content: Body = {PROBLEM_JSON: {"schema": {"$ref": _REF.format(name="Problem")}}}
    else:
        kind = {"type": "string"} if route.media_type != "application/json" else {"type": "object"}
        content = {route.media_type: {"schema": kind}}
    return {"description": meaning, "content": content}


def _version() -> str:
    try:
        return version("commonpurse")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "0"
