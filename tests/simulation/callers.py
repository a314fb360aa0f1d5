"""What the clients of a world do: hold, report, renew, settle, leave, come back. All they hear is written down."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field

import msgspec
from simulation.virtual_time import NS, Process

from engine.asking import Answered
from engine.client import Purse
from engine.core.messages import Again, AnyAsk, AnyOutcome, Held, Hold, Option, Renew, Settle
from engine.errors import NoAnswer, StreamRefused

CENT = 10_000_000
TTLS_S = (2, 3, 5, 8, 20, 40)
WAITS_S = (0.15, 0.6, 2.0, 5.0, 20.0)


@dataclass(frozen=True)
class Heard:
    """Something a caller was told."""

    client: str
    ask: AnyAsk
    answered: Answered


@dataclass
class Handed:
    """A settlement that was handed to a client. `safe`: its caller heard that it will count, whatever dies."""

    process: Process
    ask: Settle
    at_s: float
    safe: bool = False
    refused: bool = False
    """Its caller heard that nobody keeps it: the client was closed."""


@dataclass
class Notes:
    """What all callers of a world asked and heard."""

    holds: dict[str, str] = field(default_factory=dict)  # id -> client
    settles: list[Handed] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)
    left: dict[str, Process] = field(default_factory=dict)
    """Holds whose callers left without having heard of any permission, and never came back."""
    allowed: set[str] = field(default_factory=set)
    spooling: bool = True  # the clients keep a spool

    def hand(self, process: Process, ask: Settle) -> Handed:
        """Somebody is about to settle this."""
        handed = Handed(process, ask, time.monotonic())
        self.settles.append(handed)
        return handed


class Caller:
    """One call of one client, from its hold to its end, by its own die."""

    def __init__(self, purse: Purse, process: Process, id: str, notes: Notes, seed: int) -> None:
        self.purse, self.process, self.id, self.notes = purse, process, id, notes
        self.die = random.Random(f"{seed} {id}")

    async def run(self) -> None:
        die = self.die
        if die.random() < 0.05:
            await self.settle_stray()
            return
        held = await self._hold()
        if held is None and die.random() < 0.4:
            await asyncio.sleep(die.uniform(0, 3))
            held = await self._hold()  # the same call once more, with a later deadline
        if held is not None:
            await self._use(held)

    async def settle_stray(self) -> None:
        """Something that nobody had asked for, as after a crash."""
        await self._settle(Settle(f"{self.id}-stray", {"usd": CENT}, labels={"provider": "jev"}))

    async def _hold(self) -> Held | None:
        die, wait_s = self.die, self.die.choice(WAITS_S)
        shape = random.Random(self.id)  # asked again it is the same
        ask = Hold(
            self.id,
            [Option({"usd": CENT * shape.randint(1, 12)})],
            by=self.purse.by(wait_s),
            labels={"provider": "jev", "user": shape.choice(("alice", "bob"))},
            ttl_s=shape.choice(TTLS_S),
            on_lapse="release" if shape.random() < 0.3 else None,
        )
        self.notes.holds[self.id] = self.process.name
        self.notes.left[self.id] = self.process
        leaves_s = die.uniform(0, wait_s) if die.random() < 0.15 else wait_s + 60
        outcome = await self._ask(ask, wait_s, leaves_s)
        if outcome is not None:
            self.notes.left.pop(self.id)
        if isinstance(outcome, Again):
            outcome = outcome.was
        if isinstance(outcome, Held):
            self.notes.allowed.add(self.id)
            return outcome
        return None

    async def _use(self, held: Held) -> None:
        die, grant = self.die, held.amounts["usd"]
        if die.random() < 0.1:
            return  # it will lapse
        expires_at = held.expires_at
        if die.random() < 0.3:
            await self._settle(Settle(self.id, {"usd": grant // 3}, final=False))
        if die.random() < 0.3:
            ttl_s = die.choice(TTLS_S)
            larger = {"usd": grant + CENT} if die.random() < 0.5 else {}
            renewed = await self._ask(Renew(self.id, 1, ttl_s, larger), 5.0, 65.0)
            if isinstance(renewed, Held):
                expires_at = max(expires_at, renewed.expires_at)
        left_s = max(0.0, (expires_at - self.purse.now()) / NS)
        await asyncio.sleep(
            max(0.0, die.choice((die.uniform(0, 1.5), left_s - die.uniform(0, 1), left_s + 0.02, left_s + 2)))
        )
        await self._settle(self._ending(grant))
        if die.random() < 0.1:
            await self._settle(self._ending(grant))

    def _ending(self, grant: int) -> Settle:
        shape = random.Random(f"end {self.id}")
        kind = shape.random()
        if kind < 0.1:
            return Settle(self.id, release=True)
        if kind < 0.2:
            return Settle(self.id, {"usd": grant}, estimated=True)
        return Settle(self.id, {"usd": grant * shape.randint(1, 13) // 10})

    async def _settle(self, ask: Settle) -> None:
        handed = self.notes.hand(self.process, ask)
        wait_s = self.die.choice(WAITS_S)
        leaves_s = self.die.uniform(0, wait_s) if self.die.random() < 0.15 else wait_s + 60
        await self._ask(ask, wait_s, leaves_s, handed)

    async def _ask(
        self, ask: AnyAsk, wait_s: float, leaves_s: float, handed: Handed | None = None
    ) -> AnyOutcome | None:
        """What was told. None: the caller left without an answer, at its deadline or before, or the stream refused."""
        try:
            async with asyncio.timeout(leaves_s):
                answered = await self.purse.ask(ask, wait_s=wait_s)
        except (TimeoutError, StreamRefused):
            return None
        except NoAnswer as unheard:
            if handed is not None:
                handed.safe = unheard.kept
                handed.refused = self.notes.spooling and not unheard.kept
            return None
        if handed is not None:
            handed.safe = True
        self.notes.heard.append(Heard(self.process.name, ask, answered))
        return answered.outcome


def on_record(outcome: AnyOutcome) -> AnyOutcome:
    """As it stands on the stream: without the first answer, which only the caller hears again."""
    return msgspec.structs.replace(outcome, was=None) if isinstance(outcome, Again) else outcome
