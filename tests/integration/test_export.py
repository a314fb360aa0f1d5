"""`purse export` on a real stream made by real traffic, and `examples/verify.py` on what it wrote."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import duckdb
import pytest
from integration import rig
from integration.rig import engine_on, told, wallet_on
from integration.traffic import traffic_on

from engine.client import Purse
from engine.core.messages import Held
from engine.core.plan import Plan
from engine.embedded import EmbeddedServer, embedded_nats
from engine.journal import Journal
from projector.day_range import parse
from projector.export.raw_source import RawSource
from projector.whatif.change import Change
from projector.whatif.running import what_if

WALLET = "main"
VERIFY = Path(__file__).parents[2] / "examples" / "verify.py"
CALLS = 40


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def purse(*arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code, and what it printed as JSON."""
    async with rig.process_of(["-m", "commonpurse", "export", "--json", *arguments]) as process:
        said = await process.output()
        return await process.wait(), json.loads(said) if said else {}


async def verify(file: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    async with rig.process_of(["-I", "-S", str(VERIFY), str(file), "--json", *arguments]) as process:
        said = await process.output()
        return await process.wait(), json.loads(said)


async def use(server: EmbeddedServer, journal: Journal) -> str:
    """Real traffic by several callers, and everything that may come of a call. The newest receipt of its client."""
    async with engine_on(server.url, WALLET), Purse.connect(server.url, wallet=WALLET) as client:
        async with traffic_on(client) as traffic:
            await traffic.more(CALLS)
        for id in ("settled", "released", "progressed", "estimated", "renewed", "over"):
            assert isinstance(await client.hold({"usd": "0.01"}, id=id, labels={"model": "m1"}), Held)
        await client.settle("settled", {"usd": "0.005"})
        await client.release("released")
        await client.settle("progressed", {"usd": "0.002"}, final=False)
        await client.settle("estimated", {"usd": "0.01"}, estimated=True)
        await client.settle("estimated", {"usd": "0.003"})
        await client.renew("renewed", n=1, amounts={"usd": "0.02"})
        await client.settle("over", {"usd": "0.03"})
        await client.settle("nobody", {"usd": "0.001"}, labels={"model": "m2"})
        assert not isinstance(await client.hold({"usd": "1000"}, id="too much"), Held)
        await rig.append_raw(journal, b"\xff not json")
        await rig.append_raw(journal, b"not json")
        await told(journal)
        newest = await journal.last_of("told")
        assert newest is not None
        return f"{newest.seq}:{newest.data[-66:-2].decode()}"


async def test_the_record_of_real_traffic_is_proved_by_the_verifier_and_adds_up_alike(tmp_path: Path) -> None:
    record, table = tmp_path / "record.jsonl", tmp_path / "export.parquet"
    async with (
        embedded_nats(tmp_path / "data", wallet=WALLET) as server,
        wallet_on(server.url, WALLET) as journal,
    ):
        receipt = await use(server, journal)
        settled, held = rig.used(await told(journal))
        code, wrote = await purse("--raw", str(record), "--data", str(tmp_path / "data"))
        assert (code, wrote["last_seq"]) == (0, await journal.last_seq())
    code, proved = await verify(record, "--receipt", receipt)
    assert code == 0, proved
    [total] = proved["totals"]
    assert (total["settled"], total["held"]) == (settled, held)
    assert (proved["receipts"], proved["untold"], proved["outcomes"]["stray"]) == (1, 0, 1)
    assert proved["outcomes"]["held"] >= CALLS + 7
    now = parse("yesterday..today", zone="UTC", now=time.time_ns())
    same = await what_if(RawSource(record), now, Change(Plan({"jev": rig.JEV})))
    assert (same.same, same.first, same.assumed["skipped"]) == (True, [], {})
    assert same.holds["was"]["held"] >= CALLS + 6
    code, wrote = await purse("all", "--out", str(table), "--data", str(tmp_path / "data"))  # nothing runs now
    assert code == 0, wrote
    found = duckdb.execute(f"SELECT sum(settled), sum(held), count(*) FROM '{table}'").fetchone()
    assert found == (settled, held, wrote["rows"])


async def test_one_flipped_byte_of_a_real_record_is_found(tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    async with (
        embedded_nats(tmp_path / "data", wallet=WALLET) as server,
        wallet_on(server.url, WALLET) as journal,
    ):
        await use(server, journal)
        assert (await purse("--raw", str(record), "--nats", server.url))[0] == 0
    lines = record.read_bytes().splitlines(keepends=True)
    place = next(place for place, line in enumerate(lines) if b'\\"id\\":\\"over\\"' in line)
    seq = json.loads(lines[place])["seq"]
    lines[place] = lines[place].replace(b'\\"id\\":\\"over\\"', b'\\"id\\":\\"ever\\"')
    record.write_bytes(b"".join(lines))
    code, said = await verify(record)
    assert (code, said["ok"]) == (1, False)
    assert said["since"] <= seq < said["seq"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), 2),
        (("today",), 2),
        (("--out", "x.csv"), 2),
        (("today", "--raw", "x.jsonl"), 2),
        (("today", "--out", "x.txt"), 1),
        (("today", "--out", "x.csv"), 1),  # there is no store
    ],
)
async def test_what_cannot_be_exported_is_said(tmp_path: Path, arguments: tuple[str, ...], code: int) -> None:
    found, _ = await purse(*arguments, "--data", str(tmp_path))
    assert found == code
    assert names(tmp_path) == []


async def test_a_stream_with_a_hole_is_not_exported(tmp_path: Path) -> None:
    out = tmp_path / "record.jsonl"
    async with embedded_nats(tmp_path / "data") as server, Journal.connect(server.url, wallet=WALLET) as journal:
        await rig.make_stream(journal, deny_delete=False)
        for number in range(5):
            await rig.append(journal, rig.penny(str(number)))
        await journal.api(f"STREAM.MSG.DELETE.{journal.names.stream}", {"seq": 3}, rig.Made)
        await rig.change_stream(journal)
        code, _ = await purse("--raw", str(out), "--nats", server.url)
        assert code == 4
        code, _ = await purse("all", "--out", str(tmp_path / "export.csv"), "--nats", server.url)
        assert code == 4
    assert names(tmp_path) == ["data"]
