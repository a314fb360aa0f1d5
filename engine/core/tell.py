"""One ask message, from its asks to its entry: decide and evolve in the one order that is allowed.

`tell` is what an engine, a simulator or an auditor runs; `fold` takes a recorded entry into the state without judging.
Both leave a wallet in the same state, byte for byte.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from engine.core import evolve, limits, seals
from engine.core.decide import decide
from engine.core.messages import (
    MESSAGE_VERSION,
    Again,
    AnyAsk,
    AnyOutcome,
    AskMessage,
    Entry,
    Hold,
    Invalid,
    Lapsed,
    Seal,
)
from engine.core.wallet import Wallet

LABELS_SHARED_MAX = 16_384  # sets of labels, 1 KB each

UNREADABLE: list[AnyOutcome] = [Invalid("", "message", "not an ask message of version 1, or too large")]
"""What a message is told whose bytes are none."""

_decoder = msgspec.json.Decoder(AskMessage)


def read(raw: bytes) -> AskMessage | None:
    """The ask message in these bytes, or None: it cannot be read, or carries more than a message may."""
    if len(raw) > limits.MESSAGE_BYTES_MAX:
        return None
    try:
        message = _decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    if message.v != MESSAGE_VERSION or len(message.asks) > limits.MESSAGE_ASKS_MAX:
        return None
    for ask in message.asks:
        if type(ask) is Hold and ask.labels:
            msgspec.structs.force_setattr(ask, "labels", _shared(tuple(ask.labels.items())))
    return message


@lru_cache(maxsize=LABELS_SHARED_MAX)
def _shared(labels: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """One dict for all holds with the same labels: a fifth of what an open hold takes, and callers are few."""
    return dict(labels)


def tell(
    wallet: Wallet,
    *,
    seq: int,
    ts: int,
    asks: Sequence[AnyAsk] | None,
    heard: list[AnyOutcome] | None = None,
    skipped: bool = False,
) -> Entry:
    """Decide one ask message at its own moment and take the outcomes in. `asks` is None where it could not be read.

    `skipped`: a `clock` says that its timestamp is wrong, so its moment is that of the message before.

    `heard`, if given, is filled with the outcomes as their callers hear them: whoever asks again gets the first answer
    too, which never goes on the record a second time.
    """
    lapsed, sealed = begin(wallet, seq=seq, ts=ts, skipped=skipped)
    at = wallet.at
    if asks is None:
        if heard is not None:
            heard += UNREADABLE
        return Entry(seq, at, lapsed, UNREADABLE.copy(), sealed)
    out: list[AnyOutcome] = []
    for ask in asks:
        outcome = decide(wallet, ask, at)
        evolve.evolve(wallet, ask, outcome)
        out.append(outcome)
        if heard is not None:
            heard.append(_with_first(wallet, ask, outcome) if type(outcome) is Again else outcome)
    return Entry(seq, at, lapsed, out, sealed)


def begin(wallet: Wallet, *, seq: int, ts: int, skipped: bool) -> tuple[list[Lapsed], list[Seal]]:
    """Time passes to a message's own moment: what lapses before it, and the days that end before it."""
    at = wallet.at if skipped else wallet.moment(ts)
    before = wallet.upto
    evolve.begin(wallet, seq=seq, at=at)
    lapsed = wallet.due(at, most=limits.LAPSES_MAX)
    sealed: list[Seal] = []
    if at < wallet.day_ends:
        for hold in lapsed:
            evolve.lapse(wallet, hold)
    else:
        sealed = _lapse_and_seal(wallet, lapsed, upto=before)
    evolve.settle_in(wallet)
    return lapsed, sealed


def _lapse_and_seal(wallet: Wallet, lapsed: Sequence[Lapsed], *, upto: int) -> list[Seal]:
    """The holds lapse, and each day that is over is sealed between those due before its end and the others."""
    sealed, waiting = [], deque(lapsed)
    for day, end in seals.days_over(wallet, wallet.at):
        while waiting and wallet.open[waiting[0].hold].expires_at < end:
            evolve.lapse(wallet, waiting.popleft())
        sealed.append(seals.seal_of(wallet, day=day, end=end, upto=upto))
    for hold in waiting:
        evolve.lapse(wallet, hold)
    return sealed


def _with_first(wallet: Wallet, ask: AnyAsk, outcome: Again) -> Again:
    return msgspec.structs.replace(outcome, was=wallet.recall(ask, outcome))


def fold(wallet: Wallet, *, seq: int, ts: int, asks: Sequence[AnyAsk] | None, entry: Entry) -> None:
    """Take a recorded entry into the state. Its moment is its own, or by a `clock` that of the entry before."""
    assert entry.seq == seq, "an entry belongs to its own message"
    assert entry.at in (wallet.moment(ts), wallet.at), "an entry has its own message's moment, or the one before"
    evolve.begin(wallet, seq=seq, at=entry.at)
    for hold in entry.lapsed:
        evolve.lapse(wallet, hold)
    evolve.settle_in(wallet)
    for ask, outcome in zip(asks or (), entry.out, strict=asks is not None):
        evolve.evolve(wallet, ask, outcome)
