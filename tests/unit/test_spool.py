"""The spool keeps what it was given, cuts what a crash tore, shows what was damaged, and belongs to one process."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import structlog

from engine import spool_file
from engine.ask_bytes import decode, encode
from engine.core.messages import Settle
from engine.errors import Misconfigured
from engine.spool import Slip, Spool
from engine.spool_file import SpoolFile

ROOT = Path(__file__).parents[2]

KEEPS_AND_WAITS = """
import sys
from pathlib import Path
from engine.spool_file import SpoolFile

file = SpoolFile.make(Path(sys.argv[1]))
file.keep([(b'{"ask":"settle","hold":"a"}', 1), (b'{"ask":"settle","hold":"b"}', 1)])
print("kept", flush=True)
sys.stdin.readline()
"""


def settle(hold: str) -> tuple[bytes, int]:
    return encode([Settle(hold, {"usd": 1})]), 1


def holds(file: SpoolFile) -> list[str]:
    """Whose settles are kept."""
    asks = [ask for kept in file.kept.values() for ask in decode(kept.asks)]
    return [ask.hold for ask in asks if isinstance(ask, Settle)]


def left_behind(folder: Path, *names: str) -> Path:
    """A file whose process has died, with a settle of each hold."""
    file = SpoolFile.make(folder)
    file.keep([settle(name) for name in names])
    os.close(file._descriptor)
    return file.path


def adopted(path: Path) -> SpoolFile:
    file = SpoolFile.take(path)
    assert file is not None
    return file


# --- the file ---------------------------------------------------------------------------------------------------------


def test_what_was_kept_and_not_struck_is_found_again_in_order(tmp_path: Path) -> None:
    file = SpoolFile.make(tmp_path)
    first, second = file.keep([settle("a"), settle("b")])
    (third,) = file.keep([(encode([Settle("c", {"usd": 1}), Settle("d", release=True)]), 2)])
    file.strike([second])
    file.close()
    found = adopted(file.path)
    assert (list(found.kept), holds(found), found.count) == ([first, third], ["a", "c", "d"], 3)
    assert found.keep([settle("e")]) == [third + 1]


def test_once_all_is_struck_the_file_is_empty_and_goes_with_its_process(tmp_path: Path) -> None:
    file = SpoolFile.make(tmp_path)
    file.strike(file.keep([settle("a"), settle("b")]))
    assert file.path.read_bytes() == b""
    assert file.keep([settle("c")]) == [3], "no number stands for two things"
    file.strike([3])
    file.close()
    assert list(tmp_path.iterdir()) == []


def test_a_line_can_be_read_by_a_person(tmp_path: Path) -> None:
    file = SpoolFile.make(tmp_path)
    file.keep([settle("a")])
    length, checksum, body = file.path.read_bytes().split(b" ", 2)
    assert body == b'{"n":1,"asks":[{"ask":"settle","hold":"a","amounts":{"usd":1}}]}\n'
    assert (int(length, 16), len(checksum)) == (len(body) - 1, 16)


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    file = SpoolFile.make(tmp_path / "spool" / "main")
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert file.path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_torn_tail_is_cut_and_reported_and_what_stands_before_it_is_kept(tmp_path: Path, cut: int) -> None:
    path = left_behind(tmp_path, "a", "b", "c")
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    with structlog.testing.capture_logs() as logs:
        file = adopted(path)
    assert holds(file) == ["a", "b"]
    torn = len(whole) // 3 - cut
    assert logs == [{"event": "spool_tail_cut", "log_level": "warning", "file": path.name, "bytes": torn}]
    file.keep([settle("d")])
    file.close()
    assert holds(adopted(path)) == ["a", "b", "d"]


def test_whichever_bit_flips_the_other_records_stay_and_the_damaged_one_is_set_aside(tmp_path: Path) -> None:
    path = left_behind(tmp_path, "a", "b", "c")
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for place in range(len(lines[0]), len(lines[0] + lines[1])):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << place % 8
        path.write_bytes(flipped)
        with structlog.testing.capture_logs() as logs:
            file = adopted(path)
        os.close(file._descriptor)
        last = place == len(lines[0] + lines[1]) - 1  # the end of its line: the two become one
        assert holds(file) == (["a"] if last else ["a", "c"])
        assert [line["event"] for line in logs] == ["spool_damaged"]
        aside = path.with_suffix(".damaged")
        assert aside.read_bytes().rstrip(b"\n") in bytes(flipped)
        aside.unlink()


def test_a_file_of_zeros_is_no_record(tmp_path: Path) -> None:
    """What a power cut leaves of a file whose size was written and whose blocks were not."""
    path = left_behind(tmp_path, "a")
    with path.open("ab") as file:
        file.write(bytes(4096))
    assert holds(adopted(path)) == ["a"]


def test_it_takes_so_many_asks_and_so_many_bytes_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_file, "ASKS_MAX", 3)
    monkeypatch.setattr(spool_file, "BYTES_MAX", 400)
    file = SpoolFile.make(tmp_path)
    assert file.fits(3, 400)
    assert not file.fits(4, 10)
    assert not file.fits(1, 401)
    (first, _) = file.keep([settle("a"), settle("b")])
    assert not file.fits(2, 10)
    assert not file.fits(1, 300)
    file.strike([first])
    assert file.fits(2, 100)


def test_what_was_struck_does_not_fill_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_file, "BYTES_MAX", 1_000)
    file = SpoolFile.make(tmp_path)
    file.keep([settle("stays")])
    for _ in range(20):
        file.strike(file.keep([settle("goes")]))
    assert file.worn
    file.rewrite()
    assert not file.worn
    assert file.keep([settle("new")]) == [22]
    file.strike([1])
    file.close()
    (path,) = tmp_path.iterdir()
    assert holds(adopted(path)) == ["new"]


# --- a disk that fails ------------------------------------------------------------------------------------------------


@contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    """This process's disk is full from so many bytes on."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_write_that_fails_half_way_leaves_nothing_of_itself(tmp_path: Path) -> None:
    file = SpoolFile.make(tmp_path)
    file.keep([settle("a")])
    before = file.path.read_bytes()
    with no_file_longer_than(len(before) + 20), pytest.raises(OSError, match="File too large"):
        file.keep([settle("b"), settle("c")])
    assert (file.path.read_bytes(), file.count) == (before, 1)
    file.keep([settle("d")])
    file.close()
    assert holds(adopted(file.path)) == ["a", "d"]


