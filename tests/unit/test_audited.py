"""What audits said of past days: who may believe it, and for which record."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace
from records import seals_of, two_days

from projector.audited import Audited, SealsRead, earned, earned_of, known, path_of, put_down
from projector.day_range import DayRange, parse
from projector.replay import Replay
from projector.seals.witness import SealWitness

BOTH = parse("2026-11-30..2026-12-01", zone="UTC", now=0)
ONE = parse("2026-11-30", zone="UTC", now=0)


def read(days: DayRange = BOTH) -> SealsRead:
    seals, reading = SealsRead(days), Replay()
    for stored in two_days():
        for answered in reading.take(stored):
            seals.fold(answered)
    return seals


def test_an_audit_speaks_of_the_sealed_days_that_it_was_asked_about() -> None:
    assert [one.day for one in read().audited(at=1, right=True, asks=5)] == ["2026-11-30", "2026-12-01"]
    assert [one.day for one in read(ONE).audited(at=1, right=True, asks=5)] == ["2026-11-30"]


def test_the_newest_word_on_a_day_stands(tmp_path: Path) -> None:
    said = read().audited(at=1, right=True, asks=5)
    put_down(tmp_path, "main", said)
    put_down(tmp_path, "main", [Audited("2026-11-30", 2, False)])
    assert known(tmp_path, "main") == {"2026-11-30": Audited("2026-11-30", 2, False), "2026-12-01": said[1]}
    assert known(tmp_path, "other") == {}


def test_a_line_that_was_cut_short_harms_no_other(tmp_path: Path) -> None:
    said = read().audited(at=1, right=True, asks=5)
    put_down(tmp_path, "main", said[:1])
    with path_of(tmp_path, "main").open("ab") as file:
        file.write(b'{"day": "2026-12-0')
    put_down(tmp_path, "main", said[1:])
    assert list(known(tmp_path, "main").values()) == said


def test_praise_is_earned_by_the_record_that_was_audited_and_by_no_other() -> None:
    said = {one.day: one for one in read().audited(at=1, right=True, asks=5)}
    witnessed = {line.seal.day: line for line in seals_of(two_days())}
    another = {line.seal.day: line for line in seals_of(two_days(first="0.26"))}
    assert earned(said, witnessed) == list(said.values())
    assert earned(said, another) == []
    assert earned(said, {}) == []
    assert [one.day for one in earned(said, {"2026-12-01": witnessed["2026-12-01"]})] == ["2026-12-01"]


def test_blame_holds_for_whatever_record_there_is() -> None:
    wrong = {one.day: replace(one, right=False) for one in read().audited(at=1, right=True, asks=5)}
    assert earned(wrong, {}) == list(wrong.values())


def test_a_projector_hands_out_praise_for_the_seal_that_it_folded_itself(tmp_path: Path) -> None:
    said, lines = read().audited(at=1, right=True, asks=5), seals_of(two_days())
    witness = SealWitness(tmp_path, "main")
    for line in lines:
        witness.see(line)
    witness.write()
    put_down(tmp_path, "main", said)
    sealed = {line.seal.day: line.seq for line in lines}
    assert earned_of(tmp_path, "main", sealed) == said
    assert earned_of(tmp_path, "main", {day: seq + 1 for day, seq in sealed.items()}) == []
    assert earned_of(tmp_path, "main", {}) == []
