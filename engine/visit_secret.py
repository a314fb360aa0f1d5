"""The secret that all web processes of a wallet hash addresses with, so that they mean the same visitor by a hash.

It is made by whichever of them comes first and kept in the broker's memory alone, beside the stream: neither it nor any
hash made with it is ever on a disk, and when the brokers have all stopped it is gone.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
import time
from typing import Any

import msgspec
import structlog

from engine.errors import NoAnswer, StreamRefused
from engine.journal import NOT_FOUND, WRONG_LAST_SEQUENCE, Journal

SECRET_BYTES = 32
LOOK_WAIT_S = 2.0
LOOK_AGAIN_S = 5.0  # after it could not be read
KEY = "secret"

log = structlog.get_logger()


class _Error(msgspec.Struct, frozen=True):
    err_code: int = 0
    description: str = ""


class _Message(msgspec.Struct, frozen=True):
    data: str = ""


class _Answer(msgspec.Struct, frozen=True):
    message: _Message | None = None
    error: _Error | None = None


class VisitSecret:
    """One process's copy. Looked up anew after every reconnect: the broker may have forgotten it."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._bucket = f"{journal.names.stream}_visits"
        self._known: bytes | None = None
        self._again_at = 0.0
        self._looking = asyncio.Lock()
        journal.on_reconnect.append(self._forget)

    async def get(self) -> bytes | None:
        """The shared secret; None while it cannot be read or made."""
        if self._known is None:
            async with self._looking:
                if self._known is None and time.monotonic() >= self._again_at:
                    self._known = await self._look()
        return self._known

    def _forget(self) -> None:
        self._known, self._again_at = None, 0.0

    async def _look(self) -> bytes | None:
        self._again_at = time.monotonic() + LOOK_AGAIN_S
        try:
            async with asyncio.timeout(LOOK_WAIT_S):
                return await self._read() or await self._make()
        except (NoAnswer, StreamRefused, TimeoutError) as error:
            log.warning("visits_counted_apart", why=str(error) or "nobody answers in time")
            return None

    async def _read(self) -> bytes | None:
        call, which = f"STREAM.MSG.GET.KV_{self._bucket}", {"last_by_subj": f"$KV.{self._bucket}.{KEY}"}
        got = await self._journal.api(call, which, _Answer)
        if got.message is not None:
            return base64.b64decode(got.message.data)
        if got.error is not None and got.error.err_code not in NOT_FOUND:
            raise StreamRefused(got.error.description, code=got.error.err_code)
        return None

    async def _make(self) -> bytes | None:
        """Offer one. Whoever was first has the place, and theirs is everybody's."""
        settings = _settings(self._bucket, replicas=await self._journal.replicas())
        made = await self._journal.api(f"STREAM.CREATE.KV_{self._bucket}", settings, _Answer)
        if made.error is not None:
            raise StreamRefused(made.error.description, code=made.error.err_code)
        try:
            await self._journal.keep(self._bucket, KEY, secrets.token_bytes(SECRET_BYTES), wait_s=LOOK_WAIT_S, after=0)
        except StreamRefused as refused:
            if refused.code not in WRONG_LAST_SEQUENCE:
                raise
        return await self._read()


def _settings(bucket: str, *, replicas: int) -> dict[str, Any]:
    return {
        "name": f"KV_{bucket}",
        "subjects": [f"$KV.{bucket}.>"],
        "storage": "memory",
        "retention": "limits",
        "discard": "new",
        "max_msgs_per_subject": 1,
        "max_msgs": 1,
        "max_msg_size": 1024,
        "num_replicas": replicas,
        "allow_direct": False,
    }
