"""What is installed, in one line. Asked for by `purse --version` only."""

from __future__ import annotations

import subprocess
from importlib.metadata import PackageNotFoundError, version

from engine.core.plan import RULES
from engine.embedded import find_server
from engine.errors import Misconfigured

SERVER_WAIT_S = 10.0


def version_line() -> str:
    """`commonpurse 0.1.0, rules 1, nats-server v2.15.1`; says so where a part is missing."""
    return f"commonpurse {_own_version()}, rules {RULES}, nats-server {_server_version()}"


def _own_version() -> str:
    try:
        return version("commonpurse")
    except PackageNotFoundError:
        return "(not installed, run from its source tree)"


def _server_version() -> str:
    try:
        said = subprocess.run(  # noqa: S603  the program that `purse up` would start
            [find_server(), "--version"], capture_output=True, text=True, timeout=SERVER_WAIT_S, check=True
        )
    except (Misconfigured, OSError, subprocess.SubprocessError):
        return "not found"
    return said.stdout.strip().removeprefix("nats-server:").strip()
