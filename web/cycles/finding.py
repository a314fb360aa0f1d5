"""Finding what was noted: a reservation by its id, an event by its key. Nothing here changes anything."""

from __future__ import annotations

import asyncio
import time

import msgspec

from engine.core.documents import Noted, NotedAt, NotedPage
from engine.core.messages import AnyOutcome, Hold
from web.auth import Caller
from web.cycles.ids import ReservationId, tenant_mark
from web.cycles.refusals import Refused, not_found
from web.cycles.reservation import Reservation
from web.cycles.subject import own_tenant
from web.desk import Desk
from web.status import CATCH_UP_S, CATCH_UP_STEP_S

STEP_S = 0.001  # until the projector is asked again, each time twice as long: mostly it is behind by less

_noted = msgspec.json.Decoder(NotedAt)
_pages = msgspec.json.Decoder(list[Noted])
_outcomes: msgspec.json.Decoder[AnyOutcome] = msgspec.json.Decoder(AnyOutcome)


async def noted_of(desk: Desk, id: str, *, beyond: int = 0) -> Noted | None:
    """What is noted under an id on the stream.

    It is waited for, not for long, that the projector has folded what this process has answered, and the ask message
    `beyond`.
    """
    goal, deadline = max(desk.board.answered_seq, beyond), time.monotonic() + CATCH_UP_S
    step_s = STEP_S
    while True:
        found = _noted.decode(await desk.purse.read("noted", id.encode()))
        if found.upto >= goal or time.monotonic() >= deadline:
            return found.noted
        await asyncio.sleep(step_s)
        step_s = min(2 * step_s, CATCH_UP_STEP_S)


async def reservation_of(desk: Desk, hold: str, *, beyond: int = 0) -> Reservation | None:
    """The reservation behind this hold, as `noted_of`."""
    noted = await noted_of(desk, hold, beyond=beyond)
    return None if noted is None else Reservation.read(noted)


async def page_of(desk: Desk, namespace: str, *, beyond: int, newest: bool) -> list[Noted]:
    asked = NotedPage(namespace, beyond, newest)
    return _pages.decode(await desk.purse.read("noted_page", msgspec.json.encode(asked)))


async def find(desk: Desk, caller: Caller, written: str) -> Reservation:
    """The reservation of this id. Raises `Refused` 404, and 403 where it is another tenant's.

    One that the projector has not heard of may have been held a moment ago, through another process: its id says in
    which message, and that one is waited for.
    """
    id = ReservationId.read(written)
    if id is None:
        raise not_found()
    found = await reservation_of(desk, id.hold)
    if found is None or found.noted.first < id.seq:
        found = await reservation_of(desk, id.hold, beyond=id.seq)
    if found is None or found.noted.first != id.seq:
        raise not_found()
    own = own_tenant(caller)
    if own is not None and tenant_mark(own) != id.tenant:
        raise Refused(403, "FORBIDDEN", "This reservation is another tenant's.")
    return found


async def find_own(desk: Desk, caller: Caller, written: str) -> Reservation:
    """As `find`, for whoever would end it. A key that has ended speaks of what it opened, and of nothing else."""
    found = await find(desk, caller, written)
    if caller.ended is not None and found.noted.labels.get("key", "") != caller.key:
        raise Refused(403, "FORBIDDEN", "This key has ended, and did not open this reservation.")
    return found


async def again(desk: Desk, found: Reservation, *, seq: int) -> Reservation:
    """The same reservation, no older than the ask message `seq` has left it."""
    return await reservation_of(desk, found.noted.id, beyond=seq) or found


async def would(desk: Desk, hold: Hold) -> AnyOutcome:
    """What this hold would be told now."""
    return _outcomes.decode(await desk.purse.read("would", msgspec.json.encode(hold)))
