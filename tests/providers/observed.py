"""Fakes of the four reports that observers read: Cloudflare GraphQL, OpenRouter's key, OpenAI's and Anthropic's costs.

One `Account` has spent something at some moments; `Reports` tells it as each provider would, to whoever has the key, as
late as the provider is. A queue of faults answers the next requests wrongly, one each.
"""

from __future__ import annotations

import asyncio
import gzip
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.test_utils import TestServer

KEY = "sk-a-secret-that-nobody-may-read"
ACCOUNT = "0123456789abcdef0123456789abcdef"
DAY_S = 86_400

_numbers = msgspec.json.Encoder(decimal_format="number")

Answer = Callable[["Reports"], web.Response]


class Spent(msgspec.Struct, frozen=True):
    at_s: int
    amount: Decimal
    model: str
    whose: str


class Asked(msgspec.Struct, frozen=True):
    """One request that came in."""

    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


# --- faults -----------------------------------------------------------------------------------------------------------


def status(code: int, **headers: str) -> Answer:
    """An error of the provider; `Retry_After="7"` is the header Retry-After. Its text repeats the key, as some do."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: _json({"error": {"message": f"Incorrect API key provided: {KEY}"}}, status=code, headers=named)


def says(body: object, **headers: str) -> Answer:
    """Status 200 and this body."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    raw = body if isinstance(body, bytes) else _numbers.encode(body)
    return lambda _: web.Response(body=raw, headers=named, content_type="application/json")


def packed(body: object) -> Answer:
    return says(gzip.compress(_numbers.encode(body)), Content_Encoding="gzip")


def redirect(reports: Reports) -> web.Response:
    """To a place where keys are collected."""
    return web.Response(status=302, headers={"Location": f"{reports.url}/elsewhere"})


def silence(reports: Reports) -> web.Response:
    """Not a word; `Reports` keeps the connection open."""
    raise _Silent


class _Silent(Exception):
    pass


# --- the account and who tells of it ----------------------------------------------------------------------------------


