"""The official JavaScript clients, unchanged, with the wallet between them and a provider that keeps a bill."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from desk_client import KEY
from guarded_provider import GuardedProvider, guarded_provider
from providers.fake_anthropic import fake_anthropic
from providers.fake_openai import fake_openai

HERE = Path(__file__).parent
INSTALL_WAIT_S, CALL_WAIT_S = 600, 100
pytestmark = pytest.mark.timeout(INSTALL_WAIT_S + 2 * CALL_WAIT_S)  # the first one may have to fetch them

OPENAI = ("openai-chat", "openai-responses", "ai-openai-chat", "ai-openai-responses")
ANTHROPIC = ("anthropic", "ai-anthropic")
ENDED = {
    "openai-chat": "stop", "openai-responses": "completed", "anthropic": "end_turn",
    "ai-openai-chat": "stop", "ai-openai-responses": "stop", "ai-anthropic": "stop",
}  # fmt: skip

every_client = pytest.mark.parametrize("client", [*OPENAI, *ANTHROPIC])
both_ways = pytest.mark.parametrize("does", ["plain", "stream"])


@pytest.fixture(scope="session")
def node() -> str:
    """Node with the clients of package-lock.json beside it."""
    found, npm = shutil.which("node"), shutil.which("npm")
    if found is None or npm is None:
        pytest.skip("node and npm are not installed here")
    lock, installed = (HERE / "package-lock.json").read_text(), HERE / "node_modules" / ".installed"
    if not installed.exists() or installed.read_text() != lock:
        done = subprocess.run([npm, "ci"], cwd=HERE, capture_output=True, text=True, timeout=INSTALL_WAIT_S)
        if done.returncode:
            pytest.skip(f"npm could not fetch the clients: {done.stderr.strip().splitlines()[:1]}")
        installed.write_text(lock)
    return found


@asynccontextmanager
async def guarded(client: str) -> AsyncIterator[GuardedProvider]:
    if client in OPENAI:
        async with guarded_provider(fake_openai(), "openai") as guard:
            yield guard
    else:
        async with guarded_provider(fake_anthropic(), "anthropic") as guard:
            yield guard


async def call(node: str, guard: GuardedProvider, client: str, does: str, **more: Any) -> dict[str, Any]:
    """One call in a process of its own, as the client saw it."""
    asked = {
        "client": client,
        "does": does,
        "url": guard.url if client == "anthropic" else f"{guard.url}/v1",
        "key": KEY,
        "model": "gpt-4o-mini" if client in OPENAI else "claude-haiku-4-5",
        "max_tokens": 100,
        **more,
    }
    process = await asyncio.create_subprocess_exec(
        node, "clients.mjs", json.dumps(asked), cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        out, errors = await asyncio.wait_for(process.communicate(), CALL_WAIT_S)
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode == 0, errors.decode()[-2000:]
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


@every_client
@both_ways
async def test_an_answer_passes_and_is_settled_at_what_the_provider_bills(node: str, client: str, does: str) -> None:
    async with guarded(client) as guard:
        said = await call(node, guard, client, does)
        assert (said.get("error"), said["requests"]) == (None, 1)
        assert (said["text"], said["ended"]) == (guard.fake.reply.text, ENDED[client])
        assert guard.meter() == (guard.fake.ledger.total, 0)
        assert not guard.settles[0].estimated
        assert said["tokens"] in (12, None)  # a stream says it only to those who asked


@every_client
@both_ways
async def test_what_is_used_up_is_refused_after_one_request(node: str, client: str, does: str) -> None:
    async with guarded(client) as guard:
        used = {"id": "a", "budget": "day", "period": "2026-11-30", "amount": "0.99999999", "reason": "r"}
        assert (await guard.desk.post("/v1/adjustments", used)).status == 200
        said = await call(node, guard, client, does)
        assert (said["requests"], said["error"]["status"]) == (1, 402)
        assert "resets at 00:00 UTC" in said["error"]["message"]
        assert guard.fake.requests == []


@every_client
async def test_a_model_without_a_price_is_refused_after_one_request(node: str, client: str) -> None:
    async with guarded(client) as guard:
        said = await call(node, guard, client, "plain", model="gpt-none" if client in OPENAI else "claude-none")
        assert (said["requests"], said["error"]["status"]) == (1, 400)
        assert "has no price here" in said["error"]["message"]
        assert guard.fake.requests == []
