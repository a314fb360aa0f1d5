"""How an operators' page is served: who may see it, what a form must carry, and every error as a page.

A form that was not sent from a page of ours, by whoever is signed in, changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import urlencode, urlsplit

import structlog
from aiohttp import web

from engine.errors import PurseError
from engine.read_record import Look
from web.auth import Caller
from web.bodies import BODY_TIMEOUT_S
from web.desk import DESK, Desk
from web.html import Html, element
from web.pages.frame import SignedIn, show
from web.pages.sessions import COOKIE, Session, Sessions
from web.pages.words import FRAME
from web.problems import Problem, of_http_error, of_purse_error
from web.request_ids import request_id_of
from web.routes import LOOK_CHARS_MAX

FORM_TYPE = "application/x-www-form-urlencoded"

SESSIONS: web.AppKey[Sessions] = web.AppKey("sessions", Sessions)

PageHandler: TypeAlias = Callable[[web.Request, Desk, SignedIn], Awaitable[web.StreamResponse]]

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One address of the operators' pages. A POST is reached only by a form of ours.

    `recorded`: a look goes on record before it is answered.
    """

    method: Literal["GET", "POST"] = "GET"
    path: str
    access: Literal["audit", "admin"] = "audit"
    handler: PageHandler
    recorded: bool = True


def add_page_routes(app: web.Application, pages: Iterable[Page]) -> None:
    """Register them. The app sets `app[SESSIONS]` before it is started."""
    for page in pages:
        app.router.add_route(page.method, page.path, _serve(page))


def _serve(page: Page) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def serve(request: web.Request) -> web.StreamResponse:
        desk = request.app[DESK]
        visitor: SignedIn | None = None
        try:
            if page.method == "POST":
                check_origin(request)
            session = session_of(request)
            caller = await resumed(desk, session)
            if session is None or caller is None:
                raise _to_sign_in(request)
            visitor = SignedIn(caller, request.app[SESSIONS].form_token(session))
            if page.method == "POST":
                await _check_form(request, session)
            desk.gate.check(caller, page.access)
            if page.method == "GET" and page.recorded:
                at = request.rel_url.raw_path_qs[:LOOK_CHARS_MAX]
                await desk.purse.note(Look(caller.name, at, request_id_of(request)))
            return await page.handler(request, desk, visitor)
        except Problem as problem:
            return _problem_page(problem, visitor)
        except PurseError as error:
            return _problem_page(of_purse_error(error), visitor)
        except web.HTTPException as error:
            if error.status < 400:
                raise
            return _problem_page(of_http_error(error), visitor)

    return serve


# --- who it is --------------------------------------------------------------------------------------------------------


def session_of(request: web.Request) -> Session | None:
    cookie = request.cookies.get(COOKIE)
    return request.app[SESSIONS].read(cookie, request.app[DESK].purse.now()) if cookie else None


async def resumed(desk: Desk, session: Session | None) -> Caller | None:
    """Whoever signed in, as their key says today; None where it may not look any more. Raises `PurseError`."""
    if session is None:
        return None
    caller = await desk.gate.resume(session.key)
    return caller if caller is not None and caller.ended is None and caller.sees_all else None


async def still_in(request: web.Request) -> bool:
    """Whether whoever asked for something long is still signed in. Raises `PurseError`."""
    return await resumed(request.app[DESK], session_of(request)) is not None


def _to_sign_in(request: web.Request) -> web.HTTPSeeOther:
    then = request.rel_url.raw_path_qs if request.method == "GET" else "/budget"
    return web.HTTPSeeOther(f"/sign-in?{urlencode({'then': then})}")


# --- forms ------------------------------------------------------------------------------------------------------------


async def read_form(request: web.Request) -> dict[str, str]:
    """The fields of a form. Raises `Problem` 408, 413 or 415."""
    if request.content_type != FORM_TYPE:
        raise Problem(415, "not-a-form", f"Send the form as {FORM_TYPE}.")
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            said = await request.post()
    except TimeoutError:
        raise Problem(408, "too-slow", "The form did not arrive in time.") from None
    return {name: value for name, value in said.items() if isinstance(value, str)}


def check_origin(request: web.Request) -> None:
    """Raises `Problem` 403 if a browser says that another site sent this."""
    site = request.headers.get("Sec-Fetch-Site", "same-origin")
    origin = request.headers.get("Origin")
    if site not in ("same-origin", "none") or (origin is not None and urlsplit(origin).netloc != request.host):
        raise _old_form()


async def _check_form(request: web.Request, session: Session) -> None:
    form = await read_form(request)
    if not request.app[SESSIONS].is_form_token(session, form.get("token", "")):
        raise _old_form()


def _old_form() -> Problem:
    return Problem(403, "old-form", FRAME.old_form)


# --- what went wrong --------------------------------------------------------------------------------------------------


def _problem_page(problem: Problem, visitor: SignedIn | None) -> web.Response:
    detail = str(problem.body["detail"])
    match problem.status, str(problem.body["type"]):
        case 403, "/problems/role":
            said = FRAME.not_allowed
        case 404, _:
            said = FRAME.not_found if "field" not in problem.body else detail
        case 503, _:
            said = FRAME.no_answer
        case _:
            said = detail
    title = str(problem.body["title"])
    body = Html(element("h1", title) + element("p", said, class_="note") + element("p", _back()))
    answer = show(visitor, title=title, body=body, status=problem.status)
    answer.headers.update(problem.headers)
    return answer


def _back() -> Html:
    return element("a", FRAME.back, href="/budget")
