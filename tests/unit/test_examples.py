"""The recipes in `examples/`, run as their README says, against what the wallet itself makes of the same stream."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from recorded_stories import projected, story, write_raw
from records import recorded
from wallets import Books, budget

from bench.day import Day as Generated
from engine.core.amounts import format_amount
from engine.core.messages import Settle, Settled
from engine.core.tell import read
from engine.journal import Stored
from engine.recorded import Recorded
from projector.audit.report import Report
from projector.audit.running import audit
from projector.day_range import parse
from projector.export.raw import export_raw
from projector.export.rows import Row
from projector.export.table import ALL, beside, export
from projector.reading import CopySource

EXAMPLES = Path(__file__).parents[2] / "examples"
RECIPES = sorted(path.name for path in EXAMPLES.glob("*.sql"))
CENT = 10_000_000
SEEDS = range(5)

Found = list[dict[str, Any]]


def run(recipe: str, *, put: tuple[str, str] | None = None) -> Found:
    """The rows of a recipe, in the folder where the export is."""
    text = (EXAMPLES / recipe).read_text()
    if put is not None:
        assert put[0] in text
        text = text.replace(*put)
    with duckdb.connect() as database:
        result = database.execute(text)
        columns = [column[0] for column in result.description]
        return [dict(zip(columns, row, strict=True)) for row in result.fetchall()]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def exported(stream: list[Stored]) -> list[Stored]:
    await export(CopySource(stream), ALL, Path("export.parquet"), now=0)
    await export_raw(CopySource(stream), Path("record.jsonl"))
    return stream


def day() -> Books:
    """Two users, two models, a refusal, one call that lapses and one that is still open."""
    books = Books(jev=budget("1.00"), user=budget("0.80", each="user")).at("09:00")
    books.hold("a", "0.40", user="alice", model="m1")
    books.settle("a", "0.25")
    books.at("09:01").hold("b", "0.30", user="bob", model="m2")
    books.settle("b", "0.30")
    books.hold("c", "0.50", user="bob", model="m1")
    books.hold("d", "0.10", user="bob", model="m1", ttl_s=30)
    books.at("09:05").tick()
    books.hold("e", "0.05", user="alice", model="m2")
    return books


def changed(totals: dict[Any, list[int]]) -> dict[Any, list[int]]:
    return {key: figures for key, figures in totals.items() if any(figures)}


def test_every_recipe_is_run_here() -> None:
    source = Path(__file__).read_text()
    assert len(RECIPES) >= 8
    assert [recipe for recipe in RECIPES if f'"{recipe}"' not in source] == []


@pytest.mark.parametrize("seed", SEEDS)
async def test_totals_are_the_wallets_own(seed: int) -> None:
    stream = await exported(story(seed, steps=100))
    found = {(row["budget"], row["period"]): [row["settled"], row["held"], row["extra"]] for row in run("totals.sql")}
    totals = projected(stream).totals
    assert changed(found) == changed({key: [one.settled, one.held, one.extra] for key, one in totals.items()})
    refused = {(row["budget"], row["period"]): row["refused"] for row in run("totals.sql") if row["refused"]}
    unfit = {key: sum(count for why, count in one.refused.items() if why != "frozen") for key, one in totals.items()}
    assert refused == {key: count for key, count in unfit.items() if count}


GENERATED = "2026-11-29..2026-12-01"  # what was held before, and the first message after, which says what lapsed


async def audited(stream: list[Stored], days: str = GENERATED) -> Report:
    """The audit, and the export in the same reading."""
    chosen = parse(days, zone="UTC", now=0)
    with beside("main", chosen, Path("export.parquet")) as also:
        report = await audit(CopySource(stream), chosen, also=also.take)
    await export_raw(CopySource(stream), Path("record.jsonl"))
    return report


def decimals(spent: dict[str, Any], label: str, unit: str = "usd") -> dict[str, Decimal]:
    return {one["value"]: Decimal(one["spent"]) for one in spent[label][unit]["top"]}


def never_settled(stream: list[Stored]) -> set[str]:
    """The holds that lapsed and whose cost nobody told afterwards."""
    asked = {one.seq: read(one.data) for one in stream if one.kind != "told"}
    lapsed: set[str] = set()
    for entry in (entry for one in stream if one.kind == "told" for entry in Recorded.read(one).told.told):
        lapsed |= {lapse.hold for lapse in entry.lapsed}
        message = asked[entry.seq]
        for ask, outcome in zip(message.asks if message is not None else (), entry.out, strict=False):
            if isinstance(ask, Settle) and isinstance(outcome, Settled):
                lapsed.discard(ask.hold)
    return lapsed


async def test_every_recipe_says_of_a_day_with_every_flag_what_its_audit_says() -> None:
    stream = list(Generated(24_000))
    report = await audited(stream)
    assert (report.right, report.asks >= 24_000) == (True, True)
    assert {"overrun", "unheld", "estimated", "corrected", "conflict", "stray", "lapsed"} <= report.flags.keys()
    totals = run("totals.sql")
    found = {
        (row["budget"], row["period"]): (
            *(format_amount(int(row[name]), scale=row["scale"]) for name in ("settled", "held", "extra")),
            row["refused"],
        )
        for row in totals
    }
    assert found == {
        (one["budget"], one["period"]): (one["settled"], one["held"], one["extra"], sum(one["refused"].values()))
        for one in report.budgets
    }
    settled: dict[str, int] = defaultdict(int)
    for row in totals:  # of every hour, where a budget is hourly
        settled[row["budget"]] += row["settled"]
    models = [row for row in run("by_model.sql") if row["budget"] == "usd" and row["model"] != "(none)"]
    spent = {row["model"]: Decimal(row["settled"]) / 10**9 for row in models}
    assert spent == {model: cost for model, cost in decimals(report.spent, "model").items() if model is not None}
    users = {row["user"]: Decimal(row["settled"]) / 10**9 for row in run("top_users.sql") if row["budget"] == "usd"}
    top = [cost for user, cost in decimals(report.spent, "user").items() if user is not None]
    assert [*users.values()][: len(top)] == top
    burnt: dict[str, int] = defaultdict(int)
    for row in run("burn_per_minute.sql"):
        burnt[row["budget"]] += row["settled"]
    assert {name: burnt[name] for name in settled} == settled
    assert run("never_over_limit.sql") == run("gap_check.sql") == []
    waiting = run("holds_without_settle.sql")
    assert sum(row["state"] == "open" for row in waiting) == report.open["count"] == 0
    lapsed = [row["hold"] for row in waiting if row["state"] == "lapsed"]
    assert len(lapsed) > 0
    assert sorted(lapsed) == sorted(never_settled(stream))
    life = run("one_call.sql", put=("the-id-of-the-hold", lapsed[0]))
    assert [row["outcome"] for row in life][-1] == "lapsed"


@pytest.mark.parametrize("seed", SEEDS)
async def test_an_export_beside_an_audit_is_the_export_alone_and_adds_up_to_it(seed: int) -> None:
    stream = story(seed, steps=100)
    report = await audited(stream, "2026-10-01..2027-06-30")
    found = {
        (row["budget"], row["period"]): [int(row[name]) for name in ("settled", "held", "extra")]
        for row in run("totals.sql")
    }
    scale = {(row["budget"], row["period"]): row["scale"] for row in run("totals.sql")}
    texts = {key: [format_amount(one, scale=scale[key]) for one in figures] for key, figures in found.items()}
    there = {(one["budget"], one["period"]): [one["settled"], one["held"], one["extra"]] for one in report.budgets}
    nothing = ["0", "0", "0"]
    assert {key: texts.get(key, nothing) for key in there} == there
    assert {key for key in texts.keys() - there.keys() if texts[key] != nothing} == set()
    with duckdb.connect() as database:
        mine = database.execute("FROM 'export.parquet' ORDER BY seq, place").fetchall()
        await export(CopySource(stream), ALL, Path("export.parquet"), now=0)
        assert mine == database.execute("FROM 'export.parquet' ORDER BY seq, place").fetchall()


async def test_models_are_charged_what_their_calls_cost() -> None:
    await exported(recorded(day()))
    found = [(row["model"], row["calls"], row["settled"]) for row in run("by_model.sql") if row["budget"] == "jev"]
    assert found == [("m1", 2, 35 * CENT), ("m2", 1, 30 * CENT)]


@pytest.mark.parametrize("seed", SEEDS)
async def test_models_together_cost_what_was_settled_but_by_adjustments(seed: int) -> None:
    stream = await exported(story(seed, steps=100))
    sums: dict[str, int] = defaultdict(int)
    for row in run("by_model.sql"):
        sums[row["budget"]] += row["settled"]
    with duckdb.connect() as database:
        adjusted = dict(
            database.execute(
                "SELECT budget, sum(settled) FROM 'export.parquet' WHERE outcome = 'adjusted' GROUP BY budget"
            ).fetchall()
        )
    settled: dict[str, int] = defaultdict(int)
    for (name, _), total in projected(stream).totals.items():
        settled[name] += total.settled
    assert {name: sums[name] + adjusted.get(name, 0) for name in settled} == dict(settled)


async def test_the_top_users_stand_first_with_what_was_refused_to_them() -> None:
    await exported(recorded(day()))
    found = [
        (row["user"], row["settled"], row["held_calls"], row["refused"])
        for row in run("top_users.sql")
        if row["budget"] == "jev"
    ]
    assert found == [("bob", 40 * CENT, 2, 1), ("alice", 25 * CENT, 2, 0)]


async def test_burn_is_by_the_minute_and_ends_in_what_is_used() -> None:
    books = day()
    await exported(recorded(books))
    found = [
        (row["minute"][-5:], row["settled"], row["used"])
        for row in run("burn_per_minute.sql")
        if row["budget"] == "jev"
    ]
    assert found == [("09:00", 25 * CENT, 25 * CENT), ("09:01", 30 * CENT, 65 * CENT), ("09:05", 10 * CENT, 70 * CENT)]
    [meter] = [meter for meter in books.wallet.metering.values() if meter.budget == "jev"]
    assert found[-1][2] == meter.used


async def test_one_call_is_told_from_its_hold_to_its_end() -> None:
    stream = await exported(recorded(day()))
    found = run("one_call.sql", put=("the-id-of-the-hold", "a"))
    assert [(row["outcome"], row["budget"]) for row in found] == [
        ("held", "jev"),
        ("held", "user"),
        ("settled", "jev"),
        ("settled", "user"),
    ]
    life = projected(stream).life("a")
    assert life is not None
    assert (found[-1]["state"], found[-1]["amount_text"], life.charged) == (life.state, "0.25", {"usd": 25 * CENT})
    assert [row["outcome"] for row in run("one_call.sql", put=("the-id-of-the-hold", "d"))][-1] == "lapsed"
    assert run("one_call.sql") == []


async def test_a_gap_and_a_sequence_that_stands_twice_are_shown() -> None:
    stream = await exported(recorded(day()))
    assert run("gap_check.sql") == []
    write_raw([*stream[:3], *stream[5:]], Path("record.jsonl"))
    assert run("gap_check.sql") == [{"first_missing": 4, "last_missing": 5}]
    write_raw(stream[2:], Path("record.jsonl"))
    assert run("gap_check.sql") == [{"first_missing": 1, "last_missing": 2}]
    write_raw([*stream[:2], stream[1], *stream[2:]], Path("record.jsonl"))
    assert len(run("gap_check.sql")) == 1


@pytest.mark.parametrize("seed", SEEDS)
async def test_no_hold_ever_passed_its_limit_and_every_meter_adds_up(seed: int) -> None:
    await exported(story(seed, steps=100))
    assert run("never_over_limit.sql") == []


@pytest.mark.parametrize(
    ("column", "wrong"), [('"limit" = "limit" - 500000000', {"limit"}), ("settled = settled + 1", {"sum"})]
)
async def test_a_table_that_was_changed_is_shown(column: str, wrong: set[str]) -> None:
    await exported(recorded(day()))
    assert run("never_over_limit.sql") == []
    with duckdb.connect() as database:
        database.execute("CREATE TABLE changed AS FROM 'export.parquet'")
        database.execute(f"UPDATE changed SET {column} WHERE id = 'b' AND outcome = 'held' AND budget = 'jev'")
        database.execute("COPY (FROM changed ORDER BY seq, place) TO 'export.parquet' (FORMAT parquet)")
    assert {row["wrong"] for row in run("never_over_limit.sql")} == wrong


async def test_a_later_day_alone_adds_up_too() -> None:
    books = Books(jev=budget("1.00", per="total")).at("09:00")
    books.hold("a", "0.40")
    books.at("2026-12-01 09:00").settle("a", "0.30")
    books.hold("b", "0.20")
    await export(CopySource(recorded(books)), "2026-12-01", Path("export.parquet"), now=0)
    assert run("never_over_limit.sql") == []


@pytest.mark.parametrize("seed", SEEDS)
async def test_calls_without_an_exact_cost_are_those_the_wallet_waits_for(seed: int) -> None:
    stream = await exported(story(seed, steps=100))
    wallet = projected(stream).wallet
    found = {row["hold"]: row["state"] for row in run("holds_without_settle.sql")}
    waiting = {id: record.state for id, record in {**wallet.open, **wallet.provisional}.items() if not record.stray}
    assert waiting.items() <= found.items(), "and those that the wallet has forgotten"
    assert all(found[id] in ("lapsed", "estimated") for id in found.keys() - waiting.keys())


async def test_calls_without_an_exact_cost_are_listed_with_their_state() -> None:
    await exported(recorded(day()))
    assert [(row["hold"], row["state"], row["model"]) for row in run("holds_without_settle.sql")] == [
        ("d", "lapsed", "m1"),
        ("e", "open", "m2"),
    ]


def test_the_verifier_comes_with_the_wheel() -> None:
    root = EXAMPLES.parent
    built = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    [file] = [file for file, place in built["shared-data"].items() if place == "share/commonpurse/verify.py"]
    assert (root / file) == EXAMPLES / "verify.py"


def test_the_columns_that_recipes_speak_of_are_those_of_the_table() -> None:
    assert {"seq", "told", "place", "first", "at", "at_utc", "labels", "flags"} <= set(Row.__struct_fields__)
