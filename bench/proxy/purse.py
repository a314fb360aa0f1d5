"""Common Purse as `purse up` starts it: a server that syncs every append, one engine, one projector, one web process.

Every call is held for its worst case, on the record before it is sent, and settled at what it cost.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import aiohttp

from bench.answering import until_answering
from bench.child import child, free_port
from bench.proxy.contender import Address, Contender, one_call_usd
from bench.proxy.processes import below
from engine.core import amounts
from engine.core.amounts import SCALES

ROOT = Path(__file__).parents[2]
READY_WAIT_S = 60.0
BOOKS_WAIT_S = 30.0
POLL_S = 0.05

FILE = """
[budgets.shared]
unit = "usd"
limit = "9000000"

[upstreams.openai]
base_url = "http://127.0.0.1:{port}/v1"
key_env = "BENCH_UPSTREAM_KEY"
"""


@asynccontextmanager
async def _open(folder: Path, upstream_port: int) -> AsyncIterator[Address]:
    port, data, file = free_port(), folder / "data", folder / "purse.toml"
    file.write_text(FILE.format(port=upstream_port))
    command = [
        sys.executable,
        "-m",
        "commonpurse",
        "up",
        "--data",
        str(data),
        "--port",
        str(port),
        "--config",
        str(file),
    ]
    env = {"BENCH_UPSTREAM_KEY": "sk-nobody", "PYTHONPATH": str(ROOT)}
    async with child("purse", command, folder=folder, env=env) as up:
        url = f"http://127.0.0.1:{port}"
        await until_answering(f"{url}/readyz", up, wait_s=READY_WAIT_S)
        headers = {"Authorization": f"Bearer {(data / 'admin.key').read_text().strip()}"}
        async with aiohttp.ClientSession(url, headers=headers) as session:
            yield Address(
                port,
                "/openai/v1/chat/completions",
                headers,
                pids=partial(_pids, up.pid),
                charged=partial(_charged, session),
            )


def _pids(supervisor: int) -> Mapping[str, Sequence[int]]:
    """The web process, and everything else."""
    found = below(supervisor)
    web = [pid for pid, command in found.items() if command[-2:] == ["-m", "web"]]
    return {"the proxy": web, "the wallet": [pid for pid in found if pid not in web]}


async def _charged(session: aiohttp.ClientSession, calls: int) -> float:
    """What is settled; what is still held counts as not charged."""
    gives_up_at = time.monotonic() + BOOKS_WAIT_S
    while True:
        settled, held = await _booked(session)
        if (settled == calls * one_call_usd() and not held) or time.monotonic() > gives_up_at:
            return (settled - held) / one_call_usd()
        await asyncio.sleep(POLL_S)


async def _booked(session: aiohttp.ClientSession) -> tuple[int, int]:
    async with session.get("/v1/status") as answer:
        budget = (await answer.json())["budgets"][0]
    settled, held = (amounts.parse(budget[name], unit="usd", scale=SCALES["usd"]) for name in ("settled", "held"))
    return settled, held


PURSE = Contender(
    "Common Purse", "`purse up`: every call held on disk before it is sent, settled at what it cost", _open
)