async def test_a_slip_that_the_disk_refused_says_so_and_may_be_handed_in_again(tmp_path: Path) -> None:
    async with Spool.opened(tmp_path) as spool:
        with structlog.testing.capture_logs(), no_file_longer_than(10):
            slip = spool.keep(*settle("a"))
            await spool.flush()
        assert (slip.state, slip.why) == ("failed", "the disk did not take it (File too large)")
        again = spool.keep(*settle("a"))
        await spool.flush()
        assert (again.state, spool.depth) == ("kept", 1)


# --- the spool --------------------------------------------------------------------------------------------------------


async def kept(spool: Spool, *names: str) -> list[Slip]:
    slips = [spool.keep(*settle(name)) for name in names]
    assert {slip.state for slip in slips} == {"waiting"}
    await spool.flush()
    assert {slip.state for slip in slips} == {"kept"}
    return slips


async def test_what_a_client_leaves_the_next_one_adopts_and_once_it_is_struck_nobody_finds_it(tmp_path: Path) -> None:
    async with Spool.opened(tmp_path) as spool:
        await kept(spool, "a", "b")
    async with Spool.opened(tmp_path) as spool:
        assert [slip.asks for slip in spool.adopted] == [settle("a")[0], settle("b")[0]]
        assert spool.depth == 2
        spool.strike(spool.adopted[0])
        await kept(spool, "c")
    async with Spool.opened(tmp_path) as spool:
        assert sorted(slip.asks for slip in spool.adopted) == [settle("b")[0], settle("c")[0]]
        for slip in spool.adopted:
            spool.strike(slip)
        await spool.flush()
        assert (spool.depth, len(files_in(tmp_path))) == (0, 1)
    assert files_in(tmp_path) == []


def files_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


@contextmanager
def another_process(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """One that has kept something there and lives."""
    command = [sys.executable, "-c", KEEPS_AND_WAITS, str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"kept\n"
        yield process


async def test_the_file_of_a_process_that_lives_is_not_adopted_and_that_of_one_killed_is(tmp_path: Path) -> None:
    with another_process(tmp_path) as process:
        async with Spool.opened(tmp_path) as spool:
            assert spool.adopted == []
        process.send_signal(signal.SIGKILL)
        process.wait()
        async with Spool.opened(tmp_path) as spool, Spool.opened(tmp_path) as another:
            assert [slip.asks for slip in spool.adopted] == [
                b'{"ask":"settle","hold":"a"}', b'{"ask":"settle","hold":"b"}'
            ]  # fmt: skip
            assert another.adopted == [], "one adopts, not two"


async def test_what_is_on_the_stream_before_it_is_on_disk_is_never_written(tmp_path: Path) -> None:
    async with Spool.opened(tmp_path) as spool:
        slip = spool.keep(*settle("a"))
        spool.strike(slip)
        await spool.flush()
        assert (slip.state, spool.depth) == ("waiting", 0)


async def test_what_is_on_the_stream_while_it_is_being_written_is_struck_after(tmp_path: Path) -> None:
    async with Spool.opened(tmp_path) as spool:
        slip = spool.keep(*settle("a"))
        writing = asyncio.create_task(spool.flush())
        await asyncio.sleep(0)
        assert spool._waiting == [], "the round has taken it"
        spool.strike(slip)
        await writing
        await spool.flush()
        assert spool.depth == 0


async def test_a_folder_that_somebody_removed_is_made_again_with_all_that_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    async with Spool.opened(folder) as spool:
        await kept(spool, "a")
        shutil.rmtree(folder)
        await kept(spool, "b")
    async with Spool.opened(folder) as spool:
        assert [slip.asks for slip in spool.adopted] == [settle("a")[0], settle("b")[0]]


async def test_of_many_that_come_at_once_as_many_are_kept_as_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool_file, "ASKS_MAX", 2)
    async with Spool.opened(tmp_path) as spool:
        slips = [spool.keep(*settle(name)) for name in "abc"]
        await spool.flush()
        assert [slip.state for slip in slips] == ["kept", "kept", "failed"]
        assert slips[2].why == "the spool is full (2 asks)"
        spool.strike(slips[0])
        await kept(spool, "c")


async def test_a_folder_that_cannot_be_made_is_the_operators_to_mend(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Misconfigured, match="PURSE_DATA"):
        async with Spool.opened(tmp_path / "file" / "spool"):
            pytest.fail("it opened")
