"""The processes below another, and what they run. Linux alone; elsewhere none are found."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def below(pid: int) -> Mapping[int, list[str]]:
    """This process and all its descendants, with their command lines."""
    parents = {int(entry.name): _parent(entry) for entry in Path("/proc").glob("[0-9]*")}
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return {one: _command(one) for one in sorted(found)}


def _parent(entry: Path) -> int:
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _command(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").split("\0")
    except OSError:
        return []
