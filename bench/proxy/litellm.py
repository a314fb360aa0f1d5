"""LiteLLM's proxy, in a virtual environment of its own: one worker or two, a key, and a budget.

Its budgets of keys and users need a database. Without one it has the budget of a provider, kept in memory: it looks at
what was spent before a call, counts what one cost after it, holds nothing, and forgets it all when it ends. That is the
cheapest way it has to guard anything, and the one it is measured with. Two workers count each for itself, so nobody can
say what both of them charged. It calls nobody but the provider.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import aiohttp
import msgspec

from bench.answering import until_answering
from bench.child import Child, child, free_port
from bench.drive import cpu_s
from bench.proxy.contender import Address, Contender, one_call_usd
from bench.proxy.processes import below
from engine.errors import NoAnswer

VENV = Path(__file__).parents[2] / ".venv" / "litellm"
PACKAGE = "litellm[proxy]==1.108.7"
KEY = "sk-bench"
READY_WAIT_S = 240.0  # it imports for 10 s, on a crowded machine for a minute
BOOKS_WAIT_S = 30.0
POLL_S = 0.2
REST_S, REST_TURNS, REST_SHARE = 0.5, 3, 0.1  # of one core: so little, so often in turn

NOTHING_FROM_ELSEWHERE = {
    "LITELLM_MODE": "PRODUCTION",  # no .env of the folder
    "LITELLM_LOG": "ERROR",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    "LITELLM_LOCAL_AUTOROUTER_PRESETS": "True",
    "LITELLM_LOCAL_BLOG_POSTS": "True",
    "LITELLM_LOCAL_POLICY_TEMPLATES": "True",
    "LITELLM_TELEMETRY_GROUPS": "",
}


def install() -> str | None:
    """Install it where it is looked for. Why that failed, in one line, None if it is there."""
    if _missing() is None:
        return None
    try:
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True, capture_output=True, text=True)
        pip = [str(VENV / "bin" / "pip"), "install", "-q", "--disable-pip-version-check", PACKAGE]
        subprocess.run(pip, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        return f"{PACKAGE} could not be installed: {said[-1][:200]}"
    return _missing()


def _missing() -> str | None:
    if (VENV / "bin" / "litellm").exists():
        return None
    return "it is not in .venv/litellm; `python -m bench --install` puts it there"


@asynccontextmanager
async def _open(workers: int, folder: Path, upstream_port: int) -> AsyncIterator[Address]:
    port, config = free_port(), folder / "config.yaml"
    config.write_bytes(msgspec.json.encode(_config(upstream_port)))  # JSON is YAML
    command = [str(VENV / "bin" / "litellm"), "--config", str(config), "--host", "127.0.0.1", "--port", str(port),
               "--num_workers", str(workers), "--timeout_worker_healthcheck", str(int(READY_WAIT_S))]  # fmt: skip
    async with child("litellm", command, folder=folder, env=NOTHING_FROM_ELSEWHERE) as proxy:
        url, headers = f"http://127.0.0.1:{port}", {"Authorization": f"Bearer {KEY}"}
        async with aiohttp.ClientSession(url, headers=headers) as session:
            await until_answering(f"{url}/health/liveliness", proxy, wait_s=READY_WAIT_S)
            await _at_rest(proxy)
            yield Address(
                port,
                "/v1/chat/completions",
                headers,
                pids=partial(_pids, proxy.pid),
                charged=partial(_charged, session) if workers == 1 else None,
            )


def _config(upstream_port: int) -> dict[str, object]:
    model = {"model": "openai/gpt-4o-mini", "api_base": f"http://127.0.0.1:{upstream_port}/v1", "api_key": "sk-nobody"}
    return {
        "model_list": [{"model_name": "gpt-4o-mini", "litellm_params": model}],
        "general_settings": {"master_key": KEY},
        "litellm_settings": {"num_retries": 0},
        "router_settings": {"provider_budget_config": {"openai": {"budget_limit": 9_000_000, "time_period": "1d"}}},
    }


def _pids(pid: int) -> Mapping[str, Sequence[int]]:
    return {"the proxy": list(below(pid))}


async def _at_rest(proxy: Child) -> None:
    """Until all of its processes have stopped working: where one worker answers, the other may still begin."""
    gives_up_at, at_rest = time.monotonic() + READY_WAIT_S, 0
    while at_rest < REST_TURNS:
        pids = list(below(proxy.pid))
        busy_s = cpu_s(pids)
        await asyncio.sleep(REST_S)
        at_rest = at_rest + 1 if cpu_s(pids) - busy_s < REST_SHARE * REST_S else 0
        proxy.check()
        if time.monotonic() > gives_up_at:
            raise NoAnswer(f"it was still busy after {READY_WAIT_S:g} s: {proxy.last_words()}")


async def _charged(session: aiohttp.ClientSession, calls: int) -> float:
    """It counts in the background, in floating point."""
    gives_up_at = time.monotonic() + BOOKS_WAIT_S
    while True:
        async with session.get("/provider/budgets") as answer:
            spent = (await answer.json())["providers"]["openai"]["spend"]
        charged: float = round(spent * 1e9 / one_call_usd(), 3)
        if charged == calls or time.monotonic() > gives_up_at:
            return charged
        await asyncio.sleep(POLL_S)


LITELLM = Contender(
    "LiteLLM", "one worker, a budget kept in memory that counts afterwards, no database", partial(_open, 1), _missing
)
TWO_WORKERS = Contender(
    "LiteLLM, two workers", "the same with --num_workers 2, each of which counts for itself", partial(_open, 2),
    _missing, streams=False,
)  # fmt: skip
