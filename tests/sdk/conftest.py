"""One client after the other, with a wallet between it and its provider."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from sdk.clients import CLIENTS, Client, Clients, Running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def clients() -> AsyncIterator[Clients]:
    async with Clients() as clients:
        yield clients


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest, clients: Clients) -> Running:
    found: Client = request.param
    if found.missing:
        pytest.skip(found.missing)
    return Running(found, clients)
