"""A small storm over a whole wallet: see `bench.chaos`, which says what must hold. `make chaos` is the large one."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest

from bench.chaos.storm import EVERY_S, PARTS

REPOSITORY = Path(__file__).parents[2]
WITHIN_S = 110.0

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="`purse up` was written for Linux")


async def test_nothing_is_lost_or_told_twice_while_every_part_is_killed(tmp_path: Path) -> None:
    seconds = 1 + len(PARTS) * EVERY_S[1]  # the first round of kills is over before the last call begins
    arguments = f"--asks 600 --processes 4 --seconds {seconds} --runs 1 --seed 7 --keep {tmp_path}".split()
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
    assert len(kills) == len(PARTS)
    assert "0" not in kills.values(), "every part was killed at least once"
    assert "600 holds" in told
