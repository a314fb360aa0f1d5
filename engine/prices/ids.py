"""Model ids as people and providers write them: which tail of an id only says a version of the same model.

Nothing here guesses: an id that is not in the book as it stands, or without such a tail, is not known.
"""

from __future__ import annotations

import re

MODEL_CHARS_MAX = 256
"""A longer id is no model's."""

_TAIL = re.compile(r"(?:[-@](?:20\d{6}|20\d\d-\d\d-\d\d)|[-@:]latest|-v\d:\d)$", re.ASCII)


def plain(model: str) -> str:
    """The id as books keep it: without blanks around it, in lower case."""
    return model.strip().lower()


def without_version(model: str) -> str:
    """`gpt-4o-2024-08-06`, `claude-3-5-sonnet-20241022`, `mistral-small-latest` without date or `latest`.

    Bedrock's ids end with a version of their own, `-v1:0`.
    """
    return _TAIL.sub("", model)
