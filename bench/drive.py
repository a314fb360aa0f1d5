"""Drives one client in one shape for a while and counts what came back. Knows no contender, prints nothing."""

from __future__ import annotations

import asyncio
import itertools
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.contender import COST, HELD, USERS, Call, Client, Shape

WARM_UP_S = 0.5
WARM_UP_S_QUICK = 0.3


class WrongBooksError(AssertionError):
    """The contender's books do not say what it granted: its speed means nothing."""


@dataclass(frozen=True)
class Sample:
    """One measurement. Times of a request (an ask, or a batch) in ms; CPU in microseconds a decision."""

    decisions_per_s: float
    p50_ms: float
    p99_ms: float
    client_us: float
    service_us: float | None


class _Window:
    """The stretch of time in which answers count: after the warm-up, before the end."""

    def __init__(self, callers: int) -> None:
        self.all_begun = asyncio.Event()  # every caller has had an answer: connections are open
        self._not_begun = callers
        self.open = False
        self.over = False
        self.decisions = 0
        self.granted = 0  # warm-up and what was under way at the end included
        self.latencies: list[float] = []

    def begun(self) -> None:
        """One more caller has had its first answer."""
        self._not_begun -= 1
        if not self._not_begun:
            self.all_begun.set()

    def count(self, began: float, decisions: int) -> None:
        self.granted += decisions
        if self.open:
            self.latencies.append(time.perf_counter() - began)
            self.decisions += decisions


def calls() -> Iterator[Call]:
    """Calls without end, every one with an id nobody used before, users in turn."""
    run = secrets.token_hex(6)
    for number in itertools.count():
        yield Call(f"{run}-{number:010d}", f"u{number % USERS:05d}")


async def drive(client: Client, shape: Shape, *, seconds: float, warm_up_s: float) -> Sample:
    """Measure, then check the contender's books. Raises `WrongBooksError`, or whatever the client raised."""
    window, coming = _Window(shape.callers), calls()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(shape.callers):
            tasks.create_task(_caller(client, shape, window, coming))
        await window.all_begun.wait()
        await asyncio.sleep(warm_up_s)
        sample = await _measure(client, window, seconds)
    await _check_books(client, shape, window.granted)
    return sample


async def _measure(client: Client, window: _Window, seconds: float) -> Sample:
    began, service, own = time.perf_counter(), cpu_s(client.pids), time.process_time()
    window.open = True
    await asyncio.sleep(seconds)
    window.open, window.over = False, True
    took_s, own_s, service_s = time.perf_counter() - began, time.process_time() - own, cpu_s(client.pids) - service
    if not window.latencies:
        raise TimeoutError("not one answer while it was measured")
    latencies = sorted(window.latencies)
    return Sample(
        decisions_per_s=window.decisions / took_s,
        p50_ms=1e3 * percentile(latencies, 0.50),
        p99_ms=1e3 * percentile(latencies, 0.99),
        client_us=1e6 * own_s / window.decisions,
        service_us=1e6 * service_s / window.decisions if service_s else None,
    )


async def _caller(client: Client, shape: Shape, window: _Window, coming: Iterator[Call]) -> None:
    await _request(client, shape, window, coming)
    window.begun()
    while not window.over:
        await _request(client, shape, window, coming)


async def _request(client: Client, shape: Shape, window: _Window, coming: Iterator[Call]) -> None:
    if shape.asks > 1:
        batch = list(itertools.islice(coming, shape.asks))
        began = time.perf_counter()
        await client.hold_all(batch)
        window.count(began, shape.asks)
        return
    call = next(coming)
    began = time.perf_counter()
    await client.hold(call)
    window.count(began, 1)
    if shape.settles:
        began = time.perf_counter()
        await client.settle(call)
        window.count(began, 1)


async def _check_books(client: Client, shape: Shape, granted: int) -> None:
    expected = granted // 2 * COST if shape.settles else granted * HELD
    used = await client.used()
    if used != expected:
        raise WrongBooksError(f"{shape.title}: the shared budget has used {used:,}, granted was {expected:,}")


def percentile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def cpu_s(pids: Sequence[int]) -> float:
    """CPU seconds these processes have used, all their threads; 0 where the system does not say."""
    return sum(_ticks(pid) for pid in pids) / os.sysconf("SC_CLK_TCK")


def _ticks(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])  # utime and stime
