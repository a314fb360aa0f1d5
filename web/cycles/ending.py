"""Commit, release, extend: what becomes of a reservation.

What was decided before is looked at first, so that a repeat hears the first answer; whether something happens is for
the engine alone. A commit is charged in full whatever it comes to, and whatever the overage policy says.
"""

from __future__ import annotations

from aiohttp import web

from engine.core.limits import HOLD_LIFE_S_MAX
from engine.core.messages import Held, Renew, Settle, Settled
from engine.core.plan import Plan
from web.answers import json_response
from web.auth import Caller
from web.cycles import units
from web.cycles.finding import again, find, find_own
from web.cycles.memos import Ended, Extend, memo_of
from web.cycles.refusals import Refused, expired, finalized, mismatch, unanswered
from web.cycles.requests import Amount, CommitRequest, ExtendRequest, ReleaseRequest, read_request
from web.cycles.reservation import NS_PER_MS, Reservation
from web.cycles.reserving import WAIT_S, plan_of
from web.cycles.tenants import note_tenant
from web.desk import Desk
from web.purse import Answered

EXTENSIONS_MAX = 1_000  # of one reservation; each is remembered while the reservation is
EXTEND_TRIES = 32  # where others extend the same reservation at the same moment
MARGIN_S = 1  # by how much our estimate of stream time may be ahead of the moment that decides

MOVED = "Others changed this reservation at the same moment; send the same request again."


# --- commit and release -----------------------------------------------------------------------------------------------


async def commit(request: web.Request, desk: Desk, caller: Caller) -> web.Response:
    body, digest = await read_request(request, CommitRequest)
    found = await find_own(desk, caller, request.match_info["id"])
    note_tenant(request, found.levels["tenant"])
    memo = Ended("commit", body.idempotency_key, digest)
    if not _may_end(found, memo, now=desk.purse.now()):
        check_unit_of(found, body.actual)
        amounts = units.ours(body.actual, found.memo.each, field="actual")
        answered = await desk.purse.ask(Settle(hold=found.noted.id, amounts=amounts, memo=memo_of(memo)), wait_s=WAIT_S)
        found = await _ended(desk, found, memo, answered)
    return json_response({"status": "COMMITTED", "charged": found.amount(found.noted.charged), **_released(found)})


async def release(request: web.Request, desk: Desk, caller: Caller) -> web.Response:
    body, digest = await read_request(request, ReleaseRequest)
    found = await find_own(desk, caller, request.match_info["id"])
    note_tenant(request, found.levels["tenant"])
    memo = Ended("release", body.idempotency_key, digest)
    if not _may_end(found, memo, now=desk.purse.now()):
        answered = await desk.purse.ask(Settle(hold=found.noted.id, release=True, memo=memo_of(memo)), wait_s=WAIT_S)
        found = await _ended(desk, found, memo, answered)
    return json_response({"status": "RELEASED", "released": _left_over(found)})


def check_unit_of(found: Reservation, amount: Amount) -> None:
    """Raises `Refused` 400 for another unit than what was reserved."""
    if amount.unit != found.memo.unit:
        raise Refused(
            400, "UNIT_MISMATCH", f"actual.unit: this reservation is in {found.memo.unit}",
            details={
                "scope": found.scopes[-1], "requested_unit": amount.unit, "expected_units": [found.memo.unit],
            },
        )  # fmt: skip


def _may_end(found: Reservation, memo: Ended, *, now: int) -> bool:
    """Whether it has ended by this very request; if not, it may still end. Raises `Refused` 409 and 410."""
    status = found.status(now)
    if found.ended is not None and (found.ended.by, found.ended.key) == (memo.by, memo.key):
        if found.ended.digest != memo.digest:
            raise mismatch()
        return True
    if status == "EXPIRED":
        raise expired()
    if status != "ACTIVE":
        raise finalized(status)
    return False


