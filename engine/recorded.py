"""A told as it lies on the stream, read and proved against the asks it covers. For all who follow; never decides."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from engine.core.chain import Covered, NotChainedError, link, open_sealed
from engine.core.messages import MESSAGE_VERSION, Told
from engine.errors import Untrusted
from engine.journal import Stored
from engine.later import check_version, version_of

_ENTRIES = b',"told":['  # within a string the quotes would be escaped
_HEAD_BYTES_MAX = 512

_decoder = msgspec.json.Decoder(Told)


class Recorded(msgspec.Struct, frozen=True, gc=False):
    """A told, its bytes before the chain, and the chain it bears."""

    seq: int
    told: Told
    body: bytes
    chain: bytes

    @classmethod
    def read(cls, stored: Stored) -> Recorded:
        """Raises `Untrusted` if these bytes are no told, or one of a later release."""
        try:
            body, linked = open_sealed(stored.data)
            told = _decoder.decode(stored.data)
        except (NotChainedError, msgspec.DecodeError) as error:
            check_version(stored.seq, version_of(stored.data))
            raise Untrusted(f"the told at sequence {stored.seq:,} cannot be read: {error}") from error
        check_version(stored.seq, told.v)
        return cls(stored.seq, told, body, linked)

    @classmethod
    def read_head(cls, stored: Stored) -> tuple[Recorded, bytes]:
        """The told without its entries, and these as the bytes that lie there, with commas between.

        Whoever has the same bytes need not read them: they are most of the work. A told that no engine of ours wrote
        so is read whole, and no bytes are given. Raises `Untrusted` if these bytes are no told.
        """
        begin = stored.data.find(_ENTRIES, 0, _HEAD_BYTES_MAX)
        if begin < 0:
            return cls.read(stored), b""
        try:
            body, linked = open_sealed(stored.data)
            told = _decoder.decode(body[:begin] + _ENTRIES + b"]}")
        except (NotChainedError, msgspec.DecodeError):
            return cls.read(stored), b""
        if not body.endswith(b"]") or told.v != MESSAGE_VERSION:
            return cls.read(stored), b""
        return cls(stored.seq, told, body, linked), body[begin + len(_ENTRIES) : -1]

    def verify(self, previous: bytes, covered: Iterable[Covered]) -> None:
        """Raises `Untrusted` unless this told follows `previous` and covers exactly these ask messages."""
        if link(previous, covered, self.body) != self.chain:
            raise Untrusted(f"the chain is broken at sequence {self.seq:,}: the record was changed or is not whole")
