"""A price book in words: one model's prices as people write them, and what differs between two books. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from engine.core.amounts import format_amount
from engine.prices import Price, PriceBook
from engine.prices.price import TOKEN_KINDS, Rates, Steps

_NAMES = {
    "call": "a call",
    "web_search": "a web search",
    "storage_search": "a file search",
    "input": "input",
    "output": "output",
    "cache_read": "input read from cache",
    "cache_write": "input written to cache",
    "cache_write_1h": "input written to cache for an hour",
}
_PER_TOKEN, _PER_ONE = 6, 12  # digits after the point of a price for a million tokens, and for one


def price_lines(price: Price) -> Iterator[str]:
    """`input: $2.50 for a million tokens`, and so on. Nothing is rounded."""
    for unit, rates in (("usd", price.usd), ("neurons", price.neurons)):
        for kind, said in _written(rates or {}, unit).items():
            yield f"{_name(kind)}: {said}"
    if price.neuron_pico_usd is not None:
        per_thousand = format_amount(price.neuron_pico_usd * 1000, scale=12)
        yield f"counted in neurons too, at ${per_thousand} for a thousand"
    for variant, rates in price.variants.items():
        for kind, said in _written(rates, "usd").items():
            yield f"{variant}, {_name(kind)}: {said}"
    if price.free:
        yield "free: every price is zero"


def price_document(price: Price) -> dict[str, object]:
    """The same for programs. Decimal strings: dollars or neurons, for a million tokens or for one call or search."""
    document: dict[str, object] = {"provider": price.provider, "model": price.model, "free": price.free}
    if price.usd is not None:
        document["usd"] = _numbers(price.usd)
    if price.neurons is not None:
        document["neurons"] = _numbers(price.neurons)
    if price.neuron_pico_usd is not None:
        document["usd_per_neuron"] = format_amount(price.neuron_pico_usd, scale=12)
    if price.variants:
        document["variants"] = {variant: _numbers(rates) for variant, rates in price.variants.items()}
    return document


def differences(old: PriceBook, new: PriceBook) -> Iterator[tuple[str, str]]:
    """(`provider/model`, what became of it) for each model whose price is not the same in both."""
    before, after = dict(_every(old)), dict(_every(new))
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            yield name, "is gone"
        elif name not in before:
            yield name, "is new"
        elif before[name] != after[name]:
            lines, others = set(price_lines(before[name])), set(price_lines(after[name]))
            gone, come = "; ".join(sorted(lines - others)), "; ".join(sorted(others - lines))
            yield name, f"{gone or 'nothing'} -> {come or 'nothing'}"


def _every(book: PriceBook) -> Iterator[tuple[str, Price]]:
    for provider in book.providers:
        for model, price in book.prices(provider).items():
            yield f"{provider}/{model}", price
    for key, price in book.contents.own.items():
        yield f"own: {key}", price
    if book.contents.ceiling is not None:
        yield "ceiling", book.contents.ceiling


def _written(rates: Rates, unit: str) -> dict[str, str]:
    return {kind: _said(steps, unit, kind) for kind, steps in rates.items()}


def _said(steps: int | Steps, unit: str, kind: str) -> str:
    per = " for a million tokens" if kind in TOKEN_KINDS else ""
    if isinstance(steps, int):
        return f"{_money(steps, unit, kind)}{per}"
    first, *others = steps
    dearer = ", ".join(f"{_money(price, unit, kind)} once more than {above:,} go in" for above, price in others)
    return f"{_money(first[1], unit, kind)}{per}, {dearer}"


def _money(pico: int, unit: str, kind: str) -> str:
    number = format_amount(pico, scale=_scale(kind))
    return f"${number}" if unit == "usd" else f"{number} {unit}"


def _numbers(rates: Rates) -> dict[str, object]:
    return {
        kind: format_amount(steps, scale=_scale(kind))
        if isinstance(steps, int)
        else [
            {"above_input_tokens": above, "price": format_amount(price, scale=_scale(kind))} for above, price in steps
        ]
        for kind, steps in rates.items()
    }


def _scale(kind: str) -> int:
    return _PER_TOKEN if kind in TOKEN_KINDS else _PER_ONE


def _name(kind: str) -> str:
    return _NAMES.get(kind, kind.replace("_", " "))
