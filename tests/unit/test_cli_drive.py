"""`purse drive`: exact sums whatever breaks on the way, against the small fake of the API."""

from __future__ import annotations

import asyncio
import csv
import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from click.testing import Result
from fake_api import KEY, Call, FakeApi, fake_api

from commonpurse.drive import Drive, Load, Patience, Tally
from commonpurse.http import Api
from commonpurse.summary import report_lines
from commonpurse.trace import Prices, Row, Trace, TraceError
from engine.core.amounts import AmountError

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens"
ROWS = [(374, 44), (396, 109), (879, 55), (91, 16), (1, 1)]
REAL = sum(tokens_in * 150 + tokens_out * 600 for tokens_in, tokens_out in ROWS)
QUICK = Patience(hold_s=60, first_pause_s=0.0001, longest_pause_s=0.001)
PRICES = Prices.of(input_usd_per_mtok="0.15", output_usd_per_mtok="0.60", output_cap=1024)


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with fake_api() as running:
        yield running


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """As Azure writes it: CRLF between lines, none at the end, seven digits."""
    lines = [f"2023-11-16 18:15:4{second}.6805900,{row[0]},{row[1]}" for second, row in enumerate(ROWS)]
    path = tmp_path / "trace.csv"
    path.write_bytes("\r\n".join([HEADER, *lines]).encode())
    return path


def drive(api: FakeApi, trace: Path, *options: str) -> Result:
    return api.ask("--json", "drive", str(trace), "--run", "r", *options)


async def quick(api: FakeApi, trace: Path, *, patience: Patience = QUICK, batch: int = 1, run: str = "r") -> Tally:
    load = Load(run, PRICES, concurrency=4, batch=batch, patience=patience)
    async with Api.open(api.url, KEY, connections=4) as wallet:
        running = Drive(wallet, Trace(trace), load)
        await running.run()
    return running.tally


# --- sums -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", ["1", "2", "100"])
def test_every_row_is_held_at_its_worst_and_settled_at_its_real_cost(api: FakeApi, trace: Path, batch: str) -> None:
    result = drive(api, trace, "--batch", batch, "--label", "provider=jev")
    told = json.loads(result.stdout)
    assert result.exit_code == 0
    assert (told["rows"], told["held"], told["exact"]) == (5, 5, True)
    assert told["trace"] == told["settled"] == "0.00039615"
    assert api.settled == REAL == 396_150
    assert api.calls["drive:r:1"].fields == {
        "id": "drive:r:1", "amounts": {"usd": "0.0006705"}, "labels": {"provider": "jev"},
    }  # fmt: skip


def test_an_answer_longer_than_the_cap_is_an_overrun_charged_in_full(api: FakeApi, trace: Path) -> None:
    told = json.loads(drive(api, trace, "--output-cap", "50").stdout)
    assert (told["overruns"], told["exact"]) == (2, True)
    assert api.settled == REAL


def test_refused_calls_are_counted_by_why_and_cost_nothing(api: FakeApi, trace: Path) -> None:
    api.limit = 1_000_000
    api.calls["other"] = Call({}, 0, state="settled", charged=250_000)
    result = drive(api, trace, "--concurrency", "1")
    told = json.loads(result.stdout)
    assert result.exit_code == 0
    assert told["refused"] == {"spent": 2}
    assert told["held"] == 3
    assert (told["due"], told["settled"]) == ("0.0001065", "0.0001065")
    assert told["trace"] == "0.00039615"


def test_limit_rows_takes_only_the_first(api: FakeApi, trace: Path) -> None:
    assert json.loads(drive(api, trace, "--limit-rows", "2").stdout)["rows"] == 2
    assert set(api.calls) == {"drive:r:1", "drive:r:2"}


