"""A store with holes before the snapshot from which a start would read on: it is asked, and it says so.

The damage is real, as in `test_lying_store`: bytes in the block files of a stopped server. The wallet here has several
blocks, and its engine and projector keep snapshots.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from integration import rig
from integration.rig import CENT, DOLLAR, append, append_raw, engine_on, eventually, projector_on, wallet_on

from commonpurse.doctor import Patient, Report, examine
from engine.core.messages import Exhausted, Frozen, Held, Hold, Loss, Option, Settle
from engine.core.plan import Budget, Plan
from engine.embedded import EmbeddedServer
from engine.errors import Untrusted
from engine.holes import _holes, _State, holes
from engine.journal import Journal
from engine.snapshots import Snapshots

PLAN = Plan({"jev": rig.JEV, "user": Budget("usd", DOLLAR, per="total", each="user")})
CALLS = 44
USED = CALLS * CENT
FILLER = b"x" * 500_000  # no ask: told `invalid`, and a block holds sixteen of them

Damage: TypeAlias = Callable[[list[Path]], None]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "own"  # where `own_server` keeps its store


def flip_a_bit(blocks: list[Path]) -> None:
    """In the middle of a middle block."""
    raw = bytearray(blocks[1].read_bytes())
    raw[len(raw) // 2] ^= 1
    blocks[1].write_bytes(raw)


def lose_a_block(blocks: list[Path]) -> None:
    blocks[1].unlink()


def cut_a_block(blocks: list[Path]) -> None:
    raw = blocks[1].read_bytes()
    blocks[1].write_bytes(raw[: 2 * len(raw) // 3])


def cut_the_tail(blocks: list[Path]) -> None:
    raw = blocks[-1].read_bytes()
    blocks[-1].write_bytes(raw[:-600_000])


BEFORE = [
    pytest.param(flip_a_bit, signal.SIGKILL, id="a bit flipped, killed"),
    pytest.param(lose_a_block, signal.SIGTERM, id="a block gone, closed"),
    pytest.param(lose_a_block, signal.SIGKILL, id="a block gone, killed"),
    pytest.param(cut_a_block, signal.SIGTERM, id="a block cut, closed"),
    pytest.param(cut_a_block, signal.SIGKILL, id="a block cut, killed"),
]
"""What is done to a block before the snapshot. A bit flipped in a store that was closed is the one thing it hides."""


def blocks_of(data: Path, wallet: str) -> list[Path]:
    found = (data / "nats" / "store").glob(f"jetstream/*/streams/PURSE_{wallet}/msgs/*.blk")
    return sorted(found, key=lambda path: int(path.stem))


def hold(id: str, cents: int, user: str = "alice") -> Hold:
    return Hold(id, [Option({"usd": cents * CENT})], by=rig.time.time_ns() + 60 * rig.SECOND, labels={"user": user})


async def spend(journal: Journal, *, first: int, count: int) -> int:
    """Calls of alice's that cost a cent each, and much that nobody can read. The last sequence."""
    last = 0
    for number in range(first, first + count):
        await append_raw(journal, FILLER)
        last = await append(journal, hold(f"h{number}", 1), Settle(f"h{number}", {"usd": CENT}))
    return last


async def use(server: EmbeddedServer, wallet: str, data: Path) -> None:
    """A wallet of several blocks; engine and projector have stopped cleanly and left a snapshot at its end."""
    async with (
        wallet_on(server.url, wallet, plan=PLAN) as journal,
        engine_on(server.url, wallet, data=data) as started,
        projector_on(server.url, wallet, data=data) as shown,
    ):
        await rig.told_up_to(started, await spend(journal, first=0, count=CALLS))
        await eventually(lambda: shown.service.projection.wallet.upto == started.service.wallet.upto)
    assert len(blocks_of(data, wallet)) >= 3


async def spoil(server: EmbeddedServer, wallet: str, data: Path, damage: Damage, stop: signal.Signals) -> None:
    """Damage the store while its server does not run."""
    server.kill(stop)
    await server.wait()
    damage(blocks_of(data, wallet))
    await server.start()


async def refused(server: EmbeddedServer, wallet: str, data: Path, *, witness: bool = True) -> str:
    """Why an engine does not start, although somebody asks; it has told nothing."""
    async with Journal.connect(server.url, wallet=wallet) as journal:
        left = await journal.last_seq()
        async with engine_on(server.url, wallet, data=data, witness=witness, ready=False) as started:
            error = await started.end()
        assert isinstance(error, Untrusted)
        assert await journal.last_seq() == left
    return str(error)


async def accepted(server: EmbeddedServer, wallet: str, data: Path) -> Loss:
    patient = Patient(data=data, wallet=wallet, nats=server.url)
    report: Report = await examine(patient)
    assert (report.exit_code, report.lost != []) == (4, True)
    report = await examine(patient, accept_loss=True, by_whom="ops", reason="a test")
    assert report.loss is not None, report.findings
    assert report.exit_code == 0
    return report.loss


