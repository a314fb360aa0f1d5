"""What an engine has decided and not told yet, and the told that it would write of it. It sends nothing."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from engine.core import chain, limits
from engine.core.messages import AnyOutcome, Entry, Told

_encoder = msgspec.json.Encoder()


class Decided(msgspec.Struct, frozen=True, gc=False):
    """An ask message that was decided and waits for its told. `answers`: the outcomes as the caller hears them.

    `seen` is its sender's newest receipt, `read_at` when it was read (monotonic, s).
    """

    seq: int
    ts: int
    raw: bytes
    entry: Entry
    encoded: bytes
    sender: str
    answers: list[AnyOutcome]
    seen: str
    read_at: float


class Proposal(msgspec.Struct, frozen=True, gc=False):
    """A told on its way to the stream, and the chain it makes. It covers the next `n` messages."""

    message: bytes
    chain: bytes
    n: int


def propose(waiting: Iterable[Decided], *, engine: str, after: bytes) -> Proposal:
    """A told for what waits: at most 64 messages and 4 MiB, but always one. `after`: the chain before it."""
    covered: list[Decided] = []
    size = 0
    for decided in waiting:
        size += len(decided.encoded)
        if covered and (len(covered) >= limits.TOLD_MESSAGES_MAX or size > limits.TOLD_BYTES_MAX):
            break
        covered.append(decided)
    head = Told(engine=engine, upto=covered[-1].seq, n=len(covered), told=[])
    entries = b",".join([decided.encoded for decided in covered])
    body = _encoder.encode(head).removesuffix(b"[]}") + b"[" + entries + b"]"
    linked = chain.link(after, ((d.seq, d.ts, d.raw) for d in covered), body)
    return Proposal(chain.seal(body, linked), linked, len(covered))
