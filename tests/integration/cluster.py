"""Three real nats-servers on loopback, each started from the very file that `compose.yaml` gives its nodes."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

from integration.rig import REPOSITORY, WITHIN_S

from engine.embedded import find_server
from engine.leash import leashed
from engine.nats_roles import ROLES

CONFIG = REPOSITORY / "deploy" / "nats" / "cluster.conf"
NODES = ("nats-1", "nats-2", "nats-3")
HOST = "127.0.0.1"
ROLE_PASSWORDS = {f"NATS_{role.upper()}_PASSWORD": f"a{role}" for role in ROLES}
PASSWORDS = ROLE_PASSWORDS | {
    "NATS_PASSWORD": "inside",
    "NATS_OPERATOR_PASSWORD": "trusted",
    "NATS_ROUTE_PASSWORD": "between",
}


class Node:
    """One server of the cluster, on a folder and ports of its own that outlive its death."""

    def __init__(self, name: str, environment: dict[str, str], log: Path) -> None:
        self.name = name
        self._environment, self._log = environment, log
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        with open(self._log, "ab") as log:  # noqa: ASYNC230  opened once a start
            self._process = await asyncio.create_subprocess_exec(
                *leashed([str(find_server()), "-c", str(CONFIG)]),
                env={**os.environ, **self._environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    async def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        assert self._process is not None
        with suppress(ProcessLookupError):
            self._process.send_signal(number)
        await asyncio.wait_for(self._process.wait(), WITHIN_S)


class Cluster:
    def __init__(self, folder: Path) -> None:
        clients, routes, https = _free_ports(3), _free_ports(3), _free_ports(3)
        shared = PASSWORDS | {
            f"NATS_ROUTE_{number}": f"nats://route:{PASSWORDS['NATS_ROUTE_PASSWORD']}@{HOST}:{port}"
            for number, port in enumerate(routes, start=1)
        }
        self.nodes = {
            name: Node(
                name,
                shared
                | {
                    "NATS_NAME": name,
                    "NATS_LISTEN": f"{HOST}:{client}",
                    "NATS_HTTP": f"{HOST}:{http}",
                    "NATS_CLUSTER_LISTEN": f"{HOST}:{route}",
                    "NATS_STORE": str(folder / name),
                },
                folder / f"{name}.log",
            )
            for name, client, route, http in zip(NODES, clients, routes, https, strict=True)
        }
        self.url = self._url("purse", PASSWORDS["NATS_PASSWORD"], clients)
        self.operator_url = self._url("operator", PASSWORDS["NATS_OPERATOR_PASSWORD"], clients)
        self.role_urls = {role: self._url(role, f"a{role}", clients) for role in ROLES}

    def _url(self, user: str, password: str, ports: list[int]) -> str:
        return ",".join(f"nats://{user}:{password}@{HOST}:{port}" for port in ports)


@asynccontextmanager
async def cluster_in(folder: Path) -> AsyncIterator[Cluster]:
    """All three, until the block ends. They find each other and elect leaders meanwhile."""
    cluster = Cluster(folder)
    async with AsyncExitStack() as ends:
        for node in cluster.nodes.values():
            await node.start()
            ends.push_async_callback(node.kill)
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
