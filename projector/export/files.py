"""Rows into a file: JSONL and CSV as they come, Parquet with DuckDB (extra `audit`). Never holds more than one row.

Whatever the kind, the file says in UTC from when until when its rows are: JSONL and CSV in their first line, Parquet in
its metadata under `purse`. A file appears under its name only once it is whole.
"""

from __future__ import annotations

import csv
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from shutil import copyfileobj
from typing import IO, Literal, Protocol

import msgspec

from engine.errors import Misconfigured
from projector.export.rows import COLUMNS, Row

Format = Literal["parquet", "csv", "jsonl"]
FORMATS: tuple[Format, ...] = ("parquet", "csv", "jsonl")
EXTRA = "Parquet needs DuckDB: pip install 'commonpurse[audit]', or export to .csv or .jsonl"
COPY_BYTES = 1 << 20
PARQUET_MEMORY = "256MB"

_TYPES = {
    **dict.fromkeys(("seq", "told", "place", "at", "option", "tier", "expires_at"), "BIGINT"),
    **dict.fromkeys(("period_start", "period_end", "restarts", "scale"), "BIGINT"),
    **dict.fromkeys(("amount", "settled", "held", "extra", "used", "limit", "remaining"), "DECIMAL(38,0)"),
    "first": "BOOLEAN",
    "flags": "VARCHAR[]",
    "labels": "JSON",
}
"""Columns that are not text. Sums of amounts pass 64 bits before they pass 38 digits."""


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """What a file holds: the days as asked for, and [from, to) in UTC. `upto` is the last sequence that was read."""

    wallet: str
    days: str
    zone: str
    start: str = msgspec.field(name="from")
    end: str = msgspec.field(name="to")
    start_ns: int = msgspec.field(name="from_ns")
    end_ns: int = msgspec.field(name="to_ns")
    rows: int
    upto: int
    export: str = "rows"
    v: int = 1


class Sink(Protocol):
    """Where rows go."""

    def write(self, row: Row) -> None:
        """The next row."""

    def finish(self, bounds: Bounds, file: Path) -> None:
        """All rows are there: make the whole file."""


def format_of(out: Path) -> Format:
    """By the file's ending. Raises `Misconfigured`, also where what it needs is not installed."""
    ending = out.suffix.removeprefix(".").lower()
    for known in FORMATS:
        if ending == known:
            if known == "parquet" and find_spec("duckdb") is None:
                raise Misconfigured(EXTRA)
            return known
    raise Misconfigured("the file's name must end in .parquet, .csv or .jsonl")


@contextmanager
def whole(out: Path) -> Iterator[Path]:
    """A name beside `out` to write to. It becomes `out` at the end of the block, and is gone if that fails."""
    unfinished = out.with_name(f".{out.name}.{secrets.token_hex(4)}.unfinished")
    try:
        yield unfinished
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        unfinished.replace(out)
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def sink(out: Path) -> Iterator[Sink]:
    """A sink for rows that will become `out`. What it keeps meanwhile lies beside it. Raises as `format_of`."""
    kind = format_of(out)
    kept = out.with_name(f".{out.name}.{secrets.token_hex(4)}.rows")
    try:
        with kept.open("w+b") as file:
            yield _Csv(file) if kind == "csv" else _Lines(file, parquet=kind == "parquet")
    finally:
        kept.unlink(missing_ok=True)


class _Lines:
    """One JSON object a line; Parquet is made from these."""

    def __init__(self, file: IO[bytes], *, parquet: bool) -> None:
        self._file, self._parquet = file, parquet
        self._encode = msgspec.json.Encoder().encode

    def write(self, row: Row) -> None:
        self._file.write(self._encode(row) + b"\n")

    def finish(self, bounds: Bounds, file: Path) -> None:
        self._file.flush()
        if self._parquet:
            _to_parquet(Path(self._file.name), bounds, file)
        else:
            _behind(msgspec.json.encode(bounds) + b"\n", self._file, file)


class _Csv:
    """A line with `#` that states the bounds, the names of the columns, the rows. Lists and labels are JSON."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._writer = csv.writer(_Text(file), lineterminator="\n")
        self._writer.writerow(COLUMNS)

    def write(self, row: Row) -> None:
        self._writer.writerow([_cell(getattr(row, column)) for column in COLUMNS])

    def finish(self, bounds: Bounds, file: Path) -> None:
        self._file.flush()
        _behind(b"# " + msgspec.json.encode(bounds) + b"\n", self._file, file)


class _Text:
    """What a CSV writer writes to."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        return self._file.write(text.encode())


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return msgspec.json.encode(value).decode() if isinstance(value, list | dict) else value


def _behind(head: bytes, rows: IO[bytes], file: Path) -> None:
    rows.seek(0)
    with file.open("wb") as out:
        out.write(head)
        copyfileobj(rows, out, COPY_BYTES)


def _to_parquet(rows: Path, bounds: Bounds, file: Path) -> None:
    import duckdb

    columns = {column: _TYPES.get(column, "VARCHAR") for column in COLUMNS}
    read = f"SELECT * FROM read_json({_quoted(rows)}, format = 'newline_delimited', columns = {columns!r})"  # noqa: S608
    stated = f"{{purse: {_quoted(msgspec.json.encode(bounds).decode())}}}"
    with duckdb.connect(
        config={"memory_limit": PARQUET_MEMORY, "threads": 2, "autoinstall_known_extensions": False}
    ) as database:
        database.execute(f"COPY ({read}) TO {_quoted(file)} (FORMAT parquet, COMPRESSION zstd, KV_METADATA {stated})")


def _quoted(text: object) -> str:
    return "'" + str(text).replace("'", "''") + "'"
