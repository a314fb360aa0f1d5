"""One model's prices, and the kinds of things that have a price. Whole numbers of pico-dollars or pico-neurons.

A missing kind is priced like what it is a part of: cached tokens without a price of their own cost what others cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

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


class Price(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The prices of one model. `usd` or `neurons` is None where the model is not priced in that unit."""

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

    @property
    def hears(self) -> bool:
        """Whether sound has a price. A model that takes sound bills it dearer than text, at up to forty times."""
        return bool(AUDIO_KINDS & {*(self.usd or {}), *(self.neurons or {})})

    def usd_rates(self, *, batch: bool = False, service: str = "") -> Rates:
        """The dollar rates of a call that ran so. What a variant does not name costs what it costs otherwise."""
        rates = dict(self.usd or {})
        for variant in (service, "batch" if batch else ""):
            rates |= self.variants.get(variant, {})
        return rates


def price_at(steps: int | Steps, input_tokens: int) -> int:
    """The price of one, in a call with so many input tokens."""
    if isinstance(steps, int):
        return steps
    found = steps[0][1]
    for above, price in steps[1:]:
        if input_tokens > above:
            found = price
    return found


def dearest(steps: int | Steps, input_tokens: int) -> int:
    """The highest price of one in any call with at most so many input tokens."""
    return max(price for above, price in _steps(steps) if above == 0 or input_tokens > above)


def counts(usage: Usage) -> dict[str, int]:
    """How many there were of each kind, wholes with their parts. What a provider reports below zero is zero."""
    found = {
        "input": usage.input_tokens,
        "cache_read": usage.cache_read_tokens,
        "cache_write": max(0, usage.cache_write_tokens) + max(0, usage.cache_write_1h_tokens),
        "cache_write_1h": usage.cache_write_1h_tokens,
        "input_audio": usage.input_audio_tokens,
        "cache_audio_read": usage.cache_audio_read_tokens,
        "input_image": usage.input_image_tokens,
        "cache_image_read": usage.cache_image_read_tokens,
        "input_video": usage.input_video_tokens,
        "output": usage.output_tokens,
        "output_audio": usage.output_audio_tokens,
        "output_image": usage.output_image_tokens,
        "output_video": usage.output_video_tokens,
        "output_reasoning": usage.output_reasoning_tokens,
        "output_citation": usage.output_citation_tokens,
        "call": usage.calls,
        "web_search": usage.web_searches,
        "storage_search": usage.storage_searches,
    }
    return {kind: max(0, count) for kind, count in found.items()}


def _steps(steps: int | Steps) -> Steps:
    return ((0, steps),) if isinstance(steps, int) else steps
