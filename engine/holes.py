"""What a store says of itself: the sequences it no longer has. It costs one request, since nothing is read.

A start from a snapshot does not read what lies before it. A store that has lost something there mostly knows: after a
bit was flipped in a middle block and the server killed, 29 messages showed as ordinary deletions (a wallet deletes
none). What it does not know, say one message whose bytes changed after a clean stop, only reading finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from engine.journal import Journal
from engine.losses import Contradiction

NAMED_MAX = 100_000  # sequences that one answer may name: a million would not fit into a message


class _Lost(msgspec.Struct, frozen=True):
    msgs: list[int] | None = None


class _State(msgspec.Struct, frozen=True):
    messages: int = 0
    first_seq: int = 0
    last_seq: int = 0
    num_deleted: int = 0
    deleted: list[int] | None = None
    lost: _Lost | None = None


class _Info(msgspec.Struct, frozen=True):
    state: _State = _State()


async def holes(journal: Journal) -> list[Contradiction]:
    """Every range that is missing by the store's own word, in order. Raises `NoAnswer`."""
    state = await _state(journal, named=False)
    if 0 < state.num_deleted <= NAMED_MAX:
        state = await _state(journal, named=True)
    return list(_holes(state))


async def _state(journal: Journal, *, named: bool) -> _State:
    return (await journal.api(f"STREAM.INFO.{journal.names.stream}", {"deleted_details": named}, _Info)).state


def _holes(state: _State) -> Iterator[Contradiction]:
    lost = state.lost.msgs if state.lost is not None else None
    missing = {seq for seq in (*(state.deleted or ()), *(lost or ())) if state.first_seq <= seq <= state.last_seq}
    if min(state.first_seq - 1, state.last_seq) > 0:
        yield _missing(1, min(state.first_seq - 1, state.last_seq))
    for first, last in _ranges(missing):
        yield _missing(first, last)
    should_be = state.last_seq - state.first_seq + 1 if state.last_seq else 0
    if state.messages + len(state.deleted or ()) != should_be and state.last_seq:
        why = (
            f"the store says that it has {state.messages:,} messages between {state.first_seq:,} and {state.last_seq:,}"
        )
        yield Contradiction(1, state.last_seq, f"{why}: {should_be - state.messages:,} are missing")


def _missing(first: int, last: int) -> Contradiction:
    why = f"sequences {first:,} to {last:,} are missing from the stream, by the store's own word"
    return Contradiction(first, last, why)


def _ranges(seqs: Iterable[int]) -> Iterator[tuple[int, int]]:
    first = last = 0
    for seq in sorted(seqs):
        if first and seq != last + 1:
            yield first, last
            first = 0
        first, last = first or seq, seq
    if first:
        yield first, last
