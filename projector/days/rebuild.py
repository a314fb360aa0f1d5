"""Fold a record from zero and hold every document against the one that stands: they must be the same, byte for byte.

Documents say up to which sequence they are folded. So each is compared with what was folded up to that very sequence,
and a wallet may go on meanwhile: what stands is read first, then the record is folded past it. What still moves is read
again until it has come as far as the record was when this began.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Literal

import msgspec

from engine.journal import Stored
from projector.days.bucket import detail_key, document_key, documents
from projector.days.shelf import Shelf, Standing
from projector.projection import Projection
from projector.reading import Source
from projector.replay import Answered, Replay

BEHIND_S_MAX = 30.0  # how long a projector that runs may take to write what it has folded
AGAIN_S = 1.5  # by then everything that changed is written anew: behind what was folded, so that it can be compared

Why = Literal["missing", "behind", "other", "unknown"]
"""`behind`: right at its own sequence, but more has happened since. `unknown`: the record knows no such document."""

Progress = Callable[[int, int], None]

_encoder = msgspec.json.Encoder()


class Rebuilt(msgspec.Struct, frozen=True):
    """What came of it. `differed`: key -> why. Of these `rewritten`; `moved` were others by then, and are let be."""

    upto: int
    documents: int
    differed: dict[str, Why]
    rewritten: int = 0
    moved: int = 0


class _Upto(msgspec.Struct, frozen=True):
    seq: int


async def rebuild(
    source: Source, shelf: Shelf, *, live: bool, dry_run: bool, progress: Progress | None = None
) -> Rebuilt:
    """Compare, and unless it is a `dry_run` put right what differs. `live`: a projector runs and writes on.

    Raises `BrokenRecord`, `Untrusted`, `NoAnswer` or `StreamRefused`.
    """
    comparing = _Comparing(source.wallet, Replay(losses=source.losses))
    comparing.expect({key: await shelf.get(key) for key in await shelf.keys()})
    await _fold(source, comparing, progress)
    needed = {key: comparing.seq_of(document) for key, document in comparing.documents().items()}
    unsettled = comparing.unsettled(needed)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + BEHIND_S_MAX
    while live and unsettled and loop.time() < deadline:
        await asyncio.sleep(AGAIN_S)
        comparing.expect({key: await shelf.get(key) for key in unsettled})
        await _fold(source, comparing, None)
        unsettled = comparing.unsettled(needed)
    rewritten = 0
    if not dry_run:
        ours = comparing.documents()
        for key in unsettled:
            rewritten += await shelf.put(key, ours.get(key), comparing.standing.get(key))
    moved = 0 if dry_run else len(unsettled) - rewritten
    return Rebuilt(comparing.upto, len(needed), unsettled, rewritten, moved)


async def _fold(source: Source, comparing: _Comparing, progress: Progress | None) -> None:
    end = await source.last()
    if end > comparing.last:
        await source.read(lambda stored: comparing.take(stored, end, progress), after=comparing.last, upto=end)


class _Comparing:
    """A projection from zero, and what stands: each document is compared as its sequence goes by."""

    def __init__(self, wallet: str, reading: Replay) -> None:
        self.standing: dict[str, Standing] = {}
        self._projection = Projection(wallet)
        self._reading = reading
        self._names: dict[str, tuple[str, str]] = {}
        self._named = 0
        self._due: dict[int, list[str]] = {}
        self._equal: dict[str, bool] = {}
        self._final: dict[str, bytes] = {}

    @property
    def last(self) -> int:
        return self._reading.last

    @property
    def upto(self) -> int:
        return self._reading.upto

    def expect(self, found: dict[str, Standing | None]) -> None:
        """These stand now."""
        for key, standing in found.items():
            if standing is None or self.standing.get(key) == standing:
                continue
            self.standing[key] = standing
            seq = self.seq_of(standing.document)
            self._equal.pop(key, None)
            if seq > self.upto:
                self._due.setdefault(seq, []).append(key)
            else:
                self._compare([key])

    def take(self, stored: Stored, end: int, progress: Progress | None) -> None:
        for answered in self._reading.take(stored):
            self._fold(answered)
        if progress is not None and (self.last % 1_024 == 0 or self.last >= end):
            progress(self.last, end)

    def _fold(self, answered: Answered) -> None:
        seq = answered.stored.seq
        self._projection.fold(seq=seq, asks=answered.asks, entry=answered.entry)
        final = self._projection.details.final
        if final:
            self._final |= {detail_key(key): document for key, document in final.items()}
            final.clear()
        if seq in self._due:
            self._compare(self._due.pop(seq))

    def _compare(self, keys: Iterable[str]) -> None:
        for key in keys:
            standing, ours = self.standing[key].document, self._document(key)
            if ours is None or self.seq_of(ours) <= self.seq_of(standing):  # else its sequence has gone by
                self._equal[key] = ours == standing

    def _document(self, key: str) -> bytes | None:
        """Ours at this key, as folded so far."""
        projection = self._projection
        if key in self._final:
            return self._final[key]
        if key.endswith(".wallet.day"):
            day = projection.wallet_days.days.get(key.removesuffix(".wallet.day"))
            return _encoder.encode(day) if day is not None else None
        for name in islice(projection.totals, self._named, None):
            self._names |= {document_key(name): name, detail_key(name): name}
        self._named = len(projection.totals)
        name_of = self._names.get(key)
        if name_of is None:
            return None
        if key == detail_key(name_of):
            return projection.details.document(name_of)
        return _encoder.encode(projection.totals[name_of])

    def documents(self) -> dict[str, bytes]:
        """All of ours, as of the newest message."""
        return documents(self._projection) | self._final

    def unsettled(self, needed: dict[str, int]) -> dict[str, Why]:
        """What differs, or has not come as far as is `needed`."""
        found: dict[str, Why] = {}
        for key, seq in needed.items():
            standing = self.standing.get(key)
            if standing is None:
                found[key] = "missing"
            elif not self._equal.get(key, self.seq_of(standing.document) < seq):
                found[key] = "other"
            elif self.seq_of(standing.document) < seq:
                found[key] = "behind"
        return found | {key: "unknown" for key in self.standing if key not in needed and not self._equal.get(key)}

    @staticmethod
    def seq_of(document: bytes) -> int:
        """Up to which sequence a document is folded; 0 where it does not say."""
        try:
            return msgspec.json.decode(document, type=_Upto).seq
        except (msgspec.DecodeError, UnicodeDecodeError):
            return 0
