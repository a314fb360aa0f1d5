"""What a caller did and heard: its own books, kept apart from everything it is going to be compared with."""

from __future__ import annotations

from pathlib import Path

import msgspec

UNIT = "usd"
WIDE, NARROW = "wide", "narrow"  # the lanes, and the budgets that count them; the narrow one runs out


class Heard(msgspec.Struct, frozen=True):
    """An answer as it came: the outcome's name, the sequence of the ask message, that of the told.

    `seq` 0: over HTTP, where nobody hears it.
    """

    outcome: str
    seq: int
    told: int


class Deed(msgspec.Struct, frozen=True):
    """One call. `cost`: what was handed over to be settled, None if there was no permission to call.

    `held` or `settled` None: nobody answered in time. Waits in seconds, as the caller felt them. `asked_anew`: the hold
    was asked for more than once, each time with a later `by`: neither a refusal nor a grant given up binds a later one.
    """

    hold: str
    lane: str
    amount: int
    held: Heard | None
    hold_wait_s: float
    patient: bool = True
    cost: int | None = None
    settled: Heard | None = None
    settle_wait_s: float = 0.0
    asked_anew: bool = False


def keep(path: Path, deeds: list[Deed]) -> None:
    path.write_bytes(msgspec.json.encode(deeds))


def kept(path: Path) -> list[Deed]:
    return msgspec.json.decode(path.read_bytes(), type=list[Deed])
