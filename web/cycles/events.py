"""`POST /v1/events`: what was spent without a reservation, or past the end of one.

A client that could not commit in time reports the cost as an event and names the reservation in its metadata. That one
is charged at its worst case already, so the event is its real cost, and not added to it.
"""

from __future__ import annotations

from aiohttp import web

from engine.core.messages import Again, Conflict, Settle, Settled, Stray
from web.answers import json_response
from web.auth import Caller
from web.cycles import units
from web.cycles.ending import check_unit_of
from web.cycles.finding import find_own, noted_of
from web.cycles.ids import event_id, event_of
from web.cycles.memos import Ended, endings, memo_of
from web.cycles.refusals import Refused, finalized, mismatch, unanswered
from web.cycles.requests import EventRequest, read_request
from web.cycles.reservation import Reservation
from web.cycles.reserving import WAIT_S, plan_of
from web.cycles.subject import is_counted, no_budget, resolve
from web.cycles.tenants import note_tenant
from web.desk import Desk

RECOVERED = "recovered_reservation_id"
"""In an event's metadata: the reservation it is the cost of."""


async def report(request: web.Request, desk: Desk, caller: Caller) -> web.Response:
    body, digest = await read_request(request, EventRequest)
    terms = await desk.known.ready()
    resolved = resolve(body.subject, caller)
    note_tenant(request, resolved.tenant)
    id = event_of(resolved.tenant, body.idempotency_key)
    before = await noted_of(desk, id)
    if before is not None:
        if endings.decode(before.memo).digest != digest:
            raise mismatch()
        return _applied(id)
    memo = memo_of(Ended("event", body.idempotency_key, digest))
    recovered = await _recovered(desk, caller, body)
    labels = {name: value for name, value in resolved.labels.items() if name != "origin"}
    if recovered is not None:
        check_unit_of(recovered, body.actual)
        amounts = units.ours(body.actual, recovered.memo.each, field="actual")
        ask = Settle(hold=_hold_behind(recovered), amounts=amounts, labels=labels, id=id, memo=memo)
    else:
        if not is_counted(resolved, plan_of(terms), body.actual.unit, field="actual"):
            raise no_budget(resolved)
        amounts = units.ours(body.actual, units.parts_of(body.actual.unit, terms.scales), field="actual")
        ask = Settle(hold=id, amounts=amounts, labels=labels, memo=memo)
    answered = await desk.purse.ask(ask, wait_s=WAIT_S)
    desk.board.answered(answered.seq)
    match answered.outcome:
        case Stray() | Settled():
            return _applied(id)
        case Again():
            return await _counted(desk, id, digest, seq=answered.seq)
        case Conflict(field="id"):
            raise mismatch()
        case Conflict() if recovered is not None:
            raise finalized("it was charged at another amount")
        case Conflict():
            raise mismatch()
        case _:
            raise unanswered("The wallet could not record this; send the same request again.")


async def _counted(desk: Desk, id: str, digest: str, *, seq: int) -> web.Response:
    """It counts already: by this event, or its reservation was settled at this very amount."""
    noted = await noted_of(desk, id, beyond=seq)
    if noted is not None and endings.decode(noted.memo).digest != digest:
        raise mismatch()
    return _applied(id)


async def _recovered(desk: Desk, caller: Caller, body: EventRequest) -> Reservation | None:
    """The reservation whose cost this is, None where there is none."""
    said = body.metadata.get(RECOVERED) if isinstance(body.metadata, dict) else None
    if not isinstance(said, str):
        return None
    try:
        return await find_own(desk, caller, said)
    except Refused as refused:
        if refused.status == 404:
            return None
        raise


def _hold_behind(recovered: Reservation) -> str:
    """What its cost is settled on. A release is exact, at nothing, so what it cost after all is settled beside it."""
    return recovered.beside if recovered.noted.released else recovered.noted.id


def _applied(id: str) -> web.Response:
    return json_response({"status": "APPLIED", "event_id": event_id(id)}, status=201)
