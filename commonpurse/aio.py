"""A wallet over HTTP, for programs with asyncio: what `commonpurse.sync` asks, asked by threads of its own.

    from commonpurse.aio import Purse

    async with Purse("http://127.0.0.1:8080", key="purse_...") as purse:
        async with purse.holding({"usd": "0.01"}) as hold:
            answer = await call_the_model(...)
            hold.cost(usd=price_of(answer))

Whoever reaches the wallet's broker takes `from commonpurse import Purse` instead, which needs no threads. A task that
is cancelled while it asks loses nothing: its hold is given back, its settlement goes on.
"""

from __future__ import annotations

import asyncio
import inspect
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from decimal import Decimal
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from commonpurse import sync
from commonpurse.client import asks
from commonpurse.client.answers import Estimated, Held, Refusal, Settled
from commonpurse.client.asks import Option
from commonpurse.costs import call_of, cost_of
from engine.core.plan import LapsePolicy
from engine.guarding import Cost, Guarded, Labels, Said, Terms, Worst, guarded
from engine.holding import OnError, OpenHold

__all__ = ["Holding", "Option", "Purse"]

Found = TypeVar("Found")


class Purse:
    """As `commonpurse.sync.Purse`, awaited. At most `connections` asks are under way; the others wait their turn."""

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        connections: int = sync.CONNECTIONS,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._sync = sync.Purse(url, key, connections=connections, tls=tls)
        self._threads = ThreadPoolExecutor(connections, thread_name_prefix="purse")

    async def close(self, wait_s: float = sync.CLOSE_WAIT_S) -> None:
        """Send what waits and close. Raises `NotKept` if the wallet did not take all of it within `wait_s`."""
        try:
            await asyncio.to_thread(self._sync.close, wait_s)
        finally:
            self._threads.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def unsent(self) -> int:
        """Settlements of `with` blocks that nobody has answered yet. They are tried on."""
        return self._sync.unsent

    async def hold(self, amounts: Said | None = None, **asked: Any) -> Held | Refusal:
        """As `commonpurse.sync.Purse.hold`."""
        return await self._call(partial(self._sync.hold, amounts, **asked), left=self._give_back)

    async def settle(self, hold: str, amounts: Said, **asked: Any) -> Settled | Refusal:
        """As `commonpurse.sync.Purse.settle`."""
        return await self._call(partial(self._sync.settle, hold, amounts, **asked))

    async def release(self, hold: str, *, wait_s: float = sync.SETTLE_WAIT_S) -> Settled | Refusal:
        """As `commonpurse.sync.Purse.release`."""
        return await self._call(partial(self._sync.release, hold, wait_s=wait_s))

    async def renew(self, hold: str, n: int, **asked: Any) -> Held | Refusal:
        """As `commonpurse.sync.Purse.renew`."""
        return await self._call(partial(self._sync.renew, hold, n, **asked))

    async def estimate(self, **call: Any) -> Estimated:
        """As `commonpurse.sync.Purse.estimate`."""
        return await self._call(partial(self._sync.estimate, **call))

    @asynccontextmanager
    async def holding(
        self,
        amounts: Said | None = None,
        *,
        options: Sequence[Option] | None = None,
        id: str | None = None,
        labels: Mapping[str, str] | None = None,
        ttl_s: int | None = None,
        on_lapse: LapsePolicy | None = None,
        on_error: OnError = "charge",
        wait_s: float = sync.WAIT_S,
    ) -> AsyncIterator[Holding]:
        """As `commonpurse.sync.Purse.holding`, for the length of an `async with` block."""
        hold = await self.open(
            amounts, options=options, id=id, labels=labels, ttl_s=ttl_s, on_lapse=on_lapse, wait_s=wait_s
        )
        try:
            yield hold
        except BaseException as error:
            hold.failed(error, on_error)
            raise
        finally:
            await hold.end()

    async def open(self, amounts: Said | None = None, **asked: Any) -> Holding:
        """As `commonpurse.sync.Purse.open`."""
        outcome = await self.hold(amounts, **asked)
        if isinstance(outcome, Refusal):
            raise outcome.error()
        return Holding(self, outcome)

    def guarded(
        self,
        worst: Worst | None = None,
        *,
        cost: Cost | None = None,
        labels: Labels | None = None,
        ttl_s: int | None = None,
        on_error: OnError = "charge",
        wait_s: float = sync.WAIT_S,
    ) -> Callable[[Guarded], Guarded]:
        """As `commonpurse.sync.Purse.guarded`, for an `async def`."""

        def guard(function: Guarded) -> Guarded:
            bound = partial(self._worst, inspect.signature(function)) if worst is None else worst
            terms = Terms(bound, cost or cost_of, labels)
            return guarded(terms, partial(self.holding, ttl_s=ttl_s, on_error=on_error, wait_s=wait_s))(function)

        return guard

    async def _worst(self, signature: inspect.Signature, *arguments: Any, **named: Any) -> Said:
        return (await self.estimate(**call_of(signature, arguments, named))).amounts

    async def send(self, path: str, body: object) -> None:
        """A settlement, now or in the background. Raises `BadAsk`, `NotAllowed`, `NotKept`."""
        await self._call(partial(self._sync.send, path, body))

    async def _call(self, ask: Callable[[], Found], *, left: Callable[[Future[Found]], None] | None = None) -> Found:
        """`ask` in a thread. It goes on when the task is cancelled; `left` then hears how it ended."""
        asking = self._threads.submit(ask)
        try:
            return await asyncio.shield(asyncio.wrap_future(asking))
        except asyncio.CancelledError:
            if left is not None:
                asking.add_done_callback(left)
            raise

    def _give_back(self, asking: Future[Held | Refusal]) -> None:
        """Of a hold that nobody waits for any more. One that nobody answered is given back already."""
        if asking.exception() is None and isinstance(outcome := asking.result(), Held):
            self._sync.give_back(outcome.id)


class Holding(OpenHold[Decimal]):
    """An open hold inside `async with purse.holding(...)`."""

    def __init__(self, purse: Purse, held: Held) -> None:
        super().__init__(held.id, held.option, held.amounts, asks.decimals)
        self.held = held
        self._purse = purse
        self._ended = False

    async def progress(self, **amounts: str | int | Decimal) -> Settled | Refusal:
        """What it has cost so far, as totals, on the record at once: kept even if this process dies."""
        self._progress |= self._read(amounts)
        return await self._purse.settle(self.id, amounts, final=False)

    async def end(self) -> None:
        """Settle it by what was said. Again: nothing. A settlement that nobody answers is tried on."""
        if not self._ended:
            self._ended = True
            await self._purse.send(*asks.ending(self.id, self._ending()))