def test_the_same_run_again_changes_nothing_and_tells_the_same_sums(api: FakeApi, trace: Path) -> None:
    first, second = (json.loads(drive(api, trace).stdout) for _ in range(2))
    assert api.settled == REAL
    assert (second["already"], second["held"], second["exact"]) == (5, 0, True)
    assert (second["settled"], second["trace"]) == (first["settled"], first["trace"])


def test_a_run_that_stopped_goes_on_where_it_stopped(api: FakeApi, trace: Path) -> None:
    drive(api, trace, "--limit-rows", "2")
    told = json.loads(drive(api, trace).stdout)
    assert (told["already"], told["held"], told["exact"]) == (2, 3, True)
    assert api.settled == REAL


def test_a_fresh_run_has_a_name_of_its_own_and_says_it(api: FakeApi, trace: Path) -> None:
    names = set()
    for _ in range(2):
        result = api.ask("--json", "drive", str(trace))
        names.add(json.loads(result.stdout)["run"])
        assert result.stderr.startswith(f"run {json.loads(result.stdout)['run']}: ")
    assert len(names) == 2
    assert api.settled == 2 * REAL


def test_other_prices_under_the_same_name_stop_the_run(api: FakeApi, trace: Path) -> None:
    drive(api, trace)
    result = drive(api, trace, "--input-usd-per-mtok", "3")
    assert result.exit_code == 1
    assert "choose a fresh --run" in json.loads(result.stdout)["stopped"]
    assert api.settled == REAL


