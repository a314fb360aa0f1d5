"""A client's newest receipt, held against the stream whenever there is reason to doubt. It never decides.

What was heard last is kept; an older told, another chain for the same told, or a connection that was gone for a while
(a store may have been changed meanwhile) are reasons to look whether that receipt still stands. If it does not, and no
operator has accepted a loss there, the client has been told what the record denies: it must not believe a permission.
"""

from __future__ import annotations

import asyncio

import structlog

from engine.errors import NoAnswer, StreamRefused, Untrusted
from engine.journal import Journal
from engine.losses import Contradiction, Losses
from engine.receipts import Receipt

LOOK_AGAIN_S = 2.0
DENIALS = 2  # in a row: a server of a cluster that was just cut off may be behind

log = structlog.get_logger()


class Heard:
    """`newest`: the receipt of the newest told. `contradiction`: why the stream cannot be believed, "" while it can."""

    def __init__(self, journal: Journal) -> None:
        self.newest: tuple[int, str] = (0, "")
        self.contradiction = ""
        self._journal = journal
        self._losses = Losses(journal)
        self._doubted: tuple[int, str] | None = None
        self._denied = 0  # times in a row
        self._look = asyncio.Event()

    def hear(self, told: int, chain: str) -> None:
        """A reply came with this receipt."""
        newest, known = self.newest
        if told > newest:
            self.newest = (told, chain)
        elif told < newest or chain != known:  # late, by another engine, or from another record
            self.doubt()

    def doubt(self) -> None:
        """Look soon whether what was heard still stands. The oldest doubt goes first: a new told settles none."""
        if self.newest[0] and self._doubted is None:
            self._doubted = self.newest
            self._look.set()

    async def run(self) -> None:
        """Look when there is reason to, until cancelled."""
        self._journal.on_reconnect.append(self.doubt)
        try:
            while True:
                await self._look.wait()
                self._look.clear()
                if not await self._settled():
                    await asyncio.sleep(LOOK_AGAIN_S)
                    self._look.set()
        finally:
            self._journal.on_reconnect.remove(self.doubt)

    async def _settled(self) -> bool:
        """Whether the doubt is gone: the receipt stands, or an operator has accepted that it does not."""
        assert self._doubted is not None
        receipt = Receipt(*self._doubted)
        try:
            if not await receipt.stands_on(self._journal):
                await self._accepted(receipt)
        except (NoAnswer, StreamRefused):
            return False
        except Untrusted as error:
            self._denied += 1
            if self._denied < DENIALS:
                return False
            if not self.contradiction:
                log.error("receipt_contradicted", told=receipt.told, chain=receipt.chain)
            self.contradiction = str(error)
            return False
        self.contradiction, self._doubted, self._denied = "", None, 0
        return True

    async def _accepted(self, receipt: Receipt) -> None:
        """What was heard is lost, with an operator's word: begin anew. Raises `Untrusted` without."""
        why = f"this client was told something at sequence {receipt.told:,} that does not stand there"
        await self._losses.accept(Contradiction(receipt.told, receipt.told, why))
        if self.newest == self._doubted:
            self.newest = (0, "")
