"""The read models and the audit add up the same record by two paths: they must come to the same.

The audit hears of every call what it costs more, and in which budgets and periods: added up by label, that is what the
rows must say.
"""

from __future__ import annotations

from collections import defaultdict

import msgspec
import pytest
from recorded_stories import fold as fold_into
from recorded_stories import story

from engine.core.documents import Detail
from engine.core.messages import Amounts
from engine.journal import Stored
from projector.audit.sums import HoldSum, Sums
from projector.projection import Projection
from projector.replay import Replay

SEEDS = range(12)
Rows = dict[tuple[str, str, str], dict[str | None, int]]


class Both:
    """One stream, taken by both paths."""

    def __init__(self, stream: list[Stored], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("projector.days.spenders.TOP", 10_000)  # nothing is in `other` but what is of no call
        self.projection, self.sums = Projection("main"), Sums(self._charged)
        self.rows: Rows = defaultdict(lambda: defaultdict(int))
        self.documents: dict[tuple[str, str], Detail] = {}
        reading = Replay()
        for stored in stream:
            for answered in reading.take(stored):
                self.sums.fold(answered)
                fold_into(self.projection, answered)
        for key in self.projection.details.in_memory():
            document = self.projection.details.document(key)
            assert document is not None
            self.documents[key] = msgspec.json.decode(document, type=Detail)

    def _charged(self, hold: HoldSum, changes: Amounts) -> None:
        """The audit's word of what a hold costs more now, in each budget and period that it counts to."""
        for budget, meter in hold.meters.items():
            change = changes.get(meter.unit, 0)
            for label in ("model", "user", "key"):
                self.rows[budget, meter.total.period, label][hold.labels.get(label)] += change


def test_who_spent_what_is_the_same_by_both_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("property.story.REMEMBER_S", (172_800,))  # so that little is final
    compared = sum(_compared(Both(story(seed, steps=200), monkeypatch)) for seed in SEEDS)
    assert compared > 3 * len(SEEDS), "in some stories all is refused or final, not in all"


def _compared(both: Both) -> int:
    """How many breakdowns were compared, and had anything in them."""
    compared = 0
    for key, detail in both.documents.items():
        if key in both.projection.details.final:  # what came later still is in no row
            continue
        for one in detail.breakdowns:
            if one.label not in ("model", "user", "key"):
                continue
            mine = {spent.value: spent.settled for spent in one.top if spent.settled}
            theirs = {value: settled for value, settled in both.rows[(*key, one.label)].items() if settled}
            assert mine == theirs, (key, one.label)
            assert one.other.settled == both.projection.totals[key].adjusted
            compared += bool(mine)
    return compared


@pytest.mark.parametrize("seed", SEEDS)
def test_totals_and_counts_are_the_same_by_both_paths(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    both = Both(story(seed, steps=200), monkeypatch)
    for key, sums in both.sums.totals.items():
        totals = both.projection.totals[key]
        assert (totals.settled, totals.held, totals.extra) == (sums.settled, sums.held, sums.extra), key
        assert (totals.holds, totals.lapsed, totals.strays) == (sums.holds, sums.lapsed, sums.strays), key
        refused = {why: count for why, count in totals.refused.items() if why != "frozen"}
        assert refused == sums.refused, key
    assert sum(one.open_holds for one in both.projection.totals.values()) == sum(
        len(hold.meters) for hold in both.sums.holds.values() if hold.open
    )
