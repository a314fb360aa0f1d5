"""What was decided as rows in a file: exact, in order, adding up to the wallet's totals, in all three formats alike."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest
from recorded_stories import projected, story
from records import recorded
from wallets import TODAY, Books, budget, moment

from engine.core.amounts import format_amount
from engine.core.limits import AMOUNT_MAX
from engine.core.messages import Settled
from engine.errors import Misconfigured, Untrusted
from engine.journal import Stored
from projector.day_range import DayError
from projector.export import files as export_files
from projector.export.files import EXTRA, Bounds
from projector.export.raw import export_raw
from projector.export.rows import COLUMNS
from projector.export.table import ALL, export
from projector.reading import CopySource

CENT = 10_000_000
NOW = moment("2026-12-01 12:00")
STORIES = 8
AMOUNTS = ("amount", "settled", "held", "extra", "used", "limit", "remaining")

Rows = list[dict[str, Any]]


async def written(stream: list[Stored], days: str, folder: Path) -> tuple[Bounds, Rows]:
    """What was said, and the rows of the JSONL."""
    out = folder / "export.jsonl"
    bounds = await export(CopySource(stream), days, out, now=NOW)
    head, *rows = [json.loads(line) for line in out.read_bytes().splitlines()]
    assert head == msgspec.to_builtins(bounds)
    assert len(rows) == bounds.rows
    assert files(folder) == [out.name], "nothing is left beside it"
    return bounds, rows


@pytest.fixture
def books() -> Books:
    books = Books(jev=budget("1.00", source="cloudflare"), user=budget("80 jpy", each="user")).at("09:00")
    books.hold("a", "0.40 usd + 30 jpy", user="alice", model="m1", price_book="book-1")
    books.settle("a", "0.25 usd + 30 jpy")
    books.hold("b", "0.90", user="bob")
    books.at("2026-12-01 08:00").hold("c", "0.10", user="alice")
    return books


# --- rows -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(STORIES))
async def test_rows_of_a_made_up_day_add_up_to_its_totals(seed: int, tmp_path: Path) -> None:
    stream = story(seed, steps=100)
    _, rows = await written(stream, ALL, tmp_path)
    sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for row in rows:
        if row["budget"] is not None:
            for place, figure in enumerate(("settled", "held", "extra")):
                sums[row["budget"], row["period"]][place] += row[figure]
    totals = {key: [total.settled, total.held, total.extra] for key, total in projected(stream).totals.items()}
    nothing = [0, 0, 0]
    assert {key: found for key, found in sums.items() if found != nothing} == {
        key: found for key, found in totals.items() if found != nothing
    }


@pytest.mark.parametrize("seed", range(STORIES))
async def test_rows_stand_in_the_records_order_one_first_row_an_outcome(seed: int, tmp_path: Path) -> None:
    stream = story(seed, steps=100)
    _, rows = await written(stream, ALL, tmp_path)
    order = [(row["seq"], row["place"]) for row in rows]
    assert order == sorted(set(order))
    told = [json.loads(stored.data)["told"] for stored in stream if stored.kind == "told"]
    outcomes = [out["outcome"] for entries in told for entry in entries for out in entry.get("out", ())]
    first = [row["outcome"] for row in rows if row["first"] and row["kind"] != "lapse"]
    assert sorted(first) == sorted(outcomes)
    lapsed = sum(len(entry.get("lapsed", ())) for entries in told for entry in entries)
    assert sum(row["first"] for row in rows if row["kind"] == "lapse") == lapsed


@pytest.mark.parametrize("seed", range(STORIES))
async def test_every_amount_has_its_exact_text_and_used_follows_from_the_changes(seed: int, tmp_path: Path) -> None:
    _, rows = await written(story(seed, steps=100), ALL, tmp_path)
    running: dict[tuple[Any, ...], int] = defaultdict(int)
    for row in rows:
        for name in AMOUNTS:
            if row[f"{name}_text"] is not None:
                assert row[f"{name}_text"] == format_amount(row[name], scale=row["scale"])
        if row["restarts"] is not None:
            meter = tuple(row[name] for name in ("budget", "each", "period", "restarts"))
            running[meter] += row["settled"] + row["held"] + row["extra"]
            assert row["used"] == running[meter]


async def test_a_row_says_what_was_granted_charged_and_left(books: Books, tmp_path: Path) -> None:
    _, rows = await written(recorded(books), TODAY, tmp_path)
    held, yen, settled, _, refused = rows[1:]
    assert (held["seq"], held["told"], held["place"], held["first"]) == (2, 6, 0, True)
    assert (held["kind"], held["outcome"], held["hold"], held["price_book"]) == ("hold", "held", "a", "book-1")
    assert (held["at"], held["at_utc"]) == (moment("09:00"), "2026-11-30T09:00:00.000000000Z")
    assert (held["amount_text"], held["held_text"], held["used_text"], held["remaining_text"]) == (
        "0.4",
        "0.4",
        "0.4",
        "0.6",
    )
    assert (yen["place"], yen["first"], yen["budget"], yen["each"], yen["unit"]) == (1, False, "user", "alice", "jpy")
    assert (settled["settled"], settled["held"], settled["state"]) == (25 * CENT, -40 * CENT, "settled")
    assert settled["labels"] == {"user": "alice", "model": "m1"}, "those of its hold"
    assert (refused["outcome"], refused["why"], refused["amount_text"], refused["remaining_text"]) == (
        "exhausted",
        "spent",
        "0.9",
        "0.75",
    )


async def test_a_charge_that_no_budget_counts_has_a_row_without_one(tmp_path: Path) -> None:
    books = Books().at("09:00")
    books.hold("a", "0.10 usd + 5 jpy")
    _, rows = await written(recorded(books), ALL, tmp_path)
    assert [(row["budget"], row["unit"], row["amount_text"]) for row in rows[1:]] == [
        ("jev", "usd", "0.1"),
        (None, "jpy", "5"),
    ]


async def test_an_ask_that_cannot_be_read_has_a_row(tmp_path: Path) -> None:
    books = Books().at("09:00")
    books.send_raw(b"not json")
    _, rows = await written(recorded(books), ALL, tmp_path)
    assert [(row["kind"], row["outcome"]) for row in rows[1:]] == [("message", "invalid")]


# --- days -------------------------------------------------------------------------------------------------------------


async def test_a_day_is_the_wallets_and_its_bounds_are_stated_in_utc(books: Books, tmp_path: Path) -> None:
    bounds, rows = await written(recorded(books), "yesterday", tmp_path)
    assert (bounds.days, bounds.zone, bounds.upto) == (TODAY, "UTC", 4)
    assert (bounds.start, bounds.end) == ("2026-11-30T00:00:00.000000000Z", "2026-12-01T00:00:00.000000000Z")
    assert (bounds.start_ns, bounds.end_ns) == (moment("00:00"), moment("2026-12-01 00:00"))
    assert {row["seq"] for row in rows} == {1, 2, 3, 4}
    bounds, rows = await written(recorded(books), "today", tmp_path)
    assert {row["seq"] for row in rows} == {5}


async def test_a_day_in_another_zone_begins_at_its_own_midnight(books: Books, tmp_path: Path) -> None:
    books.apply(msgspec.structs.replace(books.plan, zone="Asia/Tokyo"))
    books.at("2026-12-01 14:59").hold("d", "0.10")
    books.at("2026-12-01 15:00").hold("e", "0.10")
    bounds, rows = await written(recorded(books), "2026-12-02", tmp_path)
    assert (bounds.zone, bounds.start) == ("Asia/Tokyo", "2026-12-01T15:00:00.000000000Z")
    assert {row["id"] for row in rows} == {"e"}


async def test_days_together_are_what_they_are_one_by_one(books: Books, tmp_path: Path) -> None:
    stream = recorded(books)
    _, both = await written(stream, "2026-11-30..2026-12-01", tmp_path)
    parts = [row for day in ("2026-11-30", "2026-12-01") for row in (await written(stream, day, tmp_path))[1]]
    assert both == parts == (await written(stream, ALL, tmp_path))[1]


async def test_a_day_on_which_nothing_was_decided_is_an_empty_file_with_its_bounds(
    books: Books, tmp_path: Path
) -> None:
    bounds, rows = await written(recorded(books), "2026-11-29", tmp_path)
    assert (bounds.rows, rows, bounds.end) == (0, [], "2026-11-30T00:00:00.000000000Z")


@pytest.mark.parametrize("days", ["", "noday", "2026-02-30", "2026-12-01..2026-11-30"])
async def test_what_is_no_day_leaves_no_file(books: Books, days: str, tmp_path: Path) -> None:
    with pytest.raises(DayError):
        await export(CopySource(recorded(books)), days, tmp_path / "export.csv", now=NOW)
    assert files(tmp_path) == []


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
async def test_all_formats_say_the_same(seed: int, tmp_path: Path) -> None:
    stream = story(seed, steps=80)
    for ending in ("parquet", "csv", "jsonl"):
        await export(CopySource(stream), ALL, tmp_path / f"export.{ending}", now=NOW)
    lines = [json.loads(line) for line in (tmp_path / "export.jsonl").read_bytes().splitlines()[1:]]
    found = duckdb.execute(f"SELECT * FROM '{tmp_path}/export.parquet'")
    columns = tuple(column[0] for column in found.description)
    parquet = [dict(zip(columns, row, strict=True)) for row in found.fetchall()]
    assert columns == COLUMNS
    assert [{**row, "labels": json.loads(row["labels"])} for row in parquet] == lines
    head, text = (tmp_path / "export.csv").read_text().split("\n", 1)
    assert json.loads(head.removeprefix("# "))["rows"] == len(lines)
    read = list(csv.DictReader(io.StringIO(text)))
    assert len(read) == len(lines)
    for cells, line in zip(read, lines, strict=True):
        assert cells == {name: cell(line[name]) for name in COLUMNS}


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def cell(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        return msgspec.json.encode(value).decode()
    return "" if value is None else str(value)


async def test_parquet_states_its_bounds_in_its_metadata(books: Books, tmp_path: Path) -> None:
    out = tmp_path / "day.parquet"
    bounds = await export(CopySource(recorded(books)), TODAY, out, now=NOW)
    [(_, key, value)] = duckdb.execute(f"SELECT * FROM parquet_kv_metadata('{out}')").fetchall()
    assert (key, json.loads(value)) == (b"purse", msgspec.to_builtins(bounds))


async def test_amounts_past_64_bits_are_exact_in_every_format(tmp_path: Path) -> None:
    books = Books(jev=budget("1.00")).at("09:00")
    for name in ("a", "b", "c"):
        books.settle(name, {"usd": AMOUNT_MAX})
    for ending in ("parquet", "jsonl", "csv"):
        out = tmp_path / f"export.{ending}"
        await export(CopySource(recorded(books)), ALL, out, now=NOW)
    used = duckdb.execute(f"SELECT max(used), sum(settled) FROM '{tmp_path}/export.parquet'").fetchone()
    assert used == (3 * AMOUNT_MAX, 3 * AMOUNT_MAX)
    for ending in ("jsonl", "csv"):
        assert str(3 * AMOUNT_MAX) in (tmp_path / f"export.{ending}").read_text()


async def test_names_with_quotes_and_commas_come_through(tmp_path: Path) -> None:
    books = Books(user=budget("1.00", each="user")).at("09:00")
    name = 'O\'Neil, "the" ; # \u202e\u00e9'
    name = "".join(each for each in name if each.isprintable())
    books.hold("a", "0.10", user=name)
    for ending in ("parquet", "csv"):
        await export(CopySource(recorded(books)), ALL, tmp_path / f"it's.{ending}", now=NOW)
    quoted = str(tmp_path / "it's.parquet").replace("'", "''")
    found = duckdb.execute(f"SELECT each, labels ->> 'user' FROM '{quoted}' WHERE id = 'a'").fetchone()
    assert found == (name, name)
    read = list(csv.DictReader(io.StringIO((tmp_path / "it's.csv").read_text().split("\n", 1)[1])))
    assert read[-1]["each"] == name


async def test_without_the_extra_parquet_is_refused_with_a_clear_sentence(
    books: Books, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_files, "find_spec", lambda name: None)
    with pytest.raises(Misconfigured, match=r"commonpurse\[audit\]") as caught:
        await export(CopySource(recorded(books)), TODAY, tmp_path / "day.parquet", now=NOW)
    assert str(caught.value) == EXTRA
    await export(CopySource(recorded(books)), TODAY, tmp_path / "day.csv", now=NOW)
    assert files(tmp_path) == ["day.csv"]


async def test_another_ending_is_refused(books: Books, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="must end in"):
        await export(CopySource(recorded(books)), TODAY, tmp_path / "day.xlsx", now=NOW)


async def test_a_record_that_contradicts_itself_leaves_the_file_that_was_there(books: Books, tmp_path: Path) -> None:
    out = tmp_path / "day.csv"
    out.write_text("the one before")
    stream = recorded(books)
    del stream[1]
    with pytest.raises(Untrusted):
        await export(CopySource(stream), TODAY, out, now=NOW)
    assert (files(tmp_path), out.read_text()) == (["day.csv"], "the one before")


async def test_words_that_cannot_be_with_a_right_chain_are_not_trusted(books: Books, tmp_path: Path) -> None:
    books.settle("nobody", "0.10")
    entries = [*books.entries[:-1], msgspec.structs.replace(books.entries[-1], out=[Settled("nobody", "settled", {})])]
    with pytest.raises(Untrusted, match="cannot have happened"):
        await export(CopySource(recorded(books, entries=entries)), ALL, tmp_path / "day.csv", now=NOW)


# --- the raw record ---------------------------------------------------------------------------------------------------


async def test_the_raw_record_is_the_stream_to_the_byte(books: Books, tmp_path: Path) -> None:
    books.send_raw(b"\xff\xfe no text")
    books.send_raw('{"v":1,"asks":[],"from":"\u2028 é"}'.encode())
    stream = recorded(books)
    stream[1] = msgspec.structs.replace(stream[1], seen="1 ab")
    out = tmp_path / "record.jsonl"
    bounds = await export_raw(CopySource(stream), out)
    head, *lines = out.read_bytes().splitlines()
    assert json.loads(head) == msgspec.to_builtins(bounds)
    assert (bounds.first_seq, bounds.last_seq, bounds.start) == (1, len(stream), "2026-11-30T00:00:00.000000000Z")
    assert [back(json.loads(line)) for line in lines] == stream


def back(line: dict[str, Any]) -> Stored:
    data = line["data"].encode() if "data" in line else base64.b64decode(line["base64"])
    return Stored(line["seq"], line["ts"], line["kind"], data, line.get("seen", ""))


async def test_a_void_told_is_written_as_the_told_it_is(books: Books, tmp_path: Path) -> None:
    stream = recorded(books)
    stream[-1] = msgspec.structs.replace(stream[-1], kind="void")
    out = tmp_path / "record.jsonl"
    await export_raw(CopySource(stream), out)
    assert json.loads(out.read_bytes().splitlines()[-1])["kind"] == "told"


async def test_an_empty_stream_is_an_empty_record(tmp_path: Path) -> None:
    bounds = await export_raw(CopySource([]), tmp_path / "record.jsonl")
    assert (bounds.first_seq, bounds.last_seq) == (0, 0)
