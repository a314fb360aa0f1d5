"""Receipts held against the record: those that clients sent with their asks, and those that somebody kept elsewhere.

A record that was cut off or made anew from some point on is whole in itself; only what was heard of it before shows
that. Chains of the newest tolds are in memory; a receipt for an older one that came with an ask is counted as not
compared.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from engine.losses import Contradiction, KnownLosses
from engine.receipts import Receipt
from projector.replay import Answered, BrokenRecord

RECENT_TOLDS = 65_536


class Hearsay:
    """`kept`: receipts that must be borne out. `losses`: what was lost with an operator's word is excused."""

    def __init__(self, kept: Iterable[Receipt], losses: KnownLosses) -> None:
        self.compared = 0
        self.too_old = 0
        self._losses = losses
        self._kept: dict[int, set[str]] = {}
        for receipt in kept:
            self._kept.setdefault(receipt.told, set()).add(receipt.chain)
        self._recent: OrderedDict[int, bytes] = OrderedDict()
        self._told = 0
        self._newest = ""

    def fold(self, answered: Answered) -> None:
        """Raises `BrokenRecord` at the first receipt that the record contradicts."""
        seen = answered.stored.seen
        if seen and seen != self._newest:
            self._newest = seen
            self._compare(seen, answered.stored.seq)
        if answered.told != self._told:
            self._told = answered.told
            self._recent[answered.told] = answered.chain
            if len(self._recent) > RECENT_TOLDS:
                self._recent.popitem(last=False)
            for chain in self._kept.pop(answered.told, ()):
                self._agree(answered.told, chain, answered.chain.hex())

    def finish(self, *, last: int) -> None:
        """The record ends at sequence `last`: whatever receipt is left speaks of what does not stand there."""
        for told in sorted(self._kept):
            if self._excused(told):
                continue
            if told > last:
                raise BrokenRecord(
                    f"the record ends at sequence {last:,}, but a receipt was given for {told:,}: "
                    f"{last + 1:,} to {told:,} are lost",
                    seq=last + 1,
                )
            raise BrokenRecord(f"a receipt was given for sequence {told:,}, but no told stands there", seq=told)

    def _compare(self, written: str, seq: int) -> None:
        receipt = Receipt.read(written)
        if receipt is None or self._excused(receipt.told):
            return
        there = self._recent.get(receipt.told) if receipt.told < seq else None
        if there is not None:
            self._agree(receipt.told, receipt.chain, there.hex())
        elif self._recent and receipt.told < next(iter(self._recent)) and len(self._recent) >= RECENT_TOLDS:
            self.too_old += 1
        else:
            raise BrokenRecord(
                f"whoever sent message {seq:,} was told something at sequence {receipt.told:,}, "
                "but no told stands there",
                seq=receipt.told,
            )

    def _agree(self, told: int, chain: str, there: str) -> None:
        self.compared += 1
        if chain != there and not self._excused(told):
            raise BrokenRecord(
                f"the told at sequence {told:,} bears another chain than the receipt for it: "
                f"the record up to there is not the one that was told",
                seq=told,
            )

    def _excused(self, told: int) -> bool:
        return self._losses.covering(Contradiction(told, told, "")) is not None
