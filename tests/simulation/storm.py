"""What may go wrong between clients and server, drawn from a seed: lost, late, repeated, out of order, refused."""

from __future__ import annotations

import random
from collections import Counter

from nats.aio.msg import Msg
from simulation.memory_nats import FULL, NO_RESPONDERS, WRONG_LAST, Fate, MemoryClient, Weather

from engine.follower import ACK_PREFIX

LATENCY_S = (0.0002, 0.004)
GHOST_S = (3.0, 70.0)  # a publish that its sender gave up long ago
REORDERED_S = 0.4
LATE_S = (0.5, 3.0)

WRONG_LAST_IN_CLUSTERS = 10164
INSUFFICIENT = 10023
TOLD_CODES = (NO_RESPONDERS, FULL, WRONG_LAST, WRONG_LAST_IN_CLUSTERS, INSUFFICIENT)
ASK_CODES = (NO_RESPONDERS, FULL, INSUFFICIENT)

WINDOWS = ("acks", "replies", "deliveries", "order", "late", "ghosts", "repeats", "appends", "full", "up", "lies")
"""What a window makes unsafe: messages to clients, their order, messages to the server, appends and what is said of
them."""


class Storm(Weather):
    """Faults come in windows: while one is open on a process (or on all, ""), its messages are not safe."""

    def __init__(self, seed: int) -> None:
        self.seen: Counter[str] = Counter()
        self.calm = False
        self._random = random.Random(f"storm {seed}")
        self._until: dict[tuple[str, str], tuple[float, float]] = {}
        self._now = lambda: 0.0

    def begin(self, now: object) -> None:
        self._now = now  # type: ignore[assignment]

    def open(self, window: str, process: str, *, for_s: float, chance: float) -> None:
        self._until[window, process] = (self._now() + for_s, chance)

    def struck(self, window: str, client: MemoryClient) -> bool:
        if self.calm:
            return False
        name = client.process.name if client.process is not None else ""
        for place in (name, name.partition("-")[0], ""):
            until, chance = self._until.get((window, place), (0.0, 0.0))
            if self._now() < until and self._random.random() < chance:
                return True
        return False

    def _late(self) -> float:
        return self._random.uniform(*LATENCY_S)

    def to_server(self, client: MemoryClient, subject: str, headers: dict[str, str] | None) -> tuple[Fate, ...]:
        soon = Fate(self._late())
        appends = subject.startswith("purse.") and headers is not None
        if appends and self.struck("ghosts", client):
            self.seen["a publish came minutes late"] += 1
            return (Fate(self._random.uniform(*GHOST_S), in_order=False),)
        if appends and subject.endswith("told") and self.struck("repeats", client):
            self.seen["a told came twice"] += 1
            return (soon, Fate(self._random.uniform(0.01, 5), in_order=False))
        if self.struck("up", client):
            self.seen["a publish was lost"] += 1
            return ()
        return (soon,)

    def to_client(self, client: MemoryClient, message: Msg) -> tuple[Fate, ...]:
        late = self._late()
        if message.reply.startswith(ACK_PREFIX):
            if self.struck("deliveries", client):
                self.seen["a delivery was lost"] += 1
                return ()
        elif message.data.startswith(b'{"told":'):
            if self.struck("replies", client):
                self.seen["a reply was lost"] += 1
                return ()
        elif message.data.startswith(b'{"stream":') and self.struck("acks", client):
            self.seen["an acknowledgement was lost"] += 1
            return ()
        if self.struck("order", client):
            self.seen["a message came out of order"] += 1
            return (Fate(late + self._random.uniform(0, REORDERED_S), in_order=False),)
        if self.struck("late", client):
            self.seen["a message came late"] += 1
            return (Fate(late + self._random.uniform(*LATE_S)),)
        return (Fate(late),)

    def refuses(self, client: MemoryClient, subject: str, *, known: bool) -> int | None:
        if not known and self.struck("full", client):
            self.seen["the stream was full"] += 1
            return FULL
        if not self.struck("appends", client):
            return None
        code = self._random.choice(TOLD_CODES if subject.endswith("told") else ASK_CODES)
        if known and code == FULL:
            return None  # the stream says first what it has already
        self.seen["an append was refused"] += 1
        return code

    def lies(self, client: MemoryClient, subject: str) -> bool:
        lies = self.struck("lies", client)
        self.seen["a duplicate was claimed that was not there"] += lies
        return lies

    def wrong_last(self) -> int:
        return WRONG_LAST if self.calm or self._random.random() < 0.6 else WRONG_LAST_IN_CLUSTERS
