"""The routes of Cycles: who may use each, what handles it, and one answer for every error in Cycles' own shape."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final, Literal

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler

from engine.errors import PurseError
from engine.read_record import Look
from web.answers import json_response
from web.auth import Access, Caller
from web.crowd import Queue
from web.cycles import balances, ending, events, listing, reserving
from web.cycles.refusals import Refused, of_http_error, of_problem, of_purse_error, respond
from web.cycles.tenants import TENANT
from web.desk import DESK, Desk
from web.health import readiness
from web.operating import observe
from web.problems import Problem
from web.request_ids import request_id_of
from web.routes import LOOK_CHARS_MAX

log = structlog.get_logger()

API_KEY = "X-Cycles-API-Key"
TRACE_ID = "X-Cycles-Trace-Id"

VENDOR = "/v1/x-commonpurse"
PLACES: Final = ("/v1/reservations", "/v1/balances", "/v1/decide", "/v1/events", VENDOR, "/actuator")
"""What is answered in Cycles' shape, and all beneath it."""

_TRACE = re.compile(r"[0-9a-f]{32}", re.ASCII)
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?", re.ASCII)
_NO_TRACE = "0" * 32


@dataclass(frozen=True, slots=True)
class Endpoint:
    method: Literal["GET", "POST"]
    path: str
    access: Access
    handler: Callable[[web.Request, Desk, Caller], Awaitable[web.StreamResponse]]
    queue: Queue | None = None


ENDPOINTS = (
    Endpoint("POST", "/v1/reservations", "spend", reserving.reserve, "hold"),
    Endpoint("POST", "/v1/reservations/{id:[^/]+}/commit", "settle", ending.commit, "settle"),
    Endpoint("POST", "/v1/reservations/{id:[^/]+}/release", "settle", ending.release, "settle"),
    Endpoint("POST", "/v1/reservations/{id:[^/]+}/extend", "spend", ending.extend, "hold"),
    Endpoint("GET", "/v1/reservations", "life", listing.many),
    Endpoint("GET", "/v1/reservations/{id:[^/]+}", "life", listing.one),
    Endpoint("GET", "/v1/balances", "life", balances.balances),
    Endpoint("POST", "/v1/decide", "spend", reserving.decide, "hold"),
    Endpoint("POST", "/v1/events", "settle", events.report, "settle"),
    Endpoint("POST", f"{VENDOR}/observations", "observe", observe, "settle"),
)


def add_cycles(app: web.Application) -> None:
    for endpoint in ENDPOINTS:
        if endpoint.method == "GET":
            app.router.add_get(endpoint.path, _serve(endpoint))
        else:
            app.router.add_post(endpoint.path, _serve(endpoint))
    app.router.add_get("/actuator/health/readiness", _ready)


def _serve(endpoint: Endpoint) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def serve(request: web.Request) -> web.StreamResponse:
        desk = request.app[DESK]
        with desk.crowd.admitted(endpoint.queue) if endpoint.queue is not None else nullcontext():
            caller = await desk.gate.admit_with(request, endpoint.access, request.headers.get(API_KEY))
            if endpoint.access == "life" and caller.sees_all:
                await desk.purse.note(
                    Look(caller.name, request.rel_url.raw_path[:LOOK_CHARS_MAX], request_id_of(request))
                )
            return await endpoint.handler(request, desk, caller)

    return serve


async def _ready(request: web.Request) -> web.Response:
    """As clients ask a server of Cycles, without a key."""
    well = all((await readiness(request.app[DESK].purse)).values())
    return json_response({"status": "UP" if well else "DOWN"}, status=200 if well else 503)


@web.middleware
async def speak_cycles(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answers the places of Cycles in its words, whatever goes wrong. What nobody foresaw is logged and says 500."""
    if not any(request.path == place or request.path.startswith(f"{place}/") for place in PLACES):
        return await handler(request)
    response = await _answer(request, handler)
    response.headers[TRACE_ID] = trace_id_of(request)
    tenant = request.get(TENANT, "")
    if tenant.isascii() and tenant:
        response.headers["X-Cycles-Tenant"] = tenant
    return response


async def _answer(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except Refused as refused:
        return respond(request, refused)
    except Problem as problem:
        return respond(request, of_problem(problem))
    except PurseError as error:
        return respond(request, of_purse_error(error))
    except web.HTTPException as error:
        return respond(request, of_http_error(error))
    except ConnectionError:
        raise  # whoever asked has left
    except web.RequestPayloadError:
        return respond(request, Refused(400, "INVALID_REQUEST", "The body did not arrive whole."))
    except Exception:
        log.exception("request_failed", request_id=request_id_of(request), method=request.method)
        return respond(request, Refused(500, "INTERNAL_ERROR", "This is our error, and no permission."))


def trace_id_of(request: web.Request) -> str:
    """The caller's own, if it is one, else a fresh one."""
    found = _TRACEPARENT.fullmatch(request.headers.get("traceparent", ""))
    for said in (found[1] if found is not None else "", request.headers.get(TRACE_ID, "")):
        if _TRACE.fullmatch(said) and said != _NO_TRACE:
            return said
    return os.urandom(16).hex()
