"""The pure core alone: how fast it decides, step by step, and what it keeps of a hold.

Run by itself (`python -m bench.core`) it prints its figures as JSON; `python -m bench` runs it as a child, so that its
millions of records do not weigh on the rest. Times are CPU times of this one process, so that neighbours matter less.
"""

from __future__ import annotations

import gc
import itertools
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator

import msgspec

from bench.contender import COST, TTL_S, Call
from bench.purse import PLAN, hold_of
from engine.core.chain import GENESIS, link
from engine.core.messages import AnyAsk, ApplyPlan, AskMessage, Entry, Held, Planned, Settle, Settled
from engine.core.tell import fold, read, tell
from engine.core.wallet import Wallet

ASKS = 100  # a message
NS = 1_000_000_000
NOON = 1_796_040_000 * NS  # 2026-11-30 12:00 UTC
STEP_NS = 1_000_000  # between messages
BY_NS = 30 * NS

HOLDS = 200_000
HOLDS_QUICK = 20_000
WEIGHED = 20_000  # holds under tracemalloc, which makes everything four times slower
ROUNDS_OF_STEPS = 3
ALONE_STEP_NS = NS  # from one hold to the next, each in a message of its own

_encoder = msgspec.json.Encoder()


class Figure(msgspec.Struct, frozen=True):
    """One result. `at_most`: what it cannot be above if all is well, where only the run itself says so. What is wanted
    of it stands in `bench/targets.py`."""

    name: str
    value: float
    unit: str
    at_most: float | None = None


class Teller:
    """A wallet with the plan of the benchmark, told message after message as an engine would be."""

    def __init__(self) -> None:
        self.wallet = Wallet("bench")
        self.seq = 0
        self.ts = NOON
        self._number = itertools.count()
        (planned,) = self.tell([ApplyPlan("bench", PLAN, "")])
        assert isinstance(planned, Planned), planned

    def tell(self, asks: list[AnyAsk]) -> list[object]:
        return list(self.entry(asks).out)

    def entry(self, asks: list[AnyAsk], *, step_ns: int = STEP_NS) -> Entry:
        self.seq += 1
        self.ts += step_ns
        return tell(self.wallet, seq=self.seq, ts=self.ts, asks=asks)

    def fold(self, asks: list[AnyAsk], entry: Entry) -> None:
        """Take in what another has decided, as a reader of the record does."""
        self.seq += 1
        self.ts += STEP_NS
        fold(self.wallet, seq=self.seq, ts=self.ts, asks=asks, entry=entry)

    def tell_raw(self, raw: bytes) -> bytes:
        """All that an engine computes for one message: read, decide, evolve, write the entry."""
        self.seq += 1
        self.ts += STEP_NS
        message = read(raw)
        assert message is not None
        entry = tell(self.wallet, seq=self.seq, ts=self.ts, asks=message.asks)
        assert all(isinstance(outcome, Held | Settled) for outcome in entry.out)
        return _encoder.encode(entry)

    def holds(self, *, users: int) -> list[AnyAsk]:
        """A message of new holds, users in turn, read from bytes as an engine gets it."""
        numbers = itertools.islice(self._number, ASKS)
        return read_back([hold_of(Call(f"h-{n:024d}", f"u{n % users:06d}"), self.ts + BY_NS) for n in numbers])


