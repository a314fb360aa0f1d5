"""A client's JSON body: read strictly, and written back with its own bytes but for what was put in its place.

Nothing a dialect does not know may be lost or reformatted on its way. A key given twice is refused, because which of
the two a provider would follow is not known.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from decimal import Decimal
from functools import cache

import msgspec
from aiohttp import web

from engine.errors import BadAsk
from web.bodies import parse_json
from web.problems import Problem
from web.proxy.refusals import Declined, Refusal, bad, of_problem

BODY_BYTES_MAX = 8 * 1024 * 1024  # a prompt with some images in it
BODY_TIMEOUT_S = 60.0

_IN_PATH = re.compile(r"[A-Za-z0-9@._:/~-]{1,256}", re.ASCII)

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_exact = msgspec.json.Decoder(float_hook=Decimal)


class Body:
    """A JSON object. `value` is what it says, with exact numbers."""

    def __init__(self, raw: bytes) -> None:
        self.value = _object(raw)
        self._raw: dict[str, msgspec.Raw] = _members.decode(raw)

    def member(self, field: str) -> dict[str, msgspec.Raw]:
        """A member that is an object, each of its members as it came; {} where it is missing or null."""
        value = self.value.get(field)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise bad(field, "expected an object")
        return _members.decode(self._raw[field])

    def with_(self, **changed: object) -> bytes:
        """The same object with these members in the place of its own; every other one byte for byte as it came."""
        return msgspec.json.encode({**self._raw, **changed})


def _object(raw: bytes) -> dict[str, object]:
    try:
        value = parse_json(raw)
    except Problem as problem:
        raise Declined(of_problem(problem)) from None
    except BadAsk as error:
        raise bad(error.field, error.why) from None
    if not isinstance(value, dict):
        raise bad("body", "expected a JSON object")
    return value


def most_bytes(request: web.Request) -> int:
    """The most bytes that the body of this request may have, by its own word where it gives one."""
    length = request.content_length
    return BODY_BYTES_MAX if length is None else min(length, BODY_BYTES_MAX)


async def read_body(request: web.Request) -> Body:
    """Raises `Declined` 400, 408, 413 or 415."""
    return Body(await _read(request))


async def _read(request: web.Request) -> bytes:
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise _declined(415, "encoded", "Send the body as it is, without a Content-Encoding.")
    if request.content_type != "application/json":
        raise _declined(415, "not_json", "Send the body as `Content-Type: application/json`, in UTF-8.")
    if (request.content_length or 0) > BODY_BYTES_MAX:
        raise _too_large()
    if request.content.is_eof() and request.content.total_bytes <= BODY_BYTES_MAX:
        return await request.content.read()  # it came with the headers: no clock is needed
    read = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            async for chunk in request.content.iter_any():
                read += chunk
                if len(read) > BODY_BYTES_MAX:
                    raise _too_large()
    except TimeoutError:
        raise _declined(408, "too_slow", f"The body did not arrive within {BODY_TIMEOUT_S:.0f} seconds.") from None
    return bytes(read)


def _too_large() -> Declined:
    return _declined(413, "too_large", f"A body has at most {BODY_BYTES_MAX // 1024 // 1024} MiB.")


def _declined(status: int, reason: str, message: str) -> Declined:
    return Declined(Refusal(status=status, reason=reason, message=message))


def read_json(raw: bytes | str) -> object:
    """What an upstream sent, with exact numbers; None if it is no JSON."""
    try:
        return _exact.decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        pass  # Python's own reads a little more, such as half of a character
    try:
        return json.loads(raw, parse_float=Decimal)
    except (ValueError, RecursionError):
        return None


def path_of(name: str, *, field: str) -> str:
    """A model's name as part of a path. It may not lead anywhere else: no empty part, no `.` or `..`.

    Raises `Declined` 400.
    """
    if not _IN_PATH.fullmatch(name) or any(part in ("", ".", "..") for part in name.split("/")):
        raise bad(field, "expected a name of letters, digits and @ . _ : / -")
    return name


def check_spelling(value: Mapping[str, object], fields: tuple[str, ...]) -> None:
    """Refuse a member that differs from one of these by its case alone: some providers would follow it, we would not.

    Raises `Declined` 400.
    """
    meant = _in_lower_case(fields)
    for name in value:
        field = meant.get(name.lower())
        if field is not None and field != name:
            raise bad(field, "this field is written in another case")


@cache  # one for each dialect
def _in_lower_case(fields: tuple[str, ...]) -> Mapping[str, str]:
    return {field.lower(): field for field in fields}


# --- what dialects read in it -----------------------------------------------------------------------------------------


def text_of(value: Mapping[str, object], field: str) -> str:
    """A member that must be a string with something in it."""
    found = value.get(field)
    if not isinstance(found, str) or not found:
        raise bad(field, "expected a string" if field in value else "this field is required")
    return found


def count_of(value: Mapping[str, object], field: str, *, least: int = 1, most: int = 2**31) -> int | None:
    """A member that is a whole number, None where it is missing or null."""
    found = value.get(field)
    if found is None:
        return None
    if type(found) is not int or not least <= found <= most:
        raise bad(field, f"expected a whole number from {least} to {most}")
    return found


def flag_of(value: Mapping[str, object], field: str) -> bool:
    found = value.get(field)
    if found is not None and not isinstance(found, bool):
        raise bad(field, "expected true or false")
    return bool(found)
