"""One audit from its first message to its report: the record is read once, by both paths at the same time.

With `apart` the first path (deciding again) runs in a process of its own; else in this one. This process proves the
chain, adds the outcomes up, and writes down the facts of the day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack, suppress

import msgspec

from engine.core.messages import ApplyPlan, Planned
from engine.core.tell import read
from engine.core.wallet import Wallet
from engine.errors import Untrusted
from engine.receipts import Receipt
from engine.recorded import Recorded
from projector.audit.apart import Task, deciding_apart, verdict_of
from projector.audit.deciding import Deciding
from projector.audit.facts import Facts
from projector.audit.hearsay import Hearsay
from projector.audit.report import Report, Verdict, report_of
from projector.day_range import DayRange
from projector.reading import Source
from projector.replay import Answered, BrokenRecord, Replay, replay

Progress = Callable[[int, int], None]


class Auditing:
    """All that one audit folds. `decides`: whether the first path runs here."""

    def __init__(self, source: Source, day: DayRange, *, receipts: Iterable[Receipt] = (), decides: bool) -> None:
        self.facts = Facts(day)
        self.hearsay = Hearsay(receipts, source.losses)
        self.deciding = Deciding(Wallet(source.wallet)) if decides else None
        self.wallet = source.wallet

    def fold(self, answered: Answered) -> None:
        self.hearsay.fold(answered)
        self.facts.fold(answered)
        if self.deciding is not None:
            self.deciding.fold(answered)

    def report(self, reading: Replay, verdict: Verdict | None = None) -> Report:
        """What was found up to here. Raises `BrokenRecord` where a receipt speaks of what is not there."""
        self.facts.finish()
        self.hearsay.finish(last=reading.last)
        if verdict is None:
            verdict = verdict_of(self.deciding) if self.deciding is not None else Verdict(redecided=False)
        old = self.hearsay.too_old
        unchecked = [f"{old:,} receipts sent with asks were too old to be compared."] if old else []
        return report_of(
            self.facts, reading, verdict, wallet=self.wallet, compared=self.hearsay.compared, unchecked=unchecked
        )


async def audit(
    source: Source,
    day: DayRange,
    *,
    receipts: Iterable[Receipt] = (),
    redecide: bool = True,
    apart: Task | None = None,
    also: Callable[[Answered], None] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Audit a day. `apart`: where a second process, which decides again, finds the same record.

    `also`: who else is given all that is read, such as an export.

    Raises `BrokenRecord` where the record contradicts itself or a receipt, `Untrusted`, `NoAnswer`, `StreamRefused`.
    """
    auditing = Auditing(source, day, receipts=receipts, decides=redecide and apart is None)
    end = await source.last()
    async with AsyncExitStack() as stack:
        deciding = None
        if redecide and apart is not None:
            deciding = await stack.enter_async_context(deciding_apart(msgspec.structs.replace(apart, upto=end)))
        try:
            folds = (auditing.fold,) if also is None else (auditing.fold, also)
            reading = await replay(source, *folds, upto=end, progress=progress)
        except (AssertionError, LookupError) as error:
            raise BrokenRecord(f"what is told cannot have happened: {error!r}", seq=auditing.facts.last_seq) from error
        return auditing.report(reading, await deciding if deciding is not None else None)


async def wallet_zone(source: Source) -> str:
    """The zone of the wallet's day, by the newest plan that was told; `UTC` where there is none.

    It only says where days begin. Whether what it reads can be trusted is for the audit to say.
    """
    plans: list[tuple[int, ApplyPlan]] = []
    after = 0
    while (stored := await source.next_of("admin", after)) is not None:
        after = stored.seq
        message = read(stored.data)
        plans += [(after, ask) for ask in (message.asks if message is not None else ()) if isinstance(ask, ApplyPlan)]
    for seq, ask in reversed(plans):
        if await _was_planned(source, seq, ask.id):
            return ask.plan.zone
    return plans[-1][1].plan.zone if plans else "UTC"


async def _was_planned(source: Source, seq: int, id: str) -> bool:
    after = seq
    while (told := await source.next_of("told", after)) is not None:
        after = told.seq
        with suppress(Untrusted):
            recorded = Recorded.read(told)
            if recorded.told.upto >= seq:
                entry = next((entry for entry in recorded.told.told if entry.seq == seq), None)
                return entry is not None and any(isinstance(out, Planned) and out.id == id for out in entry.out)
    return False
