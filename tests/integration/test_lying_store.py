"""A store that lies: what was acknowledged is gone, and the server says that all is well.

The damage is real: bytes in the block files of a real server, changed while it is stopped.
"""

from __future__ import annotations

import re
import shutil
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import msgspec
import pytest
from integration import rig
from integration.rig import CENT, Started, append, engine_on, eventually, projector_on, record_of, wallet_on

from commonpurse.doctor import Patient, examine
from engine import senders_receipts
from engine.client import Purse
from engine.core.messages import (
    AnyAsk,
    AskMessage,
    Done,
    Exhausted,
    Frozen,
    Held,
    Hold,
    KnownUse,
    Loss,
    Option,
    Settle,
    Settled,
    Stray,
)
from engine.core.meter import Meter
from engine.embedded import EmbeddedServer
from engine.errors import Untrusted
from engine.journal import Journal, Stored
from engine.receipts import Receipt
from engine.service import Engine
from engine.witness import Witness

Damage: TypeAlias = Callable[[Path], None]
CALLS = 12
USED = CALLS * 4 * CENT


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "own"  # where `own_server` keeps its store


def block(data: Path, wallet: str) -> Path:
    """The one file the wallet's messages stand in."""
    (found,) = (data / "nats" / "store").glob(f"jetstream/*/streams/PURSE_{wallet}/msgs/*.blk")
    return found


def flip_a_bit(path: Path) -> None:
    """In the middle of the file."""
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)


def cut_the_tail(path: Path) -> None:
    raw = path.read_bytes()
    path.write_bytes(raw[: 2 * len(raw) // 3])


damaged = pytest.mark.parametrize("damage", [flip_a_bit, cut_the_tail])
stopped = pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGKILL])
"""A server that closed its store has an index beside it, and finds other things missing than one that was killed."""


@asynccontextmanager
async def wallet_in_use(server: EmbeddedServer, wallet: str, data: Path) -> AsyncIterator[Purse]:
    """A wallet with engine and projector, both with their witness, on which some calls have been made."""
    async with (
        wallet_on(server.url, wallet),
        engine_on(server.url, wallet, data=data, snapshots=False) as started,
        projector_on(server.url, wallet, data=data, snapshots=False) as shown,
        Purse.connect(server.url, wallet=wallet) as purse,
    ):
        for number in range(CALLS):
            assert isinstance(await purse.hold({"usd": "0.05"}, id=f"h{number}"), Held)
            assert isinstance(await purse.settle(f"h{number}", {"usd": "0.04"}), Settled)
        await eventually(lambda: shown.service._seen().told == started.service.told_seq)
        seen = shown.service._seen().seq
        await eventually(lambda: shown.service._kept is not None and shown.service._kept.seq >= seen)
        yield purse


async def spoil(server: EmbeddedServer, wallet: str, data: Path, damage: Damage, stop: signal.Signals) -> None:
    """Damage the store while its server does not run."""
    server.kill(stop)
    await server.wait()
    damage(block(data, wallet))
    await server.start()


async def read_back(journal: Journal) -> list[Stored]:
    """Everything that can still be read."""
    found = [await journal.read(one) for one in range(1, await journal.last_seq() + 1)]
    return [stored for stored in found if stored is not None]


def meter_of(engine: Engine) -> Meter:
    (meter,) = engine.wallet.metering.values()
    return meter


async def refused(url: str, wallet: str, data: Path | None) -> Untrusted:
    """An engine that does not start, and why."""
    async with engine_on(url, wallet, data=data, snapshots=False, ready=False) as started:
        error = await started.end()
    assert isinstance(error, Untrusted)
    return error


