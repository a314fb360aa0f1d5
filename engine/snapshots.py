"""Snapshots: a wallet's state as of one told, in a file, so that a start need not read the stream from its beginning.

They save time and nothing else: with any of them, or none, an engine comes to the same state and says the same. So one
that is torn, altered, of another release or another wallet is left out and reported, never fatal. But a good one is a
witness: where the stream ends below it, or tells otherwise at its place, the stream has lost or changed what was
acknowledged, and that is `Untrusted`.

    {"schema":1,"wallet":"main","rules":1,"upto":41,"told":42,"chain":"...","bytes":5120}   one line: the header
    {"schema":1,"name":"main",...}                                                          `Wallet.dump()`
    ...                                                 what else its keeper remembers: a projector's totals, say
    <BLAKE2b-256 of all before it>
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import msgspec
import structlog

from engine.core.plan import RULES
from engine.core.restore import load
from engine.core.wallet import SCHEMA, Wallet
from engine.errors import Untrusted
from engine.holes import holes
from engine.journal import Journal
from engine.losses import ADVICE, Losses
from engine.recorded import Recorded

FOLDER = "snapshots"
SUFFIX = ".snapshot"
UNFINISHED = ".unfinished"
KEPT_MAX = 3
HASH_BYTES = 32
HEADER_BYTES_MAX = 4_096

log = structlog.get_logger()


class Header(msgspec.Struct, frozen=True):
    """What a snapshot is of: ask messages up to `upto`, told at sequence `told` with this chain.

    `bytes` of the wallet follow, and `beside` of what stands beside it.
    """

    wallet: str
    upto: int
    told: int
    chain: str
    bytes: int
    beside: int = 0
    schema: int = SCHEMA
    rules: int = RULES


class Snapshot(msgspec.Struct, frozen=True):
    """A wallet whose state is that of the told at sequence `told`, no more and no less."""

    wallet: Wallet
    told: int
    chain: bytes
    beside: bytes = b""


class UnusableError(ValueError):
    """This file is no snapshot this wallet can start from. The text says why."""


def encode(snapshot: Snapshot) -> bytes:
    """The whole file."""
    body = snapshot.wallet.dump()
    wallet = snapshot.wallet
    header = Header(wallet.name, wallet.upto, snapshot.told, snapshot.chain.hex(), len(body), len(snapshot.beside))
    running = b"".join((msgspec.json.encode(header), b"\n", body, snapshot.beside))
    return running + blake2b(running, digest_size=HASH_BYTES).digest()


def decode(data: bytes, *, wallet: str) -> Snapshot:
    """The snapshot in these bytes. Raises `UnusableError`."""
    view = memoryview(data)  # of many megabytes: nothing is copied
    head = data[: data.find(b"\n", 0, HEADER_BYTES_MAX) + 1]
    try:
        header = msgspec.json.decode(head, type=Header)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnusableError(f"its first line is no header: {error}") from error
    body = len(head) + header.bytes
    if len(data) != body + header.beside + HASH_BYTES or min(header.bytes, header.beside) < 0:
        raise UnusableError(f"it is torn: of {len(data):,} bytes, by its header of {body + header.beside:,} and a hash")
    if blake2b(view[:-HASH_BYTES], digest_size=HASH_BYTES).digest() != view[-HASH_BYTES:]:
        raise UnusableError("its bytes do not have the hash it was written with")
    _check_kind(header, wallet)
    try:
        restored, chain = load(view[len(head) : body]), bytes.fromhex(header.chain)
    except ValueError as error:
        raise UnusableError(str(error)) from error
    if (restored.name, restored.upto) != (header.wallet, header.upto):
        raise UnusableError("its header is of another state")
    return Snapshot(restored, header.told, chain, data[body:-HASH_BYTES])


def _check_kind(header: Header, wallet: str) -> None:
    """Only of a file that is whole: these are what its writer meant."""
    if header.schema != SCHEMA:
        raise UnusableError(f"written under schema {header.schema}, this release reads schema {SCHEMA}")
    if header.rules != RULES:
        raise UnusableError(f"decided by rules {header.rules}, this release decides by rules {RULES}")
    if header.wallet != wallet:
        raise UnusableError(f"of the wallet {header.wallet!r}, this is {wallet!r}")


class Snapshots:
    """The snapshots of one wallet in a data folder. Several engines may share it: the same told is the same file.

    `of`: whose, where it is not an engine's.
    """

    def __init__(self, data: Path, wallet: str, *, of: str = "") -> None:
        self.folder = data / FOLDER / wallet / of
        self.wallet = wallet

    def newest(self) -> Snapshot | None:
        """The newest good one."""
        return next(self.good(), None)

    def good(self) -> Iterator[Snapshot]:
        """The newest first. What is not good is reported and left where it is, for whoever wants to know."""
        for file in self._files():
            try:
                snapshot = decode(file.read_bytes(), wallet=self.wallet)
            except (UnusableError, OSError) as error:
                log.warning("snapshot_skipped", file=str(file), why=str(error))
            else:
                yield snapshot

    def write(self, snapshot: Snapshot) -> int:
        """Put one down, whole or not at all, and let the oldest go. Returns its bytes; raises `OSError`."""
        data = encode(snapshot)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished = self.folder / f"{secrets.token_hex(8)}{UNFINISHED}"
        with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # it is being written: whoever clears away lets it be
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            unfinished.rename(self.folder / f"{snapshot.told:020}{SUFFIX}")
        sync_folder(self.folder)
        self._let_go()
        return len(data)

    def _files(self) -> list[Path]:
        """The newest first."""
        return sorted(self.folder.glob(f"*{SUFFIX}"), reverse=True)

    def _let_go(self) -> None:
        for file in (*self._files()[KEPT_MAX:], *self._abandoned()):
            with suppress(FileNotFoundError):  # another engine's turn to clear away
                file.unlink()

    def _abandoned(self) -> Iterator[Path]:
        """What writers that were killed have left: nobody holds it."""
        for unfinished in self.folder.glob(f"*{UNFINISHED}"):
            with suppress(OSError), open(unfinished, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield unfinished


def sync_folder(folder: Path) -> None:
    """A name is safe once its folder is."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


