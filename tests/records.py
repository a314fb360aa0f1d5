"""Records as an engine would have left them on a stream, made from `wallets.Books`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from wallets import Books

from engine.core import chain
from engine.core.messages import ADMIN_ASKS, Entry, Told
from engine.core.tell import read
from engine.journal import Stored
from engine.recorded import Recorded
from projector.export.raw import RawBounds, RawLine
from projector.seals.witness import Line


def recorded(books: Books, *, each: int = 2, entries: list[Entry] | None = None) -> list[Stored]:
    """The stream as an engine would have left it: all asks, then tolds for `each` of them at a time."""
    asks = [Stored(seq, ts, _kind(raw), raw) for seq, ts, raw in books.stream]
    told = books.entries if entries is None else entries
    stream, previous = list(asks), chain.GENESIS
    for start in range(0, len(asks), each):
        covered = asks[start : start + each]
        message = Told(engine="e", upto=covered[-1].seq, n=len(covered), told=told[start : start + each])
        body = msgspec.json.encode(message).removesuffix(b"}")
        previous = chain.link(previous, ((one.seq, one.ts, one.data) for one in covered), body)
        stream.append(Stored(len(stream) + 1, covered[-1].ts, "told", chain.seal(body, previous)))
    return stream


def _kind(raw: bytes) -> str:
    message = read(raw)
    asks = message.asks if message is not None else []
    return "admin" if any(isinstance(ask, ADMIN_ASKS) for ask in asks) else "ask"


def story() -> Books:
    """Six messages: the plan, a hold of 0.40 and its settlement at 0.25, two more holds, one of them refused."""
    books = Books(twice=False).at("09:00")
    books.hold("a", "0.40", price_book="2026-11", user="alice", model="small", provider="jev")
    books.at("09:01").settle("a", "0.25")
    books.at("09:02").hold("b", "0.40", user="bob", model="large", provider="jev")
    books.at("09:03").hold("c", "0.80", user="bob", model="large", provider="jev")
    books.at("09:20").tick()
    return books


def night() -> Books:
    """Five messages: the plan, a hold and its settlement, a hold that is open past midnight, the tick at midnight."""
    books = Books(twice=False).at("23:50")
    books.hold("a", "0.40")
    books.settle("a", "0.25")
    books.hold("b", "0.30", ttl_s=1_800)
    books.at("2026-12-01 00:00").tick()
    return books


def two_days(*, first: str = "0.25", second: str = "0.30") -> list[Stored]:
    """A call in each of two days, which cost so much, and the tick behind them: both days are sealed."""
    books = Books(twice=False).at("2026-11-30 09:00")
    books.hold("a", "0.40", user="alice")
    books.settle("a", first)
    books.at("2026-12-01 09:00").hold("b", "0.40", user="bob")
    books.settle("b", second)
    books.at("2026-12-02 00:10").tick()
    return recorded(books)


def seals_of(stream: Sequence[Stored]) -> list[Line]:
    """The lines that a witness of seals would write."""
    lines = []
    for stored in stream:
        if stored.kind == "told":
            found = Recorded.read(stored)
            for entry in found.told.told:
                lines += [Line(stored.seq, found.chain.hex(), entry.seq, entry.at, one) for one in entry.sealed]
    return lines


def written(stream: Sequence[Stored], path: Path) -> Path:
    """The record as a raw export."""
    bounds = RawBounds(wallet="main", first_seq=1, last_seq=stream[-1].seq, start="", end="")
    lines = [msgspec.json.encode(bounds), *(msgspec.json.encode(RawLine.of(one)) for one in stream)]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path
