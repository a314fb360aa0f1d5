"""A receipt: the sequence and chain of a told, as somebody heard it. Says whether a stream still agrees; never decides.

A client sends its newest receipt in the header `Purse-Seen` of each ask message, so that an engine on a store that has
lost something hears of it from whoever was told more.
"""

from __future__ import annotations

import re

import msgspec

from engine.core.chain import NotChainedError, open_sealed
from engine.journal import Journal

_WRITTEN = re.compile(r"([1-9][0-9]{0,18}) ([0-9a-f]{64})", re.ASCII)


class Receipt(msgspec.Struct, frozen=True, gc=False):
    """The told at sequence `told` bore this chain (hexadecimal)."""

    told: int
    chain: str

    @classmethod
    def read(cls, written: str) -> Receipt | None:
        """What stands in the header; None if that is no receipt, which says nothing about the stream."""
        found = _WRITTEN.fullmatch(written)
        return cls(int(found[1]), found[2]) if found is not None else None

    def __str__(self) -> str:
        return f"{self.told} {self.chain}"

    async def stands_on(self, journal: Journal) -> bool:
        """Whether that very told stands there. Raises `NoAnswer`, `StreamRefused`."""
        found = await journal.read(self.told)
        if found is None or found.kind != "told":
            return False
        try:
            return open_sealed(found.data)[1].hex() == self.chain
        except NotChainedError:
            return False
