"""A wallet with some weeks behind it, always the same: the record, what is folded from it, and a purse of both.

The record is written as an engine writes it; documents are the projector's own, and a look into the past is the one
that a web process makes, on a copy of the record.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from random import Random

import msgspec
from desk_client import DOLLAR, NEURON
from fake_purse import FakePurse
from recorded_stories import Writer

from engine.core.documents import Life, Status
from engine.core.messages import AnyAsk, ApplyPlan, Hold, Observe, Option, Settle
from engine.core.plan import Budget, Plan
from projector.audit.looking import Look, Seen, look
from projector.audited import Audited
from projector.days.totals import days_before
from projector.projection import Projection
from projector.reading import CopySource
from projector.replay import Replay

NS = 1_000_000_000
FIRST, LAST = date(2026, 10, 12), date(2026, 11, 30)
"""The last day is still running: it is 17:47 there."""

PLAN = Plan(
    {
        "neurons": Budget("neurons", 10_000 * NEURON, source="cloudflare"),
        "research": Budget("usd", 5 * DOLLAR, where={"provider": "openai"}),
    },
    remember_s=7 * 24 * 3600,
)
FULL = frozenset({date(2026, 11, 25), date(2026, 11, 12), date(2026, 11, 3), date(2026, 10, 21), date(2026, 10, 15)})
USERS = ("alice", "bob", "carol", "dave", "erin", "frank", "grace")
MODELS = ("llama-3.1-8b", "llama-3.3-70b", "mistral-7b", "qwen-2.5-32b")
FIGURES_S = 1_800


def midnight(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * NS


NOW = midnight(LAST) + (17 * 60 + 47) * 60 * NS


@dataclass(frozen=True)
class Past:
    writer: Writer
    projection: Projection
    audits: list[Audited]


@cache
def weeks(first: date = FIRST) -> Past:
    """All that happened from the first day on."""
    writer = Writer()
    writer.ask(midnight(first) - 3600 * NS, [ApplyPlan("plan", PLAN, "")])
    writer.tell()
    day = first
    while day <= LAST:
        _write_day(writer, Random(day.toordinal()), day)
        day += timedelta(days=1)
    projection, reading = Projection("main"), Replay()
    audits = []
    for stored in writer.stream:
        for answered in reading.take(stored):
            projection.fold(seq=answered.stored.seq, asks=answered.asks, entry=answered.entry)
            audits += [
                Audited(
                    seal.day, answered.entry.at + 3600 * NS, True, answered.told, answered.chain.hex(), reading.asks
                )
                for seal in answered.entry.sealed
                if seal.day < "2026-11-27"
            ]
    return Past(writer, projection, audits)


def _write_day(writer: Writer, random: Random, day: date) -> None:
    """Calls through the day, most around the afternoon; on a weekend few; on some days more than there is."""
    busy = 1.2 if day in FULL else (0.25 if day.weekday() >= 5 else 1.0) * random.uniform(0.5, 0.95)
    begin, end = midnight(day), min(midnight(day + timedelta(days=1)), NOW)
    happens: list[tuple[int, int, list[AnyAsk]]] = []
    for n in range(int(230 * busy)):
        at = begin + int(min(86_399, max(0.0, random.gauss(13.5, 3.6)) * 3600) * NS)
        happens += _call(random, f"{day:%m%d}-{n:03}", at)
    for at in range(begin + 600 * NS, end, FIGURES_S * NS):
        happens.append((at, len(happens), []))
    others = 0
    for at, _, asks in sorted(happens, key=lambda one: one[:2]):
        if at >= end:
            break
        if not asks:
            others += int(random.random() * 25 * busy * NEURON)
            meter = next(
                (m for key, m in writer.wallet.metering.items() if key[0] == "neurons" and m.start == begin), None
            )
            figure = others + (meter.settled if meter is not None else 0)
            asks = [Observe(f"figure-{at}", "neurons", day.isoformat(), figure, at, "cloudflare")]
        if isinstance(asks[0], Settle) and asks[0].hold not in writer.wallet.open:
            continue  # it was refused, and nobody made the call
        writer.ask(at, asks)
        writer.tell()


def _call(random: Random, id: str, at: int) -> Iterable[tuple[int, int, list[AnyAsk]]]:
    user, model = random.choices(USERS, (9, 7, 5, 4, 2, 2, 1))[0], random.choices(MODELS, (5, 3, 2, 1))[0]
    labels = {"user": user, "model": model, "key": f"k{USERS.index(user):07}"}
    if random.random() < 0.3:
        labels |= {"provider": "openai", "model": "gpt-5-mini"}
        amounts, share = {"usd": random.randrange(20, 130) * DOLLAR // 1_000}, random.uniform(0.25, 0.9)
    else:
        amounts, share = {"neurons": random.randrange(40, 140) * NEURON}, random.uniform(0.3, 0.95)
    lasts = int(random.uniform(2, 240) * NS)
    part = {unit: int(amount * share / 2) for unit, amount in amounts.items()}
    cost = {unit: int(amount * share) for unit, amount in amounts.items()}
    hold = Hold(id, [Option(amounts)], at + 60 * NS, labels, ttl_s=300, price_book="9f86d081884c7d65")
    yield at, 0, [hold]
    yield at + lasts // 2, 1, [Settle(id, part, final=False)]
    if random.random() > 0.01:
        yield at + lasts, 2, [Settle(id, cost)]


class PastPurse(FakePurse):
    """A purse over a past: what it reads is the projector's, and nothing more is asked of the wallet."""

    def __init__(self, past: Past) -> None:
        super().__init__()
        self.past = past
        self.wallet = past.projection.wallet
        self.clock = NOW
        self.stream = past.writer.stream
        self.audits = past.audits

    async def life(self, id: str) -> Life | None:
        return self.past.projection.life(id)

    async def status(self) -> Status | None:
        return self.past.projection.status(self.clock)

    async def read(self, word: str, payload: bytes = b"") -> bytes:
        self._fail()
        said, projection = payload.decode(), self.past.projection
        totals = sorted(projection.totals.values(), key=lambda one: (-one.start, one.budget))
        match word:
            case "plan":
                return msgspec.json.encode(self.wallet.plan)
            case "span":
                return msgspec.json.encode(projection.span(said))
            case "calendar":
                return msgspec.json.encode(days_before(totals, said))
            case "audited":
                return msgspec.json.encode(self.audits)
            case "alerts":
                return b"[]"
            case "details":
                found = [one for one in totals if one.period.startswith(said)]
                keys = [key for key in projection.totals if key[1] == said]
                details = [document for key in keys if (document := projection.details.document(key)) is not None]
                final = [projection.details.final[key] for key in keys if key in projection.details.final]
                raw = [msgspec.Raw(document) for document in details or final]
                return msgspec.json.encode((found, projection.wallet_days.days.get(said), raw))
            case _:
                return msgspec.json.encode(totals)

    async def looking(self, what: Look) -> Seen:
        """A look as a web process makes it, here and now."""
        return await look(CopySource(self.stream), what)
