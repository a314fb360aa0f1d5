"""`python -m bench.chaos.caller FILE NAME CALLS SECONDS SEED`: one client process. PURSE_NATS_URL names the server.

Its calls begin evenly over the seconds, whatever becomes of the ones before. It asks nothing twice itself, but for a
settlement that the library says nobody has: what the library promises is all there is. Its spool is beside FILE.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from pathlib import Path

import msgspec

from bench.chaos.deeds import NARROW, UNIT, WIDE, Deed, Heard, keep
from engine.asking import Answered
from engine.client import WAIT_S, Purse
from engine.core.messages import Again, AnyAsk, Held, Hold, Option, Settle
from engine.errors import NoAnswer, NotKept, StreamRefused

CENT = 10_000_000
NARROW_SHARE, IMPATIENT_SHARE, OVERRUN_SHARE = 0.2, 0.02, 0.03
IMPATIENT_S = (0.002, 0.05)
NOT_KEPT_PAUSE_S = 0.2


class Meant(msgspec.Struct, frozen=True):
    """One call as it is going to be: what is held, what it will have cost, how long its caller waits for permission."""

    lane: str
    amount: int
    cost: int
    wait_s: float


def drawn(dice: random.Random) -> Meant:
    lane = NARROW if dice.random() < NARROW_SHARE else WIDE
    patient = dice.random() >= IMPATIENT_SHARE
    wait_s = WAIT_S if patient else dice.uniform(*IMPATIENT_S)
    amount = dice.randint(CENT // 10, CENT)
    cost = dice.randint(0, amount)
    if lane == WIDE and dice.random() < OVERRUN_SHARE:
        cost += amount
    return Meant(lane, amount, cost, wait_s)


class Caller:
    """Makes calls through one client and writes down what it did and heard."""

    def __init__(self, purse: Purse, dice: random.Random) -> None:
        self._purse, self._dice = purse, dice

    async def call(self, id: str) -> Deed:
        """Hold, and where it is held settle what it cost."""
        meant = drawn(self._dice)
        ask = Hold(id, [Option({UNIT: meant.amount})], by=self._purse.by(meant.wait_s), labels={"lane": meant.lane})
        answered, hold_wait_s = await self._ask(ask, meant.wait_s)
        deed = Deed(id, meant.lane, meant.amount, _heard(answered), hold_wait_s, meant.wait_s == WAIT_S)
        if answered is None or not _permits(answered):
            return deed
        settled, settle_wait_s = await self._settle(Settle(id, {UNIT: meant.cost}))
        return msgspec.structs.replace(deed, cost=meant.cost, settled=_heard(settled), settle_wait_s=settle_wait_s)

    async def _settle(self, ask: Settle) -> tuple[Answered | None, float]:
        began = time.monotonic()
        while True:
            try:
                answered = await self._purse.ask(ask)
            except NotKept:
                await asyncio.sleep(NOT_KEPT_PAUSE_S)
            except (NoAnswer, StreamRefused):
                return None, time.monotonic() - began
            else:
                return answered, time.monotonic() - began

    async def _ask(self, ask: AnyAsk, wait_s: float) -> tuple[Answered | None, float]:
        began = time.monotonic()
        try:
            answered = await self._purse.ask(ask, wait_s=wait_s)
        except (NoAnswer, StreamRefused):
            return None, time.monotonic() - began
        return answered, time.monotonic() - began


def _heard(answered: Answered | None) -> Heard | None:
    if answered is None:
        return None
    return Heard(str(answered.outcome.__struct_config__.tag), answered.seq, answered.told)


def _permits(answered: Answered) -> bool:
    outcome = answered.outcome
    return isinstance(outcome.was if isinstance(outcome, Again) else outcome, Held)


async def work(url: str, data: Path, name: str, *, calls: int, seconds: float, seed: int) -> list[Deed]:
    """All calls of this process."""
    async with Purse.connect(url, data=data) as purse:
        caller = Caller(purse, random.Random(f"{seed}:{name}"))

        async def one(number: int) -> Deed:
            await asyncio.sleep(seconds * number / calls)
            return await caller.call(f"{name}-{number}")

        return list(await asyncio.gather(*map(one, range(calls))))


if __name__ == "__main__":
    file, name, calls, seconds, seed = sys.argv[1:]
    url = os.environ["PURSE_NATS_URL"]
    working = work(url, Path(file).parent, name, calls=int(calls), seconds=float(seconds), seed=int(seed))
    keep(Path(file), asyncio.run(working))
