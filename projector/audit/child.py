"""A process of our own code for one piece of work: asked on its standard input, heard on its standard output."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path


@asynccontextmanager
async def child(module: str) -> AsyncIterator[Process]:
    """`python -m module`, with the code that runs here. It is killed with the block, if it has not ended by itself."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(_same_code())},
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _same_code() -> Iterator[str]:
    """Where the process finds what runs here, whatever folder it is started in."""
    yield str(Path(__file__).parents[2])
    if os.environ.get("PYTHONPATH"):
        yield os.environ["PYTHONPATH"]
