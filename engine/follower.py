"""Reading the stream in order, for ever. The reading half of `journal`.

    stream ──push──> consumer (ephemeral, ours alone) ──> one plain subscription ──> your callback, one at a time

nats-py has an ordered consumer of its own; it skips messages silently when its reader falls behind (175,712 of 700,000
in a test) and needs 19 s to notice a restarted server. So we keep the books ourselves:

- every message must bear the sequence that follows the one before it, whatever the server or the library did between;
- flow control is answered when everything before it has been *processed*, so a slow reader slows the sender down;
- a consumer that is silent past a few heartbeats, or lost with a restarted server, is replaced by a new one that starts
  at the next sequence, with a subject of its own so that stragglers of the old one cannot be mistaken for news;
- a message that is not there, a stream that ends before what was seen or has another message in its place: `Untrusted`.
  Going on would grant money twice. Only a gap that a `loss` on the stream covers is passed over. The tolds behind it,
  up to the end of that range, speak of messages nobody can read any more: they arrive as "void", and the asks that
  still stand there are decided again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec
import nats.errors
import structlog
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from engine.errors import NoAnswer, PurseError, StreamRefused, Untrusted
from engine.journal import SEEN, Journal, Stored
from engine.losses import Contradiction, Losses

HEARTBEAT_S = 0.5
SILENCE_S_MAX = 1.6  # three heartbeats and a bit
ZOMBIE_S_MAX = 20.0  # connected, yet nothing works: only a new process helps
CONSUMER_GONE_S = 60
RETRY_S = 0.05
RETRY_S_MAX = 1.0
ACK_PREFIX = "$JS.ACK."  # where a message of the stream could be acknowledged; heartbeats and flow control have others

log = structlog.get_logger()


class _Created(msgspec.Struct, frozen=True):
    name: str = ""
    error: dict[str, Any] | None = None


class Follower:
    """Calls `on_message` for every message after sequence `after`, in order, exactly once."""

    def __init__(
        self,
        journal: Journal,
        *,
        after: int,
        on_message: Callable[[Stored], Awaitable[None]],
        losses: Losses | None = None,
        check: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`losses`: those that may cover a gap. `check` is called before reading begins, and after every reconnect."""
        self._journal = journal
        self._on_message = on_message
        self._losses = losses
        self._check = check
        self._void_to = 0
        self.last = after
        self._newest: Stored | None = None
        self._generation = 0
        self._consumer = ""
        self._subscription: Subscription | None = None
        self._heard_at = time.monotonic()
        self._wake = asyncio.Event()
        self._broken: Exception | None = None
        self._behind = False
        self._idle = asyncio.Event()
        self._idle.set()

    async def run(self) -> None:
        """Follow until cancelled. Raises `Untrusted`, or whatever the callback raised."""
        self._journal.on_reconnect.append(self._wake.set)
        try:
            await self._start()
            while True:
                await self._pause()
                if self._broken is not None:
                    raise self._broken
                if self._behind or (self._idle.is_set() and time.monotonic() - self._heard_at > SILENCE_S_MAX):
                    await self._start()
        finally:
            self._journal.on_reconnect.remove(self._wake.set)
            await self._stop()

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(HEARTBEAT_S):
                await self._wake.wait()
        except TimeoutError:
            return
        if self._wake.is_set():
            self._wake.clear()
            self._behind = self._behind or self._broken is None

    async def _start(self) -> None:
        """Begin a new consumer at the next sequence, however long it takes the server to be there."""
        began, delay_s = time.monotonic(), RETRY_S
        while True:
            try:
                await self._stop()  # a try whose answer was lost may have made a consumer
                await self._check_end()
                if self._check is not None:
                    await self._check()
                await self._create()
            except (NoAnswer, StreamRefused) as error:
                waited_s = time.monotonic() - began
                if self._journal.client.is_closed:
                    raise PurseError("the connection was closed for good") from error
                if self._journal.client.is_connected and waited_s > ZOMBIE_S_MAX:
                    raise PurseError(f"connected, but the stream has not answered for {waited_s:.0f} s") from error
                if not self._journal.client.is_connected:
                    began = time.monotonic()
                await asyncio.sleep(delay_s)
                delay_s = min(2 * delay_s, RETRY_S_MAX)
            else:
                self._heard_at, self._behind = time.monotonic(), False
                return

    async def _check_end(self) -> None:
        last = await self._journal.last_seq()
        if last < self.last:
            lost = f"{last + 1:,} to {self.last:,}"
            raise Untrusted(f"the stream ends at sequence {last:,}, but {self.last:,} was seen: {lost} are lost")
        if self._newest is not None and not await self._stands(self._newest):
            raise Untrusted(
                f"at sequence {self.last:,} lies another message than was seen there: the record was replaced"
            )
        if last > self.last and await self._journal.read(last) is None:
            await self._pass_over_end(last)

    async def _stands(self, seen: Stored) -> bool:
        there = await self._journal.read(seen.seq)
        return there is not None and (there.ts, there.data) == (seen.ts, seen.data)

    async def _pass_over_end(self, last: int) -> None:
        """The newest messages are gone, yet their sequences are not given out again: nothing would ever come."""
        first = last
        while first - 1 > self.last and await self._journal.read(first - 1) is None:
            first -= 1
        await self._accept(first, last)

    async def _create(self) -> None:
        self._generation += 1
        generation = self._generation
        inbox = self._journal.client.new_inbox()

        async def deliver(message: Msg) -> None:
            if generation == self._generation and self._broken is None:
                await self._deliver(message)

        self._subscription = await self._journal.client.subscribe(
            inbox, cb=deliver, pending_msgs_limit=0, pending_bytes_limit=0
        )
        self._consumer = f"follow-{inbox.rsplit('.', 1)[-1]}"
        config = {
            "name": self._consumer,
            "deliver_subject": inbox,
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": self.last + 1,
            "ack_policy": "none",
            "replay_policy": "instant",
            "flow_control": True,
            "idle_heartbeat": int(HEARTBEAT_S * 10**9),
            "inactive_threshold": CONSUMER_GONE_S * 10**9,
            "mem_storage": True,
            "num_replicas": 1,
        }
        stream = self._journal.names.stream
        created = await self._journal.api(
            f"CONSUMER.CREATE.{stream}.{self._consumer}", {"stream_name": stream, "config": config}, _Created
        )
        if created.error is not None:
            raise StreamRefused(str(created.error.get("description", "")), code=int(created.error.get("err_code", 0)))

    async def _stop(self) -> None:
        self._generation += 1
        await self._idle.wait()  # unsubscribing cancels the callback; never in the middle of a message
        if self._subscription is None:
            return
        subscription, self._subscription = self._subscription, None
        with suppress(nats.errors.Error):  # not connected: the server forgets it by itself, the consumer after a minute
            await subscription.unsubscribe()

    async def _deliver(self, message: Msg) -> None:
        """Whatever ends the callback ends the follower, in the follower's own task."""
        self._idle.clear()
        try:
            if message.reply.startswith(ACK_PREFIX):  # headers say nothing: a publisher may write "Status: 100" too
                await self._take(message)
            elif message.headers is not None:
                await self._control(message.reply, message.headers)
        except Exception as error:
            self._broken = error
            self._wake.set()
        finally:
            self._heard_at = time.monotonic()
            self._idle.set()

    async def _control(self, reply: str, headers: Mapping[str, str]) -> None:
        """A heartbeat or a flow control request. All messages before it have been processed by now."""
        answer_to = reply or headers.get("Nats-Consumer-Stalled")
        if answer_to:
            with suppress(nats.errors.Error):  # not connected: the next consumer owes nothing
                await self._journal.client.publish(answer_to)
        delivered = headers.get("Nats-Last-Stream")
        if delivered is not None and int(delivered) > self.last:
            log.warning("follower_fell_behind", last=self.last, delivered=int(delivered))
            self._begin_again()

    async def _take(self, message: Msg) -> None:
        seq, timestamp = place_of(message.reply)
        if seq != self.last + 1 and not await self._passed_over(seq):
            return
        headers, kind = message.headers, self._journal.kind(message.subject, message.data)
        if seq <= self._void_to and kind == "told":
            kind = "void"
        seen = headers.get(SEEN, "") if headers is not None else ""
        stored = Stored(seq, timestamp, kind, message.data, seen)
        await self._on_message(stored)
        self.last, self._newest = seq, stored

    async def _passed_over(self, seq: int) -> bool:
        """Not the next sequence. If the next one is still on the stream, only delivery failed: begin again there.

        True if what is between is gone and a loss covers it.
        """
        missing = self.last + 1
        if seq < missing:
            return False
        try:
            found = await self._journal.read(missing)
            if found is None:
                await self._accept(missing, seq - 1)
                return True
        except (NoAnswer, StreamRefused):
            self._begin_again()  # whether it is there is not known: read on from there
            return False
        log.warning("follower_skipped", expected=missing, got=seq)
        self._begin_again()
        return False

    async def _accept(self, first: int, last: int) -> None:
        gap = Contradiction(first, last, f"sequences {first:,} to {last:,} are missing from the stream")
        if self._losses is None:
            raise Untrusted(gap.why)
        accepted = await self._losses.accept(gap)
        log.warning("loss_accepted", loss=accepted.loss.id, first=first, last=last)
        self._void_to = max(self._void_to, min(accepted.loss.to_seq, accepted.seq - 1))

    def _begin_again(self) -> None:
        self._generation += 1  # hear no more of this consumer
        self._behind = True
        self._wake.set()


def place_of(reply: str) -> tuple[int, int]:
    """Sequence and timestamp of a delivered message, from the subject on which it could be acknowledged.

    `$JS.ACK.<stream>.<consumer>.<delivered>.<sequence>.<delivery>.<time>.<pending>`; version 2 puts domain and account
    hash before the stream and may add a token behind.
    """
    tokens = reply.split(".")
    shift = 0 if len(tokens) == 9 else 2
    return int(tokens[5 + shift]), int(tokens[7 + shift])
