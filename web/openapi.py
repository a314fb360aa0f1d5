"""The OpenAPI 3.1 document, made from the same route table and body Structs that serve the requests.

What a success looks like, a route says (`gives`); what its problems look like follows from who may use it, whether it
takes a body, where it is counted, and what it names beside that (`web.problem_shapes`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from typing import get_args, get_type_hints

import msgspec
from aiohttp import web

from web.answers import Body
from web.auth import Caller
from web.batch_shapes import IN_A_BATCH
from web.desk import Desk
from web.examples import EXAMPLES, STANDS_FOR
from web.problem_shapes import (
    AUTHENTICATE,
    NEVER,
    OF_A_BODY,
    OF_A_QUEUE,
    OF_A_ROLE,
    OF_ANY,
    OF_NO_ROUTE,
    RETRY_AFTER,
    Kinds,
    ProblemShape,
)  # fmt: skip
from web.problems import PROBLEM_JSON
from web.read_shapes import DocumentAnswer
from web.routes import Parameter, Route
from web.spending import IDEMPOTENCY_KEY

JSON = "application/json"
ITEM = "x-item-schema"
"""Of a stream: the schema of one line, or of the data of one event. OpenAPI has no word for it before 3.2."""

_REF = "#/components/schemas/{name}"
_HEADER_REF = "#/components/headers/{name}"
_IN_PATH = re.compile(r"{(\w+)}")
_DESCRIPTION = (
    "Hold the most a call could cost before it is made, settle what it really cost. Amounts are decimal strings, "
    "times are RFC 3339 UTC, errors are problem+json. Every answer carries `x-request-id`. Where GET is answered so is "
    "HEAD, but for live streams. "
    "The routes of Cycles (`/v1/reservations`, `/v1/balances`, `/v1/decide`, `/v1/events`) are as its own document has "
    "them, and not described here."
)
_MEANS = {
    400: "What was sent cannot be understood; `field` says where.",
    401: "A key is needed, or the key that was brought is none of this wallet's.",
    402: "The budget is used up until `resets_at`, where the operator chose this status.",
    403: "The key may not do this, or no longer.",
    408: "The body came too slowly.",
    413: "The body is larger than 1 MiB.",
    415: "The body is not `application/json`.",
    422: "This id stands for something else.",
    429: "Slow down.",
    500: "Our error, and no permission. `x-request-id` helps to find it.",
    503: "Nobody can say or decide now, not even whether the key that was brought is good.",
}
_SHOULD_RETRY = "`false` where trying again cannot help."
_HEADERS: dict[str, tuple[str, Body]] = {
    "x-request-id": ("The caller's own id of the request, if it sent one, else a fresh one.", {"type": "string"}),
    RETRY_AFTER: ("Seconds after which to try again.", {"type": "integer", "minimum": 1}),
    NEVER: (_SHOULD_RETRY, {"type": "string", "enum": ["false"]}),
    AUTHENTICATE: ("How to say who asks.", {"type": "string"}),
    "Allow": ("The methods that this address takes.", {"type": "string"}),
    "ETag": ("Changes with the body; `If-None-Match` with it is answered 304.", {"type": "string"}),
}


def openapi_route(routes: Sequence[Route]) -> Route:
    """The route that serves the document about `routes` and itself. The document is made once, when first asked for."""

    async def serve(request: web.Request, _desk: Desk, _caller: Caller) -> web.Response:
        body, tag = encoded()
        headers = {"ETag": f'"{tag}"', "Cache-Control": "no-cache"}
        if any(asked.value in (tag, "*") for asked in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        return web.Response(body=body, content_type=JSON, headers=headers)

    @cache
    def encoded() -> tuple[bytes, str]:
        body = msgspec.json.encode(document([*routes, own]))
        return body, blake2b(body, digest_size=8).hexdigest()

    own = Route(
        method="GET", path="/openapi.json", access="public", handler=serve, tag="health",
        summary="This document.", answers={200: "OpenAPI 3.1.", 304: "It is the one that `If-None-Match` names."},
        gives={200: (DocumentAnswer,)}, headers={200: ("ETag",), 304: ("ETag",)},
    )  # fmt: skip
    return own


def document(routes: Iterable[Route]) -> Body:
    """The whole document."""
    table = list(routes)
    paths: dict[str, dict[str, object]] = {}
    for route in table:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Common Purse",
            "version": _version(),
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": name} for name in dict.fromkeys(route.tag for route in table)],
        "paths": paths,
        "components": {
            "schemas": _schemas(table),
            "headers": {
                name: {"description": meaning, "required": True, "schema": schema}
                for name, (meaning, schema) in _HEADERS.items()
            },
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def problems_of(route: Route) -> Kinds:
    """Every kind of problem that this route may answer with."""
    found = (
        *(OF_A_ROLE if route.access != "public" else ()),
        *(OF_A_BODY if route.takes is not None else ()),
        *(OF_A_QUEUE if route.queue is not None else ()),
        *route.problems,
        *OF_ANY,
    )
    return tuple(dict.fromkeys(found))


@cache
def statuses_of(kind: type[ProblemShape]) -> tuple[int, ...]:
    """The statuses that this kind of problem may have."""
    return get_args(get_type_hints(kind)["status"])


def _schemas(table: Sequence[Route]) -> Body:
    bodies = [route.takes for route in table if route.takes is not None]
    given = [shape for route in table for shapes in route.gives.values() for shape in shapes]
    problems = [kind for route in table for kind in problems_of(route)]
    _, schemas = msgspec.json.schema_components(
        list(dict.fromkeys([*bodies, *given, *IN_A_BATCH, *problems, *OF_NO_ROUTE])), ref_template=_REF
    )
    return schemas


def _operation(route: Route) -> Body:
    body: Body = {
        "operationId": name_of(route),
        "tags": [route.tag],
        "summary": route.summary,
        "parameters": _parameters(route),
        "responses": _responses(route),
    }
    match route.access:
        case "observe" | "audit" | "admin":
            body["security"] = [{"key": []}]
        case _:  # with a key, or without one where that is allowed
            body["security"] = [{"key": []}, {}]
    if route.takes is not None:
        content: Body = {"schema": {"$ref": _REF.format(name=route.takes.__name__)}}
        if (example := EXAMPLES.get(route.named)) is not None and example.body is not None:
            content["example"] = _with_values(example.body)
        body["requestBody"] = {"required": not route.body_optional, "content": {JSON: content}}
    return body


def _with_values(said: object) -> object:
    """A body of an example with values where the shell would put them."""
    if isinstance(said, dict):
        return {name: _with_values(value) for name, value in said.items()}
    return STANDS_FOR.get(said, said) if isinstance(said, str) else said


def name_of(route: Route) -> str:
    """The operation's own name."""
    words = re.sub(r"[{}]", "", route.path).replace(":", "/").replace(".", "/").split("/")
    return "_".join([route.method.lower(), *(word for word in words if word and word != "v1")])


