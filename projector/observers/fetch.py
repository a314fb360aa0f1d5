"""Asks a provider over HTTP and reads its JSON into a typed shape. The only module here that knows the network.

It never follows a redirect (the key would travel along), never reads more than a bounded body, and never repeats what
it sent or was sent: neither key, nor address, nor body is in an error.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from typing import TypeVar

import aiohttp
import msgspec

from projector.observers.source import Unreadable

CONNECT_S = 10.0
ANSWER_S = 30.0
BODY_BYTES_MAX = 1024 * 1024
_CHUNK_BYTES = 64 * 1024

_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "common-purse"}

Shape = TypeVar("Shape")


@asynccontextmanager
async def open_session() -> AsyncIterator[aiohttp.ClientSession]:
    """One session for all sources: no cookies, no proxies from the environment, nothing unpacked."""
    async with aiohttp.ClientSession(
        headers=_HEADERS,
        timeout=aiohttp.ClientTimeout(total=ANSWER_S, connect=CONNECT_S),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
    ) as session:
        yield session


class Fetch:
    """Requests below one address, with one key."""

    def __init__(self, session: aiohttp.ClientSession, *, base_url: str, headers: Mapping[str, str]) -> None:
        self._session, self._base_url, self._headers = session, base_url.rstrip("/"), dict(headers)

    async def get(self, path: str, params: Mapping[str, str], shape: type[Shape]) -> Shape:
        """GET. Raises `Unreadable`."""
        return await self._ask("GET", path, shape, params=params, body=None)

    async def post(self, path: str, body: object, shape: type[Shape]) -> Shape:
        """POST of JSON. Raises `Unreadable`."""
        return await self._ask("POST", path, shape, params={}, body=msgspec.json.encode(body))

    async def _ask(
        self, method: str, path: str, shape: type[Shape], *, params: Mapping[str, str], body: bytes | None
    ) -> Shape:
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        try:
            async with self._session.request(
                method, self._base_url + path, params=params, data=body, headers=headers, allow_redirects=False
            ) as answer:
                if answer.status != 200:
                    raise _refused(answer.status, answer.headers)
                if answer.headers.get("Content-Encoding", "identity") != "identity":
                    raise Unreadable("its answer is packed, though it was asked not to be")
                raw = await _bounded(answer.content)
        except TimeoutError:
            raise Unreadable("it does not answer in time") from None
        except (aiohttp.ClientError, OSError) as error:
            raise Unreadable(f"it cannot be reached ({type(error).__name__})") from None
        return decoded(raw, shape)


def decoded(raw: bytes, shape: type[Shape]) -> Shape:
    """The answer in its shape, numbers digit by digit. Raises `Unreadable`, whatever the bytes are."""
    try:
        return msgspec.json.decode(raw, type=shape)
    except (ValueError, RecursionError):  # msgspec's errors, what is no UTF-8, and integers without end
        raise Unreadable("its answer is not what its documentation says") from None


async def _bounded(content: aiohttp.StreamReader) -> bytes:
    raw = bytearray()
    while chunk := await content.read(_CHUNK_BYTES):
        raw += chunk
        if len(raw) > BODY_BYTES_MAX:
            raise Unreadable(f"its answer is larger than {BODY_BYTES_MAX:,} bytes")
    return bytes(raw)


def _refused(status: int, headers: Mapping[str, str]) -> Unreadable:
    match status:
        case 401 | 403:
            why = f"it does not let this key read the figure (status {status})"
        case 429:
            why = "it was asked too often (status 429)"
        case _ if 300 <= status < 400:
            why = f"it sends us elsewhere, where a key does not follow (status {status})"
        case _:
            why = f"it answers with status {status}"
    return Unreadable(why, retry_after_s=retry_after_s(headers))


def retry_after_s(headers: Mapping[str, str]) -> float:
    """`Retry-After` in seconds, 0 if it says nothing. A date counts from the answer's own `Date`."""
    said = headers.get("Retry-After", "").strip()
    if said.isascii() and said.isdigit():
        return float(said[:9])
    try:
        wait = parsedate_to_datetime(said) - parsedate_to_datetime(headers.get("Date", ""))
    except (ValueError, TypeError):
        return 0.0
    return max(0.0, wait.total_seconds())
