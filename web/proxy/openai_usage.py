"""What OpenAI, and whoever speaks like it, says that a call used. A count that is none is not believed.

A call in which nothing went in and nothing came out is no call: such a report counts as none, never as free.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from engine.core.amounts import round_up
from engine.prices import Usage

_STANDARD = ("", "auto", "default", "standard")
NANO = 1_000_000_000
_DOLLARS_MAX = 1_000_000  # for one call
_DUST = Decimal("1e-30")


def chat_usage(said: object, *, service: object = None) -> Usage | None:
    """`usage` of chat completions."""
    return _usage(said, "prompt", "completion", service)


def embeddings_usage(said: object) -> Usage | None:
    """`usage` of embeddings: nothing comes out that is counted."""
    return _usage({"completion_tokens": 0, **said}, "prompt", "completion", None) if isinstance(said, dict) else None


def responses_usage(said: object, *, service: object = None) -> Usage | None:
    """`usage` of the Responses API."""
    return _usage(said, "input", "output", service)


def service_of(said: object) -> str:
    """The service tier, "" for the standard one."""
    return "" if not isinstance(said, str) or said in _STANDARD else said


def _usage(said: object, into: str, out: str, service: object) -> Usage | None:
    if not isinstance(said, dict):
        return None
    input_tokens, output_tokens = _count(said, f"{into}_tokens"), _count(said, f"{out}_tokens")
    if input_tokens is None or output_tokens is None:
        return None
    went_in, came_out = _details(said, f"{into}_tokens_details"), _details(said, f"{out}_tokens_details")
    total = _count(said, "total_tokens") or 0
    most = max(output_tokens, total - input_tokens)  # some leave what was thought out of what came out
    usd = _dollars(said)
    if not input_tokens and not most and usd is None:
        return None
    return Usage(
        input_tokens=input_tokens,
        cache_read_tokens=_count(went_in, "cached_tokens") or 0,
        cache_write_tokens=_count(went_in, "cache_write_tokens") or 0,
        input_audio_tokens=_count(went_in, "audio_tokens") or 0,
        output_tokens=most,
        output_audio_tokens=_count(came_out, "audio_tokens") or 0,
        output_reasoning_tokens=_count(came_out, "reasoning_tokens") or 0,
        usd=usd,
        service=service_of(service),
    )


def _count(said: Mapping[str, object], field: str) -> int | None:
    found = said.get(field)
    return found if type(found) is int and 0 <= found < 2**53 else None


def _details(said: Mapping[str, object], field: str) -> Mapping[str, object]:
    found = said.get(field)
    return found if isinstance(found, dict) else {}


def _dollars(said: Mapping[str, object]) -> int | None:
    """OpenRouter says what the call cost; with a key of one's own, that is beside what the provider behind it takes."""
    cost = _number(said.get("cost"))
    if cost is None:
        return None
    if said.get("is_byok") is True:
        cost += _number(_details(said, "cost_details").get("upstream_inference_cost")) or 0
    numerator, denominator = (cost * NANO).as_integer_ratio()
    return round_up(numerator, denominator)


def _number(said: object) -> Decimal | None:
    if isinstance(said, bool) or not isinstance(said, int | Decimal) or not 0 <= said <= _DOLLARS_MAX:
        return None
    number = Decimal(said)
    return max(number, _DUST) if number else number  # as an integer ratio 1e-999999 would fill the memory
