"""The old part of a record, as an engine reads it at its start: taken in as it was told, not decided a second time.

It was decided by whoever told it, as what a snapshot holds was, and the chain proves that nobody has changed it since.
The newest messages are decided again all the same, so that an engine with other rules stops before it says anything.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NoReturn

from engine import later
from engine.core.messages import AnyAsk, Entry
from engine.core.retell import retell
from engine.core.tell import read
from engine.core.wallet import Wallet
from engine.errors import Untrusted
from engine.journal import Stored
from engine.recorded import Recorded

DECIDED_AGAIN = 64  # of the newest sequences at a start: with the largest messages half a second


def replay(
    stored: Stored,
    waiting: deque[Stored],
    wallet: Wallet,
    *,
    after: bytes,
    skips: Callable[[int, int], bool],
    hear: Callable[[int, Sequence[AnyAsk]], None],
) -> Recorded:
    """Take in the told `stored`, behind the chain `after`, with what it covers of the messages in `waiting`.

    `skips`: whether a message of this sequence and timestamp is decided at the moment of the one before it. `hear` is
    given what operators asked. Raises `Untrusted` where the told is not of these messages, or does not add up.
    """
    recorded = Recorded.read(stored)
    told = recorded.told
    if not 1 <= told.n <= len(waiting) or told.n != len(told.told) or waiting[told.n - 1].seq != told.upto:
        raise covers_others(stored.seq)
    covered = [waiting.popleft() for _ in range(told.n)]
    recorded.verify(after, ((one.seq, one.ts, one.data) for one in covered))
    for one, entry in zip(covered, told.told, strict=True):
        message = read(one.data)
        asks = message.asks if message is not None else None
        if asks and one.kind == "admin":
            hear(one.seq, asks)
        if not retell(wallet, seq=one.seq, ts=one.ts, asks=asks, entry=entry, skipped=skips(one.seq, one.ts)):
            told_otherwise(one.seq, one.data, entry, told=stored.seq)
    return recorded


def covers_others(seq: int) -> Untrusted:
    """The told at `seq` does not say which messages it is of."""
    return Untrusted(f"the told at sequence {seq:,} does not cover the asks before it")


def told_otherwise(seq: int, raw: bytes, entry: Entry, *, told: int) -> NoReturn:
    """The message `raw` at `seq` has this entry in the told at `told`, which is not what this engine decides of it.

    Raises `LaterRelease` if a later release has told it, else `Untrusted`.
    """
    later.check(seq, raw, entry.out)
    raise Untrusted(f"message {seq:,} was told otherwise than this engine decides ({told:,})")
