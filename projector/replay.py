"""One reading of a wallet's record, in order and proved: every ask message together with what was told of it.

    source ──Stored, in order──> Replay.take ──Answered, in order──> any number of folds

`Replay` holds to be true, of every message it has taken, that

- no sequence is missing unless a `loss` on the stream covers it, and the tolds of such a range count no more;
- what lies among the tolds and is none is the server's own (`engine.foreign`): counted, and passed over;
- the tolds cover the ask messages in order, each exactly once, and bear the chain that follows from all before them;
- every entry belongs to its message: its sequence, its moment (or, by a `clock`, the one before), one outcome an ask.

Whoever folds what it yields need not check any of that. It never decides, keeps no wallet, and what it remembers does
not grow with the record. Where the record contradicts itself: `BrokenRecord`, which is `Untrusted`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from engine.clocks import Clocks
from engine.core import chain
from engine.core.messages import AnyAsk, Entry
from engine.core.tell import read
from engine.errors import Untrusted
from engine.foreign import is_foreign
from engine.journal import Stored
from engine.losses import Contradiction, KnownLosses
from engine.recorded import Recorded
from engine.snapshots import Snapshot
from projector.reading import Source

PROGRESS_EVERY = 1_024  # messages between two words of progress


class BrokenRecord(Untrusted):
    """The record contradicts itself. `seq` is the first sequence that cannot be so.

    Where a chain does not follow, the told that bears it is named, and `covers` are the first and last of the ask
    messages it covers: any of them may be the one that was changed.
    """

    def __init__(self, why: str, *, seq: int, covers: tuple[int, int] | None = None) -> None:
        super().__init__(why)
        self.seq, self.covers = seq, covers


class Answered(msgspec.Struct, frozen=True, gc=False):
    """One ask message and what was told of it. `asks` is None where it could not be read.

    `told`, `chain` and `engine`: where its told lies, the chain that bears, and who wrote it.
    """

    stored: Stored
    asks: list[AnyAsk] | None
    entry: Entry
    skipped: bool
    told: int
    chain: bytes
    engine: str


class _Waiting(msgspec.Struct, frozen=True, gc=False):
    """An ask message that waits for its told."""

    stored: Stored
    asks: list[AnyAsk] | None


class Replay:
    """A record as far as it was taken: `upto` its newest told ask message, `told` and `chain` its newest told.

    `start`: a snapshot to go on from, whose own told agrees with the record; without it from the first message on.
    """

    def __init__(self, *, losses: KnownLosses | None = None, start: Snapshot | None = None) -> None:
        self.losses = losses if losses is not None else KnownLosses()
        self.last = self.upto = start.wallet.upto if start is not None else 0
        self.at = start.wallet.at if start is not None else 0
        self.told = start.told if start is not None else 0
        self.chain = start.chain if start is not None else chain.GENESIS
        self.messages = self.entries = self.asks = self.foreign = 0
        self.gaps: list[tuple[int, int]] = []  # sequences that are lost, each range by an accepted loss
        self._clocks = Clocks()
        self._waiting: deque[_Waiting] = deque()
        self._void_to = 0

    @property
    def untold(self) -> int:
        """How many ask messages wait for their told."""
        return len(self._waiting)

    def take(self, stored: Stored) -> Sequence[Answered]:
        """The next message; what it completes. Raises `BrokenRecord`."""
        if stored.seq != self.last + 1:
            self._pass_over(stored.seq)
        self.last = stored.seq
        self.messages += 1
        if stored.kind in ("told", "void") and is_foreign(stored.data):
            self.foreign += 1
            return ()
        if stored.kind == "told":
            if stored.seq <= max(self.told, self._void_to):  # a snapshot knows it, or a loss made it void
                return ()
            return self._told(stored)
        if stored.kind != "void":
            self._ask(stored)
        return ()

    def _pass_over(self, seq: int) -> None:
        if seq <= self.last:
            raise BrokenRecord(f"sequence {seq:,} comes after {self.last:,}", seq=seq)
        gap = Contradiction(
            self.last + 1, seq - 1, f"sequences {self.last + 1:,} to {seq - 1:,} are missing from the stream"
        )
        accepted = self.losses.covering(gap)
        if accepted is None:
            raise BrokenRecord(gap.why, seq=gap.first)
        self.gaps.append((gap.first, gap.last))
        self._void_to = max(self._void_to, min(accepted.loss.to_seq, accepted.seq - 1))

    def _ask(self, stored: Stored) -> None:
        message = read(stored.data)
        asks = message.asks if message is not None else None
        if asks and stored.kind == "admin":
            self.losses.hear(stored.seq, asks)
            self._clocks.hear(stored.seq, asks, upto=self.upto)
        self._waiting.append(_Waiting(stored, asks))

    def _told(self, stored: Stored) -> list[Answered]:
        try:
            recorded = Recorded.read(stored)
        except Untrusted as error:
            raise BrokenRecord(str(error), seq=stored.seq) from error
        told = recorded.told
        if len(told.told) != told.n:
            raise _covers_others(stored.seq)
        covered = self._covered(stored.seq, told.n)
        self._verify(recorded, covered)
        if told.upto != covered[-1].stored.seq:
            raise BrokenRecord(f"the told at sequence {stored.seq:,} names another end than it has", seq=stored.seq)
        answered = [self._answered(one, entry, recorded) for one, entry in zip(covered, told.told, strict=True)]
        self.told, self.chain = stored.seq, recorded.chain
        return answered

    def _covered(self, seq: int, n: int) -> list[_Waiting]:
        """The next `n` ask messages, which the told at `seq` covers."""
        if not 1 <= n <= len(self._waiting):
            raise _covers_others(seq)
        return [self._waiting.popleft() for _ in range(n)]

    def _verify(self, recorded: Recorded, covered: Sequence[_Waiting]) -> None:
        try:
            recorded.verify(self.chain, ((one.stored.seq, one.stored.ts, one.stored.data) for one in covered))
        except Untrusted as error:
            covers = (covered[0].stored.seq, covered[-1].stored.seq)
            raise BrokenRecord(str(error), seq=recorded.seq, covers=covers) from error

    def _answered(self, one: _Waiting, entry: Entry, recorded: Recorded) -> Answered:
        stored, asks = one.stored, one.asks
        skipped = self._clocks.skips(stored.seq, stored.ts)
        at = self.at if skipped else max(self.at, stored.ts)
        if (entry.seq, entry.at) != (stored.seq, at):
            raise BrokenRecord(f"the entry for message {stored.seq:,} names another message or moment", seq=stored.seq)
        if len(entry.out) != (1 if asks is None else len(asks)):
            raise BrokenRecord(f"the entry for message {stored.seq:,} has not one outcome an ask", seq=stored.seq)
        self.at, self.upto = at, stored.seq
        self.entries += 1
        self.asks += len(asks or ())
        return Answered(stored, asks, entry, skipped, recorded.seq, recorded.chain, recorded.told.engine)


def _covers_others(seq: int) -> BrokenRecord:
    return BrokenRecord(f"the told at sequence {seq:,} does not cover the asks before it", seq=seq)


async def replay(
    source: Source,
    *folds: Callable[[Answered], None],
    start: Snapshot | None = None,
    upto: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Replay:
    """Read the source to its end as it is now (or to `upto`), and give everything answered to every fold, in order.

    `progress` hears now and then how many sequences were read, and of how many. Raises `BrokenRecord`, `Untrusted`,
    `NoAnswer` or `StreamRefused`, and whatever a fold raises.
    """
    end = await source.last() if upto is None else upto
    reading = Replay(losses=source.losses, start=start)

    def take(stored: Stored) -> None:
        for answered in reading.take(stored):
            for fold in folds:
                fold(answered)
        if progress is not None and (stored.seq % PROGRESS_EVERY == 0 or stored.seq >= end):
            progress(stored.seq, end)

    if end > reading.last:
        await source.read(take, after=reading.last, upto=end)
    return reading
