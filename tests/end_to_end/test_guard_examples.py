"""The examples that guard a program, run as they stand: against a whole wallet, and a provider that keeps a bill."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest
import pytest_asyncio
from providers.fake_openai import FakeOpenAI
from providers.faults import NO_FAULT, Fault
from running_purse import RunningPurse, running_purse

from bench.child import free_port
from commonpurse.sync import Held, Purse

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
FETCHED = ROOT / ".venv" / "sdks"
LITELLM = Path(os.environ.get("TEST_LITELLM_VENV", ROOT / ".venv" / "litellm"))
LABELS = {"app": "examples"}
QUESTION = "What is a purse?"
WAIT_S = 240.0  # a deadline for programs that start on a busy machine, not a measurement
LITELLM_KEY = "sk-of-the-proxy"

PURSE_TOML = """
[budgets.app]
unit = "usd"
limit = "0.01"
per = "total"
where = { app = "examples" }
"""

MANY_RUNS = """
import asyncio, json, os
from langchain_openai import ChatOpenAI
from commonpurse.integrations.langchain import PurseHandler
from commonpurse.sync import Exhausted, Purse

async def main(purse):
    guard = PurseHandler(purse, labels={"app": "examples"})
    model = ChatOpenAI(model="gpt-4o-mini", max_completion_tokens=50, max_retries=0, callbacks=[guard])
    said = {"failed": 0, "answered": 0}
    try:
        model.invoke("one that fails")
    except Exception:
        said["failed"] += 1
    answers = await asyncio.gather(*(model.ainvoke(f"question {n}") for n in range(8)))
    answers += model.batch(["a", "b", "c"])
    said["answered"] = sum(bool(answer.text) for answer in answers)
    large = ChatOpenAI(model="gpt-4o-mini", max_completion_tokens=100_000, callbacks=[guard])
    try:
        await large.ainvoke("too large")
    except Exhausted as refused:
        said["refused"] = refused.why
    print(json.dumps(said))

with Purse(os.environ["PURSE_URL"], os.environ["PURSE_KEY"]) as purse:
    asyncio.run(main(purse))
"""

START_LITELLM = """
import sys
sys.path += {more!r}
from litellm import run_server
run_server()
"""
"""LiteLLM's environment has what the proxy needs; what our client needs beside it comes behind that."""


@dataclass
class World:
    """A wallet with one budget, for all examples."""

    purse: RunningPurse
    client: Purse

    async def app(self) -> dict[str, Decimal]:
        """The budget of the examples: what is settled, held and remaining in it."""
        async with (
            aiohttp.ClientSession() as http,
            http.get(f"{self.purse.url}/v1/status", headers={"Authorization": f"Bearer {self.purse.key}"}) as answer,
        ):
            (budget,) = (await answer.json())["budgets"]
        return {name: Decimal(budget[name]) for name in ("settled", "held", "remaining")}

    async def settled(self, before: Decimal, billed: int) -> None:
        """Waits until nothing is held and what the provider billed (nano-dollars) is settled."""
        expected = before + Decimal(billed).scaleb(-9)
        async with asyncio.timeout(60):
            while (app := await self.app())["held"] or app["settled"] != expected:  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    @contextmanager
    def nothing_left(self, remaining: Decimal) -> Iterator[None]:
        """Others hold all that is left."""
        held = self.client.hold({"usd": remaining}, labels=LABELS, wait_s=30)
        assert isinstance(held, Held)
        yield
        self.client.release(held.id)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    folder = tmp_path_factory.mktemp("examples")
    config = folder / "purse.toml"
    config.write_text(PURSE_TOML)
    with running_purse(folder / "data", "--config", str(config)) as purse, Purse(purse.url, purse.key) as client:
        yield World(purse, client)


@pytest_asyncio.fixture
async def provider() -> AsyncIterator[FakeOpenAI]:
    async with FakeOpenAI() as fake:
        yield fake


def environment(world: World, provider: FakeOpenAI, packages: Path | None) -> dict[str, str]:
    path = [str(ROOT)] if packages is None else [str(packages), str(ROOT)]
    return {
        "PATH": os.environ["PATH"], "HOME": str(world.purse.data), "PYTHONPATH": os.pathsep.join(path),
        "PURSE_URL": world.purse.url, "PURSE_KEY": world.purse.key,
        "OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": provider.key,
    }  # fmt: skip


