"""Workers AI as its own clients know it: who we are to it, how an error reads, and its neurons wherever they stand."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal, InvalidOperation

import msgspec

from web.proxy import sse
from web.proxy.refusals import Refusal

NEURON_PARTS = 1_000_000
"""Neurons are counted in millionths."""

NEURONS_MAX = Decimal(1_000_000_000)
"""More than the largest account uses in a year: what says more is no figure."""

NEURONS_HEADER = "cf-ai-neurons"
ALLOWANCE_GONE = frozenset({3036, 4006})
"""Its codes for "the free allocation of the day is used up"."""

_CODES = {
    "spent": 3036, "tier": 3036, "busy": 3040, "cooling": 3040, "frozen": 3023, "revoked": 3023,
    "wrong_key": 10000, "no_key": 10000, "unknown_url": 7003,
}  # fmt: skip
_CODES_BY_STATUS = {400: 5006, 408: 3007, 413: 3006, 504: 3007}
_CODE_OTHERWISE = 3043


class WorkersAI:
    """What all its routes share."""

    name = "workers-ai"

    def identify(self, key: str) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {key}"}

    def error(self, refusal: Refusal, *, request_id: str) -> Mapping[str, object]:
        """`code` is one of Cloudflare's own, so that its clients know what it means; ours stands in `metadata`."""
        code = _CODES.get(refusal.reason) or _CODES_BY_STATUS.get(refusal.status, _CODE_OTHERWISE)
        metadata: dict[str, object] = {"reason": refusal.reason, **refusal.metadata}
        if refusal.param is not None:
            metadata["param"] = refusal.param
        error = {"code": code, "message": refusal.message, "metadata": metadata}
        return {"result": None, "success": False, "errors": [error], "messages": []}

    def error_event(self, refusal: Refusal, *, request_id: str) -> bytes:
        return sse.encode(msgspec.json.encode(self.error(refusal, request_id=request_id)).decode(), name="error")


def allowance_gone(status: int, answer: object) -> bool:
    """Whether an error says that there are no neurons left today."""
    errors = answer.get("errors") if isinstance(answer, dict) else None
    return (
        status >= 400
        and isinstance(errors, list)
        and any(isinstance(error, dict) and _code(error.get("code")) in ALLOWANCE_GONE for error in errors)
    )


def _code(said: object) -> int | None:
    text = str(said)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def neurons_of(usage: object, headers: Mapping[str, str] | None = None) -> int | None:
    """Millionths of neurons, rounded up. None where nobody says; where body and header differ, the larger."""
    said = usage.get("neurons") if isinstance(usage, dict) else None
    found = [_parts(said), _parts((headers or {}).get(NEURONS_HEADER))]
    return max((parts for parts in found if parts is not None), default=None)


def _parts(said: object) -> int | None:
    if isinstance(said, bool) or not isinstance(said, str | int | Decimal):
        return None
    try:
        neurons = Decimal(said)
    except InvalidOperation:
        return None
    if not neurons.is_finite() or not 0 <= neurons <= NEURONS_MAX:
        return None
    # Rounded by the decimal's own means: as a fraction, 1e-999999999 would fill the memory. It is more than nothing.
    return max(int((neurons * NEURON_PARTS).to_integral_value(ROUND_CEILING)), int(neurons > 0))


WORKERS_AI = WorkersAI()
