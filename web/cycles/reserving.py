"""`POST /v1/reservations` and `POST /v1/decide`: may this be spent? The first holds it, the second only looks."""

from __future__ import annotations

import msgspec
from aiohttp import web

from engine.core.messages import (
    Again,
    AnyOutcome,
    Closed,
    Conflict,
    Cooling,
    Exhausted,
    Frozen,
    Held,
    Hold,
    Invalid,
    Late,
    Option,
    Revoked,
    Settle,
)
from engine.core.plan import Plan
from web.answers import json_response
from web.auth import Caller
from web.cycles import units
from web.cycles.finding import reservation_of, would
from web.cycles.ids import ReservationId, hold_of
from web.cycles.memos import Reserve, memo_of
from web.cycles.refusals import Refused, finalized, invalid, mismatch, unanswered
from web.cycles.requests import DecisionRequest, ReservationRequest, read_request
from web.cycles.reservation import NS_PER_MS
from web.cycles.subject import Resolved, is_counted, no_budget, resolve, scope_of
from web.cycles.tenants import note_tenant
from web.desk import Desk
from web.known import Terms
from web.moments import NS_PER_S
from web.purse import Answered

WAIT_S = 4.0
"""For an answer. Clients of Cycles stop reading after five seconds."""

LOOK_AHEAD_S = 60.0
"""Until when a look would wait, so that it is never late by whose clock it is looked at."""


async def reserve(request: web.Request, desk: Desk, caller: Caller) -> web.Response:
    body, digest = await read_request(request, ReservationRequest)
    terms = await desk.known.ready()
    resolved = resolve(body.subject, caller)
    note_tenant(request, resolved.tenant)
    if body.dry_run:
        return json_response(await _look(desk, body, resolved, terms, digest=digest, dry_run=True))
    plan = plan_of(terms)
    if not is_counted(resolved, plan, body.estimate.unit, field="estimate"):
        raise no_budget(resolved)
    ask = _hold(desk, body, resolved, terms, digest=digest)
    answered = await desk.purse.ask(ask, wait_s=WAIT_S)
    desk.board.answered(answered.seq)
    match answered.outcome:
        case Held() as held:
            if not held.budgets:  # the plan has changed since: nothing counts this
                await desk.purse.ask(Settle(hold=ask.id, release=True, by=ask.by))
                raise no_budget(resolved)
            return json_response(_reserved(body, resolved, ask.id, held, answered.seq, now=desk.purse.now()))
        case Again(was=Held()) | Conflict() | Closed() as known:
            return await _replay(desk, ask, answered, known, digest=digest)
        case Again(was=was) if was is not None:
            raise _refusal(was, resolved, plan, at=answered.at)
        case other:
            raise _refusal(other, resolved, plan, at=answered.at)


async def decide(request: web.Request, desk: Desk, caller: Caller) -> web.Response:
    body, digest = await read_request(request, DecisionRequest)
    terms = await desk.known.ready()
    resolved = resolve(body.subject, caller)
    note_tenant(request, resolved.tenant)
    as_reserved = ReservationRequest(
        idempotency_key=body.idempotency_key, subject=body.subject, action=body.action, estimate=body.estimate
    )
    return json_response(await _look(desk, as_reserved, resolved, terms, digest=digest, dry_run=False))


def plan_of(terms: Terms) -> Plan:
    assert terms.plan is not None, "Known.ready has seen to it"
    return terms.plan