async def run(example: str, *options: str, env: dict[str, str]) -> str:
    """What the example prints."""
    command = [sys.executable, str(EXAMPLES / example), QUESTION, *options]
    process = await asyncio.create_subprocess_exec(*command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    async with asyncio.timeout(WAIT_S):
        said, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return said.decode().strip()


@pytest.mark.parametrize(
    ("example", "packages", "options"),
    [
        ("guard_function.py", None, ()),
        ("guard_langchain.py", "langchain", ()),
        ("guard_langchain.py", "langchain", ("--stream",)),
        ("guard_openai_agents.py", "agents", ()),
        ("guard_openai_agents.py", "agents", ("--stream",)),
    ],
    ids=["function", "langchain", "langchain-stream", "agents", "agents-stream"],
)
async def test_a_guarded_program_is_charged_what_the_provider_bills(
    world: World, provider: FakeOpenAI, example: str, packages: str | None, options: tuple[str, ...]
) -> None:
    folder = None if packages is None else FETCHED / packages
    if folder is not None and not folder.exists():
        pytest.skip(f"needs {folder}, which `make sdks` fetches")
    env = environment(world, provider, folder)
    before = await world.app()
    assert await run(example, *options, env=env) == provider.reply.text.strip()
    assert provider.ledger.total > 0
    await world.settled(before["settled"], provider.ledger.total)

    asked = len(provider.requests)
    with world.nothing_left((await world.app())["remaining"]):
        assert (await run(example, *options, env=env)).startswith("refused (busy)")
    assert len(provider.requests) == asked


async def test_langchains_runs_are_held_one_by_one_and_an_error_is_charged_at_its_grant(
    world: World, provider: FakeOpenAI
) -> None:
    folder = FETCHED / "langchain"
    if not folder.exists():
        pytest.skip(f"needs {folder}, which `make sdks` fetches")
    before = await world.app()
    provider.next_faults.append(Fault(status=500))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", MANY_RUNS, env=environment(world, provider, folder), stdout=subprocess.PIPE
    )
    async with asyncio.timeout(WAIT_S):
        said, _ = await process.communicate()
    assert json.loads(said) == {"failed": 1, "answered": 11, "refused": "never"}
    async with asyncio.timeout(60):
        while (app := await world.app())["held"]:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    estimated = app["settled"] - before["settled"] - Decimal(provider.ledger.total).scaleb(-9)
    assert Decimal("0.00003") <= estimated < Decimal("0.0001"), "one call at its grant, eleven at what they cost"
    assert len(provider.requests) == 12


# --- LiteLLM's proxy --------------------------------------------------------------------------------------------------


@pytest_asyncio.fixture
async def litellm(world: World, provider: FakeOpenAI) -> AsyncIterator[openai.AsyncOpenAI]:
    """A client of the proxy in the example's folder."""
    python = LITELLM / "bin" / "python"
    if not python.exists():
        pytest.skip(f"needs LiteLLM in {LITELLM}, which `make bench` installs")
    port = free_port()
    more = [str(ROOT), *(path for path in sys.path if path.endswith("site-packages"))]
    quiet = {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION", "LITELLM_LOG": "ERROR",
        "LITELLM_MASTER_KEY": LITELLM_KEY,
    }  # fmt: skip
    env = {**environment(world, provider, None), **quiet}
    del env["PYTHONPATH"]
    command = [str(python), "-c", START_LITELLM.format(more=more), "--config", "config.yaml", "--port", str(port)]
    process = subprocess.Popen(  # noqa: ASYNC220 - what it says is read by a thread, until it ends
        [*command, "--host", "127.0.0.1", "--telemetry", "False"], cwd=EXAMPLES / "guard_litellm", env=env,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    said: list[str] = []
    reading = threading.Thread(target=lambda: said.extend(process.stdout or ()), daemon=True)
    reading.start()
    try:
        async with aiohttp.ClientSession() as http, asyncio.timeout(WAIT_S):
            while not await _lives(http, port):
                assert process.poll() is None, "".join(said)
                await asyncio.sleep(0.2)
        async with openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=LITELLM_KEY) as client:
            yield client
    finally:
        process.kill()
        process.wait()
        reading.join()
        if process.stdout is not None:
            process.stdout.close()


async def _lives(http: aiohttp.ClientSession, port: int) -> bool:
    try:
        async with http.get(f"http://127.0.0.1:{port}/health/liveliness") as answer:
            return answer.status == 200
    except aiohttp.ClientError:
        return False


async def test_litellms_proxy_is_guarded_by_its_callback(
    world: World, provider: FakeOpenAI, litellm: openai.AsyncOpenAI
) -> None:
    call: dict[str, Any] = {"model": "gpt-4o-mini", "max_tokens": 200}
    call["messages"] = [{"role": "user", "content": QUESTION}]
    before = await world.app()
    plain = await litellm.chat.completions.create(**call)
    assert plain.choices[0].message.content == provider.reply.text
    stream = await litellm.chat.completions.create(**call, stream=True, stream_options={"include_usage": True})
    async for _ in stream:
        pass
    assert len(provider.ledger.lines) == 2
    await world.settled(before["settled"], provider.ledger.total)

    asked = len(provider.requests)
    with world.nothing_left((await world.app())["remaining"]), pytest.raises(openai.RateLimitError):
        await litellm.with_options(max_retries=0).chat.completions.create(**call)
    assert len(provider.requests) == asked

    before, worst = await world.app(), Decimal(0)
    provider.fault = Fault(status=500)
    with pytest.raises(openai.APIStatusError):
        await litellm.with_options(max_retries=0).chat.completions.create(**call)
    provider.fault = NO_FAULT
    async with asyncio.timeout(60):
        while (app := await world.app())["held"] or not worst:
            worst = app["settled"] - before["settled"]
            await asyncio.sleep(0.05)
    assert Decimal("0.00012") <= worst < Decimal("0.001"), "an error is charged at its grant"
