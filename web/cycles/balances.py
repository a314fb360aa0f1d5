"""`GET /v1/balances`: how the budgets of a tenant's scopes stand.

A scope and unit has one balance in Cycles and may have several budgets here (a day's, a month's): the tightest is told.
Budgets that are not of levels alone bind as well, and are not listed: they are not this tenant's own.
"""

from __future__ import annotations

import msgspec
from aiohttp import web

from engine.core.documents import Standing
from web.answers import json_response
from web.auth import Caller
from web.cycles import units
from web.cycles.queries import Query
from web.cycles.refusals import invalid
from web.cycles.requests import Unit
from web.cycles.subject import LEVELS, resolved, scope_of
from web.cycles.tenants import note_tenant
from web.desk import Desk

_standings = msgspec.json.Decoder(list[Standing])


async def balances(request: web.Request, desk: Desk, caller: Caller) -> web.Response:
    query = Query(request, (*LEVELS, "include_children", "limit", "cursor"))
    levels = query.levels()
    if not levels:
        raise invalid("query", f"name at least one of {', '.join(LEVELS)}")
    query.flag("include_children")  # the balances below a scope are not told: there may be any number of them
    limit, beyond = query.limit(), query.number("cursor")
    terms = await desk.known.ready()
    assert terms.plan is not None
    asked = resolved(levels, caller, field="query")
    note_tenant(request, asked.tenant)
    await desk.board.catch_up()
    found = _standings.decode(await desk.purse.read("standings", msgspec.json.encode(asked.labels)))
    tightest: dict[tuple[str, Unit], Standing] = {}
    for standing in found:
        budget, unit = terms.plan.budgets.get(standing.budget), units.NAMES.get(standing.unit)
        scope = scope_of(budget, asked.levels) if budget is not None else None
        if scope is None or unit is None:
            continue
        known = tightest.get((scope, unit))
        if known is None or _room(standing) < _room(known):
            tightest[scope, unit] = standing
    order = sorted(tightest, key=lambda key: (key[0].count("/"), key))
    page = order[beyond : beyond + limit]
    body: dict[str, object] = {
        "balances": [_balance(scope, unit, tightest[scope, unit], terms.scales) for scope, unit in page]
    }
    more = beyond + limit < len(order)
    return json_response({**body, "has_more": more, **({"next_cursor": str(beyond + limit)} if more else {})})


def _room(standing: Standing) -> int:
    return standing.limit - standing.base - standing.held


def _balance(scope: str, unit: Unit, standing: Standing, scales: dict[str, int]) -> dict[str, object]:
    """remaining = allocated - spent - reserved - debt: spent up to the limit, debt beyond it."""
    each = units.parts_of(unit, scales)
    allocated = standing.limit // each
    base, reserved = units.up(standing.base, each), units.up(standing.held, each)
    spent = min(base, allocated)
    debt = base - spent
    return {
        "scope": scope,
        "scope_path": scope,
        "remaining": units.written(unit, allocated - spent - reserved - debt),
        "allocated": units.written(unit, allocated),
        "spent": units.written(unit, spent),
        "reserved": units.written(unit, reserved),
        "debt": units.written(unit, debt),
        "is_over_limit": debt > 0,
    }
