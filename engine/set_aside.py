"""Copies of a store that was not closed cleanly, taken before a server may touch it.

Recovery itself destroys what follows a bad record (seen: one flipped bit, half a stream gone, no error), so the bytes
as they were are kept. Never a hard link: it would share a truncation. Never changes the store itself.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

import structlog

KEPT = 3  # newest copies; older ones are removed
DISK_FACTOR = 2  # free space wanted, in sizes of the store: the copy, and as much again to go on working
PARTIAL = ".partial"  # how the name of a copy ends that was not finished

_FICLONE = 0x40049409  # linux/fs.h: share the blocks until one side writes (btrfs, XFS, bcachefs)

log = structlog.get_logger()


def set_aside(store: Path, copies: Path) -> Path | None:
    """Copy `store` into a new folder under `copies`, keep the newest `KEPT`; returns the copy.

    None where there is nothing to copy, or where the disk is too short or fails, which is logged: it hinders no start.
    """
    size = _bytes_in(store)
    if not size:
        return None
    try:
        return _set_aside(store, copies, size)
    except (OSError, shutil.Error) as error:
        log.warning("store_not_set_aside", why=str(error), store=str(store), bytes=size)
        return None


def _set_aside(store: Path, copies: Path, size: int) -> Path | None:
    copies.mkdir(mode=0o700, parents=True, exist_ok=True)
    _remove([left for left in copies.iterdir() if left.suffix == PARTIAL])
    free = shutil.disk_usage(copies).free
    if free < size * DISK_FACTOR:
        log.warning("store_not_set_aside", why="the disk is short", store=str(store), bytes=size, bytes_free=free)
        return None
    copy = _copy(store, copies / f"{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}")
    _remove(sorted(copies.iterdir())[:-KEPT])
    log.warning("store_set_aside", why="the last stop was not clean", copy=str(copy), bytes=size)
    return copy


def _copy(store: Path, copy: Path) -> Path:
    partial = copy.with_suffix(copy.suffix + PARTIAL)
    shutil.copytree(store, partial, copy_function=_clone_or_copy)
    return partial.rename(copy)


def _clone_or_copy(source: str, target: str) -> None:
    with open(source, "rb") as read, open(target, "wb") as write:
        try:
            fcntl.ioctl(write.fileno(), _FICLONE, read.fileno())
        except OSError:  # not this file system, or not across two of them
            shutil.copyfileobj(read, write, 1 << 20)
    shutil.copystat(source, target)


def _bytes_in(folder: Path) -> int:
    return sum(os.lstat(Path(at) / name).st_size for at, _, names in os.walk(folder) for name in names)


def _remove(folders: list[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder)
