"""What integration tests are built from: engines, projectors and clients, beside the test or as processes of their own.

Nothing here sleeps to be in time: `eventually` polls a condition until its deadline. Whatever is started ends with its
block, and what ended it by itself is never lost: either the block asks (`Started.end`) or the block fails with it.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import secrets
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

import msgspec
from nats.aio.msg import Msg

from engine.client import Purse
from engine.core import chain
from engine.core.messages import ADMIN_ASKS, AnyAsk, AnyOutcome, ApplyPlan, AskMessage, Entry, Hold, Option, Reply, Told
from engine.core.plan import Budget, Plan
from engine.core.tell import fold, read
from engine.core.wallet import Wallet
from engine.embedded import EmbeddedServer
from engine.errors import PurseError
from engine.follower import Follower
from engine.journal import Journal, Kind, Stored
from engine.recorded import Recorded
from engine.service import Engine
from engine.snapshots import Snapshots
from engine.stream_settings import settings
from projector.service import Observing, Projector

REPOSITORY = Path(__file__).parents[2]
WITHIN_S = 30.0  # far more than anything takes, even on a busy machine: a deadline, not a measurement
POLL_S = 0.01
DOLLAR = 1_000_000_000
CENT = DOLLAR // 100
SECOND = 1_000_000_000

JEV = Budget("usd", DOLLAR, per="total")
"""One dollar for all time: what most tests share, free of midnights."""

Result = TypeVar("Result")
Service = TypeVar("Service")


@overload
async def eventually(condition: Callable[[], Awaitable[Result | None]], *, within_s: float = ...) -> Result: ...
@overload
async def eventually(condition: Callable[[], Result | None], *, within_s: float = ...) -> Result: ...
async def eventually(condition: Callable[[], object], *, within_s: float = WITHIN_S) -> object:
    """The first truthy answer of `condition`, asked again and again. Fails the test after `within_s`."""
    deadline = time.monotonic() + within_s
    while True:
        answer = condition()
        found: object = await answer if inspect.isawaitable(answer) else answer
        if found:
            return found
        assert time.monotonic() < deadline, f"not within {within_s:g} s: {inspect.getsource(condition).strip()}"
        await asyncio.sleep(POLL_S)


# --- beside the test --------------------------------------------------------------------------------------------------


class Started(Generic[Service]):
    """Something that runs beside the test."""

    def __init__(self, service: Service, task: asyncio.Task[None], journal: Journal) -> None:
        self.service, self.task, self.journal = service, task, journal
        self.asked = False

    async def end(self, *, within_s: float = WITHIN_S) -> PurseError:
        """Wait until it stops by itself, and say why it did."""
        self.asked = True
        await asyncio.wait([self.task], timeout=within_s)
        assert self.task.done(), f"still running after {within_s:g} s"
        error: BaseException | None = self.task.exception()
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        assert isinstance(error, PurseError), f"ended with {error!r}"
        return error


@asynccontextmanager
async def running(
    service: Service, work: Coroutine[Any, Any, None], journal: Journal
) -> AsyncIterator[Started[Service]]:
    """`service` does its `work` for as long as the block runs."""
    started = Started(service, asyncio.create_task(work), journal)
    try:
        yield started
    finally:
        died = started.task.done() and not started.asked
        started.task.cancel()
        await asyncio.wait([started.task])
        if died:
            started.task.result()


@asynccontextmanager
async def engine_on(
    url: str,
    wallet: str,
    *,
    patience_s: float = 0.0,
    ready: bool = True,
    kind: type[Engine] = Engine,
    data: Path | None = None,
    snapshots: bool = True,
    witness: bool = True,
    now: Callable[[], int] | None = None,
) -> AsyncIterator[Started[Engine]]:
    """An engine with a connection of its own, beside the test; `ready` waits for the end of its replay.

    It keeps its witness and, unless told otherwise, its snapshots under `data`, if given.
    """
    async with Journal.connect(url, wallet=wallet, name="engine") as journal:
        kept = Snapshots(data, wallet) if data is not None and snapshots else None
        instance = f"e-{secrets.token_hex(4)}"
        beside = data if witness else None
        engine = kind(journal, instance=instance, patience_s=patience_s, snapshots=kept, data=beside, now=now)
        async with running(engine, engine.run(), journal) as started:
            if ready:
                await eventually(lambda: engine.ready.is_set() or started.task.done())
            yield started


@asynccontextmanager
async def projector_on(
    url: str,
    wallet: str,
    *,
    ready: bool = True,
    data: Path | None = None,
    snapshots: bool = True,
    observers: Observing | None = None,
) -> AsyncIterator[Started[Projector]]:
    async with Journal.connect(url, wallet=wallet, name="projector") as journal:
        kept = Snapshots(data, wallet, of="projector") if data is not None and snapshots else None
        projector = Projector(journal, snapshots=kept, data=data, observers=observers)
        async with running(projector, projector.run(), journal) as started:
            if ready:
                await eventually(lambda: projector.caught_up.is_set() or started.task.done())
            yield started


class Reader:
    """A follower that keeps what it heard. While `open` is clear its callback waits: a slow reader."""

    def __init__(self, journal: Journal, *, after: int = 0) -> None:
        self.heard: list[Stored] = []
        self.open = asyncio.Event()
        self.open.set()
        self.follower = Follower(journal, after=after, on_message=self._take)

    async def _take(self, stored: Stored) -> None:
        await self.open.wait()
        self.heard.append(stored)

    @property
    def seqs(self) -> list[int]:
        return [stored.seq for stored in self.heard]


@asynccontextmanager
async def reader_on(url: str, wallet: str, *, after: int = 0) -> AsyncIterator[Started[Reader]]:
    async with Journal.connect(url, wallet=wallet, name="reader") as journal:
        reader = Reader(journal, after=after)
        async with running(reader, reader.follower.run(), journal) as started:
            yield started


# --- a wallet ---------------------------------------------------------------------------------------------------------


async def make_stream(journal: Journal, **changed: object) -> None:
    """The wallet's stream, with settings of which some are `changed`: what an operator must never do."""
    wanted = settings(journal.names, replicas=1) | changed
    made = await journal.api(f"STREAM.CREATE.{journal.names.stream}", wanted, Made)
    assert made.error is None, made.error


