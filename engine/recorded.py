"""A told as it lies on the stream, read and proved against the asks it covers. For all who follow; never decides."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from engine.core.chain import Covered, NotChainedError, link, open_sealed
from engine.core.messages import Told
from engine.errors import Untrusted
from engine.journal import Stored

_decoder = msgspec.json.Decoder(Told)


class Recorded(msgspec.Struct, frozen=True, gc=False):
    """A told, its bytes before the chain, and the chain it bears."""

    seq: int
    told: Told
    body: bytes
    chain: bytes

    @classmethod
    def read(cls, stored: Stored) -> Recorded:
        """Raises `Untrusted` if these bytes are no told."""
        try:
            body, linked = open_sealed(stored.data)
            return cls(stored.seq, _decoder.decode(stored.data), body, linked)
        except (NotChainedError, msgspec.DecodeError) as error:
            raise Untrusted(f"the told at sequence {stored.seq:,} cannot be read: {error}") from error

    def verify(self, previous: bytes, covered: Iterable[Covered]) -> None:
        """Raises `Untrusted` unless this told follows `previous` and covers exactly these ask messages."""
        if link(previous, covered, self.body) != self.chain:
            raise Untrusted(f"the chain is broken at sequence {self.seq:,}: the record was changed or is not whole")
