"""A raw export (`raw_export`) read as a source: the record in a file, without any server. It judges nothing.

A file that is no raw export, or is torn within a line, is `Misconfigured`: that is said of the file, not of a wallet.
"""

from __future__ import annotations

import base64
import binascii
import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

import msgspec

from engine.core.tell import read
from engine.errors import Misconfigured
from engine.journal import Kind, Stored
from engine.losses import Contradiction, KnownLosses
from projector.export.raw import RawBounds, RawLine
from projector.reading import Take
from projector.replay import BrokenRecord

_BEGIN = re.compile(rb'\{"seq":(\d{1,19}),"ts":\d{1,19},"kind":"(?:ask|told)","data":"')
_decoder = msgspec.json.Decoder(RawLine)


class RawSource:
    """The messages of one file, in the order they have there. Looked through once beforehand, for what stands where."""

    def __init__(self, path: Path) -> None:
        self.losses = KnownLosses()
        self.path = path
        self._last = 0
        self._rises = True  # each sequence is higher than the one before, as in every file that nobody changed
        self._seqs, self._places = array("Q"), array("Q")
        bounds = self._bounds()
        self.wallet, self._said_last = bounds.wallet, bounds.last_seq
        for line, place in self._lines():
            if begin := _BEGIN.match(line):  # as our own export writes it; the rest is read when it is its turn
                self._note(int(begin[1]), place)
                continue
            stored = self._read(line, len(self._seqs) + 2)
            self._note(stored.seq, place)
            if stored.kind == "admin" and (message := read(stored.data)) is not None:
                self.losses.hear(stored.seq, message.asks)

    async def last(self) -> int:
        """Raises `BrokenRecord` where the file ends before its first line says, unless a loss covers that."""
        first, said = self._last + 1, self._said_last
        if said >= first:
            gone = Contradiction(
                first, said, f"the file ends at sequence {self._last:,}, but was written up to {said:,}"
            )
            if self.losses.covering(gone) is None:
                raise BrokenRecord(f"{gone.why}: {first:,} to {said:,} are missing", seq=first)
        return self._last

    async def any_loss(self) -> bool:
        return bool(self.losses.ids)

    async def read(self, take: Take, *, after: int, upto: int | None) -> None:
        """Ends with the file: nothing ever comes behind it."""
        for stored in self._behind(after):
            if stored.seq > after and (upto is None or stored.seq <= upto):
                take(stored)

    async def at(self, seq: int) -> Stored | None:
        found = next((stored for stored in self._behind(seq - 1) if stored.seq >= seq), None)
        return found if found is not None and found.seq == seq else None

    async def next_of(self, kind: Kind, after: int) -> Stored | None:
        return next((stored for stored in self._behind(after) if stored.seq > after and stored.kind == kind), None)

    def _bounds(self) -> RawBounds:
        with self.path.open("rb") as file:
            try:
                bounds = msgspec.json.decode(file.readline(), type=RawBounds)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise Misconfigured(f"{self.path} is no raw export: its first line cannot be read") from error
        if (bounds.export, bounds.v) != ("raw", 1):
            raise Misconfigured(f"{self.path}: expected a raw export of version 1")
        return bounds

    def _behind(self, after: int) -> Iterator[Stored]:
        """From the first message behind `after` on; from the beginning where sequences do not rise."""
        first = bisect_right(self._seqs, after) if self._rises else 0
        if first < len(self._seqs):
            for number, (line, _) in enumerate(self._lines(self._places[first]), start=first + 2):
                yield self._read(line, number)

    def _note(self, seq: int, place: int) -> None:
        self._rises = self._rises and seq > self._last
        self._last = max(self._last, seq)
        self._seqs.append(seq)
        self._places.append(place)

    def _lines(self, place: int = 0) -> Iterator[tuple[bytes, int]]:
        """Lines of messages from this place of the file on, each with its own place; without one, all there are."""
        with self.path.open("rb") as file:
            place = place or len(file.readline())
            file.seek(place)
            for line in file:
                yield line, place
                place += len(line)

    def _read(self, line: bytes, number: int) -> Stored:
        try:
            return _stored(_decoder.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError, binascii.Error) as error:
            raise Misconfigured(f"{self.path}: line {number:,} is no message of a raw export") from error


def _stored(line: RawLine) -> Stored:
    if isinstance(line.data, str):
        return Stored(line.seq, line.ts, line.kind, line.data.encode(), line.seen)
    data = base64.b64decode(line.base64, validate=True) if isinstance(line.base64, str) else b""
    return Stored(line.seq, line.ts, line.kind, data, line.seen)
