"""A log rewritten with fresh chains proves itself; the seals that a witness has seen show it, and where."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from records import seals_of, two_days
from tampering import cut, forked

from engine.journal import Stored
from projector.audit.running import audit
from projector.day_range import parse
from projector.reading import CopySource
from projector.replay import BrokenRecord
from projector.seals.witness import Line


async def audited(stream: Sequence[Stored], witnessed: Sequence[Line]) -> tuple[bool, int]:
    days = parse("2026-11-30..2026-12-01", zone="UTC", now=0)
    report = await audit(CopySource(stream), days, witnessed=witnessed)
    return report.right, report.read["seals"]


async def test_the_seals_that_a_witness_has_seen_stand() -> None:
    stream = two_days()
    lines = seals_of(stream)
    assert [line.seal.day for line in lines] == ["2026-11-30", "2026-12-01"]
    assert await audited(stream, lines) == (True, 2)
    assert await audited(stream, lines[:1]) == (True, 1)
    assert await audited(stream, []) == (True, 0)


@pytest.mark.parametrize(
    ("other", "day", "place", "since"),
    [
        (two_days(first="0.20"), "2026-11-30", 0, None),
        (two_days(second="0.20"), "2026-12-01", 1, 0),
    ],
    ids=["the first day", "the second day"],
)
async def test_m19_a_log_rewritten_with_fresh_chains_is_shown_by_the_witness_alone(
    other: list[Stored], day: str, place: int, since: int | None
) -> None:
    lines = seals_of(two_days())
    assert await audited(other, []) == (True, 0)
    with pytest.raises(BrokenRecord, match=f"the seal of {day}") as broken:
        await audited(other, lines)
    first = lines[since].told + 1 if since is not None else 1
    assert (broken.value.seq, broken.value.covers) == (lines[place].told, (first, lines[place].told))


async def test_the_same_totals_under_another_chain_show_as_well() -> None:
    stream = two_days()

    def mallory(whole: list[Stored]) -> list[Stored]:
        return [msgspec.structs.replace(one, data=one.data.replace(b"alice", b"mallo")) for one in whole]

    other = forked(mallory)(stream)
    assert await audited(other, []) == (True, 0)
    with pytest.raises(BrokenRecord, match="another chain"):
        await audited(other, seals_of(stream))


async def test_a_record_that_was_cut_off_before_a_seal_is_shown() -> None:
    stream = two_days()
    lines = seals_of(stream)
    shorter = cut(lines[1].told - 1)(stream)
    assert await audited(shorter, lines[:1]) == (True, 1)
    with pytest.raises(BrokenRecord, match="does not seal that day") as broken:
        await audited(shorter, lines)
    assert broken.value.seq == lines[1].told
