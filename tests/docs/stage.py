"""Where the blocks of one page are tried: a folder, a shell, a Python, and real wallets on free ports.

A wallet runs from the first `purse up` or `make run` of a page on, and from the beginning where it has none. Ports that
a page names lead to the free ones that its wallets really have.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from docs.blocks import ROOT, Block
from providers.fake_openai import FakeOpenAI
from running_purse import environment

from bench.child import free_port
from engine.plan_file import PurseFile, parse_toml
from engine.prices.own import read_own
from projector.alerts.alert import Alert
from projector.alerts.settings import read_alerts
from projector.alerts.target import parcel_of
from projector.observers.settings import read_observers
from projector.seals.settings import read_seals
from web import alerts, days, estimate, health, keeping, metrics, operating, past, spending, watching
from web.ask_settings import read_ask
from web.openapi import document
from web.proxy.upstreams import read_upstreams

TABLES = (spending, estimate, operating, keeping, watching, days, past, alerts, health, metrics)
ROUTES = [route for table in TABLES for route in table.ROUTES]
WAIT_S = 60.0  # a deadline for programs that start on a busy machine, not a measurement
POLL_S = 0.02
WORKER = Path(__file__).with_name("worker.py")
DEFAULT_PORT = "8080"
BROKER = """
host: 127.0.0.1
port: {port}
jetstream: {{ store_dir: nats, sync_interval: always }}
"""

_STATE = "source {state} 2>/dev/null; set -a; {command}\ncode=$?; export -p > {state}; exit $code"


@dataclass
class Stage:
    """`put`: what stands for what in this page's blocks, as (pattern, text)."""

    folder: Path
    provider: FakeOpenAI
    put: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    running: list[Process] = field(default_factory=list)
    wallets: dict[str, Process] = field(default_factory=dict)
    """By the port that the page names."""

    said: str = ""
    """What the last block printed."""

    _python: Process | None = None

    # --- what a page has ----------------------------------------------------------------------------------------------

    async def up(self, options: str = "", env: str = "") -> None:
        """`purse up` with these options, on a free port; the port it would have had leads there from now on."""
        named = re.search(r"--port (\d+)", options)
        port = named[1] if named else DEFAULT_PORT
        if port in self.wallets:
            await self.stop(self.wallets.pop(port))
        options = re.sub(r"\s*--port \d+", "", options).partition("#")[0]
        process = await self.start(f"{env}exec purse up{options} --port 0")
        page = await self.until(process, r"\s+page\s+http://([\d.:]+)/")
        await self.until(process, r"\s+admin key\s+(\S+)")
        self.wallets[port] = process
        self.put[f"127.0.0.1:{port}"] = page
        if port == DEFAULT_PORT:
            self.env |= {"PURSE_URL": f"http://{page}"}

    async def broker(self) -> None:
        """A nats-server that lets everybody in, in NATS_URL; wallets join it."""
        port = free_port()
        (self.folder / "nats.conf").write_text(BROKER.format(port=port))
        process = await self.start("exec nats-server -c nats.conf")
        await self.until(process, r".*Server is ready")
        self.env |= {"NATS_URL": f"nats://127.0.0.1:{port}", "PURSE_NATS_URL": f"nats://127.0.0.1:{port}"}

    async def sh(self, command: str, *, ends: int = 0) -> str:
        """What the command prints; fails the test where it does not end with this exit code."""
        process = await self.start(command, keep=True)
        async with asyncio.timeout(WAIT_S):
            said, wrong = await process.communicate()
        assert process.returncode == ends, (
            f"`{command}` ended with {process.returncode}\n{said.decode()}{wrong.decode()}"
        )
        return said.decode()

    async def start(self, command: str, *, keep: bool = False) -> Process:
        """The command in the page's shell. `keep`: what it exports is there for the next one; what it says is piped."""
        text = self.filled(command)
        if keep:
            text = _STATE.format(state=self.folder / ".state", command=text)
        with open(self.said_by(len(self.running)), "wb") as said:  # noqa: ASYNC230 - an empty file
            process = await asyncio.create_subprocess_exec(
                "bash", "-c", text, cwd=self.folder, env=self.environment(),
                stdout=PIPE if keep else said, stderr=PIPE if keep else STDOUT,
            )  # fmt: skip
        self.running.append(process)
        return process

    def said_by(self, number: int) -> Path:
        return self.folder / f".said-{number}"

    async def until(self, process: Process, pattern: str) -> str:
        """Waits for a line of what it says that begins so; answers its first group."""
        said = self.said_by(self.running.index(process))
        async with asyncio.timeout(WAIT_S):
            while not (found := re.search(f"^{pattern}", text := said.read_text(), re.MULTILINE)):
                assert process.returncode is None, f"it ended before it said {pattern!r}:\n{text}"
                await asyncio.sleep(POLL_S)
        return found[1] if found.re.groups else found[0]

    async def python(self, code: str, place: str) -> str:
        """What the program prints, in the page's one Python."""
        if self._python is None:
            command = [sys.executable, str(WORKER)]
            self._python = await asyncio.create_subprocess_exec(
                *command, cwd=self.folder, env=self.environment(), stdin=PIPE, stdout=PIPE
            )
            self.running.append(self._python)
        assert self._python.stdin is not None
        assert self._python.stdout is not None
        asked = {"code": self.filled(code), "place": place, "env": self.exported()}
        self._python.stdin.write(json.dumps(asked).encode() + b"\n")
        async with asyncio.timeout(WAIT_S):
            answer = json.loads(await self._python.stdout.readline())
        assert not answer["wrong"], answer["wrong"]
        return str(answer["said"])

    async def end(self) -> None:
        """What runs is told to stop, the newest first, and waited for."""
        for process in reversed(self.running):
            await self.stop(process)

    async def stop(self, process: Process) -> None:
        if process.returncode is None:
            process.terminate()
            async with asyncio.timeout(WAIT_S):
                await process.wait()

    # --- what is in the way of both -----------------------------------------------------------------------------------

    def environment(self) -> dict[str, str]:
        scripts = os.path.dirname(sys.executable)
        path = os.pathsep.join([scripts, os.environ["PATH"]])
        quiet = {"HOME": str(self.folder), "NO_COLOR": "1", "PURSE_DATA": "data"}
        return environment() | {"PATH": path} | quiet | self.env

    def exported(self) -> dict[str, str]:
        """What the page's shell has exported so far."""
        state = self.folder / ".state"
        text = state.read_text() if state.exists() else ""
        return self.env | dict(re.findall(r'^declare -x (PURSE_\w+)="([^"]*)"$', text, re.MULTILINE))

    def filled(self, text: str) -> str:
        for stands, for_ in self.put.items():
            text = text.replace(stands, for_)
        return text

    # --- the languages ------------------------------------------------------------------------------------------------

    def toml(self, block: Block) -> None:
        """A `purse.toml`, or a part of one, through the readers of every process that has to do with it."""
        text = self.filled(block.body)
        if re.search(r"^\[+(guards|tiers)\b", text, re.MULTILINE) and "[budgets" not in text:
            text = (ROOT / "engine" / "plans" / "default.toml").read_text() + text
        named = re.findall(r'_env = "(\w+)"', text)
        load(parse_toml(text), {name: f"{'nats' if 'NATS' in name else 'https'}://an.example.org" for name in named})
        if block.title:
            (self.folder / block.title).write_text(text)

    def json(self, block: Block) -> None:
        """Something of ours: all that must be there is, and nothing else."""
        told = json.loads(self.filled(block.body))
        assert any(fits(told, shape) for shape in shapes()), (
            f"{block.place}: nothing that is sent or told has this shape"
        )

    def yaml(self, block: Block) -> None:
        """One or more documents that a tool would read."""
        assert all(isinstance(each, dict) for each in yaml.safe_load_all(block.body)), block.place