async def change_stream(journal: Journal, **changed: object) -> None:
    wanted = settings(journal.names, replicas=1) | changed
    made = await journal.api(f"STREAM.UPDATE.{journal.names.stream}", wanted, Made)
    assert made.error is None, made.error


async def remove_stream(journal: Journal) -> None:
    gone = await journal.api(f"STREAM.DELETE.{journal.names.stream}", {}, Made)
    assert gone.error is None, gone.error


class Made(msgspec.Struct, frozen=True):
    """JetStream's answer where only success matters."""

    error: dict[str, Any] | None = None


@asynccontextmanager
async def wallet_on(url: str, wallet: str, *, plan: Plan | None = None) -> AsyncIterator[Journal]:
    """A new wallet with a plan (by default the budget `jev`), and a connection to it."""
    async with Journal.connect(url, wallet=wallet, name="test") as journal:
        await journal.ensure_stream()
        first = ApplyPlan("first", plan or Plan({"jev": JEV}), "")
        await append(journal, first)
        yield journal


async def append(journal: Journal, *asks: AnyAsk, sender: str = "") -> int:
    """One ask message, as any program that may publish would append it. Its sequence."""
    kind: Kind = "admin" if any(isinstance(ask, ADMIN_ASKS) for ask in asks) else "ask"
    return await append_raw(journal, msgspec.json.encode(AskMessage(sender=sender, asks=list(asks))), kind=kind)


async def append_raw(journal: Journal, raw: bytes, *, kind: Kind = "ask") -> int:
    return (await journal.append(kind, raw, wait_s=WITHIN_S)).seq


async def record_of(journal: Journal) -> list[Stored]:
    """The whole stream as it lies there."""
    last = await journal.last_seq()
    reader = Reader(journal)
    async with running(reader, reader.follower.run(), journal):
        await eventually(lambda: len(reader.heard) >= last)
    return reader.heard


class Audit(msgspec.Struct):
    """What a record says: every entry by the sequence of its ask message, every told, and the wallet they make."""

    wallet: Wallet
    entries: dict[int, Entry]
    tolds: list[Told]
    told_seqs: list[int]
    untold: int

    @property
    def outcomes(self) -> list[AnyOutcome]:
        return [outcome for entry in self.entries.values() for outcome in entry.out]

    def count(self, kind: type[AnyOutcome]) -> int:
        return sum(type(outcome) is kind for outcome in self.outcomes)


def audit(record: Iterable[Stored], wallet: str) -> Audit:
    """Read a record from its first message: prove the chain, fold the entries. Raises `Untrusted` where it breaks."""
    found = Audit(Wallet(wallet), {}, [], [], 0)
    waiting: list[Stored] = []
    previous = chain.GENESIS
    for seq, stored in enumerate(record, start=1):
        assert stored.seq == seq, "every sequence, once and in order"
        if stored.kind != "told":
            waiting.append(stored)
            continue
        recorded = Recorded.read(stored)
        covered, waiting = waiting[: recorded.told.n], waiting[recorded.told.n :]
        recorded.verify(previous, ((one.seq, one.ts, one.data) for one in covered))
        previous = recorded.chain
        for one, entry in zip(covered, recorded.told.told, strict=True):
            message = read(one.data)
            fold(found.wallet, seq=one.seq, ts=one.ts, asks=message.asks if message else None, entry=entry)
            assert entry.seq not in found.entries, f"message {entry.seq} was told twice"
            found.entries[entry.seq] = entry
        found.tolds.append(recorded.told)
        found.told_seqs.append(stored.seq)
    found.untold = len(waiting)
    found.wallet.check()
    return found


async def audited(journal: Journal) -> Audit:
    return audit(await record_of(journal), journal.names.wallet)


