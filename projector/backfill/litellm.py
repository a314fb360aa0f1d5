"""Spend logs of LiteLLM, a line a request: what it says that a call cost, in dollars.

It keeps dollars as floats: what one meant is rounded up to the nano-dollar. Its times bear no offset and are UTC.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.core.amounts import SCALES
from projector.backfill import fields, hold_ids
from projector.backfill.rows import Row

UNIT = "usd"


def is_spend(line: Mapping[str, object]) -> bool:
    return "request_id" in line and "spend" in line


def row(number: int, line: Mapping[str, object], hold_field: str | None = None) -> Row:
    """Raises `RowError`."""
    hold = hold_ids.find(line, hold_field)
    spend = fields.from_float(line.get("spend"), "spend", scale=SCALES[UNIT])
    at = fields.moment(line.get("startTime"), "startTime", zone_known=True)
    return Row(number, hold, {UNIT: spend}, at, beside=_beside(line.get("total_tokens")))


def _beside(tokens: object) -> dict[str, str]:
    """In CSV a count is text."""
    known = isinstance(tokens, int | str) and not isinstance(tokens, bool) and str(tokens).isdecimal()
    return {"requests": "1"} | ({"tokens": str(tokens)} if known else {})
