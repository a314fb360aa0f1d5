"""Errors as Cycles says them: a status, one of its codes, a sentence, details. Nothing here decides anything.

`trace_id` stands in the header alone, not in the body: clients in use know no such member there and read nothing of an
error that has it (they keep to version 0.1.24 of the protocol).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from aiohttp import web

from engine.errors import BadAsk, NoAnswer, PurseError
from web.answers import json_response
from web.problems import RETRY_WHEN_BACK_S, Problem
from web.request_ids import request_id_of

Code: TypeAlias = Literal[
    "INVALID_REQUEST", "UNAUTHORIZED", "FORBIDDEN", "NOT_FOUND", "BUDGET_EXCEEDED", "BUDGET_FROZEN",
    "RESERVATION_EXPIRED", "RESERVATION_FINALIZED", "IDEMPOTENCY_MISMATCH", "UNIT_MISMATCH",
    "OVERDRAFT_LIMIT_EXCEEDED", "MAX_EXTENSIONS_EXCEEDED", "LIMIT_EXCEEDED", "INTERNAL_ERROR",
]  # fmt: skip


class Refused(Exception):
    """An answer that ends the request. `headers` goes on the response."""

    def __init__(
        self,
        status: int,
        code: Code,
        message: str,
        *,
        details: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status, self.code, self.message = status, code, message
        self.details, self.headers = details, dict(headers or {})


def invalid(field: str, why: str) -> Refused:
    return Refused(400, "INVALID_REQUEST", f"{field}: {why}", details={"field": field})


def not_found() -> Refused:
    return Refused(404, "NOT_FOUND", "There is no such reservation, or it is no longer remembered.")


def mismatch() -> Refused:
    return Refused(409, "IDEMPOTENCY_MISMATCH", "This idempotency key was used for another request.")


def expired() -> Refused:
    return Refused(
        410, "RESERVATION_EXPIRED",
        "The reservation has expired, and counts at its worst case. Report what it cost as an event that names it.",
    )  # fmt: skip


def finalized(status: str) -> Refused:
    return Refused(409, "RESERVATION_FINALIZED", f"The reservation has ended: {status}.")


def unanswered(why: str) -> Refused:
    """Fail closed: nobody knows what was decided. The same request may be sent again."""
    return Refused(503, "INTERNAL_ERROR", why, headers={"Retry-After": str(RETRY_WHEN_BACK_S)})


def of_problem(problem: Problem) -> Refused:
    """What was refused before it was known to be of this protocol."""
    detail = str(problem.body["detail"])
    kept = {name: value for name, value in problem.headers.items() if name in ("Retry-After", "Allow")}
    match problem.status:
        case 401:
            return Refused(401, "UNAUTHORIZED", "Send a key of this wallet in X-Cycles-API-Key.")
        case 403:
            return Refused(403, "FORBIDDEN", detail)
        case 404:
            return Refused(404, "NOT_FOUND", detail)
        case 429:
            return Refused(429, "LIMIT_EXCEEDED", detail, headers=kept)
        case status if status >= 500:
            return Refused(status, "INTERNAL_ERROR", detail, headers=kept)
        case _:
            return Refused(400, "INVALID_REQUEST", detail)


def of_purse_error(error: PurseError) -> Refused:
    match error:
        case BadAsk():
            return invalid(error.field, error.why)
        case NoAnswer(kept=True):
            return unanswered("Nobody answered in time. What was reported is kept and will count; send it again.")
        case _:
            return unanswered("The wallet cannot answer now. Nothing may be spent on it; send the same request again.")


def of_http_error(error: web.HTTPException) -> Refused:
    kept = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
    match error.status:
        case 404:
            return Refused(404, "NOT_FOUND", "There is nothing at this address.")
        case 405:
            return Refused(405, "INVALID_REQUEST", "This address takes other methods.", headers=kept)
        case status if status >= 500:
            return Refused(status, "INTERNAL_ERROR", error.reason)
        case _:
            return Refused(400, "INVALID_REQUEST", error.reason)


def respond(request: web.Request, refused: Refused) -> web.Response:
    body: dict[str, object] = {
        "error": refused.code, "message": refused.message, "request_id": request_id_of(request)
    }  # fmt: skip
    if refused.details:
        body["details"] = dict(refused.details)
    response = json_response(body, status=refused.status)
    response.headers.update(refused.headers)
    return response
