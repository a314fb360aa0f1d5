"""Sign in with a key, sign out again. The key is looked at and let go: it is in no cookie, address or log."""

from __future__ import annotations

from urllib.parse import urlsplit

from aiohttp import web

from web.desk import DESK, Desk
from web.html import fill, hidden
from web.pages.frame import SignedIn, show
from web.pages.serving import SESSIONS, Page, check_origin, read_form, resumed, session_of
from web.pages.sessions import COOKIE, SESSION_S
from web.pages.words import FRAME
from web.problems import Problem

THEN_CHARS_MAX = 512
FIRST_PAGE = "/budget"


def add_sign_in(app: web.Application) -> None:
    app.router.add_get("/sign-in", _form)
    app.router.add_post("/sign-in", _sign_in)


async def _form(request: web.Request) -> web.Response:
    then = _local(request.query.get("then", ""))
    if await resumed(request.app[DESK], session_of(request)) is not None:
        raise web.HTTPSeeOther(then)
    return _shown(then)


def _shown(then: str, *, wrong: str = "", status: int = 200) -> web.Response:
    body = fill(
        "sign_in.html",
        title=FRAME.sign_in,
        lead=FRAME.sign_in_lead,
        wrong=wrong,
        wrong_hidden=hidden(not wrong),
        key=FRAME.key,
        key_hint=FRAME.key_hint,
        key_kept=FRAME.key_kept.format(hours=SESSION_S // 3600),
        then=then,
        user=FRAME.key_user,
        send=FRAME.sign_in,
    )
    return show(None, title=FRAME.sign_in, body=body, status=status)


async def _sign_in(request: web.Request) -> web.Response:
    try:
        check_origin(request)
        form = await read_form(request)
    except Problem as problem:
        return _shown(FIRST_PAGE, wrong=str(problem.body["detail"]), status=problem.status)
    then, desk = _local(form.get("then", "")), request.app[DESK]
    key = form.get("key", "").strip()
    try:
        caller = await desk.gate.admit_key(key, "audit")
    except Problem as problem:
        return _shown(then, wrong=_why_not(problem), status=problem.status)
    answer = web.HTTPSeeOther(then)
    answer.set_cookie(
        COOKIE, request.app[SESSIONS].open(caller.key, desk.purse.now()), max_age=SESSION_S, path="/",
        httponly=True, samesite="Strict", secure=desk.gate.comes_by_https(request),
    )  # fmt: skip
    raise answer


def _why_not(problem: Problem) -> str:
    match str(problem.body["type"]):
        case "/problems/key-ended":
            return FRAME.ended_key
        case "/problems/role":
            return FRAME.no_right
        case _:
            return FRAME.wrong_key


def _local(then: str) -> str:
    """Where to go on: an address here, or the first page."""
    parts = urlsplit(then)
    here = then.startswith("/") and not then.startswith(("//", "/\\")) and not parts.netloc and then.isprintable()
    return then if here and then.isascii() and len(then) <= THEN_CHARS_MAX else FIRST_PAGE


async def _sign_out(request: web.Request, desk: Desk, _visitor: SignedIn) -> web.Response:
    session = session_of(request)
    if session is not None:
        request.app[SESSIONS].end(session, desk.purse.now())
    answer = web.HTTPSeeOther("/sign-in")
    answer.del_cookie(COOKIE, path="/")
    raise answer


PAGES = (Page(method="POST", path="/sign-out", handler=_sign_out),)
