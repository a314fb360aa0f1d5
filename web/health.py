"""Whether this process lives, and whether the wallet as a whole can be used. Says nothing about money."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from aiohttp import web

from engine.errors import NoAnswer
from web.answers import json_response
from web.auth import Caller
from web.desk import Desk
from web.known import read_plan
from web.problems import RETRY_WHEN_BACK_S, Problem
from web.purse import Purse
from web.routes import Route

CHECK_TIMEOUT_S = 1.0

Found = TypeVar("Found")


async def _live(_request: web.Request, _desk: Desk, _caller: Caller) -> web.Response:
    return json_response({"live": True})


async def _ready(request: web.Request, desk: Desk, _caller: Caller) -> web.Response:
    """200 only when a hold would be decided: engine past its replay, projector there, a plan in force."""
    checks = await readiness(desk.purse)
    if not all(checks.values()):
        missing = ", ".join(name for name, well in checks.items() if not well)
        raise Problem(
            503, "not-ready", f"Not ready: {missing}.",
            more={"ready": False, "checks": checks, **_spool(desk)}, headers={"Retry-After": str(RETRY_WHEN_BACK_S)},
        )  # fmt: skip
    verbose = {"checks": checks, **_spool(desk)} if "verbose" in request.query else {}
    return json_response({"ready": True, **verbose})


def _spool(desk: Desk) -> dict[str, int]:
    """Settlements on this process's disk that the stream did not take yet: for a look, not a reason to be unready."""
    return {"spool_depth": desk.purse.spool_depth}


async def readiness(purse: Purse) -> dict[str, bool]:
    """Each part of the wallet, and whether it is well."""
    engine, plan, status = await asyncio.gather(_engine(purse), _has_plan(purse), _has_status(purse))
    return {"engine": engine, "projector": status, "plan": plan, "web": True}


async def _engine(purse: Purse) -> bool:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            return await purse.ready()
    except (TimeoutError, NoAnswer):
        return False


async def _has_plan(purse: Purse) -> bool:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            return await read_plan(purse) is not None
    except (TimeoutError, NoAnswer):
        return False


async def _has_status(purse: Purse) -> bool:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            return await purse.status() is not None
    except (TimeoutError, NoAnswer):
        return False


ROUTES = (
    Route(
        method="GET", path="/livez", access="public", handler=_live, tag="health",
        summary="This process answers.", answers={200: "It does."},
    ),
    Route(
        method="GET", path="/readyz", access="public", handler=_ready, tag="health",
        summary="A hold would be decided now. `?verbose` says what was looked at.",
        answers={200: "It would.", 503: "It would not; `checks` says what is missing."},
    ),
)  # fmt: skip
