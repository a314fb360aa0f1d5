"""Single troubles with what lies on disk: spools, snapshots and witnesses, and a stream that has lost what they saw.

As in `test_scenarios.py`: every world that can be trusted is judged; where one must not be, nothing more is decided.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path

import pytest
from simulation.judge import live
from simulation.virtual_time import Fuse, Process
from simulation.world import EVERYTHING, World

from engine.snapshots import SUFFIX

EAGER = 0.0
END = 8  # where a stream ends that has lost the rest


def world_of(
    seed: int, befalls: Callable[[World], Awaitable[None]], *, keeps: Collection[str] = EVERYTHING, engines: int = 1
) -> World:
    """One client, and an engine that takes a snapshot every two seconds."""
    world = World(seed, engines=[EAGER] * engines, clients=1, calls=6, storm_s=30.0, befalls=befalls, keeps=keeps)
    world.snapshot_after_s = 2.0
    return world


def die(process: Process) -> None:
    process.kill()


# --- the spool --------------------------------------------------------------------------------------------------------


async def settle_unheard(world: World) -> Process:
    """The stream takes nothing from the client, which is handed a settlement and keeps it. Returns its process."""
    await asyncio.sleep(1)
    slot = world.client_slots[0]
    world.storm.open("full", slot.name, for_s=1000.0, chance=1.0)
    world.settle_more(slot)
    await asyncio.sleep(5)
    assert world.disk.kept()
    return slot.process


def test_what_was_handed_to_a_client_that_is_killed_comes_back_once_with_the_next() -> None:
    async def kill(world: World) -> None:
        process = await settle_unheard(world)
        process.kill()
        await asyncio.sleep(world.storm_s)

    seen = live(world_of(1, kill))
    assert seen["spool drained"]
    assert seen["told stray"]


def test_what_was_kept_outlives_one_client_after_the_other_until_the_stream_takes_it() -> None:
    """Each adopts it, tries in vain and dies: nothing is struck before it is acknowledged."""

    async def kill_three(world: World) -> None:
        await settle_unheard(world)
        for _ in range(3):
            world.client_slots[0].process.kill()
            await asyncio.sleep(8)

    world = world_of(2, kill_three)
    assert live(world)["spool drained"] >= 3
    assert world.client_slots[0].starts >= 4


def test_what_is_said_to_be_kept_outlives_a_power_cut() -> None:
    """From many seeds: half of the dead lose what they had not synced."""
    cut = 0
    for seed in range(4):

        async def kill(world: World) -> None:
            process = await settle_unheard(world)
            for _ in range(6):
                world.settle_more(world.client_slots[0])
                await asyncio.sleep(0.7)
            process.kill()
            await asyncio.sleep(world.storm_s)

        cut += live(world_of(seed, kill))["spool drained"]
    assert cut


@pytest.mark.parametrize("step", ["spool write", "spool sync"])
def test_a_client_may_die_in_the_middle_of_keeping_what_it_was_handed(step: str) -> None:
    async def kill(world: World) -> None:
        await asyncio.sleep(1)
        slot = world.client_slots[0]
        world.storm.open("full", slot.name, for_s=12.0, chance=1.0)
        slot.process.fuse = Fuse(2, step, die)
        for _ in range(4):
            world.settle_more(slot)
            await asyncio.sleep(1.5)
        assert not slot.process.alive or slot.starts > 1
        await asyncio.sleep(world.storm_s)

    assert live(world_of(3, kill))["spool drained"]


def test_what_a_living_client_keeps_is_left_to_it() -> None:
    """Two in one folder: only the lock says whose file it is."""

    async def restart_the_other(world: World) -> None:
        for slot in world.client_slots:
            slot.folder = "clients"
        await asyncio.sleep(0.5)
        for slot in world.client_slots:
            slot.process.kill()
        await asyncio.sleep(3)
        one, other = world.client_slots
        world.storm.open("full", one.name, for_s=1000.0, chance=1.0)
        world.settle_more(one)
        await asyncio.sleep(5)
        kept = world.disk.kept()
        assert kept
        keeper = one.process
        other.process.kill()
        await asyncio.sleep(5)
        assert other.running
        assert one.process is keeper
        assert world.disk.kept()[: len(kept)] == kept, "the other took it"
        await asyncio.sleep(world.storm_s)

    live(World(4, engines=[EAGER], clients=2, calls=4, storm_s=20.0, befalls=restart_the_other, keeps=EVERYTHING))


# --- snapshots --------------------------------------------------------------------------------------------------------


async def snapshots_in(world: World, *, after: int = 0) -> list[Path]:
    """The engine's snapshots, once there is one of a told behind `after`; the newest first."""
    folder = world.disk.folder / world.engine_slots[0].folder
    while True:
        found = sorted(folder.glob(f"snapshots/*/*{SUFFIX}"), reverse=True)
        if found and int(found[0].stem) > after:
            return found
        await asyncio.sleep(0.5)


