"""One reservation as the record has it: what the projector noted of its hold, with the memos read.

Its times are those the caller was told, to the millisecond. The hold behind it lives until the grace period is over,
so whatever may still be committed is held, and what may not has lapsed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

from engine.core.documents import Noted
from engine.core.messages import Amounts
from web.cycles.ids import ReservationId, namespace
from web.cycles.memos import Ended, Extend, Reserve, endings, extends, reserves
from web.cycles.requests import Subject
from web.cycles.subject import LEVELS
from web.cycles.units import UNITS, up, written

NS_PER_MS = 1_000_000

Status: TypeAlias = Literal["ACTIVE", "COMMITTED", "RELEASED", "EXPIRED"]


@dataclass
class Reservation:
    noted: Noted
    memo: Reserve
    extensions: list[Extend]
    ended: Ended | None
    """By which request it ended, where it was one of ours."""

    @classmethod
    def read(cls, noted: Noted) -> Reservation | None:
        """None for what no reservation of ours has left: whoever may append to the stream may leave any memo."""
        try:
            renewed = [extends.decode(memo) for memo in noted.renewed]
            ended = endings.decode(noted.ended) if noted.ended else None
            memo = reserves.decode(noted.memo)
        except msgspec.DecodeError:
            return None
        known = "tenant" in noted.labels and namespace(noted.labels["tenant"]) == noted.id.rpartition("/")[0]
        return cls(noted, memo, renewed, ended) if known else None

    @property
    def id(self) -> str:
        return str(ReservationId.of(self.noted.id, self.noted.first))

    @property
    def beside(self) -> str:
        """On the stream, the hold that nobody made: what the reservation cost although it was released."""
        return ReservationId.of(self.noted.id, self.noted.first).beside

    @property
    def created_at_ms(self) -> int:
        return self.noted.at // NS_PER_MS

    @property
    def first_expires_at_ms(self) -> int:
        return self.created_at_ms + self.memo.ttl_ms

    @property
    def expires_at_ms(self) -> int:
        return self.extensions[-1].expires_at_ms if self.extensions else self.first_expires_at_ms

    @property
    def finalized_at_ms(self) -> int:
        return self.noted.ended_at // NS_PER_MS

    def status(self, now: int) -> Status:
        """At stream time `now` (ns)."""
        if self.noted.released:
            return "RELEASED"
        if self.noted.state == "open":
            return "ACTIVE" if now // NS_PER_MS <= self.expires_at_ms + self.memo.grace_ms else "EXPIRED"
        return "EXPIRED" if self.noted.state == "lapsed" else "COMMITTED"

    def remaining_ttl_ms(self, now: int) -> int:
        """Until it expires, 0 where it is not active."""
        return max(0, self.expires_at_ms - now // NS_PER_MS) if self.status(now) == "ACTIVE" else 0

    def amount(self, amounts: Amounts) -> dict[str, object]:
        """What these are in its own unit."""
        return written(self.memo.unit, up(amounts.get(UNITS[self.memo.unit][0], 0), self.memo.each))

    @property
    def reserved(self) -> dict[str, object]:
        return self.amount(self.noted.amounts)

    @property
    def subject(self) -> dict[str, object]:
        """As it was sent, with the tenant that its key spoke for."""
        said: dict[str, object] = msgspec.to_builtins(self.memo.subject)
        return {"tenant": self.levels["tenant"], **said}

    @property
    def levels(self) -> dict[str, str]:
        return levels_of(self.memo.subject, self.noted.labels["tenant"])

    @property
    def scopes(self) -> list[str]:
        segments = [f"{level}:{value}" for level, value in self.levels.items()]
        return ["/".join(segments[: count + 1]) for count in range(len(segments))]


def levels_of(subject: Subject, tenant: str) -> dict[str, str]:
    """The levels of a subject in order, that of its tenant always among them."""
    said = {level: getattr(subject, level) for level in LEVELS}
    return {level: value for level, value in (said | {"tenant": tenant}).items() if isinstance(value, str)}