class Reports:
    """The provider, all four of them.

    `now_s`: what time it is there. `rows_max`: rows a page. `less`: it says so much less than it should.
    """

    def __init__(self, now_s: int) -> None:
        self.url = ""
        self.now_s = now_s
        self.lag_s = 0
        self.less = Decimal(0)
        self.rows_max = 100
        self.faults: list[Answer] = []
        self.asked: list[Asked] = []
        self.elsewhere = 0
        self._spent: list[Spent] = []
        self._closing = asyncio.Event()

    def spend(self, amount: str, *, at_s: int | None = None, model: str = "m", whose: str = "default") -> None:
        """Somebody with access to the account spends."""
        self._spent.append(Spent(self.now_s if at_s is None else at_s, Decimal(amount), model, whose))

    def _shown(self, day: date) -> list[Spent]:
        """What the report knows of a day by now."""
        return [one for one in self._spent if _day(one.at_s) == day and one.at_s <= self.now_s - self.lag_s]

    def _total(self, spent: Sequence[Spent]) -> Decimal:
        return max(Decimal(0), sum((one.amount for one in spent), Decimal(0)) - self.less)

    # --- Cloudflare ---------------------------------------------------------------------------------------------------

    def cloudflare(self, asked: Asked) -> web.Response:
        if asked.headers.get("Authorization") != f"Bearer {KEY}":
            return _json({"data": None, "errors": [{"message": "Authentication error", "path": None}]}, status=403)
        body = msgspec.json.decode(asked.body)
        said = re.sub(r"\s+", "", body["query"])
        wanted = re.search(r"aiInferenceAdaptiveGroups\(limit:(\d+),filter:\{date_geq:\$from,date_leq:\$to\}\)", said)
        if wanted is None or "sum{totalNeurons}dimensions{date}" not in said or "accountTag:$a" not in said:
            return _json({"data": None, "errors": [{"message": "unknown field", "path": ["viewer"]}]})
        variables = body["variables"]
        if variables["a"] != ACCOUNT:
            error = {"message": f"not authorized for that account {variables['a']}", "extensions": {"code": "authz"}}
            return _json({"data": None, "errors": [error]})
        first, last = date.fromisoformat(variables["from"]), date.fromisoformat(variables["to"])
        groups = [
            {"sum": {"totalNeurons": self._total(spent)}, "dimensions": {"date": day.isoformat()}}
            for day in (first + timedelta(days=n) for n in range((last - first).days + 1))
            if (spent := self._shown(day))
        ]
        found = {"viewer": {"accounts": [{"aiInferenceAdaptiveGroups": groups[: int(wanted[1])]}]}}
        return _json({"data": found, "errors": None})

    # --- OpenRouter ---------------------------------------------------------------------------------------------------

    def openrouter(self, asked: Asked) -> web.Response:
        if asked.headers.get("Authorization") != f"Bearer {KEY}":
            return _json({"error": {"message": "User not found.", "code": 401}}, status=401)
        today = self._total(self._shown(_day(self.now_s)))
        usage = sum((one.amount for one in self._spent), Decimal(0))
        data = {
            "label": "sk-or-v1-...", "limit": None, "limit_reset": None, "limit_remaining": None, "usage": usage,
            "usage_daily": today, "usage_weekly": usage, "usage_monthly": usage, "byok_usage_daily": 0,
            "include_byok_in_limit": False, "is_free_tier": False,
        }  # fmt: skip
        return _json({"data": data})

    # --- OpenAI -------------------------------------------------------------------------------------------------------

    def openai(self, asked: Asked) -> web.Response:
        if asked.headers.get("Authorization") != f"Bearer {KEY}":
            return _json({"error": {"message": "Incorrect API key", "code": "invalid_api_key"}}, status=401)
        query = asked.query
        start, end = int(query["start_time"]), int(query["end_time"])
        project = query.get("project_ids")
        buckets = [self._openai_bucket(at, project) for at in range(start, end, DAY_S)]
        return self._page(asked, buckets, {"object": "page"})

    def _openai_bucket(self, start: int, project: str | None) -> dict[str, Any]:
        spent = [one for one in self._shown(_day(start)) if project in (None, one.whose)]
        result = {
            "object": "organization.costs.result", "amount": {"value": self._total(spent), "currency": "usd"},
            "line_item": None, "project_id": None, "api_key_id": None, "quantity": None, "quantity_unit": None,
        }  # fmt: skip
        results = [result] if spent else []
        return {"object": "bucket", "start_time": start, "end_time": start + DAY_S, "results": results}

    # --- Anthropic ----------------------------------------------------------------------------------------------------

    def anthropic(self, asked: Asked) -> web.Response:
        if asked.headers.get("x-api-key") != KEY or "anthropic-version" not in asked.headers:
            error = {"type": "authentication_error", "message": "invalid x-api-key"}
            return _json({"type": "error", "error": error}, status=401)
        start, end = (datetime.fromisoformat(asked.query[name]) for name in ("starting_at", "ending_at"))
        grouped = asked.query.get("group_by[]") == "workspace_id"
        days = [start + timedelta(days=n) for n in range((end - start).days)]
        return self._page(asked, [self._anthropic_bucket(day, grouped) for day in days], {})

    def _anthropic_bucket(self, start: datetime, grouped: bool) -> dict[str, Any]:
        by: dict[str, list[Spent]] = defaultdict(list)
        for one in self._shown(start.date()):
            by[one.whose if grouped else ""].append(one)
        results = [
            {
                "amount": str(self._total(spent) * 100), "currency": "USD", "cost_type": "tokens",
                "workspace_id": None if whose in ("", "default") else whose, "description": None, "model": None,
            }
            for whose, spent in by.items()
        ]  # fmt: skip
        ends = start + timedelta(days=1)
        return {"starting_at": start.isoformat(), "ending_at": f"{ends:%Y-%m-%dT%H:%M:%SZ}", "results": results}

    # --- serving ------------------------------------------------------------------------------------------------------

    def _page(self, asked: Asked, rows: Sequence[object], more: Mapping[str, object]) -> web.Response:
        at = int(asked.query.get("page", "page_0").removeprefix("page_"))
        size = min(self.rows_max, int(asked.query["limit"]))
        follows = at + size < len(rows)
        token = f"page_{at + size}" if follows else None
        return _json({**more, "data": rows[at : at + size], "has_more": follows, "next_page": token})

    async def answer(self, request: web.Request) -> web.StreamResponse:
        asked = Asked(request.path, dict(request.query), dict(request.headers), await request.read())
        self.asked.append(asked)
        if self.faults:
            try:
                return self.faults.pop(0)(self)
            except _Silent:
                await self._closing.wait()
                return web.Response(status=500)
        return ROUTES[request.method, request.path](self, asked)

    async def collect(self, _request: web.Request) -> web.StreamResponse:
        """Where redirects lead."""
        self.elsewhere += 1
        return web.Response()

    def close(self) -> None:
        self._closing.set()


ROUTES: Mapping[tuple[str, str], Callable[[Reports, Asked], web.Response]] = {
    ("POST", "/client/v4/graphql"): Reports.cloudflare,
    ("GET", "/api/v1/key"): Reports.openrouter,
    ("GET", "/v1/organization/costs"): Reports.openai,
    ("GET", "/v1/organizations/cost_report"): Reports.anthropic,
}
BELOW = {"cloudflare": "/client/v4", "openrouter": "/api/v1", "openai": "/v1", "anthropic": "/v1"}
"""What follows the host in each provider's `base_url`."""


@asynccontextmanager
async def reports_at(now_s: int) -> AsyncIterator[Reports]:
    """The fakes of all four, on one free port of this machine."""
    reports = Reports(now_s)
    app = web.Application()
    for method, path in ROUTES:
        app.router.add_route(method, path, reports.answer)
    app.router.add_get("/elsewhere", reports.collect)
    app.router.add_post("/elsewhere", reports.collect)
    server = TestServer(app)
    await server.start_server()
    reports.url = str(server.make_url("")).rstrip("/")
    try:
        yield reports
    finally:
        reports.close()
        await server.close()


def _day(at_s: int) -> date:
    return datetime.fromtimestamp(at_s, UTC).date()


def _json(body: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(
        body=_numbers.encode(body), status=status, headers=headers or {}, content_type="application/json"
    )
