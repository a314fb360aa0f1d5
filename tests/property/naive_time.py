"""The naive auditor on stamps that are skipped. Written from the design, not from the engine.

*Untold messages in the range of a `clock` take the `at` of the message before it*: a message is skipped if between it
and the told that covers it there lies a `clock` whose range has its stamp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.core.limits import AMOUNT_MAX
from engine.core.messages import AnyAsk, Clock


@dataclass
class Message:
    """One stored message: asks, or a told (`upto` is set)."""

    seq: int
    ts: int
    asks: Sequence[AnyAsk] | None = None
    upto: int | None = None


def skipped(stream: Sequence[Message]) -> set[int]:
    """The sequences of the ask messages whose stamps count for nothing. What is not told yet may be told at the end."""
    found: set[int] = set()
    for place, message in enumerate(stream):
        if message.upto is None:
            for later in stream[place + 1 :]:
                if later.upto is not None and later.upto >= message.seq:
                    break
                if any(covers(ask, message.ts) for ask in later.asks or () if first_of_its_id(ask, later, stream)):
                    found.add(message.seq)
    return found


def covers(ask: AnyAsk, ts: int) -> bool:
    return isinstance(ask, Clock) and 0 <= ask.start <= ts < ask.end <= AMOUNT_MAX


def first_of_its_id(ask: AnyAsk, where: Message, stream: Sequence[Message]) -> bool:
    """Another ask under the id of one that counts is a conflict, or the same again."""
    if not isinstance(ask, Clock):
        return False
    said = [
        (message.seq, one)
        for message in stream
        for one in message.asks or ()
        if isinstance(one, Clock) and one.id == ask.id and 0 <= one.start < one.end <= AMOUNT_MAX
    ]
    return bool(said) and (said[0][0] == where.seq and said[0][1] is ask)
