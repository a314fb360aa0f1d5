"""What only a later release could have written, told apart from what was changed: this one must stop there and say so.

A plan that asks for rules this release does not know is refused here, and a later one has told it `planned`. Stored
messages of a higher number are read otherwise. Neither is anybody's mistake: with that release the wallet goes on.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from engine.core.messages import MESSAGE_VERSION, AnyAsk, AnyOutcome, ApplyPlan, Planned
from engine.core.plan import RULES
from engine.core.tell import read
from engine.errors import LaterRelease

ADVICE = "a later release of Common Purse wrote this. Go on with that one; nothing here was changed"


class _Versioned(msgspec.Struct, frozen=True):
    v: int = MESSAGE_VERSION


_decoder = msgspec.json.Decoder(_Versioned)


def check(seq: int, raw: bytes, told: Sequence[AnyOutcome]) -> None:
    """Raises `LaterRelease` if only a later release could have told this of the stored ask message `raw` at `seq`."""
    message = read(raw)
    check_rules(seq, message.asks if message is not None else (), told)
    check_version(seq, version_of(raw))


def check_rules(seq: int, asks: Sequence[AnyAsk], told: Sequence[AnyOutcome]) -> None:
    """Raises `LaterRelease` if the message at `seq` put a plan in force that asks for rules unknown here."""
    for ask, outcome in zip(asks, told, strict=False):
        if isinstance(ask, ApplyPlan) and isinstance(outcome, Planned) and ask.plan.rules != RULES:
            raise LaterRelease(
                f"the plan in force since message {seq:,} asks for rules {ask.plan.rules}, this release knows rules "
                f"{RULES}: {ADVICE}"
            )


def check_version(seq: int, version: int) -> None:
    """Raises `LaterRelease` if the stored message at `seq` has a higher number than is read here."""
    if version > MESSAGE_VERSION:
        raise LaterRelease(
            f"sequence {seq:,} is a message of version {version}, this release reads {MESSAGE_VERSION}: {ADVICE}"
        )


def version_of(raw: bytes) -> int:
    """Which number a stored ask message bears, whatever else is in it; that of this release where it bears none."""
    try:
        return _decoder.decode(raw).v
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return MESSAGE_VERSION