@pytest.mark.parametrize(("damage", "stop"), BEFORE)
async def test_m2_a_hole_before_the_snapshot_stops_the_engine_and_an_accepted_loss_lets_it_go_on(
    own_server: EmbeddedServer, wallet_name: str, data: Path, damage: Damage, stop: signal.Signals
) -> None:
    await use(own_server, wallet_name, data)
    await spoil(own_server, wallet_name, data, damage, stop)
    snapshot = Snapshots(data, wallet_name).newest()
    assert snapshot is not None
    async with Journal.connect(own_server.url, wallet=wallet_name) as journal:
        found = await holes(journal)
    assert found[0].last < snapshot.told
    for witness in (True, False):
        why = await refused(own_server, wallet_name, data, witness=witness)
        assert f"sequences {found[0].first:,} to {found[0].last:,} are missing from the stream" in why
        assert "purse doctor" in why

    loss = await accepted(own_server, wallet_name, data)
    assert loss.from_seq <= found[0].first <= found[-1].last <= loss.to_seq
    assert [(use.budget, use.each, use.used) for use in loss.used if use.budget == "user"] == [("user", "alice", USED)]
    assert loss.freeze == []
    await goes_on(own_server, wallet_name, data)


async def test_m2_a_tail_cut_behind_the_snapshot_stops_the_engine_and_an_accepted_loss_lets_it_go_on(
    own_server: EmbeddedServer, wallet_name: str, data: Path
) -> None:
    await use(own_server, wallet_name, data)
    async with (
        Journal.connect(own_server.url, wallet=wallet_name) as journal,
        engine_on(own_server.url, wallet_name, data=data) as started,
        projector_on(own_server.url, wallet_name, data=data) as shown,
    ):
        started.service._keeper = None  # it dies without a snapshot of its own, and so does the projector
        shown.service._keeper = None
        last = await spend(journal, first=CALLS, count=4)
        await rig.told_up_to(started, last)
        await eventually(lambda: shown.service.projection.wallet.upto == last)
    await spoil(own_server, wallet_name, data, cut_the_tail, signal.SIGKILL)
    why = await refused(own_server, wallet_name, data)
    assert "are lost" in why
    assert "purse doctor" in why
    loss = await accepted(own_server, wallet_name, data)
    # the documents went further than the snapshots: what alice used since is known only as a sum
    assert [(use.budget, use.used) for use in loss.used] == [("jev", USED + 4 * CENT)]
    assert loss.freeze == ["user"]
    async with (
        engine_on(own_server.url, wallet_name, data=data) as started,
        Journal.connect(own_server.url, wallet=wallet_name) as journal,
    ):
        asked = await append(journal, hold("more", 1))
        await rig.told_up_to(started, asked)
        assert isinstance((await rig.outcomes_of(journal, asked))[0], Frozen)


async def test_a_bit_that_flipped_while_the_store_was_closed_costs_nothing_and_is_found_by_the_doctor_alone(
    own_server: EmbeddedServer, wallet_name: str, data: Path
) -> None:
    """The store says that all is well. The snapshot has what was told, so nothing is granted twice."""
    await use(own_server, wallet_name, data)
    await spoil(own_server, wallet_name, data, flip_a_bit, signal.SIGTERM)
    async with Journal.connect(own_server.url, wallet=wallet_name) as journal:
        assert await holes(journal) == []
    async with engine_on(own_server.url, wallet_name, data=data) as started:
        assert [meter.used for meter in started.service.wallet.metering.values()] == [USED, USED]
    report = await examine(Patient(data=data, wallet=wallet_name, nats=own_server.url))
    ((first, last),) = report.lost
    assert (report.exit_code, first) == (4, last)


async def goes_on(server: EmbeddedServer, wallet: str, data: Path) -> None:
    """Alice has what is left of her dollar and no more; a start after the next snapshot need not read it all again."""
    async with (
        engine_on(server.url, wallet, data=data) as started,
        Journal.connect(server.url, wallet=wallet) as journal,
    ):
        await eventually(lambda: not started.service._decided)
        assert all(meter.used >= USED for meter in started.service.wallet.metering.values())
        asked = await append(journal, hold("big", 100 - CALLS + 1), hold("bob", 1, "bob"), hold("fits", 1))
        await rig.told_up_to(started, asked)
        assert [type(one) for one in await rig.outcomes_of(journal, asked)] == [Exhausted, Held, Held]
        state = started.service.wallet.dump()
    heard: list[int] = []

    class Listening(rig.Engine):
        async def _on_message(self, stored: rig.Stored) -> None:
            heard.append(stored.seq)
            await super()._on_message(stored)

    async with engine_on(server.url, wallet, data=data, kind=Listening) as started:
        assert started.service.wallet.dump() == state
        assert min(heard) > asked
    async with engine_on(server.url, wallet) as started:
        assert started.service.wallet.dump() == state


# --- what a store says ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "ranges"),
    [
        (_State(), []),
        (_State(messages=9, first_seq=1, last_seq=9), []),
        (_State(messages=6, first_seq=4, last_seq=9), [(1, 3)]),
        (_State(messages=0, first_seq=10, last_seq=9), [(1, 9)]),
        (_State(messages=6, first_seq=1, last_seq=9, num_deleted=3, deleted=[2, 3, 7]), [(2, 3), (7, 7)]),
        (_State(messages=0, first_seq=0, last_seq=0, num_deleted=1, deleted=[0]), []),
        (_State(messages=7, first_seq=1, last_seq=9, num_deleted=2), [(1, 9)]),
        (_State(messages=5, first_seq=1, last_seq=9), [(1, 9)]),
    ],
)
def test_the_ranges_a_store_misses_are_named_each_by_itself(state: _State, ranges: list[tuple[int, int]]) -> None:
    assert [(hole.first, hole.last) for hole in _holes(state)] == ranges