class Pairs:
    """Messages of holds and, behind each, one of their settlements: as objects, and as the bytes they come in."""

    def __init__(self, count: int) -> None:
        teller = Teller()
        self.asks = 2 * count
        self.messages: list[list[AnyAsk]] = []
        for _ in range(count // ASKS):
            holds = teller.holds(users=1_000)
            self.messages += (holds, read_back([Settle(ask.id, {"usd": COST}) for ask in holds]))
        self.raw = [_encoder.encode(AskMessage(asks=asks)) for asks in self.messages]

    def decide(self, teller: Teller) -> list[Entry]:
        return [teller.entry(asks) for asks in self.messages]


def figures(*, quick: bool) -> Iterator[Figure]:
    """One after the other, as they are measured."""
    gc.disable()  # as the engine does
    count = HOLDS_QUICK if quick else HOLDS
    yield from _speeds(count)
    yield from _steps(count // 4)
    yield _alone(count // 40)
    yield from _weights()


def _speeds(count: int) -> Iterator[Figure]:
    teller = Teller()
    holds = [teller.holds(users=1_000) for _ in range(count // ASKS)]
    settles = [read_back([Settle(ask.id, {"usd": COST}) for ask in message]) for message in holds]
    yield Figure("core, holds", count / cpu_s(lambda: _tell_all(teller, holds, Held)), "1/s")
    yield Figure("core, settles", count / cpu_s(lambda: _tell_all(teller, settles, Settled)), "1/s")
    teller = Teller()
    raw = [_encoder.encode(AskMessage(asks=asks)) for message in zip(holds, settles, strict=True) for asks in message]
    took_s = cpu_s(lambda: [teller.tell_raw(one) for one in raw])
    yield Figure("core, holds and settles, JSON in and out", 2 * count / took_s, "1/s")


def _steps(count: int) -> Iterator[Figure]:
    """What each step of a decision and of a replay takes, in ns an ask: the least of three rounds."""
    pairs = Pairs(count)
    took: dict[str, list[float]] = {}
    for _ in range(ROUNDS_OF_STEPS):
        for name, work in _each_step(pairs):
            took.setdefault(name, []).append(cpu_s(work))
    for name, times in took.items():
        yield Figure(f"core, {name}", min(times) * 1e9 / pairs.asks, "ns")


def _each_step(pairs: Pairs) -> Iterator[tuple[str, Callable[[], object]]]:
    yield "read an ask", lambda: [read(raw) for raw in pairs.raw]
    yield "check, decide, evolve", lambda: _forget(pairs.decide(Teller()))
    entries = pairs.decide(Teller())
    yield "write its outcome", lambda: [_encoder.encode(entry) for entry in entries]
    written = [_encoder.encode(entry) for entry in entries]
    body = b",".join(written)
    covered = [(number, number, raw) for number, raw in enumerate(pairs.raw)]
    yield "link the chain", lambda: link(GENESIS, covered, body)
    decoder = msgspec.json.Decoder(Entry)
    yield "read its outcome", lambda: [decoder.decode(one) for one in written]
    replayed = Teller()
    yield "take its outcome in", lambda: _fold_all(replayed, pairs, entries)


def _forget(entries: list[Entry]) -> None:
    del entries


def _fold_all(teller: Teller, pairs: Pairs, entries: list[Entry]) -> None:
    for asks, entry in zip(pairs.messages, entries, strict=True):
        teller.fold(asks, entry)


def _alone(count: int) -> Figure:
    """Holds and settles in messages of one, once the first of them would have lapsed: what a message costs."""
    teller, half = Teller(), max(count // 2, 2 * TTL_S * NS // ALONE_STEP_NS)
    asks: list[AnyAsk] = []
    for number in range(2 * half):
        hold = hold_of(Call(f"h-{number:024d}", f"u{number % 1_000:06d}"), NOON + number * ALONE_STEP_NS + BY_NS)
        asks += (hold, Settle(hold.id, {"usd": COST}))
    for ask in asks[: 2 * half]:
        teller.entry([ask], step_ns=ALONE_STEP_NS // 2)
    took_s = cpu_s(lambda: [teller.entry([ask], step_ns=ALONE_STEP_NS // 2) for ask in asks[2 * half :]])
    return Figure("core, an ask in a message of its own", took_s * 1e9 / (2 * half), "ns")


def _weights() -> Iterator[Figure]:
    """Bytes a hold keeps alive while it is open, and after it was settled (its id is remembered)."""
    open_, closed = Teller(), Teller()
    hold_and_settle(closed)  # meters and code are there before it counts
    open_.tell(open_.holds(users=1_000))
    tracemalloc.start()
    try:
        yield Figure("bytes an open hold", _weighed(lambda: open_.tell(open_.holds(users=1_000))), "bytes")
        yield Figure("bytes a remembered id", _weighed(lambda: hold_and_settle(closed)), "bytes")
    finally:
        tracemalloc.stop()


def _weighed(one_message: Callable[[], object]) -> float:
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(WEIGHED // ASKS):
        one_message()
    gc.collect()
    return (tracemalloc.get_traced_memory()[0] - before) / WEIGHED


def hold_and_settle(teller: Teller, *, users: int = 1_000) -> None:
    """A message of new holds, and one of their settlements."""
    holds = teller.holds(users=users)
    teller.tell(holds)
    teller.tell(read_back([Settle(ask.id, {"usd": COST}) for ask in holds]))


def _tell_all(teller: Teller, messages: list[list[AnyAsk]], wanted: type) -> None:
    for message in messages:
        out = teller.tell(message)
        assert type(out[-1]) is wanted, out[-1]


def read_back(asks: list[AnyAsk]) -> list[AnyAsk]:
    message = read(_encoder.encode(AskMessage(asks=asks)))
    assert message is not None
    return message.asks


def cpu_s(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


if __name__ == "__main__":
    for figure in figures(quick="--quick" in sys.argv):
        print(msgspec.json.encode(figure).decode(), flush=True)
