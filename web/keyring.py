"""All keys of a wallet, as one web process knows them: read from a bucket beside the stream, and kept current.

Every web process reads every change within a second. While the bucket cannot be read, keys already known go on, and one
that is not known is refused (503), never let in. No key is in here, only what is kept of it.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import Final

import msgspec
import structlog

from engine.errors import PurseError, StreamRefused
from web.keys import KEYS_MAX, Key
from web.purse import Bucket, Kept

WORD: Final = "keys"
READ_EVERY_S = 0.5
CHANGES_MAX = 8  # others who change the same key at the same moment
ORIGIN_SECRET = "origin-secret"  # noqa: S105  a name; no short id has a "-"

log = structlog.get_logger()

_keys = msgspec.json.Decoder(Key)


class TooManyKeys(Exception):
    """The wallet has as many keys as it may have."""


class Keyring:
    """One web process's knowledge of the keys. `run` keeps it current; without it only what is asked for is read."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self._keys: dict[str, Key] = {}
        self._written: dict[str, int] = {}  # sequence of each key's newest document
        self._seen = 0
        self._reading = asyncio.Lock()
        self._read_began = float("-inf")
        self._failure: PurseError | None = None
        self._hint = asyncio.Event()
        self._silent = False
        self.origin_secret = b""
        """The key of the hash that stands for an address, the same in all web processes; there before any key is."""

    def __len__(self) -> int:
        return len(self._keys)

    def all(self) -> list[Key]:
        """Newest first."""
        return sorted(self._keys.values(), key=lambda key: (-key.created_at, key.id))

    async def run(self) -> None:
        """Read every change soon after it is written, until cancelled."""
        await self._bucket.on_change(self._hint.set)
        while True:
            try:
                await self.catch_up()
                self._silent = False
            except PurseError as error:
                if not self._silent:
                    log.warning("keys_unreadable", why=str(error))
                self._silent = True
            self._hint.clear()
            try:
                async with asyncio.timeout(READ_EVERY_S):
                    await self._hint.wait()
            except TimeoutError:
                pass

    async def find(self, id: str) -> Key | None:
        """The key with this short id. One that is not known is looked for. Raises `PurseError`: nobody knows then."""
        if id not in self._keys:
            await self.catch_up()
        return self._keys.get(id)

    async def catch_up(self) -> None:
        """Read what was written before this was called. Raises `PurseError` if it cannot be read."""
        came = time.monotonic()
        async with self._reading:
            if self._read_began < came:  # else somebody has read, or could not, for all who waited
                await self._read()
            if self._failure is not None:
                raise self._failure

    async def _read(self) -> None:
        began = time.monotonic()
        try:
            while (kept := await self._bucket.next_after(self._seen)) is not None:
                self._take(kept)
            self._failure = None
        except PurseError as error:
            self._failure = error
        self._read_began = began

    def _take(self, kept: Kept) -> None:
        if kept.name == ORIGIN_SECRET:
            self.origin_secret = kept.document
        else:
            self._take_key(kept)
        self._seen = kept.seq

    def _take_key(self, kept: Kept) -> None:
        try:
            self._keys[kept.name] = _keys.decode(kept.document)
            self._written[kept.name] = kept.seq
        except msgspec.MsgspecError:
            self._keys.pop(kept.name, None)  # nobody gets in by what cannot be read
            log.error("key_unreadable", key=kept.name, seq=kept.seq)

    # --- changing -----------------------------------------------------------------------------------------------------

    async def add(self, key: Key) -> None:
        """Keep a new key. Raises `TooManyKeys`, or `PurseError`: then it may or may not be there, and nobody has it."""
        await self._prepare()
        if len(self) >= KEYS_MAX:
            raise TooManyKeys
        if await self._bucket.put(key.id, msgspec.json.encode(key), after=0) is None:
            raise StreamRefused("there is a key with this short id")
        await self.catch_up()

    async def revoke(self, id: str, *, at: int, by_whom: str, reason: str) -> Key | None:
        """Keep it as revoked, by whoever was first; None if there is no such key. Raises `PurseError`."""
        for _ in range(CHANGES_MAX):
            await self.catch_up()
            key = self._keys.get(id)
            if key is None or key.revoked_at is not None:
                return key
            revoked = msgspec.structs.replace(key, revoked_at=at, revoked_by=by_whom, reason=reason)
            await self._bucket.put(id, msgspec.json.encode(revoked), after=self._written[id])
        raise StreamRefused("the key is being changed by others")

    async def _prepare(self) -> None:
        """The bucket, and in it the secret that must be there before any key is."""
        await self.catch_up()
        if not self.origin_secret:
            await self._bucket.make()
            await self._bucket.put(ORIGIN_SECRET, secrets.token_hex(32).encode(), after=0)
            await self.catch_up()
