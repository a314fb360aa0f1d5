"""Everything that can go wrong at a provider, as switches. A `Fault` describes one answer; the default is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

UsageShape = Literal[
    "normal",
    "none",  # no usage anywhere
    "null",  # "usage": null
    "zeros",  # said, and zero
    "last_choice",  # OpenAI-like servers: in the last chunk that has a choice, none of its own
    "every_chunk",  # OpenAI-like servers: growing, in every chunk
    "x_groq",  # OpenAI-like servers: under a vendor's name only
    "delta_only",  # Anthropic: zeros in message_start, everything in message_delta
    "start_only",  # Anthropic: message_delta says null
    "cumulative",  # Anthropic: input and cache again in message_delta, two of them, both totals
    "header",  # Workers AI: neurons in the header only
    "body",  # Workers AI: neurons in the body only
]


@dataclass(frozen=True)
class Fault:
    """How one answer goes wrong. Places in a stream are counts of output tokens: `after=0` is before the first."""

    # Refused, before anything was made
    status: int | None = None
    error_type: str | None = None
    error_code: str | int | None = None
    message: str = "The server had an error while processing your request."
    headers: Mapping[str, str] = field(default_factory=dict)
    redirect_to: str | None = None

    # The connection
    reset_before_answer: bool = False
    reset_after: int | None = None
    pause_before_answer: bool = False
    """Says nothing until `provider.go` is set. Never set: it hangs."""
    pause_after: int | None = None
    slow_s: float = 0.0
    """Between two tokens."""
    end_after: int | None = None
    """The stream ends there, properly closed, without its last events."""

    # Errors inside a stream
    error_after: int | None = None
    error_style: Literal["event", "chunk"] = "event"
    """`event`: SSE `event: error`. `chunk`: a chunk with a top-level `error` and `finish_reason: "error"`."""
    garbage_after: int | None = None
    """A `data:` line that is no JSON; then the stream goes on."""

    # Bytes
    piece_bytes: int | None = None
    """The body is cut into pieces of this size, wherever that falls: inside an event, inside a character."""
    one_piece: bool = False
    """The whole stream in one write."""
    line_end: str = "\n"
    comments: bool = False
    """SSE comments and empty events between the events."""
    gzip: bool = False
    """Compressed, whether asked or not."""
    content_type: str | None = None
    body: bytes | None = None
    """Said in place of a plain answer."""
    padding_bytes: int = 0
    """A field of this size in the answer."""
    without_done: bool = False
    """OpenAI-like streams: `data: [DONE]` is missing."""

    # Usage
    usage: UsageShape = "normal"
    usage_patch: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the usage said otherwise. The ledger does not believe them."""
    ignores_cap: bool = False
    extra_output: int = 0
    """Output tokens beyond any cap: made, said and billed."""


HANGS_BEFORE_ANSWER = Fault(pause_before_answer=True)
NO_FAULT = Fault()


def hangs_after(tokens: int) -> Fault:
    return Fault(pause_after=tokens)


def rate_limited(retry_after: str = "1") -> Fault:
    """A 429 that a stock client sends again."""
    return Fault(status=429, message="Rate limit reached.", headers={"Retry-After": retry_after})
