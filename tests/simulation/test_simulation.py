"""Whole wallets in virtual time, through every kind of trouble we know, from seeds that replay to the last step.

    SEED=123 make soak                   one seed again, with all that befell it
    make soak SEEDS=100000               as many as you like; with FIRST=40 from there on

Each world is judged once it has calmed down (`judge.py`). What a suite never meets, it does not prove: every kind of
trouble and every race below must have been seen in a run, or the run fails.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable
from hashlib import blake2b

import pytest
from simulation.judge import live
from simulation.virtual_time import Fuse
from simulation.world import EVERYTHING, World

SEEDS = 40
SOAK_SEEDS = 2_000
SOAKING = os.environ.get("PURSE_SOAK") == "1"
ONE = os.environ.get("SEED")

SOMETIMES = (
    "late settle",
    "expiry beat settle in the same tick",
    "settle beat expiry in the same tick",
    "overrun",
    "fenced engine",
    "takeover",
    "a day rolled with open holds",
    "duplicate inside the window",
    "duplicate beyond the window",
    "a duplicate was claimed that was not there",
    "asked again",
    "given up",
    "lapsed",
    "a reply was lost",
    "an acknowledgement was lost",
    "a delivery was lost",
    "a message came late",
    "a message came out of order",
    "a publish was lost",
    "a publish came minutes late",
    "a told came twice",
    "an append was refused",
    "the stream was full",
    "the server restarted",
    "the stream's clock jumped",
    "the stream's clock was stepped back",
    "slept before told",
    "slept arrival",
    "was told to stop",
    "died before told",
    "died after told",
    "died before _INBOX",
    "died in replay",
    "died fork",
    "died spool write",
    "died spool sync",
    "died before ask",
    "died after ask",
    "died a client",
    "a settlement was kept in the spool",
    "a power cut took what was not synced",
    "the spool was torn",
    "spool drained",
    "a snapshot's writer died",
    "snapshot restored",
    "a projector restored its snapshot",
    "told exhausted",
    "told late",
    "told stray",
    "told closed",
)
"""What must have been seen at least once in every run of the suite."""


def seeds() -> range:
    if ONE is not None:
        return range(int(ONE), int(ONE) + 1)
    first = int(os.environ.get("FIRST", "0"))
    return range(first, first + int(os.environ.get("SEEDS", SOAK_SEEDS if SOAKING else SEEDS)))


def again(seed: int) -> str:
    """The command that shows one world again."""
    return f"SEED={seed} .venv/bin/pytest -s tests/simulation/test_simulation.py -k any_world"


@pytest.mark.timeout(0)
def test_nothing_is_lost_or_granted_twice_in_any_world(record_property: Callable[[str, object], None]) -> None:
    seen: Counter[str] = Counter()
    for seed in seeds():
        world = World(seed, again=again(seed))
        seen += live(world)
        if ONE is not None:
            print("", *world.trace, f"seen: {dict(seen)}", sep="\n")
    if ONE is not None:
        record_property("simulated", f"simulated one day (seed {ONE})")
        return
    never = [what for what in SOMETIMES if not seen[what]]
    whether = f"never seen: {', '.join(never)}" if never else f"every one of {len(SOMETIMES)} sometimes-events seen"
    record_property("simulated", f"simulated {len(seeds())} days (seeds {seeds()[0]}-{seeds()[-1]}), {whether}")
    assert not never, f"never seen: {never}"


def test_the_same_seed_is_the_same_run_to_the_last_byte() -> None:
    def fingerprint(seed: int) -> tuple[str, list[str]]:
        world = World(seed).run()
        running = blake2b()
        for stored in world.record:
            running.update(f"{stored.seq} {stored.ts} {stored.kind}".encode() + stored.data)
        return running.hexdigest(), world.trace

    assert fingerprint(3) == fingerprint(3)
    assert fingerprint(9) == fingerprint(9), "one in which a client is cancelled while it gives up several holds"
    assert fingerprint(3) != fingerprint(4)


# --- a crash at every step --------------------------------------------------------------------------------------------


def small_world(fuse: Fuse, *, seed: int = 5) -> World:
    """One engine, two callers, fair weather; whatever the fuse does to the engine."""

    async def burn(world: World) -> None:
        world.engine_slots[0].process.fuse = fuse
        await asyncio.sleep(world.storm_s)

    return World(seed, engines=[0.0], clients=1, calls=3, storm_s=8.0, befalls=burn, keeps=EVERYTHING)


@pytest.mark.timeout(600)  # a hundred worlds, 0.2 s each where nobody else works
def test_an_engine_may_crash_at_every_single_step() -> None:
    """Before and after each message it sends, before each it receives, and at each thing it does to its disk."""
    counting = Fuse(10**9, "", lambda process: None)
    live(small_world(counting))
    steps = 10**9 - counting.count
    assert steps > 40
    for step in range(1, steps + 1):
        world = small_world(Fuse(step, "", lambda process: process.kill()))
        live(world)
        assert world.engine_slots[0].starts == 2, f"no crash at step {step}"