# --- asking -----------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def serving(server: EmbeddedServer, wallet: str) -> AsyncIterator[tuple[Purse, Journal]]:
    """A client of a new wallet that an engine serves, and a connection to look at the record."""
    async with AsyncExitStack() as stack:
        journal = await stack.enter_async_context(wallet_on(server.url, wallet))
        await stack.enter_async_context(engine_on(server.url, wallet))
        purse = await stack.enter_async_context(Purse.connect(server.url, wallet=wallet))
        yield purse, journal


def used(found: Audit) -> tuple[int, int]:
    """Settled and held in the budget that every test shares."""
    settled, held, _, _ = found.wallet.meters().get(("jev", None, "total"), (0, 0, 0, 0))
    return settled, held


async def outcomes_of(journal: Journal, seq: int) -> list[AnyOutcome]:
    """What was told of the message at `seq`, on a record that may have holes before it."""
    after = seq
    while (stored := await journal.next_of("told", after)) is not None:
        for entry in Recorded.read(stored).told.told:
            if entry.seq == seq:
                return entry.out
        after = stored.seq
    raise AssertionError(f"message {seq} was not told")


async def told(journal: Journal) -> Audit:
    """The record, once everything on it is told."""

    async def all_told() -> Audit | None:
        found = await audited(journal)
        return found if not found.untold else None

    return await eventually(all_told)


async def nothing_untold(journal: Journal) -> bool:
    return (await audited(journal)).untold == 0


async def holds_messages(journal: Journal, count: int) -> bool:
    return await journal.last_seq() >= count


async def past(journal: Journal, moment: int) -> bool:
    return await journal.now() > moment


async def told_up_to(started: Started[Engine], seq: int) -> None:
    """Until the record of this message has come back to the engine."""
    await eventually(lambda: started.service.wallet.upto >= seq and not started.service._decided)


def penny(id: str, amount: int = CENT, *, ttl_s: int | None = None) -> Hold:
    """A hold that is asked for in time, whatever the clocks say."""
    return Hold(id, [Option({"usd": amount})], by=time.time_ns() + 60 * SECOND, ttl_s=ttl_s)


class Inbox:
    """Somebody who asks, and all that engines said to them."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.address = journal.client.new_inbox()
        self.replies: list[Reply] = []
        self.recorded: list[bool] = []

    async def open(self) -> None:
        await self._journal.client.subscribe(f"{self.address}.*", cb=self._hear)

    async def _hear(self, message: Msg) -> None:
        reply = msgspec.json.decode(message.data, type=Reply)
        self.replies.append(reply)
        stored = await self._journal.read(reply.told)
        self.recorded.append(stored is not None and Recorded.read(stored).chain.hex() == reply.chain)

    async def ask(self, *asks: AnyAsk, token: str = "1") -> int:
        return await append(self._journal, *asks, sender=f"{self.address}.{token}")

    @property
    def answered(self) -> set[int]:
        return {answer.seq for reply in self.replies for answer in reply.answers}


@asynccontextmanager
async def inbox_of(journal: Journal) -> AsyncIterator[Inbox]:
    inbox = Inbox(journal)
    await inbox.open()
    yield inbox


# --- processes of their own -------------------------------------------------------------------------------------------


class Process:
    """One of our programs as a process of its own. `said` is what it logged, `lines` how it stood there."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.said: list[dict[str, Any]] = []
        self.lines: list[bytes] = []
        self._listening = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        assert self._process.stderr is not None
        async for line in self._process.stderr:
            self.lines.append(line)
            with suppress(ValueError):
                self.said.append(json.loads(line))

    def events(self, name: str) -> list[dict[str, Any]]:
        return [said for said in self.said if said.get("event") == name]

    async def until(self, event: str) -> dict[str, Any]:
        return (await eventually(lambda: self.events(event)))[0]

    def signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            self._process.send_signal(number)

    async def wait(self) -> int:
        """Its exit code, once it has ended and all it said was heard."""
        code = await asyncio.wait_for(self._process.wait(), WITHIN_S)
        await self._listening
        return code

    async def output(self) -> bytes:
        assert self._process.stdout is not None
        return await asyncio.wait_for(self._process.stdout.read(), WITHIN_S)

    async def close(self) -> None:
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGKILL)
        await self.wait()


@asynccontextmanager
async def process_of(arguments: Sequence[str], **environment: str) -> AsyncIterator[Process]:
    """Python with these arguments, in the repository; killed at the end of the block if it still runs."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    started = Process(process)
    try:
        yield started
    finally:
        await started.close()
        process._transport.close()  # type: ignore[attr-defined]  # its pipes would be closed by a collection too late


@asynccontextmanager
async def engine_process(url: str, wallet: str, *, patience_ms: int = 0, ready: bool = True) -> AsyncIterator[Process]:
    """`python -m engine`; `ready` waits for the end of its replay."""
    settings_ = {"PURSE_NATS_URL": url, "PURSE_WALLET": wallet, "PURSE_PATIENCE_MS": str(patience_ms)}
    async with process_of(["-m", "engine"], **settings_) as process:
        if ready:
            await process.until("ready")
        yield process
