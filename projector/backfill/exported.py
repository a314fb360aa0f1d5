"""Our own export of what was decided (`purse export DAY --out`), read back as what each call really cost.

Only exact settlements are real costs; what lapsed or was estimated is passed by. An outcome has a row for each meter it
touched, so rows are gathered until the whole file is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from projector.backfill import fields
from projector.backfill.rows import Row, RowError, Said, Unreadable

EXACT = frozenset({"settled", "corrected", "stray"})
NEEDED = ("hold", "kind", "outcome", "state", "first", "unit", "amount_text", "at", "labels")


def rows(lines: Iterable[tuple[int, Mapping[str, object] | Unreadable]]) -> Iterator[Said]:
    """The lines in the order of the file. What a call cost last is what it cost."""
    costs: dict[str, tuple[int, dict[str, str]]] = {}
    held: dict[str, tuple[int | None, dict[str, str]]] = {}
    for number, line in lines:
        if isinstance(line, Unreadable):
            yield line
            continue
        try:
            _take(number, line, costs, held)
        except RowError as error:
            yield Unreadable(number, error.field, str(error))
    for hold, (number, said) in costs.items():
        at, labels = held.get(hold, (None, {}))
        yield Row(number, hold, said, at, labels)


def _take(
    number: int,
    line: Mapping[str, object],
    costs: dict[str, tuple[int, dict[str, str]]],
    held: dict[str, tuple[int | None, dict[str, str]]],
) -> None:
    missing = [name for name in NEEDED if name not in line]
    if missing:
        raise RowError(missing[0], "expected a row of `purse export`")
    outcome = line["outcome"]
    hold = line["hold"]
    if hold in (None, ""):
        return
    id = fields.hold_id(hold)
    if line["kind"] == "hold" and outcome == "held":
        held[id] = fields.moment(line["at"], "at"), _labels(line["labels"])
    if line["kind"] != "settle" or outcome not in ("settled", "stray") or line["state"] not in EXACT:
        return
    if _is_first(line["first"]):
        costs[id] = number, {}
    if outcome == "stray":
        held.setdefault(id, (fields.moment(line["at"], "at"), _labels(line["labels"])))
    if line["unit"] and line["amount_text"] and id in costs:
        costs[id][1][str(line["unit"])] = fields.amount(line["amount_text"], "amount_text")


def _is_first(value: object) -> bool:
    return value is True or value == "true"


def _labels(value: object) -> dict[str, str]:
    try:
        return fields.labels(json.loads(value) if isinstance(value, str) and value else value)
    except (ValueError, RecursionError) as error:
        if isinstance(error, RowError):
            raise
        raise RowError("labels", "expected an object of names and texts, in JSON") from None
