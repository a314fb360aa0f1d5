"""What `compose.yaml` deploys, as processes on loopback: its commands, its environment, its files, its health checks.

Nothing of a service is written here a second time. What differs from containers: a port on a service's own host becomes
a free one on loopback, a mount becomes a folder, and a secret that the file asks for is one of `SECRETS`.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import sysconfig
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import yaml
from integration.rig import REPOSITORY, WITHIN_S

from engine.embedded import find_server
from engine.leash import leashed
from engine.nats_roles import ROLES

COMPOSE: Mapping[str, Any] = yaml.safe_load((REPOSITORY / "compose.yaml").read_text())
SERVICES: Mapping[str, dict[str, Any]] = COMPOSE["services"]
NODES = ("nats-1", "nats-2", "nats-3")
WEBS = ("web-1", "web-2")
ENGINES = ("engine-1", "engine-2")
HOST = "127.0.0.1"
WEB_PORT, CLIENT_PORT = 8080, 4222
RESTART_PAUSE_S = 0.1  # as a container engine's first one
SECRETS = {
    **{f"NATS_{role.upper()}_PASSWORD": f"a{role}" for role in ROLES},
    "NATS_PASSWORD": "inside",
    "NATS_OPERATOR_PASSWORD": "trusted",
    "NATS_ROUTE_PASSWORD": "between",
}
ADMIN_KEY = "purse_of_the_cluster"

_ADDRESS = re.compile(rf"(?<![\w.-])({'|'.join(SERVICES)}|0\.0\.0\.0|127\.0\.0\.1):(\d+)")
_SECRET = re.compile(r"\$\{(\w+):\?\}")


class Part:
    """One service, on a folder and ports of its own that outlive its death."""

    def __init__(self, name: str, folder: Path, ports: Mapping[tuple[str, int], int]) -> None:
        self.name = name
        self._service, self._ports = SERVICES[name], ports
        self._home = folder / name
        self._log = folder / f"{name}.log"
        self._mounts = {"/data": self._home, **self._mounted()}
        self._process: asyncio.subprocess.Process | None = None
        self._kept: asyncio.Task[None] | None = None

    def _mounted(self) -> dict[str, Path]:
        """Where in the repository the folders lie that it mounts, by where it sees them."""
        mounts = [volume.split(":")[:2] for volume in self._service.get("volumes", [])]
        return {target: REPOSITORY / source for source, target in mounts if source.startswith("./")}

    @property
    def environment(self) -> dict[str, str]:
        return {name: self._here(name, value) for name, value in self._service.get("environment", {}).items()}

    @property
    def command(self) -> list[str]:
        program, *arguments = self._service["command"]
        return [self._program(program), *[self._placed(argument) for argument in arguments]]

    async def start(self) -> None:
        """Start it, and from then on again whenever it ends and its restart policy says so."""
        self._home.mkdir(exist_ok=True)
        for secret in self._service.get("secrets", []):
            (self._home / Path(secret["target"]).name).write_text(ADMIN_KEY)
        await self._spawn()
        self._kept = asyncio.create_task(self._keep())

    async def _spawn(self) -> None:
        with open(self._log, "ab") as log:  # noqa: ASYNC230  opened once a start
            self._process = await asyncio.create_subprocess_exec(
                *leashed(self.command),
                cwd=self._home,
                env=self._surroundings(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _surroundings(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PURSE_", "NATS_"))}
        return {**kept, "PYTHONPATH": str(REPOSITORY), **self.environment}

    async def _keep(self) -> None:
        assert self._process is not None
        while (code := await self._process.wait()) or self._service["restart"] != "on-failure":
            assert self._service["restart"] in ("unless-stopped", "on-failure"), code
            await asyncio.sleep(RESTART_PAUSE_S)
            await self._spawn()

    async def die(self) -> None:
        """kill -9, and its restart policy is all that brings it back."""
        assert self._process is not None
        with suppress(ProcessLookupError):
            self._process.kill()
        await asyncio.wait_for(self._process.wait(), WITHIN_S)

    async def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """It ends, and stays down until somebody starts it."""
        if self._process is None or self._kept is None:
            return
        self._kept.cancel()
        await asyncio.wait([self._kept])
        with suppress(ProcessLookupError):
            self._process.send_signal(number)
        await asyncio.wait_for(self._process.wait(), WITHIN_S)

    async def ended_well(self) -> None:
        """Wait until it is not started again: what it had to do is done."""
        assert self._kept is not None
        await asyncio.wait_for(asyncio.shield(self._kept), WITHIN_S)

    async def run(self, *command: str) -> tuple[int, bytes]:
        """Exit code and output of another command where this one runs, as `docker compose exec` has it."""
        process = await asyncio.create_subprocess_exec(
            self._program(command[0]), *command[1:], cwd=self._home, env=self._surroundings(), stdout=subprocess.PIPE
        )
        said, _ = await asyncio.wait_for(process.communicate(), WITHIN_S)
        assert process.returncode is not None
        return process.returncode, said

    async def healthy(self) -> bool:
        """Whether its own health check says so."""
        kind, program, *arguments = self._service["healthcheck"]["test"]
        assert kind == "CMD"
        checking = await asyncio.create_subprocess_exec(
            self._program(program), *map(self._placed, arguments), stderr=subprocess.DEVNULL
        )
        return await asyncio.wait_for(checking.wait(), WITHIN_S) == 0

    def port(self, inside: int) -> int:
        """The port on loopback that stands for the one inside its container."""
        return self._ports[self.name, inside]

    def said(self, word: str) -> bool:
        """Whether it logged this, in any of its lives."""
        return word in self._log.read_text(errors="replace")

    def _here(self, name: str, value: str) -> str:
        if name == "PURSE_PORT":
            return str(self.port(int(value)))
        return self._placed(_SECRET.sub(lambda found: SECRETS[found[1]], value))

    def _placed(self, text: str) -> str:
        """With what is a container's own put where it is here."""
        for target, folder in self._mounts.items():
            text = re.sub(rf"^{re.escape(target)}(?=/|$)", str(folder), text)
        text = _ADDRESS.sub(lambda found: f"{HOST}:{self._ports[self._owner(found[1]), int(found[2])]}", text)
        return HOST if text == "0.0.0.0" else text

    def _owner(self, host: str) -> str:
        return host if host in SERVICES else self.name

    @staticmethod
    def _program(name: str) -> str:
        scripts = Path(sysconfig.get_path("scripts"))
        return {"python": sys.executable, "nats-server": str(find_server()), "purse": str(scripts / "purse")}[name]


