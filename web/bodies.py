"""Reads a request's body exactly: JSON with every number as it was written, no key twice, nothing unknown or too large.

Nothing here knows what an ask is. Whatever a stranger sends, the answer is a clear 4xx and never a crash.
"""

from __future__ import annotations

import asyncio
import json
import re
from decimal import Decimal
from typing import TypeVar

import msgspec
from aiohttp import web

from engine.errors import BadAsk
from web.problems import Problem, too_large

BODY_BYTES_MAX = 1024 * 1024
BODY_TIMEOUT_S = 10.0
SHOWN_CHARS_MAX = 32  # of a name that a caller made up

Body = TypeVar("Body", bound=msgspec.Struct)


async def read_body(request: web.Request, kind: type[Body], *, may_be_empty: bool = False) -> Body:
    """The body as a `kind`. Raises `Problem` 400, 408, 413 or 415, `BadAsk` with the JSON path of what is wrong."""
    raw = await _read(request)
    if may_be_empty and not raw:
        return convert({}, kind)
    _check_content_type(request)
    return convert(parse_json(raw), kind)


async def read_json(request: web.Request) -> object:
    """The body as it was written, for whoever needs more of it than its shape. Raises as `read_body`."""
    raw = await _read(request)
    _check_content_type(request)
    return parse_json(raw)


async def _read(request: web.Request) -> bytes:
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise Problem(415, "not-json", "Send the body as it is, without a Content-Encoding.")
    length = request.content_length
    if length is not None and length > BODY_BYTES_MAX:
        raise too_large("A body has at most 1 MiB.")
    if request.content.is_eof():  # mostly it came in one piece with the headers: no timer is needed
        return await request.read()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            return await request.read()
    except TimeoutError:
        raise Problem(408, "too-slow", f"The body did not arrive within {BODY_TIMEOUT_S:.0f} seconds.") from None


def _check_content_type(request: web.Request) -> None:
    if request.content_type != "application/json" or (request.charset or "utf-8").lower() not in ("utf-8", "utf8"):
        raise Problem(415, "not-json", "Send the body as `Content-Type: application/json`, in UTF-8.")


# --- JSON -------------------------------------------------------------------------------------------------------------


def parse_json(raw: bytes) -> object:
    """Integers stay `int`, other numbers become `Decimal`. Raises `Problem` naming line and column."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _not_json(f"it is not UTF-8 at byte {error.start}") from None
    if not text.strip():
        raise _not_json("it is empty; expected an object")
    try:
        value = _exact.decode(text)
    except json.JSONDecodeError as error:
        raise _not_json(f"{error.msg} at line {error.lineno}, column {error.colno}", error) from None
    except RecursionError:
        raise _not_json("it is nested too deeply") from None
    except ValueError:  # what int() says to thousands of digits
        raise _not_json("it has a number with too many digits") from None
    if "\\u" in text:
        _check_surrogates(value)
    return value


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise BadAsk(shown(key), "this key is given twice")
            seen.add(key)
    return found


def _no_constant(name: str) -> object:
    raise _not_json(f"{name} is not a JSON number")


_exact = json.JSONDecoder(object_pairs_hook=_object, parse_float=Decimal, parse_constant=_no_constant)


def _check_surrogates(value: object) -> None:
    """Half of a surrogate pair, written as an escape, is no character: it could not be stored."""
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode("utf-8")
    except UnicodeEncodeError:
        raise _not_json("a \\u escape in it is half of a character") from None
    except RecursionError:
        raise _not_json("it is nested too deeply") from None


def _not_json(why: str, error: json.JSONDecodeError | None = None) -> Problem:
    where: dict[str, object] = {"line": error.lineno, "column": error.colno} if error is not None else {}
    return Problem(400, "broken-json", f"The body is not valid JSON: {why}.", more={"field": "body", **where})


# --- shape ------------------------------------------------------------------------------------------------------------


def convert(value: object, kind: type[Body]) -> Body:
    """`value` as a `kind`, strictly. Raises `BadAsk` with the JSON path: `options[0].grade`."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise bad_shape(str(error)) from None


_CHOICES = {
    "ask": "hold, settle, release, renew, observe, adjust, freeze, thaw, revoke or restore",
    "on_lapse": '"charge" or "release"',
}
_NAMED = re.compile(r"(Object contains unknown|Object missing required) field `(.*)`", re.DOTALL)
_CODED = re.compile(r"`([^`]{1,80})`")
_PLAIN = {
    "str": "a string", "int": "a whole number", "float": "a number", "decimal.Decimal": "a number",
    "bool": "true or false", "object": "an object", "array": "an array",
}  # fmt: skip


def bad_shape(message: str) -> BadAsk:
    """msgspec's message as our error, in plain words. What a caller made up is shown only if it is short."""
    what, _, path = message.rpartition(" - at `$")
    if not what:
        what, path = message, ""
    path = path.rstrip("`").lstrip(".")
    named = _NAMED.fullmatch(what)
    if named is not None:
        name = shown(named[2])
        why = "unknown field" if "unknown" in named[1] else "this field is required"
        return BadAsk(f"{path}.{name}" if path else name, why)
    if what.startswith("Invalid "):  # it would repeat the value
        return BadAsk(path or "body", f"expected {_CHOICES.get(path.rpartition('.')[2], 'a value in /openapi.json')}")
    what = _CODED.sub(_in_words, what)
    return BadAsk(path or "body", what[:1].lower() + what[1:])


def _in_words(coded: re.Match[str]) -> str:
    names = [name for name in coded[1].split(" | ") if name != "null"] or ["null"]
    return " or ".join(_PLAIN.get(name, name) for name in names)


def shown(name: str) -> str:
    """A name as it may stand in an answer."""
    return name if len(name) <= SHOWN_CHARS_MAX and name.isprintable() else f"(a name of {len(name)} characters)"
