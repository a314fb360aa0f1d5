"""The operators' pages over a fake purse that has a whole day behind it: figures that hang together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random

from desk_client import KEY, Desk, open_desk

from engine.core.documents import Breakdown, DayTotals, Detail, Figure, Point, Reading, Sealed, Series, Spent, WalletDay
from engine.core.plan import Budget, Plan

NS = 1_000_000_000
STEP_NS = 300 * NS
START = 1_795_996_800 * NS  # 2026-11-30T00:00:00Z
END = START + 86_400 * NS
DOLLAR = 10**9
TODAY, YESTERDAY = "2026-11-30", "2026-11-29"

PLAN = Plan(
    budgets={
        "jev": Budget("usd", 20 * DOLLAR),
        "neurons": Budget("neurons", 10_000 * 10**6, source="cloudflare"),
    }
)
MODELS = {"gpt-5-mini": 41, "claude-haiku-4-5": 27, "gpt-5": 14, "llama-3.3-70b": 9, "mistral-small": 5}
USERS = {"alice": 30, "ben": 22, "chandra": 18, "dana": 11, "elif": 8, None: 4}
KEYS = {"7f3qk2m5xa": 62, "p9w4c8tzrb": 31}


def course(start: int, until: int, *, scale_to: int, seed: int) -> list[Point]:
    """Steps of a day that is quiet at night and busy at noon, and come to about `scale_to` in a whole day."""
    random, points = Random(seed), []
    for n in range((until - start) // STEP_NS):
        hour = n / 12
        busy = max(0.04, 1 - abs(hour - 13) / 9) * random.uniform(0.5, 1.5)
        settled = int(scale_to * busy / 150)
        points.append(
            Point(
                start + n * STEP_NS, settled, int(settled * random.uniform(0.2, 1.1)), int(40 * busy), int(busy > 1.25)
            )
        )
    return points


def split(settled: int, holds: int, shares: dict[str | None, int]) -> list[Spent]:
    """Rows in these percents; what is missing to a hundred is of Other."""
    return [Spent(value, settled * share // 100, holds * share // 100, share // 20) for value, share in shares.items()]


def breakdown(label: str, settled: int, holds: int, shares: dict[str | None, int], others: int) -> Breakdown:
    rows = split(settled, holds, shares)
    rest = Spent(None, settled - sum(row.settled for row in rows), holds - sum(row.holds for row in rows), 1)
    return Breakdown(label, rows, rest, others)


def day(
    budget: str, unit: str, scale: int, period: str, start: int, until: int, limit: int, seed: int
) -> tuple[DayTotals, Detail]:
    points = course(start, until, scale_to=limit, seed=seed)
    settled, holds = sum(one.settled for one in points), sum(one.holds for one in points)
    totals = DayTotals(
        budget, unit, scale, period, start, start + 86_400 * NS, 123_456, limit, settled, points[-1].held, 0,
        peak=settled + points[-1].held, peak_at=until, holds=holds, settles=holds - 3, open_holds=3,
        refused={"busy": 14, "spent": 0 if seed else 3, "never_fits": 2}, overruns=4, lapsed=1, estimated=9,
        late=1, wasted=limit // 9,
    )  # fmt: skip
    totals.refused = {why: count for why, count in totals.refused.items() if count}
    detail = Detail(
        budget, period, 123_456, settled,
        [
            breakdown("model", settled, holds, dict(MODELS), 6),
            breakdown("user", settled, holds, dict(USERS), 17),
            breakdown("key", settled, holds, dict(KEYS), 0),
            breakdown("feature", settled, holds, {"search": 55, "summaries": 32}, 2),
        ],
        Series(300, points),
    )  # fmt: skip
    return totals, detail


@dataclass
class Office:
    """The pages at `url`, the same purse over the API (`desk`), and its purse, to be moved."""

    url: str
    desk: Desk


@asynccontextmanager
async def office(**settings: object) -> AsyncIterator[Desk]:
    """The application at 14:05 of a busy day, and its fake purse. Sign in with `KEY`."""
    async with open_desk(PLAN, **settings) as desk:
        purse = desk.purse
        dollars = day("jev", "usd", 9, TODAY, START, purse.clock, 20 * DOLLAR, 1)
        neurons = day("neurons", "neurons", 6, TODAY, START, purse.clock, 10_000 * 10**6, 2)
        before = day("jev", "usd", 9, YESTERDAY, START - 86_400 * NS, START, 20 * DOLLAR, 0)
        before[0].sealed = Sealed(YESTERDAY, START, 100_000, START + NS)
        before[0].held = before[0].open_holds = 0
        before[0].first_exhausted_at = START - 4_000 * NS
        purse.total = [dollars[0], neurons[0], before[0]]
        purse.details = [dollars[1], neurons[1], before[1]]
        purse.wallet_day = WalletDay(TODAY, 123_456, {"busy": 31, "cooling": 5})
        purse.figures = {total.budget: total for total in purse.total[:2]}
        purse.observed = {
            "neurons": (
                Figure("cloudflare", neurons[0].settled, purse.clock - 12 * NS),
                Reading("cloudflare", 30, purse.clock - 12 * NS),
            )
        }
        await purse.show()
        try:
            yield desk
        finally:
            desk.board.close()  # no page holds the server up


__all__ = ["KEY", "office"]
