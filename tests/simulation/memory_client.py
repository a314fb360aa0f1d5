"""The client that talks to the server in memory: what `Journal` sees of nats-py.

A client lives in the process it was made in and dies with it. It carries messages and never looks at what they say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any

import nats.errors
from nats.aio.msg import Msg
from nats.js.errors import BucketNotFoundError
from simulation.virtual_time import here

if TYPE_CHECKING:
    from simulation.memory_nats import Fate, MemoryServer

STEP_S = 1e-6  # what is sent later on one connection arrives later
RECONNECT_S = 0.05


class _Pipe:
    """One direction of a connection. What is on its way when it breaks never arrives."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._last = 0.0
        self._generation = 0

    def send(self, fates: tuple[Fate, ...], arrive: Callable[..., None], *args: object) -> None:
        loop = asyncio.get_running_loop()
        for fate in fates:
            at = loop.time() + fate.delay_s
            if fate.in_order:
                at = self._last = max(at, self._last + STEP_S)
            loop.call_at(at, self._arrive, self._generation, arrive, args, context=self._context)

    def _arrive(self, generation: int, arrive: Callable[..., None], args: tuple[object, ...]) -> None:
        if generation == self._generation:
            arrive(*args)

    def cut(self) -> None:
        self._generation += 1


class MemorySubscription:
    """One subscription: its callback takes one message at a time."""

    def __init__(self, client: MemoryClient, subject: str, cb: Callable[[Msg], Awaitable[None]]) -> None:
        self.client, self.subject = client, subject
        self._cb = cb
        self._queue: asyncio.Queue[Msg] = asyncio.Queue()
        self._task = asyncio.get_running_loop().create_task(self._run())

    def put(self, message: Msg) -> None:
        self._queue.put_nowait(message)

    async def _run(self) -> None:
        while True:
            message = await self._queue.get()
            try:
                await self._cb(message)
            except Exception as error:
                await self.client.complain(error)

    async def unsubscribe(self) -> None:
        self.end()
        if not self.client.is_connected:
            raise nats.errors.ConnectionClosedError

    def end(self) -> None:
        self.client.subscriptions.discard(self)
        self.client.server.unlisten(self)
        self._task.cancel()


class _Ordered(dict[MemorySubscription, None]):
    """A set that is walked in the order in which it was filled: the same in every run."""

    def add(self, one: MemorySubscription) -> None:
        self[one] = None

    def discard(self, one: MemorySubscription) -> None:
        self.pop(one, None)


class MemoryClient:
    """What `Journal` sees of nats-py."""

    def __init__(self, server: MemoryServer) -> None:
        self.server = server
        self.process = here.get()
        self.name = ""
        self.is_connected = self.is_closed = False
        self.subscriptions = _Ordered()
        self._callbacks: dict[str, Any] = {}
        self._up = _Pipe(server.context)
        self._down = _Pipe(copy_context())

    async def connect(self, *, name: str = "", **options: Any) -> None:
        self.name = name
        self._callbacks = {key: call for key, call in options.items() if key.endswith("_cb")}
        while self.server.down:  # noqa: ASYNC110  # as nats-py tries again and again
            await asyncio.sleep(RECONNECT_S)
        self.is_connected = True
        self.server.clients.append(self)
        if self.process is not None:
            self.process.on_death.append(self.vanish)

    async def close(self) -> None:
        if not self.is_closed:
            self.vanish()

    def vanish(self) -> None:
        """Gone for good: closed, or its process died."""
        self.is_connected, self.is_closed = False, True
        for subscription in list(self.subscriptions):
            subscription.end()
        self._down.cut()
        if self in self.server.clients:
            self.server.clients.remove(self)

    def cut(self) -> None:
        """The connection breaks: what is on its way is lost, both ways."""
        self.is_connected = False
        self._up.cut()
        self._down.cut()
        for subscription in self.subscriptions:
            self.server.unlisten(subscription)
        self._call("disconnected_cb")

    def mend(self) -> None:
        if self.is_closed or self.is_connected:
            return
        self.is_connected = True
        for subscription in self.subscriptions:
            self.server.listen(subscription)
        self._call("reconnected_cb")

    def _call(self, callback: str) -> None:
        called = self._callbacks.get(callback)
        if called is not None:
            loop = asyncio.get_running_loop()
            context = self.process.context if self.process is not None else None
            self._calling = loop.create_task(called(), context=context)

    async def complain(self, error: Exception) -> None:
        if "error_cb" in self._callbacks:
            await self._callbacks["error_cb"](error)

    def new_inbox(self) -> str:
        return f"_INBOX.m{next(self.server.numbers)}"

    async def subscribe(
        self, subject: str, *, cb: Callable[[Msg], Awaitable[None]], **limits: int
    ) -> MemorySubscription:
        subscription = MemorySubscription(self, subject, cb)
        self.subscriptions.add(subscription)
        if self.is_connected:
            self.server.listen(subscription)
        return subscription

    async def publish(
        self, subject: str, payload: bytes = b"", reply: str = "", headers: dict[str, str] | None = None
    ) -> None:
        word = subject.rpartition(".")[2] if subject.startswith("purse.") else subject.partition(".")[0]
        if self.process is not None:
            await self.process.step(f"before {word}")
        if self.is_closed:
            raise nats.errors.ConnectionClosedError
        if not self.is_connected:
            raise nats.errors.OutboundBufferLimitError
        fates = self.server.weather.to_server(self, subject, headers)
        self._up.send(fates, self.server.take, self, subject, payload, reply, headers)
        if self.process is not None:
            await self.process.step(f"after {word}")

    def hear(self, subscription: MemorySubscription, message: Msg) -> None:
        self._down.send(self.server.weather.to_client(self, message), self._arrive, subscription, message)

    def _arrive(self, subscription: MemorySubscription, message: Msg) -> None:
        if self.process is not None and not self.process.arrives("arrival"):
            return
        if subscription in self.subscriptions:
            subscription.put(message)

    def jetstream(self) -> _Buckets:
        return _Buckets(self.server)


class _Buckets:
    """nats-py's key-value half, as far as the projector uses it."""

    def __init__(self, server: MemoryServer) -> None:
        self._server = server

    async def key_value(self, bucket: str) -> None:
        if bucket not in self._server.buckets:
            raise BucketNotFoundError

    async def create_key_value(self, *, bucket: str, history: int, replicas: int = 1) -> None:
        assert (history, replicas) == (1, 1)
        self._server.buckets.add(bucket)
