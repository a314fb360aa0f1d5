"""Getting asks onto the stream and their answers back: coalesce, append, ask again, give up.

    ask ─> block ─┐
    ask ─> block ─┼─> one message (what waits while the last appends are in flight) ─> stream ─> engine
    ask ─> block ─┘                                                                        │
                  <── Reply to our inbox: one outcome an ask, in order <───────────────────┘

A message is appended again under the same id when nobody acknowledged it; what an engine did not answer is asked again
in a new message, since the stream would swallow the same one. Whoever stops waiting for a hold takes it back. A
settlement goes on being tried after its caller has gone, until it is on the stream. Nothing here decides or interprets
an outcome.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import deque
from collections.abc import Sequence

import msgspec
import structlog
from nats.aio.msg import Msg

from engine.core import limits
from engine.core.messages import ADMIN_ASKS, Answer, AnyAsk, AnyOutcome, Hold, Observe, Reply, Settle
from engine.errors import BadAsk, NoAnswer, StreamRefused
from engine.journal import Journal, Kind

APPENDS_IN_FLIGHT_MAX = 3  # each is a disk flush; what comes meanwhile shares the next
ASKS_WAITING_MAX = 65_536
APPEND_WAIT_S = 2.0
PATIENCE_S = 1.0  # until an unanswered ask is asked again; twice as long after each time
PATIENCE_S_MAX = 8.0
SWEEP_S = 0.1
RETRY_S = 0.05
RETRY_S_MAX = 1.0
NEVER = float("inf")
STREAM_FULL = frozenset({10077, 10047, 10023})  # no room: waiting does not help a hold

log = structlog.get_logger()

_KEPT = (Settle, Observe)  # money that is gone: tried on after the caller has left

_encoder = msgspec.json.Encoder()
_typed = msgspec.json.Decoder(list[AnyAsk])
_replies = msgspec.json.Decoder(Reply)


class Answered(msgspec.Struct, frozen=True, gc=False):
    """An outcome, the moment and sequence of its ask message, and the receipt: sequence and chain of the told."""

    outcome: AnyOutcome
    at: int
    seq: int
    told: int
    chain: str


class Block:
    """Asks of one caller that travel together and are answered together."""

    __slots__ = ("again_at", "answers", "asks", "deadline", "encoded", "kept", "patience_s", "sent", "stored")

    def __init__(self, asks: Sequence[AnyAsk], encoded: bytes, wait_s: float) -> None:
        self.asks = asks
        self.encoded = encoded
        self.deadline = time.monotonic() + wait_s
        self.kept = any(isinstance(ask, _KEPT) for ask in asks)
        self.sent = self.stored = False
        self.patience_s = PATIENCE_S
        self.again_at = NEVER  # nobody has acknowledged it yet
        self.answers: asyncio.Future[list[Answered]] = asyncio.get_running_loop().create_future()


class Message:
    """Blocks on their way in one append."""

    __slots__ = ("blocks", "sent_at", "sent_ns")

    def __init__(self, blocks: list[Block]) -> None:
        self.blocks = blocks
        self.sent_at = time.monotonic()
        self.sent_ns = time.time_ns()

    def wanted(self) -> list[Block]:
        """The blocks that still wait for an answer."""
        return [block for block in self.blocks if not block.answers.done()]


class Asker:
    """The asking half of one client. Runs inside `Purse`."""

    def __init__(self, journal: Journal) -> None:
        self.offset_ns = 0  # stream time minus this machine's clock
        self.receipt: tuple[int, str] = (0, "")
        self._journal = journal
        self._inbox = journal.client.new_inbox()
        self._instance = self._inbox.rsplit(".", 1)[-1]
        self._counter = itertools.count(1)
        self._waiting: dict[Kind, deque[Block]] = {"ask": deque(), "admin": deque()}
        self._asks_waiting = 0
        self._live: dict[Block, None] = {}
        self._unanswered: dict[str, Message] = {}
        self._in_flight = 0
        self._flushing = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen to the inbox; `run` must follow."""
        await self._journal.client.subscribe(f"{self._inbox}.*", cb=self._on_reply)

    async def run(self) -> None:
        """Look after what waits, until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_S)
            self._sweep(time.monotonic())

    async def close(self, wait_s: float) -> None:
        """Give what must not be lost this long to get onto the stream, and its callers to hear of it."""
        kept = [block for block in self._live if block.kept and not block.answers.done()]
        if kept:
            await asyncio.wait([block.answers for block in kept], timeout=wait_s)
        unsent = sum(not block.stored and not block.answers.done() for block in kept)
        if unsent:
            log.error("settlements_unsent", count=unsent)
        for task in self._tasks:
            task.cancel()
        for block in self._live:
            if not block.answers.done():
                block.answers.set_exception(NoAnswer("the client was closed"))
                block.answers.exception()  # whoever still waits hears it; nobody need

    def now(self) -> int:
        """Estimated stream time, ns."""
        return time.time_ns() + self.offset_ns

    async def ask(self, asks: Sequence[AnyAsk], *, wait_s: float) -> list[Answered]:
        """One outcome each, in order. Raises `BadAsk` before anything is sent, `StreamRefused`, `NoAnswer`."""
        block = Block(asks, encode(asks), wait_s)
        if self._asks_waiting + len(asks) > ASKS_WAITING_MAX and not block.kept:
            raise StreamRefused("too many asks are waiting")
        self._enqueue(block)
        try:
            return await block.answers
        except (asyncio.CancelledError, NoAnswer):
            self._give_up(block)
            raise

    def _enqueue(self, block: Block) -> None:
        kind: Kind = "admin" if any(isinstance(ask, ADMIN_ASKS) for ask in block.asks) else "ask"
        self._waiting[kind].append(block)
        self._asks_waiting += len(block.asks)
        self._live[block] = None
        if not self._flushing:
            self._flushing = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _give_up(self, block: Block) -> None:
        """The caller has left. What it settled is tried on until it is stored; what it wanted to hold is taken back."""
        left: list[AnyAsk] = [] if block.stored else [ask for ask in block.asks if isinstance(ask, _KEPT)]
        if block.sent:
            left += [Settle(hold=ask.id, release=True, by=ask.by) for ask in block.asks if isinstance(ask, Hold)]
        if left:
            self._enqueue(Block(left, encode(left), NEVER))

    # --- sending ------------------------------------------------------------------------------------------------------

    def _flush(self) -> None:
        self._flushing = False
        for kind, waiting in self._waiting.items():
            while waiting and self._in_flight < APPENDS_IN_FLIGHT_MAX:
                blocks = self._take(waiting)
                if blocks:
                    self._in_flight += 1
                    task = asyncio.get_running_loop().create_task(self._send(kind, Message(blocks)))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)

    def _take(self, waiting: deque[Block]) -> list[Block]:
        """As many waiting blocks as one message may carry; those nobody waits for any more are left out."""
        blocks: list[Block] = []
        count = size = 0
        while waiting:
            block = waiting[0]
            count, size = count + len(block.asks), size + len(block.encoded) + 1
            if blocks and (count > limits.MESSAGE_ASKS_MAX or size > _BLOCKS_BYTES_MAX):
                break
            waiting.popleft()
            self._asks_waiting -= len(block.asks)
            if not block.answers.done():
                block.sent = True
                blocks.append(block)
        return blocks

    async def _send(self, kind: Kind, message: Message) -> None:
        token = str(next(self._counter))
        sender = f"{self._inbox}.{token}".encode()
        data = b'{"v":1,"from":"%b","asks":[%b]}' % (sender, b",".join([block.encoded for block in message.blocks]))
        self._unanswered[token] = message
        try:
            await self._append(kind, data, f"{self._instance}.{token}", message)
        except StreamRefused as refused:
            self._unanswered.pop(token, None)
            self._refuse(message, refused)
        else:
            for block in message.wanted():
                block.stored = True
                if block.deadline == NEVER:
                    block.answers.set_result([])  # it will be decided, and nobody waits to hear it
        finally:
            for block in message.blocks:
                block.again_at = time.monotonic() + block.patience_s
            self._in_flight -= 1
            self._flush()

    async def _append(self, kind: Kind, data: bytes, name: str, message: Message) -> None:
        """Append one message, however long the stream needs, as long as somebody wants it.

        Tried again under the same name when nobody answered. A "duplicate" is a claim: if the message is not where the
        stream says, it goes out under a new name. A full stream ends it; an earlier try is not there then, since the
        stream would have called this one its duplicate.
        """
        delay_s = RETRY_S
        while message.wanted():
            try:
                appended = await self._journal.append(kind, data, wait_s=APPEND_WAIT_S, msg_id=name)
                if not appended.duplicate or await self._journal.stored_as(data, appended):
                    return
                name += "+"
                continue
            except NoAnswer:
                pass
            except StreamRefused as refused:
                if refused.code in STREAM_FULL:
                    raise
            await asyncio.sleep(delay_s)
            delay_s = min(2 * delay_s, RETRY_S_MAX)

    def _sweep(self, now: float) -> None:
        """Once in a while: who has waited too long, and what should be asked again."""
        for block in list(self._live):
            if block.answers.done():
                del self._live[block]
            elif now >= block.deadline:
                del self._live[block]
                block.answers.set_exception(NoAnswer("nobody answered in time"))
            elif now >= block.again_at:
                block.again_at = NEVER
                block.patience_s = min(2 * block.patience_s, PATIENCE_S_MAX)
                self._enqueue(block)
        for token in [token for token, message in self._unanswered.items() if not message.wanted()]:
            del self._unanswered[token]

    # --- hearing ------------------------------------------------------------------------------------------------------

    async def _on_reply(self, message: Msg) -> None:
        try:
            reply = _replies.decode(message.data)
        except msgspec.DecodeError:
            log.warning("reply_unreadable")
            return
        self.receipt = max(self.receipt, (reply.told, reply.chain))
        for answer in reply.answers:
            sent = self._unanswered.pop(answer.to.rsplit(".", 1)[-1], None)
            if sent is not None:
                if time.monotonic() - sent.sent_at < PATIENCE_S:
                    self.offset_ns = answer.at - sent.sent_ns
                self._hear(sent, answer, reply)

    def _hear(self, sent: Message, answer: Answer, reply: Reply) -> None:
        out, at, seq, told, chain = answer.out, answer.at, answer.seq, reply.told, reply.chain
        count = sum(len(block.asks) for block in sent.blocks)
        if len(out) != count:  # the whole message was invalid
            out = [out[0]] * count
        start = 0
        for block in sent.blocks:
            end = start + len(block.asks)
            if not block.answers.done():
                block.answers.set_result([Answered(outcome, at, seq, told, chain) for outcome in out[start:end]])
                self._live.pop(block, None)
            start = end

    def _refuse(self, message: Message, refused: StreamRefused) -> None:
        """Say so to those who wait, but for those whose asks must not be lost: they are asked again."""
        for block in message.wanted():
            if not block.kept:
                block.answers.set_exception(refused)
                self._live.pop(block, None)


_BLOCKS_BYTES_MAX = limits.MESSAGE_BYTES_MAX - 512  # the rest is for what stands around the asks


def encode(asks: Sequence[AnyAsk]) -> bytes:
    """The asks as they will stand in a message, without the brackets around them. Raises `BadAsk`.

    They are read back as the engine will read them, since one ask with a wrong type would make it refuse the whole
    message, and with it the asks of everybody else who happens to travel along.
    """
    if not 1 <= len(asks) <= limits.MESSAGE_ASKS_MAX:
        raise BadAsk("asks", f"expected 1 to {limits.MESSAGE_ASKS_MAX} asks")
    try:
        encoded = _encoder.encode(asks)
        _typed.decode(encoded)
    except (msgspec.MsgspecError, TypeError, UnicodeEncodeError, OverflowError) as error:
        why, _, place = str(error).partition(" - at `")
        raise BadAsk(place.removesuffix("`").removeprefix("$") or "asks", why) from error
    if len(encoded) > _BLOCKS_BYTES_MAX:
        raise BadAsk("asks", f"at most {_BLOCKS_BYTES_MAX:,} bytes together")
    return encoded[1:-1]
