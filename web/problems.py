"""Every error answer, as RFC 9457 problem+json: what is wrong and what to do, never a secret or a long value.

    Problem             raised anywhere in a request, answered by the one handler in `web.app`

Refusals by the wallet are not errors of the caller, but they travel in the same shape: `web.answers` makes those.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from aiohttp import web

from engine.errors import BadAsk, NoAnswer, NotKept, PurseError, StreamRefused

PROBLEM_JSON = "application/problem+json"
NO_RETRY = {"x-should-retry": "false"}
RETRY_WHEN_BACK_S = 2

_FAIL_CLOSED = "Nothing may be spent on it; ask again with the same id."

TITLES = {
    400: "The request cannot be understood",
    401: "A key is needed",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    408: "The request came too slowly",
    413: "The request is too large",
    415: "The body must be JSON",
    500: "Something is broken here",
    503: "The wallet cannot answer now",
}


class Problem(Exception):
    """An answer that ends the request. `kind` names its type, `more` adds members, `headers` goes on the response."""

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        *,
        title: str = "",
        more: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(f"{status} {kind}: {detail}")
        self.status, self.headers = status, dict(headers or {})
        self.body = problem_body(status, kind, detail, title=title, more=more)


def problem_body(
    status: int, kind: str, detail: str, *, title: str = "", more: Mapping[str, object] | None = None
) -> dict[str, object]:
    """The members every problem has, then `more`."""
    title = title or TITLES.get(status, "Refused")
    return {"type": f"/problems/{kind}", "title": title, "status": status, "detail": detail, **(more or {})}


def problem_response(status: int, body: Mapping[str, object], headers: Mapping[str, str]) -> web.Response:
    return web.Response(
        status=status, body=msgspec.json.encode(body), headers={**headers, "Content-Type": PROBLEM_JSON}
    )


def bad_field(field: str, why: str) -> Problem:
    """The caller's error, at `field` (a JSON path, a header's or a parameter's name)."""
    return Problem(400, "invalid", f"{field}: {why}", more={"outcome": "invalid", "field": field, "why": why})


def unavailable(kind: str, detail: str) -> Problem:
    """Fail closed: whoever hears this must not make the call."""
    return Problem(503, kind, detail, headers={"Retry-After": str(RETRY_WHEN_BACK_S)})


def no_plan() -> Problem:
    return unavailable("no-plan", "This wallet has no plan yet. An operator sets it with `purse plan apply`.")


def of_purse_error(error: PurseError) -> Problem:
    """What the caller hears of an error that is not an outcome."""
    match error:
        case BadAsk():
            return bad_field(error.field, error.why)
        case NoAnswer(kept=True):
            return _spooled()
        case NoAnswer():
            return unavailable("no-answer", f"The wallet did not answer in time. {_FAIL_CLOSED}")
        case NotKept():
            return unavailable("not-kept", "Neither the wallet's stream nor the disk took this. Send it again.")
        case StreamRefused():
            return unavailable("stream-refused", f"The wallet's stream did not take this. {_FAIL_CLOSED}")
        case _:
            return unavailable("untrusted", "The wallet cannot be trusted now. An operator has to look at it.")


def _spooled() -> Problem:
    """Nobody answered, but what was settled is on the stream or on disk: it counts whether it is sent again or not."""
    problem = unavailable("no-answer", "The wallet did not answer in time. What was settled is kept and will count.")
    problem.body["spooled"] = True
    return problem


def of_http_error(error: web.HTTPException) -> Problem:
    """aiohttp's own errors: no such path, no such method, too large a body."""
    kept = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
    match error.status:
        case 404:
            return Problem(404, "not-found", "There is nothing at this address. GET /openapi.json lists what there is.")
        case 405:
            allowed = kept.get("Allow", "other methods")
            return Problem(405, "method-not-allowed", f"This address takes {allowed}.", headers=kept)
        case 413:
            return too_large("A body has at most 1 MiB.")
        case _:
            return Problem(error.status, "http", error.reason, headers=kept)


def too_large(detail: str) -> Problem:
    return Problem(413, "too-large", detail)


def unauthorized(kind: str, detail: str) -> Problem:
    return Problem(401, kind, detail, headers={"WWW-Authenticate": 'Bearer realm="purse"'})
