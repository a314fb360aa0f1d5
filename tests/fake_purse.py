"""A purse without a stream: the real core in this process, a clock that a test moves, and a list of all that was asked.

It answers as `engine.client.Purse` does; `tests/integration/test_api.py` runs the same requests over the real thing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence

import msgspec

from engine.core import chain, periods
from engine.core.documents import (
    AlertShown,
    Barred,
    BudgetStatus,
    DayTotals,
    Detail,
    EngineFigures,
    Figure,
    Life,
    NotedAt,
    NotedPage,
    ProjectorFigures,
    Reading,
    Span,
    Status,
    TriedTarget,
    WalletDay,
)
from engine.core.messages import (
    Again,
    AnyAsk,
    AnyOutcome,
    ApplyPlan,
    AskMessage,
    Counted,
    Hold,
    Told,
    Visit,
)
from engine.core.plan import Budget, Plan
from engine.core.tell import tell
from engine.core.visits import Visits
from engine.core.wallet import Wallet
from engine.errors import NoAnswer, PurseError
from engine.journal import Stored
from engine.read_record import Look
from projector.foresight import outcome_of, standings
from projector.memos import Memos

NS = 1_000_000_000
NOON = 1_796_047_500 * NS
"""2026-11-30T14:05:00Z."""

CHAIN = "c0ffee" * 10 + "beef"


class Answered(msgspec.Struct, frozen=True):
    outcome: AnyOutcome
    at: int
    seq: int
    told: int
    chain: str = CHAIN


class Kept(msgspec.Struct, frozen=True):
    name: str
    seq: int
    document: bytes


class FakeBucket:
    """As `engine.bucket.Bucket`, in memory; `tests/integration/test_keys.py` holds the two against each other."""

    def __init__(self) -> None:
        self.documents: dict[str, Kept] = {}
        self.error: PurseError | None = None
        self._seq = 0
        self._notices: list[Callable[[], None]] = []

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error

    async def make(self) -> None:
        self._fail()

    async def next_after(self, seq: int) -> Kept | None:
        self._fail()
        later = [kept for kept in self.documents.values() if kept.seq > seq]
        return min(later, key=lambda kept: kept.seq, default=None)

    async def put(self, name: str, document: bytes, *, after: int) -> int | None:
        self._fail()
        if (self.documents[name].seq if name in self.documents else 0) != after:
            return None
        self._seq += 1
        self.documents[name] = Kept(name, self._seq, document)
        for notice in self._notices:
            notice()
        return self._seq

    async def on_change(self, notice: Callable[[], None]) -> None:
        self._notices.append(notice)


class FakePurse:
    """`clock` is stream time. `error`: what every call raises, if anything. `ready_` and `days_` are what is read.

    `figures`, `observed`: what is told beside what the wallet here decided, by budget.
    `reading`: how many read the stream now; `unheard`: how many more messages there are said to be than it ever gives.
    """

    def __init__(self, plan: Plan | None = None) -> None:
        self.wallet = Wallet("main")
        self.memos = Memos()
        self.clock = NOON
        self.asked: list[AnyAsk] = []
        self.messages = 0
        self.plan_reads = 0
        self.error: PurseError | None = None
        self.engine_ready = True
        self.spool_depth = 0
        self.total: list[DayTotals] = []
        self.buckets: dict[str, FakeBucket] = {}
        self.looks: list[Look] = []
        self.visited: list[Visit] = []
        self.visits: Visits | None = Visits()
        self.secret: bytes | None = b"s" * 32
        self.engine_counts: EngineFigures | None = None
        self.projector_counts: ProjectorFigures | None = None
        self.details: list[Detail] = []
        self.wallet_day: WalletDay | None = None
        self.stream: list[Stored] = []
        self.reading = self.unheard = 0
        self.breaks_off = False
        self.figures: dict[str, DayTotals] = {}
        self.observed: dict[str, tuple[Figure, Reading]] = {}
        self.alerts: list[AlertShown] = []
        self.targets: dict[str, str] = {}
        """Targets of alerts, and how each fails; "": it does not."""
        self._seq = 0
        self._live: asyncio.Queue[Status] = asyncio.Queue()
        if plan is not None:
            self.apply(plan)

    def apply(self, plan: Plan) -> None:
        """As an operator elsewhere would: not among what was asked here."""
        self._tell([ApplyPlan(f"plan-{self._seq}", plan, self.wallet.plan_digest)])

    def _tell(self, asks: Sequence[AnyAsk]) -> list[Answered]:
        self._seq += 2
        entry = tell(self.wallet, seq=self._seq, ts=self.clock, asks=asks)
        self.wallet.check()
        if self.wallet.plan is not None:
            self.memos.fold(asks, entry, remember_s=self.wallet.plan.remember_s)
        asked = msgspec.json.encode(AskMessage(asks=list(asks)))
        told = msgspec.json.encode(Told(engine="e", upto=self._seq, n=1, told=[entry]))
        self.stream.append(Stored(self._seq, self.clock, "ask", asked))
        self.stream.append(Stored(self._seq + 1, self.clock, "told", chain.seal(told.removesuffix(b"}"), bytes(32))))
        return [
            Answered(self._heard(ask, outcome), entry.at, self._seq, self._seq + 1)
            for ask, outcome in zip(asks, entry.out, strict=True)
        ]

    def _heard(self, ask: AnyAsk, outcome: AnyOutcome) -> AnyOutcome:
        if isinstance(outcome, Again):
            return msgspec.structs.replace(outcome, was=self.wallet.recall(ask, outcome))
        return outcome

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error

    # --- what the web uses --------------------------------------------------------------------------------------------

    def by(self, wait_s: float) -> int:
        return self.clock + int(wait_s * NS)

    def now(self) -> int:
        return self.clock

    async def ask(self, ask: AnyAsk, *, wait_s: float = 5.0) -> Answered:
        return (await self.ask_all([ask], wait_s=wait_s))[0]

    async def ask_all(self, asks: Sequence[AnyAsk], *, wait_s: float = 5.0) -> list[Answered]:
        self.asked += asks
        self.messages += 1
        self._fail()
        return self._tell(asks)

    def bucket(self, word: str) -> FakeBucket:
        return self.buckets.setdefault(word, FakeBucket())

    async def note(self, look: Look) -> None:
        self._fail()
        self.looks.append(look)

    async def ready(self) -> bool:
        return self.engine_ready

    async def visit(self, visit: Visit, *, wait_s: float) -> Counted | None:
        """`visits` None: no engine answers."""
        self.visited.append(visit)
        return (
            None if self.visits is None else self.visits.count(visit.visitor, visit.kind, self.clock, most=visit.most)
        )

    async def visit_secret(self) -> bytes | None:
        return self.secret

    async def engine_figures(self) -> EngineFigures | None:
        return self.engine_counts

    async def projector_figures(self) -> ProjectorFigures | None:
        return self.projector_counts

    async def life(self, id: str) -> Life | None:
        self._fail()
        record = self.wallet.open.get(id) or self.wallet.provisional.get(id)
        if record is None:
            return None
        names = {bound.meter.budget: bound.meter.period for bound in record.bound}
        return Life(
            id,
            record.state,
            record.first,
            record.at,
            record.charged,
            record.granted,
            record.progress,
            record.expires_at,
            names,
            record.labels.get("key", ""),
        )

    async def read(self, word: str, payload: bytes = b"") -> bytes:
        self._fail()
        if word == "plan":
            self.plan_reads += 1
            return msgspec.json.encode(self.wallet.plan)
        if word == "alerts":
            return msgspec.json.encode(self.alerts)
        if word == "noted":
            return msgspec.json.encode(NotedAt(self._seq, self.memos.get(payload.decode())))
        if word == "noted_page":
            return msgspec.json.encode(self.memos.page(msgspec.json.decode(payload, type=NotedPage)))
        if word == "standings":
            return msgspec.json.encode(standings(self.wallet, msgspec.json.decode(payload), self.clock))
        if word == "would":
            return msgspec.json.encode(outcome_of(self.wallet, msgspec.json.decode(payload, type=Hold), self.clock))
        day = payload.decode()
        if word == "span":
            span = Span(day, 1, self._seq + 1 + self.unheard, False, self.wallet.scales, self.wallet.budget_units)
            return msgspec.json.encode(span if day == self.wallet.day else None)
        days = [total for total in self.total if word == "days" or total.period == day]
        return msgspec.json.encode((days, self.wallet_day, self.details) if word == "details" else days)

    async def read_stream(self, *, after: int) -> AsyncGenerator[Stored, None]:
        self.reading += 1
        try:
            for stored in self.stream:
                if stored.seq > after:
                    yield stored
            if self.breaks_off:
                raise NoAnswer("the stream was not heard to its end")
            await asyncio.Event().wait()  # as the stream: more may come at any time
        finally:
            self.reading -= 1

    async def test_alerts(self, target: str = "") -> list[TriedTarget]:
        if not self.targets:
            raise NoAnswer("nobody answers")
        return [TriedTarget(name, not why, why) for name, why in self.targets.items() if target in ("", name)]

    async def status(self) -> Status | None:
        if self.error is not None or self.wallet.plan is None:
            return None
        budgets = [
            self._status(name, budget) for name, budget in self.wallet.plan.budgets.items() if budget.each is None
        ]
        return Status(
            self.wallet.name,
            self._seq,
            self.clock,
            self.wallet.plan_digest,
            budgets,
            frozen=list(self.wallet.frozen.values()),
            open_holds=len(self.wallet.open) + sum(told.open_holds for told in self.figures.values()),
            barred=[
                *(Barred(*key, until=one.until, guard=one.guard) for key, one in self.wallet.cooling.items()),
                *(Barred(*key, reason=reason) for key, reason in self.wallet.revoked.items()),
            ],
        )

    def _status(self, name: str, budget: Budget) -> BudgetStatus:
        assert self.wallet.plan is not None
        period = periods.period_at(self.clock, per=budget.per, zone=budget.zone)
        settled, held, extra, figure = self.wallet.meters().get((name, None, period.name), (0, 0, 0, 0))
        if (told := self.figures.get(name)) is not None:
            settled, held = settled + told.settled, held + told.held
        observed, reading = self.observed.get(name, (None, None))
        if observed is None and figure:
            observed = Figure(budget.source or "", figure, self.clock)
        return BudgetStatus(
            name=name,
            unit=budget.unit,
            scale=self.wallet.plan.units[budget.unit],
            per=budget.per,
            zone=budget.zone,
            period=period.name,
            start=period.start,
            resets_at=period.end,
            limit=budget.limit,
            settled=settled,
            held=held,
            extra=extra,
            public=budget.public,
            source=budget.source or "",
            observed=observed,
            reading=reading,
        )

    # --- live ---------------------------------------------------------------------------------------------------------

    async def show(self) -> None:
        """The projector speaks."""
        status = await self.status()
        assert status is not None
        self._live.put_nowait(status)

    async def follow_status(self) -> AsyncIterator[Status]:
        while True:
            yield await self._live.get()
