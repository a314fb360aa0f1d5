"""Contradictions between a stream and what was seen of it, and the losses an operator has accepted on it.

A contradiction ends a process unless a `loss` on the stream covers it. The `loss` may lie behind the place where the
contradiction shows, so the rest of the stream is looked through before stopping. Nothing here decides an ask.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec
import structlog

from engine.core import checks
from engine.core.messages import AnyAsk, Loss
from engine.core.tell import read
from engine.errors import Untrusted
from engine.journal import Journal

ADVICE = "Nothing is decided on such a stream; `purse doctor` says what can be done"

log = structlog.get_logger()


class Contradiction(msgspec.Struct, frozen=True):
    """Something seen between these sequences is not there, or is otherwise. `why` names the range for an operator."""

    first: int
    last: int
    why: str


class Accepted(msgspec.Struct, frozen=True):
    """A loss, and where it lies on the stream."""

    seq: int
    loss: Loss

    def covers(self, found: Contradiction) -> bool:
        return self.loss.from_seq <= found.first and found.last <= self.loss.to_seq


class KnownLosses:
    """The losses that were met on one stream."""

    def __init__(self) -> None:
        self._known: dict[str, Accepted] = {}

    @property
    def ids(self) -> Collection[str]:
        return self._known.keys()

    def hear(self, seq: int, asks: Sequence[AnyAsk]) -> None:
        """Asks that were just read from the stream."""
        for ask in asks:
            if isinstance(ask, Loss) and checks.loss(ask) is None:
                self._known.setdefault(ask.id, Accepted(seq, ask))

    def covering(self, found: Contradiction, *, but: Collection[str] = ()) -> Accepted | None:
        """The loss that covers it, other than those in `but`: whoever saw more knew them already."""
        for id, accepted in self._known.items():
            if id not in but and accepted.covers(found):
                return accepted
        return None


class Losses(KnownLosses):
    """The same, and where none is known that is needed the stream is looked through."""

    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self._journal = journal

    async def any(self, *, of: int | None = None) -> bool:
        """Whether an operator has ever put one on this stream; with `of`, one whose range this sequence lies in."""
        if not self._known:
            await self._look()
        return any(of is None or known.loss.from_seq <= of <= known.loss.to_seq for known in self._known.values())

    async def accept(self, found: Contradiction, *, but: Collection[str] = ()) -> Accepted:
        """The loss that covers it.

        Raises `Untrusted` where there is none, `NoAnswer` or `StreamRefused` where it could not be looked for.
        """
        if self.covering(found, but=but) is None:
            await self._look()
        accepted = self.covering(found, but=but)
        if accepted is None:
            raise Untrusted(f"{found.why}. {ADVICE}")
        return accepted

    async def _look(self) -> None:
        """Through the whole stream: only messages of operators are read, and there are few."""
        after = 0
        while (stored := await self._journal.next_of("admin", after)) is not None:
            after = stored.seq
            message = read(stored.data)
            self.hear(stored.seq, message.asks if message is not None else [])
