"""Who spent a budget in one period: by model, user, key and a few labels more. It adds up; it never decides.

Only so many values of a label are told apart, those that came first; what comes beyond is added up together and said
so. All of it follows from the stream alone, so that whoever folds again comes to the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import nsmallest

import msgspec

from engine.core.documents import Breakdown, Spent

LABELS = ("model", "user", "key")  # always broken down
TAGS_MAX = 5  # other labels, those that come first
LEFT_OUT = frozenset({"origin"})  # where a caller is, not what the money is for
VALUES_MAX = 5_000  # of one label in one budget and period: 1.3 MB
TOP = 20
WHO_MAX = 4_096  # sets of labels whose rows are looked up once


class Known(msgspec.Struct, frozen=True):
    """What a snapshot remembers of the spenders of one budget and period: rows by label, in order of coming."""

    rows: dict[str, list[Spent]]
    beyond: dict[str, Spent]
    all: Spent
    more_labels: bool = False


class Spenders:
    """The spenders of one budget in one period."""

    __slots__ = ("_all", "_beyond", "_rows", "_who", "more_labels")

    def __init__(self) -> None:
        self._rows: dict[str, dict[str | None, Spent]] = {label: {} for label in LABELS}
        self._beyond: dict[str, Spent] = {}
        self._all = Spent()  # of every call
        self._who: dict[int, tuple[Mapping[str, str], list[Spent]]] = {}
        self.more_labels = False

    def of(self, labels: Mapping[str, str]) -> list[Spent]:
        """The rows of a call with these labels, for whoever counts it: one a label, and that of all.

        Calls with the same labels mostly share them, and a call is charged with those it was held with: they are found
        by what they are, not by what they say.
        """
        found = self._who.get(id(labels))
        return found[1] if found is not None and found[0] is labels else self._find(labels)

    def forget_rows(self) -> None:
        """Find each call's rows anew: what was found is only kept because it is fast."""
        self._who.clear()

    # --- rows ---------------------------------------------------------------------------------------------------------

    def _find(self, labels: Mapping[str, str]) -> list[Spent]:
        if not labels.keys() <= self._rows.keys():
            self._begin_tags(labels)
        if len(self._who) >= WHO_MAX:
            self._who.clear()
        get = labels.get
        found = [self._all]
        for label, rows in self._rows.items():
            value = get(label)
            found.append(rows.get(value) or self._new(label, rows, value))
        self._who[id(labels)] = labels, found
        return found

    def _begin_tags(self, labels: Mapping[str, str]) -> None:
        for label in labels:
            if label in self._rows or label in LEFT_OUT:
                continue
            if len(self._rows) >= len(LABELS) + TAGS_MAX:
                self.more_labels = True
                continue
            spent = self._all
            unlabelled = Spent(None, spent.settled, spent.holds, spent.refused)  # all calls so far were without it
            self._rows[label] = {None: unlabelled} if any((spent.settled, spent.holds, spent.refused)) else {}
            self._who.clear()

    def _new(self, label: str, rows: dict[str | None, Spent], value: str | None) -> Spent:
        if len(rows) >= VALUES_MAX:
            return self._beyond.setdefault(label, Spent())
        found = rows[value] = Spent(value)
        return found

    # --- showing and keeping ------------------------------------------------------------------------------------------

    def breakdowns(self, settled: int) -> list[Breakdown]:
        """Those of every label; all their rows add up to `settled`, of which some may be of no call."""
        return [self._breakdown(label, list(rows.values()), settled) for label, rows in self._rows.items()]

    def _breakdown(self, label: str, rows: list[Spent], settled: int) -> Breakdown:
        top = nsmallest(TOP, rows, key=lambda one: (-one.settled, -one.holds, -one.refused, one.value or ""))
        other = Spent(
            None,
            settled - sum(one.settled for one in top),
            self._all.holds - sum(one.holds for one in top),
            self._all.refused - sum(one.refused for one in top),
        )
        return Breakdown(label, top, other, len(rows) - len(top), label in self._beyond)

    def known(self) -> Known:
        rows = {label: list(rows.values()) for label, rows in self._rows.items()}
        return Known(rows, self._beyond, self._all, self.more_labels)

    @classmethod
    def restored(cls, known: Known) -> Spenders:
        spenders = cls()
        spenders._rows = {label: {one.value: one for one in rows} for label, rows in known.rows.items()}
        spenders._beyond, spenders._all = dict(known.beyond), known.all
        spenders.more_labels = known.more_labels
        return spenders
