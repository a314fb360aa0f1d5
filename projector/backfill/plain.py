"""Rows as people write them: a hold, what it cost by unit, maybe when it was held and its labels. CSV and JSONL alike.

    hold,usd                                {"hold": "c1", "amounts": {"usd": "0.0123"}}
    c1,0.0123                               {"hold": "c1", "usd": "0.0123", "at": "2026-11-30T14:05:00Z"}

Every column that is not named here is a unit. It is also what `purse drive --log` and `purse orphans --csv` write.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from projector.backfill import fields
from projector.backfill.rows import Row, RowError

HOLD, AT, AMOUNTS, LABELS, NOTE = "hold", "at", "amounts", "labels", "note"
LABEL = "label."  # before a label's name, in a column of its own
READ_PAST = (NOTE,)


def is_plain(line: Mapping[str, object]) -> bool:
    return HOLD in line


def row(number: int, line: Mapping[str, object]) -> Row:
    """Raises `RowError`."""
    hold = fields.hold_id(line.get(HOLD))
    said = line.get(AMOUNTS)
    if said is not None and not isinstance(said, Mapping):
        raise RowError(AMOUNTS, "expected an object of units and amounts")
    costs = fields.amounts(said) if said is not None else fields.amounts(_units(line), "")
    return Row(number, hold, costs, fields.moment(line.get(AT), AT), _labels(line))


def _units(line: Mapping[str, object]) -> dict[str, object]:
    ours = {HOLD, AT, LABELS, *READ_PAST}
    return {name: value for name, value in line.items() if name not in ours and not name.startswith(LABEL)}


def _labels(line: Mapping[str, object]) -> dict[str, str]:
    said = line.get(LABELS)
    if isinstance(said, str) and said:
        try:
            said = json.loads(said)
        except (ValueError, RecursionError):
            raise RowError(LABELS, "expected an object of names and texts, in JSON") from None
    apart = {name.removeprefix(LABEL): value for name, value in line.items() if name.startswith(LABEL)}
    return fields.labels({**apart, **said} if isinstance(said, Mapping) else said or apart)
