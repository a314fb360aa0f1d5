"""A NATS server in memory, with as much JetStream as the journal uses.

The journal, the follower and all above them run on it unchanged: its client (`memory_client.py`) takes the place of
nats-py's, and `integration/test_journal_contract.py` asks the same of it as of the real server. What may go wrong
between a client and the server is the `Weather`'s to say; by default nothing does.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any
from unittest import mock

from nats.aio.msg import Msg
from simulation.memory_client import MemoryClient, MemorySubscription
from simulation.virtual_time import Process, here

from engine.journal import SEEN, Stored

NS = 1_000_000_000
HEARTBEATS_UNHEARD_MAX = 10  # then the server forgets a consumer; the real one after a minute

NO_RESPONDERS, DUPLICATE, WRONG_LAST, FULL = 503, 10158, 10071, 10077


@dataclass(frozen=True, slots=True)
class Fate:
    """When a message arrives; `in_order`: not before what was sent before it on the same connection."""

    delay_s: float = 0.0
    in_order: bool = True


AT_ONCE = (Fate(),)


class Weather:
    """Between client and server. Fair: everything arrives once, at once; no fate: never; several: repeated."""

    def to_server(self, client: MemoryClient, subject: str, headers: dict[str, str] | None) -> tuple[Fate, ...]:
        return AT_ONCE

    def to_client(self, client: MemoryClient, message: Msg) -> tuple[Fate, ...]:
        return AT_ONCE

    def refuses(self, client: MemoryClient, subject: str, *, known: bool) -> int | None:
        """The code with which the stream refuses this append. `known`: an earlier try of it is on the stream."""
        return None

    def lies(self, client: MemoryClient, subject: str) -> bool:
        """Whether the stream calls this append a duplicate though it never stored it."""
        return False

    def wrong_last(self) -> int:
        return WRONG_LAST


# --- the server -------------------------------------------------------------------------------------------------------


@dataclass
class Consumer:
    name: str
    subject: str
    next_seq: int
    delivered: int = 0
    heartbeat_s: float = 0.5
    unheard: int = 0
    sent: bool = False


@dataclass
class Stream:
    name: str
    config: dict[str, Any]
    messages: dict[int, Stored] = field(default_factory=dict)
    subjects: dict[int, str] = field(default_factory=dict)
    last_seq: int = 0
    last_of: dict[str, int] = field(default_factory=dict)
    names: dict[str, tuple[int, int]] = field(default_factory=dict)
    consumers: dict[str, Consumer] = field(default_factory=dict)
    bytes: int = 0

    @property
    def record(self) -> list[Stored]:
        return list(self.messages.values())


@dataclass(frozen=True, slots=True)
class Append:
    """What a client tried to put on the stream and what became of it; for whoever judges afterwards."""

    process: Process | None
    subject: str
    data: bytes
    seq: int
    code: int = 0
    after: int | None = None
    duplicate: bool = False
    """Not stored: it was there already, as the stream remembered."""
    repeated_name: bool = False
    """Stored again under a name that was used before the duplicate window."""


class MemoryServer:
    """All there is of NATS in one test or world."""

    def __init__(self, weather: Weather | None = None) -> None:
        self.weather = weather or Weather()
        self.streams: dict[str, Stream] = {}
        self.documents: dict[str, bytes] = {}
        self.buckets: set[str] = set()
        self.clients: list[MemoryClient] = []
        self.clock_step_ns = 0
        self.down = False
        self.appends: list[Append] = []
        self.numbers = itertools.count(1)
        self.context = copy_context()
        self._exact: dict[str, list[MemorySubscription]] = {}
        self._below: dict[str, list[MemorySubscription]] = {}

    @contextmanager
    def instead_of_nats(self) -> Iterator[None]:
        """`Journal.connect` connects to this server for as long as the block lasts."""
        with mock.patch("engine.journal.NatsClient", partial(MemoryClient, self)):
            yield

    def now(self) -> int:
        """The server's own clock: no process's, and it may have been stepped."""
        asking = here.set(None)
        try:
            return time.time_ns() + self.clock_step_ns
        finally:
            here.reset(asking)

    # --- core ---------------------------------------------------------------------------------------------------------

    def listen(self, subscription: MemorySubscription) -> None:
        table, key = self._table(subscription.subject)
        table.setdefault(key, []).append(subscription)

    def unlisten(self, subscription: MemorySubscription) -> None:
        table, key = self._table(subscription.subject)
        listening = table.get(key, [])
        if subscription in listening:
            listening.remove(subscription)
        if not listening:
            table.pop(key, None)

    def _table(self, subject: str) -> tuple[dict[str, list[MemorySubscription]], str]:
        return (self._below, subject[:-2]) if subject.endswith(".*") else (self._exact, subject)

    def interest(self, subject: str) -> list[MemorySubscription]:
        return [*self._exact.get(subject, ()), *self._below.get(subject.rpartition(".")[0], ())]

    def route(self, subject: str, data: bytes, *, reply: str = "", headers: dict[str, str] | None = None) -> bool:
        """Send to whoever listens. False: nobody."""
        listening = self.interest(subject)
        for subscription in listening:
            client = subscription.client
            message = Msg(_client=client, subject=subject, reply=reply, data=data, headers=headers)  # type: ignore[arg-type]
            client.hear(subscription, message)
        return bool(listening)

    def take(self, client: MemoryClient, subject: str, data: bytes, reply: str, headers: dict[str, str] | None) -> None:
        """One message from a client, whole."""
        stream = next((one for one in self.streams.values() if subject in one.config["subjects"]), None)
        if stream is not None:
            self._append(client, stream, subject, data, reply, headers or {})
        elif subject.startswith("$JS.API."):
            self.respond(reply, self._api(subject.removeprefix("$JS.API."), json.loads(data or b"{}")))
        elif subject.startswith("$KV."):
            self.documents[subject] = data
            self.respond(reply, {"seq": len(self.documents)})
        elif not self.route(subject, data, reply=reply, headers=headers) and reply:
            self.route(reply, b"", headers={"Status": str(NO_RESPONDERS)})

    def respond(self, reply: str, answer: dict[str, Any]) -> None:
        if reply:
            self.route(reply, json.dumps(answer).encode())

    # --- streams ------------------------------------------------------------------------------------------------------

    def _append(
        self, client: MemoryClient, stream: Stream, subject: str, data: bytes, reply: str, headers: dict[str, str]
    ) -> None:
        now, name = self.now(), headers.get("Nats-Msg-Id")
        after = headers.get("Nats-Expected-Last-Subject-Sequence")
        expected = None if after is None else int(after)
        window = int(stream.config.get("duplicate_window", 0))
        known = stream.names.get(name) if name is not None else None
        inside = known is not None and 0 <= now - known[1] < window

        def refuse(code: int, why: str) -> None:
            self.appends.append(Append(client.process, subject, data, 0, code, expected))
            if code == NO_RESPONDERS:
                self.route(reply, b"", headers={"Status": str(code)})
            else:
                self.respond(reply, {"error": {"code": 400, "err_code": code, "description": why}})

        code = self.weather.refuses(client, subject, known=inside)
        last = stream.last_of.get(subject, 0)
        size = int(stream.config.get("max_bytes") or 0)
        if code is not None:
            refuse(code, "it was told to refuse")
        elif inside and known is not None:
            self.appends.append(Append(client.process, subject, data, known[0], 0, expected, duplicate=True))
            self.respond(reply, {"stream": stream.name, "seq": known[0], "duplicate": True})
        elif name is not None and self.weather.lies(client, subject):
            self.respond(reply, {"stream": stream.name, "seq": stream.last_seq, "duplicate": True})
        elif expected is not None and expected != last:
            refuse(self.weather.wrong_last(), f"wrong last sequence: {last}")
        elif 0 < size < stream.bytes + len(data):
            refuse(FULL, "maximum bytes exceeded")
        else:
            seq = self._store(stream, subject, data, now, headers.get(SEEN, ""))
            if name is not None:
                stream.names[name] = (seq, now)
            repeated = known is not None
            self.appends.append(Append(client.process, subject, data, seq, 0, expected, repeated_name=repeated))
            self.respond(reply, {"stream": stream.name, "seq": seq})
            for consumer in list(stream.consumers.values()):
                self._deliver(stream, consumer)

    def _store(self, stream: Stream, subject: str, data: bytes, now: int, seen: str) -> int:
        stream.last_seq += 1
        stream.messages[stream.last_seq] = Stored(stream.last_seq, now, subject.rpartition(".")[2], data, seen)
        stream.subjects[stream.last_seq] = subject
        stream.last_of[subject] = stream.last_seq
        stream.bytes += len(data) + 64
        return stream.last_seq

    def lose_end(self, name: str, *, after: int) -> None:
        """What a store of one copy has been seen to do: what lies behind `after` is gone, and all is reported well."""
        stream = self.streams[name]
        for seq in [seq for seq in stream.messages if seq > after]:
            stream.bytes -= len(stream.messages.pop(seq).data) + 64
            del stream.subjects[seq]
        stream.last_seq = after
        stream.last_of = {subject: seq for seq, subject in stream.subjects.items()}
        stream.names.clear()
        stream.consumers.clear()

    def _api(self, call: str, asked: dict[str, Any]) -> dict[str, Any]:
        word, _, rest = call.partition(".")
        verb, _, rest = rest.partition(".")
        if (word, verb) == ("STREAM", "CREATE"):
            self.streams[rest] = Stream(rest, asked)
            return self._info(self.streams[rest])
        if (word, verb) == ("STREAM", "MSG"):
            verb, _, rest = rest.partition(".")
        stream = self.streams.get(rest.partition(".")[0])
        if stream is None:
            return {"error": {"code": 404, "err_code": 10059, "description": "stream not found"}}
        match (word, verb):
            case ("STREAM", "INFO"):
                return self._info(stream)
            case ("STREAM", "GET"):
                return self._get(stream, _place(stream, asked))
            case ("STREAM", "DELETE"):
                stream.messages.pop(int(asked["seq"]))
                return {"success": True}
            case ("CONSUMER", "CREATE"):
                return self._follow(stream, asked["config"])
        raise AssertionError(f"this server knows no {call}")

    def _info(self, stream: Stream) -> dict[str, Any]:
        state = {"messages": len(stream.messages), "first_seq": min(stream.messages, default=0)}
        state |= {"last_seq": stream.last_seq, "bytes": stream.bytes}
        state["deleted"] = [seq for seq in range(state["first_seq"], stream.last_seq) if seq not in stream.messages]
        return {"config": stream.config, "state": state, "ts": rfc3339(self.now())}

    def _get(self, stream: Stream, seq: int) -> dict[str, Any]:
        found = stream.messages.get(seq)
        if found is None:
            return {"error": {"code": 404, "err_code": 10037, "description": "no message found"}}
        data = base64.b64encode(found.data).decode()
        return {"message": {"subject": stream.subjects[seq], "seq": seq, "time": rfc3339(found.ts), "data": data}}

    def _follow(self, stream: Stream, config: dict[str, Any]) -> dict[str, Any]:
        consumer = Consumer(
            config["name"],
            config["deliver_subject"],
            int(config["opt_start_seq"]),
            int(config["opt_start_seq"]) - 1,
            int(config["idle_heartbeat"]) / NS,
        )
        stream.consumers[consumer.name] = consumer
        loop = asyncio.get_running_loop()
        loop.call_soon(self._deliver, stream, consumer, context=self.context)
        loop.call_later(consumer.heartbeat_s, self._beat, stream, consumer, context=self.context)
        return {"name": consumer.name}

    def _deliver(self, stream: Stream, consumer: Consumer) -> None:
        if not self.interest(consumer.subject):
            return
        while consumer.next_seq <= stream.last_seq:
            found = stream.messages.get(consumer.next_seq)
            consumer.next_seq += 1
            if found is None:
                continue
            consumer.delivered, consumer.sent = found.seq, True
            place = f"{stream.name}.{consumer.name}.1.{found.seq}.{found.seq}.{found.ts}.0"
            for subscription in self.interest(consumer.subject):
                client = subscription.client
                headers = {SEEN: found.seen} if found.seen else None
                message = Msg(client, stream.subjects[found.seq], f"$JS.ACK.{place}", found.data, headers)  # type: ignore[arg-type]
                client.hear(subscription, message)

    def _beat(self, stream: Stream, consumer: Consumer) -> None:
        """A heartbeat where nothing else was sent; who is not heard is forgotten."""
        if self.interest(consumer.subject):
            consumer.unheard = 0
            self._deliver(stream, consumer)
            if not consumer.sent:
                headers = {"Status": "100", "Nats-Last-Stream": str(consumer.delivered)}
                self.route(consumer.subject, b"", headers=headers)
            consumer.sent = False
        else:
            consumer.unheard += 1
        if consumer.unheard < HEARTBEATS_UNHEARD_MAX:
            loop = asyncio.get_running_loop()
            loop.call_later(consumer.heartbeat_s, self._beat, stream, consumer, context=self.context)
        else:
            stream.consumers.pop(consumer.name, None)


def _place(stream: Stream, asked: dict[str, Any]) -> int:
    """The sequence that is asked for; 0 if there is none."""
    if "last_by_subj" in asked:
        return stream.last_of.get(asked["last_by_subj"], 0)
    if "next_by_subj" in asked:
        found = (seq for seq in sorted(stream.messages) if stream.subjects[seq] == asked["next_by_subj"])
        return next((seq for seq in found if seq >= int(asked["seq"])), 0)
    return int(asked["seq"])


def rfc3339(ns: int) -> str:
    seconds, fraction = divmod(ns, NS)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{fraction:09d}Z"
