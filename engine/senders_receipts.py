"""Whether the stream bears out what the senders of asks were told before. It has lost something where it does not.

Looked at only for asks that are not told yet, and outside every decision. It never tells and never grants.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import structlog

from engine.core import limits
from engine.decided import Decided
from engine.errors import NoAnswer, StreamRefused
from engine.journal import Journal
from engine.losses import Contradiction, Losses
from engine.receipts import Receipt

RECENT_TOLDS = 4_096  # whose chains are in memory; older ones are read from the stream

log = structlog.get_logger()


class SendersReceipts:
    """`waiting`: what was decided and not told yet, as the engine has it."""

    def __init__(self, journal: Journal, losses: Losses, waiting: Sequence[Decided]) -> None:
        self._journal, self._losses, self._waiting = journal, losses, waiting
        self._newest = 0
        self._recent: dict[int, str] = {}
        self._agreed = ""  # the receipt that was compared last
        self._compared_to = 0  # the message that brought it

    def remember(self, told: int, linked: bytes) -> None:
        """The newest told on record, and its chain."""
        self._newest = told
        self._recent[told] = linked.hex()
        if len(self._recent) > RECENT_TOLDS:
            del self._recent[next(iter(self._recent))]

    async def agree(self) -> bool:
        """Whether the receipts of the next asks stand on the stream. False: that could not be read now.

        While one is compared with the stream more may come, or another may tell: none that is told next is left out.
        Raises `Untrusted` where one does not stand there: the stream has lost what its sender heard.
        """
        while (decided := self._uncompared()) is not None:
            receipt = Receipt.read(decided.seen)
            try:
                if receipt is not None and not await self._agrees(receipt):
                    why = (
                        f"whoever sent message {decided.seq:,} was told something at sequence {receipt.told:,} that is "
                        f"not there: {receipt.told:,} to {receipt.told:,} are lost, and maybe more"
                    )
                    await self._losses.accept(Contradiction(receipt.told, receipt.told, why))
            except (NoAnswer, StreamRefused) as error:
                log.warning("receipt_not_compared", why=str(error))
                return False
            self._agreed, self._compared_to = decided.seen, decided.seq
        return True

    def _uncompared(self) -> Decided | None:
        """The first of the next asks whose sender's receipt was not compared yet."""
        for decided in islice(self._waiting, limits.TOLD_MESSAGES_MAX):
            if decided.seq > self._compared_to and decided.seen and decided.seen != self._agreed:
                return decided
        return None

    async def _agrees(self, receipt: Receipt) -> bool:
        chain_there = self._recent.get(receipt.told)
        if chain_there is not None:
            return chain_there == receipt.chain
        return receipt.told < self._newest and await receipt.stands_on(self._journal)
