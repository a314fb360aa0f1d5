"""`GET /v1/reservations` and `GET /v1/reservations/{id}`: what became of those that are remembered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
from aiohttp import web

from web.answers import json_response
from web.auth import Caller
from web.cycles.finding import find, page_of, reservation_of
from web.cycles.ids import hold_of, namespace
from web.cycles.queries import Query
from web.cycles.refusals import expired
from web.cycles.reservation import Reservation
from web.cycles.subject import LEVELS, tenant_of
from web.cycles.tenants import note_tenant
from web.desk import Desk

LOOKED_AT_MAX = 2_000
"""Reservations that one request looks through. Past it the page ends, and its cursor goes on from there."""

STATUSES = ("ACTIVE", "COMMITTED", "RELEASED", "EXPIRED")
WINDOWS = {"": "created_at_ms", "expires_": "expires_at_ms", "finalized_": "finalized_at_ms"}
"""What a filter's name begins with -> what it is about."""

FILTERS = (
    "idempotency_key", "status", *LEVELS, *(f"{window}{end}" for window in WINDOWS for end in ("from", "to")),
    "sort_by", "sort_dir", "limit", "cursor",
)  # fmt: skip


async def one(request: web.Request, desk: Desk, caller: Caller) -> web.Response:
    found = await find(desk, caller, request.match_info["id"])
    note_tenant(request, found.levels["tenant"])
    now = desk.purse.now()
    if found.status(now) == "EXPIRED":
        raise expired()
    body = _summary(found, now)
    if found.status(now) == "COMMITTED":
        body["committed"] = found.amount(found.noted.charged)
    if found.noted.ended_at:
        body["finalized_at_ms"] = found.finalized_at_ms
    return json_response(body)


async def many(request: web.Request, desk: Desk, caller: Caller) -> web.Response:
    """Newest first, unless `sort_dir` says otherwise."""
    query = Query(request, FILTERS)
    wanted = _Wanted.read(query)
    limit, cursor = query.limit(), query.number("cursor")
    query.one_of("sort_by", ("created_at_ms",))
    newest = query.one_of("sort_dir", ("asc", "desc")) != "asc"
    tenant = tenant_of(caller, query.said("tenant"), field="tenant")
    note_tenant(request, tenant)
    key = query.said("idempotency_key")
    now = desk.purse.now()
    if key is not None:
        named = await reservation_of(desk, hold_of(tenant, key))
        found = [_summary(named, now)] if named is not None and wanted.has(named, now) else []
        return json_response({"reservations": found, "has_more": False})
    await desk.board.catch_up()
    rows: list[dict[str, object]] = []
    looked_at = 0
    while looked_at < LOOKED_AT_MAX:
        page = await page_of(desk, namespace(tenant), beyond=cursor, newest=newest)
        for noted in page:
            if len(rows) == limit:
                return _page(rows, cursor)
            cursor = noted.number
            each = Reservation.read(noted)
            if each is not None and wanted.has(each, now):
                rows.append(_summary(each, now))
        if not page:
            return json_response({"reservations": rows, "has_more": False})
        looked_at += len(page)
    return _page(rows, cursor)


def _page(rows: list[dict[str, object]], cursor: int) -> web.Response:
    return json_response({"reservations": rows, "has_more": True, "next_cursor": str(cursor)})


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a listed reservation has to be."""

    status: str | None
    levels: Mapping[str, str]
    windows: Mapping[str, tuple[int | None, int | None]]

    @classmethod
    def read(cls, query: Query) -> _Wanted:
        windows = {
            about: (query.moment_ms(f"{window}from"), query.moment_ms(f"{window}to"))
            for window, about in WINDOWS.items()
        }
        return cls(query.one_of("status", STATUSES), query.levels(), windows)

    def has(self, one: Reservation, now: int) -> bool:
        if self.status is not None and one.status(now) != self.status:
            return False
        if not self.levels.items() <= one.levels.items():
            return False
        return all(_within(getattr(one, about), *window) for about, window in self.windows.items())


def _within(at_ms: int, first: int | None, last: int | None) -> bool:
    """Both ends are in it; what has not come about yet (0) is in no window."""
    if first is None and last is None:
        return True
    return at_ms > 0 and (first is None or at_ms >= first) and (last is None or at_ms <= last)


def _summary(one: Reservation, now: int) -> dict[str, object]:
    return {
        "reservation_id": one.id,
        "status": one.status(now),
        "idempotency_key": one.memo.key,
        "subject": one.subject,
        "action": msgspec.to_builtins(one.memo.action),
        "reserved": one.reserved,
        "created_at_ms": one.created_at_ms,
        "expires_at_ms": one.expires_at_ms,
        "scope_path": one.scopes[-1],
        "affected_scopes": one.scopes,
    }
