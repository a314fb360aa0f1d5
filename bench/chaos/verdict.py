"""Compares what callers did and heard with what stands on the stream and what its readers show. Only reads.

Nothing here is forgiven: every difference is a line, and one line is a failure.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from bench.chaos.deeds import NARROW, UNIT, WIDE, Deed, Heard
from commonpurse.proof import Proof, prove
from engine.client import Purse
from engine.core.documents import Status
from engine.core.messages import AnyAsk, AnyOutcome, Hold, Settle, Settled
from engine.core.tell import read
from engine.follower import Follower
from engine.journal import Journal, Stored
from engine.recorded import Recorded

QUIET_WITHIN_S = 60.0
POLL_S = 0.2
GRANTED = frozenset({"held"})
DECIDED = GRANTED | {"exhausted"}


class Line(msgspec.Struct, frozen=True):
    """One outcome on the record. `charged`: what a settlement charged."""

    heard: Heard
    charged: int = 0


class Record:
    """Every outcome on the stream, by the id of its hold. `given_up`: of settles by which somebody stopped waiting."""

    def __init__(self) -> None:
        self.holds: defaultdict[str, list[Line]] = defaultdict(list)
        self.settles: defaultdict[str, list[Line]] = defaultdict(list)
        self.given_up: defaultdict[str, list[Line]] = defaultdict(list)
        self.upto = 0
        self._asks: dict[int, list[AnyAsk]] = {}

    @property
    def untold(self) -> int:
        return len(self._asks)

    def take(self, stored: Stored) -> None:
        if stored.kind != "told":
            message = read(stored.data)
            self.upto = stored.seq
            self._asks[stored.seq] = list(message.asks) if message is not None else []
            return
        for entry in Recorded.read(stored).told.told:
            for ask, outcome in zip(self._asks.pop(entry.seq), entry.out, strict=True):
                self._line(ask, outcome, Heard(str(outcome.__struct_config__.tag), entry.seq, stored.seq))

    def _line(self, ask: AnyAsk, outcome: AnyOutcome, heard: Heard) -> None:
        if isinstance(ask, Hold):
            self.holds[ask.id].append(Line(heard))
        elif isinstance(ask, Settle):
            charged = outcome.charged.get(UNIT, 0) if isinstance(outcome, Settled) else 0
            kept = self.given_up if ask.release and ask.by else self.settles
            kept[ask.hold].append(Line(heard, charged))


async def told_to_the_end(url: str, callers: Path) -> tuple[Record, Proof, Status]:
    """Once every ask is told and the projector has read it: the record, what it proves, and what the projector shows.

    What callers left in their spools, in the folder `callers`, is sent first, as the next of them would.

    Raises `TimeoutError`, and `Untrusted` where the record contradicts itself.
    """
    async with asyncio.timeout(QUIET_WITHIN_S), Purse.connect(url, data=callers) as purse:
        while True:
            record, status = await record_of(purse.journal), await purse.status()
            if not purse.spool_depth and not record.untold and status is not None and status.seq == record.upto:
                return record, await prove(url), status
            await asyncio.sleep(POLL_S)


async def record_of(journal: Journal) -> Record:
    last, record, whole = await journal.last_seq(), Record(), asyncio.Event()

    async def take(stored: Stored) -> None:
        record.take(stored)
        if stored.seq == last:
            whole.set()

    following = asyncio.create_task(Follower(journal, after=0, on_message=take).run())
    await asyncio.wait([following, asyncio.create_task(whole.wait())], return_when=asyncio.FIRST_COMPLETED)
    if following.done():
        following.result()
    following.cancel()
    await asyncio.wait([following])
    return record


def differences(deeds: Sequence[Deed], record: Record, proof: Proof, status: Status) -> Iterator[str]:
    """Whatever is not as it must be, a line each."""
    for deed in deeds:
        yield from _call(deed, record.holds[deed.hold], record.settles[deed.hold], record.given_up[deed.hold])
    for lane in (WIDE, NARROW):
        yield from _total(lane, deeds, proof, status)
    if any(meter.above_at is not None for meter in proof.of(NARROW)):
        yield "the narrow budget was above its limit"
    strangers = record.holds.keys() - {deed.hold for deed in deeds}
    if strangers:
        yield f"holds nobody asked for: {sorted(strangers)[:5]}"


def _call(deed: Deed, holds: Sequence[Line], settles: Sequence[Line], given_up: Sequence[Line]) -> Iterator[str]:
    if deed.held is not None and not _stands(deed.held, holds):
        yield f"{deed.hold}: heard {deed.held}, on the record is {_told(holds)}"
    if deed.settled is not None and not _stands(deed.settled, settles):
        yield f"{deed.hold}: its settle heard {deed.settled}, on the record is {_told(settles)}"
    decided = [line for line in holds if line.heard.outcome in (GRANTED if deed.asked_anew else DECIDED)]
    unbound = sum(line.heard.outcome == "settled" for line in given_up) if deed.asked_anew else 0
    if len(decided) > 1 + unbound:
        yield f"{deed.hold}: decided {len(decided)} times: {_told(holds)}"
    charges = [line.charged for line in settles if line.heard.outcome == "settled"]
    if deed.cost is not None and charges != [deed.cost]:
        yield f"{deed.hold}: {deed.cost} was handed over, {charges} was charged"
    if deed.cost is None and any(charges):
        yield f"{deed.hold}: nothing was handed over, {charges} was charged"
    if any(line.charged for line in given_up):
        yield f"{deed.hold}: giving up charged {[line.charged for line in given_up]}"
    others = {line.heard.outcome for line in settles} - {"settled", "again"}
    if deed.cost is not None and others:
        yield f"{deed.hold}: its settle was told {others}"


def _stands(heard: Heard, lines: Sequence[Line]) -> bool:
    """Whether that answer is on the record. The API shows the first answer of what was asked again."""
    if heard.seq:
        return heard in _told(lines)
    there = {(line.heard.outcome, line.heard.told) for line in lines}
    named = any(outcome == heard.outcome for outcome, _ in there)
    return named and not there.isdisjoint({(heard.outcome, heard.told), ("again", heard.told)})


def _told(lines: Iterable[Line]) -> list[Heard]:
    return [line.heard for line in lines]


def _total(lane: str, deeds: Iterable[Deed], proof: Proof, status: Status) -> Iterator[str]:
    own = (sum(deed.cost or 0 for deed in deeds if deed.lane == lane), 0)
    proved = [(meter.settled, meter.held) for meter in proof.of(lane)]
    shown = [(budget.settled, budget.held) for budget in status.budgets if budget.name == lane]
    if not [own] == proved == shown:
        yield f"{lane}: settled and held are {own} to the callers, {proved} on the record, {shown} to the projector"