def test_the_log_names_every_call_that_was_made_and_what_it_cost(api: FakeApi, trace: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    drive(api, trace, "--limit-rows", "2", "--log", str(log))
    drive(api, trace, "--log", str(log))
    rows = list(csv.DictReader(StringIO(log.read_text())))
    assert sorted(row["hold"] for row in rows) == [f"drive:r:{number}" for number in range(1, 6)]
    assert {row["hold"]: row["usd"] for row in rows}["drive:r:1"] == "0.0000825"


def test_a_person_reads_both_sums_side_by_side(api: FakeApi, trace: Path) -> None:
    last = api.ask("drive", str(trace)).stdout.splitlines()[-1]
    assert last == "trace 0.00039615 usd, settled 0.00039615 usd"


# --- what breaks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 3])
async def test_lost_connections_and_503_are_asked_again_and_counted_once(api: FakeApi, trace: Path, batch: int) -> None:
    for path in ("/v1/holds", "/settle", "/v1/holds:batch"):
        api.fail(path, "503", "before", "after", "garbage", "after", "before", "503", "503")
    tally = await quick(api, trace, batch=batch)
    assert tally.exact
    assert (tally.held, tally.retries > 0, tally.errors) == (5, True, 0)
    assert api.settled == tally.settled_nanos == REAL


async def test_a_hold_that_lapsed_meanwhile_is_settled_exactly(api: FakeApi, trace: Path) -> None:
    await quick(api, trace)
    call = api.calls["drive:r:1"]
    call.state, call.charged = "lapsed", call.amount
    tally = await quick(api, trace)
    assert tally.exact
    assert api.settled == REAL


async def test_a_call_that_was_given_back_is_an_error_not_a_silent_gap(api: FakeApi, trace: Path) -> None:
    await quick(api, trace)
    api.calls["drive:r:1"].charged = 0
    tally = await quick(api, trace)
    assert (tally.errors, tally.exact) == (1, False)
    assert "drive:r:1 was given back" in tally.complaints[0]


async def test_another_charge_in_the_wallet_is_noticed(api: FakeApi, trace: Path) -> None:
    await quick(api, trace)
    api.calls["drive:r:1"].charged += 1
    tally = await quick(api, trace)
    assert (tally.unequal, tally.exact) == (1, False)
    assert tally.settled_nanos == api.settled == tally.due_nanos + 1


async def test_a_hold_nobody_answers_ends_with_its_patience_and_so_does_a_silent_run(api: FakeApi, trace: Path) -> None:
    api.fail("/v1/holds", "503", times=1_000)
    tally = await quick(api, trace, patience=Patience(hold_s=0, first_pause_s=0.0001))
    assert tally.held == 0
    assert 1 <= tally.errors <= 5
    assert tally.stopped.startswith("nobody answered")
    assert any(line == "go on with --run r" for line in report_lines(tally, run="r", seconds=1.0))


async def test_a_settle_outlives_the_patience_of_holds(api: FakeApi, trace: Path) -> None:
    api.fail("/settle", "503", times=40)
    api.fail("/settle", "after", times=5)
    tally = await quick(api, trace, patience=Patience(hold_s=0, first_pause_s=0.0001, longest_pause_s=0.001))
    assert tally.exact
    assert api.settled == REAL


def test_a_wrong_key_stops_the_run_at_once(api: FakeApi, trace: Path) -> None:
    result = api.ask("--key", "wrong", "--json", "drive", str(trace))
    assert result.exit_code == 1
    assert json.loads(result.stdout)["stopped"].startswith("the key is missing or not known")
    assert api.calls == {}


# --- the trace --------------------------------------------------------------------------------------------------------


def test_a_row_is_read_to_the_last_digit(trace: Path) -> None:
    assert next(iter(Trace(trace))) == Row(1, 1_700_158_540_680_590_000, 374, 44)


@pytest.mark.parametrize("line", ["2023-11-16 18:15:46,1", "2023-11-16 18:15:46,-1,2", "noon,1,2"])
def test_a_broken_line_ends_the_run_after_the_rows_before_it(api: FakeApi, trace: Path, line: str) -> None:
    trace.write_bytes(trace.read_bytes() + f"\r\n{line}\r\n".encode())
    result = drive(api, trace)
    told = json.loads(result.stdout)
    assert result.exit_code == 1
    assert "trace.csv line 7" in told["stopped"]
    assert (told["rows"], told["unsettled"]) == (5, 0)
    assert api.settled == REAL


def test_a_trace_tells_how_much_of_it_was_read(trace: Path) -> None:
    whole, part = Trace(trace), Trace(trace, rows_max=2)
    assert (whole.share_read, part.share_read) == (0, 0)
    assert (len(list(whole)), len(list(part))) == (5, 2)
    assert (whole.share_read, part.share_read) == (1, 1)


def test_a_file_without_the_columns_is_named(tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(TraceError, match="no column TIMESTAMP, ContextTokens, GeneratedTokens"):
        list(Trace(path))


def test_columns_may_stand_in_any_order_beside_others(tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_text(f"GeneratedTokens,model,{HEADER[:23]}\n7,x,2023-11-16 18:15:40,5\n")
    assert [row[2:] for row in Trace(path)] == [(5, 7)]


def test_a_cost_between_two_smallest_parts_is_rounded_up_once() -> None:
    prices = Prices.of(input_usd_per_mtok="0.000001", output_usd_per_mtok="0.000001", output_cap=0)
    assert prices.real_nanos(Row(1, 0, 600, 401)) == 2
    assert prices.real_nanos(Row(1, 0, 600, 400)) == 1
    assert prices.real_nanos(Row(1, 0, 0, 0)) == 0


def test_a_price_with_more_digits_than_can_be_exact_is_refused() -> None:
    with pytest.raises(AmountError, match="at most 6 digits"):
        Prices.of(input_usd_per_mtok="0.0000001", output_usd_per_mtok="1", output_cap=0)


async def test_rows_leave_at_the_pace_of_the_file(api: FakeApi, trace: Path) -> None:
    load = Load("r", PRICES, speed=40.0, concurrency=4, patience=QUICK)  # 4 s of traffic in 100 ms
    async with Api.open(api.url, KEY) as wallet:
        run = Drive(wallet, Trace(trace), load)
        started_at = asyncio.get_running_loop().time()
        await run.run()
    assert asyncio.get_running_loop().time() - started_at >= 0.1
    assert run.tally.exact
