"""Small documents beside a wallet's stream, each under its name, changed only by whoever has seen its newest.

It is read by sequence, one document after the other, so that nothing is missed however often the connection breaks.
It lies in the broker's own key-value format, for any tool to show. It never interprets what it carries, and no document
in it is ever deleted but by its age, where it has a limit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from nats.aio.msg import Msg

from engine.errors import StreamRefused
from engine.journal import WRONG_LAST_SEQUENCE, Journal

WAIT_S = 5.0
DOCUMENT_BYTES_MAX = 64 * 1024


class Kept(msgspec.Struct, frozen=True, gc=False):
    """The newest document under a name. `seq`: the sequence of its last change within the bucket."""

    name: str
    seq: int
    document: bytes


class Bucket:
    """The documents of one kind (`word`) of one wallet. `kept_s`: for how long at most; 0: for ever."""

    def __init__(self, journal: Journal, word: str, *, kept_s: int = 0) -> None:
        self._journal, self._kept_s = journal, kept_s
        self._name = f"PURSE_{journal.names.wallet}_{word}"

    async def make(self) -> None:
        """Make it, with as many copies as the wallet's stream has, unless it is there. Raises `PurseError`."""
        await self._journal.make_beside(_settings(self._name, kept_s=self._kept_s))

    async def get(self, name: str) -> Kept | None:
        """The document under this name; None where there is none, or no bucket yet. Raises as `next_after`."""
        found = await self._journal.last_kept(self._name, name)
        return None if found is None else Kept(name, found.seq, found.data)

    async def next_after(self, seq: int) -> Kept | None:
        """The first document that was changed after `seq`; None where there is none, or no bucket yet.

        Raises `NoAnswer`, `StreamRefused`.
        """
        found = await self._journal.next_kept(self._name, after=seq)
        return None if found is None else Kept(found.kind, found.seq, found.data)

    async def put(self, name: str, document: bytes, *, after: int) -> int | None:
        """Write the document under `name` if its last change was at `after` (0: there is none yet).

        Its new sequence; None if somebody else was first. Raises `NoAnswer`: it may or may not stand there;
        `StreamRefused`.
        """
        try:
            return await self._journal.keep(self._name, name, document, wait_s=WAIT_S, after=after)
        except StreamRefused as refused:
            if refused.code in WRONG_LAST_SEQUENCE:
                return None
            raise

    async def on_change(self, notice: Callable[[], None]) -> None:
        """Call `notice` about when something is written. A hint only: what it misses, reading finds."""

        async def heard(_: Msg) -> None:
            notice()

        await self._journal.client.subscribe(f"$KV.{self._name}.>", cb=heard)


def _settings(name: str, *, kept_s: int) -> dict[str, Any]:
    return {
        "name": f"KV_{name}",
        "subjects": [f"$KV.{name}.>"],
        "storage": "file",
        "discard": "new",
        "max_msgs_per_subject": 1,
        "max_msg_size": DOCUMENT_BYTES_MAX,
        "deny_delete": True,
        "deny_purge": True,
        "allow_direct": True,
        **({"max_age": kept_s * 1_000_000_000} if kept_s else {}),
    }
