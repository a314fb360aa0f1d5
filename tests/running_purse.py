"""A real `purse up` in a child process, for tests that use it from outside: its address, its key, its parts to kill."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner, Result

from commonpurse.__main__ import purse

END_WAIT_S = 60.0


@dataclass
class RunningPurse:
    """A wallet that has said it is ready."""

    process: subprocess.Popen[str]
    data: Path
    url: str
    key: str

    def ask(self, *arguments: str) -> Result:
        """Run a command against it in this process."""
        return CliRunner().invoke(purse, ["--url", self.url, "--key", self.key, *arguments], catch_exceptions=False)

    def kill(self, part: str) -> None:
        """kill -9 of `web`, `engine`, `projector` or `nats-server`, if it runs at this moment."""
        for child in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split():
            command = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
            if part.encode() in (os.path.basename(command[0]), *command[2:4]):
                os.kill(int(child), signal.SIGKILL)


def environment() -> dict[str, str]:
    """Of a `purse` in a child process: no setting of whoever runs the tests gets into it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PURSE_")}
    return {**kept, "PYTHONPATH": os.pathsep.join(sys.path)}


@contextmanager
def running_purse(data: Path, *options: str) -> Iterator[RunningPurse]:
    """Runs on any free port until the context ends."""
    command = [sys.executable, "-m", "commonpurse", "up", "--data", str(data), "--port", "0", *options]
    with open(data.with_suffix(".err"), "w") as said:
        process = subprocess.Popen(
            command,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        )
    try:
        yield RunningPurse(process, data, *_until_ready(process))
    finally:
        process.terminate()
        process.communicate(timeout=END_WAIT_S)


def _until_ready(process: subprocess.Popen[str]) -> tuple[str, str]:
    assert process.stdout is not None
    url = ""
    for line in process.stdout:
        if found := re.match(r"\s+page\s+(\S+)/", line):
            url = found[1]
        if found := re.match(r"\s+admin key\s+(\S+)", line):
            return url, found[1]
    raise AssertionError(f"purse up ended with {process.wait()} before it was ready")
