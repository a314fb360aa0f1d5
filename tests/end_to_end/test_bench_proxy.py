"""The benchmark of proxies counts what it says: no call left out, no error unseen, our books charged for each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from rich.console import Console

from bench.proxy.contender import Address, Contender, Shape
from bench.proxy.direct import DIRECT
from bench.proxy.load import Heard, Load, run
from bench.proxy.measure import Measured, measure_proxies
from bench.proxy.purse import PURSE
from bench.proxy.show import rows
from engine.errors import NoAnswer

SHAPES = (Shape(2, 1), Shape(2, 1, stream=True, event_ms=1))


async def test_our_proxy_is_measured_over_the_direct_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.proxy.measure.SHAPES", SHAPES)
    measured = await measured_in(tmp_path, PURSE.name)
    assert measured.failed == {}
    assert list(measured.figures) == [(who, shape) for shape in SHAPES for who in (DIRECT, PURSE)]
    books = measured.books[PURSE]
    assert books.calls == books.charged > 0
    for (who, _), figures in measured.figures.items():
        assert figures.errors == {}
        assert (figures.added is None) == (who is DIRECT)
        assert 0 < figures.taken.first_p50_ms <= figures.taken.p50_ms <= figures.taken.p99_ms
    named = {row.name: row for row in rows(measured)}
    assert named[f"{SHAPES[0].title}: Common Purse: errors"].met is True
    assert named[f"{SHAPES[0].title}: Common Purse: added p99"].unit == "ms"


async def measured_in(folder: Path, only: str) -> Measured:
    return await measure_proxies(
        Console(quiet=True), folder, wants=lambda name: only in name, seconds=0.2, rounds=2, quick=True, say=print
    )


# --- the client -------------------------------------------------------------------------------------------------------

WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\ne\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"


async def test_whole_answers_and_streams_are_heard_to_their_end() -> None:
    for answer, stream in ((WHOLE, False), (STREAM, True)):
        heard = await heard_from([answer[:50], answer[50:]], stream=stream)
        assert heard.errors == {}
        assert heard.calls >= heard.answers > 0
        assert 0 < heard.first.p50_ms <= heard.total.p50_ms <= heard.total.p99_ms


@pytest.mark.parametrize(
    ("answer", "stream", "error"),
    [
        (WHOLE.replace(b"200", b"500"), False, "status 500"),
        (STREAM.replace(b"DONE", b"GONE"), True, "no [DONE]"),
        (WHOLE[:-1], False, "connection lost"),
        (b"", False, "connection lost"),
    ],
)
async def test_anything_else_is_an_error(answer: bytes, stream: bool, error: str) -> None:
    heard = await heard_from([answer], stream=stream, hangs_up=True)
    assert set(heard.errors) == {error}
    assert (heard.calls, heard.answers) == (0, 0)


async def heard_from(pieces: list[bytes], *, stream: bool, hangs_up: bool = False) -> Heard:
    async with answering(pieces, hangs_up) as port:
        return await run(Load(port, b"GET / HTTP/1.1\r\n\r\n", stream, callers=2, warm_up_s=0.0, seconds=0.1))


@asynccontextmanager
async def answering(pieces: list[bytes], hangs_up: bool) -> AsyncIterator[int]:
    """A server that answers every request with these pieces."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readline():
            await reader.readline()
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            if hangs_up:
                break
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def test_a_contender_that_does_not_begin_is_told_and_the_others_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @asynccontextmanager
    async def opened(folder: Path, upstream_port: int) -> AsyncIterator[Address]:
        raise NoAnswer("it was not ready")
        yield

    broken = Contender("Broken", "never begins", opened)
    monkeypatch.setattr("bench.proxy.measure.SHAPES", SHAPES[:1])
    monkeypatch.setattr("bench.proxy.measure.CONTENDERS", (broken, DIRECT))
    measured = await measured_in(tmp_path, "")
    assert measured.failed == {broken: "NoAnswer: it was not ready"}
    assert list(measured.figures) == [(DIRECT, SHAPES[0])]
