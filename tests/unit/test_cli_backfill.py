"""`purse backfill` and `purse orphans` on a raw export: what is printed, and how they end."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import msgspec
import pytest
from click.testing import Result
from command_line import clean_environment, run
from recorded_stories import write_raw
from records import recorded
from wallets import Books, budget

from projector.export.raw import RawBounds

__all__ = ["clean_environment"]  # fixtures


def record_of(books: Books) -> str:
    stream = recorded(books)
    lines = write_raw(stream, Path("lines")).read_bytes()
    bounds = RawBounds(wallet="main", first_seq=1, last_seq=stream[-1].seq, start="", end="")
    Path("record.jsonl").write_bytes(msgspec.json.encode(bounds) + b"\n" + lines)
    return "record.jsonl"


def broken_day() -> str:
    """One hold is open, one has lapsed, one was estimated, one was settled, one settlement came after the memory."""
    books = Books(jev=budget("10"), user=budget("5", each="user"), remember_s=3_600, twice=False).at("09:00")
    books.hold("long-lapsed", "0.40", ttl_s=60, user="alice")
    books.at("09:05").tick()
    books.at("10:55").hold("open", "0.30", ttl_s=3_600)
    books.hold("guessed", "0.20")
    books.estimate("guessed", "0.15")
    books.hold("done", "0.10")
    books.settle("done", "0.05")
    books.settle("too-late", "0.07", held_at="09:30")
    books.at("11:10").tick()
    return record_of(books)


def backfill(text: str, *arguments: str, record: str | None = None) -> Result:
    Path("costs.csv").write_text(text)
    return run("backfill", "costs.csv", "--record", record or broken_day(), *arguments)


# --- backfill ---------------------------------------------------------------------------------------------------------


def test_a_dry_run_says_what_it_would_do_with_each_row_and_changes_nothing() -> None:
    rows = "hold,usd\nopen,0.1\nguessed,0.1\nlong-lapsed,0.1\ndone,0.05\nnobody,0.01\nopen,0.1\n"
    result = backfill(rows)
    assert result.exit_code == 0
    assert [line for line in result.stdout.splitlines() if not line.startswith("           ")] == [
        "        1  settles an open hold",
        "        1  corrects a lapse or an estimate",
        "        1  adjusts what the wallet has forgotten",
        "        1  charges a call nobody held",
        "        1  is there already",
        "        1  rows say what an earlier row says, and count once",
        "4 new, 1 already there, 0 conflicts. Nothing was changed: --apply does it.",
    ]
    assert "line 3  guessed 0.1 usd, charged 0.15 usd so far" in result.stdout


def test_a_conflict_ends_with_3_and_both_sums_are_shown() -> None:
    result = backfill("hold,usd\ndone,0.06\n")
    assert result.exit_code == 3
    assert "line 2  done 0.06 usd, charged 0.05 usd so far: it was settled at another exact cost" in result.stdout
    assert "0 new, 0 already there, 1 conflicts" in result.stdout


def test_what_cannot_be_used_ends_with_3_too() -> None:
    result = backfill("hold,usd,euro\nopen,x,\nopen,,1\n")
    assert result.exit_code == 3
    assert "line 2: usd: expected plain digits" in result.stdout
    assert "line 3  open 1 euro: this wallet knows jpy, neurons, requests, tokens, usd" in result.stdout
    assert "0 new, 0 already there, 0 conflicts, 2 not usable" in result.stdout


def test_json_has_every_row_and_what_is_sent_for_it() -> None:
    rows = "hold,usd\n" + "".join(f"n{number},0.01\n" for number in range(20)) + "long-lapsed,0.1\n"
    said = json.loads(backfill(rows, "--json").stdout)
    assert (said["applied"], said["counts"]["stray"], said["counts"]["beyond"]) == (False, 20, 1)
    assert len(said["rows"]) == 21
    assert {(ask["budget"], ask.get("each"), ask["amount"]) for ask in said["rows"][-1]["asks"]} == {
        ("jev", None, -300_000_000),
        ("user", "alice", -300_000_000),
    }


def test_only_the_first_rows_of_each_kind_are_shown() -> None:
    rows = "hold,usd\n" + "".join(f"n{number},0.01\n" for number in range(9))
    assert "and 4 more (--rows shows more, --json all)" in backfill(rows).stdout
    assert "more" not in backfill(rows, "--rows", "9").stdout


def test_strays_may_be_left_out() -> None:
    said = json.loads(backfill("hold,usd\nnobody,0.01\nopen,0.1\n", "--no-strays", "--json").stdout)
    assert (said["counts"]["stray"], said["counts"]["new"]) == (0, 1)


def test_the_price_book_is_named_where_usage_was_priced() -> None:
    call = {"model": "gpt-4o-mini", "usage": {"prompt_tokens": 1_000, "completion_tokens": 0, "total_tokens": 1_000}}
    result = backfill(json.dumps({"hold": "open", **call}) + "\n")
    assert "1 rows were priced from their usage with price book " in result.stdout
    assert "line 1  open 0.00015 usd" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--apply",), 2, "--apply needs the wallet itself"),
        (("--format", "nonsense"), 2, "nonsense"),
        (("--price-book", "nowhere"), 1, "price book"),
    ],
)
def test_what_cannot_be_done_is_said(arguments: tuple[str, ...], code: int, said: str) -> None:
    result = backfill("hold,usd\nopen,0.1\n", *arguments)
    assert result.exit_code == code
    assert said in result.stderr


def test_a_file_that_is_none_ends_with_1() -> None:
    result = backfill("what,ever\n1,2\n")
    assert result.exit_code == 1
    assert "no column `hold`" in result.stderr


def test_a_folder_without_a_store_ends_with_1() -> None:
    Path("costs.csv").write_text("hold,usd\nopen,0.1\n")
    result = run("backfill", "costs.csv", "--apply")
    assert (result.exit_code, "there is no store" in result.stderr) == (1, True)


# --- orphans ----------------------------------------------------------------------------------------------------------


def test_the_orphans_stand_oldest_first_with_what_is_at_stake() -> None:
    result = run("orphans", "--record", broken_day())
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert [line.split()[1:3] for line in lines[:4]] == [
        ["lapsed", "long-lapsed"],
        ["forgotten", "too-late"],
        ["estimated", "guessed"],
        ["open", "open"],
    ]
    assert "takes 0.4 usd  in jev of 2026-11-30, user of 2026-11-30" in lines[0]
    assert "said to have cost 0.07 usd" in lines[1]
    assert lines[4:] == [
        "at stake in jev: 0.85 usd",
        "at stake in user: 0.4 usd",
        "4 calls have no real cost. --csv prints the file to fill in for `purse backfill`.",
    ]


def test_a_young_open_hold_is_no_orphan_yet() -> None:
    said = json.loads(run("orphans", "--record", broken_day(), "--json", "--older-than", "1200").stdout)
    assert [one["hold"] for one in said["orphans"]] == ["long-lapsed", "too-late", "guessed"]


def test_the_csv_of_orphans_is_what_a_backfill_takes() -> None:
    record = broken_day()
    text = run("orphans", "--record", record, "--csv").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(row["hold"], row["usd"]) for row in rows] == [
        ("long-lapsed", ""),
        ("too-late", "0.07"),
        ("guessed", ""),
        ("open", ""),
    ]
    said = json.loads(backfill(text, "--json", record=record).stdout)
    assert (said["counts"]["blank"], said["counts"]["beyond"], said["counts"]["unreadable"]) == (3, 1, 0)
    filled = text.replace("open,2026-11-30T10:55:00Z,", "open,2026-11-30T10:55:00Z,0.01")
    said = json.loads(backfill(filled, "--json", record=record).stdout)
    assert (said["counts"]["blank"], said["counts"]["new"]) == (2, 1)


def test_a_late_settlement_of_a_call_that_has_its_cost_is_no_orphan() -> None:
    books = Books(remember_s=3_600, twice=False).at("09:00")
    books.hold("a", "0.40")
    books.settle("a", "0.10")
    books.at("12:00").settle("a", "0.10", held_at="09:00")
    result = run("orphans", "--record", record_of(books))
    assert result.stdout.splitlines() == ["0 calls have no real cost."]
