"""Anthropic as its own clients know it: who we are to it, how an error reads, which of a client's headers go along."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from web.proxy import sse
from web.proxy.refusals import Refusal

VERSION = "2023-06-01"
"""Said for a client that names none."""

HEADER_CHARS_MAX = 4_096

_UNBOUNDED_BETAS = (
    "advisor-tool", "code-execution", "compact", "fallback-credit", "fast-mode", "inline-tools", "managed-agents",
    "mcp-", "message-threads", "mid-conversation-tool-changes", "server-side-fallback", "skills",
    "user-profiles-billing",
)  # fmt: skip
"""What these allow may cost more than any bound known here. They do not go along: a call that uses one anyway is
refused by the provider itself, before it costs anything."""

_TYPES = {
    "spent": "billing_error",
    "tier": "billing_error",
    "busy": "rate_limit_error",
    "cooling": "rate_limit_error",
}
_TYPES_BY_STATUS = {
    400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
    404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 504: "timeout_error",
}  # fmt: skip


class Anthropic:
    """What all its routes share."""

    name = "anthropic"

    def identify(self, key: str) -> Mapping[str, str]:
        return {"x-api-key": key}

    def error(self, refusal: Refusal, *, request_id: str) -> Mapping[str, object]:
        """`error.details.error_code` says the cause in one word, as its clients look for it."""
        other = "api_error" if refusal.status >= 500 else "invalid_request_error"
        kind = _TYPES.get(refusal.reason) or _TYPES_BY_STATUS.get(refusal.status, other)
        details = {"error_code": refusal.reason, **refusal.metadata}
        if refusal.param is not None:
            details["param"] = refusal.param
        error = {"type": kind, "message": refusal.message, "details": details}
        return {"type": "error", "error": error, "request_id": request_id}

    def error_event(self, refusal: Refusal, *, request_id: str) -> bytes:
        """As in a stream of messages."""
        return sse.encode(msgspec.json.encode(self.error(refusal, request_id=request_id)).decode(), name="error")


def passed_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """What of a client's headers, in lower case, this provider must hear: its version, and the betas we can bound."""
    version = headers.get("anthropic-version", VERSION)[:HEADER_CHARS_MAX]
    asked = (beta.strip() for beta in headers.get("anthropic-beta", "")[:HEADER_CHARS_MAX].split(","))
    betas = [beta for beta in asked if beta and not beta.startswith(_UNBOUNDED_BETAS)]
    return {"anthropic-version": version} | ({"anthropic-beta": ",".join(betas)} if betas else {})


ANTHROPIC = Anthropic()
