"""Starts a server for the length of a block. It ends with the block, and with this process however that ends."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from engine.leash import leashed

STOP_WAIT_S = 10.0
WORDS_BYTES = 2_000


class EndedError(RuntimeError):
    """A server ended by itself while it was needed."""


class Child:
    """A running server and the file it writes to."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name, self._process, self._log = name, process, log

    @property
    def pid(self) -> int:
        return self._process.pid

    def check(self) -> None:
        """Raise `EndedError` with its last words if it has ended."""
        if self._process.returncode is not None:
            raise EndedError(f"{self.name} ended with status {self._process.returncode}: {self.last_words()}")

    def last_words(self) -> str:
        return self._log.read_text(errors="replace")[-WORDS_BYTES:].strip() or "it said nothing"

    async def stop(self) -> None:
        with suppress(ProcessLookupError):
            self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), STOP_WAIT_S)
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()


@asynccontextmanager
async def child(
    name: str, command: Sequence[str], *, folder: Path, env: Mapping[str, str] | None = None
) -> AsyncIterator[Child]:
    """Run `command` (an absolute path first) until the block ends. Its output goes to `folder/<name>.log`.

    If the block fails because the server is gone, the error carries what it said last.
    """
    log = folder / f"{name}.log"
    with open(log, "wb") as output:  # noqa: ASYNC230  a local file, before anything is measured
        process = await asyncio.create_subprocess_exec(
            *leashed(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **(env or {})},
            cwd=folder,
            start_new_session=True,  # Ctrl-C is for us; we stop it when its clients are closed
        )
    started = Child(name, process, log)
    try:
        yield started
    except Exception as error:  # whatever it is goes on its way, with what the child said last
        if process.returncode is not None:
            error.add_note(f"{name} ended with status {process.returncode}: {started.last_words()}")
        raise
    finally:
        await started.stop()


def free_port() -> int:
    """A port of this machine that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
