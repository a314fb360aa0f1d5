"""`purse demo` as a newcomer runs it: a budget runs out, a caller is refused, and the books agree."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import sys
from itertools import islice
from pathlib import Path

import pytest

from commonpurse.demo import CALLERS, LIMIT, made_up
from engine.core.amounts import parse

WAIT_S = 110.0  # it takes a quarter of this where it is alone on the machine

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="`purse up` was written for Linux")


async def start(temporary: Path, *options: str) -> asyncio.subprocess.Process:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PURSE_")}
    return await asyncio.create_subprocess_exec(
        *[sys.executable, "-m", "commonpurse", "demo", *options],
        env={**environment, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(temporary), "NO_COLOR": "1"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


def left_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def usd(written: str) -> int:
    return parse(written, unit="usd", scale=9)


async def test_a_budget_runs_out_a_caller_is_refused_and_the_books_agree(tmp_path: Path) -> None:
    process = await start(tmp_path, "--json", "--seed", "7")
    async with asyncio.timeout(WAIT_S):
        out, story = await process.communicate()
    told, seen = json.loads(out), story.decode()
    assert process.returncode == 0, seen

    assert (told["books_agree"], told["never_above_limit"]) == (True, True)
    assert told["spent"] == told["settled"]
    assert usd(told["settled"]) <= usd(told["highest_used"]) <= usd(LIMIT)
    assert (told["calls"], told["still_held"]) == (told["held"], "0")
    assert told["refused"]["spent"] == CALLERS
    assert usd(told["spent"]) > told["calls"] * min(call.real_nanos for call in islice(made_up(7, 1), 1_000))

    refusal = told["refusal"]
    assert (refusal["status"], refusal["x-should-retry"]) == (402, "false")
    assert refusal["detail"].startswith("Today's shared budget")

    assert re.search(r"watch it live +http://127\.0\.0\.1:\d+/\n", seen)
    assert re.search(r"#+=*\.+ +spent 0\.\d+ +held 0\.\d+ +left 0\.\d+ +of 0\.05 usd\n", seen)
    assert "HTTP/1.1 402 Payment Required\n" in seen
    assert seen.endswith("The books agree.\n")
    assert "\x1b" not in seen
    assert left_in(tmp_path) == []


async def test_a_demo_that_is_interrupted_comes_to_no_verdict_and_leaves_nothing(tmp_path: Path) -> None:
    process = await start(tmp_path)
    assert process.stdout is not None
    async with asyncio.timeout(WAIT_S):
        async for line in process.stdout:
            if b"watch it live" in line:
                process.send_signal(signal.SIGINT)
        _, said = await process.communicate()
    assert process.returncode == 1
    assert said.decode().endswith("purse: ended before there was a verdict\n")
    assert left_in(tmp_path) == []


async def test_a_taken_port_ends_it_with_1_and_leaves_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        process = await start(tmp_path, "--port", port)
        async with asyncio.timeout(WAIT_S):
            _, said = await process.communicate()
    assert process.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in said.decode()
    assert left_in(tmp_path) == []