def load(file: PurseFile, env: dict[str, str]) -> None:
    """What the processes read of a `purse.toml`, each by its own reader. Raises what they raise."""
    local, plan = file.local, file.plan
    read_own(local.prices)
    read_upstreams(local.upstreams, env)
    if local.ask:
        read_ask(local.ask)
    read_alerts(local.alerts, environment=env)
    read_observers(local.observers, environment=env, plan=plan, at=time.time_ns())
    read_seals(local.seals, environment=env)


@cache
def shapes() -> list[dict[str, Any]]:
    """Schemas of bodies and answers, as `/openapi.json` has them, and of what a webhook gets."""
    alert = json.loads(parcel_of(Alert(id="a", rule="percent", text="t", at=1), "json", "main").body)
    of_alert = {"properties": alert, "required": list(alert)}
    return [of_alert, *document(ROUTES)["components"]["schemas"].values()]


def fits(told: dict[str, Any], shape: dict[str, Any]) -> bool:
    return set(shape.get("required", ())) <= set(told) <= set(shape.get("properties", ()))


@asynccontextmanager
async def open_stage(folder: Path, *, nats: bool) -> AsyncIterator[Stage]:
    """In an empty folder, with a provider that keeps a bill in place of OpenAI. All that was started ends with it."""
    (folder / "examples").symlink_to(ROOT / "examples")
    async with FakeOpenAI() as provider:
        stage = Stage(folder, provider, {"https://api.openai.com": provider.url})
        try:
            if nats:
                await stage.broker()
            yield stage
        finally:
            await stage.end()
