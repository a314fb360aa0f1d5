"""The engine: reads asks in order, decides, records what it told, and only then says it.

    read an ask message ─> decide + evolve at once (state may run ahead of the record)
                                │ waits in `_decided`
    one told in flight ─────────┴─> append with the fence ─> the follower brings it back ─> reply

While a told is in flight reading goes on, so the next told covers all that came meanwhile: that is the group commit.
Whichever told stands at the next place is the truth. If it says what this engine decided, fine, whoever wrote it;
otherwise the engine stops: two engines with different rules must not both speak. Nothing is ever said that is not on
the record.

It starts from the newest good snapshot, if it has any, and goes on from there as if it had read all from the beginning;
what was told long before is taken in as it was told (`replaying`). When a snapshot is due it decides nothing more until
what it has decided is on record: only then is its state one that can be kept.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import nats.errors
import structlog
from nats.aio.msg import Msg

from engine.clock_check import ClockCheck
from engine.clocks import Clocks
from engine.core import chain
from engine.core.messages import AnyOutcome, AskMessage, Told
from engine.core.tell import read, tell
from engine.core.wallet import Wallet
from engine.decided import Decided, Proposal, propose, replies, written
from engine.errors import NoAnswer, StreamRefused, Untrusted
from engine.follower import Follower
from engine.foreign import is_foreign
from engine.journal import INBOX, WRONG_LAST_SEQUENCE, Journal, Stored
from engine.keeper import Keeper
from engine.losses import Losses
from engine.recorded import Recorded
from engine.replaying import DECIDED_AGAIN, covers_others, replay, told_otherwise
from engine.senders_receipts import SendersReceipts
from engine.snapshots import Snapshot, Snapshots, usable
from engine.stream_clock import StreamClock
from engine.tallies import Tallies
from engine.visit_counter import VisitCounter
from engine.witness import Seen, Witness, check_own

TOLD_WAIT_S = 2.0  # until a told that was neither acknowledged nor seen is tried again
TOLD_RETRY_S = 0.05
TOLD_RETRY_S_MAX = 1.0
TICK_S = 1.0
JITTER_S = 0.05

log = structlog.get_logger()

_encoder = msgspec.json.Encoder()
_TICK = _encoder.encode(AskMessage(asks=[]))


class Engine:
    """One engine of one wallet. `patience_s` 0: speaks at once; else only when no told has appeared for that long.

    Without `snapshots` it starts from the beginning and keeps none; without `data` it has no witness. `now`: this
    machine's clock, ns; it only ever stops the engine. `decide_again`: how many of the newest sequences of the record.
    """

    def __init__(
        self,
        journal: Journal,
        *,
        instance: str,
        patience_s: float = 0.0,
        snapshots: Snapshots | None = None,
        data: Path | None = None,
        now: Callable[[], int] | None = None,
        decide_again: int = DECIDED_AGAIN,
    ) -> None:
        self.wallet = Wallet(journal.names.wallet)
        self.instance = instance
        self.ready = asyncio.Event()
        self.told_seq = 0
        self.chain = chain.GENESIS
        self._journal = journal
        self._patience_s = patience_s
        self._mine = patience_s == 0
        self._decided: deque[Decided] = deque()  # no bound: the told that shortens it comes behind what is read
        self._unread: deque[Stored] = deque()  # ask messages before their old told, or that wait for a snapshot
        self._proposal: Proposal | None = None
        self._keeper = Keeper(snapshots) if snapshots is not None else None
        self._others: list[Decided] = []  # what another's newest told covers: maybe its engine died before saying it
        self._work = asyncio.Event()
        self._moved = asyncio.Event()  # a told was seen, or what took its place
        self._replay_to = self._old_to = 0
        self._decide_again = decide_again
        self._quiet_since = time.monotonic()  # a told was seen, or something began to wait for one
        self._clock = StreamClock()
        self._clock_check = ClockCheck(journal, now if now is not None else lambda: time.time_ns())
        self._clocks = Clocks()
        self._tallies = Tallies()
        self.visits = VisitCounter(self._clock.now, lambda: self._mine)
        self._told_upto = 0
        self._losses = Losses(journal)
        self._witness = Witness(data, journal.names.wallet, "engine")
        self._follower = Follower(
            journal, after=0, on_message=self._on_message, losses=self._losses, check=self._check_past
        )
        self._voided = 0  # the newest among the tolds that does not count: the fence stands behind it all the same
        self._met_foreign = False
        self._receipts = SendersReceipts(journal, self._losses, self._decided)

    async def run(self) -> None:
        """Replay, then serve until cancelled. Raises `Untrusted` when going on could grant money twice."""
        await self._journal.wait_for_stream()
        await self._witness.check(self._journal, self._losses)
        await self._restore()
        self._told_upto = self.wallet.upto
        await self._clocks.look(self._journal, after=self.wallet.upto)
        self._replay_to = await self._journal.last_seq()
        self._old_to = self._replay_to - self._decide_again
        self._clock.hear(await self._journal.now())
        if not self._replay_to:
            self._replayed()
        self._follower.last = self.wallet.upto
        client, names = self._journal.client, self._journal.names
        asking = [
            await client.subscribe(names.subject("ready"), cb=self._on_ready_asked),
            await client.subscribe(names.subject("visit"), cb=self.visits.on_visit),
            await client.subscribe(names.subject("figures"), cb=self._on_figures_asked),
        ]
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._follower.run())
                tasks.create_task(self._speak())
                tasks.create_task(self._tick())
                tasks.create_task(self._keep_witness())
        except asyncio.CancelledError:  # told to stop; whatever else ends it leaves no snapshot behind
            if self._keeper is not None and not self._decided:
                self._keeper.keep_last(self._state())
            raise
        finally:
            if self.ready.is_set():
                self._witness.write(self._seen())
            if client.is_connected:
                for subscription in asking:
                    await subscription.unsubscribe()

    async def _restore(self) -> None:
        """Begin where the newest good snapshot was taken. Raises `Untrusted` if the stream contradicts it.

        Where an operator has accepted a loss, what the snapshot saw may not count any more: then reading from the
        beginning holds every gap against the losses.
        """
        if self._keeper is None or (snapshot := self._keeper.snapshots.newest()) is None:
            return
        if not await usable(snapshot, self._journal, self._losses):
            return
        self.wallet, self.told_seq, self.chain = snapshot.wallet, snapshot.told, snapshot.chain
        self._receipts.remember(self.told_seq, self.chain)
        self._keeper.restored(self.wallet)
        log.info("restored", upto=self.wallet.upto, told=self.told_seq)

    # --- reading ------------------------------------------------------------------------------------------------------

    async def _on_message(self, stored: Stored) -> None:
        if stored.seq > self._replay_to:
            self._clock.hear(stored.ts)
        if stored.kind == "told":
            if stored.seq <= self.told_seq:
                pass  # a snapshot knows it
            elif stored.seq <= self._old_to:
                self._on_old_told(stored)
            else:
                await self._on_told(stored)
        elif stored.kind == "void":
            self._on_void(stored)
        elif stored.kind == "admin" and self._hears_clock(stored):
            raise Untrusted(
                f"at sequence {stored.seq:,} an operator skips time for messages that were decided here by their own "
                "stamps, but not told yet: start again, and they are decided anew"
            )
        elif self._unread or stored.seq <= self._old_to or (self._decided and self._snapshot_due()):
            self._unread.append(stored)
        else:
            self._on_asks(stored)
        if not self.ready.is_set() and stored.seq >= self._replay_to:
            self._replayed()

    def _on_void(self, stored: Stored) -> None:
        """The place at which the next told was to stand is taken, by what is none: it stands behind it."""
        self._voided = stored.seq
        self._moved.set()
        if not self._met_foreign and is_foreign(stored.data):
            self._met_foreign = True  # one line for all of them: whoever sends them decides how many there are
            log.warning("foreign_message", seq=stored.seq, why="the server wrote an answer among what engines tell")

    def _on_asks(self, stored: Stored) -> None:
        message = read(stored.data)
        asks = message.asks if message is not None else None
        if asks and stored.kind == "admin":
            self._losses.hear(stored.seq, asks)
        heard: list[AnyOutcome] = []
        skipped = self._clocks.skips(stored.seq, stored.ts)
        entry = tell(self.wallet, seq=stored.seq, ts=stored.ts, asks=asks, heard=heard, skipped=skipped)
        encoded, answers = written(entry, heard)
        if not self._decided:
            self._quiet_since = time.monotonic()
        self._decided.append(
            Decided(
                seq=stored.seq,
                ts=stored.ts,
                raw=stored.data,
                entry=entry,
                encoded=encoded,
                sender=message.sender if message is not None and INBOX.fullmatch(message.sender) else "",
                answers=answers,
                seen=stored.seen,
                read_at=time.monotonic(),
            )
        )
        if self.ready.is_set():
            self._work.set()

    def _on_old_told(self, stored: Stored) -> None:
        """One of long before this engine's start: nobody waits to hear it."""
        recorded = replay(
            stored, self._unread, self.wallet, after=self.chain, skips=self._clocks.skips, hear=self._losses.hear
        )
        self.told_seq, self.chain, self._told_upto = stored.seq, recorded.chain, recorded.told.upto
        self._receipts.remember(stored.seq, recorded.chain)
        self._mine = recorded.told.engine == self.instance or self._patience_s == 0
        if self._keeper is not None:
            self._keeper.told()

    async def _on_told(self, stored: Stored) -> None:
        """The next told is on record: compare it with what was decided here, then say it."""
        proposal = self._proposal
        if proposal is not None and stored.data == proposal.message:  # word for word: nothing left to compare
            covered, linked, mine = [self._decided[index] for index in range(proposal.n)], proposal.chain, True
        else:
            covered, linked, mine = self._compared(stored)
        for _ in covered:
            self._decided.popleft()
        self._tally(covered)
        reply = mine or self._proposal is not None
        self.told_seq, self.chain, self._proposal = stored.seq, linked, None
        self._told_upto = covered[-1].seq
        self._receipts.remember(stored.seq, linked)
        self._mine = mine or self._patience_s == 0
        self._quiet_since = time.monotonic()
        self._moved.set()
        if self._keeper is not None:
            self._keeper.told()
        self._keep_snapshot()
        self._others = covered if self.ready.is_set() and not reply else []
        if reply:
            await self._reply(covered)

    def _compared(self, stored: Stored) -> tuple[list[Decided], bytes, bool]:
        recorded, entries = Recorded.read_head(stored)
        told = recorded.told
        covered = self._covered(told, stored)
        recorded.verify(self.chain, ((d.seq, d.ts, d.raw) for d in covered))
        if entries != b",".join([decided.encoded for decided in covered]):
            self._compare_each(covered, Recorded.read(stored))
        return covered, recorded.chain, told.engine == self.instance

    def _compare_each(self, covered: Sequence[Decided], recorded: Recorded) -> None:
        """Raises `Untrusted` unless the entries say what was decided here, in whatever bytes."""
        if len(recorded.told.told) != len(covered):
            raise covers_others(recorded.seq)
        for decided, entry in zip(covered, recorded.told.told, strict=True):
            if entry != decided.entry and _encoder.encode(entry) != decided.encoded:
                told_otherwise(decided.seq, decided.raw, entry, told=recorded.seq)

    def _covered(self, told: Told, stored: Stored) -> list[Decided]:
        while self._unread and self._unread[0].seq <= told.upto:  # another engine did not wait
            self._on_asks(self._unread.popleft())
        covered = [self._decided[index] for index in range(min(told.n, len(self._decided)))]
        if len(covered) != told.n or not covered or covered[-1].seq != told.upto:
            raise covers_others(stored.seq)
        return covered

    # --- snapshots ----------------------------------------------------------------------------------------------------

    def _snapshot_due(self) -> bool:
        return self._keeper is not None and self.ready.is_set() and self._keeper.due(self.wallet)

    def _keep_snapshot(self) -> None:
        """If all that was decided is on record: take the snapshot that is due, then decide what had to wait."""
        if self._decided:
            return
        if self._keeper is not None and self._snapshot_due():
            self._keeper.keep(self._state())
        while self._unread:
            self._on_asks(self._unread.popleft())

    def _state(self) -> Snapshot:
        return Snapshot(self.wallet, self.told_seq, self.chain)

    def _replayed(self) -> None:
        while self._unread:  # nobody has told them yet
            self._on_asks(self._unread.popleft())
        self.ready.set()
        log.info("ready", upto=self.wallet.upto, told=self.told_seq, untold=len(self._decided))
        if self._decided:
            self._work.set()

    # --- speaking -----------------------------------------------------------------------------------------------------

    async def _speak(self) -> None:
        await self.ready.wait()
        delay_s = TOLD_RETRY_S
        while True:
            await self._work.wait()
            if not self._decided:
                self._work.clear()
                continue
            if not self._mine and not await self._patience_over():
                continue
            await self._say_for_another()
            agreed = await self._receipts.agree()
            if not self._decided:  # another has told it meanwhile
                continue
            await self._clock_check.check(self._decided)
            if agreed:
                self._proposal = propose(self._decided, engine=self.instance, after=self.chain)
                self._moved.clear()
                if await self._append(self._proposal):
                    delay_s = TOLD_RETRY_S
                    continue
            await asyncio.sleep(delay_s)
            delay_s = min(2 * delay_s, TOLD_RETRY_S_MAX)

    async def _patience_over(self) -> bool:
        """Wait while others speak. True once nobody has for as long as this engine's patience."""
        patience_s = self._patience_s + random.uniform(0, JITTER_S)  # noqa: S311  # so that standbys do not all speak
        quiet_s = time.monotonic() - self._quiet_since
        if quiet_s >= patience_s:
            return True
        await asyncio.sleep(patience_s - quiet_s)
        return False

    async def _say_for_another(self) -> None:
        """Who falls silent may have recorded a told and not said it. Its callers would wait until they ask again."""
        others, self._others = self._others, []
        if others:
            await self._reply(others)

    async def _append(self, proposal: Proposal) -> bool:
        """Put one told on the stream and wait until the follower has seen whichever took the place.

        False: try again. Unless somebody has told meanwhile the place is free, or the next try will say that it is not.
        """
        fence = max(self.told_seq, self._voided)
        try:
            await self._journal.append("told", proposal.message, wait_s=TOLD_WAIT_S, after_told=fence)
        except NoAnswer:
            return self._moved.is_set()
        except StreamRefused as refused:
            if refused.code not in WRONG_LAST_SEQUENCE:
                log.warning("told_refused", code=refused.code, why=str(refused))
                return False
        try:
            async with asyncio.timeout(TOLD_WAIT_S):
                await self._moved.wait()
        except TimeoutError:
            return False
        return True

    async def _reply(self, covered: Sequence[Decided]) -> None:
        """Say what is on record."""
        for inbox, reply in replies(covered, told=self.told_seq, linked=self.chain):
            try:
                await self._journal.client.publish(inbox, reply)
            except nats.errors.Error as error:  # unheard, not untold: the client asks again
                log.warning("reply_lost", error=type(error).__name__)

    async def _on_ready_asked(self, message: Msg) -> None:
        if self.ready.is_set() and INBOX.fullmatch(message.reply):
            state = {"ready": True, "upto": self.wallet.upto, "told": self.told_seq, "engine": self.instance}
            await message.respond(_encoder.encode(state))

    def _tally(self, told: Sequence[Decided]) -> None:
        """How long they took; what was read in a replay took nobody's time."""
        if self.ready.is_set():
            now = time.monotonic()
            for decided in told:
                self._tallies.took(now - decided.read_at)

    async def _on_figures_asked(self, message: Msg) -> None:
        if self._mine and self.ready.is_set() and INBOX.fullmatch(message.reply):
            figures = self._tallies.figures(
                told_upto=self._told_upto, waiting=len(self._decided), visits_slowed=self.visits.slowed
            )
            await message.respond(_encoder.encode(figures))

    # --- trusting -----------------------------------------------------------------------------------------------------

    async def _check_past(self) -> None:
        await check_own(self._journal, told=self.told_seq, linked=self.chain)

    async def _keep_witness(self) -> None:
        await self.ready.wait()  # a replay is behind what was seen before
        await self._witness.keep(self._seen)

    def _seen(self) -> Seen:
        names = self._journal.names
        return Seen(names.wallet, self._follower.last, self.told_seq, self.chain.hex(), list(self._losses.ids))

    # --- time ---------------------------------------------------------------------------------------------------------

    def _hears_clock(self, stored: Stored) -> bool:
        """Whether a `clock` that nobody knew when reading began speaks of what was decided since."""
        message = read(stored.data)
        if message is None or not self._clocks.hear(stored.seq, message.asks, upto=self._told_upto):
            return False
        return any(self._clocks.skips(decided.seq, decided.ts) for decided in self._decided)

    async def _tick(self) -> None:
        """Time passes only through ask messages. When something is due and nothing comes, append an empty one."""
        await self.ready.wait()
        while True:
            await asyncio.sleep(TICK_S)
            self._keep_snapshot()
            due = self.wallet.next_due()
            waiting = due is not None and self._clock.now() >= max(due, self.wallet.at) and not self._decided
            if not waiting or not (self._mine or time.monotonic() - self._quiet_since > self._patience_s + TICK_S):
                continue
            try:
                await self._journal.append("ask", _TICK, wait_s=TOLD_WAIT_S)
            except (NoAnswer, StreamRefused) as error:
                log.warning("tick_failed", why=str(error))
