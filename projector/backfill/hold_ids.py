"""Where a log line of a call names its hold: what the guarded proxies answer as `x-purse-hold`, wherever it was kept.

It looks in a few well-known places and guesses nothing: a call whose hold is not named is no row.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from projector.backfill import fields
from projector.backfill.rows import RowError

NAMES = ("x-purse-hold", "purse_hold", "purse-hold", "hold")
INSIDE = (
    "metadata", "headers", "response_headers", "request_headers", "spend_logs_metadata", "requester_metadata",
    "requester_custom_headers", "additional_headers", "response", "request", "result", "body", "message",
)  # fmt: skip
DEPTH_MAX = 4


def find(line: Mapping[str, object], field: str | None = None) -> str:
    """The hold's id: at `field` (dots between its parts) if given, else in one of the known places.

    Raises `RowError`.
    """
    if field is not None:
        return fields.hold_id(_at(line, field), field)
    for found in _named(line, DEPTH_MAX):
        return fields.hold_id(found, NAMES[0])
    raise RowError(NAMES[0], f"no hold is named; expected {', '.join(NAMES)} in the line, its metadata or its headers")


def _at(line: Mapping[str, object], field: str) -> object:
    found: object = line
    for part in field.split("."):
        inside = _object(found)
        found = inside.get(part) if inside is not None else None
    return found


def _named(line: Mapping[str, object], depth: int) -> Iterator[object]:
    """The nearest first."""
    for name, value in line.items():
        if name.lower() in NAMES and value not in (None, ""):
            yield value
    if depth:
        for name in INSIDE:
            inside = _object(line.get(name))
            if inside is not None:
                yield from _named(inside, depth - 1)


def _object(value: object) -> Mapping[str, object] | None:
    """An object, or the JSON text of one, as CSV files carry it."""
    if isinstance(value, str) and value.startswith("{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, Mapping) else None
