"""Workers AI neurons of a Cloudflare account, from its GraphQL analytics. The key needs Account Analytics: Read.

Rows are groups of calls; a day without rows is a day on which nothing was counted yet (measured lag: 139 to 365 s).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

import msgspec

from projector.observers.fetch import Fetch
from projector.observers.figures import exact_sum
from projector.observers.source import Figures, Unreadable

ROWS_MAX = 10_000  # the most that one query gives; as many may be only the first of more

_QUERY = """query($a:String!,$from:Date!,$to:Date!){viewer{accounts(filter:{accountTag:$a}){
aiInferenceAdaptiveGroups(limit:%d,filter:{date_geq:$from,date_leq:$to}){sum{totalNeurons} dimensions{date}}}}}"""


class _Sum(msgspec.Struct, frozen=True, rename="camel"):
    total_neurons: Decimal


class _Dimensions(msgspec.Struct, frozen=True):
    date: date


class _Group(msgspec.Struct, frozen=True):
    sum: _Sum
    dimensions: _Dimensions


class _Account(msgspec.Struct, frozen=True, rename="camel"):
    ai_inference_adaptive_groups: list[_Group]


class _Viewer(msgspec.Struct, frozen=True):
    accounts: list[_Account]


class _Data(msgspec.Struct, frozen=True):
    viewer: _Viewer


class _Answer(msgspec.Struct, frozen=True):
    data: _Data | None = None
    errors: list[object] | None = None


class Cloudflare:
    """The neurons that an account has used, whoever used them."""

    def __init__(self, fetch: Fetch, *, account: str) -> None:
        self._fetch, self._account = fetch, account

    async def read(self, days: Sequence[date]) -> Figures:
        """Neurons by day."""
        variables = {"a": self._account, "from": days[0].isoformat(), "to": days[-1].isoformat()}
        body = {"query": _QUERY % ROWS_MAX, "variables": variables}
        answer = await self._fetch.post("/graphql", body, _Answer)
        if answer.errors:  # with status 200: what is wrong may be the key, the account, or the query
            raise Unreadable("it answers the query with errors: look at the account and the key's permission")
        if answer.data is None or len(answer.data.viewer.accounts) != 1:
            raise Unreadable("it shows this key no such account")
        groups = answer.data.viewer.accounts[0].ai_inference_adaptive_groups
        if len(groups) >= ROWS_MAX:
            raise Unreadable(f"it has more than {ROWS_MAX:,} groups for these days")
        return {day: exact_sum(g.sum.total_neurons for g in groups if g.dimensions.date == day) for day in days}
