"""What a route is: its address, who may use it, its handler, and what the OpenAPI document says of it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import msgspec
from aiohttp import web

from engine.read_record import Look
from web.auth import Access, Caller
from web.crowd import Queue
from web.desk import DESK, Desk
from web.problem_shapes import Kinds
from web.request_ids import request_id_of

LOOK_CHARS_MAX = 256  # of an address that goes on record

_IN_PATH = re.compile(r"{(\w+)}")

Handler: TypeAlias = Callable[[web.Request, Desk, Caller], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Parameter:
    """What may stand behind the `?`, or must. `least`, `most`: of a whole number; without them it is a text."""

    name: str
    meaning: str
    least: int | None = None
    most: int | None = None
    required: bool = False
    may_be_empty: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """`answers`: status -> what it means; `gives`: status below 400 -> what bodies there are, for a stream what lines
    or events. `problems`: those of this route alone. `takes`: its body, if it has one. `tag` groups it in the document.
    """

    method: Literal["GET", "POST"]
    path: str
    access: Access
    handler: Handler
    tag: str
    summary: str
    answers: dict[int, str]
    gives: Mapping[int, tuple[type[msgspec.Struct], ...]] = field(default_factory=dict)
    problems: Kinds = ()
    headers: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Status below 400 -> what headers come with it, beside those of every answer."""
    takes: type[msgspec.Struct] | None = None
    media_type: str = "application/json"
    body_optional: bool = False
    keyed: bool = False
    """Whether `Idempotency-Key` is read."""
    query: tuple[Parameter, ...] = ()
    queue: Queue | None = None
    """Among whom it is counted while many ask at once."""

    @property
    def named(self) -> str:
        """`POST /v1/holds`."""
        return f"{self.method} {self.path}"


def register(app: web.Application, route: Route) -> None:
    """HEAD is answered wherever GET is, but for streams, which never end."""
    path = _IN_PATH.sub(r"{\1:[^/]+}", route.path)  # aiohttp's own would answer 404 to braces in an id, and not 400
    if route.method == "GET":
        app.router.add_get(path, _serve(route), allow_head=route.media_type != "text/event-stream")
    else:
        app.router.add_post(path, _serve(route))


def _serve(route: Route) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    handler, access, queue = route.handler, route.access, route.queue
    looks = route.method == "GET" and access in ("life", "audit", "admin")

    async def serve(request: web.Request) -> web.StreamResponse:
        desk = request.app[DESK]
        with desk.crowd.admitted(queue) if queue is not None else nullcontext():
            caller = await desk.gate.admit(request, access)
            if looks and caller.sees_all:
                await desk.purse.note(
                    Look(caller.name, request.rel_url.raw_path[:LOOK_CHARS_MAX], request_id_of(request))
                )
            return await handler(request, desk, caller)

    return serve
