"""One audit from its first message to its report: the record is read once, by both paths at the same time.

With `apart` the first path (deciding again) runs in a process of its own; else in this one. This process proves the
chain, adds the outcomes up, and writes down the facts of the day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack, suppress
from pathlib import Path

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
from projector.audit.kept import Laying, keeping
from projector.audit.report import Compared, Report, Verdict, report_of
from projector.audit.sealed import SealsHeld
from projector.day_range import DayRange
from projector.reading import Source
from projector.replay import Answered, BrokenRecord, Replay, replay
from projector.seals.witness import Line

Progress = Callable[[int, int], None]


class Auditing:
    """All that one audit folds. `decides`: whether the first path runs here, and lays snapshots with `laying`."""

    def __init__(
        self,
        source: Source,
        day: DayRange,
        *,
        receipts: Iterable[Receipt] = (),
        witnessed: Iterable[Line] = (),
        decides: bool,
        laying: Laying | None = None,
    ) -> None:
        self.facts = Facts(day)
        self.hearsay = Hearsay(receipts, source.losses)
        self.seals = SealsHeld(witnessed, source.losses)
        self.deciding = Deciding(Wallet(source.wallet)) if decides else None
        self.wallet = source.wallet
        self._laying = laying
        self._told, self._chain = 0, b""

    def fold(self, answered: Answered) -> None:
        self.hearsay.fold(answered)
        self.seals.fold(answered)
        self.facts.fold(answered)
        if self.deciding is not None:
            if self._laying is not None and answered.told != self._told:  # the wallet is that of the told before
                self._laying.see(self.deciding.wallet, asks=self.deciding.asks, told=self._told, chain=self._chain)
                self._told, self._chain = answered.told, answered.chain
            self.deciding.fold(answered)

    def report(self, reading: Replay, verdict: Verdict | None = None) -> Report:
        """What was found up to here. Raises `BrokenRecord` where a receipt speaks of what is not there."""
        self.facts.finish()
        self.hearsay.finish(last=reading.last)
        self.seals.finish()
        if verdict is None:
            verdict = verdict_of(self.deciding) if self.deciding is not None else Verdict(redecided=False)
        old = self.hearsay.too_old
        unchecked = [f"{old:,} receipts sent with asks were too old to be compared."] if old else []
        if lacking := self.seals.unwitnessed:
            unchecked.append(f"Of {lacking:,} sealed days no witness was given that has seen their seals.")
        compared = Compared(receipts=self.hearsay.compared, seals=self.seals.compared)
        return report_of(self.facts, reading, verdict, wallet=self.wallet, compared=compared, unchecked=unchecked)


async def audit(
    source: Source,
    day: DayRange,
    *,
    receipts: Iterable[Receipt] = (),
    witnessed: Iterable[Line] = (),
    redecide: bool = True,
    apart: Task | None = None,
    keep: Path | None = None,
    also: Callable[[Answered], None] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Audit a day. `apart`: where a second process, which decides again, finds the same record.

    `keep`: the data folder to keep snapshots of the day in, if it is right and no loss was ever accepted. `also`: who
    else is given all that is read, such as an export.

    Raises `BrokenRecord` where the record contradicts itself, a receipt or a witness, `Untrusted`, `NoAnswer`,
    `StreamRefused`.
    """
    end = await source.last()
    if keep is not None and (not redecide or await source.any_loss()):
        keep = None
    async with AsyncExitStack() as stack:
        kept = stack.enter_context(keeping(keep, source.wallet))
        deciding = laying = None
        if redecide and apart is not None:
            folder = str(kept.folder) if kept is not None else ""
            task = msgspec.structs.replace(apart, upto=end, keep=folder, start=day.start, end=day.end)
            deciding = await stack.enter_async_context(deciding_apart(task))
        elif kept is not None:
            laying = Laying(kept.folder, start=day.start, end=day.end)
        auditing = Auditing(
            source,
            day,
            receipts=receipts,
            witnessed=witnessed,
            decides=redecide and apart is None,
            laying=laying,
        )
        try:
            folds = (auditing.fold,) if also is None else (auditing.fold, also)
            reading = await replay(source, *folds, upto=end, progress=progress)
        except (AssertionError, LookupError) as error:
            raise BrokenRecord(f"what is told cannot have happened: {error!r}", seq=auditing.facts.last_seq) from error
        report = auditing.report(reading, await deciding if deciding is not None else None)
        if kept is not None and report.right:
            kept.prove()
        return report


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
