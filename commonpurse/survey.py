"""A wallet's stream as it stands, held against all that was seen of it: what is lost, and what is still known.

It reads the stream as an engine would, but goes on where an engine stops, so that an operator hears everything at once.
It appends nothing; `loss_of` only writes down what an operator may then append.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import msgspec

from commonpurse import sources
from commonpurse.sources import Kept, Source
from engine import later
from engine.clocks import Clocks
from engine.core import chain, limits, periods
from engine.core.messages import Entry, KnownUse, Loss
from engine.core.plan import Budget
from engine.core.tell import read, tell
from engine.core.wallet import Wallet
from engine.errors import LaterRelease, NoAnswer, Untrusted
from engine.follower import Follower
from engine.foreign import is_foreign
from engine.journal import Journal, Stored
from engine.losses import Accepted, Contradiction, Losses
from engine.receipts import Receipt
from engine.recorded import Recorded
from engine.snapshots import bears_another_chain, ends_before
from engine.witness import ROLES, Seen, Witness
from projector.seals.witness import Line

SILENCE_S_MAX = 30.0
FAR = 2**62


class Untold(msgspec.Struct, frozen=True, gc=False):
    """An ask message that waits to be told: its stamp, and the moment it is decided at."""

    seq: int
    ts: int
    at: int


class Survey(msgspec.Struct):
    """What was found. `wallet` is what an engine would make of what is left; `broken`: why no loss can help,
    `later` because a later release wrote it.

    `told_at` is the moment of the newest entry that was told; `now` the server's own clock; `accepted`: there is a loss
    on the stream that an operator accepted; `foreign`: how many of the server's own answers lie among the tolds.
    """

    wallet: Wallet
    last: int = 0
    last_told: int = 0
    untold: list[Untold] = []
    told_at: int = 0
    now: int = 0
    gaps: list[Contradiction] = []
    denied: list[Contradiction] = []
    agreed: list[int] = []
    claimed: int = 0
    broken: str = ""
    later: bool = False
    sources: list[Source] = []
    seals: list[Line] = []
    accepted: bool = False
    foreign: int = 0

    @property
    def contradictions(self) -> list[Contradiction]:
        """What is lost, each range once, the largest word for it first."""
        said: list[Contradiction] = []
        for found in sorted([*self.gaps, *self.denied], key=lambda one: one.first - one.last):
            if not any(one.first <= found.first and found.last <= one.last for one in said):
                said.append(found)
        return said

    @property
    def trusted(self) -> bool:
        return not self.contradictions and not self.broken


async def survey(journal: Journal, data: Path | None) -> Survey:
    """Read all that is there. Raises `NoAnswer`, `StreamRefused`, and `Misconfigured` for settings that drifted."""
    state = await journal.check_stream()
    found = Survey(Wallet(journal.names.wallet), last=state.last_seq, now=await journal.now())
    newest_told = await journal.last_of("told")
    found.last_told = newest_told.seq if newest_told is not None else 0
    losses = _Recording(journal, found)
    clocks = Clocks()
    await clocks.look(journal, after=0)
    reading = _Reading(found, losses, clocks)
    await reading.read(journal)
    if newest_told is not None and newest_told.kind == "void":  # not a told: what was told last lies before it
        found.last_told = reading.last_told
    found.untold = [Untold(one.stored.seq, one.stored.ts, one.entry.at) for one in reading.untold]
    found.accepted = await losses.any()
    await _hear_witnesses(journal, data, losses, found)
    await _hear_receipts(journal, reading, losses, found)
    kept = sources.kept(data, journal.names.wallet)  # nothing else waits meanwhile
    await _hear_snapshots(journal, kept, losses, found)
    found.sources = [await sources.documents(journal, data), *(one.source for one in kept)]
    return found


class _Recording(Losses):
    """Accepts every gap so that reading goes on, and writes down those that no loss on the stream covers."""

    def __init__(self, journal: Journal, found: Survey) -> None:
        super().__init__(journal)
        self._found = found

    async def accept(self, found: Contradiction, *, but: Collection[str] = ()) -> Accepted:
        try:
            return await super().accept(found, but=but)
        except Untrusted:
            self._found.gaps.append(found)
            return Accepted(FAR, Loss("", found.first, max(found.last, self._found.last_told), ""))

    async def excuses(self, found: Contradiction, *, but: Collection[str] = ()) -> bool:
        try:
            await super().accept(found, but=but)
        except Untrusted:
            return False
        return True


class _Waiting(msgspec.Struct, frozen=True, gc=False):
    stored: Stored
    entry: Entry


class _End(Exception):
    """All has been read that is there."""


class _Reading:
    """What an engine would make of the stream."""

    def __init__(self, found: Survey, losses: Losses, clocks: Clocks) -> None:
        self.untold: deque[_Waiting] = deque()
        self._found = found
        self._losses = losses
        self._clocks = clocks
        self._chain = chain.GENESIS
        self.last_told = 0

    async def read(self, journal: Journal) -> None:
        last = self._found.last
        while last and await journal.read(last) is None:  # nothing would come after the last that can be read
            last -= 1
        if last < self._found.last:
            first, end = last + 1, self._found.last
            why = f"sequences {first:,} to {end:,} are missing from the stream"
            await self._losses.accept(Contradiction(first, end, why))
        if not last:
            return
        clock = asyncio.get_running_loop().time

        async def take(stored: Stored) -> None:
            try:
                self._take(stored)
            except Untrusted as error:
                self._found.broken, self._found.later = str(error), isinstance(error, LaterRelease)
                raise _End from error
            if stored.seq >= last:
                raise _End
            deadline.reschedule(clock() + SILENCE_S_MAX)

        try:
            async with asyncio.timeout(SILENCE_S_MAX) as deadline:
                with suppress(_End):
                    await Follower(journal, after=0, on_message=take, losses=self._losses).run()
        except TimeoutError as error:
            raise NoAnswer(f"the stream was not heard to its end, sequence {last:,}") from error

    def _take(self, stored: Stored) -> None:
        if stored.kind == "told":
            self._told(Recorded.read(stored))
            self.last_told = stored.seq
        elif stored.kind == "void":
            self._found.foreign += is_foreign(stored.data)
        else:
            message = read(stored.data)
            asks = message.asks if message is not None else None
            if stored.kind == "admin":
                self._losses.hear(stored.seq, asks or [])
            skipped = self._clocks.skips(stored.seq, stored.ts)
            entry = tell(self._found.wallet, seq=stored.seq, ts=stored.ts, asks=asks, skipped=skipped)
            self.untold.append(_Waiting(stored, entry))

    def _told(self, recorded: Recorded) -> None:
        told = recorded.told
        if not 1 <= told.n <= len(self.untold) or len(told.told) != told.n:
            raise Untrusted(f"the told at sequence {recorded.seq:,} does not cover the asks before it")
        covered = [self.untold.popleft() for _ in range(told.n)]
        recorded.verify(self._chain, ((one.stored.seq, one.stored.ts, one.stored.data) for one in covered))
        self._chain = recorded.chain
        self._found.told_at = told.told[-1].at
        for one, entry in zip(covered, told.told, strict=True):
            if msgspec.json.encode(entry) != msgspec.json.encode(one.entry):
                later.check(one.stored.seq, one.stored.data, entry.out)
                raise Untrusted(f"message {one.stored.seq:,} was told otherwise than this release decides")
            for seal in entry.sealed:
                self._found.seals.append(Line(recorded.seq, recorded.chain.hex(), entry.seq, entry.at, seal))


async def _hear_witnesses(journal: Journal, data: Path | None, losses: _Recording, found: Survey) -> None:
    for seen in witnesses(data, journal.names.wallet):
        await _weigh(await seen.contradiction(journal), losses, found, told=seen.told, but=seen.losses)


async def _hear_receipts(journal: Journal, reading: _Reading, losses: _Recording, found: Survey) -> None:
    """Those of asks that were not told yet: the others were compared before they were."""
    for written in {one.stored.seen for one in reading.untold if one.stored.seen}:
        receipt = Receipt.read(written)
        if receipt is None:
            continue
        stands = receipt.told <= found.last and await receipt.stands_on(journal)
        why = f"a client was told something at sequence {receipt.told:,} that does not stand there"
        wrong = None if stands else Contradiction(receipt.told, receipt.told, why)
        if any(gap.first <= receipt.told <= gap.last for gap in found.gaps):
            continue  # its told is gone with others, and is named there
        await _weigh(wrong, losses, found, told=receipt.told, but=())


async def _hear_snapshots(journal: Journal, kept: list[Kept], losses: _Recording, found: Survey) -> None:
    """An engine does not start where a snapshot has seen what is not there, unless a loss was ever accepted."""
    if await losses.any():
        return
    for one in kept:
        told, wrong = one.source.told, None
        if told > found.last:
            wrong = Contradiction(found.last + 1, told, ends_before(told, last=found.last))
        elif not await Receipt(told, one.chain.hex()).stands_on(journal):
            wrong = Contradiction(told, told, bears_another_chain(told))
        await _weigh(wrong, losses, found, told=told, but=())


async def _weigh(
    wrong: Contradiction | None, losses: _Recording, found: Survey, *, told: int, but: Collection[str]
) -> None:
    if wrong is None:
        found.agreed.append(told)
    elif not await losses.excuses(wrong, but=but):
        found.denied.append(wrong)
        found.claimed = max(found.claimed, told)


def witnesses(data: Path | None, wallet: str) -> list[Seen]:
    """What engine and projector have written beside the stream, as far as it can be read."""
    found = (Witness(data, wallet, role).read(role) for role in ROLES)
    return [seen for seen in found if seen is not None]


# --- what is still known ----------------------------------------------------------------------------------------------


def loss_of(found: Survey, *, by_whom: str, reason: str) -> Loss:
    """The loss that covers all that is lost, with what is still known of every budget's current period.

    A budget is frozen where no source has seen as far as the stream once went, or where its use is known to the
    end only as a sum over all values of its `each` label, or in more meters than a loss may name.
    """
    first, last = _range(found)
    plan = found.wallet.plan
    at = max(found.now, found.wallet.at)
    whole = [source for source in found.sources if source.told >= max(found.claimed, found.last_told)]
    used: list[KnownUse] = []
    freeze: list[str] = []
    budgets = plan.budgets.items() if plan is not None else ()
    for name, budget in sorted(budgets, key=lambda one: one[1].each is not None):  # the shared ones are few
        period = periods.period_at(at, per=budget.per, zone=budget.zone).name
        known = _known(found, name, budget, period)
        if len(used) + len(known) > limits.LOSS_METERS_MAX:
            freeze.append(name)
            continue
        used += known
        if not whole or (budget.each is not None and _each_is_unknown(whole, name, period)):
            freeze.append(name)
    return Loss(f"loss:{secrets.token_hex(8)}", first, last, reason, by_whom, used, freeze)


def _range(found: Survey) -> tuple[int, int]:
    first = min(each.first for each in found.contradictions)
    last = max(each.last for each in found.contradictions)
    if found.gaps:
        last = max(last, found.last_told)  # the tolds behind a gap speak of what nobody can read
    if found.denied:  # all receipts for tolds after the newest that somebody bears out
        borne_out = max((told for told in found.agreed if told < first), default=0)
        first = min(first, found.last_told + 1 if first > found.last_told else borne_out + 1)
    return first, last


def _known(found: Survey, name: str, budget: Budget, period: str) -> list[KnownUse]:
    """The highest that any source knows of each meter; of an `each` budget only where it is more than what is left."""
    meters: dict[str | None, int] = {}
    for source in found.sources:
        if source.generations is not None and _is_older(source.generations, found, name):
            continue
        for (of, each, when), used in source.meters.items():
            if (of, when) == (name, period):
                meters[each] = max(meters.get(each, 0), used)
        if budget.each is None and (name, period) in source.sums:
            meters[None] = max(meters.get(None, 0), source.sums[name, period])
    left = _left(found, name, period)
    return [
        KnownUse(name, period, used, each)
        for each, used in meters.items()
        if (each is None) == (budget.each is None) and (each is None or used > left.get(each, 0))
    ]


def _is_older(generations: dict[str, int], found: Survey, name: str) -> bool:
    """Whether the source knows only meters from before this budget began anew."""
    return generations.get(name, 0) < found.wallet.generations.get(name, 0)


def _left(found: Survey, name: str, period: str) -> dict[str | None, int]:
    return {
        each: settled + held + extra
        for (budget, each, when), (settled, held, extra, _) in found.wallet.meters().items()
        if (budget, when) == (name, period)
    }


def _each_is_unknown(whole: list[Source], name: str, period: str) -> bool:
    """Whether nobody knows each meter to the end. A sum says little: one's use may have grown as another's fell."""
    return not any(source.knows_meters for source in whole) and any(source.sums.get((name, period)) for source in whole)