async def usable(snapshot: Snapshot, journal: Journal, losses: Losses) -> bool:
    """Whether reading may go on from here. Raises `Untrusted` if the stream contradicts it and no loss was accepted.

    What is missing before it will not be read, so the store itself is asked. A snapshot from inside an accepted loss,
    or from before it was accepted, is not used: what was told there does not count any more.
    """
    if await losses.any(of=snapshot.told):
        log.warning("snapshot_not_used", told=snapshot.told, why="it lies in an accepted loss")
        return False
    try:
        for hole in await holes(journal):
            if hole.first <= snapshot.told and (await losses.accept(hole)).seq > snapshot.wallet.upto:
                log.warning("snapshot_not_used", told=snapshot.told, why="a loss was accepted after it")
                return False
        await prove(snapshot, journal)
    except Untrusted as error:
        if not await losses.any():
            raise
        log.warning("snapshot_not_used", told=snapshot.told, why=str(error))
        return False
    return True


async def prove(snapshot: Snapshot, journal: Journal) -> None:
    """Hold a snapshot against the stream. Raises `Untrusted`: one of the two has seen what the other has not."""
    last = (await journal.check_stream()).last_seq
    if last < snapshot.told:
        raise Untrusted(f"{ends_before(snapshot.told, last=last)}. {ADVICE}")
    stored = await journal.read(snapshot.told)
    if stored is None:
        raise Untrusted(f"sequence {snapshot.told:,} is missing, but a snapshot has seen it. {ADVICE}")
    if stored.kind != "told" or Recorded.read(stored).chain != snapshot.chain:
        raise Untrusted(f"{bears_another_chain(snapshot.told)}. {ADVICE}")


def ends_before(told: int, *, last: int) -> str:
    return f"the stream ends at sequence {last:,}, but a snapshot has seen {told:,}: {last + 1:,} to {told:,} are lost"


def bears_another_chain(told: int) -> str:
    return (
        f"sequence {told:,} bears another chain than a snapshot has seen: the stream up to {told:,} is not the one "
        "that was told"
    )