@damaged
@stopped
async def test_m2_an_engine_on_a_store_that_lost_something_refuses_and_names_the_range(
    own_server: EmbeddedServer, wallet_name: str, data: Path, damage: Damage, stop: signal.Signals
) -> None:
    async with wallet_in_use(own_server, wallet_name, data):
        pass
    await spoil(own_server, wallet_name, data, damage, stop)
    async with Journal.connect(own_server.url, wallet=wallet_name) as journal:
        left = await journal.last_seq()
        asked = await append(journal, Hold("greedy", [Option({"usd": 90 * CENT})], by=2**62))
        error = await refused(own_server.url, wallet_name, data)
        assert re.search(r"\d+ to \d+ are (lost|missing)|up to 50 some are lost", str(error)), error
        assert "purse doctor" in str(error)
        assert await journal.next_of("told", left) is None  # nothing was decided, so nothing was granted
        assert await journal.last_seq() == asked


@damaged
@stopped
async def test_m2_with_an_accepted_loss_the_wallet_goes_on_and_counts_what_was_known(
    own_server: EmbeddedServer, wallet_name: str, data: Path, damage: Damage, stop: signal.Signals
) -> None:
    async with wallet_in_use(own_server, wallet_name, data):
        pass
    await spoil(own_server, wallet_name, data, damage, stop)
    patient = Patient(data=data, wallet=wallet_name, nats=own_server.url)
    report = await examine(patient)
    assert (report.exit_code, report.lost != []) == (4, True)
    accepted = await examine(patient, accept_loss=True, by_whom="ops", reason="a test")
    assert accepted.loss is not None, accepted.findings
    assert accepted.exit_code == 0
    assert (accepted.loss.used, accepted.loss.freeze) == ([KnownUse("jev", "total", USED)], [])

    async with (
        engine_on(own_server.url, wallet_name, data=data, snapshots=False) as started,
        projector_on(own_server.url, wallet_name, data=data, snapshots=False),
        Purse.connect(own_server.url, wallet=wallet_name) as purse,
    ):
        await eventually(lambda: not started.service._decided)
        assert meter_of(started.service).used >= USED
        assert isinstance(await purse.hold({"usd": "0.53"}), Exhausted)
        assert isinstance(await purse.hold({"usd": "0.05"}, id="new"), Held)
        assert isinstance(await purse.settle("new", {"usd": "0.05"}), Settled)
        state = started.service.wallet.dump()
    # again, from the record alone
    async with engine_on(own_server.url, wallet_name, data=data, snapshots=False) as started:
        assert started.service.wallet.dump() == state
    assert (await examine(patient)).exit_code == 0
    async with Journal.connect(own_server.url, wallet=wallet_name) as journal:
        assert any(b'"ask":"loss"' in stored.data for stored in await read_back(journal))


async def test_what_no_projector_saw_to_the_end_is_frozen_until_it_resets(
    own_server: EmbeddedServer, wallet_name: str, data: Path
) -> None:
    async with wallet_in_use(own_server, wallet_name, data):
        pass
    async with (
        engine_on(own_server.url, wallet_name, data=data, snapshots=False),
        Purse.connect(own_server.url, wallet=wallet_name) as purse,
    ):
        assert isinstance(await purse.hold({"usd": "0.40"}, id="unseen"), Held)
    await spoil(own_server, wallet_name, data, flip_a_bit, signal.SIGKILL)
    report = await examine(Patient(data=data, wallet=wallet_name, nats=own_server.url), accept_loss=True)
    assert report.loss is not None
    assert (report.loss.used, report.loss.freeze) == ([KnownUse("jev", "total", USED)], ["jev"])
    async with (
        engine_on(own_server.url, wallet_name, data=data, snapshots=False),
        Purse.connect(own_server.url, wallet=wallet_name) as purse,
    ):
        assert isinstance(await purse.hold({"usd": "0.01"}), Frozen)
        assert isinstance(await purse.settle("unseen", {"usd": "0.40"}), Stray)
        assert isinstance(await purse.thaw("jev"), Done)
        assert isinstance(await purse.hold({"usd": "0.20"}), Exhausted)


