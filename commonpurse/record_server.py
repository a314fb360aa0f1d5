"""Where a wallet's record can be read: a server elsewhere, one that runs on a data folder, or one started to look."""

from __future__ import annotations

import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engine.embedded import embedded_nats
from engine.errors import Misconfigured, NoAnswer
from engine.journal import Journal

CONNECT_WAIT_S = 1.0

_RUNNING = re.compile(r'listen: "([^"]+)".*?user: "([^"]+)", password: "([^"]+)"', re.DOTALL)


@dataclass(frozen=True, slots=True)
class RecordServer:
    """`url` has the credentials in it. `started`: only for as long as we look."""

    url: str
    kind: Literal["given", "running", "started"]


@asynccontextmanager
async def server_of(data: Path, *, wallet: str = "main", nats: str | None = None) -> AsyncIterator[RecordServer]:
    """The server at `nats`, else the one on the data folder, started for the block where none runs.

    Raises `NoAnswer` or `Misconfigured` where it cannot be started.
    """
    if nats is not None:
        yield RecordServer(nats, "given")
        return
    running = await _running(data, wallet)
    if running is not None:
        yield RecordServer(running, "running")
        return
    async with embedded_nats(data, wallet=wallet) as server:
        yield RecordServer(server.url, "started")


async def _running(data: Path, wallet: str) -> str | None:
    """The address of the server that runs on this folder, from the file it was started with; None if none answers."""
    try:
        found = _RUNNING.search((data / "nats" / "nats.conf").read_text(encoding="utf-8"))
    except OSError:
        return None
    if found is None:
        return None
    url = f"nats://{found[2]}:{found[3]}@{found[1]}"
    host, _, port = found[1].rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=CONNECT_WAIT_S):
            pass  # somebody listens; only the credentials tell whether it is ours
        async with Journal.connect(url, wallet=wallet):
            return url
    except (OSError, ValueError, NoAnswer, Misconfigured):
        return None
