"""The cost report of an Anthropic organization, or of one of its workspaces, by UTC day. The key is an admin key.

Amounts are decimal strings in cents. The report leaves the priority tier out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import msgspec

from projector.observers.fetch import Fetch
from projector.observers.figures import exact_sum
from projector.observers.pages import Page, all_rows
from projector.observers.source import Figures, Unreadable

DEFAULT_WORKSPACE = "default"  # it has no id in the report
_CENTS = re.compile(r"-?\d{1,40}(\.\d{1,40})?", re.ASCII)
_DAY = timedelta(days=1)


class _Result(msgspec.Struct, frozen=True):
    amount: str
    currency: str
    workspace_id: str | None = None


class _Bucket(msgspec.Struct, frozen=True):
    starting_at: datetime
    ending_at: datetime
    results: list[_Result]


class Anthropic:
    """Dollars that the organization is charged. `workspace`: only that one's, "" for all."""

    def __init__(self, fetch: Fetch, *, workspace: str = "") -> None:
        self._fetch, self._workspace = fetch, workspace

    async def read(self, days: Sequence[date]) -> Figures:
        """Dollars by day."""
        params = {
            "starting_at": _midnight(days[0]).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "ending_at": (_midnight(days[-1]) + _DAY).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "bucket_width": "1d",
            "limit": str(len(days)),
            **({"group_by[]": "workspace_id"} if self._workspace else {}),
        }

        async def ask(which: dict[str, str]) -> Page[_Bucket]:
            return await self._fetch.get("/organizations/cost_report", params | which, Page[_Bucket])

        buckets = await all_rows(ask)
        if any(not _is_utc_day(bucket) for bucket in buckets):
            raise Unreadable("its buckets are not UTC days")
        return {day: self._dollars(buckets, _midnight(day)) for day in days}

    def _dollars(self, buckets: Sequence[_Bucket], start: datetime) -> Decimal:
        results = [result for bucket in buckets if bucket.starting_at == start for result in bucket.results]
        if any(result.currency.upper() != "USD" for result in results):
            raise Unreadable("its costs are in another currency than USD")
        ours = [result.amount for result in results if self._counts(result)]
        if not all(_CENTS.fullmatch(amount) for amount in ours):
            raise Unreadable("its answer has an amount that is no decimal number")
        return exact_sum(Decimal(f"{amount}e-2") for amount in ours)

    def _counts(self, result: _Result) -> bool:
        return not self._workspace or (result.workspace_id or DEFAULT_WORKSPACE) == self._workspace


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _is_utc_day(bucket: _Bucket) -> bool:
    start, end = bucket.starting_at, bucket.ending_at
    if start.tzinfo is None or end.tzinfo is None:
        return False
    try:
        return start == _midnight(start.astimezone(UTC).date()) and end - start == _DAY
    except OverflowError:  # a year before 1
        return False
