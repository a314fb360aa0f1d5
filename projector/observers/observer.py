"""One observer: asks its source at its pace and puts what it says on the stream. It never decides what a figure means.

    wait ─> ask the source ─> figures of one or two UTC days ─> observe, where there is something new ─> wait
                 └─ unreadable: wait longer, and say so in the status

A figure is never held back because it is lower than before: the wallet keeps the highest. One that has not changed is
observed again only every `HEARTBEAT_S`, so that the record shows that somebody looks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import date
from typing import Protocol, cast

import msgspec
import structlog

from engine.core.documents import BudgetStatus, Reading, Status
from engine.core.messages import AnyOutcome, Invalid, Observe, Observed
from engine.core.plan import Per
from engine.errors import BadAsk, NoAnswer, StreamRefused
from projector.observers.days import days_to_read, period_of, utc_day
from projector.observers.figures import smallest_parts
from projector.observers.fitting import unfit
from projector.observers.kinds import KINDS
from projector.observers.pace import Pace
from projector.observers.settings import ObserverSettings
from projector.observers.source import Figures, Source, Unreadable

SECOND = 1_000_000_000
HEARTBEAT_S = 300
PLAN_POLL_S = 1.0  # a new wallet has no plan yet: it is looked for here, and nobody is asked
READ_S_MAX = 60.0  # for all pages together
RECORD_S_MAX = 600.0  # while the stream is away nothing new is read: it could not be recorded either

log = structlog.get_logger()

StatusNow = Callable[[], Status]
"""The wallet as of now: the projector's own status, whose `as_of` is stream time and never in the future."""

Sleep = Callable[[float], Awaitable[None]]


class Recorder(Protocol):
    """Puts an observation on the stream. `engine.client.Purse` is one."""

    async def observe(self, ask: Observe, *, wait_s: float) -> AnyOutcome: ...


class _Said(msgspec.Struct, frozen=True, gc=False):
    """What was observed last for a period."""

    figure: int
    as_of: int


class _Unfit(Unreadable):
    """The plan in force has no place for the figure."""


