"""Portkey's gateway, a process of Node: it passes calls on and guards nothing.

It has no budgets of its own without its owner's service, so it holds nothing, counts nothing, and has no books: what is
measured is the way through it. It calls nobody but the provider.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from bench.answering import until_answering
from bench.child import child, free_port
from bench.proxy.contender import Address, Contender
from bench.proxy.processes import below

FOLDER = Path(__file__).parents[2] / ".venv" / "portkey"
PACKAGE = "@portkey-ai/gateway@1.15.2"
SCRIPT = FOLDER / "node_modules" / "@portkey-ai" / "gateway" / "build" / "start-server.js"
READY_WAIT_S = 60.0


def install() -> str | None:
    """Install it where it is looked for. Why that failed, in one line, None if it is there."""
    npm = shutil.which("npm")
    if _missing() is None:
        return None
    if npm is None:
        return f"{PACKAGE} could not be installed: npm is not on PATH"
    FOLDER.mkdir(parents=True, exist_ok=True)
    command = [npm, "install", "--prefix", str(FOLDER), "--ignore-scripts", "--no-audit", "--no-fund", PACKAGE]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        return f"{PACKAGE} could not be installed: {said[-1][:200]}"
    return _missing()


def _missing() -> str | None:
    if shutil.which("node") is None:
        return "node is not on PATH"
    if not SCRIPT.exists():
        return "it is not in .venv/portkey; `python -m bench --install` puts it there"
    return None


@asynccontextmanager
async def _open(folder: Path, upstream_port: int) -> AsyncIterator[Address]:
    port, node = free_port(), shutil.which("node")
    assert node is not None, "missing() was asked"
    command = [node, str(SCRIPT), f"--port={port}", "--headless"]
    async with child("portkey", command, folder=folder, env={"NODE_ENV": "production"}) as gateway:
        await until_answering(f"http://127.0.0.1:{port}/", gateway, wait_s=READY_WAIT_S)
        headers = {
            "Authorization": "Bearer sk-nobody",
            "x-portkey-provider": "openai",
            "x-portkey-custom-host": f"http://127.0.0.1:{upstream_port}/v1",
        }
        yield Address(port, "/v1/chat/completions", headers, pids=partial(_pids, gateway.pid))


def _pids(pid: int) -> Mapping[str, Sequence[int]]:
    return {"the proxy": list(below(pid))}


PORTKEY = Contender(
    "Portkey", "its gateway as npm has it, one process of Node, guards nothing", _open, _missing, streams=False
)
