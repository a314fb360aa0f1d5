"""`[ask]` of `purse.toml`: what the page's ask box asks. Talks to nobody.

Without any `purse.toml` it is the stand-in, and only for as long as the wallet has the default plan: nobody's real
budget pays for a demonstration that its operator did not ask for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from engine.errors import Misconfigured
from web.builtin import MODEL, PROVIDER

MAX_TOKENS = 300
MAX_TOKENS_MAX = 100_000
QUESTION_CHARS_MAX = 8_000

AskUpstream = Literal["openai", "built-in"]


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[ask]` as written."""

    model: Annotated[str, Meta(min_length=1, max_length=128)] = ""
    upstream: AskUpstream = "openai"
    max_tokens: Annotated[int, Meta(ge=1, le=MAX_TOKENS_MAX)] = MAX_TOKENS


@dataclass(frozen=True, slots=True)
class AskSettings:
    """`max_tokens` caps each answer. `default_plan_only`: see above."""

    upstream: AskUpstream
    model: str
    max_tokens: int = MAX_TOKENS
    default_plan_only: bool = False

    @property
    def provider(self) -> str:
        """Whose price the model has; "": the first guarded provider that knows it."""
        return PROVIDER if self.upstream == "built-in" else ""


STAND_IN = AskSettings("built-in", MODEL, max_tokens=120, default_plan_only=True)


def read_ask(table: Mapping[str, object]) -> AskSettings:
    """Raises `Misconfigured` naming the place and what is allowed there."""
    try:
        found = msgspec.convert(table, _Table)
    except msgspec.ValidationError as error:
        raise Misconfigured(f"ask: {str(error).replace('`', '').replace('$.', '')}") from None
    if found.upstream == "built-in":
        return AskSettings("built-in", MODEL, found.max_tokens)
    if not found.model:
        raise Misconfigured("ask.model: missing; it names the model that the page asks")
    return AskSettings(found.upstream, found.model, found.max_tokens)
