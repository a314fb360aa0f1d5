"""The wallet's stream, and the only room (with `follower`, its reading half) that knows JetStream.

It appends with a claim on the place, reads single messages back, and refuses a stream whose settings have drifted. It
never interprets what it carries, and it never believes a "duplicate": a claim is read back.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

import msgspec
import nats
import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg

from engine.errors import Misconfigured, NoAnswer, StreamRefused
from engine.foreign import is_foreign
from engine.nats_client import NatsClient
from engine.stream_settings import Names, drift, settings

WALLET = re.compile(r"[A-Za-z0-9_-]{1,32}")  # one token of a subject, and part of a stream's name
INBOX = re.compile(r"_INBOX(\.[A-Za-z0-9_-]{1,64}){1,4}")  # where answers go: nobody who asks may send us elsewhere
API_WAIT_S = 5.0
CONNECT_WAIT_S = 3.0
CONNECT_TRY_S = 2
PING_S = 5
RECONNECT_WAIT_S = 0.05
STREAM_POLL_S = 0.5

WRONG_LAST_SEQUENCE = frozenset({10071, 10164})  # the place is taken; 10164 is what a cluster may say
NOT_FOUND = frozenset({10037, 10059})  # no message, no stream
STREAM_EXISTS = 10058  # with other settings; with the same it is no error
NO_RESPONDERS = "503"
UNAVAILABLE = 503
NO_STREAM = 404

EXPECTED = "Nats-Expected-Last-Subject-Sequence"
SEEN = "Purse-Seen"  # the sender's newest receipt

Kind = Literal["ask", "admin", "told"]

log = structlog.get_logger()


class Stored(msgspec.Struct, frozen=True, gc=False):
    """A message as it lies on the stream. `ts` is the stream's own timestamp, ns; `seen` the sender's newest receipt.

    `kind` is that of its subject, or "void" for what lies among the tolds and does not count: a told in the range of a
    loss, or what no engine wrote (`foreign`).
    """

    seq: int
    ts: int
    kind: str
    data: bytes
    seen: str = ""


class Appended(msgspec.Struct, frozen=True, gc=False):
    """Where a message lies. `duplicate`: the stream says it was there before; only `Journal.stored_as` knows."""

    seq: int
    duplicate: bool = False


class _ApiError(msgspec.Struct, frozen=True):
    code: int = 0
    err_code: int = 0
    description: str = ""


class _Ack(msgspec.Struct, frozen=True):
    seq: int = 0
    duplicate: bool = False
    error: _ApiError | None = None


class _State(msgspec.Struct, frozen=True):
    messages: int = 0
    first_seq: int = 0
    last_seq: int = 0
    bytes: int = 0


class _Info(msgspec.Struct, frozen=True):
    config: dict[str, Any] = {}
    state: _State = _State()
    ts: str = ""
    error: _ApiError | None = None


class _Found(msgspec.Struct, frozen=True):
    subject: str
    seq: int
    time: str
    data: str = ""


class _Got(msgspec.Struct, frozen=True):
    message: _Found | None = None
    error: _ApiError | None = None


_acks = msgspec.json.Decoder(_Ack)
Answer = TypeVar("Answer", bound=msgspec.Struct)


class Journal:
    """One process's connection to one wallet's stream. Made by `Journal.connect`."""

    def __init__(self, client: Client, wallet: str) -> None:
        self.client = client
        self.names = Names(wallet)
        self.on_reconnect: list[Callable[[], None]] = []
        self._answers: dict[str, asyncio.Future[Msg]] = {}
        self._counter = itertools.count(1)
        self._inbox = client.new_inbox()
        self._complaints: set[str] = set()

    @classmethod
    @asynccontextmanager
    async def connect(cls, url: str, *, wallet: str = "main", name: str = "purse") -> AsyncIterator[Journal]:
        """Connect for as long as the block runs. `url` may carry user and password; they are never logged.

        Raises `NoAnswer` if no server answers, `Misconfigured` if none accepts the credentials or these are no address
        and no name. Later disconnections heal by themselves; meanwhile appends fail at once instead of being buffered,
        since a buffered ask could be delivered minutes after its caller left.
        """
        servers = servers_of(url)
        if not WALLET.fullmatch(wallet):
            raise Misconfigured(f"the wallet's name: expected {WALLET.pattern}")
        client = NatsClient()
        journal = cls(client, wallet)
        try:
            async with asyncio.timeout(CONNECT_WAIT_S):  # nats-py itself would go on for ever
                await client.connect(
                    servers=servers,
                    name=name,
                    allow_reconnect=True,
                    max_reconnect_attempts=-1,
                    reconnect_time_wait=RECONNECT_WAIT_S,  # type: ignore[arg-type]  # a float sleeps as well
                    connect_timeout=CONNECT_TRY_S,
                    ping_interval=PING_S,
                    pending_size=0,
                    error_cb=journal._on_error,
                    disconnected_cb=journal._on_disconnected,
                    reconnected_cb=journal._on_reconnected,
                )
        except (TimeoutError, OSError, nats.errors.Error) as error:
            await client.close()
            if any("authorization violation" in complaint.lower() for complaint in journal._complaints):
                raise Misconfigured(f"the NATS server at {public_address(url)} refuses these credentials") from error
            raise NoAnswer(f"no NATS server answers at {public_address(url)} ({type(error).__name__})") from error
        try:
            await client.subscribe(f"{journal._inbox}.*", cb=journal._on_answer)
            yield journal
        finally:
            await client.close()

    # --- settings -----------------------------------------------------------------------------------------------------

    async def ensure_stream(self, *, replicas: int = 1) -> None:
        """The operator's act: make the stream if there is none, and check its settings."""
        if await self._info() is None:
            made = await self.api("STREAM.CREATE." + self.names.stream, settings(self.names, replicas=replicas), _Info)
            if made.error is not None:
                raise StreamRefused(f"the stream could not be made: {made.error.description}", code=made.error.err_code)
        await self.check_stream()

    async def make_beside(self, wanted: Mapping[str, Any]) -> None:
        """Make a stream beside the wallet's, with as many copies, unless it is there. Raises `PurseError`."""
        copies = await self.replicas()
        made = await self.api(f"STREAM.CREATE.{wanted['name']}", {**wanted, "num_replicas": copies}, _Info)
        if made.error is not None and made.error.err_code != STREAM_EXISTS:
            raise StreamRefused(
                f"{wanted['name']} could not be made: {made.error.description}", code=made.error.err_code
            )

    async def check_stream(self) -> _State:
        """Refuse a stream whose settings are not those this release relies on. Returns its state.

        Raises `StreamRefused` (404) if there is none, `Misconfigured` if its settings have drifted.
        """
        info = await self._info()
        if info is None:
            raise StreamRefused(f"there is no stream {self.names.stream}; `purse up` makes it", code=NO_STREAM)
        if drifted := drift(self.names, info.config):
            raise Misconfigured(f"stream {self.names.stream} cannot be used: " + "; ".join(drifted))
        return info.state

    async def wait_for_stream(self) -> None:
        """Until the operator has made the stream; then as `check_stream`."""
        said = False
        while True:
            try:
                await self.check_stream()
            except StreamRefused as refused:
                if refused.code != NO_STREAM:
                    raise
                if not said:
                    log.info("waiting_for_the_stream", stream=self.names.stream)
                said = True
                await asyncio.sleep(STREAM_POLL_S)
            else:
                return

    async def replicas(self) -> int:
        """How many copies the stream has: what stands beside it has as many."""
        info = await self._info()
        if info is None:
            raise StreamRefused(f"there is no stream {self.names.stream}", code=NO_STREAM)
        return int(info.config.get("num_replicas", 1))

    async def last_seq(self) -> int:
        """The highest sequence on the stream."""
        info = await self._info()
        if info is None:
            raise StreamRefused(f"there is no stream {self.names.stream}", code=NO_STREAM)
        return info.state.last_seq

    async def now(self) -> int:
        """What time it is on the stream, ns, by the server's own clock."""
        info = await self._info()
        if info is None:
            raise StreamRefused(f"there is no stream {self.names.stream}", code=NO_STREAM)
        return _ns(info.ts)

    async def _info(self) -> _Info | None:
        info = await self.api("STREAM.INFO." + self.names.stream, {}, _Info)
        if info.error is None:
            return info
        if info.error.err_code in NOT_FOUND:
            return None
        raise StreamRefused(info.error.description, code=info.error.err_code)

    async def api(self, call: str, request: Mapping[str, Any], answer: type[Answer]) -> Answer:
        """One request to JetStream's own API. Raises `NoAnswer`."""
        said = await self.request(f"$JS.API.{call}", msgspec.json.encode(request), wait_s=API_WAIT_S)
        return msgspec.json.decode(said, type=answer)

    async def request(self, subject: str, data: bytes = b"", *, wait_s: float) -> bytes:
        """What whoever listens on `subject` answers. Raises `NoAnswer`, at once where nobody listens."""
        try:
            answer = await self._exchange(subject, data, None, wait_s)
        except (TimeoutError, nats.errors.Error) as error:
            raise NoAnswer(f"nobody answers {subject.split('.PURSE')[0]} ({type(error).__name__})") from error
        return answer.data

    async def _exchange(self, subject: str, data: bytes, headers: dict[str, str] | None, wait_s: float) -> Msg:
        """Publish, and wait for the one answer. Raises `TimeoutError`, nats-py's errors, `NoAnswer` if cut off.

        Not nats-py's own `request`: it waits with `asyncio.wait_for`, which before Python 3.12 swallows a cancellation
        that comes together with the answer, and a process that was told to end would run on.
        """
        token = str(next(self._counter))
        answer: asyncio.Future[Msg] = asyncio.get_running_loop().create_future()
        self._answers[token] = answer
        try:
            await self.client.publish(subject, data, reply=f"{self._inbox}.{token}", headers=headers)
            async with asyncio.timeout(wait_s):
                message = await answer
        finally:
            self._answers.pop(token, None)
        if message.headers is not None and message.headers.get("Status") == NO_RESPONDERS:
            raise nats.errors.NoRespondersError
        return message

    # --- appending ----------------------------------------------------------------------------------------------------

    async def append(
        self,
        kind: Kind,
        data: bytes,
        *,
        wait_s: float,
        msg_id: str | None = None,
        after_told: int | None = None,
        seen: str = "",
    ) -> Appended:
        """Append one message and wait until it is on disk.

        `msg_id` makes a retry of the same message harmless within the duplicate window. `after_told` is the fence: the
        append counts only if the newest told is at this sequence (0: none yet). `seen` is the sender's newest receipt.
        Raises `StreamRefused` with JetStream's code, `NoAnswer` when nobody answered: then the message may or may not
        be there.
        """
        headers: dict[str, str] = {}
        if msg_id is not None:
            headers["Nats-Msg-Id"] = msg_id
        if after_told is not None:
            headers[EXPECTED] = str(after_told)
        if seen:
            headers[SEEN] = seen
        return await self._store(self.names.subject(kind), data, headers, wait_s)

    async def keep(self, bucket: str, key: str, document: bytes, *, wait_s: float, after: int | None = None) -> int:
        """Put a document into a bucket beside the stream, in place of the one there; its sequence in the bucket.

        With `after` only if that one was written at this sequence (0: none yet). Raises as `append`.
        """
        headers = {} if after is None else {EXPECTED: str(after)}
        return (await self._store(f"$KV.{bucket}.{key}", document, headers, wait_s)).seq

    async def append_look(self, line: bytes, *, wait_s: float) -> None:
        """Append to the record of who looked, beside the stream. Raises as `append`."""
        await self._store(self.names.subject("look"), line, {}, wait_s)

    async def put_once(self, subject: str, data: bytes, *, msg_id: str, wait_s: float) -> None:
        """Put a message on whatever stream takes this subject, if none was ever put there. Raises as `append`."""
        headers = {"Nats-Msg-Id": msg_id, EXPECTED: "0"}
        await self._store(subject, data, headers, wait_s)

    async def _store(self, subject: str, data: bytes, headers: dict[str, str], wait_s: float) -> Appended:
        try:
            answer = await self._exchange(subject, data, headers or None, wait_s)
        except TimeoutError as error:
            raise NoAnswer("the stream did not acknowledge in time") from error
        except nats.errors.NoRespondersError as error:
            raise StreamRefused("no stream takes this message", code=UNAVAILABLE) from error
        except nats.errors.Error as error:
            raise StreamRefused(f"not connected to the stream ({type(error).__name__})", code=UNAVAILABLE) from error
        ack = _acks.decode(answer.data)
        if ack.error is not None:
            raise StreamRefused(ack.error.description, code=ack.error.err_code or ack.error.code)
        return Appended(ack.seq, ack.duplicate)

    async def stored_as(self, data: bytes, appended: Appended) -> bool:
        """Whether the message that the stream calls a duplicate is really there."""
        found = await self.read(appended.seq)
        return found is not None and found.data == data

    async def read(self, seq: int) -> Stored | None:
        """The message at `seq`, read from the stream's leader; None if there is none."""
        return await self._get({"seq": seq})

    async def next_of(self, kind: Kind, after: int) -> Stored | None:
        """The first message of this kind after sequence `after`; None if there is none."""
        wanted = {"next_by_subj": self.names.subject(kind)}
        while (found := await self._get({"seq": after + 1, **wanted})) is not None and found.kind == "void":
            after = found.seq
        return found

    async def last_of(self, kind: Kind) -> Stored | None:
        """The newest message of this kind, be it one that does not count; None if there is none."""
        return await self._get({"last_by_subj": self.names.subject(kind)})

    async def last_kept(self, bucket: str, key: str) -> Stored | None:
        """The document at this key of a bucket, None if there is none; its `kind` is its key."""
        return await self._get({"last_by_subj": f"$KV.{bucket}.{key}"}, stream=f"KV_{bucket}")

    async def next_kept(self, bucket: str, *, after: int) -> Stored | None:
        """The first document of a bucket that was written after a sequence of it; its `kind` is its key."""
        return await self._get({"seq": after + 1, "next_by_subj": f"$KV.{bucket}.>"}, stream=f"KV_{bucket}")

    async def _get(self, which: dict[str, Any], *, stream: str = "") -> Stored | None:
        got = await self.api(f"STREAM.MSG.GET.{stream or self.names.stream}", which, _Got)
        if got.message is None:
            if got.error is not None and got.error.err_code not in NOT_FOUND:
                raise StreamRefused(got.error.description, code=got.error.err_code)
            return None
        found = got.message
        data = base64.b64decode(found.data)
        return Stored(found.seq, _ns(found.time), self.kind(found.subject, data), data)

    def kind(self, subject: str, data: bytes) -> str:
        """What a message on this subject is: see `Stored`."""
        kind = subject.rsplit(".", 1)[-1]
        return "void" if kind == "told" and is_foreign(data) else kind

    async def _on_answer(self, message: Msg) -> None:
        answer = self._answers.get(message.subject.rsplit(".", 1)[-1])
        if answer is not None and not answer.done():
            answer.set_result(message)

    # --- connection ---------------------------------------------------------------------------------------------------

    async def _on_error(self, error: Exception) -> None:
        complaint = str(error) or type(error).__name__
        if complaint not in self._complaints:  # once, not with each of 20 tries a second
            log.warning("nats_error", error=type(error).__name__, why=complaint)
        self._complaints.add(complaint)

    async def _on_disconnected(self) -> None:
        """No answer comes any more to what was asked over the lost connection: who waits may try again now."""
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(NoAnswer("the connection was lost before the answer"))

    async def _on_reconnected(self) -> None:
        self._complaints.clear()
        log.info("nats_reconnected")
        for listener in self.on_reconnect:
            listener()


def _ns(time: str) -> int:
    """RFC 3339 with nine digits, exactly."""
    whole, _, fraction = time.removesuffix("Z").partition(".")
    seconds = int(datetime.fromisoformat(f"{whole}+00:00").timestamp())
    return seconds * 10**9 + int(fraction.ljust(9, "0"))


def servers_of(url: str) -> list[str]:
    """The addresses in `url`. Raises `Misconfigured`, which never repeats it: there may be a password in it."""
    addresses = url.split(",")
    for address in addresses:
        try:
            parts = urlsplit(address)
            usable = parts.scheme in ("nats", "tls") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise Misconfigured(
                "the NATS address: expected nats://user:password@host:port, several with commas between"
            )
    return addresses


def public_address(url: str) -> str:
    """The address without what only the process may know."""
    parts = [urlsplit(one) for one in url.split(",")]
    return ", ".join(f"{part.scheme}://{part.hostname}:{part.port or 4222}" for part in parts)
