"""The seals of a record held against those that a witness has seen: a record that was made anew shows, and its day.

Lines of a witness come from its file, or from a copy that was carried where nobody can reach who can write the stream.
What was lost with an operator's word is excused, as receipts are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.core.messages import Seal
from engine.losses import Contradiction, KnownLosses
from projector.replay import Answered, BrokenRecord
from projector.seals.witness import Line


class SealsHeld:
    """`witnessed`: what must stand on the record. `compared`: how many seals did."""

    def __init__(self, witnessed: Iterable[Line], losses: KnownLosses) -> None:
        self.compared = 0
        self.unwitnessed = 0
        self._lines: dict[str, list[Line]] = {}
        for line in witnessed:
            self._lines.setdefault(line.seal.day, []).append(line)
        self._losses = losses
        self._agreed = 0  # the newest told that a witness has seen as it stands

    def fold(self, answered: Answered) -> None:
        """Raises `BrokenRecord` at the first seal that a witness has seen otherwise."""
        if answered.entry.sealed:
            self._compare_all(answered, answered.entry.sealed)

    def finish(self) -> None:
        """The record has been read to its end: whatever a witness has seen beyond it is gone."""
        for lines in self._lines.values():
            for line in lines:
                if not self._excused(line):
                    raise BrokenRecord(
                        f"a witness has seen the seal of {line.seal.day} at sequence {line.told:,}, but the record "
                        "does not seal that day",
                        seq=line.told,
                        covers=(self._agreed + 1, line.told),
                    )

    def _compare_all(self, answered: Answered, seals: Sequence[Seal]) -> None:
        for seal in seals:
            here = Line(answered.told, answered.chain.hex(), answered.entry.seq, answered.entry.at, seal)
            lines = self._lines.pop(seal.day, [])
            for line in lines:
                if line != here and not self._excused(line):
                    raise BrokenRecord(_otherwise(line, here), seq=line.told, covers=(self._agreed + 1, line.told))
            self.compared += bool(lines)
            self.unwitnessed += not lines
            if lines:
                self._agreed = answered.told

    def _excused(self, line: Line) -> bool:
        return self._losses.covering(Contradiction(line.told, line.told, "")) is not None


def _otherwise(line: Line, here: Line) -> str:
    what = "totals" if line.seal != here.seal else "chain" if line.told == here.told else "place"
    return (
        f"the seal of {line.seal.day}, which a witness has seen at sequence {line.told:,}, has another {what} now: "
        "the record up to there is not the one that was told"
    )