async def test_m3_a_store_that_begins_again_is_refused_even_when_as_many_messages_came_since(
    own_server: EmbeddedServer, wallet_name: str, data: Path
) -> None:
    async with wallet_in_use(own_server, wallet_name, data):
        pass
    async with Journal.connect(own_server.url, wallet=wallet_name) as journal:
        seen = await journal.last_seq()
    await begin_again(own_server, wallet_name, data)
    async with wallet_on(own_server.url, wallet_name) as journal:
        assert "are lost" in str(await refused(own_server.url, wallet_name, data))
        async with engine_on(own_server.url, wallet_name):  # one that has no witness
            while await journal.last_seq() <= seen:
                await append(journal)
        assert "does not hold the told that was seen there" in str(await refused(own_server.url, wallet_name, data))


async def begin_again(server: EmbeddedServer, wallet: str, data: Path) -> None:
    await server.stop()
    shutil.rmtree(block(data, wallet).parents[1])
    await server.start()


async def test_a_loss_excuses_no_second_one_in_the_same_range(
    own_server: EmbeddedServer, wallet_name: str, data: Path
) -> None:
    async with wallet_in_use(own_server, wallet_name, data):
        pass
    await begin_again(own_server, wallet_name, data)
    async with wallet_on(own_server.url, wallet_name) as journal:
        await append(journal, Loss("l", 1, 10_000, "the first"))
        async with engine_on(own_server.url, wallet_name, data=data, snapshots=False) as started:
            await eventually(lambda: not started.service._decided)
    await begin_again(own_server, wallet_name, data)
    async with wallet_on(own_server.url, wallet_name) as journal:
        await append(journal, Loss("l", 1, 10_000, "the first"))
        assert "lost" in str(await refused(own_server.url, wallet_name, data))
        await append(journal, Loss("l2", 1, 10_000, "the second"))
        async with engine_on(own_server.url, wallet_name, data=data, snapshots=False) as started:
            await eventually(lambda: not started.service._decided)


# --- receipts ---------------------------------------------------------------------------------------------------------


async def test_a_receipt_for_what_the_stream_has_lost_stops_an_engine_without_a_witness(
    own_server: EmbeddedServer, wallet_name: str, data: Path
) -> None:
    async with wallet_in_use(own_server, wallet_name, data) as purse:
        receipt = Receipt(*purse.receipt)
    await begin_again(own_server, wallet_name, data)
    async with wallet_on(own_server.url, wallet_name) as journal:
        async with engine_on(own_server.url, wallet_name) as started:
            await eventually(lambda: started.service.told_seq)
            await append_seen(journal, Hold("greedy", [Option({"usd": 90 * CENT})], by=2**62), receipt)
            error = await started.end()
        assert isinstance(error, Untrusted)
        assert f"{receipt.told:,} to {receipt.told:,} are lost" in str(error)
        assert isinstance(await refused(own_server.url, wallet_name, None), Untrusted)  # and every one after it
        await append(journal, Loss("l", receipt.told, receipt.told, "accepted"))
        async with engine_on(own_server.url, wallet_name) as started:
            await eventually(lambda: started.service.ready.is_set() and not started.service._decided)


async def append_seen(journal: Journal, ask: AnyAsk, seen: Receipt | str) -> int:
    raw = msgspec.json.encode(AskMessage(asks=[ask]))
    return (await journal.append("ask", raw, wait_s=rig.WITHIN_S, seen=str(seen))).seq


async def told_up_to(started: Started[Engine], seq: int) -> None:
    engine = started.service
    await eventually(lambda: engine.wallet.upto >= seq and not engine._decided)


