"""Send recorded traffic through a wallet: hold the most each call could cost, then settle what it did cost.

Every call has an id that follows from the run's name and its row, and nothing is decided here. So web, engine or broker
may die at any moment: whatever got no answer is sent again, word for word, and counts once. A hold gives up after its
patience (the call is then not made); a settle never does, because the money is gone.

    row -> hold -> held ----> log -> settle -> settled, stray or again: the wallet has it
                -> refused    the call is not made
                -> closed     an earlier try of this run has done it, or left it provisional: then settle

A row's real cost is computed from the trace alone, so the sums of the trace and of the wallet are independent.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count, islice

from commonpurse.call_log import CallLog
from commonpurse.http import Api
from commonpurse.said import REFUSALS, Said
from commonpurse.telling import Never, NotNow, tell_all
from commonpurse.trace import Prices, Row, Trace, TraceError
from engine.core.amounts import SCALES, AmountError, format_amount, parse

UNIT = "usd"
COMPLAINTS_MAX = 5  # shown at the end; the counts are complete


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a hold is asked again, and the pauses between: doubling from the first to the longest."""

    hold_s: float = 60.0
    first_pause_s: float = 0.05
    longest_pause_s: float = 2.0

    def pause_s(self, tries: int, *, asked_s: float) -> float:
        """Spread at random, so that calls which failed together do not come back together."""
        backoff_s = min(self.first_pause_s * (1 << min(tries, 16)), self.longest_pause_s)
        return max(backoff_s, min(asked_s, self.longest_pause_s)) * random.uniform(0.5, 1.0)  # noqa: S311  no secret


@dataclass(frozen=True, slots=True)
class Load:
    """How the trace is sent. `speed` is times real time, 0: as fast as it goes; `batch` is rows a request."""

    run: str
    prices: Prices
    labels: Mapping[str, str] = field(default_factory=dict)
    speed: float = 0.0
    concurrency: int = 64
    batch: int = 1
    patience: Patience = Patience()

    def hold_id(self, row: Row) -> str:
        """The same row of the same run has the same id for ever."""
        return f"drive:{self.run}:{row.number}"


@dataclass(slots=True)
class Tally:
    """So far. Nano-dollars: `trace` of all rows, `due` of those let pass, `settled` by the wallet's word."""

    rows: int = 0
    held: int = 0
    already: int = 0  # done by an earlier try of the same run
    refused: Counter[str] = field(default_factory=Counter)
    overruns: int = 0
    strays: int = 0
    unequal: int = 0  # the wallet stands at another charge than the trace's
    errors: int = 0
    retries: int = 0
    unsettled: int = 0  # held, and the settlement has not landed yet
    trace_nanos: int = 0
    due_nanos: int = 0
    settled_nanos: int = 0
    complaints: list[str] = field(default_factory=list)
    stopped: str = ""

    @property
    def answered(self) -> int:
        """Rows that are through: settled now or before, or refused."""
        return self.held - self.unsettled + self.already + self.refused.total()

    @property
    def exact(self) -> bool:
        """Every row was answered, and the wallet charged exactly what the trace says."""
        whole = not (self.errors or self.unequal or self.unsettled or self.stopped)
        return whole and self.due_nanos == self.settled_nanos

    def complain(self, why: str) -> None:
        """Keep the first few reasons: a million equal ones tell no more."""
        if len(self.complaints) < COMPLAINTS_MAX and why not in self.complaints:
            self.complaints.append(why)

    def fail(self, why: str) -> None:
        """Count a row that ended without what it came for."""
        self.errors += 1
        self.complain(why)


