"""The routes of alerts: those that were raised, and a test to whoever should hear of them. It raises and sends none."""

from __future__ import annotations

import msgspec
from aiohttp import web

from engine.core.documents import AlertShown
from engine.errors import NoAnswer
from web.answers import Body, json_response
from web.auth import Caller
from web.bodies import read_body
from web.desk import Desk
from web.moments import format_moment
from web.problem_shapes import NoTargetProblem
from web.problems import Problem
from web.read_shapes import AlertsAnswer, AlertTestAnswer
from web.requests import AlertTestBody
from web.routes import Route

_alerts = msgspec.json.Decoder(list[AlertShown])


async def _list(_request: web.Request, desk: Desk, _caller: Caller) -> web.Response:
    await desk.board.catch_up()
    found = _alerts.decode(await desk.purse.read("alerts"))
    return json_response({"alerts": [_written(alert) for alert in found]})


def _written(alert: AlertShown) -> Body:
    return {
        "id": alert.id,
        "rule": alert.rule,
        "budget": alert.budget,
        "period": alert.period,
        "threshold": alert.threshold,
        "unit": alert.unit,
        "figures": alert.figures,
        "text": alert.text,
        "at": format_moment(alert.at),
        "seq": alert.seq,
        "deliveries": alert.deliveries,
    }


async def _test(request: web.Request, desk: Desk, _caller: Caller) -> web.Response:
    body = await read_body(request, AlertTestBody, may_be_empty=True)
    try:
        found = await desk.purse.test_alerts(body.target or "")
    except NoAnswer:
        raise _no_target("No projector here sends alerts: `[alerts.targets.NAME]` in its purse.toml.") from None
    if not found:
        raise _no_target("No target of that name is configured.")
    return json_response({"targets": [_tested(one.target, one.delivered, one.why) for one in found]})


def _tested(target: str, delivered: bool, why: str) -> Body:
    return {"target": target, "delivered": delivered, **({"why": why} if why else {})}


def _no_target(why: str) -> Problem:
    return Problem(404, "no-target", why)


_CLOSED = {401: "The admin key is needed.", 503: "Nobody answers now."}

ROUTES = (
    Route(
        method="GET", path="/v1/alerts", access="audit", handler=_list, tag="alerts",
        summary="The newest alerts, newest first, each with what became of it at each target.",
        answers={200: "At most 100. A delivery is new, sending, waiting, sent or missed.", **_CLOSED},
        gives={200: (AlertsAnswer,)},
    ),
    Route(
        method="POST", path="/v1/alerts/test", access="admin", handler=_test, takes=AlertTestBody, body_optional=True,
        tag="alerts", summary="Send a test alert now, to one target or all, and say what each answered.",
        answers={
            200: "What each target answered.", 400: "What was sent cannot be understood; `field` says where.",
            **_CLOSED, 404: "No such target, or no projector that sends alerts.",
        },
        gives={200: (AlertTestAnswer,)}, problems=(NoTargetProblem,),
    ),
)  # fmt: skip
