"""A small storm over a whole wallet: see `bench.chaos`, which says what must hold. `make chaos` is the large one."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
WITHIN_S = 100.0

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="`purse up` was written for Linux")


async def test_nothing_is_lost_or_told_twice_while_every_part_is_killed(tmp_path: Path) -> None:
    arguments = ["--asks", "600", "--processes", "4", "--seconds", "9", "--seed", "7", "--keep", str(tmp_path)]
    process = await asyncio.create_subprocess_exec(
        *[sys.executable, "-m", "bench.chaos", *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(WITHIN_S):
        said, _ = await process.communicate()
    told = said.decode()
    assert process.returncode == 0, told
    assert "No difference." in told
    kills = dict(re.findall(r"(nats-server|engine|projector|web) (\d+)", told.split("kills")[1].splitlines()[0]))
    assert len(kills) == 4
    assert "0" not in kills.values(), "every part was killed at least once"
    assert "600 holds" in told
