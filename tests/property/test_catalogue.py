"""What a call costs here is what the package genai-prices says, rounded up to a nano-dollar, over its whole catalogue.

What is not so stands in one of the tables below, with the reason. The book that ships is the one made from the package.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import ROUND_CEILING, Decimal
from importlib.metadata import version
from typing import TypeAlias

import pytest
from catalogue_calls import MANY, WAYS, Way, dollars, usage_of, usages
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from commonpurse.catalogue import import_catalogue
from engine.prices import Price, Usage, affordable_output_tokens, cost, worst
from engine.prices.book import shipped_book
from engine.prices.cost import OUTPUT_TOKENS_MAX

pytest.importorskip("genai_prices", reason="compares with the package genai-prices (`pip install commonpurse[prices]`)")

from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelInfo, Provider

WHY_LEFT_OUT = {
    "it has no price; free must be said": (
        "The package lists it without any price: mostly `:free` variants, and some whose price is not known. What is "
        "not said is not free; an operator who knows better writes it into `[prices]`."
    ),
    "it takes or makes more than text": (
        "It is one of OpenAI's models for sound or images, of which the package has the price of text alone: what it "
        "bills would be charged at a fraction."
    ),
    "it is priced by": (
        "It is billed by the hour of sound, by pages, characters or messages, and no guarded call reports those."
    ),
}
"""Why a model of the package is not in the book, so that it has no price and is refused."""

WHY_NOT_EQUAL = {
    "dearest": "Its price follows the hour of the day; the book has the dearest, so it is never charged too little.",
    "rounded": "Its price has more digits than a pico-dollar a token; it is rounded up there, and so may cost more.",
}
"""Why a model in the book may cost more than the package says. None may cost less."""

DAY = date.fromisoformat(shipped_book().contents.as_of)


IMPORTED = import_catalogue(as_of=DAY)


def catalogue() -> Iterator[tuple[Provider, ModelInfo]]:
    for provider in get_snapshot().providers:
        for model in provider.models:
            yield provider, model


Priced: TypeAlias = tuple[Provider, ModelInfo, Price]

PRICED: dict[str, Priced] = {
    f"{provider.id}/{model.id}": (provider, model, prices[model.id.lower()])
    for provider, model in catalogue()
    if model.id.lower() in (prices := shipped_book().prices(provider.id))
}


def test_every_model_of_the_package_is_in_the_book_or_left_out_for_a_reason() -> None:
    names = [f"{provider.id}/{model.id}" for provider, model in catalogue()]
    assert len(names) > 2000
    assert len(PRICED) + len(IMPORTED.left_out) == len(names)
    reasons = {next((why for why in WHY_LEFT_OUT if said.startswith(why)), said) for said in IMPORTED.left_out.values()}
    assert reasons == set(WHY_LEFT_OUT)
    assert len(IMPORTED.left_out) < len(names) / 10


def test_few_models_cost_more_than_the_package_says_and_each_for_a_reason() -> None:
    models = {"dearest": set(IMPORTED.dearest), "rounded": IMPORTED.rounded}
    assert set(models) == set(WHY_NOT_EQUAL)
    assert 0 < sum(map(len, models.values())) < len(PRICED) / 50


def test_the_book_that_ships_is_made_from_the_package() -> None:
    if shipped_book().contents.source != f"genai-prices {version('genai-prices')}":
        pytest.skip("another version of genai-prices is installed than the shipped book was made from")
    assert IMPORTED.raw == shipped_book().raw


def test_an_id_names_the_model_that_the_package_finds() -> None:
    checked = 0
    for provider in get_snapshot().providers:
        for id in {id for model in provider.models for id in (model.id, *texts_of(model.match))}:
            theirs, ours = provider.find_model(id), shipped_book().find(provider.id, id)
            if theirs is not None and ours is not None:
                assert ours.model == theirs.id.lower(), f"{provider.id}/{id}"
                checked += 1
    assert checked > len(PRICED)


def texts_of(rule: object) -> Iterator[str]:
    for part in getattr(rule, "or_", ()):
        yield from texts_of(part)
    for kind in ("equals", "starts_with"):
        if hasattr(rule, kind):
            yield getattr(rule, kind)


def check(provider: Provider, model: ModelInfo, price: Price, usage: Usage, way: Way) -> None:
    name = f"{provider.id}/{model.id}"
    hours = range(24) if name in IMPORTED.dearest else (0,)
    theirs = max(nanos(dollars(provider, model, usage, way, DAY, hour)) for hour in hours)
    ours = cost(price, usage)["usd"]
    if name in IMPORTED.rounded:
        finest = usage.input_tokens + usage.output_tokens  # a pico-dollar for each token
        assert theirs <= ours <= theirs + finest // 1000 + 1, name
    else:
        assert ours == theirs, name


def nanos(exact: Decimal) -> int:
    return int((exact * 10**9).to_integral_value(rounding=ROUND_CEILING))


SWEEP = [
    usage_of(plain=1, out=1),
    usage_of(plain=123_457, out=7_919),
    usage_of(plain=1_001, read=30_011, write=17, write_1h=29, out=503),
    usage_of(plain=MANY, read=MANY, write=MANY, write_1h=MANY, out=MANY),
    usage_of(read=7, audio=23, audio_read=29, image=31, image_read=37, out_audio=11, out_image=13),
    usage_of(plain=5, out=7, out_video=11, reasoning=17, citation=19),
    usage_of(web=3, storage=5),
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.service or ("batch" if way.batch else "standard"))
def test_every_model_costs_what_the_package_says(way: Way) -> None:
    for provider, model, price in PRICED.values():
        if way.service and not price.offers(way.service):
            continue  # a call that asks for it is not made
        for usage in SWEEP:
            check(provider, model, price, replace(usage, batch=way.batch, service=way.service), way)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(sorted(PRICED)), st.data())
def test_any_call_costs_what_the_package_says(name: str, data: st.DataObject) -> None:
    provider, model, price = PRICED[name]
    way = data.draw(st.sampled_from([way for way in WAYS if price.offers(way.service)]))
    check(provider, model, price, data.draw(usages(way)), way)


# --- bounds -----------------------------------------------------------------------------------------------------------


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(sorted(PRICED)), st.data())
def test_no_call_costs_more_than_the_worst_of_its_totals(name: str, data: st.DataObject) -> None:
    price = PRICED[name][2]
    way = data.draw(st.sampled_from([way for way in WAYS if price.offers(way.service)]))
    usage = data.draw(usages(way))
    more = data.draw(st.integers(0, MANY))
    bound = worst(
        price, input_tokens=usage.input_tokens + more, output_tokens=usage.output_tokens + more, audio=True,
        web_searches=usage.web_searches, storage_searches=usage.storage_searches, service=way.service,
    )  # fmt: skip
    for unit, amount in cost(price, usage).items():
        assert amount <= bound[unit], unit


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(sorted(PRICED)), st.integers(0, MANY), st.integers(0, 10**12), st.integers(0, 10**9))
def test_the_affordable_output_is_the_most_that_fits(name: str, input_tokens: int, usd: int, neurons: int) -> None:
    price = PRICED[name][2]
    room = {"usd": usd, "neurons": neurons}
    most = affordable_output_tokens(price, room, input_tokens=input_tokens)

    def fits(output_tokens: int) -> bool:
        needed = worst(price, input_tokens=input_tokens, output_tokens=output_tokens)
        return all(amount <= room[unit] for unit, amount in needed.items())

    assert fits(most) if most >= 0 else not fits(0)
    assert most == OUTPUT_TOKENS_MAX or not fits(most + 1)
