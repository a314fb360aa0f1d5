"""`GET /metrics`: what engine, projector and this web process count, for Prometheus.

Labels come from the plan, the config and fixed lists of words, never from a caller, so their number is bounded. Amounts
are floats here, in whole units, and only to be drawn. What is silent now has no values: a missing figure is not zero.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from aiohttp import web

from engine.core.documents import BudgetStatus, EngineFigures, ProjectorFigures, Status
from engine.errors import NoAnswer
from web.auth import Caller
from web.desk import Desk
from web.exposition import CONTENT_TYPE, MEDIA_TYPE, Family, Histogram, Kind, text
from web.moments import NS_PER_S
from web.routes import Route

DECISIONS = Kind(
    "purse_decisions", "counter", "Asks decided since the wallet began, by ask and outcome.", ("ask", "outcome")
)
LAPSED = Kind("purse_holds_lapsed", "counter", "Holds that ended by time since the wallet began.")
LATENCY = Kind("purse_decision_seconds", "histogram", "From reading a message to its told, by the engine that speaks.")
RATIO = Kind("purse_budget_used_ratio", "gauge", "Used of the limit, by shared budget.", ("budget",))
AMOUNT = Kind(
    "purse_budget_amount",
    "gauge",
    "Settled, held, extra, used, limit and remaining, in units.",
    ("budget", "unit", "what"),
)
FROZEN = Kind("purse_freezes", "gauge", "Freezes in force.")
OPEN_HOLDS = Kind("purse_open_holds", "gauge", "Holds that are open.")
OBSERVED_AGE = Kind(
    "purse_observer_age_seconds", "gauge", "Since a provider's figure was read, by budget.", ("budget",)
)
WAITING = Kind("purse_engine_waiting", "gauge", "Messages that are decided and not told yet.")
LAG = Kind("purse_projection_lag_messages", "gauge", "How far the projector is behind the engine, in stream sequences.")
UP = Kind("purse_up", "gauge", "1 where this part answers.", ("part",))
SPOOL = Kind("purse_spool_depth", "gauge", "Settlements on this web process's disk that the stream did not take yet.")
VIEWERS = Kind("purse_sse_viewers", "gauge", "Who watches this web process's live stream.")
UPSTREAM = Kind(
    "purse_upstream_calls",
    "counter",
    "Calls this web process sent, by upstream and class of answer.",
    ("upstream", "answer"),
)
SLOWED = Kind("purse_visits_slowed", "counter", "Visits this web process told to wait, by kind.", ("kind",))

KINDS = (
    DECISIONS, LAPSED, LATENCY, RATIO, AMOUNT, FROZEN, OPEN_HOLDS, OBSERVED_AGE, WAITING, LAG, UP, SPOOL, VIEWERS,
    UPSTREAM, SLOWED,
)  # fmt: skip


async def _metrics(_request: web.Request, desk: Desk, _caller: Caller) -> web.Response:
    engine, projector, status = await asyncio.gather(
        desk.purse.engine_figures(), desk.purse.projector_figures(), _status(desk)
    )
    families = [*_parts(engine, projector), *_of_engine(engine, projector), *_of_wallet(status), *_of_web(desk)]
    return web.Response(body=text(families).encode(), headers={"Content-Type": CONTENT_TYPE})


async def _status(desk: Desk) -> Status | None:
    try:
        return await desk.purse.status()
    except NoAnswer:
        return None


def _parts(engine: EngineFigures | None, projector: ProjectorFigures | None) -> Iterator[Family]:
    up = {"engine": engine is not None, "projector": projector is not None, "web": True}
    yield Family(UP, [({"part": part}, int(well)) for part, well in up.items()])


def _of_engine(engine: EngineFigures | None, projector: ProjectorFigures | None) -> Iterator[Family]:
    if projector is not None:
        yield Family(DECISIONS, [(_asked(name), count) for name, count in sorted(projector.outcomes.items())])
        yield Family(LAPSED, [({}, projector.lapsed)])
    if engine is not None:
        yield Family(LATENCY, [({}, Histogram(engine.latency_bounds_s, engine.latency, engine.latency_sum_s))])
        yield Family(WAITING, [({}, engine.waiting)])
    if engine is not None and projector is not None:
        yield Family(LAG, [({}, max(0, engine.told_upto - projector.upto))])


def _asked(name: str) -> dict[str, str]:
    ask, _, outcome = name.partition(" ")
    return {"ask": ask, "outcome": outcome}


def _of_wallet(status: Status | None) -> Iterator[Family]:
    if status is None:
        return
    yield Family(OPEN_HOLDS, [({}, status.open_holds)])
    yield Family(FROZEN, [({}, len(status.frozen))])
    yield Family(RATIO, [({"budget": one.name}, one.used / one.limit) for one in status.budgets if one.limit])
    yield Family(AMOUNT, [value for one in status.budgets for value in _amounts(one)])
    yield Family(OBSERVED_AGE, list(_ages(status.budgets, status.as_of)))


def _amounts(budget: BudgetStatus) -> Iterator[tuple[dict[str, str], float]]:
    amounts = {
        "settled": budget.settled, "held": budget.held, "extra": budget.extra, "used": budget.used,
        "limit": budget.limit, "remaining": budget.remaining,
    }  # fmt: skip
    for what, amount in amounts.items():
        yield {"budget": budget.name, "unit": budget.unit, "what": what}, amount / 10**budget.scale


def _ages(budgets: Iterable[BudgetStatus], now: int) -> Iterator[tuple[dict[str, str], float]]:
    for one in budgets:
        read_at = one.reading.read_at if one.reading is not None else one.observed.as_of if one.observed else 0
        if read_at:
            yield {"budget": one.name}, max(0, now - read_at) / NS_PER_S


def _of_web(desk: Desk) -> Iterator[Family]:
    yield Family(SPOOL, [({}, desk.purse.spool_depth)])
    yield Family(VIEWERS, [({}, desk.board.viewers)])
    sent = sorted(desk.upstream_calls.items())
    yield Family(UPSTREAM, [({"upstream": name, "answer": answer}, count) for (name, answer), count in sent])
    yield Family(SLOWED, [({"kind": kind}, count) for kind, count in desk.slowing.slowed.items()])


ROUTES = (
    Route(
        method="GET", path="/metrics", access="observe", handler=_metrics, tag="health", media_type=MEDIA_TYPE,
        summary="Metrics of the whole wallet and of this web process, as OpenMetrics text.",
        answers={
            200: "The metrics; a part that is silent has none.",
            401: "A key is needed.",
            403: "The key's role may not look at this.",
        },
    ),
)  # fmt: skip
