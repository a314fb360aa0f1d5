"""A recorded hour of real traffic: one row a model call, read as a stream, priced in whole numbers. Sends nothing.

The format is that of the Azure LLM inference traces: `TIMESTAMP,ContextTokens,GeneratedTokens`, with timestamps like
`2023-11-16 18:15:46.6805900` (seven digits, UTC). Columns may stand in any order, others are ignored.
"""

from __future__ import annotations

import calendar
import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from engine.core.amounts import parse, round_up

COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
TOKENS_DIGITS_MAX = 12  # a cost must stay far below 2**63 - 1 whatever the price

_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z?", re.ASCII)
_PICO_PER_NANO = 1_000


class TraceError(Exception):
    """The file is not a trace. The text names the line and what is allowed."""


class Row(NamedTuple):
    """One call. `number` counts the rows from 1; `at_ns` is the moment it was made, in nanoseconds since 1970."""

    number: int
    at_ns: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Prices:
    """Pico-dollars a token (1,000,000 is one dollar a million tokens), and the output a call is capped at."""

    input_pico: int
    output_pico: int
    output_cap: int

    @classmethod
    def of(cls, *, input_usd_per_mtok: str, output_usd_per_mtok: str, output_cap: int) -> Prices:
        """From prices as people write them. Raises `engine.core.amounts.AmountError`."""
        return cls(_pico(input_usd_per_mtok), _pico(output_usd_per_mtok), output_cap)

    def worst_nanos(self, row: Row) -> int:
        """The most the call could cost before it is made: all of its input, and output up to the cap."""
        return self._nanos(row.input_tokens, self.output_cap)

    def real_nanos(self, row: Row) -> int:
        """What the call did cost. More than the worst case where the recorded output is longer than the cap."""
        return self._nanos(row.input_tokens, row.output_tokens)

    def _nanos(self, input_tokens: int, output_tokens: int) -> int:
        return round_up(input_tokens * self.input_pico + output_tokens * self.output_pico, _PICO_PER_NANO)


def _pico(usd_per_mtok: str) -> int:
    return parse(usd_per_mtok, unit="usd per million tokens", scale=6)


class Trace:
    """The rows of one file, once, in its order. Holds one line in memory."""

    def __init__(self, path: Path, *, rows_max: int | None = None) -> None:
        self._path, self._rows_max = path, rows_max
        self._bytes_total = path.stat().st_size
        self._bytes_read = self._rows_read = 0

    @property
    def share_read(self) -> float:
        """How far it is, from 0 to 1: by the bytes of the file, or by rows where only the first are wanted."""
        if self._rows_max is not None:
            return self._rows_read / self._rows_max
        return self._bytes_read / max(1, self._bytes_total)

    def __iter__(self) -> Iterator[Row]:
        """Raises `TraceError` at the first line that cannot be read, after the rows before it."""
        try:
            with open(self._path, encoding="utf-8-sig", newline="") as file:
                yield from self._rows(csv.reader(self._counted(file), strict=True))
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise TraceError(f"{self._path}: {error}") from error

    def _rows(self, lines: Iterator[list[str]]) -> Iterator[Row]:
        places = self._places(next(lines, []))
        for line, cells in enumerate(lines, start=2):
            if not cells:
                continue
            if self._rows_read == self._rows_max:
                return
            row = self._row(self._rows_read + 1, line, cells, places)
            self._rows_read = row.number
            yield row

    def _counted(self, file: Iterator[str]) -> Iterator[str]:
        for line in file:
            self._bytes_read += len(line)
            yield line

    def _places(self, header: list[str]) -> tuple[int, ...]:
        missing = [name for name in COLUMNS if name not in header]
        if missing:
            raise TraceError(f"{self._path}: no column {', '.join(missing)}; a trace has {','.join(COLUMNS)}")
        return tuple(header.index(name) for name in COLUMNS)

    def _row(self, number: int, line: int, cells: list[str], places: tuple[int, ...]) -> Row:
        try:
            moment, tokens_in, tokens_out = (cells[place] for place in places)
            return Row(number, _at_ns(moment), _tokens(tokens_in), _tokens(tokens_out))
        except (IndexError, ValueError) as error:
            raise TraceError(f"{self._path} line {line}: {error}") from error


def _at_ns(written: str) -> int:
    found = _MOMENT.fullmatch(written.strip())
    if found is None:
        raise ValueError("a timestamp looks like 2023-11-16 18:15:46.6805900")
    second = calendar.timegm(datetime.fromisoformat(f"{found[1]} {found[2]}").timetuple())
    return second * 1_000_000_000 + int((found[3] or "").ljust(9, "0"))


def _tokens(written: str) -> int:
    digits = written.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= TOKENS_DIGITS_MAX):
        raise ValueError(f"tokens are a whole number of at most {TOKENS_DIGITS_MAX} digits")
    return int(digits)
