"""What integration tests share: one real server a session, and a wallet of its own for each test."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

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