async def test_a_receipt_with_another_chain_than_stands_there_stops_the_engine(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with wallet_on(nats_server.url, wallet_name) as journal, engine_on(nats_server.url, wallet_name) as started:
        await eventually(lambda: started.service.told_seq)
        await append_seen(journal, Settle("x", release=True), Receipt(started.service.told_seq, "0" * 64))
        assert isinstance(await started.end(), Untrusted)


async def test_receipts_that_stand_are_taken_from_memory_or_from_the_stream(
    nats_server: EmbeddedServer, wallet_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(senders_receipts, "RECENT_TOLDS", 2)
    async with wallet_on(nats_server.url, wallet_name) as journal, engine_on(nats_server.url, wallet_name) as started:
        await eventually(lambda: started.service.told_seq)
        first = Receipt(started.service.told_seq, started.service.chain.hex())
        async with Purse.connect(nats_server.url, wallet=wallet_name) as purse:
            for number in range(5):
                assert isinstance(await purse.hold({"usd": "0.01"}, id=f"h{number}"), Held)
        await told_up_to(started, await append_seen(journal, Settle("h0", release=True), first))


@pytest.mark.parametrize("seen", ["", "nonsense", "0 " + "0" * 64, "5 short", "-1 " + "a" * 64])
async def test_a_header_that_is_no_receipt_stops_nobody(
    nats_server: EmbeddedServer, wallet_name: str, seen: str
) -> None:
    async with wallet_on(nats_server.url, wallet_name) as journal, engine_on(nats_server.url, wallet_name) as started:
        await told_up_to(started, await append_seen(journal, Settle("x", release=True), seen))


async def test_a_client_sends_its_newest_receipt_along(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        engine_on(nats_server.url, wallet_name),
        Purse.connect(nats_server.url, wallet=wallet_name) as purse,
    ):
        await purse.hold({"usd": "0.01"}, id="a")
        receipt = Receipt(*purse.receipt)
        await purse.release("a")
        (sent,) = [stored for stored in await record_of(journal) if stored.seen]
        assert Receipt.read(sent.seen) == receipt
        assert await receipt.stands_on(journal)


# --- the witness ------------------------------------------------------------------------------------------------------


async def test_a_witness_is_at_most_a_second_behind_and_exact_after_a_clean_stop(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    witness = Witness(tmp_path, wallet_name, "engine")
    async with wallet_on(nats_server.url, wallet_name) as journal:
        async with engine_on(nats_server.url, wallet_name, data=tmp_path, snapshots=False) as started:
            await append(journal, Settle("x", release=True))
            await eventually(lambda: (seen := witness.read("engine")) is not None and seen.told > 2)
            await told_up_to(started, await append(journal, Settle("y", release=True)))
        seen = witness.read("engine")
        assert seen is not None
        assert (seen.seq, seen.told) == (await journal.last_seq(), await journal.last_seq())
        assert await Receipt(seen.told, seen.chain).stands_on(journal)


async def test_a_damaged_witness_is_skipped_but_the_other_one_counts(
    own_server: EmbeddedServer, wallet_name: str, data: Path
) -> None:
    async with wallet_in_use(own_server, wallet_name, data):
        pass
    await begin_again(own_server, wallet_name, data)
    async with wallet_on(own_server.url, wallet_name):
        flip_a_bit(data / "witness" / f"{wallet_name}-engine.json")
        assert "are lost" in str(await refused(own_server.url, wallet_name, data))
        flip_a_bit(data / "witness" / f"{wallet_name}-projector.json")
        async with engine_on(own_server.url, wallet_name, data=data, snapshots=False) as started:
            await eventually(lambda: started.service.told_seq)


async def test_a_projector_refuses_what_its_witness_contradicts(
    own_server: EmbeddedServer, wallet_name: str, data: Path
) -> None:
    async with wallet_in_use(own_server, wallet_name, data):
        pass
    await begin_again(own_server, wallet_name, data)
    async with (
        wallet_on(own_server.url, wallet_name),
        projector_on(own_server.url, wallet_name, data=data, snapshots=False, ready=False) as started,
    ):
        error = await started.end()
    assert isinstance(error, Untrusted)
    assert "are lost" in str(error)


async def test_the_engine_process_ends_with_exit_code_4_on_a_store_that_lost_something(
    own_server: EmbeddedServer, wallet_name: str, data: Path
) -> None:
    async with wallet_in_use(own_server, wallet_name, data):
        pass
    await begin_again(own_server, wallet_name, data)
    environment = {"PURSE_NATS_URL": own_server.url, "PURSE_WALLET": wallet_name, "PURSE_DATA": str(data)}
    async with wallet_on(own_server.url, wallet_name), rig.process_of(["-m", "engine"], **environment) as process:
        assert await process.wait() == 4
        assert "are lost" in process.events("stream_not_trusted")[0]["why"]
