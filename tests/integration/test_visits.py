"""Strangers over four web processes: ten questions a minute in all, and of where they came from nothing is kept."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from hashlib import blake2b
from ipaddress import IPv6Address
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
from integration.rig import Process, process_of, record_of, wallet_on

from engine.embedded import embedded_nats
from engine.journal import Journal
from engine.plan_file import DEFAULT_PLAN
from engine.visit_secret import VisitSecret

WEBS = 4
A_SECOND = 100
SECONDS = 3
TRIES = 6  # a burst over the end of a minute says nothing: another stranger tries again
MARGIN_S = 5  # how far the engine's idea of the time may be off ours, on a machine that is busy
PROMPT = "what-the-stranger-asked-4711"
KEY = "purse_key-of-a-stranger-0815"
CONFIG = """
[ask]
model = "built-in"
upstream = "built-in"
max_tokens = 4
[web]
trusted_proxies = ["127.0.0.0/8"]
visit_wait_ms = 60000
"""


@dataclass
class Wallet:
    webs: list[Process]
    urls: list[str]
    processes: list[Process]
    journal: Journal


async def test_four_web_processes_let_ten_questions_a_minute_pass_and_keep_nothing_of_an_address(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    async with _wallet(data, tmp_path) as wallet:
        strangers = [IPv6Address(f"2001:db8:5e7:{n:x}::9") for n in range(0xA1, 0xA1 + TRIES)]
        passed = await _passed_in_a_minute(wallet, strangers)
        assert passed == 10
        secret = await VisitSecret(wallet.journal).get()
        assert secret is not None
        stream = [stored.data for stored in await record_of(wallet.journal)]
    found = [line for process in wallet.processes for line in process.lines]
    assert found
    assert stream
    for place in (*stream, *found, *_files(tmp_path)):
        for trace in (*_traces(strangers, secret), PROMPT.encode(), KEY.encode()):
            assert trace not in place


async def _passed_in_a_minute(wallet: Wallet, strangers: list[IPv6Address]) -> int:
    async with aiohttp.ClientSession() as session:
        for stranger in strangers:
            began = _minute(-MARGIN_S)
            answers = await _burst(session, wallet.urls, stranger)
            if _minute(MARGIN_S) == began:
                assert set(answers) == {200, 429}
                assert len(answers) == A_SECOND * SECONDS
                return answers.count(200)
    raise AssertionError("every burst met the end of a minute")


def _minute(later_s: float) -> int:
    return int(time.time() + later_s) // 60


async def _burst(session: aiohttp.ClientSession, urls: list[str], stranger: IPv6Address) -> list[int]:
    async with asyncio.TaskGroup() as group:
        asked = []
        for n in range(A_SECOND * SECONDS):
            asked.append(group.create_task(_ask(session, urls[n % WEBS], stranger)))
            await asyncio.sleep(1 / A_SECOND)
    return [one.result() for one in asked]


async def _ask(session: aiohttp.ClientSession, url: str, stranger: IPv6Address) -> int:
    headers = {"X-Forwarded-For": str(stranger), "Authorization": f"Bearer {KEY}"}
    async with session.post(f"{url}/ask", json={"question": PROMPT}, headers=headers) as answer:
        await answer.read()
        if answer.status == 429:
            assert 1 <= int((json.loads(await answer.text()))["error"]["metadata"]["seconds"]) <= 60
        return answer.status


def _traces(strangers: list[IPv6Address], secret: bytes) -> Iterator[bytes]:
    """All that stands for where somebody came from, as text and as bytes, and the secret that could tell."""
    for stranger in strangers:
        yield from (str(stranger).encode(), stranger.exploded.encode(), stranger.packed)
        yield from _forms(blake2b(stranger.packed[:8], key=secret, digest_size=16).digest())
    yield from _forms(secret)


def _forms(raw: bytes) -> Iterator[bytes]:
    yield from (raw, raw.hex().encode(), raw.hex().upper().encode(), base64.b64encode(raw).rstrip(b"="))
    yield base64.urlsafe_b64encode(raw).rstrip(b"=")


def _files(folder: Path) -> Iterator[bytes]:
    for file in folder.rglob("*"):
        if file.is_file():
            yield file.read_bytes()


@asynccontextmanager
async def _wallet(data: Path, folder: Path) -> AsyncIterator[Wallet]:
    """A wallet of its own with four web processes on one data folder."""
    config = folder / "purse.toml"
    config.write_text(CONFIG)
    async with embedded_nats(data, wallet="main") as server, AsyncExitStack() as stack:
        journal = await stack.enter_async_context(wallet_on(server.url, "main", plan=DEFAULT_PLAN))
        environment = {
            "PURSE_NATS_URL": server.url, "PURSE_WALLET": "main", "PURSE_DATA": str(data), "PURSE_CONFIG": str(config),
            "PURSE_HOST": "127.0.0.1", "PURSE_PORT": "0",
        }  # fmt: skip
        names = ["engine", "projector", *["web"] * WEBS]
        processes = [await stack.enter_async_context(process_of(["-m", name], **environment)) for name in names]
        await processes[0].until("ready")
        await processes[1].until("caught_up")
        webs = processes[2:]
        urls = [(await web.until("web_listening"))["url"] for web in webs]
        assert all(urlsplit(url).port for url in urls)
        yield Wallet(webs, urls, processes, journal)