class Observer:
    """Reads one account's figure for one budget. `turn` is held by whoever asks this source: one at a time."""

    def __init__(
        self,
        settings: ObserverSettings,
        source: Source,
        recorder: Recorder,
        *,
        turn: asyncio.Lock,
        pace: Pace,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.settings = settings
        self._kind = KINDS[settings.source]
        self._source, self._recorder = source, recorder
        self._turn, self._pace, self._sleep = turn, pace, sleep
        self._said: dict[str, _Said] = {}
        self._read_at: dict[str, int] = {}
        self._failures = 0
        self._unreadable = ""
        self._log = log.bind(observer=settings.name, source=settings.source, budget=settings.budget)

    async def run(self, status: StatusNow) -> None:
        """Observe until cancelled. Whatever a source does, this goes on."""
        await self._sleep(self._pace.first_s(since_last_s=self._since_last_s(status())))
        while True:
            await self._sleep(await self.look(status))

    async def look(self, status: StatusNow) -> float:
        """One try. Returns how long to wait until the next, in seconds."""
        if not status().plan:
            return PLAN_POLL_S
        try:
            await self._look(status)
        except _Unfit as unfit:  # nobody was asked, so nobody need be spared: the plan may be put right at any moment
            self._fail(unfit.why)
            return self._pace.next_s()
        except Unreadable as error:
            self._fail(error.why)
            return self._pace.again_s(self._failures, retry_after_s=error.retry_after_s)
        self._recover()
        return self._pace.next_s()

    def reading(self, period: str) -> Reading:
        """How reading fares, for whoever shows this period of the budget."""
        settings = self.settings
        return Reading(settings.source, settings.every_s, self._read_at.get(period, 0), self._unreadable)

    # --- one try ------------------------------------------------------------------------------------------------------

    async def _look(self, status: StatusNow) -> None:
        async with self._turn:
            now = status()
            budget = self._budget(now)
            days = days_to_read(now.as_of, quiet_s=self._kind.quiet_s, read_on_s=self._kind.read_on_s)
            figures = await self._read(days)
        periods = self._periods(days, budget)
        for day, period in reversed(periods.items()):  # today first: what becomes of yesterday must not be in its way
            figure = smallest_parts(figures[day], scale=budget.scale)
            await self._take(period, figure, as_of=now.as_of, ended=day < utc_day(now.as_of))
        self._forget(set(periods.values()))

    def _budget(self, status: Status) -> BudgetStatus:
        budget = _shared(status, self.settings.budget)
        if budget is None:
            raise _Unfit("the plan in force has no shared budget of this name")
        per = cast("Per", budget.per)
        wrong = unfit(
            self.settings.source, unit=budget.unit, per=per, zone=budget.zone, source=budget.source, at=status.as_of
        )
        if wrong is not None:
            raise _Unfit(wrong)
        return budget

    async def _read(self, days: list[date]) -> Figures:
        if not days:
            return {}
        try:
            async with asyncio.timeout(READ_S_MAX):
                return await self._source.read(days)
        except TimeoutError:
            raise Unreadable("it does not answer in time") from None

    def _periods(self, days: list[date], budget: BudgetStatus) -> dict[date, str]:
        """The days that are periods of the budget; in zones that sometimes are UTC not all need be."""
        per = cast("Per", budget.per)
        found = {day: period_of(day, per=per, zone=budget.zone) for day in days}
        return {day: period for day, period in found.items() if period is not None}

    # --- observing ----------------------------------------------------------------------------------------------------

    async def _take(self, period: str, figure: int, *, as_of: int, ended: bool) -> None:
        said = self._said.get(period)
        if said is None or said.figure != figure or as_of - said.as_of >= HEARTBEAT_S * SECOND:
            outcome = await self._record(period, figure, as_of)
            if isinstance(outcome, Invalid) and not (ended and outcome.field == "period"):
                raise Unreadable(f"what it said was not recorded: {outcome.field}: {outcome.why}")
            self._said[period] = _Said(figure, as_of)  # a day that is past the wallet's memory is nobody's fault
        self._read_at[period] = as_of

    async def _record(self, period: str, figure: int, as_of: int) -> AnyOutcome:
        budget = self.settings.budget
        id = f"observe:{budget}:{period}:{figure}:{as_of}"  # the same reading asked twice is one
        ask = Observe(id, budget, period, figure, as_of, self.settings.source)
        try:
            outcome = await self._recorder.observe(ask, wait_s=RECORD_S_MAX)
        except (NoAnswer, StreamRefused):
            raise Unreadable("what it said could not be recorded: the wallet does not answer") from None
        except BadAsk as error:
            raise Unreadable(f"what it said was not recorded: {error.field}: {error.why}") from None
        if isinstance(outcome, Observed):
            self._log.info("observed", period=period, figure=figure, as_of=as_of, raised_by=outcome.raised_by)
        return outcome

    def _forget(self, periods: set[str]) -> None:
        """What is not read any more need not be remembered."""
        if periods:
            self._said = {period: said for period, said in self._said.items() if period in periods}
            self._read_at = {period: at for period, at in self._read_at.items() if period in periods}

    def _since_last_s(self, status: Status) -> float | None:
        """How long ago anybody last observed the budget's running period, as far as the record shows."""
        budget = _shared(status, self.settings.budget)
        if budget is None or budget.observed is None:
            return None
        return (status.as_of - budget.observed.as_of) / SECOND

    # --- failing ------------------------------------------------------------------------------------------------------

    def _fail(self, why: str) -> None:
        self._failures += 1
        if why != self._unreadable:  # once, not at every try
            self._log.warning("source_unreadable", why=why)
        self._unreadable = why

    def _recover(self) -> None:
        if self._failures:
            self._log.info("source_readable", after_failures=self._failures)
        self._failures, self._unreadable = 0, ""


def _shared(status: Status, name: str) -> BudgetStatus | None:
    return next((budget for budget in status.budgets if budget.name == name), None)
