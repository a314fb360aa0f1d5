"""A file of real costs, read row by row. Which kind of file it is, is found by looking, unless it is said.

    {"export":"rows",...  or  # {...   our own export, also as Parquet
    JSON lines, or one JSON list        each line by its shape: a plain row, a spend log, a call
    anything else                       CSV with a header

What a call of a provider looks like is for whoever knows prices: `calls` reads those.
"""

from __future__ import annotations

import csv
import json
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias, get_args

from engine.errors import Misconfigured
from projector.backfill import exported, litellm, plain
from projector.backfill.rows import Row, RowError, Said, Unreadable
from projector.export.files import EXTRA

Format = Literal["auto", "rows", "export", "openai", "anthropic", "litellm"]
FORMATS: tuple[Format, ...] = get_args(Format)

JSON_ALWAYS: tuple[Format, ...] = ("openai", "anthropic")
"""Even where the first line is none of theirs."""

LINE_BYTES_MAX = 4 << 20
LIST_BYTES_MAX = 256 << 20
"""Of a file that is one JSON list: it is read whole."""

Line: TypeAlias = Mapping[str, object]
Calls: TypeAlias = Callable[[int, Line, Format], "Row | None"]
"""The row of a call of a provider: line number, the line, the format. None: it is none. Raises `RowError`."""

_NO_OBJECT = "expected one JSON object a line"
_REPORTS = frozenset({"page", "bucket", "organization.costs.result", "organization.usage.completions.result"})


class FileReader:
    """Reads files. `kind`: what they are, if it is said. `hold_field`: where a logged call names its hold."""

    def __init__(self, calls: Calls, *, kind: Format = "auto", hold_field: str | None = None) -> None:
        self._calls, self._kind, self._hold_field = calls, kind, hold_field

    def read(self, path: Path) -> Iterator[Said]:
        """Every row, or why it cannot be used. Raises `Misconfigured` where the file as a whole is none."""
        with path.open("rb") as file:
            start = file.read(4_096).removeprefix(BOM_UTF8).lstrip()
            file.seek(0)
            if start[:4] == b"PAR1":
                yield from exported.rows(_parquet(path))
            elif start[:1] == b"[":
                yield from self._shaped(_listed(file))
            elif start[:1] == b"{" or self._kind in JSON_ALWAYS:
                yield from self._lines(file)
            else:
                yield from self._csv(file)

    def _lines(self, file: IO[bytes]) -> Iterator[Said]:
        numbered = _objects(file)
        number, first = next(numbered)
        kind = first.get("export") if isinstance(first, Mapping) else None
        if kind == "raw":
            raise Misconfigured("this is a raw record: it says what was decided, not what calls really cost")
        lines = numbered if kind == "rows" else chain([(number, first)], numbered)
        yield from exported.rows(lines) if kind == "rows" or self._kind == "export" else self._shaped(lines)

    def _csv(self, file: IO[bytes]) -> Iterator[Said]:
        text = (line.decode("utf-8-sig" if number == 0 else "utf-8") for number, line in enumerate(file))
        try:
            first = next(text, "")
            ours = first.startswith("# {")
            lines = csv.reader(text if ours else chain([first], text), strict=True)
            header = next(lines, [])
            records = _records(lines, header, more=1 if ours else 0)
            if ours or self._kind == "export":
                yield from exported.rows(records)
            elif not {plain.HOLD, "request_id"} & set(header) and self._hold_field is None:
                raise Misconfigured(
                    f"no column `{plain.HOLD}`: expected a header like hold,usd, a spend log of LiteLLM, or JSON lines"
                )
            else:
                yield from self._shaped(records)
        except (csv.Error, UnicodeDecodeError) as error:
            raise Misconfigured(f"the file cannot be read as CSV: {type(error).__name__}") from error

    def _shaped(self, lines: Iterable[tuple[int, Line | Unreadable]]) -> Iterator[Said]:
        for number, line in lines:
            if isinstance(line, Unreadable):
                yield line
                continue
            try:
                yield self._row(number, line)
            except RowError as error:
                yield Unreadable(number, error.field, str(error))

    def _row(self, number: int, line: Line) -> Row:
        """By its shape, unless the kind is said."""
        looking = self._kind == "auto"
        if self._kind == "rows" or (looking and plain.AMOUNTS in line and plain.is_plain(line)):
            return plain.row(number, line)
        if self._kind == "litellm" or (looking and litellm.is_spend(line)):
            return litellm.row(number, line, self._hold_field)
        if line.get("object") in _REPORTS:
            raise RowError("object", "a report by days names no calls; `[observers]` reads those")
        found = self._calls(number, line, self._kind)
        if found is not None:
            return found
        if looking and plain.is_plain(line):
            return plain.row(number, line)
        raise RowError("", "expected a row with a hold, a call with its usage, or a spend log")


