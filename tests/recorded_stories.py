"""Made-up days as an engine would have left them on a stream, told as they came, and the raw record in a file."""

from __future__ import annotations

from pathlib import Path
from random import Random

import msgspec
from auditor import Auditor
from property.story import Story

from engine.core import chain
from engine.core.messages import ADMIN_ASKS, AnyAsk, AskMessage, Clock, Entry, Told
from engine.core.tell import tell
from engine.core.wallet import Wallet
from engine.journal import Stored
from projector.export.raw import RawLine
from projector.projection import Projection
from projector.replay import Answered, Replay

UNREADABLE = b'{"v":1,"asks":[{"ask":"what is this"}]}'


class Writer:
    """A stream that is written and told, with the wallet that decides it."""

    def __init__(self) -> None:
        self.wallet = Wallet()
        self.stream: list[Stored] = []
        self.chain = chain.GENESIS
        self.seq = 0
        self.last = Entry(seq=0, at=0)  # the newest, told or not
        self._untold: list[tuple[Stored, Entry]] = []

    def ask(self, ts: int, asks: list[AnyAsk] | None, *, seen: str = "") -> None:
        if any(isinstance(ask, Clock) for ask in asks or ()):
            self.tell()  # it would skip the stamps of those that wait
        kind = "admin" if any(isinstance(ask, ADMIN_ASKS) for ask in asks or ()) else "ask"
        raw = UNREADABLE if asks is None else msgspec.json.encode(AskMessage(asks=asks))
        stored = self.put(Stored(0, ts, kind, raw, seen))
        self.last = tell(self.wallet, seq=stored.seq, ts=ts, asks=asks)
        self._untold.append((stored, self.last))

    def tell(self) -> None:
        """The told of all that waits."""
        if not self._untold:
            return
        covered = [stored for stored, _ in self._untold]
        told = Told(engine="e", upto=covered[-1].seq, n=len(covered), told=[entry for _, entry in self._untold])
        body = msgspec.json.encode(told).removesuffix(b"}")
        self.chain = chain.link(self.chain, ((one.seq, one.ts, one.data) for one in covered), body)
        self.put(Stored(0, covered[-1].ts, "told", chain.seal(body, self.chain)))
        self._untold = []

    def put(self, stored: Stored) -> Stored:
        """Whatever it is, at the next sequence."""
        self.seq += 1
        self.stream.append(msgspec.structs.replace(stored, seq=self.seq))
        return self.stream[-1]


def story(seed: int, *, steps: int) -> list[Stored]:
    """The stream of one made-up story, in which everything happens that may; every few messages have one told."""
    return written_story(seed, steps=steps).stream


def written_story(seed: int, *, steps: int) -> Writer:
    """The same, by who wrote it and may go on."""
    random, auditor, writer = Random(seed), Auditor(), Writer()
    made = Story(auditor)
    ts, asks = made.opening(random)
    for step in range(1, steps + 1):
        auditor.predict(step, ts, asks)
        writer.ask(ts, asks)
        if random.random() < 0.4 or step == steps:
            writer.tell()
        ts, asks = made.message(random)
    return writer


def projected(stream: list[Stored]) -> Projection:
    """The read models of a stream: another fold than that of whoever is tested with it."""
    projection, reading = Projection("main"), Replay()
    for stored in stream:
        for answered in reading.take(stored):
            fold(projection, answered)
    return projection


def fold(projection: Projection, answered: Answered) -> None:
    projection.fold(seq=answered.stored.seq, asks=answered.asks, entry=answered.entry)


def write_raw(stream: list[Stored], file: Path) -> Path:
    """The messages as `purse export --raw` writes them, without its first line."""
    file.write_bytes(b"".join(msgspec.json.encode(RawLine.of(stored)) + b"\n" for stored in stream))
    return file
