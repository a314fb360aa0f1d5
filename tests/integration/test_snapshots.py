"""Snapshots on the real server: they change nothing but the time a start takes, and they are witnesses."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from integration import rig
from integration.rig import CENT, DOLLAR, SECOND, Started, append, audited, engine_on, eventually, record_of, wallet_on

from engine import keeper
from engine.core.messages import Held, Hold, Option, Settle
from engine.core.plan import Budget, Plan
from engine.embedded import EmbeddedServer
from engine.errors import Untrusted
from engine.journal import Journal
from engine.service import Engine
from engine.snapshots import Snapshots, decode

PLAN = Plan({"jev": rig.JEV, "each": Budget("usd", DOLLAR, per="total", each="user")})


def hold(id: str, amount: int = CENT, **labels: str) -> Hold:
    return Hold(id, [Option({"usd": amount})], by=time.time_ns() + 60 * SECOND, labels=labels)


async def spend(journal: Journal, *, first: int, count: int) -> int:
    """Holds and settlements of all kinds, a message each. The sequence of the last."""
    last = 0
    for number in range(first, first + count):
        asks = hold(f"h{number}", 2 * CENT, user=f"u{number % 3}"), Settle(f"h{number // 2}", {"usd": number})
        last = await append(journal, *asks)
    return last


async def on_record(started: Started[Engine], seq: int) -> None:
    await eventually(lambda: started.service.wallet.upto >= seq and not started.service._decided)


def files(data: Path, kind: str = "snapshot") -> list[Path]:
    return sorted(data.glob(f"snapshots/*/*.{kind}"))


@pytest.fixture
def every_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot is due with every told, as far as the one before it has been written."""
    monkeypatch.setattr(keeper, "TOLDS_MAX", 1)


@asynccontextmanager
async def spent(url: str, wallet: str, data: Path) -> AsyncIterator[Journal]:
    """A wallet that has a history, and three snapshots from different places in it."""
    async with wallet_on(url, wallet, plan=PLAN) as journal:
        async with engine_on(url, wallet, data=data, witness=False) as started:
            for first in range(0, 40, 10):
                await on_record(started, await spend(journal, first=first, count=10))
                await eventually(lambda: started.service._keeper is not None and not started.service._keeper._writing())
        assert len(files(data)) == 3
        yield journal


async def test_m17_with_none_and_with_any_one_snapshot_an_engine_is_the_same_and_says_the_same(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path, every_told: None
) -> None:
    url = nats_server.url
    async with spent(url, wallet_name, tmp_path / "data") as journal:
        for number, file in enumerate([None, *files(tmp_path / "data")]):
            alone = tmp_path / f"alone{number}"
            if file is not None:
                (alone / "snapshots" / wallet_name).mkdir(parents=True)
                shutil.copy(file, alone / "snapshots" / wallet_name)
            async with (
                engine_on(url, wallet_name, data=alone, witness=False) as started,
                engine_on(url, wallet_name) as from_zero,
            ):
                assert started.service.wallet.dump() == from_zero.service.wallet.dump()
                assert started.service.told_seq == from_zero.service.told_seq
                assert started.service.chain == from_zero.service.chain
                last = await spend(journal, first=100 + 5 * number, count=5)
                await on_record(started, last)
                await on_record(from_zero, last)
                assert started.service.wallet.dump() == from_zero.service.wallet.dump()
                assert (await audited(journal)).wallet.dump() == from_zero.service.wallet.dump()


