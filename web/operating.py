"""The routes an operator uses: figures from the provider, corrections, freezes, revocations, the plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from aiohttp import web

from engine.core.messages import AnyAsk, ApplyPlan, Planned
from engine.core.plan import PlanError, digest
from engine.errors import BadAsk
from engine.plan_file import plan_from_json, plan_to_json
from web.answers import json_response
from web.asks import ADJUST_NEEDS_ID, Reader, check_id
from web.auth import Caller
from web.bodies import read_body
from web.desk import Desk
from web.known import read_plan
from web.problems import no_plan
from web.requests import (
    AdjustmentBody,
    FreezeBody,
    IdentifiedBody,
    ObservationBody,
    PlanBody,
    RestoreBody,
    RevokeBody,
    ThawBody,
)  # fmt: skip
from web.routes import Handler, Route
from web.spending import id_of, key_of

Identified = TypeVar("Identified", bound=IdentifiedBody)


def _asks(kind: type[Identified], read: Callable[[Reader, Identified, str], AnyAsk]) -> Handler:
    """A handler that reads a `kind`, makes its ask, and answers what was told."""

    async def handle(request: web.Request, desk: Desk, caller: Caller) -> web.Response:
        body = await read_body(request, kind)
        id = id_of(request, body.id, caller)
        ask = await desk.known.understand(lambda terms: read(desk.reader(terms, caller), body, id))
        return desk.answer(ask, await desk.purse.ask(ask), caller).response()

    return handle


async def _adjust(request: web.Request, desk: Desk, caller: Caller) -> web.Response:
    body = await read_body(request, AdjustmentBody)
    id = check_id(body.id, field="id", caller=caller) if body.id is not None else key_of(request, caller)
    if id is None:
        raise BadAsk("id", ADJUST_NEEDS_ID)
    ask = await desk.known.understand(lambda terms: desk.reader(terms, caller).adjust(body, id=id))
    return desk.answer(ask, await desk.purse.ask(ask), caller).response()


async def _show_plan(_request: web.Request, desk: Desk, _caller: Caller) -> web.Response:
    plan = await read_plan(desk.purse)
    if plan is None:
        raise no_plan()
    return json_response({"plan": plan_to_json(plan), "digest": digest(plan)})


async def _apply_plan(request: web.Request, desk: Desk, caller: Caller) -> web.Response:
    body = await read_body(request, PlanBody)
    id = id_of(request, body.id, caller)
    try:
        plan = plan_from_json(body.plan)
    except PlanError as error:
        raise BadAsk(f"plan.{error.field}", error.why) from None
    ask = ApplyPlan(id=id, plan=plan, replaces=body.replaces, by_whom=caller.name)
    answered = await desk.purse.ask(ask)
    if isinstance(answered.outcome, Planned):
        desk.known.terms.learn(plan)
    return desk.answer(ask, answered, caller).response()


_ERRORS = {
    400: "What was sent cannot be understood; `field` says where.",
    401: "A key is needed.",
    403: "The key's role may not do this.",
    422: "This id stands for something else.",
    503: "Nobody can decide now.",
}
_DONE = {200: "Done, or done before.", **_ERRORS}

observe: Handler = _asks(ObservationBody, lambda reader, body, id: reader.observe(body, id=id))

ROUTES = (
    Route(
        method="POST", path="/v1/observations", access="observe", takes=ObservationBody, tag="operating", keyed=True,
        handler=observe,
        queue="settle",
        summary="The provider's own figure for one period of one budget.",
        answers={200: "Observed; `raised_by` says by how much what counts as used rose.", **_ERRORS},
    ),
    Route(
        method="POST", path="/v1/adjustments", access="admin", takes=AdjustmentBody, tag="operating", keyed=True,
        handler=_adjust, summary="A correction of what was settled, up or down, with its reason.", answers=_DONE,
    ),
    Route(
        method="POST", path="/v1/freeze", access="admin", takes=FreezeBody, tag="operating", keyed=True,
        handler=_asks(FreezeBody, lambda reader, body, id: reader.freeze(body, id=id)),
        summary="Refuse new holds in a scope. Calls in progress are settled as always.", answers=_DONE,
    ),
    Route(
        method="POST", path="/v1/thaw", access="admin", takes=ThawBody, tag="operating", keyed=True,
        handler=_asks(ThawBody, lambda reader, body, id: reader.thaw(body, id=id)),
        summary="Lift the freeze of exactly this scope.", answers=_DONE,
    ),
    Route(
        method="POST", path="/v1/revoke", access="admin", takes=RevokeBody, tag="operating", keyed=True,
        handler=_asks(RevokeBody, lambda reader, body, id: reader.revoke(body, id=id)),
        summary="Refuse new holds that carry this label.", answers=_DONE,
    ),
    Route(
        method="POST", path="/v1/restore", access="admin", takes=RestoreBody, tag="operating", keyed=True,
        handler=_asks(RestoreBody, lambda reader, body, id: reader.restore(body, id=id)),
        summary="Undo a revocation.", answers=_DONE,
    ),
    Route(
        method="GET", path="/v1/plan", access="admin", handler=_show_plan, tag="operating",
        summary="The plan in force and its digest.",
        answers={200: "The plan.", 401: _ERRORS[401], 403: _ERRORS[403], 503: "There is none yet, or nobody answers."},
    ),
    Route(
        method="POST", path="/v1/plan", access="admin", handler=_apply_plan, takes=PlanBody, keyed=True,
        tag="operating",
        summary="Decide by this plan from now on, if it still replaces the one it was made from.",
        answers={200: "In force; `restarts` names meters that start at zero.", **_ERRORS, 409: "Another came first."},
    ),
)  # fmt: skip
