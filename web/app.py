"""The web front end as one aiohttp application: the JSON API and the page. Every error is a problem with an id.

It guards and shows. It decides nothing: what cannot be decided is refused (503), never allowed.
"""

from __future__ import annotations

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler
from structlog.contextvars import bind_contextvars

from engine.errors import PurseError
from web import alerts, days, estimate, health, keeping, metrics, operating, past, spending, watching
from web.ask_box import add_ask_box, offered
from web.bodies import BODY_BYTES_MAX
from web.cycles.routes import add_cycles, speak_cycles
from web.desk import DESK, open_desk
from web.lookback import Lookback
from web.openapi import openapi_route
from web.page import ASK, NOW, STATUS, add_page
from web.pages import acts, budget, calendar, day, decisions, hold, keys, moment, sign_in, taking_along
from web.pages.serving import SESSIONS, add_page_routes
from web.pages.sessions import Sessions
from web.problems import Problem, of_http_error, of_purse_error, problem_response
from web.proxy.routes import add_proxies
from web.purse import Purse
from web.request_ids import request_id_of
from web.routes import register
from web.settings import Settings

log = structlog.get_logger()

_TABLES = (
    *spending.ROUTES,
    *estimate.ROUTES,
    *operating.ROUTES,
    *keeping.ROUTES,
    *watching.ROUTES,
    *days.ROUTES,
    *past.ROUTES,
    *alerts.ROUTES,
    *health.ROUTES,
    *metrics.ROUTES,
)

_PAGES = (
    *sign_in.PAGES, *budget.PAGES, *acts.PAGES, *keys.PAGES, *calendar.PAGES, *day.PAGES, *moment.PAGES,
    *decisions.PAGES, *hold.PAGES, *taking_along.PAGES,
)  # fmt: skip


def make_app(purse: Purse, settings: Settings, *, lookback: Lookback | None = None) -> web.Application:
    """The application over a connected purse. Whoever runs it also runs its board: `app[DESK].board.run()`.

    `lookback`: what looks into the past, if not processes of their own.
    """
    app = web.Application(middlewares=[_answer_errors, speak_cycles], client_max_size=BODY_BYTES_MAX)
    desk = open_desk(purse, settings, lookback or Lookback(settings))
    app[DESK] = desk
    app[STATUS] = lambda: desk.board.latest
    app[NOW] = purse.now
    app[ASK] = lambda: offered(settings.ask, desk.board.latest)
    for route in (*_TABLES, openapi_route(_TABLES)):
        register(app, route)
    add_page(app)
    app[SESSIONS] = Sessions(settings.admin_key)
    sign_in.add_sign_in(app)
    keys.add_keys(app)
    add_page_routes(app, _PAGES)
    add_ask_box(app)
    add_proxies(app, settings)
    add_cycles(app)
    app.on_response_prepare.append(_name_request)
    app.on_shutdown.append(_end_streams)
    return app


@web.middleware
async def _answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Whatever goes wrong in a request becomes one problem. What nobody foresaw is logged and says 500."""
    bind_contextvars(request_id=request_id_of(request))  # whatever is logged on its behalf bears it
    try:
        return await handler(request)
    except Problem as problem:
        return _respond(problem)
    except PurseError as error:
        return _respond(of_purse_error(error))
    except web.HTTPException as error:
        if error.status < 400:
            raise
        return _respond(of_http_error(error))
    except ConnectionError:
        raise  # whoever asked has left
    except web.RequestPayloadError:
        return _respond(Problem(400, "broken-body", "The body did not arrive whole.", more={"field": "body"}))
    except Exception:
        log.exception("request_failed", request_id=request_id_of(request), method=request.method, path=_path(request))
        return _respond(
            Problem(500, "internal", "This is our error, and no permission. `x-request-id` helps to find it.")
        )


def _respond(problem: Problem) -> web.Response:
    return problem_response(problem.status, problem.body, problem.headers)


def _path(request: web.Request) -> str:
    """The route's own form: an id in an address need not be in a log."""
    resource = request.match_info.route.resource
    return resource.canonical if resource is not None else "unknown"


async def _name_request(request: web.Request, response: web.StreamResponse) -> None:
    response.headers["x-request-id"] = request_id_of(request)
    if request.path.startswith("/anthropic/"):
        response.headers["request-id"] = request_id_of(request)  # where its clients look for it
    response.headers["Server"] = "purse"  # not which versions run here
    response.headers.setdefault("Cache-Control", "no-store")


async def _end_streams(app: web.Application) -> None:
    app[DESK].board.close()
