"""What is wanted of the figures is judged by the rows of one run, and nothing is said of what was not measured."""

from __future__ import annotations

import io

import msgspec
import pytest
from rich.console import Console

from bench import report, rows
from bench.growth import IDS, METERS, ids_name, meters_name
from bench.peers.redis_lua import A_CONNECTION_A_CALLER
from bench.peers.tigerbeetle import TIGERBEETLE
from bench.proxy import litellm, portkey
from bench.proxy.measure import SHAPES
from bench.purse import PURSE
from bench.restart import COUNTS, snapshot_name
from bench.rows import Row
from bench.targets import BESIDE, TABLE, Target, judge, with_targets


def test_what_is_compared_with_a_peer_is_compared_with_its_row() -> None:
    target = Target(what="64", row="ours", least=1.3, of="theirs", stretch=2)
    for value, met, stretched in ((1_299, False, False), (1_300, True, False), (2_000, True, True)):
        (judged,) = judge([Row("ours", value, "1/s"), Row("theirs", 1_000, "1/s")], [target])
        assert (judged.value, judged.wanted) == (value / 1_000, 1_300)
        assert (judged.met, judged.stretched) == (met, stretched)


def test_a_bound_from_above_is_one() -> None:
    target = Target(what="p99", row="ours", most=20)
    for value, met in ((20, True), (20.1, False)):
        (judged,) = judge([Row("ours", value, "ms")], [target])
        assert (judged.met, judged.stretched) == (met, None)


@pytest.mark.parametrize(
    "there", [[], [Row("ours", 5, "1/s")], [Row("theirs", 5, "1/s")]], ids=["none", "ours", "peer"]
)
def test_nothing_is_said_of_what_was_not_measured(there: list[Row]) -> None:
    (judged,) = judge(there, [Target(what="64", row="ours", least=1.3, of="theirs")])
    assert (judged.met, judged.value, judged.wanted) == (None, None, None)


def test_a_row_has_the_hardest_of_its_targets_and_is_met_by_all_of_them() -> None:
    calls = "proxy, 64 callers, an answer after 0 ms: Common Purse: calls"
    made = [Row(calls, 1_050.0, "1/s"), Row(calls.replace("Common Purse", "LiteLLM, two workers"), 190.0, "1/s"),
            Row(calls.replace("Common Purse", "Portkey"), 1_100.0, "1/s")]  # fmt: skip
    judged = next(iter(with_targets(made)))
    assert (judged.target, judged.met) == (1_100, False)
    assert (judged.peer, judged.ratio) == ("Portkey", round(1_050 / 1_100, 3))  # the best of the two
    judged = next(iter(with_targets([msgspec.structs.replace(made[0], value=1_100.0), *made[1:]])))
    assert (judged.target, judged.met) == (1_100, True)


def test_every_target_is_of_a_row_that_a_run_makes() -> None:
    contenders = (PURSE, A_CONNECTION_A_CALLER, TIGERBEETLE)
    made = {f"{who.name}, {shape.title}: {what}" for who in contenders for shape in who.shapes for what in WHAT}
    proxies = (PURSE.name, litellm.TWO_WORKERS.name, portkey.PORTKEY.name)
    made |= {f"{shape.title}: {who}: {what}" for shape in SHAPES for who in proxies for what in ("added p50", "calls")}
    made |= {f"{ids_name(max(IDS))} / {min(IDS):,}", f"{meters_name(max(METERS))} / {min(METERS):,}"}
    made |= {snapshot_name(max(COUNTS)), f"restart: replay of {max(COUNTS):,} asks from zero"}
    made |= ELSEWHERE
    assert {row for target in (*TABLE, *BESIDE) for row in (target.row, target.of) if row is not None} - made == set()


WHAT = ("decisions", "p50", "p99")
ELSEWHERE = {
    "restart: memory at its most / when ready", "bytes an open hold", "bytes a remembered id",
    "HTTP, 1 caller: Common Purse: p50", "HTTP, 1 caller: bare aiohttp handler: p50",
    "HTTP, 64 callers: Common Purse: decisions", "users: a hold with 100,000 users / 100", "users: bytes a user",
}  # fmt: skip
"""Rows whose names only their modules know. `tests/end_to_end/test_bench.py` sees that most of them are made."""


def test_the_first_table_says_what_was_wanted_and_what_was_reached() -> None:
    out = io.StringIO()
    console = Console(width=150, file=out)
    name = "Common Purse, 64 callers: decisions"
    made = [
        Row(name, 2_500, "1/s", peer="Redis, pipelined", ratio=0.5),
        Row("Redis, 64 callers: decisions", 1_000, "1/s"),
    ]
    report.show_targets(console, made)
    said = out.getvalue()
    (line,) = [line for line in said.splitlines() if "64 callers, one ask each" in line]
    assert [cell.strip() for cell in line.strip("│").split("│")][1:] == [
        "at least 1.3 x Redis", "2.50 x (2,500 1/s)", "met", "2 x met", "0.50 x Redis, pipelined",
    ]  # fmt: skip
    assert "not measured" in said


def test_samples_of_five_rounds_become_their_median() -> None:
    samples = [report.Sample(float(n), 1.0, 2.0, 3.0, None if n == 1 else 4.0) for n in (5, 1, 4, 2, 3)]
    assert report.median(samples) == report.Sample(3.0, 1.0, 2.0, 3.0, 4.0)


def test_results_have_the_shape_that_programs_read() -> None:
    row = Row("a", 1.0, "ms", 2.0, True, "Redis", 0.5)
    results = rows.Results([row], {"cores": 2}, 3.0, 5, 12, [])
    assert msgspec.to_builtins(results)["rows"] == [
        {"name": "a", "value": 1.0, "unit": "ms", "target": 2.0, "met": True, "peer": "Redis", "ratio": 0.5}
    ]


def test_ours_is_compared_with_the_best_networked_peer() -> None:
    shape = PURSE.shapes[0]
    ours = report.Sample(1_000.0, 1.0, 2.0, 3.0, 4.0)
    measured = {(PURSE, shape): ours, (A_CONNECTION_A_CALLER, shape): report.Sample(2_000.0, 0.5, 2.0, 3.0, 4.0)}
    made = {row.name: row for row in report.rows(measured, [], PURSE)}
    row = made["Common Purse, 1 caller: decisions"]
    assert (row.peer, row.ratio) == ("Redis", 0.5)
    assert made["Redis, 1 caller: decisions"].peer is None