def _hold(desk: Desk, body: ReservationRequest, resolved: Resolved, terms: Terms, *, digest: str) -> Hold:
    """The hold of this reservation. It lives until its grace period is over: whatever may be committed is held."""
    plan = plan_of(terms)
    ttl_s = -(-body.ttl_ms // 1_000)
    if not plan.ttl_s_min <= ttl_s <= plan.ttl_s_max:
        raise invalid("ttl_ms", f"this wallet's plan allows {plan.ttl_s_min} to {plan.ttl_s_max} seconds")
    unit, each = body.estimate.unit, units.parts_of(body.estimate.unit, terms.scales)
    memo = Reserve(
        body.idempotency_key, digest, body.subject, body.action, unit, each, body.ttl_ms, body.grace_period_ms
    )
    return Hold(
        id=hold_of(resolved.tenant, body.idempotency_key),
        options=[Option(units.ours(body.estimate, each, field="estimate"))],
        by=desk.purse.by(WAIT_S),
        labels=resolved.labels,
        ttl_s=min(plan.ttl_s_max, -(-(body.ttl_ms + body.grace_period_ms) // 1_000)),
        memo=memo_of(memo),
    )


def _reserved(
    body: ReservationRequest, resolved: Resolved, hold: str, held: Held, seq: int, *, now: int
) -> dict[str, object]:
    expires_at_ms = held.at // NS_PER_MS + body.ttl_ms
    return {
        "decision": "ALLOW",
        "reservation_id": str(ReservationId.of(hold, seq)),
        "reserved": units.written(body.estimate.unit, body.estimate.amount),
        "expires_at_ms": expires_at_ms,
        "remaining_ttl_ms": max(0, expires_at_ms - now // NS_PER_MS),
        "scope_path": resolved.path,
        "affected_scopes": resolved.scopes,
    }


async def _replay(
    desk: Desk, ask: Hold, answered: Answered, known: Again | Conflict | Closed, *, digest: str
) -> web.Response:
    """The first answer once more, if it is the same request. Raises `Refused` 409 if it is another.

    A hold that was given up was never answered: nobody may call on it, and one who asks again later is decided afresh.
    """
    first = await reservation_of(desk, ask.id, beyond=answered.seq)
    if first is None:
        if isinstance(known, Closed):
            raise finalized("it is remembered no longer")
        raise unanswered("What was decided before is not to be read at this moment; send the same request again.")
    if first.memo.digest != digest:
        raise mismatch()
    if first.noted.released and first.ended is None:
        raise unanswered("It was given back before anybody heard of it; send the same request again.")
    now = desk.purse.now()
    return json_response({
        "decision": "ALLOW",
        "reservation_id": first.id,
        "reserved": first.reserved,
        "expires_at_ms": first.first_expires_at_ms,
        "remaining_ttl_ms": first.remaining_ttl_ms(now),
        "scope_path": first.scopes[-1],
        "affected_scopes": first.scopes,
    })  # fmt: skip


# --- looking ----------------------------------------------------------------------------------------------------------


async def _look(
    desk: Desk, body: ReservationRequest, resolved: Resolved, terms: Terms, *, digest: str, dry_run: bool
) -> dict[str, object]:
    """What would be told now. Nothing is held, and nothing remembered."""
    plan = plan_of(terms)
    more: dict[str, object] = {"scope_path": resolved.path} if dry_run else {}
    answer: dict[str, object] = {"affected_scopes": resolved.scopes, **more}
    if not is_counted(resolved, plan, body.estimate.unit, field="estimate"):
        return {"decision": "DENY", "reason_code": "BUDGET_NOT_FOUND", **answer}
    hold = _hold(desk, body, resolved, terms, digest=digest)
    hold = msgspec.structs.replace(hold, id="cycles.look/look", by=desk.purse.by(LOOK_AHEAD_S))
    await desk.board.catch_up()
    outcome = await would(desk, hold)
    if isinstance(outcome, Held):
        return {"decision": "ALLOW", **answer}
    refused = _refusal(outcome, resolved, plan, at=desk.purse.now())
    match refused.status:
        case 409:
            return {"decision": "DENY", "reason_code": refused.code, **answer}
        case 429:
            wait_ms = int(refused.headers["Retry-After"]) * 1_000
            return {"decision": "DENY", "reason_code": refused.code, "retry_after_ms": wait_ms, **answer}
        case _:
            raise refused


# --- refusing ---------------------------------------------------------------------------------------------------------


def _refusal(outcome: AnyOutcome, resolved: Resolved, plan: Plan, *, at: int) -> Refused:
    match outcome:
        case Exhausted():
            return _exhausted(outcome, resolved, plan)
        case Frozen():
            return Refused(409, "BUDGET_FROZEN", "An operator has frozen this spending.")
        case Revoked():
            return Refused(403, "FORBIDDEN", f"New spending with this {outcome.label} is refused.")
        case Cooling():
            wait_s = max(1, -(-(outcome.until - at) // NS_PER_S))
            message = f"Too many reservations: new ones are taken again in {wait_s} s."
            return Refused(429, "LIMIT_EXCEEDED", message, headers={"Retry-After": str(wait_s)})
        case Invalid(field="plan"):
            return unanswered("This wallet has no plan yet.")
        case Invalid():
            return invalid(outcome.field, outcome.why)
        case Late():
            return unanswered("The wallet heard this too late. Nothing is reserved; send the same request again.")
        case _:
            return unanswered("The wallet gave no answer to this.")


def _exhausted(told: Exhausted, resolved: Resolved, plan: Plan) -> Refused:
    """Over its limit already, or only too full for this. Amounts are said of budgets that are a scope's own."""
    budget = plan.budgets.get(told.budget)
    scope = scope_of(budget, resolved.levels) if budget is not None else None
    details = {"scope": scope or resolved.scopes[0]}
    if told.settled + told.extra > told.limit:
        message = "More was spent here than the budget allows; nothing is reserved until that is settled."
        return Refused(409, "OVERDRAFT_LIMIT_EXCEEDED", message, details=details)
    return Refused(409, "BUDGET_EXCEEDED", "This does not fit into what is left of the budget.", details=details)
