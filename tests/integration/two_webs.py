"""Two web processes that share one wallet and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from integration.rig import engine_on, process_of, told, wallet_on

from engine.core.plan import Plan
from engine.embedded import EmbeddedServer
from engine.journal import Journal

KEY = "purse_integration"
"""Of their admin."""

Answer = tuple[int, dict[str, Any]]


@dataclass
class Webs:
    """Where both are, and a session to ask them."""

    urls: tuple[str, str]
    journal: Journal
    session: aiohttp.ClientSession


@asynccontextmanager
async def webs_on(server: EmbeddedServer, wallet: str, data: Path, plan: Plan) -> AsyncIterator[Webs]:
    """With an engine. The projector is the test's own."""
    async with AsyncExitStack() as stack:
        journal = await stack.enter_async_context(wallet_on(server.url, wallet, plan=plan))
        await stack.enter_async_context(engine_on(server.url, wallet))
        await told(journal)
        webs = []
        for name in ("one", "other"):
            folder = data / name
            folder.mkdir()
            (folder / "admin.key").write_text(f"{KEY}\n")
            environment = {
                "PURSE_NATS_URL": server.url, "PURSE_WALLET": wallet, "PURSE_DATA": str(folder), "PURSE_PORT": "0",
                "PURSE_OPEN": "",
            }  # fmt: skip
            webs.append(await stack.enter_async_context(process_of(["-m", "web"], **environment)))
        one, other = [(await web.until("web_listening"))["url"] for web in webs]
        yield Webs((one, other), journal, await stack.enter_async_context(aiohttp.ClientSession()))
