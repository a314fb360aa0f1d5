"""The raw record in one file: every message as it lies on the stream, from which everything can be proved again.

    {"export":"raw","v":1,"wallet":"main","first_seq":1,"last_seq":9041,"from":"2026-11-30T...Z","to":"..."}
    {"seq":1,"ts":1796029200000000000,"kind":"admin","data":"{\\"v\\":1,...}"}
    {"seq":2,"ts":1796029201000000000,"kind":"ask","data":"...","seen":"1 5f..."}

`data` is the message's bytes as text, or `base64` where they are no UTF-8. `seen` is the sender's newest receipt, where
it sent one. Messages of a lost range stand as they are; whoever reads finds out again that they count no more.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import msgspec

from engine.journal import Stored
from projector.export.files import whole
from projector.export.rows import utc
from projector.reading import Source

PROGRESS_EVERY = 1_024


class RawBounds(msgspec.Struct, frozen=True, kw_only=True):
    """The first line. `from` and `to` are the stamps of the first and the last message, UTC."""

    wallet: str
    first_seq: int
    last_seq: int
    start: str = msgspec.field(name="from")
    end: str = msgspec.field(name="to")
    export: str = "raw"
    v: int = 1


class RawLine(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One message."""

    seq: int
    ts: int
    kind: str
    data: str | msgspec.UnsetType = msgspec.UNSET
    base64: str | msgspec.UnsetType = msgspec.UNSET
    seen: str = ""

    @classmethod
    def of(cls, stored: Stored) -> RawLine:
        kind = "told" if stored.kind == "void" else stored.kind
        try:
            return cls(stored.seq, stored.ts, kind, data=stored.data.decode(), seen=stored.seen)
        except UnicodeDecodeError:
            return cls(stored.seq, stored.ts, kind, base64=base64.b64encode(stored.data).decode(), seen=stored.seen)


async def export_raw(source: Source, out: Path, *, progress: Callable[[int, int], None] | None = None) -> RawBounds:
    """Write all that can be read now. Nothing is proved by it but what the reading itself finds.

    Raises `OSError`, `Untrusted`, `NoAnswer`, `StreamRefused`; then there is no file.
    """
    last = await source.last()
    bounds = await _bounds(source, last)
    encode = msgspec.json.Encoder().encode
    with whole(out) as unfinished, unfinished.open("wb") as file:
        file.write(encode(bounds) + b"\n")

        def take(stored: Stored) -> None:
            file.write(encode(RawLine.of(stored)) + b"\n")
            if progress is not None and (stored.seq % PROGRESS_EVERY == 0 or stored.seq >= last):
                progress(stored.seq, last)

        if last:
            await source.read(take, after=0, upto=last)
    return bounds


async def _bounds(source: Source, last: int) -> RawBounds:
    newest = await source.at(last) if last else None
    first = 1
    while first < last and (oldest := await source.at(first)) is None:
        first += 1  # the beginning is lost
    oldest = await source.at(first) if last else None
    return RawBounds(
        wallet=source.wallet,
        first_seq=first if last else 0,
        last_seq=last,
        start=utc(oldest.ts if oldest is not None else 0),
        end=utc(newest.ts if newest is not None else 0),
    )
