"""Both worlds side by side: the record as it was told, and from the day's first message on the other one beside it.

The record's side is never judged: what was told has happened. Only asks of the day are compared; what is asked later is
still replayed, in both, since it says what the day's calls came to.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from engine.core import evolve
from engine.core.messages import AnyAsk, AnyOutcome, Held, Hold, Renew, Settle, Settled
from engine.core.restore import load
from engine.core.tell import fold
from engine.core.wallet import Wallet
from projector.audit.facts import Facts
from projector.day_range import DayRange
from projector.replay import Answered, BrokenRecord
from projector.whatif.change import Change
from projector.whatif.differences import SHOWN_MAX, Differences
from projector.whatif.habits import Habits
from projector.whatif.other_world import OtherWorld


class Worlds:
    """`fold` every answered message in order. `other` is None until the day begins."""

    def __init__(self, day: DayRange, change: Change, *, wallet: str, shown: int = SHOWN_MAX) -> None:
        self.day, self.change = day, change
        self.real = Wallet(wallet)
        self.facts = Facts(day)
        self.other: OtherWorld | None = None
        self.differences = Differences(shown=shown)
        self.habits = Habits()

    def fold(self, answered: Answered) -> None:
        """Raises `Misconfigured` where the other plan cannot be put in force, `BrokenRecord` for what cannot be."""
        if self.other is None and answered.entry.at >= self.day.start:
            self._part(answered)
        other = self.other
        if other is not None:
            assumed = other.begin(answered)
            if answered.entry.at in self.day:
                for outcome in assumed:
                    self.differences.would_be.settle(outcome)
        seq = answered.stored.seq
        with _told(seq):
            self._pass_time(answered)
        for ask, outcome in zip(answered.asks or (), answered.entry.out, strict=answered.asks is not None):
            if other is not None:
                self._beside(other, answered, ask, outcome)
            self._learn(ask, outcome)
            with _told(seq):
                evolve.evolve(self.real, ask, outcome)
        with _told(seq):
            self.facts.fold(answered)
        if other is not None:
            other.end()

    def finish(self) -> None:
        """The record has been read to its end for now."""
        self.facts.finish()
        if self.other is not None:
            self.other.facts.finish()

    def _part(self, answered: Answered) -> None:
        """The worlds are the same up to here."""
        self.other = OtherWorld(load(self.real.dump()), copy.deepcopy(self.facts), self.change, self.habits)
        self.other.begin_with(answered)

    def _pass_time(self, answered: Answered) -> None:
        stored, entry = answered.stored, answered.entry
        if answered.asks is None:
            fold(self.real, seq=stored.seq, ts=stored.ts, asks=None, entry=entry)
        else:
            fold(self.real, seq=stored.seq, ts=stored.ts, asks=[], entry=msgspec.structs.replace(entry, out=[]))

    def _beside(self, other: OtherWorld, answered: Answered, ask: AnyAsk, was: AnyOutcome) -> None:
        labels = self._labels(other, ask)
        would_be = other.ask(ask, was, self.real)
        if answered.entry.at not in self.day:
            return
        if isinstance(ask, Hold | Renew) and would_be is not None:
            scaled = self.change.held(was.amounts, labels.get("model")) if isinstance(was, Held) else {}
            self.differences.compare(
                ask, was, would_be, scaled=scaled, seq=answered.entry.seq, at=answered.entry.at, labels=labels
            )
        elif isinstance(ask, Settle):
            self.differences.was.settle(was)
            self.differences.would_be.settle(would_be)

    def _labels(self, other: OtherWorld, ask: AnyAsk) -> dict[str, str]:
        match ask:
            case Hold():
                return ask.labels
            case Renew():
                record = self.real.open.get(ask.hold) or other.wallet.open.get(ask.hold)
                return record.labels if record is not None else {}
            case _:
                return {}

    def _learn(self, ask: AnyAsk, outcome: AnyOutcome) -> None:
        """What calls come to, by those that ended in their time."""
        if isinstance(ask, Settle) and isinstance(outcome, Settled) and outcome.state in ("settled", "estimated"):
            record = self.real.open.get(ask.hold)
            if record is not None:
                model = record.labels.get("model")
                self.habits.learn(model, record.granted, outcome.charged, self.real.at - record.at)


@contextmanager
def _told(seq: int) -> Iterator[None]:
    """The record says that this has happened. Its chain may be right, and still it cannot."""
    try:
        yield
    except (AssertionError, LookupError) as error:
        raise BrokenRecord(f"what is told of message {seq:,} cannot have happened: {error!r}", seq=seq) from error