def kill_those_who_follow(world: World) -> None:
    for slot in (*world.engine_slots, world.projector_slot):
        slot.process.kill()


def test_a_snapshot_that_was_altered_is_left_out() -> None:
    """Money made smaller by one bit: the file is still a wallet, and only its hash tells."""

    async def alter(world: World) -> None:
        await asyncio.sleep(15)
        for path in await snapshots_in(world, after=20):
            raw = path.read_bytes()
            place = raw.index(b'"settled":') + len(b'"settled":')
            path.write_bytes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
        kill_those_who_follow(world)
        await asyncio.sleep(world.storm_s)

    assert live(world_of(5, alter, keeps={"spool", "snapshots"}))["a snapshot was skipped"]


def test_a_snapshot_is_never_of_what_was_not_told() -> None:
    """An engine that is kept from telling decides on, and dies: what it decided last is nowhere."""

    async def silence_and_kill(world: World) -> None:
        for _ in range(6):
            world.settle_more(world.client_slots[0])
            await asyncio.sleep(2)
            world.storm.open("appends", "engine0", for_s=2.5, chance=1.0)
            world.settle_more(world.client_slots[0])
            await asyncio.sleep(2.5)
            world.engine_slots[0].process.kill()

    assert live(world_of(6, silence_and_kill))["snapshot restored"]


def test_who_was_told_something_asks_an_engine_that_begins_right_behind_it() -> None:
    """Found by a seed: the newest told at a start from a snapshot was taken for one that is not there."""

    async def stop_and_start(world: World) -> None:
        for _ in range(5):
            await asyncio.sleep(4)
            world.engine_slots[0].stop()
            await asyncio.sleep(1)
        await asyncio.sleep(10)

    world = world_of(7, stop_and_start)
    assert live(world)["snapshot restored"]
    assert any(stored.seen for stored in world.record)


@pytest.mark.parametrize("seed", range(4))
def test_an_engine_may_read_an_old_receipt_while_another_tells(seed: int) -> None:
    """Found by a seed: what it was about to tell had been told meanwhile."""

    async def restart_one(world: World) -> None:
        for _ in range(6):
            await asyncio.sleep(3)
            world.settle_more(world.client_slots[0])
            world.storm.open("replies", "client0", for_s=4.0, chance=1.0)  # its receipt grows old
            await asyncio.sleep(1)
            world.engine_slots[1].stop()  # and who begins anew has to look for it on the stream

    world = World(
        seed, engines=[EAGER, EAGER], clients=1, calls=20, storm_s=30.0, befalls=restart_one, keeps=EVERYTHING
    )
    assert live(world)["snapshot restored"]


# --- a stream that has lost its end -----------------------------------------------------------------------------------


def distrust(world: World) -> str:
    """Why a program of this world stopped and must not be started again. Fails if all went on as if nothing were."""
    why = ""
    try:
        world.run()
    except AssertionError as error:
        why = str(error)
    assert "Untrusted" in why, f"nobody noticed: {why}"
    return why


def losing(keeps: Collection[str], *, clients_too: bool) -> Callable[[World], Awaitable[None]]:
    """Whoever follows dies, the store loses its last messages, and they start again."""

    async def lose(world: World) -> None:
        await asyncio.sleep(20)
        if "snapshots" in keeps:
            await snapshots_in(world, after=END)
        kill_those_who_follow(world)
        if clients_too:
            world.client_slots[0].process.kill()
        world.server_down()
        world.server.lose_end(world.stream.name, after=END)
        world.server_up()
        await asyncio.sleep(20)
        world.settle_more(world.client_slots[0])
        await asyncio.sleep(10)

    return lose


@pytest.mark.parametrize("seed", range(2))
def test_m2_a_witness_has_seen_more_than_the_stream_has(seed: int) -> None:
    keeps = {"witness"}
    why = distrust(world_of(seed, losing(keeps, clients_too=True), keeps=keeps))
    assert "are lost" in why


@pytest.mark.parametrize("seed", range(2))
def test_m13_a_snapshot_has_seen_more_than_the_stream_has(seed: int) -> None:
    keeps = {"snapshots"}
    why = distrust(world_of(seed, losing(keeps, clients_too=True), keeps=keeps))
    assert "a snapshot has seen" in why


@pytest.mark.parametrize("seed", range(2))
def test_m2_a_client_was_told_more_than_the_stream_has(seed: int) -> None:
    """Nothing lies on disk; but its next ask brings the receipt."""
    why = distrust(world_of(seed, losing((), clients_too=False), keeps=()))
    assert "whoever sent message" in why
