"""The witness of seals: each line once, whole, on the disk; and what contradicts it is seen."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Event

import msgspec
import pytest
from structlog.testing import capture_logs

from commonpurse.sealed_days import differing, in_words, wrong_in_words
from engine.core.messages import Seal, SealedBudget
from projector.seals.witness import Known, Line, SealWitness, known, path_of


def line(day: str, *, settled: int = 5, told: int = 12) -> Line:
    return Line(told, "ab" * 32, told - 1, 99, Seal(day, 86_400, 4, 0, {"jev": SealedBudget(day, 100, settled)}))


def file_of(data: Path) -> Path:
    return path_of(data, "main")


def wrote(data: Path, *lines: Line) -> SealWitness:
    witness = SealWitness(data, "main")
    for one in lines:
        witness.see(one)
    witness.write()
    return witness


FIRST, SECOND_DAY = line("2026-11-30"), line("2026-12-01")


def test_each_seal_is_a_line_of_the_file(tmp_path: Path) -> None:
    wrote(tmp_path, FIRST, SECOND_DAY)
    written = file_of(tmp_path).read_bytes().splitlines()
    assert [msgspec.json.decode(one, type=Line) for one in written] == [FIRST, SECOND_DAY]
    assert file_of(tmp_path).stat().st_mode & 0o777 == 0o600


def test_what_is_read_again_is_not_written_again(tmp_path: Path) -> None:
    wrote(tmp_path, FIRST)
    before = file_of(tmp_path).read_bytes()
    with capture_logs() as logs:
        wrote(tmp_path, FIRST)
        assert file_of(tmp_path).read_bytes() == before
        wrote(tmp_path, FIRST, SECOND_DAY)
    assert known(file_of(tmp_path)).lines == {"2026-11-30": FIRST, "2026-12-01": SECOND_DAY}
    assert logs == []


def test_another_seal_of_the_same_day_is_an_error_and_the_old_line_stays(tmp_path: Path) -> None:
    wrote(tmp_path, FIRST)
    with capture_logs() as logs:
        wrote(tmp_path, line("2026-11-30", settled=4))
    assert [(one["event"], one["log_level"], one["day"]) for one in logs] == [
        ("seal_contradicted", "error", "2026-11-30")
    ]
    assert known(file_of(tmp_path)).lines == {"2026-11-30": FIRST}


def test_the_same_totals_under_another_chain_contradict_as_well(tmp_path: Path) -> None:
    wrote(tmp_path, FIRST)
    with capture_logs() as logs:
        wrote(tmp_path, msgspec.structs.replace(FIRST, chain="cd" * 32))
    assert [one["event"] for one in logs] == ["seal_contradicted"]


def test_a_line_cut_short_by_a_crash_is_taken_off_and_written_whole(tmp_path: Path) -> None:
    wrote(tmp_path, FIRST, SECOND_DAY)
    whole = file_of(tmp_path).read_bytes()
    file_of(tmp_path).write_bytes(whole[:-20])
    assert known(file_of(tmp_path)).torn > 0
    with capture_logs() as logs:
        wrote(tmp_path, FIRST, SECOND_DAY)
    assert [one["event"] for one in logs] == ["seal_witness_torn"]
    assert file_of(tmp_path).read_bytes() == whole


def test_a_line_that_cannot_be_read_is_reported_and_stays(tmp_path: Path) -> None:
    wrote(tmp_path, FIRST, SECOND_DAY)
    file_of(tmp_path).write_bytes(file_of(tmp_path).read_bytes().replace(b'"told"', b"xtoldx", 1))
    with capture_logs() as logs:
        wrote(tmp_path, FIRST)
    assert [(one["event"], one["lines"]) for one in logs] == [("seal_witness_damaged", 1)]
    found = known(file_of(tmp_path))
    assert (found.damaged, found.lines) == (1, {"2026-12-01": SECOND_DAY, "2026-11-30": FIRST})


def test_a_disk_that_takes_nothing_stops_nobody_and_is_tried_again(tmp_path: Path) -> None:
    (tmp_path / "witness").write_text("a file where the folder should be")
    with capture_logs() as logs:
        witness = wrote(tmp_path, FIRST)
    assert [one["event"] for one in logs] == ["seals_not_witnessed"]
    assert not witness.behind  # a snapshot need not wait for it
    (tmp_path / "witness").unlink()
    witness.write()
    assert known(file_of(tmp_path)).lines == {"2026-11-30": FIRST}


def test_a_snapshot_waits_for_the_seal_that_nobody_would_read_again(tmp_path: Path) -> None:
    witness = SealWitness(tmp_path, "main")
    assert not witness.behind
    witness.see(FIRST)
    assert witness.behind
    witness.write()
    assert not witness.behind


async def test_a_projector_that_stops_while_a_line_is_being_written_does_not_write_it_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness, began, go_on = SealWitness(tmp_path, "main"), Event(), Event()
    append = witness._append

    def slow(path: Path, lines: list[Line]) -> None:
        began.set()
        assert go_on.wait(30)
        append(path, lines)

    monkeypatch.setattr(witness, "_append", slow)
    witness.see(FIRST)
    keeping = asyncio.create_task(witness.keep())
    await asyncio.to_thread(began.wait, 30)
    keeping.cancel()
    await asyncio.wait([keeping])
    stopping = asyncio.create_task(asyncio.to_thread(witness.write))
    go_on.set()
    await stopping
    assert len(file_of(tmp_path).read_bytes().splitlines()) == 1


def test_without_a_data_folder_nothing_is_kept() -> None:
    witness = SealWitness(None, "main")
    witness.see(FIRST)
    witness.write()
    assert not witness.behind


# --- held against the stream ------------------------------------------------------------------------------------------


def test_days_that_the_stream_seals_otherwise_or_no_more_are_named() -> None:
    witnessed = Known({"2026-11-30": FIRST, "2026-12-01": SECOND_DAY, "2026-12-02": line("2026-12-02")})
    on_stream = [FIRST, line("2026-12-01", settled=4)]
    assert differing(on_stream, witnessed) == ["2026-12-01", "2026-12-02"]
    said = wrong_in_words(["2026-12-01", "2026-12-02"], lost=False)
    assert "2026-12-01, 2026-12-02." in said
    assert "No loss was accepted" in said
    assert "A loss was accepted" in wrong_in_words(["2026-12-01"], lost=True)


def test_many_days_are_counted_not_listed() -> None:
    assert "and 3 more." in wrong_in_words([f"2026-12-0{day}" for day in range(1, 9)], lost=False)


def test_what_the_witness_has_not_seen_is_no_contradiction() -> None:
    assert differing([FIRST, SECOND_DAY], Known({"2026-11-30": FIRST})) == []
    assert in_words([FIRST, SECOND_DAY], Known({"2026-11-30": FIRST})).endswith("Their witness lacks 1 of them.")
    assert in_words([FIRST], Known({"2026-11-30": FIRST})).endswith("Their witness has seen each of them so.")
    assert in_words([], Known({})).startswith("No day is sealed yet")
