"""Keeps the processes of one machine running: starts them in order, starts again what dies, ends them front first.

It knows processes and exit statuses only. It must never hide that something is wrong: a process that says the stream
cannot be trusted, or that cannot start, ends the whole house.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from engine.errors import PurseError
from engine.leash import leashed

UNTRUSTED = 4  # the exit status of a process that cannot trust the stream
BACKOFF_S_MIN = 0.1
BACKOFF_S_MAX = 2.0
QUICK_S = 10.0  # a process that fails sooner than this after its start has failed to start
QUICK_FAILURES_MAX = 5  # in a row; then it will not come up by trying again
STOP_WAIT_S = 10.0
LOG_BYTES_MAX = 8 * 1024 * 1024  # a longer log is put away at the next start; one old log is kept
TAIL_BYTES = 64 * 1024
LINES_SHOWN = 10

Say = Callable[[str], None]
"""Tells the operator one thing that happened."""


class Service(Protocol):
    """Something that runs until it ends. `EmbeddedServer` is one, `Program` another."""

    @property
    def name(self) -> str: ...

    async def start(self) -> None:
        """Start it unless it runs. Raises `PurseError` if it cannot."""

    async def wait(self) -> int:
        """Wait until it ends; its exit status, negative for a signal."""

    async def stop(self) -> int:
        """End it, by force if need be; its exit status."""

    def last_words(self) -> str:
        """The last lines it wrote, "" if none."""


class Program:
    """A command with its own log file and process group, on a leash: it does not outlive this process."""

    def __init__(self, name: str, command: Sequence[str], *, environment: Mapping[str, str], logs: Path) -> None:
        self.name = name
        self._command, self._environment = list(command), dict(environment)
        self._log = logs / f"{name}.log"
        self._log_start = 0
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        self._log_start = _prepare_log(self._log)
        with open(self._log, "ab") as log:  # noqa: ASYNC230  a local file, opened once a start
            self._process = await asyncio.create_subprocess_exec(
                *leashed(self._command),
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the supervisor, which knows the order
            )

    async def wait(self) -> int:
        assert self._process is not None, "not started"
        return await self._process.wait()

    async def stop(self) -> int:
        if self._process is None:
            return 0
        self.kill(signal.SIGTERM)
        try:
            return await asyncio.wait_for(self.wait(), STOP_WAIT_S)
        except TimeoutError:
            self.kill()
            return await self.wait()

    def kill(self, sig: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal, if it still runs."""
        with suppress(ProcessLookupError):
            if self._process is not None:
                self._process.send_signal(sig)

    def last_words(self) -> str:
        with open(self._log, "rb") as log:
            log.seek(max(self._log_start, log.seek(0, os.SEEK_END) - TAIL_BYTES))
            lines = log.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-LINES_SHOWN:])


def module(name: str, *, environment: Mapping[str, str], logs: Path) -> Program:
    """`python -m name`. The working folder is not searched: a caller's own folder `web` must not become ours."""
    return Program(name, [sys.executable, "-P", "-m", name], environment=environment, logs=logs)


class Supervisor:
    """`services` in the order in which they start; they end in the reverse one."""

    def __init__(self, services: Sequence[Service], say: Say) -> None:
        self._services, self._say = list(services), say

    async def run(self, stop: asyncio.Event) -> int:
        """Keep all running until `stop`: 0. 4 once one cannot trust the stream, 1 once one cannot start."""
        try:
            async with asyncio.TaskGroup() as group:
                ends = [group.create_task(self._keep(service)) for service in self._services]
                ends.append(group.create_task(_asked_to(stop)))
                ended, others = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                for other in others:
                    other.cancel()
            return max(end.result() for end in ended)  # two at once: distrust of the stream weighs most
        finally:
            for service in reversed(self._services):
                await service.stop()

    async def _keep(self, service: Service) -> int:
        """Run it again and again; returns what the house ends with when that makes no sense any more."""
        failures, backoff_s = 0, BACKOFF_S_MIN
        while True:
            started_at = time.monotonic()
            status, last_words = await _run_once(service)
            lived_s = time.monotonic() - started_at
            failures = 0 if lived_s >= QUICK_S else failures
            backoff_s = BACKOFF_S_MIN if lived_s >= BACKOFF_S_MAX else backoff_s  # it does not spin
            failures += status >= 0  # one that was killed did not fail by itself
            if status == UNTRUSTED:
                self._say(f"{service.name} cannot trust the stream: everything stops{_indented(last_words)}")
                return UNTRUSTED
            if failures >= QUICK_FAILURES_MAX:
                self._say(f"{service.name} {_how(status)}, {failures} times in a row: giving up{_indented(last_words)}")
                return 1
            self._say(f"{service.name} {_how(status)}: starting it again{_indented(last_words if status > 0 else '')}")
            await asyncio.sleep(backoff_s)
            backoff_s = min(backoff_s * 2, BACKOFF_S_MAX)


async def _asked_to(stop: asyncio.Event) -> int:
    await stop.wait()
    return 0


async def _run_once(service: Service) -> tuple[int, str]:
    """Exit status and last words of one life."""
    try:
        await service.start()
    except PurseError as error:
        return 1, str(error)
    status = await service.wait()
    return status, service.last_words()


def _how(status: int) -> str:
    return f"ended with status {status}" if status >= 0 else f"was ended by {signal.Signals(-status).name}"


def _indented(lines: str) -> str:
    return "".join(f"\n    {line}" for line in lines.splitlines())


def _prepare_log(log: Path) -> int:
    """Put a long log away; returns where this life's lines will begin."""
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    size = log.stat().st_size if log.exists() else 0
    if size <= LOG_BYTES_MAX:
        return size
    log.replace(log.with_suffix(".log.1"))
    return 0
