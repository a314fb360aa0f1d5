"""Calls to price against the package genai-prices: usages whose parts add up, and what the package says they cost."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from engine.prices import Usage

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, Provider

MANY = 3_000_000
"""More tokens than any tier begins at."""


@dataclass(frozen=True)
class Way:
    """How a call ran: what the package calls it, and what we do."""

    context: dict[str, str]
    batch: bool = False
    service: str = ""


WAYS = (
    Way({}),
    Way({"processing": "batch"}, batch=True),
    Way({"service_tier": "priority"}, service="priority"),
    Way({"service_tier": "flex"}, service="flex"),
    Way({"service_tier": "fast", "speed": "fast"}, service="fast"),
)


def usage_of(  # one argument a kind of token that is nothing else
    *,
    plain: int = 0, read: int = 0, write: int = 0, write_1h: int = 0, audio: int = 0, audio_read: int = 0,
    image: int = 0, image_read: int = 0, out: int = 0, out_audio: int = 0, out_image: int = 0, out_video: int = 0,
    reasoning: int = 0, citation: int = 0, web: int = 0, storage: int = 0, way: Way = WAYS[0],
) -> Usage:  # fmt: skip
    """A usage whose totals are the sums of these parts."""
    return Usage(
        input_tokens=plain + read + write + write_1h + audio + audio_read + image + image_read,
        cache_read_tokens=read + audio_read + image_read,
        cache_write_tokens=write,
        cache_write_1h_tokens=write_1h,
        input_audio_tokens=audio + audio_read,
        cache_audio_read_tokens=audio_read,
        input_image_tokens=image + image_read,
        cache_image_read_tokens=image_read,
        output_tokens=out + out_audio + out_image + out_video + reasoning + citation,
        output_audio_tokens=out_audio,
        output_image_tokens=out_image,
        output_video_tokens=out_video,
        output_reasoning_tokens=reasoning,
        output_citation_tokens=citation,
        web_searches=web,
        storage_searches=storage,
        batch=way.batch,
        service=way.service,
    )


_count = st.integers(0, 5) | st.integers(0, 400_000) | st.integers(0, MANY)
_few = st.integers(0, 20)
_SPECIAL = (
    "audio", "audio_read", "image", "image_read", "out_audio", "out_image", "out_video", "reasoning", "citation",
)  # fmt: skip


@st.composite
def usages(draw: st.DrawFn, way: Way = WAYS[0]) -> Usage:
    """Any usage whose parts add up."""
    tokens = draw(st.fixed_dictionaries(dict.fromkeys(("plain", "read", "write", "write_1h", "out"), _count)))
    rare = draw(st.fixed_dictionaries({}, optional=dict.fromkeys(_SPECIAL, _count)))
    return usage_of(**tokens, **rare, web=draw(_few), storage=draw(_few), way=way)


def dollars(provider: Provider, model: ModelInfo, usage: Usage, way: Way, day: date, hour: int = 0) -> Decimal:
    """What the package says that a call costs, exactly."""
    from genai_prices import Usage as Theirs

    theirs = Theirs(
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens + usage.cache_write_1h_tokens,
        cache_write_1h_tokens=usage.cache_write_1h_tokens,
        input_audio_tokens=usage.input_audio_tokens,
        cache_audio_read_tokens=usage.cache_audio_read_tokens,
        input_image_tokens=usage.input_image_tokens,
        cache_image_read_tokens=usage.cache_image_read_tokens,
        input_video_tokens=usage.input_video_tokens,
        output_tokens=usage.output_tokens,
        output_audio_tokens=usage.output_audio_tokens,
        output_image_tokens=usage.output_image_tokens,
        output_video_tokens=usage.output_video_tokens,
        output_reasoning_tokens=usage.output_reasoning_tokens,
        output_citation_tokens=usage.output_citation_tokens,
        web_searches=usage.web_searches,
        storage_searches=usage.storage_searches,
    )
    at = datetime.combine(day, time(hour, 30, tzinfo=UTC))
    return model.calc_price(theirs, provider, genai_request_timestamp=at, price_context=way.context).total_price
