"""The supervisor with real processes: what dies comes back, what cannot start or must not go on ends the house."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio

from commonpurse import supervisor
from commonpurse.supervisor import Program, Supervisor

WAIT_S = 20.0

LIVES = """
import os, signal, sys
heard, wrote = os.pipe()
signal.signal(signal.SIGTERM, lambda *_: os.write(wrote, b"."))
with open(sys.argv[1], "w") as book:
    print("up", sys.argv[2], os.getpid(), file=book, flush=True)
    os.read(heard, 1)
    print("down", sys.argv[2], os.getpid(), file=book, flush=True)
"""
DEAF = """
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open(sys.argv[1], "w") as book:
    print("up", sys.argv[2], os.getpid(), file=book, flush=True)
signal.pause()
"""


class Line(NamedTuple):
    """What a child wrote into the book."""

    what: str
    who: str
    pid: int


class House:
    """A supervisor at work, and the book (a pipe) its children write into."""

    def __init__(self, folder: Path, book: Path, pages: asyncio.StreamReader) -> None:
        self.folder, self.book, self._pages = folder, book, pages
        self.said: list[str] = []
        self.stop = asyncio.Event()

    def child(self, name: str, script: str = LIVES) -> Program:
        command = [sys.executable, "-c", script, str(self.book), name]
        return Program(name, command, environment=dict(os.environ), logs=self.folder / "logs")

    async def run(self, *children: Program) -> int:
        async with asyncio.timeout(WAIT_S):
            return await Supervisor(children, self.said.append).run(self.stop)

    async def next_line(self) -> Line:
        async with asyncio.timeout(WAIT_S):
            what, who, pid = (await self._pages.readline()).decode().split()
        return Line(what, who, int(pid))

    async def lines(self, count: int) -> list[Line]:
        return [await self.next_line() for _ in range(count)]


@asynccontextmanager
async def pipe(path: Path) -> AsyncIterator[asyncio.StreamReader]:
    """A named pipe that stays open, whoever comes and goes."""
    os.mkfifo(path)
    reader = asyncio.StreamReader()
    end = os.fdopen(os.open(path, os.O_RDWR | os.O_NONBLOCK), "rb", buffering=0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), end)
    try:
        yield reader
    finally:
        transport.close()


@pytest_asyncio.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with pipe(tmp_path / "book") as pages:
        yield House(tmp_path, tmp_path / "book", pages)


async def test_what_is_killed_is_started_again(house: House) -> None:
    running = asyncio.create_task(house.run(house.child("engine"), house.child("web")))
    first = {line.who: line.pid for line in await house.lines(2)}
    os.kill(first["engine"], signal.SIGKILL)
    assert (await house.next_line())[:2] == ("up", "engine")
    house.stop.set()
    assert await running == 0
    assert [line.who for line in await house.lines(2)] == ["web", "engine"]
    assert house.said == ["engine was ended by SIGKILL: starting it again"]


async def test_being_killed_often_is_no_reason_to_give_up(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "BACKOFF_S_MAX", 0.01)
    running = asyncio.create_task(house.run(house.child("engine")))
    for _ in range(supervisor.QUICK_FAILURES_MAX + 1):
        os.kill((await house.next_line()).pid, signal.SIGKILL)
    assert (await house.next_line()).what == "up"
    house.stop.set()
    assert await running == 0


async def test_the_front_ends_first_and_the_server_last(house: House) -> None:
    names = ["server", "engine", "projector", "web"]
    running = asyncio.create_task(house.run(*map(house.child, names)))
    assert sorted(line.who for line in await house.lines(4)) == sorted(names)
    house.stop.set()
    assert await running == 0
    assert [line.who for line in await house.lines(4)] == names[::-1]


async def test_a_child_that_will_not_end_is_killed(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "STOP_WAIT_S", 0.1)
    deaf = house.child("deaf", DEAF)
    running = asyncio.create_task(house.run(deaf))
    await house.next_line()
    house.stop.set()
    assert await running == 0
    assert await deaf.wait() == -signal.SIGKILL


async def test_distrust_of_the_stream_ends_the_house_with_4(house: House) -> None:
    distrusts = house.child("engine", "import sys; print('sequence 7 is gone', file=sys.stderr); sys.exit(4)")
    assert await house.run(house.child("server"), distrusts) == 4
    assert house.said == ["engine cannot trust the stream: everything stops\n    sequence 7 is gone"]


async def test_a_child_that_cannot_start_ends_the_house_with_1(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "BACKOFF_S_MAX", 0.01)
    server = house.child("server")
    broken = house.child("web", "import sys; print('no such port', file=sys.stderr); sys.exit(2)")
    assert await house.run(server, broken) == 1
    assert house.said == [
        *["web ended with status 2: starting it again\n    no such port"] * (supervisor.QUICK_FAILURES_MAX - 1),
        "web ended with status 2, 5 times in a row: giving up\n    no such port",
    ]
    assert [line.what for line in await house.lines(2)] == ["up", "down"]
    assert await server.wait() == 0


async def test_a_child_that_lived_long_starts_its_count_anew(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "QUICK_S", 0.0)  # any life is long
    monkeypatch.setattr(supervisor, "BACKOFF_S_MIN", 0.01)
    fails = house.child("web", "import sys; print('up web 1', file=open(sys.argv[1], 'w')); sys.exit(1)")
    running = asyncio.create_task(house.run(fails))
    assert await house.lines(supervisor.QUICK_FAILURES_MAX + 1)
    house.stop.set()
    assert await running == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
async def test_children_do_not_outlive_a_killed_supervisor(house: House) -> None:
    script = f"""
import asyncio, os, sys
from pathlib import Path
from commonpurse.supervisor import Program, Supervisor
child = Program("engine", [sys.executable, "-c", {LIVES!r}, {str(house.book)!r}, "engine"],
                environment=dict(os.environ), logs=Path({str(house.folder)!r}))
asyncio.run(Supervisor([child], print).run(asyncio.Event()))
"""
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    up = await house.next_line()
    parent.kill()
    await parent.wait()
    assert await house.next_line() == Line("down", "engine", up.pid)


async def test_a_long_log_is_put_away_at_a_start_and_one_old_one_kept(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "LOG_BYTES_MAX", 3)
    speaks = house.child("web", "print('a long line')")
    for _ in range(3):
        await speaks.start()
        assert await speaks.wait() == 0
        assert speaks.last_words() == "a long line"
    assert sorted(path.name for path in (house.folder / "logs").iterdir()) == ["web.log", "web.log.1"]
