"""What every provider's report is to an observer: figures of UTC days, or a reason why there are none.

A source asks and reads; it never decides what becomes of a figure and never repeats what it was answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Protocol, TypeAlias

Figures: TypeAlias = Mapping[date, Decimal]
"""UTC day -> what the account has used in it, exactly as the provider says it, in the source's unit."""


class Unreadable(Exception):
    """There is no figure now. The text says why in our own words: no key, no body, no address is in it.

    `retry_after_s`: how long the provider wants to be left alone, 0 if it said nothing.
    """

    def __init__(self, why: str, *, retry_after_s: float = 0.0) -> None:
        super().__init__(why)
        self.why, self.retry_after_s = why, retry_after_s


class Source(Protocol):
    """One account at one provider."""

    async def read(self, days: Sequence[date]) -> Figures:
        """The figures of these days (at least one, in order). Raises `Unreadable`."""
