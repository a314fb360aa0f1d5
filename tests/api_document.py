"""Holds answers of the API against `/openapi.json`: status, content type, headers, and the body to its last member."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import unquote

from aiohttp import ClientResponse, ClientResponseError
from aiohttp.test_utils import TestClient
from jsonschema_rs import Draft202012Validator

from web import problem_shapes
from web.app import _TABLES
from web.openapi import ITEM, document, openapi_route
from web.problem_shapes import AUTHENTICATE, NEVER, RETRY_AFTER

Json = dict[str, Any]

DOCUMENT: Json = json.loads(json.dumps(document([*_TABLES, openapi_route(_TABLES)])))
JSON, PROBLEM = "application/json", "application/problem+json"
TELLING = (RETRY_AFTER, NEVER, AUTHENTICATE, "Allow")
"""Headers that mean something wherever they stand: each comes where the document says so, and nowhere else."""

OF_NO_ROUTE = {404: "NotFoundProblem", 405: "MethodProblem"}
_PATHS = [(re.compile(re.sub(r"{\w+}", "[^/]+", path)), path) for path in DOCUMENT["paths"]]


class CheckingClient(TestClient[Any, Any]):
    """A test client to which every answer of the API is an error that the document does not have."""

    async def _request(self, method: str, path: Any, **more: Any) -> ClientResponse:
        answer = await super()._request(method, path, **more)
        at = answer.url.raw_path
        if answer.history or (_path(at) is None and answer.content_type != PROBLEM):
            return answer  # a page, or a provider's address
        try:
            raw = await answer.read() if answer.content_type in (JSON, PROBLEM) else None
        except (ClientResponseError, ConnectionError):
            return answer  # its reader will see it again
        check(method, at, answer.status, answer.headers, answer.content_type, raw)
        return answer


def check(method: str, at: str, status: int, headers: Mapping[str, str], kind: str, raw: bytes | None) -> None:
    """Raises `AssertionError` with what differs. `raw`: None where the body is not to be looked at."""
    about = f"{method} {at}: {status} {kind} {raw[:400] if raw is not None else b''!r}"
    assert headers.get("x-request-id"), about
    if status == 417:
        return  # the HTTP library's own, before the application hears of it
    path = _path(at)
    method = "GET" if method == "HEAD" else method
    said = DOCUMENT["paths"].get(path, {}).get(method.lower())
    if said is None or status == 405:
        if kind == PROBLEM and (name := OF_NO_ROUTE.get(status)):
            _check_problem(({"$ref": f"#/components/schemas/{name}"},), headers, raw, about)
        return
    assert str(status) in said["responses"], f"no such status in the document: {about}"
    response = said["responses"][str(status)]
    for name, header in response["headers"].items():
        must = DOCUMENT["components"]["headers"][name]["required"] if "$ref" in header else False
        assert not must or name in headers, f"no {name}: {about}"
    if status == 304:
        return
    assert kind in response["content"], f"no such content type in the document: {about}"
    if raw is None or not raw:
        return
    schema = response["content"][kind]["schema"]
    if status >= 400:
        _check_problem(schema.get("anyOf", [schema]), headers, raw, about)
    else:
        assert not [name for name in TELLING if name in headers], f"headers of a problem: {about}"
        _check_body(schema, json.loads(raw), about)


def check_item(at: str, value: object) -> None:
    """One line or event of the stream at this address."""
    path = _path(at)
    assert path is not None
    [content] = DOCUMENT["paths"][path]["get"]["responses"]["200"]["content"].values()
    _check_body(content[ITEM], value, f"a line of {at}: {value}")


def validator_of(schema: Json) -> Draft202012Validator:
    """Of a schema that stands in the document."""
    return _validator(json.dumps(schema))


@cache
def _validator(schema: str) -> Draft202012Validator:
    return Draft202012Validator({**json.loads(schema), "components": DOCUMENT["components"]})


def _path(at: str) -> str | None:
    return next((path for form, path in _PATHS if form.fullmatch(at) or form.fullmatch(unquote(at))), None)


def _check_body(schema: Json, value: object, about: str) -> None:
    if not validator_of(schema).is_valid(value):
        raise AssertionError(f"{about}\n{_why(schema, value)}")


def _why(schema: Json, value: object) -> str:
    """What is wrong by each of the schemas it could have been."""
    return "\n".join(
        f"{one.get('$ref', 'schema')}: {error.message[:300]} at {error.instance_path}"
        for one in schema.get("anyOf", [schema])
        for error in validator_of(one).iter_errors(value)
    )


def _check_problem(kinds: Any, headers: Mapping[str, str], raw: bytes | None, about: str) -> None:
    if raw is None or not raw:
        return
    value = json.loads(raw)
    could_be = [one["$ref"].rpartition("/")[2] for one in kinds if validator_of(one).is_valid(value)]
    assert could_be, f"{about}\n{_why({'anyOf': list(kinds)}, value)}"
    told = {name for name in TELLING if name in headers}
    said = [set(getattr(problem_shapes, name).headers) for name in could_be]
    assert told in said, f"{about}\nit came with {told}, which is of none of {could_be}"
