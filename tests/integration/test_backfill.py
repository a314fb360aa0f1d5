"""`purse backfill` and `purse orphans` on a real stream: done once, killed on the way, and when nobody decides."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from integration import rig
from integration.rig import DOLLAR, SECOND, engine_on, eventually, past, penny, told, used, wallet_on

from engine.client import Purse
from engine.core.messages import Held
from engine.core.plan import Budget, Plan
from engine.embedded import embedded_nats
from engine.journal import Journal

WALLET = "main"
MANY = 3_000
COST = 1_000  # nano-dollars each
PLAN = Plan({"jev": Budget("usd", DOLLAR, per="total")}, remember_s=1)
"""What ends is forgotten within a second."""


@asynccontextmanager
async def served(data: Path, plan: Plan | None = None) -> AsyncIterator[tuple[Purse, Journal]]:
    async with (
        embedded_nats(data, wallet=WALLET) as server,
        wallet_on(server.url, WALLET, plan=plan) as journal,
        engine_on(server.url, WALLET),
        Purse.connect(server.url, wallet=WALLET) as client,
    ):
        yield client, journal


async def purse(*arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code and what it printed as JSON."""
    async with rig.process_of(["-m", "commonpurse", *arguments, "--json"]) as process:
        said = await process.output()
        return await process.wait(), json.loads(said) if said else {}


async def lapse_of(journal: Journal) -> int | None:
    """When the first hold lapsed, once one has."""
    return next((entry.at for entry in (await rig.audited(journal)).entries.values() if entry.lapsed), None)


async def backfill(data: Path, rows: Iterable[tuple[str, str]], *options: str) -> tuple[int, dict[str, int]]:
    """Exit code, and how many rows there were of each class that has any."""
    file = data.parent / "costs.csv"
    file.write_text("hold,usd\n" + "".join(f"{hold},{cost}\n" for hold, cost in rows))
    code, said = await purse("backfill", str(file), "--data", str(data), *options)
    return code, {found: count for found, count in said.get("counts", {}).items() if count}


async def test_what_a_crash_left_is_settled_once_and_what_was_forgotten_is_adjusted(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with served(data, PLAN) as (client, journal):
        assert isinstance(await client.hold({"usd": "0.05"}, id="open"), Held)
        assert isinstance(await client.hold({"usd": "0.05"}, id="lapsed", ttl_s=1), Held)
        lapsed_at = await eventually(lambda: lapse_of(journal))
        await eventually(lambda: past(journal, lapsed_at + SECOND))
        await client.hold({"usd": "0.05"}, id="done")
        await client.settle("done", {"usd": "0.02"})
        code, said = await purse("orphans", "--data", str(data), "--older-than", "0")
        assert (code, {(one["hold"], one["state"]) for one in said["orphans"]}) == (
            0,
            {("open", "open"), ("lapsed", "lapsed")},
        )
        rows = [("open", "0.03"), ("lapsed", "0.04"), ("done", "0.02"), ("nobody", "0.01")]
        expected = {"new": 1, "beyond": 1, "stray": 1, "there": 1}
        assert await backfill(data, rows) == (0, expected)
        assert used(await told(journal)) == (7 * DOLLAR // 100, 5 * DOLLAR // 100), "a dry run changes nothing"
        assert await backfill(data, rows, "--apply") == (0, expected)
        assert used(await told(journal)) == (10 * DOLLAR // 100, 0)
        seq = await journal.last_seq()
        assert await backfill(data, rows, "--apply") == (0, {"there": 4})
        assert await backfill(data, [*rows[:3], ("nobody", "0.02")], "--apply") == (3, {"there": 3, "conflict": 1})
        assert await journal.last_seq() == seq
        code, said = await purse("orphans", "--data", str(data), "--older-than", "0")
        assert (code, said["orphans"]) == (0, [])


async def test_killed_on_the_way_it_is_run_again_and_every_call_counts_once(tmp_path: Path) -> None:
    data = tmp_path / "data"
    rows = [(f"h{number}", "0.000001") for number in range(MANY)]
    async with served(data) as (client, journal):
        for start in range(0, MANY, 500):
            await client.ask_all([penny(hold, 2 * COST) for hold, _ in rows[start : start + 500]])
        before = await journal.last_seq()
        file = tmp_path / "killed.csv"
        file.write_text("hold,usd\n" + "".join(f"{hold},{cost}\n" for hold, cost in rows))
        command = ["-m", "commonpurse", "backfill", str(file), "--data", str(data), "--apply"]
        async with rig.process_of(command) as process:
            await eventually(lambda: rig.holds_messages(journal, before + 4), within_s=60)
            process.signal(signal.SIGKILL)
            await process.wait()
        code, counts = await backfill(data, rows, "--apply")
        assert (code, sum(counts.values()), counts.keys() <= {"new", "there"}) == (0, MANY, True)
        assert counts["there"], "something had landed before it was killed"
        assert used(await told(journal)) == (MANY * COST, 0)


async def test_while_nobody_decides_it_is_shown_but_not_done(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with served(data) as (client, _):
        await client.hold({"usd": "0.05"}, id="open")
    assert await backfill(data, [("open", "0.03")]) == (0, {"new": 1})
    assert await backfill(data, [("open", "0.03")], "--apply") == (1, {})