class Drive:
    """One run. The workers share one iterator over the trace, so at most `concurrency * batch` rows are in memory."""

    def __init__(self, api: Api, trace: Trace, load: Load, *, log: CallLog | None = None) -> None:
        self.tally = Tally()
        self._api, self._load, self._log = api, load, log
        self._rows = iter(trace)
        self._stopping = asyncio.Event()
        self._heard_at = time.monotonic()
        self._start: tuple[int, float] | None = None  # the first row's moment, and ours

    def stop(self, why: str) -> None:
        """Begin no further rows. What is held is still settled."""
        self.tally.stopped = self.tally.stopped or why
        self._stopping.set()

    async def run(self) -> None:
        """Ends when every row has its answer, or after `stop` when every held row is settled."""
        async with asyncio.TaskGroup() as workers:
            for _ in range(self._load.concurrency):
                workers.create_task(self._work())

    async def _work(self) -> None:
        while group := self._take():
            await self._until_due(group[-1])
            if not self._stopping.is_set():
                await self._carry(group)

    def _take(self) -> list[Row]:
        if self._stopping.is_set():
            return []
        try:
            return list(islice(self._rows, self._load.batch))
        except TraceError as error:  # rows under way must still be settled, so this ends reading, not the run
            self.stop(str(error))
            return []

    async def _until_due(self, row: Row) -> None:
        """At the file's own pace: rows of a group leave together when the last of them was made."""
        if not self._load.speed:
            return
        first_ns, started_at = self._start = self._start or (row.at_ns, time.monotonic())
        due_at = started_at + (row.at_ns - first_ns) / 1e9 / self._load.speed
        with suppress(TimeoutError):
            async with asyncio.timeout(due_at - time.monotonic()):
                await self._stopping.wait()

    async def _carry(self, group: Sequence[Row]) -> None:
        """Take the calls of one group from their holds to their settlements."""
        self.tally.rows += len(group)
        self.tally.trace_nanos += sum(map(self._load.prices.real_nanos, group))
        passed: list[Row] = []

        def take(row: Row, said: Said | Never) -> None:
            if self._passes(row, said):
                passed.append(row)

        unheard = await self._insist(group, self._hold_ask, take, patience_s=self._load.patience.hold_s)
        self._give_up(unheard)
        await self._write_log(passed)
        await self._insist(passed, self._settle_ask, self._take_settled)

    async def _insist(
        self,
        rows: Sequence[Row],
        ask_for: Callable[[Row], Mapping[str, object]],
        take: Callable[[Row, Said | Never], None],
        *,
        patience_s: float | None = None,
    ) -> list[tuple[Row, NotNow]]:
        """Ask for the rows, and again for those nobody answered, until each was taken or patience ends.

        Without `patience_s` there is no end but an answer. Returns the rows that got none.
        """
        gives_up_at = time.monotonic() + patience_s if patience_s is not None else None
        for tries in count():
            heard = await tell_all(self._api, [ask_for(row) for row in rows], batch=self._load.batch > 1)
            later: list[tuple[Row, NotNow]] = []
            for row, said in zip(rows, heard, strict=True):
                if isinstance(said, NotNow):
                    later.append((row, said))
                else:
                    self._heard_at = time.monotonic()
                    take(row, said)
            if not later or (gives_up_at is not None and time.monotonic() >= gives_up_at):
                return later
            rows = [row for row, _ in later]
            self.tally.retries += len(rows)
            asked_s = max(said.retry_after_s for _, said in later)
            await asyncio.sleep(self._load.patience.pause_s(tries, asked_s=asked_s))
        raise AssertionError("count() does not end")

    def _passes(self, row: Row, said: Said | Never) -> bool:
        """Whether the call is made, and so is to be settled."""
        match said:
            case Said(outcome="held") | Said(outcome="again", state="open"):
                self._count_held(row)
                return True
            case Said(outcome="closed"):
                return self._passes_closed(row, said)
            case Said(outcome=outcome) if outcome in REFUSALS:
                self.tally.refused[said.why or outcome] += 1
            case Said(outcome="conflict"):
                self.tally.fail(f"{self._load.hold_id(row)} is bound to other fields")
                self.stop(f"run {self._load.run} was made from another trace, price or label: choose a fresh --run")
            case Never():
                self.tally.fail(said.why)
                self.stop(said.why)
            case _:
                self.tally.fail(_unexpected(said))
                self.stop(_unexpected(said))
        return False

    def _passes_closed(self, row: Row, said: Said) -> bool:
        """An earlier try of this run got so far; what lapsed or was estimated is still to be corrected."""
        real, charged = self._load.prices.real_nanos(row), self._charged(said)
        if said.state in {"lapsed", "estimated"} or charged not in {0, real}:
            self._count_held(row)
            return True
        if charged == real:
            self.tally.already += 1
            self.tally.due_nanos += real
            self.tally.settled_nanos += real
        else:
            self.tally.fail(f"{self._load.hold_id(row)} was given back before")
        return False

    def _count_held(self, row: Row) -> None:
        real = self._load.prices.real_nanos(row)
        self.tally.held += 1
        self.tally.unsettled += 1
        self.tally.due_nanos += real
        self.tally.overruns += real > self._load.prices.worst_nanos(row)

    def _take_settled(self, row: Row, said: Said | Never) -> None:
        hold = self._load.hold_id(row)
        if isinstance(said, Never):
            return self.tally.fail(f"{hold} is not settled: {said.why}")
        if said.outcome not in {"settled", "stray", "again", "conflict"}:
            return self.tally.fail(f"{hold} is not settled: {_unexpected(said)}")
        self.tally.unsettled -= 1
        self.tally.strays += said.outcome == "stray"
        self.tally.settled_nanos += self._charged(said)
        if self._charged(said) != self._load.prices.real_nanos(row):
            self.tally.unequal += 1
            self.tally.complain(f"{hold} stands at {said.charged.get(UNIT, '0')} {UNIT} in the wallet")
        return None

    def _charged(self, said: Said) -> int:
        written = said.charged.get(UNIT, "0")
        try:
            return parse(written, unit=UNIT, scale=SCALES[UNIT])
        except AmountError as error:
            self.tally.fail(f"the wallet's charge cannot be read: {error}")
            return 0

    def _give_up(self, unheard: Sequence[tuple[Row, NotNow]]) -> None:
        for row, said in unheard:
            self.tally.fail(f"{self._load.hold_id(row)} got no answer: {said.why}")
        silent_s = time.monotonic() - self._heard_at
        if unheard and silent_s >= self._load.patience.hold_s:
            self.stop(f"nobody answered for {silent_s:.0f} s")

    async def _write_log(self, rows: Sequence[Row]) -> None:
        """Before they are settled: the file then names every call that was made, whatever happens to us."""
        if self._log is not None and rows:
            await self._log.add((self._load.hold_id(row), _written(self._load.prices.real_nanos(row))) for row in rows)

    def _hold_ask(self, row: Row) -> dict[str, object]:
        worst = self._load.prices.worst_nanos(row)
        return {"ask": "hold", "id": self._load.hold_id(row), "amounts": _usd(worst), "labels": self._load.labels}

    def _settle_ask(self, row: Row) -> dict[str, object]:
        real = self._load.prices.real_nanos(row)
        return {"ask": "settle", "hold": self._load.hold_id(row), "amounts": _usd(real)}


def _usd(nanos: int) -> dict[str, str]:
    return {UNIT: _written(nanos)}


def _written(nanos: int) -> str:
    return format_amount(nanos, scale=SCALES[UNIT])


def _unexpected(said: Said) -> str:
    return f"the wallet said {said.outcome or 'nothing'}: {said.problem or 'no reason given'}"
