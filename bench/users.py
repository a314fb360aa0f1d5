"""Users with meters and guards of their own: what each keeps in memory, and whether a decision takes longer with many.

Run by itself (`python -m bench.users`) it prints its figures as JSON; `python -m bench` runs it as a child. Every hold
counts in a shared budget and in its user's own, and three guards watch its user, its key and its session. Times are CPU
times, the least of several rounds, so that neighbours and the odd cache matter less.
"""

from __future__ import annotations

import gc
import itertools
import sys
import tracemalloc
from collections.abc import Iterator

import msgspec

from bench.contender import COST, LIMIT, TTL_S
from bench.core import ASKS, NOON, NS, STEP_NS, Figure, cpu_s, read_back
from engine.core.closed import ClosedRecord
from engine.core.messages import AnyAsk, ApplyPlan, Held, Hold, Option, Settle
from engine.core.plan import Budget, Guard, Plan
from engine.core.tell import tell
from engine.core.wallet import Wallet

FEW, MORE, MANY, MANY_QUICK = 100, 10_000, 100_000, 20_000
ROUNDS = 5
HOLDS = 5_000  # a round
DAY_S = 86_400

PLAN = Plan(
    {"shared": Budget("usd", LIMIT), "user-daily": Budget("usd", LIMIT, each="user")},
    ttl_s=TTL_S,
    guards={
        "retry-storm": Guard("user", more_than=1_000, within_s=60, action="cool", for_s=300),
        "leaked-key": Guard("key", more_than=12, within_s=DAY_S, action="revoke", distinct="origin"),
        "long-session": Guard("session", more_than=1_000, within_s=DAY_S, action="alert"),
    },
)
"""As `engine/plans/strangers.toml`, but with room: what is measured is counting, and nobody goes off."""


class Crowd:
    """A wallet that has seen `users`, each with a key, a session and an address. Takes holds and ends them."""

    def __init__(self, users: int) -> None:
        self.wallet = Wallet("bench")
        self._users = itertools.cycle(range(users))
        self._number = itertools.count()
        self._seq, self._ts = 0, NOON
        self._tell([ApplyPlan("bench", PLAN, "")])

    def holds(self, count: int) -> list[list[AnyAsk]]:
        """Messages of new holds, users in turn, as an engine reads them."""
        return [
            read_back([self._hold(user) for user in itertools.islice(self._users, min(ASKS, count - done))])
            for done in range(0, count, ASKS)
        ]

    def decide(self, messages: list[list[AnyAsk]]) -> None:
        for asks in messages:
            assert all(type(outcome) is Held for outcome in self._tell(asks))

    def settle(self, messages: list[list[AnyAsk]]) -> None:
        for asks in messages:
            self._tell([Settle(ask.id, {"usd": COST}) for ask in asks])

    def visit_all(self, users: int) -> None:
        """Every user once: afterwards all meters and windows are there, and no hold is open."""
        for start in range(0, users, ASKS):
            messages = self.holds(min(ASKS, users - start))
            self.decide(messages)
            self.settle(messages)

    def remember(self, count: int) -> None:
        """Ids of holds that have ended, straight into the memory: with holds and settles it would take long."""
        for number in range(count):
            record = ClosedRecord("settled", {"usd": COST}, 1, self._ts + 3_600 * NS + number)
            self.wallet.closed.put(f"r-{number:024d}", record)

    def _hold(self, user: int) -> Hold:
        labels = {
            "user": f"u{user:06d}", "key": f"k{user:09d}", "session": f"s{user:014d}", "origin": f"{user:016x}",
            "provider": "openai", "model": "gpt-4o-mini",
        }  # fmt: skip
        by = self._ts + 30 * NS
        return Hold(f"h-{next(self._number):024d}", [Option({"usd": COST})], labels=labels, by=by)

    def _tell(self, asks: list[AnyAsk]) -> list[object]:
        self._seq += 1
        self._ts += STEP_NS
        return list(tell(self.wallet, seq=self._seq, ts=self._ts, asks=asks).out)


def figures(*, quick: bool) -> Iterator[Figure]:
    """One after the other, as they are measured."""
    gc.disable()  # as the engine does
    many = MANY_QUICK if quick else MANY
    crowds = {users: Crowd(users) for users in (FEW, MORE, many)}
    for users, crowd in crowds.items():
        crowd.visit_all(users)
        crowd.remember(many - users)  # as much memory of ids everywhere: only users differ
    took = {users: _least_s(crowd) for users, crowd in crowds.items()}
    for users, seconds in took.items():
        yield Figure(f"users: holds with {users:,} users and three guards", HOLDS / seconds, "1/s")
    yield Figure(f"users: a hold with {many:,} users / {FEW}", took[many] / took[FEW], "x")
    yield _weight(MORE if quick else 2 * MORE)


def _least_s(crowd: Crowd) -> float:
    least = float("inf")
    for _ in range(ROUNDS):
        messages = crowd.holds(HOLDS)
        least = min(least, cpu_s(lambda messages=messages: crowd.decide(messages)))  # type: ignore[misc]  # defaults bind the loop
        crowd.settle(messages)
    return least


def _weight(users: int) -> Figure:
    """What one more user keeps alive: a meter and three windows, and the memory of one id."""
    crowd = Crowd(2 * users)
    crowd.visit_all(ASKS)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        crowd.visit_all(users)
        gc.collect()
        return Figure("users: bytes a user", (tracemalloc.get_traced_memory()[0] - before) / users, "bytes")
    finally:
        tracemalloc.stop()


if __name__ == "__main__":
    for figure in figures(quick="--quick" in sys.argv):
        print(msgspec.json.encode(figure).decode(), flush=True)
