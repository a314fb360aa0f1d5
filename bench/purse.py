"""Common Purse as it runs: nats-server syncing every append, one engine process, one client in this process.

No projector runs: it follows and never decides, and on two cores it would be measured too. The plan, which clients get
from it once, is answered from here.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from nats.aio.msg import Msg

from bench.child import Child, child
from bench.contender import COST, HELD, LIMIT, TTL_S, Call, Client, Contender, batches, callers, pairs
from engine.client import Purse
from engine.core.messages import AnyOutcome, ApplyPlan, Held, Hold, Option, Planned, Settle, Settled
from engine.core.plan import Budget, Plan
from engine.embedded import embedded_nats
from engine.errors import NoAnswer
from engine.journal import Journal

WALLET = "bench"
WAIT_S = 30.0  # nobody gives up while it is measured
READY_WAIT_S = 30.0
POLL_S = 0.02

PLAN = Plan(
    {"shared": Budget("usd", LIMIT), "user-daily": Budget("usd", LIMIT, each="user")},
    ttl_s=TTL_S,
)


class UnexpectedError(AssertionError):
    """An outcome that cannot be where every limit is far away."""


class PurseClient:
    """The typed client, asked the way a web front end asks."""

    def __init__(self, purse: Purse, pids: Sequence[int]) -> None:
        self.pids = pids
        self._purse = purse

    async def hold(self, call: Call) -> None:
        outcome = (await self._purse.ask(hold_of(call, self._purse.by(WAIT_S)), wait_s=WAIT_S)).outcome
        _expect(outcome, Held)

    async def settle(self, call: Call) -> None:
        outcome = (await self._purse.ask(Settle(call.id, {"usd": COST}), wait_s=WAIT_S)).outcome
        _expect(outcome, Settled)

    async def hold_all(self, calls: Sequence[Call]) -> None:
        by = self._purse.by(WAIT_S)
        for answered in await self._purse.ask_all([hold_of(call, by) for call in calls], wait_s=WAIT_S):
            _expect(answered.outcome, Held)

    async def used(self) -> int:
        """By a hold of nothing, which says what is left."""
        ask = Hold("used", [Option({"usd": 0})], self._purse.by(WAIT_S), {"user": "nobody"})
        outcome = (await self._purse.ask(ask, wait_s=WAIT_S)).outcome
        assert isinstance(outcome, Held), outcome
        return LIMIT - outcome.budgets["shared"].remaining


def hold_of(call: Call, by: int) -> Hold:
    """The ask of one call, with the labels that a web front end gives it."""
    labels = {"user": call.user, "key": "k7f3", "provider": "openai", "model": "gpt-4.1-mini"}
    return Hold(call.id, [Option({"usd": HELD})], by, labels)


def _expect(outcome: AnyOutcome, wanted: type[Held] | type[Settled]) -> None:
    if not isinstance(outcome, wanted):
        raise UnexpectedError(f"expected {wanted.__name__}, got {outcome}")


@asynccontextmanager
async def _open(folder: Path) -> AsyncIterator[Client]:
    async with embedded_nats(folder) as server, Journal.connect(server.url, wallet=WALLET, name="bench") as journal:
        await journal.ensure_stream()
        await journal.client.subscribe(journal.names.subject("read.plan"), cb=_answer_plan)
        async with _engine(server.url, folder) as engine, Purse.connect(server.url, wallet=WALLET) as purse:
            await _ready(purse, engine)
            outcome = (await purse.ask(ApplyPlan("bench", PLAN, ""), wait_s=WAIT_S)).outcome
            assert isinstance(outcome, Planned), outcome
            yield PurseClient(purse, (server.pid, engine.pid))


@asynccontextmanager
async def _engine(url: str, folder: Path) -> AsyncIterator[Child]:
    env = {
        "PURSE_NATS_URL": url,
        "PURSE_WALLET": WALLET,
        "PURSE_PATIENCE_MS": "0",
        "PYTHONPATH": str(Path(__file__).parents[1]),
    }
    async with child("engine", [sys.executable, "-m", "engine"], folder=folder, env=env) as engine:
        yield engine


async def _ready(purse: Purse, engine: Child) -> None:
    gives_up_at = time.monotonic() + READY_WAIT_S
    while not await purse.ready():
        engine.check()
        if time.monotonic() > gives_up_at:
            raise NoAnswer(f"the engine was not ready within {READY_WAIT_S:g} s: {engine.last_words()}")
        await asyncio.sleep(POLL_S)


async def _answer_plan(asked: Msg) -> None:
    await asked.respond(msgspec.json.encode(PLAN))


PURSE = Contender(
    name="Common Purse",
    about="nats-server (sync_interval: always), one engine, one client process",
    networked=True,
    shapes=(
        callers(1), callers(16), callers(64), callers(256), callers(1024), pairs(256), batches(8, 128),
        batches(4, 1024),
    ),
    open=_open,
)  # fmt: skip
