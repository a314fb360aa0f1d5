"""Nobody in between: what the provider and the caller themselves take. Everybody else's figures are over this."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.proxy.contender import Address, Contender


@asynccontextmanager
async def _open(folder: Path, upstream_port: int) -> AsyncIterator[Address]:
    yield Address(upstream_port, "/v1/chat/completions")


DIRECT = Contender("direct", "straight to the provider", _open)
