"""What an OpenRouter key has spent on the UTC day that is running. Any key may read its own figure.

It speaks of "today" without saying which day that is, and of no other day.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

import msgspec

from projector.observers.fetch import Fetch
from projector.observers.figures import exact_sum
from projector.observers.source import Figures


class _Usage(msgspec.Struct, frozen=True):
    usage_daily: Decimal


class _Answer(msgspec.Struct, frozen=True):
    data: _Usage


class OpenRouter:
    """Dollars spent with one key, whoever used it."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    async def read(self, days: Sequence[date]) -> Figures:
        """Dollars of the last of `days`, which is today."""
        answer = await self._fetch.get("/key", {}, _Answer)
        return {days[-1]: exact_sum([answer.data.usage_daily])}
