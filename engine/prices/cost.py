"""Amounts of a usage by a price: exact for what was reported, an upper bound for what may come. Pure arithmetic.

Pico-dollars are summed over the whole call and rounded up once, at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.core.amounts import round_up
from engine.core.limits import AMOUNT_MAX
from engine.prices.price import PICO_PER_MICRO, PICO_PER_NANO, Dearest, Line, Price, price_at
from engine.prices.usage import Usage

NEURONS_MARGIN = 3
"""What a hold allows for where neurons are counted: 172.8 were measured for a call that documentation puts at 57.6."""

OUTPUT_TOKENS_MAX = 1_000_000_000
"""What `affordable_output_tokens` answers where output costs nothing."""


def cost(price: Price, usage: Usage) -> dict[str, int]:
    """What the call cost, by unit: `usd` in nano-dollars, `neurons` in millionths, each rounded up once.

    What the provider itself reported (`usage.usd`, `usage.neurons`) is taken as it is. Never raises: parts that exceed
    their whole, as a provider may report them, are each charged.
    """
    amounts: dict[str, int] = {}
    pico_usd = _total(price.usd_lines(batch=usage.batch, service=usage.service), usage)
    per_neuron = price.neuron_pico_usd
    if price.neurons is not None:
        amounts["neurons"] = round_up(_total(price.neuron_lines, usage), PICO_PER_MICRO)
    elif per_neuron is not None:
        amounts["neurons"] = round_up(pico_usd * PICO_PER_MICRO, per_neuron)
    if usage.neurons is not None:
        amounts["neurons"] = max(0, usage.neurons)
        if per_neuron is not None:
            pico_usd = round_up(amounts["neurons"] * per_neuron, PICO_PER_MICRO)
    if price.usd is not None:
        amounts["usd"] = round_up(pico_usd, PICO_PER_NANO)
    if usage.usd is not None:
        amounts["usd"] = max(0, usage.usd)
    return {unit: min(amount, AMOUNT_MAX) for unit, amount in amounts.items()}


def worst(
    price: Price,
    *,
    input_tokens: int,
    output_tokens: int,
    audio: bool = False,
    calls: int = 1,
    web_searches: int = 0,
    storage_searches: int = 0,
    service: str = "",
) -> dict[str, int]:
    """The most a call with at most these totals can cost, by unit: every way its tokens may be cached or tiered.

    `audio`: whether it may carry sound. `service`: the service tier it asks for (see `Price.offers`). Where neurons are
    counted, `NEURONS_MARGIN` times the published figure.
    """
    bounds = _bounds(
        price, input_tokens=input_tokens, audio=audio, calls=calls, web_searches=web_searches,
        storage_searches=storage_searches, service=service,
    )  # fmt: skip
    return {unit: min(bound.at(output_tokens), AMOUNT_MAX) for unit, bound in bounds.items()}


def affordable_output_tokens(
    price: Price, amounts: Mapping[str, int], *, input_tokens: int, audio: bool = False, service: str = ""
) -> int:
    """The most output tokens with which `worst` stays within `amounts`; -1 if not even the input does.

    Units that the model is not priced in are left to the caller, but for `tokens`: there input and output count.
    """
    bounds = _bounds(price, input_tokens=input_tokens, audio=audio, service=service)
    most = [OUTPUT_TOKENS_MAX]
    most += [bound.most(amounts[unit]) for unit, bound in bounds.items() if unit in amounts]
    if "tokens" in amounts:
        most.append(amounts["tokens"] - input_tokens)
    return max(-1, min(most))


def _total(lines: Iterable[Line], usage: Usage) -> int:
    """What it comes to."""
    left: dict[str, int] = {}
    total = 0
    for kind, count, price, parts in lines:
        own = max(0, count(usage))
        for part in parts:
            own -= left[part]
        left[kind] = max(0, own)
        total += left[kind] * price_at(price, usage.input_tokens)
    return total


class _Bound:
    """(fixed + each * output tokens) / per, rounded up."""

    __slots__ = ("each", "fixed", "per")

    def __init__(self, fixed: int, each: int, per: int) -> None:
        self.fixed, self.each, self.per = fixed, each, per

    def at(self, output_tokens: int) -> int:
        return round_up(self.fixed + self.each * max(0, output_tokens), self.per)

    def most(self, amount: int) -> int:
        """The most output tokens that this amount allows: -1 where it allows not even none."""
        left = amount * self.per - self.fixed
        if left < 0:
            return -1
        return left // self.each if self.each else OUTPUT_TOKENS_MAX


def _bounds(
    price: Price,
    *,
    input_tokens: int,
    audio: bool = False,
    calls: int = 1,
    web_searches: int = 0,
    storage_searches: int = 0,
    service: str = "",
) -> dict[str, _Bound]:
    tokens = max(0, input_tokens)
    counted = {"call": calls, "web_search": web_searches, "storage_search": storage_searches}
    margin = NEURONS_MARGIN if price.neurons is not None or price.neuron_pico_usd is not None else 1

    def bound(rates: Dearest, per: int, times: int) -> _Bound:
        fixed = tokens * price_at(rates.input, tokens)
        for kind, how_many in counted.items():
            fixed += how_many * price_at(rates.counted[kind], tokens)
        return _Bound(fixed * times, price_at(rates.output, tokens) * times, per)

    found: dict[str, _Bound] = {}
    if price.usd is not None:
        found["usd"] = bound(price.dearest_usd(audio=audio, service=service), PICO_PER_NANO, margin)
    if price.neurons is not None:
        found["neurons"] = bound(price.dearest_neurons(audio=audio), PICO_PER_MICRO, margin)
    elif price.neuron_pico_usd is not None:
        dollars = price.dearest_usd(audio=audio, service=service)
        found["neurons"] = bound(dollars, price.neuron_pico_usd, margin * PICO_PER_MICRO)
    return found