# --- JSON -------------------------------------------------------------------------------------------------------------


def _objects(file: IO[bytes]) -> Iterator[tuple[int, Line | Unreadable]]:
    number = 0
    while line := file.readline(LINE_BYTES_MAX + 1):
        number += 1
        if len(line) > LINE_BYTES_MAX:
            yield number, Unreadable(number, "", f"a line has at most {LINE_BYTES_MAX:,} bytes")
            while line and not line.endswith(b"\n"):
                line = file.readline(LINE_BYTES_MAX)
        elif line.strip():
            yield number, _object(number, line)


def _object(number: int, line: bytes) -> Line | Unreadable:
    try:
        found = _decode(line)
    except RowError as error:
        return Unreadable(number, error.field, str(error))
    except (ValueError, RecursionError):
        return Unreadable(number, "", _NO_OBJECT)
    return found if isinstance(found, dict) else Unreadable(number, "", _NO_OBJECT)


def _listed(file: IO[bytes]) -> Iterator[tuple[int, Line | Unreadable]]:
    text = file.read(LIST_BYTES_MAX + 1)
    if len(text) > LIST_BYTES_MAX:
        raise Misconfigured(f"a JSON list has at most {LIST_BYTES_MAX:,} bytes; write one object a line instead")
    try:
        found = _decode(text)
    except (ValueError, RecursionError) as error:
        raise Misconfigured("the file begins like a JSON list and is none") from error
    for number, one in enumerate(found, start=1):
        yield number, one if isinstance(one, dict) else Unreadable(number, "", "expected a list of objects")


def _decode(text: bytes) -> Any:
    """Numbers exactly; a key given twice is an error, as everywhere."""
    return json.loads(text, parse_float=Decimal, parse_constant=_no_number, object_pairs_hook=_once)


def _no_number(_: str) -> None:
    raise RowError("", "NaN and Infinity are no numbers of JSON")


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise RowError("", "a key is given twice")
    return found


# --- CSV, Parquet -----------------------------------------------------------------------------------------------------


def _records(lines: Any, header: list[str], *, more: int) -> Iterator[tuple[int, Line | Unreadable]]:
    if len(set(header)) < len(header):
        raise Misconfigured("two columns have the same name")
    for cells in lines:
        number = lines.line_num + more
        if not cells:
            continue
        if len(cells) != len(header):
            yield number, Unreadable(number, "", f"expected {len(header)} cells, as in the header")
        else:
            yield number, dict(zip(header, cells, strict=True))


def _parquet(path: Path) -> Iterator[tuple[int, Line]]:
    if find_spec("duckdb") is None:
        raise Misconfigured(EXTRA)
    import duckdb

    try:
        with duckdb.connect(config={"autoinstall_known_extensions": False, "threads": 2}) as database:
            columns = ", ".join(f'"{name}"' for name in exported.NEEDED)
            found = database.execute(f"SELECT {columns} FROM read_parquet(?) ORDER BY seq, place", [str(path)])  # noqa: S608
            number = 0
            while cells := found.fetchmany(10_000):
                for one in cells:
                    number += 1
                    yield number, dict(zip(exported.NEEDED, one, strict=True))
    except duckdb.Error as error:
        raise Misconfigured("the file is no Parquet export of `purse export`") from error
