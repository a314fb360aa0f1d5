"""Copies of the store that were set aside: which there are, what they hold, and putting one back.

Nothing is ever deleted or overwritten here: the store that is replaced is set aside itself.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from engine.data_folder import locked
from engine.embedded import embedded_nats
from engine.errors import Misconfigured, StreamRefused
from engine.journal import Journal
from engine.set_aside import PARTIAL


def store_of(data: Path) -> Path:
    return data / "nats" / "store"


def copies_of(data: Path) -> list[Path]:
    """The copies there are, newest first."""
    folder = data / "nats" / "aside"
    if not folder.is_dir():
        return []
    return sorted((copy for copy in folder.iterdir() if copy.is_dir() and copy.suffix != PARTIAL), reverse=True)


async def restore(data: Path, wallet: str, name: str) -> tuple[Path, int, int, Path]:
    """Put the copy called `name` ("": the newest) in the store's place, while nothing else runs on the folder.

    Returns the copy, its last sequence, that of the store it replaces, and where that store is kept. A server that
    ours alone is started on a second copy, to see what it holds; the copy itself stays as it is. Raises `Misconfigured`
    if there is none, if something runs, or if a copy nobody named holds no more than the present store.
    """
    async with locked(data):
        copy = _named(data, name)
        async with _second(copy, data) as second:
            held, present = await last_in(second, wallet), await _last_in_store(data, wallet)
            if held <= present and not name:
                raise Misconfigured(
                    f"the newest copy, {copy.name}, ends at sequence {held:,} and the present store at {present:,}: "
                    "nothing to gain; name a copy to take it all the same"
                )
            return copy, held, present, await asyncio.to_thread(_swap, data, second)


def _named(data: Path, name: str) -> Path:
    copies = copies_of(data)
    if not copies:
        raise Misconfigured(f"there is no copy in {data / 'nats' / 'aside'}")
    for copy in copies:
        if name in ("", copy.name):
            return copy
    raise Misconfigured(f"there is no copy {name}; there are {', '.join(copy.name for copy in copies)}")


@asynccontextmanager
async def _second(store: Path, data: Path) -> AsyncIterator[Path]:
    """A data folder with a copy of this store, on the same disk; removed afterwards."""
    folder = await asyncio.to_thread(tempfile.mkdtemp, prefix="doctor-", dir=data / "nats")
    try:
        await asyncio.to_thread(shutil.copytree, store, store_of(Path(folder)))
        yield Path(folder)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


async def last_in(data: Path, wallet: str) -> int:
    """The last sequence of the wallet's stream in this folder's store, as a server on it says; 0 if it has none."""
    async with embedded_nats(data, wallet=wallet) as server, Journal.connect(server.url, wallet=wallet) as journal:
        try:
            return await journal.last_seq()
        except StreamRefused:
            return 0


async def _last_in_store(data: Path, wallet: str) -> int:
    """Of the present store: a server on a copy of it, since this folder is locked by us."""
    if not store_of(data).is_dir():
        return 0
    async with _second(store_of(data), data) as second:
        return await last_in(second, wallet)


def _swap(data: Path, second: Path) -> Path:
    kept = data / "nats" / "aside" / f"{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}-replaced"
    store = store_of(data)
    if store.is_dir():
        store.rename(kept)
    store_of(second).rename(store)
    (data / "nats" / "unclean").unlink(missing_ok=True)  # a server of ours has closed what stands there now
    return kept
