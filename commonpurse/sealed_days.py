"""The seals on the stream held against the witness of seals: does the record still say what it said of each day?

It only compares. Which days a loss explains is for the operator who accepted it.
"""

from __future__ import annotations

from collections.abc import Sequence

from projector.seals.witness import Known, Line

DAYS_NAMED_MAX = 5


def differing(on_stream: Sequence[Line], witnessed: Known) -> list[str]:
    """The days that the stream seals otherwise than the witness saw, or does not seal any more."""
    told = {line.seal.day: line for line in on_stream}
    return [day for day, line in witnessed.lines.items() if told.get(day) != line]


def in_words(on_stream: Sequence[Line], witnessed: Known) -> str:
    """What is well."""
    if not on_stream:
        return "No day is sealed yet: the first message after a day's end seals it."
    unseen = sum(line.seal.day not in witnessed.lines for line in on_stream)
    rest = f" Their witness lacks {unseen:,} of them." if unseen else " Their witness has seen each of them so."
    sealed = "1 day is" if len(on_stream) == 1 else f"{len(on_stream):,} days are"
    return f"{sealed} sealed.{rest}"


def wrong_in_words(days: Sequence[str], *, lost: bool) -> str:
    """What is not. `lost`: an operator has accepted a loss, which may be why."""
    named = ", ".join(days[:DAYS_NAMED_MAX]) + (
        f" and {len(days) - DAYS_NAMED_MAX:,} more" * (len(days) > DAYS_NAMED_MAX)
    )
    why = (
        "A loss was accepted on this stream; compare the days with it."
        if lost
        else "No loss was accepted: the stream was written anew, or the witness is of another one."
    )
    return f"The stream does not seal as it once did: {named}. {why}"