def _parameters(route: Route) -> list[Body]:
    found: list[Body] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in _IN_PATH.findall(route.path)
    ]
    if route.keyed:
        meaning = "The id, if the body has none. Quoted or bare."
        found.append({"name": IDEMPOTENCY_KEY, "in": "header", "description": meaning, "schema": {"type": "string"}})
    return [*found, *map(_in_query, route.query)]


def _in_query(one: Parameter) -> Body:
    schema: Body = {"type": "string"}
    if one.least is not None:
        schema = {"type": "integer", "minimum": one.least, "maximum": one.most}
    said: Body = {"name": one.name, "in": "query", "description": one.meaning, "required": one.required}
    return {**said, **({"allowEmptyValue": True} if one.may_be_empty else {}), "schema": schema}


def _responses(route: Route) -> Body:
    kinds: dict[int, list[type[ProblemShape]]] = {}
    for kind in problems_of(route):
        for status in statuses_of(kind):
            kinds.setdefault(status, []).append(kind)
    found = {status: _given(status, route) for status in route.answers if status < 400}
    found |= {status: _problem(status, route, of) for status, of in kinds.items()}
    return {str(status): found[status] for status in sorted(found)}


def _given(status: int, route: Route) -> Body:
    said: Body = {"description": route.answers[status], "headers": _headers(route.headers.get(status, ()))}
    shapes = route.gives.get(status, ())
    if status == 304:
        return said
    if route.media_type == JSON:
        content: Body = {"schema": _any_of(shapes)}
        example = EXAMPLES.get(route.named)
        if example is not None and example.status == status:
            content["example"] = example.answer
    else:
        content = {"schema": {"type": "string"}, **({ITEM: _any_of(shapes)} if shapes else {})}
    return {**said, "content": {route.media_type: content}}


def _problem(status: int, route: Route, kinds: Sequence[type[ProblemShape]]) -> Body:
    names = dict.fromkeys(name for kind in kinds for name in kind.headers)
    always = [name for name in names if all(name in kind.headers for kind in kinds)]
    headers = _headers(always)
    for name in names:
        if name not in always:
            meaning, schema = _HEADERS[name]
            headers[name] = {"description": meaning, "schema": schema}
    meaning = route.answers.get(status, _MEANS.get(status, ""))
    return {"description": meaning, "headers": headers, "content": {PROBLEM_JSON: {"schema": _any_of(kinds)}}}


def _headers(names: Iterable[str]) -> Body:
    return {name: {"$ref": _HEADER_REF.format(name=name)} for name in ("x-request-id", *names)}


def _any_of(shapes: Iterable[type[msgspec.Struct]]) -> Body:
    refs: list[object] = [{"$ref": _REF.format(name=shape.__name__)} for shape in shapes]
    return {"$ref": _REF.format(name=next(iter(shapes)).__name__)} if len(refs) == 1 else {"anyOf": refs}


def _version() -> str:
    try:
        return version("commonpurse")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "0"
