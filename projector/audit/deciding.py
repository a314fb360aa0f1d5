"""The first path: every ask decided again, by the rules and the plan of its moment, and compared with what was told.

It is the engine's own `tell` on a wallet of its own. The wallet's meters, with what they held when they were dropped,
are the totals that the second path (`sums`) is compared with.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from engine.core.messages import Adjusted, AnyOutcome, Dropped, Entry, Settled, Stray
from engine.core.meter import Meter, MeterKey
from engine.core.plan import RULES
from engine.core.tell import tell
from engine.core.wallet import Wallet
from projector.replay import Answered

Totals = dict[tuple[str, str], tuple[int, int, int]]
"""(Budget, period) -> settled, held, extra."""

_encoder = msgspec.json.Encoder()


class Difference(msgspec.Struct, frozen=True):
    """A message that was told otherwise than the rules decide. Entries as JSON; `outcome`: which ask of it, if any."""

    seq: int
    told: int
    outcome: int | None
    said: str
    decided: str


class _Banking(dict[MeterKey, Meter]):
    """A wallet's meters: one that is dropped leaves its totals."""

    def __init__(self, meters: dict[MeterKey, Meter], bank: Totals) -> None:
        super().__init__(meters)
        self._bank = bank

    def __delitem__(self, key: MeterKey) -> None:
        _add(self._bank, self[key])
        super().__delitem__(key)


class Deciding:
    """A wallet that is told everything anew. `difference`: the first message that was told otherwise."""

    def __init__(self, wallet: Wallet) -> None:
        self.wallet = wallet
        self.difference: Difference | None = None
        self.differences = 0
        self.asks = 0
        self._dropped: Totals = {}
        wallet.metering = _Banking(wallet.metering, self._dropped)

    def fold(self, answered: Answered) -> None:
        stored, entry = answered.stored, answered.entry
        mine = self.decide(stored.seq, stored.ts, answered.asks, skipped=answered.skipped)
        if mine != entry and (decided := _encoder.encode(mine)) != (said := _encoder.encode(entry)):
            self.differ(mine, entry, answered.told, said, decided)

    def decide(self, seq: int, ts: int, asks: list[Any] | None, *, skipped: bool) -> Entry:
        """Decide one message, and let it have happened."""
        entry = tell(self.wallet, seq=seq, ts=ts, asks=asks, skipped=skipped)
        self.asks += len(asks or ())
        for outcome in entry.out:
            if type(outcome) is Settled or type(outcome) is Stray or type(outcome) is Adjusted:
                self._bank(outcome)
        return entry

    def differ(self, mine: Entry, entry: Entry, told: int, said: bytes, decided: bytes) -> None:
        self.differences += 1
        if self.difference is None:
            self.difference = _difference(mine, entry, told, said, decided)

    def totals(self) -> Totals:
        totals = dict(self._dropped)
        for meter in self.wallet.metering.values():
            _add(totals, meter)
        return totals

    def impossible(self) -> str:
        """Which invariant of the state is broken, or that the rules are not this release's; "" if none."""
        plan = self.wallet.plan
        if plan is not None and plan.rules != RULES:
            return f"the plan asks for rules {plan.rules}, this release decides by rules {RULES}"
        try:
            self.wallet.check()
        except AssertionError as error:
            return str(error)
        return ""

    def _bank(self, outcome: AnyOutcome) -> None:
        for drop in _dropped_of(outcome):
            settled, held, extra = self._dropped.get((drop.budget, drop.period), (0, 0, 0))
            self._dropped[drop.budget, drop.period] = (settled + drop.amount, held, extra)


def _dropped_of(outcome: AnyOutcome) -> Iterable[Dropped]:
    match outcome:
        case Settled() | Stray():
            return outcome.dropped
        case Adjusted() if outcome.dropped is not None:
            return (outcome.dropped,)
        case _:
            return ()


def _add(totals: Totals, meter: Meter) -> None:
    settled, held, extra = totals.get((meter.budget, meter.period), (0, 0, 0))
    totals[meter.budget, meter.period] = (settled + meter.settled, held + meter.held, extra + meter.extra)


def _difference(mine: Entry, entry: Entry, told: int, said: bytes, decided: bytes) -> Difference:
    if (mine.seq, mine.at, mine.lapsed, len(mine.out)) == (entry.seq, entry.at, entry.lapsed, len(entry.out)):
        for place, (ours, theirs) in enumerate(zip(mine.out, entry.out, strict=True)):
            if ours != theirs:
                return Difference(
                    mine.seq, told, place, _encoder.encode(theirs).decode(), _encoder.encode(ours).decode()
                )
    return Difference(mine.seq, told, None, _short(said), _short(decided))


SHOWN_MAX = 2_000


def _short(entry: bytes) -> str:
    text = entry.decode()
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]} ..."
