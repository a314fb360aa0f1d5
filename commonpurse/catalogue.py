"""The catalogue of the package genai-prices as a price book: what `purse prices import` writes, and what ships with us.

Nothing is guessed: a model whose price cannot be said in the book's terms is left out, with the reason, and so has no
price. The package is an extra (`commonpurse[prices]`) and is imported only here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING

import msgspec

from engine.core.amounts import round_up
from engine.errors import Misconfigured
from engine.prices.book import FORMAT, Contents, ModelPrices, Provider, canonical
from engine.prices.ids import plain
from engine.prices.price import NEURON_PICO_USD, Rates, Steps

if TYPE_CHECKING:
    from genai_prices import types as theirs

KINDS = {
    "input_mtok": "input",
    "output_mtok": "output",
    "cache_read_mtok": "cache_read",
    "cache_write_mtok": "cache_write",
    "cache_write_1h_mtok": "cache_write_1h",
    "input_audio_mtok": "input_audio",
    "output_audio_mtok": "output_audio",
    "cache_audio_read_mtok": "cache_audio_read",
    "input_image_mtok": "input_image",
    "output_image_mtok": "output_image",
    "cache_image_read_mtok": "cache_image_read",
    "input_video_mtok": "input_video",
    "output_video_mtok": "output_video",
    "output_reasoning_mtok": "output_reasoning",
    "output_citation_mtok": "output_citation",
    "requests_kcount": "call",
    "web_searches_kcount": "web_search",
    "storage_searches_kcount": "storage_search",
}
"""Their name of a price -> our kind. A model that is priced in anything else is left out."""

CONTEXTS = {
    "batch": {"processing": "batch"},
    "priority": {"service_tier": "priority"},
    "flex": {"service_tier": "flex"},
    "fast": {"service_tier": "fast", "speed": "fast"},  # OpenAI's word, and Anthropic's
}
"""The variant of a price here -> what their package calls a call that ran so."""

_PER_KCOUNT = 10**9  # a dollar for a thousand, in pico-dollars for one
_PER_MTOK = 10**6
_BY_NEURONS = "cloudflare"
_BY_NAME = {"openai": (("audio", "audio"), ("realtime", "audio"), ("image", "image"))}
"""Providers whose models say by name what they take or make beside text: (in the name, in the kind it is priced by)."""


@dataclass
class Imported:
    """A book, and what did not get into it (or not as it stands): `provider/model` -> why."""

    raw: bytes = b""
    models: int = 0
    left_out: dict[str, str] = field(default_factory=dict)
    dearest: dict[str, str] = field(default_factory=dict)
    """Models whose price follows the hour: the book has the dearest."""
    rounded: set[str] = field(default_factory=set)
    """Models with a price finer than a pico-dollar a token: rounded up."""
    changing: dict[str, date] = field(default_factory=dict)
    """Models whose price is announced to change: the book has the one of its day."""


def import_catalogue(*, as_of: date) -> Imported:
    """The whole catalogue at the prices of a day (UTC). Raises `Misconfigured` where the package is not installed."""
    try:
        from genai_prices import __version__
        from genai_prices.data_snapshot import get_snapshot
    except ImportError as error:
        raise Misconfigured("genai-prices is not installed; pip install 'commonpurse[prices]' brings it") from error
    imported = Imported()
    providers = {}
    for provider in sorted(get_snapshot().providers, key=lambda provider: provider.id):
        entry = _provider(provider, as_of, imported)
        if entry.models:
            providers[provider.id] = msgspec.Raw(msgspec.json.encode(entry, order="sorted"))
    source = f"genai-prices {__version__}"
    imported.raw = canonical(Contents(v=FORMAT, source=source, as_of=as_of.isoformat(), providers=providers))
    return imported


def _provider(provider: theirs.Provider, as_of: date, imported: Imported) -> Provider:
    models: dict[str, ModelPrices] = {}
    for model in provider.models:
        name = f"{provider.id}/{model.id}"
        if plain(model.id) in models:
            imported.left_out[name] = "another model of this provider has the same id"
            continue
        try:
            models[plain(model.id)] = _model(provider, model, as_of, imported)
            imported.models += 1
        except _LeftOutError as left_out:
            imported.left_out[name] = str(left_out)
    ids, prefixes = _ids(provider, models)
    return Provider(models=models, ids=ids, prefixes=prefixes, fallbacks=list(provider.fallback_model_providers or ()))


class _LeftOutError(Exception):
    """Why a model cannot be in the book."""


def _model(provider: theirs.Provider, model: theirs.ModelInfo, as_of: date, imported: Imported) -> ModelPrices:
    name = f"{provider.id}/{model.id}"
    moments, changes = _moments(model, as_of)
    if changes:
        imported.changing[name] = min(changes)
    _check_name(provider, model)
    of_the_day = [_rates(model.get_prices(moment), name, imported) for moment in moments]
    rates = of_the_day[0]
    if any(other != rates for other in of_the_day):
        imported.dearest[name] = "the price follows the hour; the book has the dearest of the day"
        rates = _dearest(of_the_day)
    variants = dict(_variants(model, moments[0], rates, name, imported))
    if variants and len(moments) > 1:
        raise _LeftOutError("its price follows both the hour and the service tier")
    return ModelPrices(
        usd=rates, neuron_pico_usd=NEURON_PICO_USD if provider.id == _BY_NEURONS else None, variants=variants
    )


def _check_name(provider: theirs.Provider, model: theirs.ModelInfo) -> None:
    """A model for sound or images of which only the price of text is known would be charged too little."""
    prices = model.prices if isinstance(model.prices, list) else [model]
    said = " ".join(key for each in prices for key in vars(each.prices))
    for named, kind in _BY_NAME.get(provider.id, ()):
        if named in model.id and kind not in said:
            raise _LeftOutError(f"it takes or makes more than text, and has no price of {kind}")


def _moments(model: theirs.ModelInfo, as_of: date) -> tuple[list[datetime], list[date]]:
    """The moments of the day at which its price may differ, and the later days on which it changes."""
    times, later = {time(0, tzinfo=UTC)}, []
    conditions = model.prices if isinstance(model.prices, list) else []
    for condition in [*conditions, *(model.price_variants or ())]:
        constraint = condition.constraint
        if constraint is None:
            continue
        start = getattr(constraint, "start_date", None)
        if start is None:
            times |= {constraint.start_time, constraint.end_time}
        elif start > as_of:
            later.append(start)
    return [datetime.combine(as_of, at) for at in sorted(times)], later


def _variants(
    model: theirs.ModelInfo, moment: datetime, standard: Rates, name: str, imported: Imported
) -> Iterator[tuple[str, Rates]]:
    """What differs from the standard price, for every context that has a name here."""
    if not model.price_variants:
        return
    for variant, context in CONTEXTS.items():
        rates = _rates(model.get_prices(moment, context), name, imported)
        different = {kind: steps for kind, steps in rates.items() if standard.get(kind) != steps}
        if different:
            yield variant, different


def _rates(price: theirs.ModelPrice, name: str, imported: Imported) -> Rates:
    said = {key: value for key, value in vars(price).items() if value is not None and not key.startswith("_")}
    if not said:
        raise _LeftOutError("it has no price; free must be said")
    other = sorted(said.keys() - KINDS.keys())
    if other:
        raise _LeftOutError(f"it is priced by {', '.join(other)}, which no call here reports")
    rates: Rates = {}
    for key, value in said.items():
        scale = _PER_MTOK if key.endswith("_mtok") else _PER_KCOUNT
        base = getattr(value, "base", value)
        steps: Steps = ((0, _pico(base, scale, name, imported)),)
        steps += tuple((tier.start, _pico(tier.price, scale, name, imported)) for tier in getattr(value, "tiers", ()))
        rates[KINDS[key]] = steps[0][1] if len(steps) == 1 else steps
    return rates


def _pico(dollars: Decimal, scale: int, name: str, imported: Imported) -> int:
    numerator, denominator = (dollars * scale).as_integer_ratio()
    if denominator != 1:
        imported.rounded.add(name)
    return round_up(numerator, denominator)


def _dearest(ways: list[Rates]) -> Rates:
    """The higher of each price. Raises `_LeftOutError` where they are not of the same kinds, or in steps."""
    kinds = {frozenset(rates) for rates in ways}
    prices = [list(rates.values()) for rates in ways]
    if len(kinds) != 1 or not all(isinstance(price, int) for some in prices for price in some):
        raise _LeftOutError("its price follows the hour in a way that has no dearest")
    return {kind: max(price for rates in ways if isinstance(price := rates[kind], int)) for kind in ways[0]}


# --- ids --------------------------------------------------------------------------------------------------------------


def _ids(provider: theirs.Provider, models: dict[str, ModelPrices]) -> tuple[dict[str, str], dict[str, str]]:
    """Other ids of the models, as the package itself resolves them, and the beginnings of fine-tuned ones' ids.

    The package also takes any id that begins with, or has in it, a known one. Here such an id has no price: what is not
    known by its name could cost anything.
    """
    ids: dict[str, str] = {}
    prefixes: dict[str, str] = {}
    texts = {plain(text) for model in provider.models for text in (model.id, *_texts(model.match))}
    for text in sorted(texts):
        found = provider.find_model(text)
        if found is None or plain(found.id) not in models:
            continue
        if text.startswith("ft:") and text[-1] in "-0123456789":
            prefixes[text] = plain(found.id)
        elif text[-1:].isalnum() and text != plain(found.id):
            ids[text] = plain(found.id)
    return ids, dict(sorted(prefixes.items(), key=lambda item: -len(item[0])))


def _texts(clause: object) -> Iterator[str]:
    """The ids in a matching rule. Patterns are skipped: what they add to an id is a date, which is known here."""
    for part in getattr(clause, "or_", None) or getattr(clause, "and_", None) or ():
        yield from _texts(part)
    for kind in ("equals", "starts_with", "ends_with", "contains"):
        text = getattr(clause, kind, None)
        if isinstance(text, str):
            yield text
