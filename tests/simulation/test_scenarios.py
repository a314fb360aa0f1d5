"""Single troubles, each in a world of its own: what the design promises of it, shown and not only survived.

The seeds only vary when things happen. Every world is judged as in `test_simulation.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec
import pytest
from simulation.judge import live
from simulation.memory_nats import Append
from simulation.virtual_time import Fuse, Process
from simulation.world import NATS, PLAN, World

from engine.client import Purse
from engine.core.messages import Again, Cooling, Entry, Exhausted, Held, Hold, Settle, Told
from engine.core.plan import Guard
from engine.journal import WRONG_LAST_SEQUENCE

ASLEEP_S = 60.0
EAGER, PATIENT = 0.0, 0.15


def tolds_of(world: World, process: Process) -> list[Append]:
    """What this process tried to tell."""
    return [append for append in world.appends if append.process is process and append.subject.endswith("told")]


def striking(window: str, place: str, *, chance: float = 1.0) -> Callable[[World], Awaitable[None]]:
    async def strike(world: World) -> None:
        world.storm.open(window, place, for_s=world.storm_s, chance=chance)
        await asyncio.sleep(world.storm_s)

    return strike


# --- engines ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("told", [1, 2, 5])
@pytest.mark.parametrize("patience_s", [EAGER, PATIENT], ids=["eager", "patient"])
def test_m12_an_engine_that_slept_between_deciding_and_telling_is_refused_and_follows(
    told: int, patience_s: float
) -> None:
    """SIGSTOP with a told on its lips; SIGCONT a minute later, when another has long spoken in its place."""

    async def sleep(world: World) -> None:
        def sleep_alone(process: Process) -> None:
            for slot in world.engine_slots:
                slot.process.fuse = None
            asleep.append(process)
            world.troubles.sleeping(for_s=ASLEEP_S)(process)

        for slot in world.engine_slots:
            slot.process.fuse = Fuse(told, "before told", sleep_alone)
        await asyncio.sleep(world.storm_s)

    asleep: list[Process] = []
    world = World(40 + told, engines=[patience_s, PATIENT], clients=2, calls=8, storm_s=90.0, befalls=sleep)
    live(world)
    (sleeper,) = asleep
    (other,) = (slot.process for slot in world.engine_slots if slot.process is not sleeper)
    assert [slot.starts for slot in world.engine_slots] == [1, 1], "nobody was started again"
    refused = [append for append in tolds_of(world, sleeper) if append.code]
    assert {append.code for append in refused} <= WRONG_LAST_SEQUENCE
    woken = refused[0]
    assert woken.data not in {stored.data for stored in world.record}, "what it had on its lips is not on the record"
    spoken = tolds_of(world, other)
    assert any(append.seq > (woken.after or 0) for append in spoken), "the other took over"


def test_a_standby_says_nothing_while_the_other_speaks() -> None:
    world = World(1, engines=[EAGER, PATIENT], clients=3, calls=10, storm_s=20.0, befalls=striking("none", ""))
    live(world)
    speaker, standby = (slot.process for slot in world.engine_slots)
    assert len(tolds_of(world, speaker)) > 20
    assert tolds_of(world, standby) == []


def test_a_standby_takes_over_where_the_other_died() -> None:
    async def kill(world: World) -> None:
        def kill_alone(process: Process) -> None:
            for slot in world.engine_slots:
                slot.process.fuse = None
            process.kill()

        for slot in world.engine_slots:
            slot.process.fuse = Fuse(3, "before told", kill_alone)
        await asyncio.sleep(world.storm_s)

    world = World(2, engines=[PATIENT, PATIENT], clients=2, calls=8, storm_s=20.0, befalls=kill)
    assert live(world)["takeover"]


@pytest.mark.parametrize("seed", range(3))
def test_a_told_whose_acknowledgement_is_lost_is_told_once(seed: int) -> None:
    """The engine learns from the stream, not from the acknowledgement, that its told is there."""
    world = World(
        seed, engines=[EAGER], clients=2, calls=8, storm_s=20.0, befalls=striking("acks", "engine0", chance=0.7)
    )
    assert live(world)["an acknowledgement was lost"]


@pytest.mark.parametrize("seed", range(3))
def test_a_told_that_comes_twice_counts_once(seed: int) -> None:
    world = World(seed, engines=[EAGER], clients=2, calls=8, storm_s=20.0, befalls=striking("repeats", "engine0"))
    seen = live(world)
    assert seen["a told came twice"]
    assert seen["fenced engine"]


@pytest.mark.parametrize("seed", range(3))
def test_a_delivery_that_is_lost_is_noticed_and_read_again(seed: int) -> None:
    strike = striking("deliveries", "engine0", chance=0.3)
    world = World(seed, engines=[EAGER], clients=2, calls=8, storm_s=20.0, befalls=strike)
    assert live(world)["a delivery was lost"]


@pytest.mark.parametrize("seed", range(3))
def test_engines_whose_own_clocks_are_wrong_decide_alike(seed: int) -> None:
    world = World(seed, engines=[EAGER, EAGER], clients=2, calls=8, storm_s=20.0, befalls=striking("none", ""))
    for slot, skew_s in zip(world.engine_slots, (-200, 200), strict=True):
        slot.skew_ns = skew_s * 10**9
    assert live(world)["lapsed"]


@pytest.mark.parametrize("seed", range(3))
def test_a_standby_that_takes_over_knows_what_the_guards_have_counted(seed: int) -> None:
    async def kill(world: World) -> None:
        def kill_alone(process: Process) -> None:
            for slot in world.engine_slots:
                slot.process.fuse = None
            process.kill()

        for slot in world.engine_slots:
            slot.process.fuse = Fuse(6, "before told", kill_alone)
        await asyncio.sleep(world.storm_s)

    guards = {
        "retry-storm": Guard("user", 3, 60, "cool", 4),
        "long-session": Guard("provider", 5, 3_600, "alert"),
        "leaked-key": Guard("provider", 1, 3_600, "revoke", distinct="origin"),  # nobody has one
    }
    world = World(
        20 + seed, engines=[PATIENT, PATIENT], clients=3, calls=12, storm_s=40.0, befalls=kill,
        plan=msgspec.structs.replace(PLAN, guards=guards),
    )  # fmt: skip
    assert live(world)["takeover"]
    fired = [outcome for entry in told_in(world) for outcome in entry.out if getattr(outcome, "fired", ())]
    assert {type(outcome) for outcome in fired} >= {Cooling}
    assert any(isinstance(outcome, Held | Exhausted) for outcome in fired)


def told_in(world: World) -> list[Entry]:
    """Every entry on the record, in order."""
    tolds = [stored.data for stored in world.record if stored.kind == "told"]
    return [entry for data in tolds for entry in msgspec.json.decode(data, type=Told).told]


# --- callers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_who_did_not_hear_a_reply_asks_again_under_the_same_id_and_hears_what_stands(seed: int) -> None:
    strike = striking("replies", "client0", chance=0.6)
    world = World(seed, engines=[EAGER], clients=1, calls=16, storm_s=40.0, befalls=strike)
    seen = live(world)
    assert seen["a reply was lost"]
    assert seen["asked again"]
    heard = [one.answered.outcome for one in world.notes.heard if isinstance(one.ask, Hold)]
    assert any(isinstance(outcome, Again) for outcome in heard)


@pytest.mark.parametrize("seed", range(3))
def test_a_hold_whose_caller_left_is_given_up(seed: int) -> None:
    """Nobody heard that it was held: nothing is charged for it, not even by its lapse."""
    world = World(seed, engines=[EAGER], clients=1, calls=16, storm_s=40.0, befalls=striking("replies", "client0"))
    seen = live(world)
    assert seen["given up"]
    assert world.notes.left


@pytest.mark.parametrize("seed", range(3))
def test_what_was_settled_while_the_stream_was_full_gets_there_when_there_is_room(seed: int) -> None:
    world = World(
        seed, engines=[EAGER], clients=2, calls=10, storm_s=30.0, befalls=striking("full", "client0", chance=0.9)
    )
    assert live(world)["the stream was full"]


@pytest.mark.parametrize("seed", range(3))
def test_a_hold_that_was_stored_before_the_stream_was_full_is_taken_back(seed: int) -> None:
    """Its reply was lost, so it is asked again, and that is refused: the caller hears that nothing was held."""

    async def silence_then_full(world: World) -> None:
        until_s = world.storm_s
        while until_s > 0:
            world.storm.open("replies", "client0", for_s=6.0, chance=1.0)
            await asyncio.sleep(0.8)
            world.storm.open("full", "client0", for_s=2.2, chance=1.0)
            await asyncio.sleep(3.2)
            until_s -= 4

    world = World(seed, engines=[EAGER], clients=1, calls=20, storm_s=40.0, befalls=silence_then_full)
    seen = live(world)
    assert seen["the stream was full"]
    assert seen["given up"]


def test_an_append_that_goes_on_being_tried_past_the_duplicate_window_changes_nothing() -> None:
    """What was settled or given up is tried until it is acknowledged. Stored a second time, it is told `again`."""

    async def silence(world: World) -> None:
        await asyncio.sleep(20)
        for window in ("acks", "replies"):
            world.storm.open(window, "client0", for_s=135.0, chance=1.0)
        await asyncio.sleep(world.storm_s - 20)

    world = World(6, engines=[EAGER], clients=1, calls=20, storm_s=200.0, befalls=silence)
    assert live(world)["duplicate beyond the window"]


def test_a_settlement_whose_caller_left_while_its_client_looked_at_the_plan_is_kept() -> None:
    """Found by a seed: no projector answered, and the caller was cancelled within that quarter of a second."""
    ask = Settle("left-at-the-door", {"usd": 1}, labels={"provider": "jev"})

    async def leave(world: World) -> None:
        await asyncio.sleep(1)
        world.projector_slot.process.sleep()  # it is asked, and does not answer
        process = Process("leaver")
        world.processes.append(process)
        world.notes.hand(process, ask)
        process.spawn(settle_and_leave())
        await asyncio.sleep(world.storm_s)

    async def settle_and_leave() -> None:
        async with Purse.connect(NATS) as purse:
            with suppress(TimeoutError):
                async with asyncio.timeout(0.1):
                    await purse.ask(ask)
            await asyncio.Event().wait()

    assert live(World(1, engines=[EAGER], clients=1, calls=1, storm_s=5.0, befalls=leave))["told stray"]


@pytest.mark.parametrize("seed", range(3))
def test_what_the_stream_claims_to_have_already_is_read_back(seed: int) -> None:
    """A claim believed would be a settlement lost: its caller leaves, and nobody asks again."""

    async def lie_and_leave(world: World) -> None:
        world.storm.open("lies", "client0", for_s=world.storm_s, chance=0.7)
        for _ in range(10):
            await asyncio.sleep(2)
            world.settle_more(world.client_slots[0])
            await asyncio.sleep(1)
            world.client_slots[0].stop()

    world = World(seed, engines=[EAGER], clients=1, calls=4, storm_s=30.0, befalls=lie_and_leave)
    assert live(world)["a duplicate was claimed that was not there"]
