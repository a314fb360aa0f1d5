"""Every client there is a test for, and how one runs: in a process of its package's own, asked line by line.

A client gets the address and the key that its user would give it, and nothing else of the machine's environment.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

HERE = Path(__file__).parent
FETCHED = HERE.parents[1] / ".venv" / "sdks"
"""Where `make` puts what no other test needs."""

CALL_WAIT_S = 300.0  # a deadline for a process that starts on a busy machine, not a measurement
LINE_BYTES_MAX = 1 << 22


class Program(Protocol):
    """What can run in a process of its own. One process serves all that share `script` and `packages`."""

    @property
    def script(self) -> str: ...

    @property
    def which(self) -> str:
        """What a line of its script's calls it."""

    @property
    def packages(self) -> str: ...

    def command(self) -> list[str]: ...

    def environment(self) -> dict[str, str]: ...


@dataclass(frozen=True)
class Client:
    """`family`: those that raise the same errors. `speaks`: how its answers end.

    `script` has it under the name `which`. `packages`: its folder among what was fetched, "npm" for JavaScript's, ""
    for the test environment's own.
    """

    name: str
    family: str
    provider: str
    speaks: str
    script: str
    which: str
    packages: str = ""
    embeds: bool = False
    elsewhere: bool = True
    """It has something to ask for that is never guarded."""

    @property
    def path(self) -> str:
        """Of the provider's own address, what its users write of it."""
        return "/v1" if self.provider == "openai" or self.family == "ai" else ""

    @property
    def folder(self) -> Path:
        return HERE / "node_modules" if self.packages == "npm" else FETCHED / self.packages

    @property
    def missing(self) -> str | None:
        """Why it cannot run here, if it cannot."""
        if self.packages == "npm" and shutil.which("node") is None:
            return "needs node"
        return None if self.folder.exists() or not self.packages else f"needs {self.folder}, which `make sdks` fetches"

    def command(self) -> list[str]:
        program = shutil.which("node") if self.packages == "npm" else sys.executable
        assert program is not None
        return [program, str(HERE / self.script)]

    def environment(self) -> dict[str, str]:
        path = {"PYTHONPATH": str(self.folder)} if self.packages not in ("", "npm") else {}
        return {"PATH": os.environ["PATH"], "HOME": str(FETCHED), **path}


def _python(name: str, of: str, packages: str = "") -> list[Client]:
    script = f"ask_{of}.py"
    if of == "anthropic":
        family = "anthropic 1" if packages else "anthropic"
        return [Client(name, family, "anthropic", "messages", script, "messages", packages)]
    return [
        Client(
            f"{name}-{speaks}", "openai", "openai", speaks, script, speaks, packages, embeds=True,
            elsewhere=of != "langchain",
        )
        for speaks in ("chat", "responses")
    ]  # fmt: skip


def _npm(which: str, family: str, speaks: str, provider: str) -> Client:
    return Client(
        f"npm-{which}", family, provider, speaks, "ask.mjs", which, "npm", embeds=provider == "openai",
        elsewhere=family != "ai",
    )  # fmt: skip


CLIENTS = (
    *_python("openai-3", "openai"),
    *_python("openai-2", "openai", "openai-2"),
    *_python("langchain", "langchain", "langchain"),
    *_python("anthropic-2", "anthropic"),
    *_python("anthropic-1", "anthropic", "anthropic-1"),
    _npm("openai-chat", "openai (npm)", "chat", "openai"),
    _npm("openai-responses", "openai (npm)", "responses", "openai"),
    _npm("anthropic", "@anthropic-ai/sdk", "messages", "anthropic"),
    _npm("ai-openai-chat", "ai", "chat", "openai"),
    _npm("ai-openai-responses", "ai", "responses", "openai"),
    _npm("ai-anthropic", "ai", "messages", "anthropic"),
)


class Clients:
    """The processes that run, one for all the clients of one script and its packages. `async with` it."""

    def __init__(self) -> None:
        self._processes: dict[tuple[str, str], asyncio.subprocess.Process] = {}

    async def ask(self, client: Program, does: str, **asked: Any) -> dict[str, Any]:
        """What the client saw of one call."""
        process = await self._process(client)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"client": client.which, "does": does, **asked}).encode() + b"\n")
        async with asyncio.timeout(CALL_WAIT_S):
            line = await process.stdout.readline()
        assert line, f"{client.script} has ended: what it said stands above"
        said: dict[str, Any] = json.loads(line)
        return said

    async def _process(self, client: Program) -> asyncio.subprocess.Process:
        place = (client.script, client.packages)
        if place not in self._processes:
            self._processes[place] = await asyncio.create_subprocess_exec(
                *client.command(), env=client.environment(), cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                limit=LINE_BYTES_MAX,
            )  # fmt: skip
        return self._processes[place]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes.values():
            if process.returncode is None:
                process.kill()
            await process.wait()


@dataclass(frozen=True)
class Running:
    """One client and where it runs."""

    client: Client
    clients: Clients

    async def ask(self, does: str, **asked: Any) -> dict[str, Any]:
        return await self.clients.ask(self.client, does, **asked)
