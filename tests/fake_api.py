"""A small wallet behind the HTTP API's own shapes, to test the command alone: one budget, one key, faults on demand.

It runs on a loopback port in a thread of its own, so that a command under test may own the main thread's event loop.
`tests/end_to_end/test_cli.py` puts the same commands to the real thing.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from aiohttp import web
from click.testing import CliRunner, Result

from commonpurse.__main__ import purse
from engine.core.amounts import format_amount, parse

KEY = "purse_test"
BUDGET, UNIT, SCALE = "jev", "usd", 9
AT, EXPIRES_AT, RESETS_AT = "2040-11-30T13:55:12.000Z", "2040-11-30T14:05:12.000Z", "2040-12-01T00:00:00.000Z"
RECEIPT = {"seq": 7, "chain": "ab" * 32}
STATUS = {
    "wallet": "main", "as_of": AT, "seq": 123_456, "live": True, "frozen": None, "budgets": [
        {"name": "jev", "unit": "usd", "per": "day", "zone": "UTC", "period": "2040-11-30", "limit": "1",
         "settled": "0.5", "held": "0.25", "extra": "0", "used": "0.75", "remaining": "0.25", "used_pct": 75.0,
         "held_pct": 25.0,
         "settled_pct": 50.0, "extra_pct": 0.0, "starts_at": "2040-11-30T00:00:00.000Z", "resets_at": RESETS_AT,
         "first_exhausted_at": None, "observed": None, "reading": None},
        {"name": "neurons", "unit": "neurons", "per": "day", "zone": "UTC", "period": "2040-11-30", "used_pct": 43.0,
         "held_pct": 0.0, "settled_pct": 43.0, "extra_pct": 0.0, "starts_at": "2040-11-30T00:00:00.000Z",
         "resets_at": RESETS_AT, "first_exhausted_at": None, "observed": None, "reading": None},
    ],
}  # fmt: skip

REFUSED = {"spent": 402, "busy": 429, "never": 400}
RETRY_S = "1"

How = Literal["503", "before", "after", "garbage"]
"""A fault: refuse with 503, break the connection before or after deciding, or answer with a page of HTML."""

Json = dict[str, Any]


@dataclass
class Call:
    fields: Json
    amount: int
    state: str = "open"
    charged: int = 0


@dataclass
class FakeApi:
    limit: int = 10**9
    url: str = ""
    calls: dict[str, Call] = field(default_factory=dict)
    seen: list[tuple[str, str, Json]] = field(default_factory=list)
    faults: dict[str, list[How]] = field(default_factory=dict)
    canned: dict[str, tuple[int, Json]] = field(default_factory=dict)
    conflicting: bool = False
    """Another plan always comes first."""

    # --- what a test sets and looks at ------------------------------------------------------------------------------

    def fail(self, path_end: str, *faults: How, times: int = 1) -> None:
        """The next requests whose path ends so meet these, one each, `times` over."""
        self.faults.setdefault(path_end, []).extend(faults * times)

    def ask(self, *arguments: str) -> Result:
        """Run a command against it in this process."""
        return CliRunner().invoke(purse, ["--url", self.url, "--key", KEY, *arguments], catch_exceptions=False)

    @property
    def settled(self) -> int:
        return sum(call.charged for call in self.calls.values())

    @property
    def held(self) -> int:
        return sum(call.amount for call in self.calls.values() if call.state == "open")

    def bodies(self, path: str) -> list[Json]:
        return [body for _, seen, body in self.seen if seen == path]

    # --- what it decides --------------------------------------------------------------------------------------------

    def hold(self, body: Json) -> tuple[int, Json]:
        id, amount = body["id"], parse(body["amounts"][UNIT], unit=UNIT, scale=SCALE)
        known = self.calls.get(id)
        if known is None and amount > self.limit - self.settled - self.held:
            return self._exhausted(id, amount)
        if known is None:
            self.calls[id] = Call(body, amount)
            return 201, self._held(id)
        if known.fields != body:
            return _problem(422, "conflict", id, field="amounts")
        if known.state == "open":
            return 200, self._held(id)
        return _problem(409, "closed", id, state=known.state, charged={UNIT: _usd(known.charged)})

    def settle(self, id: str, body: Json) -> tuple[int, Json]:
        amount = parse(body["amounts"][UNIT], unit=UNIT, scale=SCALE)
        call = self.calls.setdefault(id, Call({}, 0, state="unknown"))
        outcome = {"unknown": "stray", "open": "settled", "lapsed": "settled"}.get(call.state, "again")
        if outcome == "again" and amount != call.charged:
            return _problem(422, "conflict", id, field="amounts", charged={UNIT: _usd(call.charged)})
        flags = ["overrun"] if amount > call.amount else []
        call.state, call.charged = "settled", amount
        charge = {"charged": {UNIT: _usd(amount)}, "released": {UNIT: _usd(max(0, call.amount - amount))}}
        said = {"outcome": outcome, "id": id, "state": "settled", **charge, **self._left(), **self._used()}
        return 200, {**said, **({"at": AT} if outcome == "stray" else {}), "flags": flags, "receipt": RECEIPT}

    def release(self, id: str) -> tuple[int, Json]:
        if id not in self.calls:
            return _problem(404, "unknown", id)
        self.calls[id].state = "released"
        charge = {"charged": {UNIT: "0"}, "released": {UNIT: _usd(self.calls[id].amount)}}
        said = {"outcome": "settled", "id": id, "state": "settled", **charge, **self._left(), **self._used()}
        return 200, {**said, "flags": [], "receipt": RECEIPT}

    def _held(self, id: str) -> Json:
        times = {"at": AT, "expires_at": EXPIRES_AT, "periods": {BUDGET: "2040-11-30"}, "tier": 0}
        held = {"outcome": "held", "id": id, "option": 0, "amounts": {UNIT: _usd(self.calls[id].amount)}}
        return {**held, **times, **self._left(), "receipt": RECEIPT}

    def _left(self) -> Json:
        return {"remaining": {BUDGET: _usd(self.limit - self.settled - self.held)}}

    def _used(self) -> Json:
        return {"used_pct": {BUDGET: (self.settled + self.held) * 1000 // self.limit / 10}}

    def _exhausted(self, id: str, amount: int) -> tuple[int, Json]:
        left = self.limit - self.settled - self.held
        why = "never" if amount > self.limit else "spent" if self.settled + amount > self.limit else "busy"
        return _problem(
            REFUSED[why], "exhausted", id, why=why, budget=BUDGET, unit=UNIT, period="2040-11-30",
            limit=_usd(self.limit), settled=_usd(self.settled), held=_usd(self.held), extra="0",
            remaining=_usd(left), fits=_usd(max(0, left)),
            used_pct=100.0, resets_at=RESETS_AT,
        )  # fmt: skip

    # --- how it answers ---------------------------------------------------------------------------------------------

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read() or b"{}")
        self.seen.append((request.method, request.path, body))
        fault = self._next_fault(request.path)
        if fault == "503":
            return _answer(*_problem(503, "no-answer", "", detail="The wallet did not answer in time."))
        if fault == "garbage":
            return web.Response(status=502, text="<html>bad gateway</html>", content_type="text/html")
        if fault == "before":
            return _broken(request)
        if request.headers.get("Authorization") != f"Bearer {KEY}" and request.path != "/v1/status":
            return _answer(*_problem(401, "wrong-key", "", detail="This key is not known here."))
        status, said = self._decide(request, body)
        if fault == "after":
            return _broken(request)
        return _answer(status, said)

    def _next_fault(self, path: str) -> How | None:
        for end, waiting in self.faults.items():
            if path.endswith(end) and waiting:
                return waiting.pop(0)
        return None

    def _decide(self, request: web.Request, body: Json) -> tuple[int, Json]:
        path = request.path
        if path == "/v1/plan" and request.method == "POST":
            return self._apply(body)
        if path in self.canned:
            return self.canned[path]
        if path == "/v1/holds":
            return self.hold(body)
        if path == "/v1/holds:batch":
            return 200, {"told": [self._one(dict(ask)) for ask in body["asks"]]}
        if path.endswith("/settle"):
            return self.settle(request.match_info["id"], body)
        if path.endswith("/release"):
            return self.release(request.match_info["id"])
        return _problem(404, "not-found", "", detail="There is nothing at this address.")

    def _apply(self, body: Json) -> tuple[int, Json]:
        if self.conflicting:
            return _problem(409, "conflict", "p", field="replaces")
        return 200, {"outcome": "planned", "id": "p", "digest": "cd" * 16, "restarts": [], "receipt": RECEIPT}

    def _one(self, ask: Json) -> Json:
        kind = ask.pop("ask")
        status, said = self.hold(ask) if kind == "hold" else self.settle(ask.pop("hold"), ask)
        return {"status": status, **said}

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        await stream.write(b"retry: 5000\n\n: still here\n\n")
        for seq in (1, 2):
            data = json.dumps({**STATUS, "seq": seq}).encode()
            await stream.write(b"event: status\nid: %d\ndata: %b\n\n" % (seq, data))
        return stream

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/v1/status/stream", self._stream)
        app.router.add_post("/v1/holds/{id}/{verb}", self._serve)
        app.router.add_route("*", "/{path:.*}", self._serve)
        return app


def _usd(nanos: int) -> str:
    return format_amount(nanos, scale=SCALE)


def _problem(status: int, kind: str, id: str, **more: object) -> tuple[int, Json]:
    """`id`: of the ask that is refused, "" where none is."""
    body = {"type": f"/problems/{kind}", "title": "No", "status": status, "detail": "It is so."} | more
    return status, {**body, "outcome": kind, "id": id, "receipt": RECEIPT} if id else body


def _answer(status: int, body: Json) -> web.Response:
    kind = "application/json" if status < 400 else "application/problem+json"
    headers = {"x-request-id": "0", **_telling(status, body)}
    return web.Response(status=status, text=json.dumps(body), content_type=kind, headers=headers)


def _telling(status: int, body: Json) -> dict[str, str]:
    if status == 401:
        return {"WWW-Authenticate": "Bearer"}
    if status == 503 or body.get("why") == "busy":
        return {"Retry-After": RETRY_S}
    return {"x-should-retry": "false"} if status >= 400 and "outcome" in body else {}


def _broken(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


@contextmanager
def fake_api(*, limit: int = 10**9, tls: ssl.SSLContext | None = None) -> Iterator[FakeApi]:
    """Runs until the context ends. `limit` is in nano-dollars."""
    api, loop, up = FakeApi(limit), asyncio.new_event_loop(), threading.Event()

    async def start() -> web.AppRunner:
        runner = web.AppRunner(api.app())
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        api.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        return runner

    def serve() -> None:
        runner = loop.run_until_complete(start())
        up.set()
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.run_until_complete(asyncio.sleep(0))  # connections are closed one turn of the loop later
        loop.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    assert up.wait(10)
    try:
        yield api
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
