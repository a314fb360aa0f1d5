"""What an engine has decided and not told yet, and the told that it would write of it. It sends nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from engine.core import chain, limits
from engine.core.messages import AnyOutcome, Entry, Lapsed, Seal, Told

_encoder = msgspec.json.Encoder()
_NOTHING = msgspec.Raw()


class Decided(msgspec.Struct, frozen=True, gc=False):
    """An ask message that was decided and waits for its told.

    `encoded`: the entry as it will lie on the stream. `answers`: the outcomes as their callers hear them. `seen`: its
    sender's newest receipt. `read_at`: when it was read (monotonic, s).
    """

    seq: int
    ts: int
    raw: bytes
    entry: Entry
    encoded: bytes
    sender: str
    answers: msgspec.Raw
    seen: str
    read_at: float


class _Entry(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """`Entry`, its outcomes already written."""

    seq: int
    at: int
    lapsed: list[Lapsed] = []
    out: msgspec.Raw = _NOTHING
    sealed: list[Seal] = []


class _Answer(msgspec.Struct, frozen=True, gc=False):
    """`Answer`, its outcomes already written."""

    to: str
    seq: int
    at: int
    out: msgspec.Raw


class _Reply(msgspec.Struct, frozen=True, gc=False):
    told: int
    chain: str
    answers: list[_Answer]


def written(entry: Entry, heard: list[AnyOutcome]) -> tuple[bytes, msgspec.Raw]:
    """The entry as it will lie on the stream, and the outcomes as their callers hear them.

    Each outcome is written once: only who asks again hears another than is on the record.
    """
    out = msgspec.Raw(_encoder.encode(entry.out))
    encoded = _encoder.encode(_Entry(entry.seq, entry.at, entry.lapsed, out if entry.out else _NOTHING, entry.sealed))
    return encoded, out if heard == entry.out else msgspec.Raw(_encoder.encode(heard))


def replies(covered: Iterable[Decided], *, told: int, linked: bytes) -> Iterator[tuple[str, bytes]]:
    """What is said of them once their told stands at this sequence: one message a client, and the inbox it goes to."""
    rounds: dict[str, list[_Answer]] = {}
    for decided in covered:
        if decided.sender:
            answer = _Answer(decided.sender, decided.seq, decided.entry.at, decided.answers)
            rounds.setdefault(decided.sender.rpartition(".")[0], []).append(answer)
    for answers in rounds.values():
        yield answers[-1].to, _encoder.encode(_Reply(told, linked.hex(), answers))


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
