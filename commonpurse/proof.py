"""Reads a wallet's stream from its first message to its last and proves what the record alone can show. Only reads.

`prove` checks that

- no sequence is missing, and the tolds cover the ask messages in order, each exactly once;
- the chain of every told is the one that follows from the raw bytes before it, from the very first message on;
- every entry belongs to its message: its sequence, its moment, one outcome an ask;
- the entries fold into a wallet whose invariants hold, and what each meter used after every single entry.

It does not decide again, so it cannot say that another verdict would have been right, nor that callers reported what
their provider billed. Whoever can write the whole stream anew can make another that passes; a receipt kept elsewhere
(sequence and chain) shows that. The fold is the engine's; nothing here comes from the projector.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from engine.clocks import Clocks
from engine.core import chain
from engine.core.messages import AnyAsk, AnyOutcome, Entry, Exhausted, Held
from engine.core.meter import Meter, MeterKey
from engine.core.plan import Budget
from engine.core.tell import fold, read
from engine.core.wallet import Wallet
from engine.errors import NoAnswer, Untrusted
from engine.follower import Follower
from engine.journal import Journal, Stored
from engine.recorded import Recorded

SILENCE_S_MAX = 30.0  # nothing comes for so long: nobody will send the rest


class Metered(msgspec.Struct, gc=False):
    """One budget in one period, in integers of the unit's smallest part.

    `limit` is the newest of the plan, the largest where it has several. `highest` is the most that was ever used, first
    after ask message `highest_at`; `above_at` the first after which more was used than the limit then was. That is no
    fault of the record: overruns, strays, observations, adjustments and a lowered limit all do it.
    """

    budget: str
    each: str | None
    period: str
    unit: str
    limit: int = 0
    settled: int = 0
    held: int = 0
    extra: int = 0
    highest: int = 0
    highest_at: int = 0
    above_at: int | None = None


class Proof(msgspec.Struct, frozen=True):
    """What was read and found whole. `untold` asks lay at the end without their told; the figures are from before them.

    `outcomes` counts by name, refusals for want of money by their why (`spent`, `busy`, `never`, `tier`).
    """

    wallet: str
    messages: int
    entries: int
    asks: int
    untold: int
    outcomes: dict[str, int]
    meters: list[Metered]
    chain: str

    @property
    def never_above(self) -> bool:
        """Whether no meter ever used more than its limit then was."""
        return all(meter.above_at is None for meter in self.meters)

    def of(self, budget: str) -> list[Metered]:
        """The meters of one budget, in the order in which they were first used."""
        return [meter for meter in self.meters if meter.budget == budget]


async def prove(url: str, wallet: str = "main") -> Proof:
    """Read all that is on the stream now. `url` is the server's, with the credentials in it.

    Raises `Untrusted` where the record contradicts itself, `NoAnswer` or `StreamRefused` if it cannot be read.
    """
    async with Journal.connect(url, wallet=wallet, name="purse-proof") as journal:
        await journal.check_stream()
        record = Record(wallet)
        await _read(journal, record, upto=await journal.last_seq())
        return record.proof()


class _Whole(Exception):
    """The last message has been read."""


async def _read(journal: Journal, record: Record, *, upto: int) -> None:
    if not upto:
        return
    clock = asyncio.get_running_loop().time

    async def take(stored: Stored) -> None:
        record.take(stored)
        if stored.seq == upto:
            raise _Whole
        deadline.reschedule(clock() + SILENCE_S_MAX)

    try:
        async with asyncio.timeout(SILENCE_S_MAX) as deadline:
            with suppress(_Whole):
                await Follower(journal, after=0, on_message=take).run()
    except TimeoutError as error:
        raise NoAnswer(f"the stream was not heard to its end, sequence {upto:,}") from error


class Record:
    """A stream as far as it was read: `take` its messages in order, then ask for the `proof`.

    Every meter is looked at after every entry, so this is for wallets with few of them at a time.
    """

    def __init__(self, wallet: str) -> None:
        self.wallet = Wallet(wallet)
        self._chain = chain.GENESIS
        self._untold: deque[Stored] = deque()
        self._clocks = Clocks()
        self._meters: dict[MeterKey, Metered] = {}
        self._outcomes: Counter[str] = Counter()
        self._messages = self._entries = self._asks = 0

    def take(self, stored: Stored) -> None:
        """The next message. Raises `Untrusted`."""
        self._messages += 1
        if stored.kind == "told":
            self._told(Recorded.read(stored))
        else:
            if stored.kind == "admin" and (message := read(stored.data)) is not None:
                self._clocks.hear(stored.seq, message.asks, upto=self.wallet.upto)
            self._untold.append(stored)

    def proof(self) -> Proof:
        """All of it so far. Raises `Untrusted` if the state it makes cannot be."""
        try:
            self.wallet.check()
        except AssertionError as error:
            raise Untrusted(f"the record makes a wallet that cannot be: {error}") from error
        return Proof(
            wallet=self.wallet.name,
            messages=self._messages,
            entries=self._entries,
            asks=self._asks,
            untold=len(self._untold),
            outcomes=dict(self._outcomes),
            meters=list(self._meters.values()),
            chain=self._chain.hex(),
        )

    def _told(self, recorded: Recorded) -> None:
        told = recorded.told
        if not 1 <= told.n <= len(self._untold) or len(told.told) != told.n:
            raise Untrusted(f"the told at sequence {recorded.seq:,} does not cover the asks before it")
        covered = [self._untold.popleft() for _ in range(told.n)]
        recorded.verify(self._chain, ((one.seq, one.ts, one.data) for one in covered))
        self._chain = recorded.chain
        for stored, entry in zip(covered, told.told, strict=True):
            self._entry(stored, entry)

    def _entry(self, stored: Stored, entry: Entry) -> None:
        message = read(stored.data)
        asks = message.asks if message is not None else None
        skipped = self._clocks.skips(stored.seq, stored.ts)
        at = self.wallet.at if skipped else self.wallet.moment(stored.ts)
        if (entry.seq, entry.at) != (stored.seq, at):
            raise Untrusted(f"the entry for message {stored.seq:,} names another message or moment")
        if len(entry.out) != (1 if asks is None else len(asks)):
            raise Untrusted(f"the entry for message {stored.seq:,} has not one outcome an ask")
        self._fold(stored, asks, entry)
        self._entries += 1
        self._asks += len(asks or ())
        self._count(entry.out)
        for meter in self.wallet.metering.values():
            self._look(meter)

    def _fold(self, stored: Stored, asks: Sequence[AnyAsk] | None, entry: Entry) -> None:
        try:
            fold(self.wallet, seq=stored.seq, ts=stored.ts, asks=asks, entry=entry)
        except (AssertionError, LookupError) as error:  # its chain is right, yet it speaks of what never was
            raise Untrusted(f"what the entry for message {stored.seq:,} tells cannot have happened") from error
        for outcome in entry.out:
            if isinstance(outcome, Held):
                self._look_within(outcome)

    def _count(self, out: Sequence[AnyOutcome]) -> None:
        self._outcomes.update(
            outcome.why if isinstance(outcome, Exhausted) else str(outcome.__struct_config__.tag) for outcome in out
        )

    # --- meters -------------------------------------------------------------------------------------------------------

    def _look(self, meter: Meter) -> None:
        seen = self._of(meter)
        seen.settled, seen.held, seen.extra = meter.settled, meter.held, meter.extra
        rule = self.wallet.named.get(meter.budget)
        if rule is not None and rule.generation == meter.generation:
            seen.limit = _largest(rule.budget)
        self._rise(seen, meter.used, limit=seen.limit)

    def _look_within(self, held: Held) -> None:
        """A hold and what ends it may share a message: then only the hold itself says how much was used between."""
        for budget, line in held.budgets.items():
            meter = self.wallet.metering.get((budget, self.wallet.generations[budget], line.each, line.start))
            if meter is not None and held.amounts[meter.unit]:
                self._rise(self._of(meter), line.limit - line.remaining, limit=line.limit)

    def _of(self, meter: Meter) -> Metered:
        seen = self._meters.get(meter.key)
        if seen is None:
            seen = self._meters[meter.key] = Metered(meter.budget, meter.each, meter.period, meter.unit)
        return seen

    def _rise(self, seen: Metered, used: int, *, limit: int) -> None:
        if used > seen.highest:
            seen.highest, seen.highest_at = used, self.wallet.upto
        if used > limit and seen.above_at is None:
            seen.above_at = self.wallet.upto


def _largest(budget: Budget) -> int:
    return max(budget.limit, *budget.limit_for.values()) if budget.limit_for else budget.limit
