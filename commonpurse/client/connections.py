"""Kept HTTP/1.1 connections to one wallet, for any number of threads. Standard library only; decides nothing.

A connection that the other side closed while it lay idle is replaced once, unseen: every ask bears an id, so that it
may be sent twice. After a fork each process has connections of its own.
"""

from __future__ import annotations

import http.client
import os
import ssl
import threading
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

from engine.errors import Misconfigured, NoAnswer

CONNECT_WAIT_S = 5.0
IDLE_S_MAX = 30.0  # less than anything between here and there keeps a silent connection
ANSWER_BYTES_MAX = 16 * 1024 * 1024
RETRY_AFTER_S_MAX = 30.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What the wallet said: the status, the body as it came, how long it asks a caller to wait."""

    status: int
    body: bytes
    retry_after_s: float = 0.0


@dataclass(slots=True)
class _Kept:
    connection: http.client.HTTPConnection
    since: float


class Connections:
    """All connections of one client. `most`: how many requests are under way at once; the others wait their turn."""

    def __init__(self, url: str, key: str | None, *, most: int, tls: ssl.SSLContext | None = None) -> None:
        """Raises `Misconfigured` unless `url` is `http://host` or `https://host`, with a port or path if need be."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
            raise Misconfigured("the wallet's address must be written as http://host:port or https://host")
        self._host, self._port, self._path = parts.hostname, parts.port, parts.path.rstrip("/")
        self._tls = (tls or ssl.create_default_context()) if parts.scheme == "https" else None
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self.name = f"{parts.scheme}://{parts.netloc}"
        self.most = most
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._idle: list[_Kept] = []
        self._closed = False
        self._lock = threading.Lock()
        self._turns = threading.BoundedSemaphore(self.most)

    def send(self, verb: str, path: str, body: bytes | None, *, wait_s: float) -> Answer:
        """One request, one answer. Raises `NoAnswer`: it may have been decided all the same."""
        if self._process != os.getpid():
            self._begin()  # what was inherited belongs to the parent
        deadline = time.monotonic() + wait_s
        turns = self._turns
        if not turns.acquire(timeout=max(0.0, wait_s)):
            raise NoAnswer(f"{self.name} was not asked: {self.most} requests are under way already")
        try:
            return self._send(verb, path, body, deadline)
        except (OSError, http.client.HTTPException) as error:
            raise NoAnswer(f"no answer from {self.name} ({_reason(error)})") from error
        finally:
            turns.release()

    def close(self) -> None:
        """Close what lies idle, and what is under way when it is done. Another request opens a new one, for itself."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for kept in idle:
            kept.connection.close()

    def _send(self, verb: str, path: str, body: bytes | None, deadline: float) -> Answer:
        kept = self._take()
        if kept is not None:
            try:
                return self._ask(kept, verb, path, body, deadline)
            except TimeoutError:
                raise
            except (OSError, http.client.HTTPException):
                pass  # most likely closed while it lay idle
        return self._ask(self._open(deadline), verb, path, body, deadline)

    def _ask(
        self, connection: http.client.HTTPConnection, verb: str, path: str, body: bytes | None, deadline: float
    ) -> Answer:
        reusable = False
        try:
            assert connection.sock is not None
            connection.sock.settimeout(_left(deadline))
            connection.request(verb, self._path + path, body, self._headers)
            said = connection.getresponse()
            answer = Answer(said.status, _read(said, connection, deadline), _seconds(said.getheader("Retry-After")))
            reusable = not said.will_close
            return answer
        finally:
            if reusable:
                self._keep(connection)
            else:
                connection.close()

    def _open(self, deadline: float) -> http.client.HTTPConnection:
        wait_s = min(CONNECT_WAIT_S, _left(deadline))
        if self._tls is None:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=wait_s)
        else:
            connection = http.client.HTTPSConnection(self._host, self._port, timeout=wait_s, context=self._tls)
        try:
            connection.connect()
        except BaseException:
            connection.close()  # TLS may fail on a socket that is open already
            raise
        return connection

    def _take(self) -> http.client.HTTPConnection | None:
        """The connection used last, if it can still be good."""
        with self._lock:
            fresh = time.monotonic() - IDLE_S_MAX
            stale = [kept for kept in self._idle if kept.since < fresh]
            self._idle = [kept for kept in self._idle if kept.since >= fresh]
            found = self._idle.pop() if self._idle else None
        for kept in stale:
            kept.connection.close()
        return None if found is None else found.connection

    def _keep(self, connection: http.client.HTTPConnection) -> None:
        if connection.sock is None:
            return
        with self._lock:
            if not self._closed:
                self._idle.append(_Kept(connection, time.monotonic()))
                return
        connection.close()


def _read(said: http.client.HTTPResponse, connection: http.client.HTTPConnection, deadline: float) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := said.read1(1 << 16):
        parts.append(part)
        size += len(part)
        if size > ANSWER_BYTES_MAX:
            raise http.client.HTTPException(f"the answer is over {ANSWER_BYTES_MAX} bytes")
        if connection.sock is not None:  # None: all that comes is already here
            connection.sock.settimeout(_left(deadline))
    if said.length:
        raise http.client.IncompleteRead(b"", said.length)
    said.close()  # the connection is free for another request
    return b"".join(parts)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("it took too long")
    return left


def _seconds(written: str | None) -> float:
    if written is None or not (written.isascii() and written.isdigit()):
        return 0.0
    return min(float(written), RETRY_AFTER_S_MAX)


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it took too long"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or 'failed'}".lower().replace("_", " ")
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno).lower() if error.errno > 0 else "no such host"
    return type(error).__name__
