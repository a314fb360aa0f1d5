"""Getting asks onto the stream and their answers back: coalesce, append, ask again, give up.

    ask ─> block ─┐
    ask ─> block ─┼─> one message (what waits while the last appends are in flight) ─> stream ─> engine
    ask ─> block ─┘                                                                        │
                  <── Reply to our inbox: one outcome an ask, in order <───────────────────┘

A message is appended again under the same id when nobody acknowledged it; what an engine did not answer is asked again
in a new message, since the stream would swallow the same one. Whoever stops waiting for a hold takes it back. A
settlement goes on being tried after its caller has gone, until it is on the stream; while the stream does not take it,
it lies in the spool as well. Nothing here decides or interprets an outcome.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

import msgspec
import structlog
from nats.aio.msg import Msg

from engine.ask_bytes import ASKS_BYTES_MAX, decode, encode
from engine.core import limits
from engine.core.messages import ADMIN_ASKS, Answer, AnyAsk, AnyOutcome, Hold, Observe, Reply, Settle
from engine.errors import BadAsk, NoAnswer, NotKept, PurseError, StreamRefused, Untrusted
from engine.heard import Heard
from engine.journal import Journal, Kind
from engine.receipts import Receipt
from engine.spool import Slip, Spool

APPENDS_IN_FLIGHT_MAX = 3  # each is a disk flush; what comes meanwhile shares the next
# Where many ask at once they are sent, and woken, a share at a time: the engine decides the first while the next ones
# are still being written. All of them in one message would wait for each other at every station of the way.
SHARES = 4
SHARE_ASKS_LEAST = 64  # a smaller message costs as much as it spares
ASKS_WAITING_MAX = 65_536  # without an answer; past it holds are refused at once
SETTLES_WAITING_MAX = 65_536  # settles and observes not on the stream; past it they are refused too
APPEND_WAIT_S = 2.0
SPOOL_AFTER_S = 1.0  # what the stream has not acknowledged by then goes to disk; at the first refusal, at once
# Until an unanswered ask is asked again. An engine that is killed between a told and its reply leaves callers who hear
# nothing until then: with 1 s they waited 1.28 s, 0.2 s of it for the standby.
PATIENCE_S = 0.3
PATIENCE_FACTOR = 4  # each time longer: while nobody can answer, every ask again is one more to replay
PATIENCE_S_MAX = 8.0
SWEEP_S = 0.1
RETRY_S = 0.05
RETRY_S_MAX = 1.0
NEVER = float("inf")
STREAM_FULL = frozenset({10077, 10047, 10023})  # no room: waiting does not help a hold

log = structlog.get_logger()

_KEPT = (Settle, Observe)  # money that is gone: tried on after the caller has left

_replies = msgspec.json.Decoder(Reply)


class Answered(msgspec.Struct, frozen=True, gc=False):
    """An outcome, the moment and sequence of its ask message, and the receipt: sequence and chain of the told."""

    outcome: AnyOutcome
    at: int
    seq: int
    told: int
    chain: str


class Block:
    """Asks of one caller that travel together and are answered together.

    `kept`: some of them must not be lost; `only_kept`: all. `gone`: the caller has left. `stored`: on the stream.
    """

    __slots__ = (
        "again_at", "answers", "asks", "deadline", "doubtful", "encoded", "gone", "kept", "only_kept", "patience_s",
        "sent", "slip", "spool_at", "stored",
    )  # fmt: skip

    def __init__(self, asks: Sequence[AnyAsk], encoded: bytes, wait_s: float) -> None:
        now = time.monotonic()
        self.asks = asks
        self.encoded = encoded
        self.deadline = now + wait_s
        self.kept = any(isinstance(ask, _KEPT) for ask in asks)
        self.only_kept = self.kept and all(isinstance(ask, _KEPT) for ask in asks)
        self.sent = self.stored = self.gone = False
        self.doubtful = False  # an append of it was not acknowledged, and may be there all the same
        self.patience_s = PATIENCE_S
        self.again_at = NEVER  # nobody has acknowledged it yet
        self.slip: Slip | None = None
        self.spool_at = min(now + SPOOL_AFTER_S, self.deadline - SWEEP_S) if self.kept else NEVER
        self.answers: asyncio.Future[list[Answered]] = asyncio.get_running_loop().create_future()

    def go_on_alone(self) -> None:
        """Nobody waits to hear of it any more; it stays on its way."""
        self.deadline = NEVER
        self.answers = asyncio.get_running_loop().create_future()

    @property
    def safe(self) -> bool:
        """What must not be lost is on the stream or on disk."""
        return self.stored or (self.slip is not None and self.slip.state == "kept")


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

    def __init__(self, journal: Journal, spool: Spool | None = None) -> None:
        self.offset_ns = 0  # stream time minus this machine's clock
        self.heard = Heard(journal)
        self._journal = journal
        self._spool = spool
        self._inbox = journal.client.new_inbox()
        self._instance = self._inbox.rsplit(".", 1)[-1]
        self._counter = itertools.count(1)
        self._waiting: dict[Kind, deque[Block]] = {"ask": deque(), "admin": deque()}
        self._live: dict[Block, None] = {}  # without an answer
        self._live_asks = self._live_kept = 0
        self._unanswered: dict[str, Message] = {}
        self._in_flight = 0
        self._flushing = False
        self._closing = self._closed = False
        self._tasks: dict[asyncio.Task[None], None] = {}  # in the order in which they began

    async def start(self) -> None:
        """Listen to the inbox and take up what others left in the spool; `run` must follow."""
        await self._journal.client.subscribe(f"{self._inbox}.*", cb=self._on_reply)
        for slip in self._spool.adopted if self._spool is not None else ():
            self._adopt(slip)

    async def run(self) -> None:
        """Look after what waits, until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_S)
            self._sweep(time.monotonic())

    async def close(self, wait_s: float) -> None:
        """Give what must not be lost this long to get onto the stream, and its callers to hear of it."""
        self._closing = True
        for block in [block for block in self._live if not block.only_kept]:
            self._leave(block, NoAnswer("the client was closed"))
        deadline = time.monotonic() + wait_s
        while (waited := self._unsafe()) and time.monotonic() < deadline:
            await asyncio.wait(waited, timeout=SWEEP_S)
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await self._put_the_rest_away()

    def _unsafe(self) -> list[asyncio.Future[list[Answered]]]:
        """What closing has to wait for: what lies in the spool may go out at the next start as well."""
        live = [block for block in self._live if not block.answers.done()]
        return [block.answers for block in live if block.stored or not block.safe]

    async def _put_the_rest_away(self) -> None:
        rest = [block for block in self._live if not block.answers.done()]
        for block in rest:
            self._put_away(block)
        if self._spool is not None:
            await self._spool.flush()
        unsent = [block for block in rest if not block.stored]
        spooled = sum(len(block.asks) for block in unsent if block.safe)
        lost = sum(len(block.asks) for block in unsent if not block.safe)
        if spooled:
            log.warning("settlements_spooled", count=spooled)
        if lost:
            log.error("settlements_unsent", count=lost)
        for block in rest:
            self._leave(block, NoAnswer("the client was closed", kept=block.safe))

    def now(self) -> int:
        """Estimated stream time, ns."""
        return time.time_ns() + self.offset_ns

    async def ask(self, asks: Sequence[AnyAsk], *, wait_s: float) -> list[Answered]:
        """One outcome each, in order.

        Raises `BadAsk` before anything is sent, `StreamRefused`, `NoAnswer`, and `NotKept` for a settlement that only
        its caller has. `Untrusted`, also before anything is sent, where the stream contradicts what this client has
        heard: no permission of it is worth anything. What must not be lost is sent all the same.
        """
        block = Block(asks, encode(asks), wait_s)
        if self.heard.contradiction and not block.only_kept:
            raise Untrusted(self.heard.contradiction)
        self._check_room(block)
        self._begin(block)
        try:
            return await block.answers
        except asyncio.CancelledError:
            self._give_up(block)
            raise

    def _check_room(self, block: Block) -> None:
        """Refuse at once what could only wait in vain: nobody's memory or patience is without end."""
        if self._closing:
            raise NoAnswer("the client was closed")
        if block.kept:
            if self._live_kept + len(block.asks) > SETTLES_WAITING_MAX:
                raise NotKept("too many settlements wait for the stream already: send it again")
        elif self._live_asks + len(block.asks) > ASKS_WAITING_MAX:
            raise StreamRefused("too many asks are waiting")

    def _begin(self, block: Block) -> None:
        self._live[block] = None
        self._live_asks += len(block.asks)
        self._live_kept += len(block.asks) if block.kept else 0
        self._enqueue(block)

    def _end(self, block: Block) -> None:
        """Nothing is left to do for it."""
        if block in self._live:
            del self._live[block]
            self._live_asks -= len(block.asks)
            self._live_kept -= len(block.asks) if block.kept else 0

    def keep(self, asks: Sequence[AnyAsk]) -> None:
        """The caller has left before anything was sent: what it settled is sent, and tried on until it is stored."""
        kept = [ask for ask in asks if isinstance(ask, _KEPT)]
        if kept:
            with suppress(BadAsk):
                self._begin(Block(kept, encode(kept), NEVER))

    def _enqueue(self, block: Block) -> None:
        kind: Kind = "admin" if any(isinstance(ask, ADMIN_ASKS) for ask in block.asks) else "ask"
        self._waiting[kind].append(block)
        if not self._flushing:
            self._flushing = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _leave(self, block: Block, error: PurseError) -> None:
        """The caller hears `error`, and waits no longer."""
        answers = block.answers
        self._give_up(block)
        if not answers.done():
            answers.set_exception(error)
            answers.exception()  # whoever still waits hears it; nobody need

    def _give_up(self, block: Block) -> None:
        """The caller has left. What it settled is tried on until it is stored; what it wanted to hold is taken back."""
        if block.gone:
            return
        block.gone = True
        if block.only_kept and not block.stored:
            block.go_on_alone()
            return
        self._end(block)
        kept: list[AnyAsk] = [] if block.stored else [ask for ask in block.asks if isinstance(ask, _KEPT)]
        if kept:
            heir = Block(kept, encode(kept), NEVER)
            heir.slip, block.slip = block.slip, None
            self._begin(heir)
        if block.sent:
            taken_back = [Settle(hold=ask.id, release=True, by=ask.by) for ask in block.asks if isinstance(ask, Hold)]
            if taken_back:
                self._begin(Block(taken_back, encode(taken_back), NEVER))

    # --- the spool ----------------------------------------------------------------------------------------------------

    def _put_away(self, block: Block) -> None:
        """Begin to keep it on disk, unless it is there or on the stream; again where the disk refused a while ago."""
        if self._spool is None or not block.kept or block.stored:
            return
        now = time.monotonic()
        if block.slip is None or (block.slip.state == "failed" and now >= block.spool_at):
            kept = [ask for ask in block.asks if isinstance(ask, _KEPT)]
            block.slip = self._spool.keep(block.encoded if block.only_kept else encode(kept), len(kept))
            block.spool_at = now + SPOOL_AFTER_S

    def _adopt(self, slip: Slip) -> None:
        """Send what a client that died had kept."""
        try:
            asks = decode(slip.asks)
        except BadAsk as error:  # of another release: it stays on disk
            log.error("spool_unreadable", why=str(error), count=slip.count)
            return
        block = Block(asks, slip.asks, NEVER)
        block.slip = slip
        self._begin(block)

    def _on_stream(self, block: Block) -> None:
        """It is safe for good."""
        block.stored = True
        if block.slip is not None and self._spool is not None:
            self._spool.strike(block.slip)
            block.slip = None
        if block.deadline == NEVER:  # it will be decided, and nobody waits to hear it
            block.answers.set_result([])
            self._end(block)

    # --- sending ------------------------------------------------------------------------------------------------------

    def _flush(self) -> None:
        self._flushing = False
        if self._closed:
            return
        for kind, waiting in self._waiting.items():
            while waiting and self._in_flight < APPENDS_IN_FLIGHT_MAX:
                blocks = self._take(waiting)
                if blocks:
                    self._in_flight += 1
                    task = asyncio.get_running_loop().create_task(self._send(kind, Message(blocks)))
                    self._tasks[task] = None
                    task.add_done_callback(self._tasks.pop)

    def _take(self, waiting: deque[Block]) -> list[Block]:
        """As many waiting blocks as one message may carry; those nobody waits for any more are left out."""
        blocks: list[Block] = []
        count = size = 0
        share = self._share()
        while waiting:
            block = waiting[0]
            count, size = count + len(block.asks), size + len(block.encoded) + 1
            if blocks and (count > share or size > ASKS_BYTES_MAX):
                break
            waiting.popleft()
            if not block.answers.done():
                block.sent = True
                blocks.append(block)
        return blocks

    def _share(self) -> int:
        """How many asks travel together at most, unless one caller has more in one list."""
        return min(limits.MESSAGE_ASKS_MAX, max(SHARE_ASKS_LEAST, self._live_asks // SHARES))

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
                self._on_stream(block)
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
                appended = await self._journal.append(kind, data, wait_s=APPEND_WAIT_S, msg_id=name, seen=self._seen())
                if not appended.duplicate or await self._journal.stored_as(data, appended):
                    return
                name += "+"
                continue
            except NoAnswer:
                for block in message.blocks:
                    block.doubtful = True
            except StreamRefused as refused:
                if refused.code in STREAM_FULL:
                    raise
            for block in message.wanted():
                self._put_away(block)
            await asyncio.sleep(delay_s)
            delay_s = min(2 * delay_s, RETRY_S_MAX)

    def _seen(self) -> str:
        """The newest receipt as it is sent along, so that an engine hears of it if its stream has lost that told."""
        return str(Receipt(*self.heard.newest)) if self.heard.newest[0] else ""

    def _sweep(self, now: float) -> None:
        """Once in a while: who has waited too long, and what should be asked again."""
        for block in list(self._live):
            if block.answers.done():
                self._end(block)
                continue
            if now >= block.spool_at:
                self._put_away(block)
            if now >= block.deadline:
                self._time_out(block)
            elif now >= block.again_at:
                block.again_at = NEVER
                block.patience_s = min(PATIENCE_FACTOR * block.patience_s, PATIENCE_S_MAX)
                self._enqueue(block)
        for token in [token for token, message in self._unanswered.items() if not message.wanted()]:
            del self._unanswered[token]

    def _time_out(self, block: Block) -> None:
        """Its caller has waited as long as it wanted; one that settled hears also whether it is safe."""
        if not block.kept or block.safe or self._spool is None:
            self._leave(block, NoAnswer("nobody answered in time", kept=block.kept and block.safe))
        elif block.slip is not None and block.slip.state == "failed":
            why = f"the stream did not take it in time, nor did the spool: {block.slip.why}; send it again"
            self._leave(block, NotKept(why))

    # --- hearing ------------------------------------------------------------------------------------------------------

    async def _on_reply(self, message: Msg) -> None:
        try:
            reply = _replies.decode(message.data)
        except msgspec.DecodeError:
            log.warning("reply_unreadable")
            return
        self.heard.hear(reply.told, reply.chain)
        for answer in reply.answers:
            sent = self._unanswered.pop(answer.to.rsplit(".", 1)[-1], None)
            if sent is not None:
                if time.monotonic() - sent.sent_at < PATIENCE_S:
                    self.offset_ns = answer.at - sent.sent_ns
                await self._hear(sent, answer, reply)

    async def _hear(self, sent: Message, answer: Answer, reply: Reply) -> None:
        out, at, seq, told, chain = answer.out, answer.at, answer.seq, reply.told, reply.chain
        count = sum(len(block.asks) for block in sent.blocks)
        if len(out) != count:  # the whole message was invalid
            out = [out[0]] * count
        start = woken = 0
        share = self._share()
        for block in sent.blocks:
            end = start + len(block.asks)
            if woken >= share:
                woken = 0
                await asyncio.sleep(0)
            answers = block.answers
            if not answers.done():
                self._on_stream(block)
                self._end(block)
                if not answers.done():
                    answers.set_result([Answered(outcome, at, seq, told, chain) for outcome in out[start:end]])
                    woken += 1
            start = end

    def _refuse(self, message: Message, refused: StreamRefused) -> None:
        """Say so to those who wait, but for those whose asks must not be lost: they are asked again.

        An earlier try may have been stored and its answer lost: what it held is taken back.
        """
        for block in message.wanted():
            if block.kept:
                self._put_away(block)
            else:
                block.answers.set_exception(refused)
                self._end(block)
                if block.stored or block.doubtful:
                    self._give_up(block)
