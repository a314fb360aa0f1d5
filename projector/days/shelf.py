"""The documents as they stand in the bucket, for whoever compares them. It replaces nothing it has not seen."""

from __future__ import annotations

from typing import Protocol

import msgspec
from nats.js.errors import BucketNotFoundError, KeyNotFoundError, KeyWrongLastSequenceError, NoKeysError
from nats.js.kv import KeyValue

from engine.journal import Journal
from projector.days.bucket import bucket_name


class Standing(msgspec.Struct, frozen=True):
    """One document, and the revision at which it was read."""

    document: bytes
    revision: int


class Shelf(Protocol):
    """Where documents stand."""

    async def keys(self) -> list[str]: ...

    async def get(self, key: str) -> Standing | None: ...

    async def put(self, key: str, document: bytes | None, seen: Standing | None) -> bool:
        """In place of what was `seen` there (None: nothing). None: take it away. False if it is another by now."""


class BucketShelf:
    """Those of a wallet. Its bucket is made where somebody took it away."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._bucket: KeyValue | None = None

    async def keys(self) -> list[str]:
        try:
            return await (await self._opened()).keys()
        except NoKeysError:
            return []

    async def get(self, key: str) -> Standing | None:
        try:
            entry = await (await self._opened()).get(key)
        except KeyNotFoundError:
            return None
        return Standing(entry.value or b"", entry.revision or 0)

    async def put(self, key: str, document: bytes | None, seen: Standing | None) -> bool:
        bucket = await self._opened()
        try:
            if document is None:
                return await bucket.delete(key, last=seen.revision if seen is not None else None)
            if seen is None:
                await bucket.create(key, document)
            else:
                await bucket.update(key, document, last=seen.revision)
        except KeyWrongLastSequenceError:
            return False
        return True

    async def _opened(self) -> KeyValue:
        if self._bucket is None:
            jetstream, name = self._journal.client.jetstream(), bucket_name(self._journal.names.wallet)
            try:
                self._bucket = await jetstream.key_value(name)
            except BucketNotFoundError:
                replicas = await self._journal.replicas()
                self._bucket = await jetstream.create_key_value(bucket=name, history=1, replicas=replicas)
        return self._bucket
