"""Visits: ten questions and sixty estimates a minute, in bounded memory."""

from __future__ import annotations

import pytest

from engine.core import limits, visits
from engine.core.messages import Counted, VisitKind
from engine.core.visits import MINUTE_NS, Visits

NOON = 28_000_000 * MINUTE_NS
SECOND = 1_000_000_000


@pytest.mark.parametrize(("kind", "allowed"), [("ask", 10), ("estimate", 60)])
def test_one_more_than_the_limit_waits_for_the_next_minute(kind: VisitKind, allowed: int) -> None:
    counts = Visits()
    assert [counts.count(b"a", kind, NOON + n) for n in range(allowed)] == [Counted()] * allowed
    assert counts.count(b"a", kind, NOON + 20 * SECOND) == Counted(40, NOON + MINUTE_NS)
    assert counts.count(b"a", kind, NOON + MINUTE_NS - 1) == Counted(1, NOON + MINUTE_NS)
    assert counts.count(b"a", kind, NOON + MINUTE_NS) == Counted()


def test_visitors_and_kinds_are_counted_apart() -> None:
    counts = Visits()
    for _ in range(11):
        counts.count(b"a", "ask", NOON)
    assert counts.count(b"b", "ask", NOON) == Counted()
    assert counts.count(b"a", "estimate", NOON) == Counted()


def test_a_clock_that_steps_back_brings_no_new_visits() -> None:
    counts = Visits()
    for _ in range(10):
        counts.count(b"a", "ask", NOON)
    assert counts.count(b"a", "ask", NOON - 30 * SECOND) == Counted(90, NOON + MINUTE_NS)


def test_a_flood_of_visitors_leaves_memory_bounded_and_those_who_were_there_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "VISITORS_MAX", 3)
    counts = visits.Visits()
    for name in (b"a", b"b", b"c"):
        assert counts.count(name, "ask", NOON) == Counted()
    assert counts.count(b"d", "ask", NOON).wait_s == 60
    assert counts.count(b"a", "ask", NOON) == Counted()
    assert counts.count(b"d", "ask", NOON + MINUTE_NS) == Counted()
