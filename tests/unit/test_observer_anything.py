"""Whatever a provider says, a source gives figures or says that it cannot: no word from outside ends a process."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from typing import TypeVar, cast

from hypothesis import given
from hypothesis import strategies as st

from engine.core.limits import AMOUNT_MAX
from projector.observers.anthropic import Anthropic
from projector.observers.cloudflare import Cloudflare
from projector.observers.fetch import Fetch, decoded
from projector.observers.figures import smallest_parts
from projector.observers.openai import OpenAI
from projector.observers.openrouter import OpenRouter
from projector.observers.source import Source, Unreadable

Shape = TypeVar("Shape")

DAYS = [date(2026, 11, 29), date(2026, 11, 30)]
MIDNIGHT_S = 1_796_000_000 - 1_796_000_000 % 86_400
"""The one that begins the second of the days."""


class Told:
    """A `Fetch` that is told one answer, whatever it asks."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw

    async def get(self, _path: str, _params: Mapping[str, str], shape: type[Shape]) -> Shape:
        return decoded(self.raw, shape)

    async def post(self, _path: str, _body: object, shape: type[Shape]) -> Shape:
        return decoded(self.raw, shape)


def row(**fields: object) -> st.SearchStrategy[dict[str, object]]:
    """An object with these fields; each may be a value or a strategy."""
    return st.fixed_dictionaries(
        {name: field if isinstance(field, st.SearchStrategy) else st.just(field) for name, field in fields.items()}
    )


NUMBERS = st.one_of(
    st.integers(),
    st.floats(),
    st.decimals().map(str),
    st.sampled_from([10**4_000, -1, 0, True, "1e400", "-0", "\u0663", "1_000", " 1"]),
)
SCALARS = st.none() | st.text(max_size=8) | NUMBERS | st.dates().map(str) | st.datetimes().map(str)
MOMENTS = st.one_of(st.datetimes(timezones=st.timezones()).map(datetime.isoformat), SCALARS)

CLOUDFLARE = st.lists(
    row(sum=row(totalNeurons=NUMBERS), dimensions=row(date=st.just("2026-11-30") | MOMENTS)), max_size=3
)
OPENROUTER = row(data=row(usage_daily=NUMBERS))
OPENAI = row(
    start_time=st.just(MIDNIGHT_S) | NUMBERS,
    end_time=st.just(MIDNIGHT_S + 86_400) | NUMBERS,
    results=st.lists(row(amount=row(value=NUMBERS, currency=st.sampled_from(["usd", "eur"]))), max_size=3),
)
ANTHROPIC = row(
    starting_at=st.just("2026-11-30T00:00:00Z") | MOMENTS,
    ending_at=st.just("2026-12-01T00:00:00Z") | MOMENTS,
    results=st.lists(row(amount=NUMBERS.map(str) | SCALARS, currency="USD", workspace_id="w"), max_size=3),
)
PAGES = row(data=st.lists(OPENAI, max_size=2) | st.lists(ANTHROPIC, max_size=2), has_more=st.booleans() | SCALARS)
ACCOUNTS = CLOUDFLARE.map(lambda groups: {"data": {"viewer": {"accounts": [{"aiInferenceAdaptiveGroups": groups}]}}})
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=8), inner), max_leaves=8
)
BODIES = st.one_of(PAGES, ACCOUNTS, OPENROUTER, ANYTHING).map(lambda body: json.dumps(body).encode())


def sources(raw: bytes) -> Sequence[Source]:
    told = cast("Fetch", Told(raw))
    return (
        Cloudflare(told, account="a"),
        OpenRouter(told),
        OpenAI(told),
        Anthropic(told, workspace="w"),
        Anthropic(told),
    )


@given(raw=BODIES | st.binary())
async def test_no_answer_of_a_provider_can_end_a_process(raw: bytes) -> None:
    for source in sources(raw):
        with suppress(Unreadable):
            for figure in (await source.read(DAYS)).values():
                assert 0 <= smallest_parts(figure, scale=9) <= AMOUNT_MAX


async def test_what_is_drawn_here_can_be_right() -> None:
    """So that the test above looks at figures too, not only at refusals."""
    bucket = {"start_time": MIDNIGHT_S, "end_time": MIDNIGHT_S + 86_400}
    right = [
        {"data": {"viewer": {"accounts": [{"aiInferenceAdaptiveGroups": []}]}}},
        {"data": {"usage_daily": 1}},
        {"data": [{**bucket, "results": [{"amount": {"value": 1, "currency": "usd"}}]}], "has_more": False},
        {"data": [{"starting_at": "2026-11-30T00:00:00Z", "ending_at": "2026-12-01T00:00:00Z", "results": []}]},
    ]
    for number, body in enumerate(right):
        assert await sources(json.dumps(body).encode())[number].read(DAYS)
