"""What one call used, as its provider counted it, or an upper bound of that. Counts only: it knows no price."""

from __future__ import annotations

import msgspec


class Usage(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Counts of one call. Totals include their parts: `input_tokens` is everything that went in, cached or not.

    A provider that counts apart what it read from or wrote to its cache has it added to `input_tokens` before.
    """

    input_tokens: int = 0
    cache_read_tokens: int = 0
    """Of `input_tokens`."""
    cache_write_tokens: int = 0
    """Of `input_tokens`, written for five minutes (or for as long as the provider does it by default)."""
    cache_write_1h_tokens: int = 0
    """Of `input_tokens`, written for an hour; beside `cache_write_tokens`, not in it."""
    output_tokens: int = 0
    """Everything that came out, reasoning included."""

    input_audio_tokens: int = 0
    """Of `input_tokens`."""
    cache_audio_read_tokens: int = 0
    """Of `input_audio_tokens` and of `cache_read_tokens`."""
    output_audio_tokens: int = 0
    """Of `output_tokens`."""
    input_image_tokens: int = 0
    """Of `input_tokens`."""
    cache_image_read_tokens: int = 0
    """Of `input_image_tokens` and of `cache_read_tokens`."""
    output_image_tokens: int = 0
    """Of `output_tokens`."""
    input_video_tokens: int = 0
    """Of `input_tokens`."""
    output_video_tokens: int = 0
    """Of `output_tokens`."""
    output_reasoning_tokens: int = 0
    """Of `output_tokens`; only a few models price them apart."""
    output_citation_tokens: int = 0
    """Of `output_tokens`; only a few models price them apart."""

    web_searches: int = 0
    """Searches that the provider made for the call and bills by number."""
    storage_searches: int = 0
    """Searches in files kept at the provider, billed by number."""

    neurons: int | None = None
    """Millionths, as the provider reported them: beats any computed figure. Zero is a report."""
    usd: int | None = None
    """Nano-dollars, where the provider reports the cost itself: beats any computed figure. Zero is a report."""
    calls: int = 1
    batch: bool = False
    """Batch prices, where the model has them."""
    service: str = ""
    """The service tier it ran on, where that has another price: `priority`, `flex`, `fast`."""
