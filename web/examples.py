"""One example for each route."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Example:
    status: int
    answer: object = None
    body: object = None


EXAMPLES: dict[str, Example] = {}
