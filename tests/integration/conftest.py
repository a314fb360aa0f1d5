"""What integration tests share: one real server a session, and a wallet of its own for each test."""

from __future__ import annotations

import secrets
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from integration.wire import Wire, wire_to

from engine.embedded import EmbeddedServer, embedded_nats


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def nats_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EmbeddedServer]:
    """A server shared by the whole session. Do not stop or restart it: start your own for that."""
    async with embedded_nats(tmp_path_factory.mktemp("data")) as server:
        yield server


@pytest.fixture
def wallet_name() -> str:
    """A wallet no other test uses."""
    return f"t{secrets.token_hex(6)}"


@pytest_asyncio.fixture(loop_scope="session")
async def own_server(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    """A server of the test's own, to be stopped, paused or killed."""
    async with embedded_nats(tmp_path / "own") as server:
        yield server
        server.kill(signal.SIGCONT)


@pytest_asyncio.fixture(loop_scope="session")
async def wire(nats_server: EmbeddedServer) -> AsyncIterator[Wire]:
    """A relay to the shared server that can lose what it says, or be cut."""
    async with wire_to(nats_server.url) as relay:
        yield relay
