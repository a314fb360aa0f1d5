"""What the figures were measured on, as far as it matters to them."""

from __future__ import annotations

import os
import platform
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

BLOCK = bytes(4096)
SYNCS = 200
SYNCS_S_MAX = 3.0
MEMORY_FILE_SYSTEMS = frozenset({"tmpfs", "ramfs"})


@dataclass(frozen=True)
class Syncs:
    """How long this disk takes to keep 4 KiB: append, then `fdatasync`."""

    p50_ms: float
    p99_ms: float


@dataclass(frozen=True)
class Machine:
    cores: int
    cpu: str
    system: str
    python: str
    file_system: str
    load: float
    """Programs that wanted a core, on average over the last minute. Above zero before we begin means noise."""

    @property
    def warning(self) -> str | None:
        """What makes the figures worth less than they look, None if nothing is known."""
        if self.file_system in MEMORY_FILE_SYSTEMS:
            return (
                f"the folder is on {self.file_system}: syncing costs nothing there; choose one on a disk with --folder"
            )
        if self.load > self.cores / 4:
            return f"load {self.load:.1f} on {self.cores} cores already: absolute figures are noise, read the ratios"
        return None


def look(folder: Path) -> Machine:
    """This machine, now. `folder` is where the contenders will keep their data."""
    return Machine(
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        cpu=_cpu(),
        system=f"{platform.system()} {platform.release()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        file_system=_file_system(folder),
        load=os.getloadavg()[0],
    )


def syncs(folder: Path) -> Syncs:
    """Measure the disk under `folder`."""
    took_ms: list[float] = []
    sync = getattr(os, "fdatasync", os.fsync)
    path, gives_up_at = folder / "syncs", time.monotonic() + SYNCS_S_MAX
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        while len(took_ms) < SYNCS and time.monotonic() < gives_up_at:
            os.write(file, BLOCK)
            began = time.perf_counter()
            sync(file)
            took_ms.append(1e3 * (time.perf_counter() - began))
    finally:
        os.close(file)
        path.unlink()
    return Syncs(statistics.median(took_ms), sorted(took_ms)[int(0.99 * len(took_ms))])


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _file_system(folder: Path) -> str:
    """The type of the file system that holds `folder`: of the longest mount point above it."""
    try:
        mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    except OSError:
        return "unknown"
    above = {str(parent) for parent in (folder.resolve(), *folder.resolve().parents)}
    return max(((point, kind) for _, point, kind, *_ in mounts if point in above), key=lambda m: len(m[0]))[1]
