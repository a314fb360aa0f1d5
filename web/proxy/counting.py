"""Our own count of what a stream brings, for when its provider's count never comes. A number each way, never a guess.

`most` is an upper bound, to be charged; `least` a lower one, to tell a provider that does not obey its cap.
"""

from __future__ import annotations

from web.proxy import tokens

BYTES_PER_TOKEN_MAX = 16
"""No text of some length has on average longer tokens than this, whatever the tokenizer: English has 4 to 5 bytes."""


class OutputCount:
    """The output of one stream, over all its choices, for one model."""

    __slots__ = ("_bytes", "_model", "_pieces", "most")

    def __init__(self, model: str) -> None:
        self.most = 0
        self._model = model
        self._bytes = self._pieces = 0

    def add(self, text: str) -> None:
        """One more piece of text, of whatever kind: what cannot be read costs as well."""
        if text:
            self.most += max(1, tokens.bound([text], self._model))
            self._bytes += len(text.encode("utf-8", "replace"))
            self._pieces += 1

    def add_tokens(self, count: int) -> None:
        """Something that is no text, at its upper bound."""
        self.most += count

    @property
    def least(self) -> int:
        """What it must have been at least. A piece may be part of a token or many: the smaller number counts."""
        return min(self._pieces, self._bytes // BYTES_PER_TOKEN_MAX)
