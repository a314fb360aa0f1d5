"""OpenAI as its own clients know it: who we are to it, and how an error reads. No route stands here."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from web.proxy import sse
from web.proxy.refusals import Refusal, unbounded

_TYPES = {
    "spent": ("insufficient_quota", "insufficient_quota"),
    "tier": ("insufficient_quota", "insufficient_quota"),
    "busy": ("rate_limit_exceeded", "rate_limit_exceeded"),
    "cooling": ("rate_limit_exceeded", "slow_down"),
    "never": ("invalid_request_error", "call_exceeds_budget"),
    "frozen": ("permission_error", "budget_frozen"),
    "revoked": ("permission_error", "access_revoked"),
    "wrong_key": ("invalid_request_error", "invalid_api_key"),
    "no_key": ("invalid_request_error", "invalid_api_key"),
}
"""Reason -> `type` and `code`, where clients know words for it."""


class OpenAI:
    """What all its routes share."""

    name = "openai"

    def identify(self, key: str) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {key}"}

    def error(self, refusal: Refusal, *, request_id: str) -> Mapping[str, object]:
        other = ("server_error" if refusal.status >= 500 else "invalid_request_error", refusal.reason)
        kind, code = _TYPES.get(refusal.reason, other)
        error: dict[str, object] = {"message": refusal.message, "type": kind, "param": refusal.param, "code": code}
        if refusal.metadata:
            error["metadata"] = dict(refusal.metadata)
        return {"error": error}

    def error_event(self, refusal: Refusal, *, request_id: str) -> bytes:
        """As in a stream of chat completions."""
        return sse.encode(msgspec.json.encode(self.error(refusal, request_id=request_id)).decode(), name="error")


OPENAI = OpenAI()

_SHOWS_ALL = re.compile(
    r"(?:ft:)?(?:[a-z0-9@~-]+/)*"
    r"(?:chatgpt-4o|gpt-3\.5|gpt-4|gpt-oss|llama|meta-llama|mistral|mixtral|ministral|deepseek|qwen|gemma|phi|kimi)",
    re.ASCII,
)
_SEARCHES = re.compile(r"search-preview|search-api|deep-research", re.ASCII)


def hides_tokens(model: str) -> bool:
    """Whether a model may think, and bill, without its stream showing it. A model that is not known may."""
    return _SHOWS_ALL.match(model.lower()) is None


def check_bounded(body: Mapping[str, object], fields: Mapping[str, str], model: str) -> None:
    """Refuse what could cost anything: a field of these that is set, a model that searches by itself.

    Raises `Declined` 400 naming the field and why.
    """
    for field, why in fields.items():
        if body.get(field) not in (None, False, []):
            raise unbounded(field, why)
    if _SEARCHES.search(model.lower()):
        raise unbounded("model", "this model searches by itself, and every search is billed")
