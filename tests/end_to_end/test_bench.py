"""The benchmark works: peers that can run here are driven and their books checked, and a run survives who fails."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench import __main__ as bench
from bench import growth, restart, rows
from bench.contender import COST, HELD, Call, Client, Contender, Shape, batches, callers, pairs
from bench.drive import WrongBooksError, drive
from bench.peers.postgres import POSTGRESQL

ROOT = Path(__file__).parents[2]
END_WAIT_S = 100.0


# --- what measures by itself ------------------------------------------------------------------------------------------


def figures_of(module: str) -> dict[str, float]:
    """What it says for programs, in its quick form."""
    command = [sys.executable, "-m", module, "--quick", "--json"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=END_WAIT_S)
    assert said.returncode == 0, said.stderr
    figures = [json.loads(line) for line in said.stdout.splitlines()]
    return {figure["name"]: figure["value"] for figure in figures}


def test_a_hold_over_http_is_measured_beside_a_bare_handler() -> None:
    found = figures_of("bench.http")
    for callers_ in ("1 caller", "64 callers"):
        for who in ("Common Purse", "bare aiohttp handler"):
            row = f"HTTP, {callers_}: {who}"
            assert found[f"{row}: decisions"] > 0
            assert 0 < found[f"{row}: p50"] <= found[f"{row}: p99"]


def test_starts_from_zero_and_from_a_snapshot_are_measured() -> None:
    found = figures_of("bench.restart")
    for asks in restart.COUNTS_QUICK:
        assert found[restart.zero_name(asks)] > 0
        assert found[restart.snapshot_name(asks)] > 0
    assert found["restart: memory at its most / when ready"] >= 1
    assert found[restart.resident_name(1.0)] > 0


@pytest.fixture
def collected() -> Iterator[None]:
    yield
    gc.enable()


def test_growth_is_measured_at_every_size(monkeypatch: pytest.MonkeyPatch, collected: None) -> None:
    for name, value in (("IDS", (100, 1_000)), ("METERS", (10, 100)), ("ROUNDS", 1), ("TURNS", 2)):
        monkeypatch.setattr(growth, name, value)
    found = {figure.name: figure.value for figure in growth.figures(quick=False)}
    assert set(found) == {
        growth.ids_name(100), growth.ids_name(1_000), f"{growth.ids_name(1_000)} / 100",
        growth.meters_name(10), growth.meters_name(100), f"{growth.meters_name(100)} / 10",
        growth.kept_name(10), growth.kept_name(100),
    }  # fmt: skip
    assert min(found.values()) > 0


# --- peers ------------------------------------------------------------------------------------------------------------


async def test_postgresql_is_driven_and_its_books_are_right() -> None:
    if (missing := POSTGRESQL.missing()) is not None:
        pytest.skip(missing)
    with tempfile.TemporaryDirectory(prefix="purse-bench-") as root, tempfile.TemporaryDirectory(dir=root) as folder:
        async with POSTGRESQL.open(Path(folder)) as client:
            await client.hold_all([Call("a-1", "u00001"), Call("a-2", "u00000")])
            await client.settle(Call("a-1", "u00001"))
            assert await client.used() == HELD + COST
            for again in (client.hold, client.settle):
                with pytest.raises(Exception, match=r"a-1"):
                    await again(Call("a-1", "u00001"))
            assert await client.used() == HELD + COST
            assert len(client.pids) > 1


@pytest.mark.parametrize("shape", [callers(2), pairs(2), batches(2, 10)], ids=["holds", "pairs", "batches"])
async def test_whoever_has_wrong_books_has_no_speed(shape: Shape) -> None:
    assert (await drive(InMemory(), shape, seconds=0.02, warm_up_s=0.0)).decisions_per_s > 0
    with pytest.raises(WrongBooksError):
        await drive(InMemory(forgets=True), shape, seconds=0.02, warm_up_s=0.0)


# --- a run ------------------------------------------------------------------------------------------------------------


class InMemory:
    """A contender that does as it says, or forgets what it granted first."""

    pids: Sequence[int] = ()

    def __init__(self, *, forgets: bool = False) -> None:
        self._used = -HELD if forgets else 0

    async def hold(self, call: Call) -> None:
        await self.hold_all([call])

    async def settle(self, call: Call) -> None:
        await asyncio.sleep(0)
        self._used += COST - HELD

    async def hold_all(self, calls: Sequence[Call]) -> None:
        await asyncio.sleep(0)
        self._used += HELD * len(calls)

    async def used(self) -> int:
        return self._used


def contender(name: str, *, forgets: bool = False, begins: bool = True) -> Contender:
    @asynccontextmanager
    async def opened(folder: Path) -> AsyncIterator[Client]:
        if not begins:
            raise RuntimeError("no such [server]")
        yield InMemory(forgets=forgets)

    return Contender(name, "in memory", True, (Shape("a shape", "a shape", 2),), opened)


def test_who_fails_is_told_and_left_out_and_the_others_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    peers = (contender("Honest"), contender("Liar", forgets=True), contender("Absent", begins=False))
    monkeypatch.setattr(bench, "PURSE", contender("Ours"))
    monkeypatch.setattr(bench, "PEERS", peers)
    ran = CliRunner().invoke(bench.main, ["--only", "a shape", "--seconds", "0.05", "--runs", "2"])
    assert ran.exit_code == bench.FAILED, ran.output
    assert "not measured: Liar, a shape: WrongBooksError" in ran.stdout
    assert "not measured: Absent, a shape: RuntimeError: no such [server]" in ran.stdout
    table = ran.stdout[ran.stdout.index("side by side") :]
    assert [name for name in ("Ours", "Honest", "Liar", "Absent") if f"a shape: {name}" in table] == ["Ours", "Honest"]
    assert "run 2: Ours, a shape" in ran.stderr
    assert "run 2: Absent, a shape" not in ran.stderr  # it is not tried again


def test_a_whole_run_is_written_down(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for where, name, value in (
        (bench, "PURSE", contender("Ours")), (bench, "PEERS", (contender("Honest"),)), (bench, "ALONE", {}),
        (bench.proxy, "CONTENDERS", ()), (bench, "RESULTS", tmp_path / "results.json"),
        (bench.plots, "FOLDER", tmp_path),
    ):  # fmt: skip
        monkeypatch.setattr(where, name, value)
    ran = CliRunner().invoke(bench.main, ["--seconds", "0.05"])
    assert ran.exit_code == 0, ran.output
    assert f"written to {bench.RESULTS}" in ran.stdout.replace("\n", "")
    results = rows.read(bench.RESULTS)
    named = {row.name: row for row in results.rows}
    ours = named["Ours, a shape: decisions"]
    assert (ours.peer, ours.unit) == ("Honest", "1/s")
    assert ours.ratio == pytest.approx(ours.value / named["Honest, a shape: decisions"].value, rel=0.01)
    assert (results.failed, results.runs) == ([], 1)
