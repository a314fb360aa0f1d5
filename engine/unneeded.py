"""What our libraries import if it is installed and an engine never uses: half of the time a start takes went there.

nats-py wants aiohttp for websockets, which `journal` refuses as an address; structlog wants rich for the tracebacks of
a terminal, where an engine writes JSON lines. A process that leaves them out cannot import them any more.
"""

from __future__ import annotations

import sys
from types import ModuleType

UNNEEDED = ("aiohttp", "rich")


def leave_out() -> None:
    """Let imports of these fail, which their importers allow for. Only for a process of its own, before the others."""
    modules: dict[str, ModuleType | None] = sys.modules  # type: ignore[assignment]
    for name in UNNEEDED:
        modules.setdefault(name, None)
