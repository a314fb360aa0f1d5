"""A made-up day of a wallet with everything in it that an audit has a word for, by a seed: the same one every time.

The wallet's own `tell` decides it, at stream time and without a server, so a million asks are there in well under a
minute. Messages are of 1 to 1,024 asks, as clients send them. A loss is left out unless asked for: with one on the
record, no snapshot is ever used.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import msgspec

from bench.core import NS
from engine.core import chain
from engine.core.messages import (
    Adjust,
    AnyAsk,
    ApplyPlan,
    AskMessage,
    Clock,
    Freeze,
    Hold,
    Loss,
    Observe,
    Option,
    Renew,
    Restore,
    Revoke,
    Settle,
    Thaw,
    Told,
)
from engine.core.plan import Budget, Guard, Plan, Tier, Tiers, digest
from engine.core.tell import read, tell
from engine.core.wallet import Wallet
from engine.journal import Kind, Stored

NAME = "2026-11-30"
MIDNIGHT = 1_795_996_800 * NS
DAY_NS = 24 * 3_600 * NS
USERS = 5_000
NANOS = 1_000_000
ASKS_MAX = 1_024  # a message
TOLD_MAX = 16  # messages a told covers
CALL_NS_MAX = 300 * NS
LAPSED_AFTER_NS = 700 * NS  # longer than any hold lasts
OPERATORS_EVERY = 40  # messages

PLAN = Plan(
    {
        "usd": Budget("usd", 10**15, source="cloudflare"),
        "neurons": Budget("neurons", 10**15),
        "user-daily": Budget("usd", 10**13, each="user"),
        "hourly": Budget("usd", 10**14, per="hour", where={"model": "m1"}),
        "tight": Budget("usd", 40 * NANOS, where={"provider": "tight"}),
    },
    ttl_s=600,
    remember_s=24 * 3_600,
    tiers=Tiers([Tier(400_000, 0), Tier(700_000, 1), Tier(900_000, 2)], {"premium": 1_500_000}),
    guards={
        "hammer": Guard("session", more_than=3, within_s=60, action="cool", for_s=120),
        "many": Guard("session", more_than=2, within_s=60, action="alert"),
    },
)
CHANGED = msgspec.structs.replace(PLAN, budgets={**PLAN.budgets, "neurons": Budget("neurons", 9 * 10**14)})

_encoder = msgspec.json.Encoder()


class Record:
    """A record being made: `message` tells one, and gives what lies on the stream by it."""

    def __init__(self) -> None:
        self.wallet = Wallet("main")
        self.asks = 0
        self.told = 0
        self.chain = chain.GENESIS
        self.seq = 0
        self._untold: list[tuple[Stored, bytes]] = []

    def message(
        self, asks: list[AnyAsk], ts: int, *, kind: Kind = "ask", skipped: bool = False, raw: bytes = b""
    ) -> Iterator[Stored]:
        """`raw`: bytes that are no ask message, in its place. `skipped`: a clock will say that `ts` means nothing."""
        data = raw or _encoder.encode(AskMessage(asks=asks))
        self.seq += 1
        stored = Stored(self.seq, ts, kind, data)
        message = read(data)
        entry = tell(
            self.wallet, seq=stored.seq, ts=ts, asks=message.asks if message is not None else None, skipped=skipped
        )
        self.asks += len(asks)
        self._untold.append((stored, _encoder.encode(entry)))
        yield stored
        if len(self._untold) >= TOLD_MAX and not skipped:
            yield from self.tell(ts)

    def tell(self, ts: int) -> Iterator[Stored]:
        """A told of whatever waits for one."""
        if not self._untold:
            return
        covered = [one for one, _ in self._untold]
        head = _encoder.encode(Told(engine="bench", upto=self.seq, n=len(covered), told=[]))
        body = head.removesuffix(b"[]}") + b"[" + b",".join(entry for _, entry in self._untold) + b"]"
        self.chain = chain.link(self.chain, ((one.seq, one.ts, one.data) for one in covered), body)
        self.seq += 1
        self.told = self.seq
        self._untold = []
        yield Stored(self.seq, ts, "told", chain.seal(body, self.chain))


class Day:
    """The callers, operators and troubles of one day."""

    def __init__(self, asks: int, *, seed: int = 1, loss: bool = False) -> None:
        self.record = Record()
        self._wanted, self._loss = asks, loss
        self._random = random.Random(seed)
        self._number = 0
        self._open: list[tuple[int, list[int]]] = []  # when these calls end, the soonest first
        self._lapsed: list[tuple[int, int]] = []  # since when nobody has settled this call
        self._estimated: list[int] = []

    def __iter__(self) -> Iterator[Stored]:
        record = self.record
        yield from record.message([Hold("h-early", [Option({"usd": 1})], MIDNIGHT)], MIDNIGHT - 600 * NS)
        yield from record.message([ApplyPlan("plan", PLAN, "")], MIDNIGHT - 500 * NS, kind="admin")
        yield from record.message([_hold("h-yesterday", MIDNIGHT - 300 * NS)], MIDNIGHT - 300 * NS)
        yield from record.message([Settle("h-yesterday", {"usd": 7})], MIDNIGHT + NS)
        yield from self._troubles(MIDNIGHT + 2 * NS)
        turn = 0
        while record.asks < self._wanted:
            ts = MIDNIGHT + 60 * NS + (DAY_NS - 120 * NS) * record.asks // self._wanted
            asks = self._calls(ts)
            yield from record.message(asks, ts)
            turn += 1
            if turn % OPERATORS_EVERY == 20:
                yield from self._operators(turn, ts)
        yield from record.message(list(self._settles([n for _, calls in self._open for n in calls])), MIDNIGHT + DAY_NS)
        yield from record.message([], MIDNIGHT + DAY_NS + 2 * LAPSED_AFTER_NS)
        yield from record.tell(MIDNIGHT + DAY_NS + 2 * LAPSED_AFTER_NS)

    # --- callers ------------------------------------------------------------------------------------------------------

    def _calls(self, ts: int) -> list[AnyAsk]:
        """One message: new calls, ends of others, and what callers do wrong."""
        size = min(ASKS_MAX, int(self._random.paretovariate(0.9)) + 8 * (self._random.random() < 0.9))
        ends: list[int] = []
        while self._open and self._open[0][0] <= ts and len(ends) < ASKS_MAX // 4:
            ends += self._open.pop(0)[1]
        asks = [*self._settles(ends), *self._corrections(ts)]
        calls = [self._next() for _ in range(max(1, min(size, (ASKS_MAX - len(asks)) // 3)))]
        for number in calls:
            asks += self._begin(number, ts)
        self._open.append((ts + CALL_NS_MAX // 2, calls))
        return asks[:ASKS_MAX]

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _begin(self, number: int, ts: int) -> Iterator[AnyAsk]:
        hold = _hold(_id(number), ts, number)
        yield hold
        if number % 103 == 1:
            yield hold  # asked again, its answer was lost
        if number % 307 == 2:
            yield msgspec.structs.replace(hold, options=[Option({"usd": 3})])  # a conflict
        yield from self._tried(number, ts)
        yield from self._strange(number, ts)

    def _tried(self, number: int, ts: int) -> Iterator[AnyAsk]:
        """Holds that get nothing, or all that is left."""
        if number % 211 == 3:
            yield Hold(f"late-{number:012d}", [Option({"usd": NANOS})], ts - NS, {"user": "u00002"})
        if number % 401 == 4:
            yield Hold(f"never-{number:012d}", [Option({"usd": 10**16})], ts + NS, {"user": "u00002"})
        if number % 251 == 11:
            least = Option({"usd": 10**15}, least={"usd": NANOS})
            yield Hold(f"rest-{number:012d}", [least], ts + NS, {"provider": "tight", "user": "u00003"})
            yield Hold(
                f"busy-{number:012d}", [Option({"usd": NANOS})], ts + NS, {"provider": "tight", "user": "u00004"}
            )
            yield Settle(f"rest-{number:012d}", release=True)
        if number % 701 == 13:
            for again in range(6):  # the fourth within a minute cools the session
                labels = {"user": "u00005", "session": f"x{number}"}
                yield Hold(f"often-{number}-{again}", [Option({"usd": 1})], ts + NS, labels)
        if number % 601 == 10:
            yield Hold(f"tapped-{number:012d}", [Option({"usd": NANOS})], ts + NS, {"user": "u00001"})
            yield Hold(f"stolen-{number:012d}", [Option({"usd": NANOS})], ts + NS, {"key": "stolen"})

    def _strange(self, number: int, ts: int) -> Iterator[AnyAsk]:
        """Renewals, progress, and costs of calls that nobody held."""
        if number % 157 == 5:
            yield Renew(_id(number), 1, amounts={"usd": 2 * NANOS})
        if number % 503 == 6:
            yield Renew(f"nobody-{number:012d}", 1)
        if number % 167 == 7:
            yield Settle(_id(number), {"usd": NANOS // 4}, final=False)
        if number % 131 == 8:
            yield Settle(f"s-{number:012d}", {"usd": 9}, labels={"user": "nobody", "provider": "jev"})
        if number % 331 == 12:
            yield Settle(f"b-{number:012d}", {"usd": 10 * NANOS}, labels={"user": "nobody", "provider": "tight"})
        if number % 997 == 9:
            yield Settle(f"f-{number:012d}", {"usd": 9}, held_at=ts - 72 * 3_600 * NS)

    def _settles(self, calls: list[int]) -> Iterator[AnyAsk]:
        for number in calls:
            cost = {"usd": NANOS * 3 if number % 50 == 1 else NANOS // 2}
            if number % 101 == 2:
                self._lapsed.append((self.record.wallet.at + LAPSED_AFTER_NS, number))
                continue
            if number % 89 == 3:
                yield Settle(_id(number), release=True)
                continue
            if number % 97 == 3:
                cost["neurons"] = 7  # nobody held any
            estimated = number % 113 == 4
            yield Settle(_id(number), cost, estimated=estimated)
            if estimated:
                self._estimated.append(number)
            if number % 211 == 5:
                yield Settle(_id(number), {"usd": 1})  # a conflict
            if number % 409 == 6:
                yield Renew(_id(number), 1)  # closed

    def _corrections(self, ts: int) -> Iterator[AnyAsk]:
        if self._lapsed and self._lapsed[0][0] <= ts:
            yield Settle(_id(self._lapsed.pop(0)[1]), {"usd": 5})
        if len(self._estimated) > 3:
            yield Settle(_id(self._estimated.pop(0)), {"usd": NANOS // 3})

    # --- operators, troubles ------------------------------------------------------------------------------------------

    def _operators(self, turn: int, ts: int) -> Iterator[Stored]:
        message = self.record.message
        old, new = (PLAN, CHANGED) if turn // OPERATORS_EVERY % 2 == 0 else (CHANGED, PLAN)
        asks: list[AnyAsk] = [
            Freeze(f"f{turn}", "user=u00001", "an incident", until=ts + 3_600 * NS),
            Revoke(f"r{turn}", "key", "stolen", "leaked"),
            Adjust(f"a{turn}", "usd", NAME, 3, "the invoice"),
            ApplyPlan(f"p{turn}", new, digest(old)),
        ]
        yield from message(asks, ts, kind="admin")
        tapped: list[AnyAsk] = [
            Hold(f"tapped-{turn}", [Option({"usd": NANOS})], ts + NS, {"user": "u00001"}),
            Hold(f"stolen-{turn}", [Option({"usd": NANOS})], ts + NS, {"key": "stolen"}),
            Observe(f"o{turn}", "usd", NAME, NANOS * turn * 100, ts, "cloudflare"),
        ]
        yield from message(tapped, ts)
        lifted: list[AnyAsk] = [Thaw(f"t{turn}", "user=u00001"), Restore(f"b{turn}", "key", "stolen")]
        yield from message(lifted, ts, kind="admin")

    def _troubles(self, ts: int) -> Iterator[Stored]:
        """Bytes that are no message, a stamp of a clock that was ahead, and perhaps a lost message."""
        record = self.record
        yield from record.message([], ts, raw=b'{"v":1,"asks":')
        yield from record.tell(ts)
        ahead = ts + 20 * 60 * NS
        yield from record.message([_hold("h-ahead", ts)], ahead, skipped=True)
        clock = Clock("clock", ahead, ahead + NS, "a dead battery", "ops")
        yield from record.message([clock], ts, kind="admin")
        yield from record.tell(ts)
        if self._loss:
            record.seq += 3
            lost = Loss("loss", record.seq - 2, record.seq, "a flipped bit", "ops")
            yield from record.message([lost], ts, kind="admin")
            yield from record.tell(ts)


def _id(number: int) -> str:
    return f"h-{number:012d}"


def _hold(id: str, ts: int, number: int = 0) -> Hold:
    labels = {
        "user": f"u{(number * 7919) % USERS:05d}", "model": f"m{number % 7}", "key": f"k{number % 40}",
        "provider": "tight" if number % 83 == 0 else "jev",
    }  # fmt: skip
    grades = (0, 1, 2) if number % 83 == 0 else (None,)
    most = {"usd": NANOS} if number % 61 else {"usd": NANOS, "neurons": 1_000}
    options = [Option(most, grade=grade) for grade in grades]
    return Hold(id, options, ts + 30 * NS, labels, on_lapse="release" if number % 2 else "charge")
