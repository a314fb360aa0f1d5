"""Every kind of file that says what calls really cost: found by looking, read exactly, never repeated in an error."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from records import recorded
from wallets import Books, moment

from commonpurse.call_logs import CallReader
from engine.errors import Misconfigured
from engine.prices.book import load_book, shipped_book
from projector.backfill.reading import FileReader, Format
from projector.backfill.rows import Row, Said, Unreadable
from projector.export.table import export
from projector.reading import CopySource

AT = moment("14:05")
SECRET = "hunter2-secret"

CHAT = {
    "id": "chatcmpl-1", "object": "chat.completion", "created": AT // 10**9, "model": "gpt-4o-mini-2024-07-18",
    "usage": {"prompt_tokens": 1_000, "completion_tokens": 500, "total_tokens": 1_500,
              "prompt_tokens_details": {"cached_tokens": 400}},
}  # fmt: skip
CHAT_COST = {"usd": "0.00042"}  # 600 at 0.15, 400 at 0.075, 500 at 0.60 dollars a million
MESSAGE = {
    "id": "msg_1", "type": "message", "model": "claude-3-5-haiku-20241022",
    "usage": {"input_tokens": 1_000, "output_tokens": 500, "cache_creation_input_tokens": 0},
}  # fmt: skip
MESSAGE_COST = {"usd": "0.0028"}  # 0.80 and 4 dollars a million
BESIDE = {"tokens": "1500", "requests": "1"}


def read(path: Path, *, kind: Format = "auto", hold_field: str | None = None) -> list[Said]:
    calls = CallReader(shipped_book(), hold_field=hold_field)
    return list(FileReader(calls, kind=kind, hold_field=hold_field).read(path))


def read_text(tmp_path: Path, text: str, **options: Any) -> list[Said]:
    path = tmp_path / "costs"
    path.write_text(text, encoding="utf-8")
    return read(path, **options)


def read_lines(tmp_path: Path, *lines: object, **options: Any) -> list[Said]:
    return read_text(tmp_path, "".join(f"{json.dumps(line)}\n" for line in lines), **options)


def only(said: list[Said]) -> Row:
    [row] = said
    assert isinstance(row, Row), row
    return row


# --- plain rows -------------------------------------------------------------------------------------------------------


def test_a_drives_log_is_two_columns(tmp_path: Path) -> None:
    assert read_text(tmp_path, "hold,usd\ndrive:r:1,0.000100\n\ndrive:r:2,12\n") == [
        Row(2, "drive:r:1", {"usd": "0.0001"}),
        Row(4, "drive:r:2", {"usd": "12"}),
    ]


def test_a_csv_may_say_more_in_any_order(tmp_path: Path) -> None:
    header = "note,usd,at,label.provider,hold,neurons"
    said = read_text(tmp_path, f"\ufeff{header}\nlost,0.10,2026-11-30T15:05:00+01:00,jev,a,\n")
    assert said == [Row(2, "a", {"usd": "0.1"}, AT, {"provider": "jev"})]


@pytest.mark.parametrize(
    "line",
    [
        {"hold": "a", "amounts": {"usd": "0.10", "neurons": 5}, "at": "2026-11-30T14:05:00Z", "labels": {"user": "x"}},
        {"hold": "a", "usd": 0.1, "neurons": "5", "at": AT, "label.user": "x", "note": "by hand"},
    ],
)
def test_json_lines_say_the_same_nested_or_flat(tmp_path: Path, line: object) -> None:
    assert read_lines(tmp_path, line) == [Row(1, "a", {"usd": "0.1", "neurons": "5"}, AT, {"user": "x"})]


def test_a_json_list_is_read_as_its_objects(tmp_path: Path) -> None:
    said = read_text(tmp_path, json.dumps([{"hold": "a", "usd": "1"}, 7]))
    assert said == [Row(1, "a", {"usd": "1"}), Unreadable(2, "", "expected a list of objects")]


def test_json_lines_may_begin_with_a_mark_or_with_what_is_none(tmp_path: Path) -> None:
    assert only(read_text(tmp_path, '\ufeff{"hold": "a", "usd": "1"}\n')).hold == "a"
    bad, row = read_text(tmp_path, "started\n" + json.dumps({"hold": "a", **CHAT}), kind="openai")
    assert (type(bad), type(row)) == (Unreadable, Row)


@pytest.mark.parametrize(
    ("line", "field", "why"),
    [
        ('{"hold": "a", "usd": "-1"}', "usd", "plain digits"),
        ('{"hold": "a", "usd": "hunter2-secret"}', "usd", "plain digits"),
        ('{"hold": "a", "usd": true}', "usd", "decimal string"),
        ('{"hold": "a", "usd": NaN}', "", "NaN"),
        ('{"hold": "a", "usd": 1, "usd": 2}', "", "twice"),
        ('{"hold": 5, "usd": "1"}', "hold", "id of a hold"),
        ('{"hold": "' + SECRET * 7 + '"}', "hold", "96"),
        ('{"hold": "a", "usd": "1", "at": "hunter2-secret"}', "at", "offset"),
        ('{"hold": "a", "usd": "1", "at": "2026-11-30T14:05:00"}', "at", "offset"),
        ('{"hold": "a", "usd": "1", "at": -5}', "at", "1970"),
        ('{"hold": "a", "amounts": "hunter2-secret"}', "amounts", "object"),
        ('{"hold": "a", "amounts": {"usd": "1"}, "labels": {"user": 5}}', "labels", "texts"),
        ('{"hold": "a", "amounts": {"usd": "1"}, "labels": {"hunter2-secret!": "x"}}', "labels", "name"),
        ("hunter2-secret", "", "JSON object"),
        ("[" * 100_000, "", "JSON object"),
        ('{"what": "hunter2-secret"}', "", "expected a row"),
        ('{"object": "page", "data": []}', "object", "names no calls"),
    ],
)  # fmt: skip
def test_a_line_that_cannot_be_used_is_named_and_never_shown(tmp_path: Path, line: str, field: str, why: str) -> None:
    first, bad = read_text(tmp_path, f'{{"hold": "good", "usd": "1"}}\n{line}\n')
    assert first == Row(1, "good", {"usd": "1"})
    assert isinstance(bad, Unreadable)
    assert (bad.line, bad.field) == (2, field)
    assert why in bad.why
    assert SECRET not in str(bad)


def test_a_line_has_a_limit_and_the_next_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("projector.backfill.reading.LINE_BYTES_MAX", 30)
    said = read_text(tmp_path, '{"hold": "a", "usd": "1"}\n{"hold": "' + "b" * 200 + '"}\n{"hold": "c", "usd": "1"}\n')
    assert [type(one) for one in said] == [Row, Unreadable, Row]


@pytest.mark.parametrize(
    "text",
    [
        "hunter2-secret,usd\na,1\n",
        "hold,usd,usd\na,1,1\n",
        "[1, 2",
        '{"export": "raw", "v": 1}\n',
        'hold,usd\n"a\n',
        "",
    ],
)
def test_a_file_that_is_none_is_refused_as_a_whole(tmp_path: Path, text: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        read_text(tmp_path, text)
    assert SECRET not in str(refused.value)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "costs").write_bytes(b"hold,usd\n\xff\xfe,1\n")
    with pytest.raises(Misconfigured, match="CSV"):
        read(tmp_path / "costs")


def test_a_csv_row_with_too_many_cells_is_named(tmp_path: Path) -> None:
    assert read_text(tmp_path, "hold,usd\na,1,hunter2-secret\n") == [
        Unreadable(2, "", "expected 2 cells, as in the header")
    ]


# --- calls of providers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        {**CHAT, "metadata": {"purse_hold": "a"}},
        {"x-purse-hold": "a", "response": CHAT},
        {"headers": {"X-Purse-Hold": "a"}, "body": CHAT},
        {"response": {"headers": {"x-purse-hold": "a"}, "body": CHAT}},
        {"hold": "a", **CHAT},
    ],
)
def test_an_answer_of_openai_is_priced_from_its_usage_wherever_it_names_its_hold(tmp_path: Path, line: object) -> None:
    assert only(read_lines(tmp_path, line)) == Row(1, "a", CHAT_COST, AT, beside=BESIDE, by_price=True)


@pytest.mark.parametrize("line", [{"hold": "a", **MESSAGE}, {"headers": {"x-purse-hold": "a"}, "message": MESSAGE}])
def test_an_answer_of_anthropic_is_priced_from_its_usage(tmp_path: Path, line: object) -> None:
    assert only(read_lines(tmp_path, line)) == Row(1, "a", MESSAGE_COST, beside=BESIDE, by_price=True)


def test_an_answer_of_the_responses_api_is_priced_too(tmp_path: Path) -> None:
    usage = {
        "input_tokens": 1_000,
        "output_tokens": 500,
        "total_tokens": 1_500,
        "input_tokens_details": {"cached_tokens": 400},
    }
    line = {"hold": "a", "object": "response", "model": "gpt-4o-mini", "created_at": AT // 10**9, "usage": usage}
    assert only(read_lines(tmp_path, line)) == Row(1, "a", CHAT_COST, AT, beside=BESIDE, by_price=True)


def test_the_result_of_a_batch_job_has_the_prices_of_batches(tmp_path: Path) -> None:
    line = {"id": "b", "custom_id": "a", "response": {"status_code": 200, "body": CHAT}}
    row = only(read_lines(tmp_path, line, hold_field="custom_id"))
    assert float(row.said["usd"]) < float(CHAT_COST["usd"])


def test_a_hold_is_named_where_it_is_said_to_be(tmp_path: Path) -> None:
    line = {**CHAT, "metadata": {"call": "a"}, "hold": "another"}
    assert only(read_lines(tmp_path, line, hold_field="metadata.call")).hold == "a"


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (CHAT, "x-purse-hold"),
        ({**CHAT, "hold": "a", "model": "nobody-has-heard-of-it"}, "model"),
        ({**CHAT, "hold": "a", "model": None}, "model"),
        ({**CHAT, "hold": "a", "service_tier": "hunter2-secret"}, "service_tier"),
        ({**CHAT, "hold": "a", "usage": {"prompt_tokens": -1, "completion_tokens": 5}}, "usage"),
        ({**MESSAGE, "hold": "a", "usage": {"input_tokens": 5}}, "usage"),
        ({**MESSAGE, "hold": "a", "usage": {"cache_creation_input_tokens": 5}}, "usage.output_tokens"),
    ],
)  # fmt: skip
def test_a_call_that_cannot_be_priced_is_no_row(tmp_path: Path, line: dict[str, object], field: str) -> None:
    [bad] = read_lines(tmp_path, {**line, "type": "message"} if "output" in field else line)
    assert isinstance(bad, Unreadable), bad
    assert bad.field.startswith(field)
    assert SECRET not in bad.why


def test_a_ceiling_is_no_price_of_what_a_call_did_cost(tmp_path: Path) -> None:
    ceiling = {"ceiling": {"input_usd_per_mtok": "1", "output_usd_per_mtok": "1"}}
    path = tmp_path / "costs"
    path.write_text(json.dumps({**CHAT, "hold": "a", "model": "nobody-has-heard-of-it"}))
    [bad] = FileReader(CallReader(load_book(ceiling))).read(path)
    assert isinstance(bad, Unreadable)


def test_what_is_said_of_the_kind_wins(tmp_path: Path) -> None:
    [bad] = read_lines(tmp_path, {"hold": "a", "usd": "1"}, kind="openai")
    assert isinstance(bad, Unreadable)
    row = only(read_lines(tmp_path, {"hold": "a", "amounts": {"usd": "1"}, "spend": "2"}, kind="rows"))
    assert row.said == {"usd": "1"}


# --- LiteLLM ----------------------------------------------------------------------------------------------------------

SPEND = {
    "request_id": "chatcmpl-1", "call_type": "acompletion", "model": "gpt-4o-mini", "spend": 0.00012300000000000001,
    "startTime": "2026-11-30 14:05:00", "endTime": "2026-11-30 14:05:09",
    "metadata": {"spend_logs_metadata": {"purse_hold": "a"}}, "total_tokens": 1_500,
}  # fmt: skip


def test_a_spend_log_says_its_cost_itself_and_a_floats_dust_is_no_money(tmp_path: Path) -> None:
    assert only(read_lines(tmp_path, SPEND)) == Row(1, "a", {"usd": "0.000123"}, AT, beside=BESIDE)


def test_a_spend_log_in_csv_has_its_metadata_as_json(tmp_path: Path) -> None:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(SPEND)
    writer.writerow([json.dumps(value) if isinstance(value, dict) else value for value in SPEND.values()])
    assert only(read_text(tmp_path, text.getvalue())) == Row(2, "a", {"usd": "0.000123"}, AT, beside=BESIDE)


def test_a_request_id_is_a_hold_only_where_that_is_said(tmp_path: Path) -> None:
    line = {**SPEND, "metadata": {}}
    [bad] = read_lines(tmp_path, line)
    assert isinstance(bad, Unreadable)
    assert only(read_lines(tmp_path, line, hold_field="request_id")).hold == "chatcmpl-1"


@pytest.mark.parametrize(
    ("spend", "cost"),
    [
        ("1e-10", "0.000000001"),
        (0, "0"),
        ("0.0", "0"),
        ("0.0000000014", "0.000000002"),
        (3, "3"),
        ("1e-999999", "0.000000001"),
    ],
)
def test_a_spend_is_rounded_up_to_the_nano_dollar(tmp_path: Path, spend: object, cost: str) -> None:
    assert only(read_lines(tmp_path, {**SPEND, "spend": spend})).said == {"usd": cost}


@pytest.mark.parametrize("spend", [-1, "NaN", None, True, "hunter2-secret", "1e999999999"])
def test_a_spend_that_is_no_amount_is_no_row(tmp_path: Path, spend: object) -> None:
    [bad] = read_lines(tmp_path, {**SPEND, "spend": spend})
    assert (isinstance(bad, Unreadable) and bad.field) == "spend"


# --- our own export ---------------------------------------------------------------------------------------------------


def exported(tmp_path: Path, ending: str) -> Path:
    books = Books(twice=False).at("09:00")
    books.hold("a", "0.40", user="alice")
    books.settle("a", "0.25 + 7 neurons")
    books.hold("b", "0.10")
    books.estimate("b", "0.05")
    books.settle("b", "0.06")
    books.hold("guessed", "0.10")
    books.estimate("guessed", "0.05")
    books.hold("open", "0.10")
    books.settle("nobody", "0.01", held_at="08:00", provider="jev")
    out = tmp_path / f"day.{ending}"
    asyncio.run(export(CopySource(recorded(books)), "all", out, now=books.ts))
    return out


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_our_own_export_says_what_was_settled_exactly_and_nothing_else(tmp_path: Path, ending: str) -> None:
    if ending == "parquet":
        pytest.importorskip("duckdb")
    found = {row.hold: row for row in read(exported(tmp_path, ending)) if isinstance(row, Row)}
    assert {hold: row.said for hold, row in found.items()} == {
        "a": {"usd": "0.25", "neurons": "7"},
        "b": {"usd": "0.06"},
        "nobody": {"usd": "0.01"},
    }
    assert (found["a"].at, found["a"].labels) == (moment("09:00"), {"user": "alice"})
    assert found["nobody"].labels == {"provider": "jev"}


def test_an_export_that_was_cut_is_named_where_it_breaks(tmp_path: Path) -> None:
    out = exported(tmp_path, "jsonl")
    lines = out.read_text().splitlines()
    out.write_text("\n".join([*lines[:3], lines[3][:40]]))
    said = read(out)
    assert [type(one) for one in said].count(Unreadable) == 1
