"""Which headers pass, and which say something of ours. Everything not named here stays where it is.

A client's key, cookies and account never go upstream; a provider's cookies and account never reach a client.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.core.messages import Held
from web.answers import percent
from web.proxy.dialect import Call, Way

_PASS = frozenset(
    {"content-type", "retry-after", "retry-after-ms", "openai-processing-ms", "openai-version", "cf-ai-neurons"}
)
_PASS_BEGINNINGS = ("x-ratelimit-", "anthropic-ratelimit-")
UPSTREAM_REQUEST_ID = "x-purse-upstream-request-id"


def lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def passed_on(headers: Mapping[str, str]) -> dict[str, str]:
    """Of an upstream's headers, in lower case, those that help whoever called."""
    kept = {name: value for name, value in headers.items() if name in _PASS or name.startswith(_PASS_BEGINNINGS)}
    request_id = headers.get("x-request-id") or headers.get("request-id")
    return kept | ({UPSTREAM_REQUEST_ID: request_id} if request_id else {})


def of_hold(held: Held, call: Call, way: Way, *, id: str) -> dict[str, str]:
    """What was granted: the hold, its tier, the model, the cap on each choice, percent left of the tightest budget.

    `id`: the hold's, as its caller calls it.
    """
    left = [
        max(0.0, 100.0 - percent(line.limit - line.remaining, line.limit)) for line in held.budgets.values()
    ]  # fmt: skip
    said = {"x-purse-hold": id, "x-purse-tier": str(held.tier), "x-purse-model": way.model}
    if way.output_tokens:
        said["x-purse-max-tokens"] = str(way.output_tokens)
    if left:
        said["x-purse-remaining-pct"] = f"{min(left):.1f}"
    return said
