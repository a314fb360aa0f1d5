"""What is delivered, by whom, and the one way in which it fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Parcel:
    """A document of JSON. `id` is the same whenever the same thing is delivered."""

    id: str
    body: bytes


class NotTaken(Exception):
    """It was not taken this time. The text says why and holds neither address nor secret nor answer.

    `retry_after_s`: how long the other side asked us to wait.
    """

    def __init__(self, why: str, *, retry_after_s: float = 0.0) -> None:
        super().__init__(why)
        self.retry_after_s = retry_after_s


class Carrier(Protocol):
    async def carry(self, parcel: Parcel) -> None:
        """Once. Returns when the other side has it for good; raises `NotTaken`."""
