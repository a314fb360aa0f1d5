"""Any request to any route, from anybody: a clear answer, and one that `/openapi.json` has.

Requests are made from that document alone, so a route that is new is tried from its first day. With `PURSE_SOAK=1`
(`make soak`) it goes on for much longer.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
import pytest
import pytest_asyncio
from desk_client import KEY, Desk, open_desk
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from web.app import _TABLES
from web.openapi import document, openapi_route

Json = dict[str, Any]
DOCUMENT: Json = document([*_TABLES, openapi_route(_TABLES)])
ENDLESS = "/v1/status/stream"
DEPTH_MAX = 4
EXAMPLES = 20_000 if os.environ.get("PURSE_SOAK") else 1_000
WORDS = [
    "usd", "jpy", "tokens", "provider", "user", "key", "cohort", "origin", "all", "jev", "user-daily", "2026-11-30",
    "2026-11-30T14:05:00Z", "call-1", "0.5", "-1", "1e9", "NaN", "hold", "settle", "spend", "admin", "", " ", "\x00",
    "\u202e", "\U0001f4b0", "a/b", "..", "%2e%2e", "x" * 300, "9" * 400, "gpt-4o",
]  # fmt: skip

anything = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=6), st.sampled_from(WORDS),
    st.just(10**400), st.lists(st.sampled_from(WORDS), max_size=3),
    st.dictionaries(st.sampled_from(WORDS), st.sampled_from(WORDS), max_size=3),
)  # fmt: skip


class Operation(NamedTuple):
    method: str
    path: str
    said: Json


class Request(NamedTuple):
    operation: Operation
    path: str
    raw: bytes | None
    caller: str
    headers: Mapping[str, str]


OPERATIONS = [
    Operation(method.upper(), path, said)
    for path, methods in DOCUMENT["paths"].items()
    for method, said in methods.items()
    if path != ENDLESS
]


def fitting(schema: Json, depth: int = 0) -> st.SearchStrategy[Any]:
    """Values that the schema allows, or nearly: each part of them may be anything instead."""
    return _fitting(json.dumps(schema), depth)


@cache
def _fitting(written: str, depth: int) -> st.SearchStrategy[Any]:
    schema = json.loads(written)
    if "$ref" in schema:
        return fitting(DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]], depth)
    if depth > DEPTH_MAX:
        return anything
    of_kind = _of_kind(schema, depth)
    return st.one_of(of_kind, of_kind, of_kind, anything)


def _of_kind(schema: Json, depth: int) -> st.SearchStrategy[Any]:
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return st.one_of([fitting(one, depth + 1) for one in schema[several]])
    if "enum" in schema or "const" in schema:
        return st.sampled_from(schema.get("enum", [schema.get("const")]))
    match schema.get("type"):
        case "object" if "properties" in schema:
            fields = {name: fitting(one, depth + 1) for name, one in schema["properties"].items()}
            must = {name: fields.pop(name) for name in schema.get("required", ()) if name in fields}
            return st.fixed_dictionaries(must, optional=fields)
        case "object":
            more = schema.get("additionalProperties")
            of = fitting(more, depth + 1) if isinstance(more, dict) else anything
            return st.dictionaries(st.sampled_from(WORDS), of, max_size=3)
        case "array":
            return st.lists(fitting(schema.get("items", {}), depth + 1), max_size=3)
        case "integer":
            return st.integers(0, 100)
        case "boolean":
            return st.booleans()
        case "string":
            return st.sampled_from(WORDS) | st.text(max_size=8)
    return anything


@st.composite
def requests(draw: st.DrawFn) -> Request:
    operation = draw(st.sampled_from(OPERATIONS))
    path, query = operation.path, []
    for parameter in operation.said["parameters"]:
        value = draw(st.sampled_from(WORDS) | st.text(max_size=8).map(str))
        if parameter["in"] == "path":
            part = "x" if value in ("", ".", "..") else _quoted(value)  # with these it is another address
            path = path.replace(f"{{{parameter['name']}}}", part)
        elif parameter["in"] == "query" and draw(st.booleans()):
            query.append(f"{parameter['name']}={_quoted(value)}")
    raw = None
    if "requestBody" in operation.said:
        raw = _written(draw, operation.said["requestBody"]["content"]["application/json"]["schema"])
    caller = draw(st.sampled_from(["admin", "spend", "audit", "nobody", "wrong"]))
    kind = draw(st.sampled_from(["application/json"] * 9 + ["text/plain"]))
    headers = {"Content-Type": kind} if raw is not None else {}
    if draw(st.integers(0, 9)) == 0:
        headers["Idempotency-Key"] = draw(st.sampled_from(["call-1", '"call-2"', "x" * 300, "\u00e9"]))
    return Request(operation, path + ("?" + "&".join(query) if query else ""), raw, caller, headers)


def _quoted(value: str) -> str:
    return quote(value, safe="", errors="replace")


def _written(draw: st.DrawFn, schema: Json) -> bytes:
    """Mostly the JSON of a value; also with a field twice, cut off, or no JSON at all."""
    value = draw(fitting(schema))
    raw = json.dumps(value).encode()
    match draw(st.sampled_from(["whole"] * 7 + ["twice", "cut", "noise"])):
        case "twice" if isinstance(value, dict) and value:
            return raw[:-1] + b"," + raw[1:]
        case "cut":
            return raw[: len(raw) // 2]
        case "noise":
            return draw(st.binary(max_size=30))
    return raw


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def callers() -> AsyncIterator[tuple[Desk, Mapping[str, str | None]]]:
    async with open_desk(open=True) as desk:
        spend, _ = await desk.new_key(user="alice", names=["user"])
        audit, _ = await desk.new_key("audit")
        await desk.purse.show()
        yield desk, {"admin": KEY, "spend": spend, "audit": audit, "nobody": None, "wrong": f"{spend}x"}


@given(request=requests())
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
)
async def test_any_request_is_answered_as_the_document_says(
    callers: tuple[Desk, Mapping[str, str | None]], request: Request
) -> None:
    desk, keys = callers
    key = keys[request.caller]
    headers = {**request.headers, **({"Authorization": f"Bearer {key}"} if key is not None else {})}
    async with (
        asyncio.timeout(60),
        desk.client.request(request.operation.method, request.path, data=request.raw, headers=headers) as answer,
    ):
        raw = await answer.read()
    check(request, answer.status, answer.content_type, raw)
    desk.purse.wallet.check()


def check(request: Request, status: int, kind: str, raw: bytes) -> None:
    """Against the document: the status, its content type, and what a problem must say."""
    answers = request.operation.said["responses"]
    about = f"{request.operation.method} {request.path} {request.caller}: {status} {kind} {raw[:500]!r}"
    assert status < 500 or status == 503, about
    assert str(status) in answers, about
    assert kind in answers[str(status)]["content"], about
    if status >= 400:
        problem = msgspec.json.decode(raw, type=Problem)
        assert problem.status == status, about
        assert problem.title, about
        assert problem.detail, about
    elif kind == "application/json":
        assert isinstance(msgspec.json.decode(raw), dict), about


class Problem(msgspec.Struct):
    type: str
    title: str
    status: int
    detail: str


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: f"{one.method} {one.path}")
async def test_every_route_says_that_it_needs_a_key_where_it_does(operation: Operation) -> None:
    """Where nothing is open a request without a key hears 401, and a wrong one too."""
    async with open_desk() as desk:
        for key in (None, "cp_wrong"):
            path = operation.path.replace("{id}", "a").replace("{day}", "2026-11-30")
            answer = await desk.send(operation.method, path, key=key, json={} if operation.method == "POST" else None)
            must = {} not in operation.said["security"]
            assert not must or answer.status == 401, (path, answer.status)
            assert str(answer.status) in operation.said["responses"]
