"""`purse audit` and `purse receipt` on real streams: while the wallet runs, after it was closed, and live."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from integration import rig
from integration.rig import engine_on, eventually, projector_on, wallet_on
from msgspec.structs import replace

from commonpurse.plan_text import plan_text
from engine.client import Purse
from engine.core.messages import Held
from engine.core.plan import Plan
from engine.embedded import EmbeddedServer, embedded_nats
from engine.journal import Journal
from engine.receipts import Receipt
from engine.recorded import Recorded
from engine.snapshots import FOLDER, SUFFIX, Snapshots
from projector.audit.apart import Task
from projector.audit.following import follow
from projector.audit.kept import OF
from projector.audit.moment import wallet_at
from projector.audit.running import audit
from projector.day_range import parse
from projector.reading import StreamSource
from projector.replay import BrokenRecord

EVER = parse("2026-01-01..2026-12-31", zone="UTC", now=0)
WALLET = "main"


async def purse(*arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code and what it printed as JSON."""
    async with rig.process_of(["-m", "commonpurse", *arguments, "--json"]) as process:
        said = await process.output()
        return await process.wait(), json.loads(said) if said else {}


async def call(client: Purse, id: str, cents: int) -> None:
    assert isinstance(await client.hold({"usd": "0.05"}, id=id, labels={"user": "alice"}), Held)
    await client.settle(id, {"usd": f"0.0{cents}"})


async def receipt_of(journal: Journal) -> Receipt:
    told = await journal.last_of("told")
    assert told is not None
    return Receipt(told.seq, Recorded.read(told).chain.hex())


async def test_a_wallet_is_audited_while_it_runs_and_after_it_was_closed(tmp_path: Path) -> None:
    async with (
        embedded_nats(tmp_path, wallet=WALLET) as server,
        wallet_on(server.url, WALLET) as journal,
        engine_on(server.url, WALLET, data=tmp_path),
        projector_on(server.url, WALLET, data=tmp_path),
        Purse.connect(server.url, wallet=WALLET) as client,
    ):
        for number in range(3):
            await call(client, f"c{number}", 3)
        code, running = await purse("audit", "yesterday..today", "--data", str(tmp_path))
        assert (code, running["right"], running["read"]["asks"]) == (0, True, 7)
        kept = await receipt_of(journal)
    assert list((tmp_path / FOLDER / WALLET / OF).glob(f"*{SUFFIX}"))  # for a later `--at`
    code, closed = await purse("audit", "yesterday..today", "--data", str(tmp_path))
    assert (code, closed["read"]["chain"]) == (0, kept.chain)
    assert closed["budgets"][0]["settled"] == "0.09"
    assert closed["spent"]["user"]["usd"]["top"] == [{"value": "alice", "calls": 3, "spent": "0.09"}]
    assert closed["read"]["receipts"] >= 1  # clients brought theirs, and the witnesses stand in the folder
    code, stands = await purse("receipt", "verify", f"{kept.told}:{kept.chain}", "--data", str(tmp_path))
    assert (code, stands["stands"]) == (0, True)
    code, _ = await purse("receipt", "verify", f"{kept.told}:{'0' * 64}", "--data", str(tmp_path))
    assert code == 4
    code, life = await purse("audit", "--hold", "c1", "--data", str(tmp_path))
    assert (code, [one["outcome"]["outcome"] for one in life["events"]]) == (0, ["held", "settled"])


async def test_a_day_is_shown_as_it_would_have_been_while_the_wallet_runs_and_after_it_was_closed(
    tmp_path: Path,
) -> None:
    other = tmp_path / "other.toml"
    given = ("whatif", "yesterday..today", "--plan", str(other), "--data", str(tmp_path))
    async with (
        embedded_nats(tmp_path, wallet=WALLET) as server,
        wallet_on(server.url, WALLET),
        engine_on(server.url, WALLET, data=tmp_path),
        Purse.connect(server.url, wallet=WALLET) as client,
    ):
        for number in range(4):
            await call(client, f"c{number}", 3)
        other.write_text(plan_text(Plan({"jev": rig.JEV})))
        code, same = await purse(*given)
        assert (code, same["same"], same["holds"]["was"]["held"]) == (0, True, 4)
    other.write_text(plan_text(Plan({"jev": replace(rig.JEV, limit=10 * rig.CENT)})))
    code, less = await purse(*given)
    assert (code, less["same"], less["differ"]["holds"]["refused"]) == (0, False, 2)
    assert [one["id"] for one in less["first"]] == ["c2", "c3"]
    assert (less["budgets"][0]["was"]["settled"], less["budgets"][0]["would_be"]["settled"]) == ("0.12", "0.06")


async def test_two_processes_find_what_one_finds(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with rig.serving(nats_server, wallet_name) as (client, journal):
        for number in range(5):
            await call(client, f"c{number}", 2)
        source = StreamSource(journal)
        one = await audit(source, EVER)
        two = await audit(source, EVER, apart=Task(wallet_name, 0, url=nats_server.url))
        assert one.right
        assert one == two


async def test_m17_a_moment_is_the_same_with_and_without_snapshots(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    async with wallet_on(nats_server.url, wallet_name) as journal:
        for round_ in range(3):  # each engine leaves a snapshot as it ends
            async with (
                engine_on(nats_server.url, wallet_name, data=tmp_path),
                Purse.connect(nats_server.url, wallet=wallet_name) as client,
            ):
                await call(client, f"c{round_}", 4)
        source = StreamSource(journal)
        snapshots = list(Snapshots(tmp_path, wallet_name).good())
        assert snapshots
        for snapshot in snapshots:
            at = snapshot.wallet.at
            with_them = await wallet_at(source, at, data=tmp_path)
            without = await wallet_at(source, at)
            assert (with_them.start, without.start) == (snapshot.told, 0)
            assert with_them.budgets == without.budgets
            assert (with_them.upto, with_them.chain) == (without.upto, without.chain)
            earlier = await wallet_at(source, at - 1, data=tmp_path)
            assert earlier.start < snapshot.told
            assert earlier.budgets == (await wallet_at(source, at - 1)).budgets


async def test_an_audit_that_goes_on_checks_what_comes(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with rig.serving(nats_server, wallet_name) as (client, journal):
        await call(client, "first", 1)
        source = StreamSource(journal)
        before = await audit(source, EVER)
        news = follow(source, EVER, after=before.read["last"], every_s=0.05)
        waiting = asyncio.ensure_future(anext(news))
        await call(client, "second", 2)
        report = await asyncio.wait_for(waiting, rig.WITHIN_S)
        while report.budgets[0]["settled"] != "0.03":
            report = await asyncio.wait_for(anext(news), rig.WITHIN_S)
        assert report.right
        await news.aclose()


async def test_m19_a_stream_that_lost_its_end_is_caught_by_a_receipt(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with rig.serving(nats_server, wallet_name) as (client, journal):
        await call(client, "a", 1)
        kept = await eventually(lambda: receipt_of(journal))
        further = Receipt(kept.told + 1_000, kept.chain)
        source = StreamSource(journal)
        assert (await audit(source, EVER, receipts=[kept])).right
        with pytest.raises(BrokenRecord, match="are lost") as broken:
            await audit(source, EVER, receipts=[further])
        assert kept.told < broken.value.seq <= further.told
