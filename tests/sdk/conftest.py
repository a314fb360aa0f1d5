"""One client after the other, with a wallet between it and its provider; and a wallet that speaks Cycles."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from providers.fake_openai import FakeOpenAI
from running_purse import running_purse
from sdk.clients import CLIENTS, Client, Clients, Running
from sdk.cycles_world import (
    BUDGETS,
    CLIENT,
    PLAN,
    SPENDTHRIFT,
    TENANT,
    Caller,
    CyclesProgram,
    CyclesWallet,
    spending_key,
)


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


# --- Cycles -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def program(request: pytest.FixtureRequest) -> CyclesProgram:
    """The one that the test's file names as its own, or Cycles' client."""
    found: CyclesProgram = getattr(request.module, "PROGRAM", CLIENT)
    if found.missing:
        pytest.skip(found.missing)
    return found


@pytest.fixture(scope="module")
def wallet(tmp_path_factory: pytest.TempPathFactory, clients: Clients) -> Iterator[CyclesWallet]:
    folder = tmp_path_factory.mktemp("cycles")
    config = folder / "purse.toml"
    config.write_text(PLAN)
    with running_purse(folder / "data", "--config", str(config)) as purse:
        yield CyclesWallet(purse, {tenant: spending_key(purse, tenant) for tenant in (TENANT, SPENDTHRIFT)}, clients)


@pytest.fixture(scope="module")
def agents() -> Iterator[str]:
    return iter([f"agent-{number}" for number in range(BUDGETS)])


@pytest.fixture
def caller(program: CyclesProgram, wallet: CyclesWallet, agents: Iterator[str], tmp_path: Path) -> Caller:
    """The program, with a budget that nobody else has."""
    return Caller(wallet, next(agents), tmp_path / "journal", program)


@pytest_asyncio.fixture
async def provider() -> AsyncIterator[FakeOpenAI]:
    async with FakeOpenAI() as fake:
        yield fake
