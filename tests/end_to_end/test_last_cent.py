"""500 callers, a cent each, a budget of one dollar: exactly 100 are held, however they ask. PURSE_SOAK=1: ten runs."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from pathlib import Path

import aiohttp
import pytest
from running_purse import RunningPurse, running_purse

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="`purse up` was written for Linux")

RUNS = 10 if os.environ.get("PURSE_SOAK") else 1
CALLERS = 500


@pytest.mark.parametrize("run", range(RUNS))
def test_over_http_exactly_a_hundred_of_five_hundred_are_held(tmp_path: Path, run: int) -> None:
    with running_purse(tmp_path / "data") as wallet:
        answers = asyncio.run(_ask_all_at_once(wallet, run))
    assert answers == {201: 100, 429: 400}, f"run {run}"


async def _ask_all_at_once(wallet: RunningPurse, run: int) -> Counter[int]:
    headers = {"Authorization": f"Bearer {wallet.key}"}
    connector = aiohttp.TCPConnector(limit=CALLERS)
    timeout = aiohttp.ClientTimeout(total=60)
    async with aiohttp.ClientSession(wallet.url, headers=headers, connector=connector, timeout=timeout) as session:

        async def hold(caller: int) -> int:
            ask = {"id": f"{run}-{caller}", "amounts": {"usd": "0.01"}, "labels": {"provider": "jev"}, "wait_s": 30}
            async with session.post("/v1/holds", json=ask) as answer:
                return answer.status

        return Counter(await asyncio.gather(*map(hold, range(CALLERS))))
