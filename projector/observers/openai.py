"""The costs of an OpenAI organization, or of one of its projects, by UTC day. The key is an admin key."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

import msgspec

from projector.observers.days import start_s
from projector.observers.fetch import Fetch
from projector.observers.figures import exact_sum
from projector.observers.pages import Page, all_rows
from projector.observers.source import Figures, Unreadable

_DAY_S = 86_400


class _Amount(msgspec.Struct, frozen=True):
    value: Decimal
    currency: str


class _Result(msgspec.Struct, frozen=True):
    amount: _Amount


class _Bucket(msgspec.Struct, frozen=True):
    start_time: int
    end_time: int
    results: list[_Result]


class OpenAI:
    """Dollars that the organization is charged. `project`: only that one's, "" for all."""

    def __init__(self, fetch: Fetch, *, project: str = "") -> None:
        self._fetch, self._project = fetch, project

    async def read(self, days: Sequence[date]) -> Figures:
        """Dollars by day."""
        params = {
            "start_time": str(start_s(days[0])),
            "end_time": str(start_s(days[-1]) + _DAY_S),
            "bucket_width": "1d",
            "limit": str(len(days)),
            **({"project_ids": self._project} if self._project else {}),
        }

        async def ask(which: dict[str, str]) -> Page[_Bucket]:
            return await self._fetch.get("/organization/costs", params | which, Page[_Bucket])

        buckets = await all_rows(ask)
        if any(bucket.start_time % _DAY_S or bucket.end_time - bucket.start_time != _DAY_S for bucket in buckets):
            raise Unreadable("its buckets are not UTC days")
        return {day: exact_sum(_costs(buckets, start_s(day))) for day in days}


def _costs(buckets: Sequence[_Bucket], starts_s: int) -> list[Decimal]:
    results = [result for bucket in buckets if bucket.start_time == starts_s for result in bucket.results]
    if any(result.amount.currency.lower() != "usd" for result in results):
        raise Unreadable("its costs are in another currency than usd")
    return [result.amount.value for result in results]