async def test_a_start_reads_on_from_the_snapshot_and_not_from_the_beginning(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    url = nats_server.url
    async with wallet_on(url, wallet_name, plan=PLAN) as journal:
        async with engine_on(url, wallet_name, data=tmp_path, witness=False) as started:
            await on_record(started, await spend(journal, first=0, count=5))
        heard: list[int] = []

        class Listening(Engine):
            async def _on_message(self, stored: rig.Stored) -> None:
                heard.append(stored.seq)
                await super()._on_message(stored)

        async with engine_on(url, wallet_name, data=tmp_path, witness=False, kind=Listening) as started:
            snapshot = Snapshots(tmp_path, wallet_name).newest()
            assert snapshot is not None
            assert heard == list(range(snapshot.wallet.upto + 1, snapshot.told + 1))


async def test_a_snapshot_is_only_ever_of_what_was_told_however_fast_asks_come(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path, every_told: None
) -> None:
    """Each of those written while 300 messages pour in is the fold of the record up to its own told."""
    url = nats_server.url
    async with wallet_on(url, wallet_name, plan=PLAN) as journal:
        async with engine_on(url, wallet_name, data=tmp_path, witness=False) as started:
            await asyncio.gather(*(append(journal, hold(f"h{number}", 1)) for number in range(300)))
            await on_record(started, 301)
        record = await record_of(journal)
        assert rig.audit(record, wallet_name).count(Held) == 300
        check_snapshots(tmp_path, record, wallet_name)


async def test_so_it_is_on_a_standby_that_follows_what_another_tells(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path, every_told: None
) -> None:
    """The other does not wait: its tolds cover messages that the standby has put off for a snapshot."""
    url = nats_server.url
    async with wallet_on(url, wallet_name, plan=PLAN) as journal:
        async with (
            engine_on(url, wallet_name) as eager,
            engine_on(url, wallet_name, data=tmp_path, witness=False, patience_s=30) as by,
        ):
            for first in range(0, 600, 200):
                await asyncio.gather(*(append(journal, hold(f"h{first + number}", 1)) for number in range(200)))
            await on_record(eager, 601)
            await on_record(by, 601)
            assert by.service.wallet.dump() == eager.service.wallet.dump()
        check_snapshots(tmp_path, await record_of(journal), wallet_name)


def check_snapshots(data: Path, record: list[rig.Stored], wallet: str) -> None:
    """There are some, and each is the fold of the record up to its told."""
    assert files(data)
    for file in files(data):
        snapshot = decode(file.read_bytes(), wallet=wallet)
        found = rig.audit((one for one in record if one.seq <= snapshot.told), wallet)
        assert found.told_seqs[-1] == snapshot.told == int(file.stem)
        assert snapshot.wallet.dump() == found.wallet.dump()


async def test_without_a_data_folder_none_is_kept(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path, every_told: None
) -> None:
    async with wallet_on(nats_server.url, wallet_name) as journal:
        async with engine_on(nats_server.url, wallet_name) as started:
            await on_record(started, await append(journal, hold("h")))
        assert files(tmp_path) == []


# --- the stream contradicts it ----------------------------------------------------------------------------------------


async def refused(url: str, wallet: str, data: Path) -> str:
    async with engine_on(url, wallet, data=data, witness=False, ready=False) as started:
        error = await started.end()
    assert isinstance(error, Untrusted)
    return str(error)


async def test_m13_a_snapshot_newer_than_the_stream_stops_the_engine_and_names_what_is_lost(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    url = nats_server.url
    async with wallet_on(url, wallet_name) as journal:
        async with engine_on(url, wallet_name, data=tmp_path, witness=False) as started:
            await on_record(started, await append(journal, hold("h")))
            told = started.service.told_seq
        await rig.remove_stream(journal)
        await journal.ensure_stream()
        await append(journal, hold("other"))
        why = await refused(url, wallet_name, tmp_path)
        assert f"ends at sequence 1, but a snapshot has seen {told}: 2 to {told} are lost" in why


async def test_m13_another_history_of_the_same_length_stops_the_engine(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    url = nats_server.url
    async with wallet_on(url, wallet_name) as journal:
        async with engine_on(url, wallet_name, data=tmp_path, witness=False) as started:
            await on_record(started, await append(journal, hold("h")))
            told = started.service.told_seq
        await rig.remove_stream(journal)
    async with wallet_on(url, wallet_name) as journal:
        async with engine_on(url, wallet_name) as started:
            for number in range(told):
                await on_record(started, await append(journal, hold(f"g{number}")))
        assert f"sequence {told} bears another chain" in await refused(url, wallet_name, tmp_path)


@pytest.mark.parametrize(("seq", "named"), [(1, "sequences 1 to 1"), (3, "sequences 3 to 3")])
async def test_m2_what_is_missing_below_the_snapshot_is_noticed_although_it_is_not_read(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path, seq: int, named: str
) -> None:
    url = nats_server.url
    async with wallet_on(url, wallet_name) as journal:
        async with engine_on(url, wallet_name, data=tmp_path, witness=False) as started:
            await on_record(started, await spend(journal, first=0, count=4))
        record = await record_of(journal)
        await rig.remove_stream(journal)
        await rig.make_stream(journal, deny_delete=False)
        for stored in record:
            await journal.append(stored.kind, stored.data, wait_s=5)  # type: ignore[arg-type]  # it is one of the three
        api = f"STREAM.MSG.DELETE.{journal.names.stream}"
        gone = await journal.api(api, {"seq": seq, "no_erase": True}, rig.Made)
        assert gone.error is None
        await rig.change_stream(journal)
        assert f"{named} are missing" in await refused(url, wallet_name, tmp_path)


# --- killed while writing ---------------------------------------------------------------------------------------------

KILLED = """
import os, signal
import engine.keeper
from engine.__main__ import serve
from engine.process import main

engine.keeper.TOLDS_MAX = 1
there, seen = "{there}", {{"sync": 0}}

def die():
    os.kill(os.getppid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)

real_sync, first = os.fsync, os.getpid()

def sync(descriptor):
    seen["sync"] += os.getpid() != first
    if os.getpid() != first and there == "before the file is on disk":
        die()
    real_sync(descriptor)
    if os.getpid() != first and there == f"after sync {{seen['sync']}}":
        die()

os.fsync = sync
main(serve)
"""


@pytest.mark.parametrize("there", ["before the file is on disk", "after sync 1", "after sync 2"])
async def test_m13_an_engine_killed_while_it_writes_a_snapshot_starts_again_with_the_same_wallet(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path, there: str
) -> None:
    """kill -9 for both, the writing child and the engine: with the file half there, there without a name, there."""
    url = nats_server.url
    environment = {"PURSE_NATS_URL": url, "PURSE_WALLET": wallet_name, "PURSE_DATA": str(tmp_path)}
    async with wallet_on(url, wallet_name, plan=PLAN) as journal:
        async with rig.process_of(["-c", KILLED.format(there=there)], **environment) as process:
            await spend(journal, first=0, count=3)
            assert await process.wait() == -rig.signal.SIGKILL
        await spend(journal, first=3, count=3)
        left = len(files(tmp_path))
        assert left == (there == "after sync 2")
        async with rig.process_of(["-m", "engine"], **environment) as process:
            await process.until("ready")
            assert len(process.events("restored")) == left
            last = await spend(journal, first=6, count=3)
            await eventually(lambda: told_up_to(journal, last))
            process.signal(rig.signal.SIGTERM)
            assert await process.wait() == 0
        found = await audited(journal)
        assert files(tmp_path, "unfinished") == []
        async with engine_on(url, wallet_name, data=tmp_path, witness=False) as started:
            assert started.service.wallet.dump() == found.wallet.dump()


async def told_up_to(journal: Journal, seq: int) -> bool:
    return seq in (await audited(journal)).entries


async def test_a_torn_newest_one_is_left_out_and_the_one_before_is_taken(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path, every_told: None
) -> None:
    url = nats_server.url
    data = tmp_path / "data"
    async with spent(url, wallet_name, data) as journal:
        newest, before = files(data)[-1], files(data)[-2]
        newest.write_bytes(newest.read_bytes()[:-100])
        environment = {"PURSE_NATS_URL": url, "PURSE_WALLET": wallet_name, "PURSE_DATA": str(data)}
        async with rig.process_of(["-m", "engine"], **environment) as process:
            await process.until("ready")
            (skipped,) = process.events("snapshot_skipped")
            (restored,) = process.events("restored")
        assert skipped["file"] == str(newest)
        assert "torn" in skipped["why"]
        assert restored["told"] == int(before.stem)
        async with engine_on(url, wallet_name, data=data, witness=False) as started:
            assert started.service.wallet.dump() == (await audited(journal)).wallet.dump()


def test_the_state_of_a_snapshot_is_readable_json(tmp_path: Path) -> None:
    from engine.core.wallet import Wallet
    from engine.snapshots import Snapshot

    size = Snapshots(tmp_path, "main").write(Snapshot(Wallet("main"), 7, bytes(32)))
    (file,) = files(tmp_path)
    header, _, rest = file.read_bytes().partition(b"\n")
    assert msgspec.json.decode(header)["told"] == 7
    assert msgspec.json.decode(rest[:-32])["name"] == "main"
    assert file.stat().st_size == size
