"""One model's prices, and the kinds of things that have a price. Whole numbers of pico-dollars or pico-neurons.

A missing kind is priced like what it is a part of: cached tokens without a price of their own cost what others cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple, TypeAlias

import msgspec

from engine.prices.usage import Usage

PICO_PER_NANO = 1000
"""Dollars on the stream are nano-dollars."""

PICO_PER_MICRO = 1_000_000
"""Neurons on the stream are millionths."""

NEURON_PICO_USD = 11_000_000
"""Cloudflare: $0.011 for 1,000 neurons."""

Steps: TypeAlias = tuple[tuple[int, int], ...]
"""`((0, price), (200_000, dearer))`: with more than 200,000 input tokens the dearer price is that of every token."""

Rates: TypeAlias = dict[str, int | Steps]
"""Kind -> price of one."""

PARTS: Mapping[str, tuple[str, ...]] = {
    "input": (
        "cache_read", "cache_write", "cache_write_1h", "input_audio", "cache_audio_read",
        "input_image", "cache_image_read", "input_video",
    ),
    "cache_read": ("cache_audio_read", "cache_image_read"),
    "cache_write": ("cache_write_1h",),
    "input_audio": ("cache_audio_read",),
    "input_image": ("cache_image_read",),
    "output": ("output_audio", "output_image", "output_video", "output_reasoning", "output_citation"),
}  # fmt: skip
"""Kind -> the kinds that are parts of it."""

INPUT_KINDS = ("input", *PARTS["input"])
OUTPUT_KINDS = ("output", *PARTS["output"])
TOKEN_KINDS = (*INPUT_KINDS, *OUTPUT_KINDS)
COUNTED_KINDS = ("call", "web_search", "storage_search")
KINDS = (*TOKEN_KINDS, *COUNTED_KINDS)
AUDIO_KINDS = frozenset({"input_audio", "cache_audio_read", "output_audio"})

_MOST_SPECIAL_FIRST = (*sorted(TOKEN_KINDS, key=lambda kind: len(PARTS.get(kind, ()))), *COUNTED_KINDS)


class Line(NamedTuple):
    """One line of a sum: all of a kind but its `parts`, which have lines of their own before it.

    `count`: how many there were with the parts, below zero where a provider reports so.
    """

    kind: str
    count: Callable[[Usage], int]
    price: int | Steps
    parts: tuple[str, ...]


class Dearest(NamedTuple):
    """The most that one of anything can cost in a call with at most so many input tokens, at any of several rates."""

    input: int | Steps
    output: int | Steps
    counted: Mapping[str, int | Steps]


class Price(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, dict=True):
    """The prices of one model. `usd` or `neurons` is None where the model is not priced in that unit.

    What follows from its rates alone is worked out once.
    """

    provider: str
    model: str
    usd: Rates | None = None
    """Pico-dollars."""
    neurons: Rates | None = None
    """Pico-neurons."""
    neuron_pico_usd: int | None = None
    """What a neuron costs, where the provider counts neurons but publishes dollars: then both units are counted."""
    variants: dict[str, Rates] = {}
    """What differs for `batch` or another service tier, in dollars."""

    @property
    def free(self) -> bool:
        """Whether every price is said and zero."""
        rates = [rates for rates in (self.usd, self.neurons, *self.variants.values()) if rates is not None]
        return all(price == 0 for kinds in rates for steps in kinds.values() for _, price in _steps(steps))

    def offers(self, service: str) -> bool:
        """Whether this service tier has a price of its own here; the standard one ("") always has."""
        return not service or service in self.variants

    @cached_property
    def hears(self) -> bool:
        """Whether sound has a price. A model that takes sound bills it dearer than text, at up to forty times."""
        return bool(AUDIO_KINDS & {*(self.usd or {}), *(self.neurons or {})})

    def usd_rates(self, *, batch: bool = False, service: str = "") -> Rates:
        """The dollar rates of a call that ran so. What a variant does not name costs what it costs otherwise."""
        rates = dict(self.usd or {})
        for variant in (service, "batch" if batch else ""):
            rates |= self.variants.get(variant, {})
        return rates

    def usd_lines(self, *, batch: bool = False, service: str = "") -> tuple[Line, ...]:
        """What the dollars of a call that ran so are the sum of."""
        ran = (batch, service if service in self.variants else "")
        if ran not in self._usd_lines:
            self._usd_lines[ran] = _lines(self.usd_rates(batch=batch, service=service))
        return self._usd_lines[ran]

    @cached_property
    def _usd_lines(self) -> dict[tuple[bool, str], tuple[Line, ...]]:
        return {}

    @cached_property
    def neuron_lines(self) -> tuple[Line, ...]:
        """What the neurons of a call are the sum of."""
        return _lines(self.neurons or {})

    def dearest_usd(self, *, audio: bool, service: str = "") -> Dearest:
        """The dearest dollars of a call on this service tier, as a batch or not. `audio`: it may carry sound."""
        ways = (audio, service if service in self.variants else "")
        if ways not in self._dearest_usd:
            rates = [self.usd_rates(service=service), self.usd_rates(service=service, batch=True)]
            self._dearest_usd[ways] = _dearest_of(rates, audio=audio)
        return self._dearest_usd[ways]

    @cached_property
    def _dearest_usd(self) -> dict[tuple[bool, str], Dearest]:
        return {}

    def dearest_neurons(self, *, audio: bool) -> Dearest:
        return _dearest_of([self.neurons or {}], audio=audio)


def price_at(steps: int | Steps, input_tokens: int) -> int:
    """The price of one, in a call with so many input tokens."""
    if isinstance(steps, int):
        return steps
    found = steps[0][1]
    for above, price in steps[1:]:
        if input_tokens > above:
            found = price
    return found


_COUNTS: Mapping[str, Callable[[Usage], int]] = {
    "call": attrgetter("calls"),
    "web_search": attrgetter("web_searches"),
    "storage_search": attrgetter("storage_searches"),
    **{kind: attrgetter(f"{kind}_tokens") for kind in TOKEN_KINDS},
    "cache_write": lambda usage: max(0, usage.cache_write_tokens) + max(0, usage.cache_write_1h_tokens),
}


def _lines(rates: Rates) -> tuple[Line, ...]:
    """Each token once, at the price of the most special kind that has one."""
    return tuple(
        Line(kind, _COUNTS[kind], rates[kind], tuple(part for part in PARTS.get(kind, ()) if part in rates))
        for kind in _MOST_SPECIAL_FIRST
        if kind in rates
    )


def _dearest_of(ways: Iterable[Rates], *, audio: bool) -> Dearest:
    def highest(*kinds: str) -> int | Steps:
        wanted = [kind for kind in kinds if audio or kind not in AUDIO_KINDS]
        found = sorted(step for rates in ways for kind in wanted if kind in rates for step in _steps(rates[kind]))
        rising: dict[int, int] = {0: 0}
        for above, price in found:
            rising[above] = max(price, *rising.values())
        return tuple(rising.items()) if len(rising) > 1 else rising[0]

    return Dearest(highest(*INPUT_KINDS), highest(*OUTPUT_KINDS), {kind: highest(kind) for kind in COUNTED_KINDS})


def _steps(steps: int | Steps) -> Steps:
    return ((0, steps),) if isinstance(steps, int) else steps
