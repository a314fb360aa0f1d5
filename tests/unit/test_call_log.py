"""The log of a drive: a call's cost is on the disk before the call goes on, and a slow disk makes no queue."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from commonpurse.call_log import HEADER, CallLog


async def test_a_cost_is_on_the_disk_before_its_call_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, flushed = tmp_path / "calls.csv", list[str]()
    monkeypatch.setattr("commonpurse.call_log.os.fsync", lambda _: flushed.append(file.read_text()))
    with CallLog(file) as log:
        await log.add([("a", "0.1"), ("b", "0.2")])
        assert flushed == [f"{HEADER}a,0.1\nb,0.2\n"]
    with CallLog(file) as log:
        await log.add([("c", "0.3")])
    assert flushed[-1] == f"{HEADER}a,0.1\nb,0.2\nc,0.3\n"


async def test_what_comes_during_a_flush_shares_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on, flushes = threading.Event(), threading.Event(), list[int]()

    def slow(number: int) -> None:
        flushes.append(number)
        begun.set()
        assert go_on.wait(60)

    monkeypatch.setattr("commonpurse.call_log.os.fsync", slow)
    with CallLog(tmp_path / "calls.csv") as log:
        async with asyncio.TaskGroup() as calls:
            calls.create_task(log.add([("first", "1")]))
            await asyncio.to_thread(begun.wait, 60)
            later = [calls.create_task(log.add([(f"h{number}", "1")])) for number in range(20)]
            await asyncio.sleep(0)  # they write, and wait
            assert "h19" in (tmp_path / "calls.csv").read_text()
            assert not any(one.done() for one in later)
            go_on.set()
    assert len(flushes) == 2


async def test_a_disk_that_fails_is_heard_by_whoever_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError("no space")

    with CallLog(tmp_path / "calls.csv") as log:
        with monkeypatch.context() as broken:
            broken.setattr("commonpurse.call_log.os.fsync", fail)
            with pytest.raises(OSError, match="no space"):
                await log.add([("a", "1")])
        await log.add([("b", "1")])
