"""Snapshots that an audit leaves: only of what was proved, only where they may be trusted, and not without bound."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from records import recorded, written
from structlog.testing import capture_logs
from tampering import edited, forked
from wallets import Books, moment

import projector.audit.kept
from engine.journal import Stored
from engine.snapshots import FOLDER, SUFFIX, decode
from projector.audit.apart import Task
from projector.audit.kept import OF, UNPROVED, keeping, thin
from projector.audit.moment import wallet_at
from projector.audit.running import audit
from projector.day_range import parse
from projector.export.raw_source import RawSource
from projector.reading import CopySource
from projector.replay import BrokenRecord

EVERY = 10


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        projector.audit.kept.Laying.__init__, "__kwdefaults__", {"start": 0, "end": None, "every": EVERY}
    )


def long_day() -> list[Stored]:
    books = Books(twice=False).at("2026-11-29 23:50")
    for number in range(10):
        books.hold(f"y{number}", "0.01")
    books.at("2026-11-30 00:05")
    for number in range(50):
        books.at(f"2026-11-30 {1 + number // 10:02}:{number % 10 * 5:02}")
        books.hold(f"h{number}", "0.01", user=f"u{number % 3}")
        books.settle(f"h{number}", "0.005")
    books.at("2026-12-01 00:30").tick()
    for number in range(20):
        books.settle(f"s{number}", "0.01")
    return recorded(books)


def kept_in(data: Path) -> list[Path]:
    return sorted((data / FOLDER / "main" / OF).glob("*"))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


async def audited(stream: list[Stored], data: Path, *, apart: Path | None = None) -> bool:
    source = CopySource(stream) if apart is None else RawSource(written(stream, apart / "record.jsonl"))
    task = Task("main", 0, record=str(apart / "record.jsonl")) if apart is not None else None
    days = parse("2026-11-30", zone="UTC", now=moment("2026-11-30 12:00"))
    return (await audit(source, days, apart=task, keep=data)).right


async def test_an_audit_leaves_snapshots_of_its_day_and_the_wallet_at_a_moment_begins_with_them(data: Path) -> None:
    stream = long_day()
    assert await audited(stream, data)
    snapshots = [decode(file.read_bytes(), wallet="main") for file in kept_in(data)]
    assert len(snapshots) >= 9
    assert all(moment("2026-11-30 00:00") <= one.wallet.at < moment("2026-12-01 00:00") for one in snapshots)
    for hour in ("01:10", "03:00", "23:59"):
        at = moment(f"2026-11-30 {hour}")
        whole, soon = await wallet_at(CopySource(stream), at), await wallet_at(CopySource(stream), at, data=data)
        assert soon.start > 0
        assert replace(soon, start=0) == whole


async def test_an_audit_of_the_same_day_again_writes_nothing_new(data: Path) -> None:
    stream = long_day()
    assert await audited(stream, data)
    before = [(file.name, file.read_bytes(), file.stat().st_ino) for file in kept_in(data)]
    assert await audited(stream, data)
    assert [(file.name, file.read_bytes(), file.stat().st_ino) for file in kept_in(data)] == before


async def test_an_audit_in_two_processes_leaves_snapshots_too(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = long_day()
    assert await audited(stream, data, apart=tmp_path)
    [first] = kept_in(data)  # the other process knows the real distance: one, as the day begins
    at = moment("2026-11-30 23:00")
    soon = await wallet_at(CopySource(stream), at, data=data)
    assert (soon.start, first.suffix) == (int(first.stem), SUFFIX)
    assert replace(soon, start=0) == await wallet_at(CopySource(stream), at)


async def test_what_is_not_right_leaves_nothing(data: Path) -> None:
    stream = long_day()
    other = forked(lambda s: s, told=lambda e: replace(e, out=[replace(e.out[0], option=1)]) if e.seq == 60 else e)
    assert not await audited(other(stream), data)
    with pytest.raises(BrokenRecord):
        await audited(edited(60, b'"usd":10000000', b'"usd":20000000')(stream), data)
    assert kept_in(data) == []


async def test_a_snapshot_of_another_record_is_not_used(data: Path) -> None:
    stream = long_day()
    assert await audited(stream, data)
    other = forked(edited(12, b'"user":"u0"', b'"user":"u9"'))(stream)
    at = moment("2026-11-30 12:00")
    with capture_logs() as logs:
        found = await wallet_at(CopySource(other), at, data=data)
    first = min(int(file.stem) for file in kept_in(data))  # the one from before the change
    assert (found.start, {one["event"] for one in logs}) == (first, {"snapshot_not_used"})
    assert replace(found, start=0) == await wallet_at(CopySource(other), at)


async def test_a_moment_leaves_snapshots_where_it_was_asked_to(data: Path) -> None:
    stream = long_day()
    at = moment("2026-11-30 12:00")
    await wallet_at(CopySource(stream), at, data=data)
    assert not (data / FOLDER).exists()
    whole = await wallet_at(CopySource(stream), at, data=data, keep=True)
    soon = await wallet_at(CopySource(stream), at, data=data, keep=True)
    assert (whole.start, soon.start > 0, replace(soon, start=0)) == (0, True, whole)


async def test_a_folder_that_cannot_be_written_or_is_not_there_stops_no_audit(data: Path, tmp_path: Path) -> None:
    (data / FOLDER).write_text("a file where the folder should be")
    with capture_logs() as logs:
        assert await audited(long_day(), data)
    assert [one["event"] for one in logs] == ["snapshots_not_kept"]
    assert await audited(long_day(), tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_what_an_audit_that_was_killed_has_left_is_cleared_away_and_what_runs_is_let_be(data: Path) -> None:
    with keeping(data, "main") as running:
        assert running is not None
        abandoned = running.folder.parent / f"dead{UNPROVED}"
        abandoned.mkdir()
        (abandoned / f"1{UNPROVED}").write_bytes(b"x")
        with keeping(data, "main") as other:
            assert other is not None
            assert (running.folder.is_dir(), abandoned.exists()) == (True, False)
    assert kept_in(data) == []


def test_too_many_are_thinned_where_they_stand_closest(tmp_path: Path) -> None:
    for told in (10, 100, 110, 200, 300):
        (tmp_path / f"{told:020}{SUFFIX}").write_bytes(b"x" * 10)
    thin(tmp_path, most=3)
    assert sorted(int(file.stem) for file in tmp_path.iterdir()) == [100, 200, 300]
    thin(tmp_path, bytes_max=20)
    assert sorted(int(file.stem) for file in tmp_path.iterdir()) == [200, 300]
    thin(tmp_path, bytes_max=9)
    assert list(tmp_path.iterdir()) == []
