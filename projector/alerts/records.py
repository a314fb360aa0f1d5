"""What became of each alert at each target: in a bucket beside the stream, shared by all projectors of the wallet.

    (none) ─> sending ─> sent
                 └─────> waiting ─> sending ─> ...        missed, where it has become too old

A record is only ever written in place of the one that was read, so of two projectors one gets its way. Whoever has
written `sending` may send, once, and nobody else until that has stood unchanged for longer than any sending takes. It
never holds an address, a secret, or what a target answered.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Literal, TypeAlias

import msgspec

from engine.bucket import Bucket
from engine.journal import Journal

KEPT_S = 90 * 24 * 3600  # far longer than anything is sent, so that no repeat can follow from forgetting

SendState: TypeAlias = Literal["sending", "waiting", "sent", "missed"]

_encoder = msgspec.json.Encoder()


class Record(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One alert at one target. `by`: which projector wrote it. `at`, `again_at`: ns since 1970, by its clock.

    `why`: how the newest try failed.
    """

    alert: str
    target: str
    state: SendState
    by: str
    at: int
    tries: int = 0
    again_at: int = 0
    why: str = ""

    @property
    def over(self) -> bool:
        """Whether nobody will send it any more."""
        return self.state in ("sent", "missed")


class Records:
    """The bucket. Every call raises `NoAnswer` or `StreamRefused` where it cannot be reached."""

    def __init__(self, journal: Journal) -> None:
        self._bucket = Bucket(journal, "alerts", kept_s=KEPT_S)

    async def open(self) -> None:
        """Make it if there is none."""
        await self._bucket.make()

    async def read(self, alert: str, target: str) -> tuple[Record | None, int]:
        """What stands there, and its place; (None, 0) if nothing does."""
        found = await self._bucket.get(_key(alert, target))
        return (None, 0) if found is None else (msgspec.json.decode(found.document, type=Record), found.seq)

    async def write(self, record: Record, *, instead_of: int) -> int | None:
        """Put it in place of the one at that place. Its own place, or None: somebody else was first."""
        return await self._bucket.put(_key(record.alert, record.target), _encoder.encode(record), after=instead_of)


def _key(alert: str, target: str) -> str:
    """Ids hold labels' values, of which few are keys."""
    return f"{target.replace('.', '=')}.{blake2b(alert.encode(), digest_size=16).hexdigest()}"