async def _ended(desk: Desk, found: Reservation, memo: Ended, answered: Answered) -> Reservation:
    """The reservation once it has ended by this request. Raises `Refused` where another came before it."""
    desk.board.answered(answered.seq)
    if isinstance(answered.outcome, Settled):
        found.noted.charged = answered.outcome.charged
        return found
    found = await again(desk, found, seq=answered.seq)
    if _may_end(found, memo, now=desk.purse.now()):
        return found
    raise unanswered(MOVED)


def _released(found: Reservation) -> dict[str, object]:
    """What came back, where something did."""
    left = _left_over(found)
    return {"released": left} if left["amount"] else {}


def _left_over(found: Reservation) -> dict[str, object]:
    unit = units.UNITS[found.memo.unit][0]
    left = found.noted.amounts.get(unit, 0) - found.noted.charged.get(unit, 0)
    return found.amount({unit: max(0, left)})


# --- extend -----------------------------------------------------------------------------------------------------------


async def extend(request: web.Request, desk: Desk, caller: Caller) -> web.Response:
    body, digest = await read_request(request, ExtendRequest)
    found = await find(desk, caller, request.match_info["id"])
    note_tenant(request, found.levels["tenant"])
    for _ in range(EXTEND_TRIES):
        done = _extended(found, body.idempotency_key, digest)
        if done is not None:
            return json_response(_active(found, done.expires_at_ms, now=desk.purse.now()))
        ask, memo = _renewal(found, body, digest, plan=plan_of(await desk.known.ready()), now=desk.purse.now())
        answered = await desk.purse.ask(ask, wait_s=WAIT_S)
        desk.board.answered(answered.seq)
        if isinstance(answered.outcome, Held):
            found.extensions.append(memo)
            return json_response(_active(found, memo.expires_at_ms, now=desk.purse.now()))
        found = await again(desk, found, seq=answered.seq)
    raise unanswered(MOVED)


def _extended(found: Reservation, key: str, digest: str) -> Extend | None:
    """What this request was told before. Raises `Refused` 409 where its key stood for another."""
    for done in found.extensions:
        if done.key == key:
            if done.digest != digest:
                raise mismatch()
            return done
    return None


def _renewal(found: Reservation, body: ExtendRequest, digest: str, *, plan: Plan, now: int) -> tuple[Renew, Extend]:
    """The renewal that moves the expiry by as much as is asked, or as far as this wallet goes.

    Raises `Refused` 409 and 410. Ours counts from the moment it is decided, Cycles' from the expiry before: the `ttl_s`
    is what leads from one to the other.
    """
    status, now_ms = found.status(now), now // NS_PER_MS
    if status in ("COMMITTED", "RELEASED"):
        raise finalized(status)
    if status == "EXPIRED" or now_ms > found.expires_at_ms:
        raise expired()
    grace_ms = found.memo.grace_ms
    furthest = min(
        found.created_at_ms + HOLD_LIFE_S_MAX * 1_000 - grace_ms,
        now_ms + (plan.ttl_s_max - MARGIN_S) * 1_000 - grace_ms,
    )
    expires_at_ms = min(found.expires_at_ms + body.extend_by_ms, furthest)
    if expires_at_ms <= found.expires_at_ms or found.noted.renewals >= EXTENSIONS_MAX:
        raise Refused(409, "MAX_EXTENSIONS_EXCEEDED", "This reservation cannot be extended any further now.")
    memo = Extend(body.idempotency_key, digest, expires_at_ms)
    ttl_s = -(-(expires_at_ms + grace_ms - now_ms) // 1_000) + MARGIN_S
    ttl_s = min(plan.ttl_s_max, max(plan.ttl_s_min, ttl_s))
    return Renew(hold=found.noted.id, n=found.noted.renewals + 1, ttl_s=ttl_s, memo=memo_of(memo)), memo


def _active(found: Reservation, expires_at_ms: int, *, now: int) -> dict[str, object]:
    return {"status": "ACTIVE", "expires_at_ms": expires_at_ms, "remaining_ttl_ms": found.remaining_ttl_ms(now)}