class Cluster:
    """All of it. `nodes` are the brokers; what is to run beside them is started by whoever needs it."""

    def __init__(self, folder: Path) -> None:
        inside = {(name, port) for name in NODES for port in (CLIENT_PORT, 6222, 8222)}
        wanted = sorted(inside | {(name, WEB_PORT) for name in WEBS})
        ports = dict(zip(wanted, _free_ports(len(wanted)), strict=True))
        self.parts = {name: Part(name, folder, ports) for name in SERVICES}
        self.nodes = {name: self.parts[name] for name in NODES}
        clients = [ports[name, CLIENT_PORT] for name in NODES]
        self.url = self._url("purse", SECRETS["NATS_PASSWORD"], clients)
        self.operator_url = self._url("operator", SECRETS["NATS_OPERATOR_PASSWORD"], clients)
        self.role_urls = {role: self._url(role, f"a{role}", clients) for role in ROLES}
        self.pages = [f"http://{HOST}:{ports[name, WEB_PORT]}" for name in WEBS]

    def _url(self, user: str, password: str, ports: list[int]) -> str:
        return ",".join(f"nats://{user}:{password}@{HOST}:{port}" for port in ports)


@asynccontextmanager
async def cluster_in(folder: Path) -> AsyncIterator[Cluster]:
    """The three brokers, until the block ends, and with them whatever else was started. They elect meanwhile."""
    cluster = Cluster(folder)
    async with AsyncExitStack() as ends:
        for part in cluster.parts.values():
            ends.push_async_callback(part.kill)
        for node in cluster.nodes.values():
            await node.start()
        yield cluster


def _free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind((HOST, 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()
