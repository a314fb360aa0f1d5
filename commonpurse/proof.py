"""Reads a wallet's stream from its first message to its last and proves what the record alone can show. Only reads.

`prove` checks that

- no sequence is missing, and the tolds cover the ask messages in order, each exactly once;
- the chain of every told is the one that follows from the raw bytes before it, from the very first message on;
- every entry belongs to its message: its sequence, its moment, one outcome an ask;
- the entries fold into a wallet whose invariants hold, and what each meter used after every single entry.

It does not decide again, so it cannot say that another verdict would have been right, nor that callers reported what
their provider billed. Whoever can write the whole stream anew can make another that passes; a receipt kept elsewhere
(sequence and chain) shows that. The fold is the engine's own; the reading is `projector.replay`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from engine.core.messages import AnyOutcome, Exhausted, Held
from engine.core.meter import Meter, MeterKey
from engine.core.plan import Budget
from engine.core.tell import fold
from engine.core.wallet import Wallet
from engine.errors import Untrusted
from engine.journal import Journal, Stored
from engine.losses import KnownLosses
from projector.reading import StreamSource
from projector.replay import Answered, Replay


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
        source = StreamSource(journal)
        record = Record(wallet, losses=source.losses)
        if last := await source.last():
            await source.read(record.take, after=0, upto=last)
        return record.proof()


class Record:
    """A stream as far as it was read: `take` its messages in order, then ask for the `proof`.

    Every meter is looked at after every entry, so this is for wallets with few of them at a time.
    """

    def __init__(self, wallet: str, *, losses: KnownLosses | None = None) -> None:
        self.wallet = Wallet(wallet)
        self._replay = Replay(losses=losses)
        self._meters: dict[MeterKey, Metered] = {}
        self._outcomes: Counter[str] = Counter()

    def take(self, stored: Stored) -> None:
        """The next message. Raises `Untrusted`."""
        for answered in self._replay.take(stored):
            self._fold(answered)

    def proof(self) -> Proof:
        """All of it so far. Raises `Untrusted` if the state it makes cannot be."""
        try:
            self.wallet.check()
        except AssertionError as error:
            raise Untrusted(f"the record makes a wallet that cannot be: {error}") from error
        return Proof(
            wallet=self.wallet.name,
            messages=self._replay.messages,
            entries=self._replay.entries,
            asks=self._replay.asks,
            untold=self._replay.untold,
            outcomes=dict(self._outcomes),
            meters=list(self._meters.values()),
            chain=self._replay.chain.hex(),
        )

    def _fold(self, answered: Answered) -> None:
        stored, entry = answered.stored, answered.entry
        try:
            fold(self.wallet, seq=stored.seq, ts=stored.ts, asks=answered.asks, entry=entry)
        except (AssertionError, LookupError) as error:  # its chain is right, yet it speaks of what never was
            raise Untrusted(f"what the entry for message {stored.seq:,} tells cannot have happened") from error
        for outcome in entry.out:
            if isinstance(outcome, Held):
                self._look_within(outcome)
        self._count(entry.out)
        for meter in self.wallet.metering.values():
            self._look(meter)

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
