"""The made-up day: every flag and outcome occurs in it, the audit says right, and a seed makes it again."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.day import NAME, Day
from engine.core.messages import Settled
from engine.journal import Stored
from engine.recorded import Recorded
from projector.audit.report import Report
from projector.audit.running import audit
from projector.day_range import parse
from projector.reading import CopySource

ASKS = 12_000

OUTCOMES = {
    "adjusted", "again", "closed", "conflict", "cooling", "done", "exhausted", "forgotten", "frozen", "held", "late",
    "observed", "planned", "revoked", "settled", "stray", "unknown",
}  # fmt: skip
FLAGS = {
    "again", "closed", "conflict", "corrected", "estimated", "forgotten", "invalid", "lapsed", "late", "overrun",
    "refused: busy", "refused: cooling", "refused: frozen", "refused: late", "refused: never", "refused: revoked",
    "refused: spent", "refused: tier", "stray", "unheld", "unknown", "unreported",
}  # fmt: skip


@pytest.fixture(scope="module")
def stream() -> list[Stored]:
    return list(Day(ASKS, loss=True))


async def report_of(stream: list[Stored]) -> Report:
    return await audit(CopySource(stream), parse(NAME, zone="UTC", now=0))


async def test_every_flag_and_outcome_occurs_and_the_audit_says_right(stream: list[Stored]) -> None:
    report = await report_of(stream)
    assert report.right, (report.difference, report.wrong, report.totals_differ)
    assert (OUTCOMES - report.outcomes.keys(), FLAGS - report.flags.keys()) == (set(), set())
    assert report.asks >= ASKS
    assert {act["what"] for act in report.operators} >= {
        "adjust", "clock", "freeze", "loss", "plan", "restore", "revoke", "thaw",
    }  # fmt: skip
    assert ([seal["day"] for seal in report.seals], report.over, bool(report.read["lost"])) == ([NAME], True, True)
    assert report.after["settled"]["count"] > 0


async def test_lapses_are_charged_and_released_and_holds_come_by_cheaper_options(stream: list[Stored]) -> None:
    entries = [entry for one in stream if one.kind == "told" for entry in Recorded.read(one).told.told]
    lapses = [lapse for entry in entries for lapse in entry.lapsed]
    assert {any(lapse.charged.values()) for lapse in lapses} == {True, False}
    options = Counter(out.option for entry in entries for out in entry.out if hasattr(out, "option"))
    assert set(options) == {0, 1, 2}
    released = [out for entry in entries for out in entry.out if isinstance(out, Settled) and out.released]
    assert released
    assert any(entry.sealed for entry in entries)


def test_a_seed_makes_the_same_day_and_another_seed_another(stream: list[Stored]) -> None:
    assert list(Day(ASKS, loss=True)) == stream
    assert list(Day(2_000, seed=2)) != list(Day(2_000))


def test_messages_are_of_many_sizes(stream: list[Stored]) -> None:
    entries = [entry for one in stream if one.kind == "told" for entry in Recorded.read(one).told.told]
    sizes = [len(entry.out) for entry in entries]
    assert min(sizes) <= 1
    assert max(sizes) > 200
