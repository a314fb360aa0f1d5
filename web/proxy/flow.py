"""What becomes of one call to a guarded route: estimate, hold, forward, meter, settle.

    authenticate ─> read ─> price ─> hold ──held──> send what was granted ─> count ─> settle
                       └──────┴────────┴── anything else: an error as the provider's clients read it, nothing was sent

Nothing is sent without a hold that was told `held` for at least the most that the call, as it is sent, could cost.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
import structlog
from aiohttp import web

from engine.core import checks, periods
from engine.core.messages import Exhausted, Held, Hold, Observe
from engine.errors import PurseError
from web.asks import fresh_id
from web.auth import ANYBODY, Caller
from web.desk import DESK, Desk
from web.moments import NS_PER_S
from web.problems import Problem, of_purse_error
from web.proxy.bodies import most_bytes, read_body
from web.proxy.dialect import Dialect, Incoming, Provider
from web.proxy.guard import GUARD
from web.proxy.headers import lowered, of_hold
from web.proxy.hold import OpenHold
from web.proxy.options import Priced, options_of
from web.proxy.refusals import Declined, Refusal, bad, no_budget, of_outcome, of_problem, unbounded
from web.proxy.relay import Relay
from web.proxy.upstreams import Upstream
from web.purse import Answered
from web.request_ids import request_id_of
from web.spending import key_of

HOLD_WAIT_S = 5.0
OBSERVE_WAIT_S = 2.0
ATTEMPT = "x-stainless-retry-count"
"""How often the provider's own client has tried this call before, where it says so."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

log = structlog.get_logger()


def guarded(dialect: Dialect) -> Handler:
    """The handler of a route that spends."""

    async def call(request: web.Request) -> web.StreamResponse:
        crowd = request.app[DESK].crowd
        with crowd.admitted("call"), crowd.carrying(most_bytes(request)):
            return await _call(request, dialect)

    return answering(dialect.provider, call)


def answering(provider: Provider, handler: Handler) -> Handler:
    """Whatever goes wrong in a request is told in this provider's shape. What nobody foresaw is logged and says 500."""

    async def serve(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except Declined as declined:
            refusal = declined.refusal
        except Problem as problem:
            refusal = of_problem(problem)
        except PurseError as error:
            refusal = of_problem(of_purse_error(error))
        except web.RequestPayloadError:
            refusal = Refusal(status=400, reason="invalid", message="The body did not arrive whole.", param="body")
        except ConnectionError:
            raise  # whoever asked has left
        except Exception:
            log.exception("call_failed", request_id=request_id_of(request), provider=provider.name)
            refusal = Refusal(status=500, reason="internal", message="This is our error, and no permission.")
        return respond(request, provider, refusal)

    return serve


def respond(request: web.Request, provider: Provider, refusal: Refusal) -> web.Response:
    request_id = request_id_of(request)
    body = msgspec.json.encode(provider.error(refusal, request_id=request_id))
    return web.Response(
        status=refusal.status, body=body, content_type="application/json", headers=dict(refusal.headers)
    )


async def caller_of(request: web.Request, desk: Desk) -> Caller:
    """Who asks, by the purse's own key, wherever this provider's clients put a key. Raises `Problem` 401 and 403."""
    key = request.headers.get("x-api-key")
    return await desk.gate.admit(request, "spend", header=None if key is None else f"Bearer {key}")


# --- one call ---------------------------------------------------------------------------------------------------------


async def _call(request: web.Request, dialect: Dialect) -> web.StreamResponse:
    caller = await caller_of(request, request.app[DESK])
    upstream = request.app[GUARD].upstream(dialect.provider.name)
    incoming = Incoming(
        body=await read_body(request), match=dict(request.match_info), query=dict(request.query),
        headers=lowered(request.headers),
    )  # fmt: skip
    return await spend(request, dialect, upstream, incoming, caller)


async def spend(
    request: web.Request, dialect: Dialect, upstream: Upstream, incoming: Incoming, caller: Caller
) -> web.StreamResponse:
    """Hold the most that this call could cost, make it, settle it, all for this caller. Raises `Declined`."""
    desk, guard = request.app[DESK], request.app[GUARD]
    call = dialect.read(incoming)
    if not call.capped and not call.stream:
        raise unbounded(
            "stream", "this model takes no cap on its output, so it is only served as a stream that can be cut"
        )
    plan = (await desk.known.ready()).plan
    assert plan is not None
    offers = options_of(call, upstream, guard.book, plan)
    ask = Hold(
        id=_hold_id(request, caller), options=[option for _, option in offers], by=desk.purse.by(HOLD_WAIT_S),
        labels=_labels(upstream, call.model, caller), price_book=guard.book.digest,
    )  # fmt: skip
    answered = await desk.purse.ask(ask, wait_s=HOLD_WAIT_S)
    held = answered.outcome
    if not isinstance(held, Held):
        raise Declined(_refusal(desk, ask, answered, offers[-1][0], caller))
    async with OpenHold(desk.purse, guard.endings, held) as hold:
        priced, option = offers[held.option]
        assert held.amounts == option.amounts, "nothing less than the worst case of what is sent"
        if not held.budgets:
            raise no_budget(upstream.provider)
        said = of_hold(held, call, priced.way, id=caller.shown(held.id))
        relay = Relay(
            request,
            request_id_of(request),
            guard.session,
            upstream,
            dialect,
            guard.book,
            incoming,
            call,
            priced,
            said,
            desk.upstream_calls,
        )
        response = await relay.send(hold)
    if hold.allowance_gone:
        await _observe_gone(desk, upstream.provider)
    return response


def _hold_id(request: web.Request, caller: Caller) -> str:
    """Every attempt is a call of its own, and so a hold of its own."""
    attempt = request.headers.get(ATTEMPT, "0")
    more = "" if attempt == "0" else f":{attempt}"
    return key_of(request, caller, more=more) or fresh_id(caller)


def _labels(upstream: Upstream, model: str, caller: Caller) -> dict[str, str]:
    """Whose call it is says the caller's key; to whom it goes says the route, whatever the key says."""
    labels = {**caller.labels, "provider": upstream.provider, "model": model}
    wrong = checks.labels(labels)
    if wrong is not None:
        raise bad("model", wrong[1])
    return labels


def _refusal(desk: Desk, ask: Hold, answered: Answered, last: Priced, caller: Caller) -> Refusal:
    was = getattr(answered.outcome, "was", None) or answered.outcome
    affordable = last.affordable(was.unit, was.fits) if isinstance(was, Exhausted) else None
    answer = desk.answer(ask, answered, caller)
    return of_outcome(answered, answer, affordable=affordable, wallet=desk.settings.wallet, hold=caller.shown(ask.id))


async def _observe_gone(desk: Desk, source: str) -> None:
    """The provider says that its allowance is used up: nobody need ask it again before the period ends."""
    plan = desk.known.terms.plan
    now = desk.purse.now() - NS_PER_S
    for name, budget in plan.budgets.items() if plan is not None else ():
        if budget.source == source and budget.each is None:
            period = periods.period_at(now, per=budget.per, zone=budget.zone).name
            observe = Observe(fresh_id(ANYBODY), name, period, budget.limit, now, source)
            try:
                await desk.purse.ask(observe, wait_s=OBSERVE_WAIT_S)
            except PurseError as error:
                log.warning("allowance_unobserved", budget=name, error=type(error).__name__)
