"""The witness: a small file beside the stream that says how far a process has seen it.

    DATA/witness/<wallet>-<role>.json    {"body": {"seq": 812, "told": 811, "chain": "..", ..}, "digest": ".."}

A store of one copy has been seen to drop half a stream after one flipped bit, to report that all is well, and to hand
the lost sequences out again. Whoever starts on such a stream would grant the lost money a second time. So engine and
projector each write the highest sequence they have seen, with the told and chain there, at most a second behind and
never on the hot path; whoever starts compares every witness of the wallet with the stream before it decides anything.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Literal

import msgspec
import structlog

from engine.errors import Untrusted
from engine.journal import Journal
from engine.losses import Contradiction, Losses
from engine.receipts import Receipt

KEEP_S = 1.0
FOLDER = "witness"

Role = Literal["engine", "projector"]
ROLES: tuple[Role, ...] = ("engine", "projector")

log = structlog.get_logger()

_encoder = msgspec.json.Encoder()


class Seen(msgspec.Struct, frozen=True):
    """How far a process has seen one wallet's stream. `losses`: ids of those it knew, which excuse nothing after it."""

    wallet: str
    seq: int
    told: int
    chain: str
    losses: list[str] = []

    async def contradiction(self, journal: Journal) -> Contradiction | None:
        """What the stream has otherwise. Raises `NoAnswer`, `StreamRefused`."""
        last = await journal.last_seq()
        if last < self.seq:
            return Contradiction(last + 1, self.seq, ends_too_early(last=last, seen=self.seq))
        if self.told and not await Receipt(self.told, self.chain).stands_on(journal):
            why = f"sequence {self.told:,} does not hold the told that was seen there: up to {self.seq:,} some are lost"
            return Contradiction(self.told, self.seq, why)
        return None


def ends_too_early(*, last: int, seen: int) -> str:
    return f"the stream ends at sequence {last:,}, but {seen:,} was seen: {last + 1:,} to {seen:,} are lost"


class _File(msgspec.Struct, frozen=True):
    body: msgspec.Raw
    digest: str


class Witness:
    """One process's witness of one wallet. Without a data folder it keeps and knows nothing."""

    def __init__(self, data: Path | None, wallet: str, role: Role) -> None:
        self._folder = data / FOLDER if data is not None else None
        self._wallet, self._role = wallet, role
        self._written: Seen | None = None

    async def check(self, journal: Journal, losses: Losses) -> None:
        """Compare what any process of this wallet has seen with the stream.

        Raises `Untrusted` naming the range, unless a loss that its writer did not know covers it.
        """
        for role in ROLES:
            seen = self.read(role)
            found = await seen.contradiction(journal) if seen is not None else None
            if seen is None or found is None:
                continue
            accepted = await losses.accept(found, but=seen.losses)
            log.warning("loss_accepted", loss=accepted.loss.id, role=role, first=found.first, last=found.last)

    def read(self, role: Role) -> Seen | None:
        """What this role has written; None if nothing, or nothing that can be read, which is reported."""
        if self._folder is None:
            return None
        path = self._path(self._folder, role)
        try:
            file = msgspec.json.decode(path.read_bytes(), type=_File)
            seen = msgspec.json.decode(file.body, type=Seen)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            log.warning("witness_damaged", path=str(path), why=str(error))
            return None
        if file.digest != _digest(bytes(file.body)) or seen.wallet != self._wallet:
            log.warning("witness_damaged", path=str(path), why="it is not what was written")
            return None
        return seen

    async def keep(self, newest: Callable[[], Seen | None]) -> None:
        """Write what `newest` says whenever it has changed, once a second, until cancelled."""
        while True:
            seen = newest()
            if seen is not None and seen != self._written:
                await asyncio.to_thread(self.write, seen)
            await asyncio.sleep(KEEP_S)

    def write(self, seen: Seen) -> None:
        """Onto the disk, whole or not at all. A disk that takes nothing is reported and stops nobody."""
        if self._folder is None or seen == self._written:
            return
        try:
            _replace(self._path(self._folder, self._role), _written(seen))
        except OSError as error:
            log.error("witness_not_written", why=str(error))
        else:
            self._written = seen

    def _path(self, folder: Path, role: Role) -> Path:
        return folder / f"{self._wallet}-{role}.json"


def _written(seen: Seen) -> bytes:
    body = _encoder.encode(seen)
    return _encoder.encode(_File(msgspec.Raw(body), _digest(body)))


def _digest(body: bytes) -> str:
    return blake2b(body, digest_size=16).hexdigest()


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


async def check_own(journal: Journal, *, told: int, linked: bytes) -> None:
    """Before reading on: the newest told this process goes on from must still stand there.

    No loss excuses another past here: what was lost is in this process's state, so it must start again. Raises
    `Untrusted`, `NoAnswer`, `StreamRefused`.
    """
    if told and not await Receipt(told, linked.hex()).stands_on(journal):
        raise Untrusted(f"sequence {told:,} no longer holds the told that was seen there: the stream has another past")
