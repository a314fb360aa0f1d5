"""The decisions of a day, one after another, read from the stream as it lies there: what a program that follows wants.

It pairs asks with their tolds and writes amounts as people read them. It proves nothing (`purse audit` does) and keeps
only the asks that still wait for their told.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import msgspec

from engine.core.amounts import format_amount
from engine.core.documents import Span
from engine.core.messages import Amounts, AnyAsk, AnyOutcome, Entry, Exhausted, Hold, Renew, Settle
from engine.core.tell import read
from engine.journal import Stored
from engine.recorded import Recorded
from projector.export.rows import amounts_of


class Decision(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One outcome, or one lapse. `seq`: of its ask message, `told`: of the told that has it, `at`: ns, stream time.

    `amounts`: what was granted, charged, shown or adjusted, for a refused hold what it asked for; decimal strings.
    """

    seq: int
    told: int
    at: int
    kind: str
    outcome: str
    id: str
    amounts: dict[str, str]
    why: str = ""
    budget: str = ""
    state: str = ""
    flags: list[str] = []


class Decisions:
    """Of the ask messages of `span` behind sequence `after`. `done`: all of them have been taken."""

    def __init__(self, span: Span, *, after: int) -> None:
        self._span = span
        self._after = max(after, span.first - 1)
        self._waiting: deque[tuple[int, list[AnyAsk] | None]] = deque()
        self.done = self._after >= span.until - 1

    @property
    def after(self) -> int:
        """Behind which sequence to read."""
        return self._after

    def take(self, stored: Stored) -> Iterator[tuple[int, list[Decision]]]:
        """The next message of the stream; what it completes, by the sequence of the ask message. Raises `Untrusted`."""
        if stored.kind == "told":
            yield from self._told(stored)
        elif stored.kind != "void":
            message = read(stored.data)
            self._waiting.append((stored.seq, message.asks if message is not None else None))

    def _told(self, stored: Stored) -> Iterator[tuple[int, list[Decision]]]:
        told = Recorded.read(stored).told
        for entry in told.told:
            while self._waiting and self._waiting[0][0] < entry.seq:
                self._waiting.popleft()  # a loss has its told
            if self._after < entry.seq < self._span.until and self._waiting:
                yield entry.seq, list(self._of(entry, self._waiting.popleft()[1], stored.seq))
        self.done = self.done or told.upto >= self._span.until - 1

    def _of(self, entry: Entry, asks: list[AnyAsk] | None, told: int) -> Iterator[Decision]:
        for lapsed in entry.lapsed:
            amounts = self._written(lapsed.charged)
            yield Decision(entry.seq, told, entry.at, "lapse", "lapsed", lapsed.hold, amounts)
        if asks is None:
            for outcome in entry.out:
                yield Decision(entry.seq, told, entry.at, "", str(outcome.__struct_config__.tag), "", {})
        for ask, outcome in zip(asks or (), entry.out, strict=False):
            yield self._decision(entry, told, ask, outcome)

    def _decision(self, entry: Entry, told: int, ask: AnyAsk, outcome: AnyOutcome) -> Decision:
        amounts = amounts_of(self._span.units, ask, outcome)
        if not amounts and isinstance(ask, Hold):
            amounts = ask.options[0].amounts if ask.options else {}
        return Decision(
            entry.seq,
            told,
            entry.at,
            str(ask.__struct_config__.tag),
            str(outcome.__struct_config__.tag),
            ask.hold if isinstance(ask, Settle | Renew) else ask.id,
            self._written(amounts),
            outcome.why if isinstance(outcome, Exhausted) else "",
            outcome.budget if isinstance(outcome, Exhausted) else getattr(ask, "budget", ""),
            getattr(outcome, "state", ""),
            list(getattr(outcome, "flags", ())),
        )

    def _written(self, amounts: Amounts) -> dict[str, str]:
        """A unit that no plan had (an ask that was invalid named it) has no scale: it is left out."""
        scales = self._span.scales
        return {unit: format_amount(each, scale=scales[unit]) for unit, each in amounts.items() if unit in scales}
