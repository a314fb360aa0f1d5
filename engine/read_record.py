"""Who looked at what: one line for each look that needed a right, on a small stream of its own beside the wallet's.

It is no part of what is decided or proved. The oldest lines go when it is full; nobody can change one.
"""

from __future__ import annotations

import msgspec

from engine.errors import StreamRefused
from engine.journal import UNAVAILABLE, Journal

WAIT_S = 5.0
RECORD_BYTES_MAX = 64 * 1024 * 1024  # some 300,000 looks


class Look(msgspec.Struct, frozen=True):
    """One look: by whom (a key's short id), at which address, in which request."""

    by_whom: str
    at: str
    request: str


class ReadRecord:
    """The looks at one wallet."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def note(self, look: Look) -> None:
        """Put it on record; only then may it be answered. Raises `NoAnswer`, `StreamRefused`."""
        line = msgspec.json.encode(look)
        try:
            await self._journal.append_look(line, wait_s=WAIT_S)
        except StreamRefused as refused:
            if refused.code != UNAVAILABLE:
                raise
            await self._make()
            await self._journal.append_look(line, wait_s=WAIT_S)

    async def _make(self) -> None:
        names = self._journal.names
        await self._journal.make_beside(
            {
                "name": f"{names.stream}_looks",
                "subjects": [names.subject("look")],
                "storage": "file",
                "discard": "old",
                "max_bytes": RECORD_BYTES_MAX,
                "deny_delete": True,
                "deny_purge": True,
            }
        )
