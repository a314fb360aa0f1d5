"""What a file says: one row a call, with what it really cost. It reads no file and knows no wallet.

A row keeps its amounts as exact decimal text: which digits a unit takes is known once the record is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import msgspec

ROWS_MAX = 500_000
"""In one file, readable or not: each is kept in memory. A longer file goes in parts."""


class Row(msgspec.Struct, frozen=True, gc=False):
    """One call. `line` counts from 1. `at` (ns) is when it was held; `said` empty: nobody has filled it in yet.

    `beside`: what else is known that it used (tokens, one request), which counts only where its hold counts it.
    `by_price`: the amounts were made from usage with the price book.
    """

    line: int
    hold: str
    said: dict[str, str]
    at: int | None = None
    labels: dict[str, str] = {}
    beside: dict[str, str] = {}
    by_price: bool = False


class Unreadable(msgspec.Struct, frozen=True, gc=False):
    """A row that cannot be used: the place in it, and what is allowed there. Never what stands there."""

    line: int
    field: str
    why: str


Said: TypeAlias = Row | Unreadable


class RowError(ValueError):
    """What a row says cannot be used. `field` names the place, the text what is allowed there."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(why)
        self.field = field


class Rows:
    """The rows of one file, a hold once. The same row twice is one; two that differ are both set apart."""

    def __init__(self, said: Iterable[Said]) -> None:
        """Raises `RowError` where there are more than `ROWS_MAX`."""
        self.by_hold: dict[str, Row] = {}
        self.differing: dict[str, list[Row]] = {}
        self.unreadable: list[Unreadable] = []
        self.repeated = 0
        self.priced = 0
        for count, one in enumerate(said, start=1):
            if count > ROWS_MAX:
                raise RowError("file", f"at most {ROWS_MAX:,} rows; split it, and the parts may overlap")
            if isinstance(one, Unreadable):
                self.unreadable.append(one)
            else:
                self._add(one)

    def __iter__(self) -> Iterator[Row]:
        """Every row that stands for its hold alone, in the order of the file."""
        return (row for hold, row in self.by_hold.items() if hold not in self.differing)

    def _add(self, row: Row) -> None:
        known = self.by_hold.setdefault(row.hold, row)
        if known is row:
            self.priced += row.by_price
        elif known.said == row.said:
            self.repeated += 1
        elif not known.said:
            self.by_hold[row.hold] = row
        elif row.said:
            self.differing.setdefault(row.hold, [known]).append(row)
