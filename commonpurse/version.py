"""What is installed, and what it reads and writes. Asked for by `purse --version` only."""

from __future__ import annotations

import re
import subprocess
from importlib.metadata import PackageNotFoundError, version

import msgspec

from engine.core.messages import MESSAGE_VERSION
from engine.core.plan import RULES
from engine.core.wallet import SCHEMA
from engine.embedded import find_server
from engine.errors import Misconfigured
from engine.stream_settings import FORMAT

SERVER_WAIT_S = 10.0


class Versions(msgspec.Struct, frozen=True):
    """The product's own version, None where it runs from its source tree, and the numbers of what it keeps.

    `rules`: by which is decided. `stream`: how the stream is set. `messages`: of what is stored. `snapshots`: of their
    state. `nats_server`: the program that `purse up` would start, None where there is none.
    """

    commonpurse: str | None
    rules: int
    stream: int
    messages: int
    snapshots: int
    nats_server: str | None


def versions() -> Versions:
    return Versions(_own_version(), RULES, int(FORMAT), MESSAGE_VERSION, SCHEMA, _server_version())


def version_line(found: Versions) -> str:
    """`commonpurse 0.1.0, rules 1, stream 1, messages 1, snapshots 4, nats-server v2.15.1`."""
    own = found.commonpurse or "(not installed, run from its source tree)"
    server = f"v{found.nats_server}" if found.nats_server else "not found"
    return (
        f"commonpurse {own}, rules {found.rules}, stream {found.stream}, messages {found.messages}, "
        f"snapshots {found.snapshots}, nats-server {server}"
    )


def _own_version() -> str | None:
    try:
        return version("commonpurse")
    except PackageNotFoundError:
        return None


def _server_version() -> str | None:
    try:
        said = subprocess.run(  # noqa: S603  the program that `purse up` would start
            [find_server(), "--version"], capture_output=True, text=True, timeout=SERVER_WAIT_S, check=True
        )
    except (Misconfigured, OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"v(\d+\S*)", said.stdout)
    return found[1] if found else None
