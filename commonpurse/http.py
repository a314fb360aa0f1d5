"""The HTTP API as a caller sees it: one method a verb, every failure one clear error. Decides and repeats nothing.

Whether asking again is right depends on what was asked: `drive.py` does it, and a person at the command line may.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
import msgspec
from yarl import URL

from engine.errors import NoAnswer

CONNECT_WAIT_S = 5.0
ANSWER_WAIT_S = 40.0  # a hold waits at most 30 s on the other side
SILENCE_WAIT_S = 45.0  # a live stream says something at least every 15 s
RETRY_AFTER_S_MAX = 30.0
ANSWER_BYTES_MAX = 16 * 1024 * 1024  # a batch of 1,024 asks answers with at most 4 KiB each


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API said: the status, the body as it came, how long it asks a caller to wait, whether trying helps."""

    status: int
    body: bytes
    retry_after_s: float = 0.0
    should_retry: str = ""

    @property
    def one_line(self) -> str:
        """The body unchanged, but for line breaks between its parts."""
        if b"\n" not in self.body.strip():
            return self.body.strip().decode(errors="replace")
        try:
            return msgspec.json.format(self.body, indent=-1).decode()
        except msgspec.DecodeError:
            return " ".join(self.body.decode(errors="replace").split())


class Api:
    """One wallet's HTTP API, spoken to with one key over kept connections."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session, self.url = session, url

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str, key: str | None, *, connections: int = 8) -> AsyncIterator[Api]:
        """Connections are made when needed and closed with the context."""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        connector = aiohttp.TCPConnector(limit=connections)
        timeout = aiohttp.ClientTimeout(total=ANSWER_WAIT_S, connect=CONNECT_WAIT_S)
        async with aiohttp.ClientSession(connector=connector, headers=headers, timeout=timeout) as session:
            yield cls(session, url)

    async def get(self, path: str) -> Answer:
        """Raises `NoAnswer`."""
        return await self._send("GET", path, None)

    async def post(self, path: str, body: Mapping[str, object]) -> Answer:
        """Raises `NoAnswer`: nobody listens, it broke or took too long. The ask may have been decided all the same."""
        return await self._send("POST", path, msgspec.json.encode(body))

    async def _send(self, verb: str, path: str, body: bytes | None) -> Answer:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        try:
            async with self._session.request(
                verb, self._at(path), data=body, headers=headers, allow_redirects=False
            ) as answer:
                said = await _read(answer)
                retry_after_s = _retry_after_s(answer.headers.get("Retry-After", ""))
                return Answer(answer.status, said, retry_after_s, answer.headers.get("x-should-retry", ""))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise NoAnswer(f"no answer from {self.url} ({_reason(error)})") from error

    async def events(self, path: str) -> AsyncIterator[Answer]:
        """The data of each server-sent event; an answer that is no stream comes alone. Ends with `NoAnswer`."""
        timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_WAIT_S, sock_read=SILENCE_WAIT_S)
        try:
            async with self._session.get(self._at(path), timeout=timeout, allow_redirects=False) as answer:
                if answer.content_type != "text/event-stream":
                    yield Answer(answer.status, await _read(answer))
                    return
                async for data in _event_data(answer.content):
                    yield Answer(answer.status, data)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise NoAnswer(f"no answer from {self.url} ({_reason(error)})") from error
        raise NoAnswer(f"{self.url} ended the stream")

    def _at(self, path: str) -> URL:
        return URL(self.url + path, encoded=True)


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    body = b""
    async for chunk in answer.content.iter_any():
        body += chunk
        if len(body) > ANSWER_BYTES_MAX:
            raise aiohttp.ClientPayloadError(f"the answer is over {ANSWER_BYTES_MAX} bytes")
    return body


async def _event_data(lines: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    data: list[bytes] = []
    async for line in lines:
        text = line.rstrip(b"\r\n")
        if text.startswith(b"data:"):
            data.append(text[5:].removeprefix(b" "))
        elif not text and data:
            yield b"\n".join(data)
            data = []


def _retry_after_s(written: str) -> float:
    return min(float(written), RETRY_AFTER_S_MAX) if written.isascii() and written.isdigit() else 0.0


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it took too long"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "no such host"
    if isinstance(error, aiohttp.ClientConnectorError):
        return os.strerror(error.os_error.errno).lower() if error.os_error.errno else "cannot connect"
    return str(error) or type(error).__name__
