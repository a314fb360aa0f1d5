"""What every fake provider is: a server on a free port that remembers requests, notices who leaves, and keeps a bill.

async with fake_openai(reply=Reply(tokens=words(40)), fault=Fault(pause_after=3)) as fake:
    ...  # fake.url, fake.key, fake.requests, fake.ledger
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, ClassVar, Self

from aiohttp import web
from multidict import CIMultiDict
from providers.answer import say
from providers.faults import NO_FAULT, Fault
from providers.ledger import Ledger, Used
from providers.production import BrokeOff, Production, Reply, Reset, Seen, transport_of

SEEN_WAIT_S = 30.0
BODY_BYTES_MAX = 64 * 1024 * 1024

Making = Callable[[web.Request, Seen, Fault], Awaitable[web.StreamResponse]]


class Refused(Exception):
    """The provider's own no, before anything was made: free of charge."""

    def __init__(
        self, status: int, kind: str, message: str, *, code: str | int | None = None, param: str | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.kind, self.message, self.code, self.param = status, kind, message, code, param


class FakeProvider:
    """Its parts are the routes, the shape of an error, and where the key stands in a request."""

    KEY: ClassVar[str] = "sk-of-the-provider"
    REQUEST_ID: ClassVar[str] = "x-request-id"

    def __init__(self, ledger: Ledger, *, reply: Reply | None = None, fault: Fault = NO_FAULT) -> None:
        self.ledger = ledger
        self.reply = reply or Reply()
        self.fault = fault
        """How answers go wrong, all of them."""
        self.next_faults: deque[Fault] = deque()
        """How the next ones go wrong, one each, before `fault` counts again."""
        self.requests: list[Seen] = []
        self.go = asyncio.Event()
        """Set it, and whatever has come to a pause goes on."""
        self.url = ""
        self.key = self.KEY
        self._came = asyncio.Condition()
        self._closing = False

    # --- what a provider says of itself -----------------------------------------------------------------------------

    def routes(self) -> dict[str, Making]:
        """What it makes for POSTs, by path."""
        raise NotImplementedError

    def looks(self) -> dict[str, Making]:
        """What it says to GETs, by path."""
        return {}

    def key_in(self, seen: Seen) -> str | None:
        said = seen.headers.get("Authorization", "")
        return said[len("Bearer ") :] if said.startswith("Bearer ") else None

    def error(self, refused: Refused, seen: Seen) -> dict[str, Any]:
        raise NotImplementedError

    # --- what a test waits for --------------------------------------------------------------------------------------

    async def request(self, number: int = 0) -> Seen:
        """The request of this number, waiting for it to come in."""
        async with asyncio.timeout(SEEN_WAIT_S), self._came:
            await self._came.wait_for(lambda: len(self.requests) > number)
        return self.requests[number]

    # --- running ----------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=BODY_BYTES_MAX)
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing = True
        await self._runner.cleanup()

    # --- answering --------------------------------------------------------------------------------------------------

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        seen = await self._take(request)
        fault = self.next_faults.popleft() if self.next_faults else self.fault
        try:
            return await self._answer(request, seen, fault)
        except Reset:
            await asyncio.Event().wait()  # the server ends this itself once it sees its connection gone
            raise
        except (asyncio.CancelledError, ConnectionError):
            if not self._closing:
                seen.aborted.set()
            raise
        finally:
            seen.ended.set()

    async def _take(self, request: web.Request) -> Seen:
        body = await request.read()
        try:
            said = json.loads(body) if body else None
        except ValueError:
            said = None
        seen = Seen(
            len(self.requests), request.method, request.path, dict(request.query), CIMultiDict(request.headers), body,
            said, asyncio.Event(), asyncio.Event(), asyncio.Event(),
        )  # fmt: skip
        self.requests.append(seen)
        async with self._came:
            self._came.notify_all()
        return seen

    async def _answer(self, request: web.Request, seen: Seen, fault: Fault) -> web.StreamResponse:
        if fault.redirect_to is not None:
            return web.Response(status=fault.status or 307, headers={"Location": fault.redirect_to})
        if fault.reset_before_answer:
            transport_of(request).abort()
            raise Reset
        if fault.pause_before_answer:
            seen.paused.set()
            await self.go.wait()
        try:
            making = self._found(request, seen)
            if fault.status is not None:
                raise Refused(fault.status, fault.error_type or "", fault.message, code=fault.error_code)
            return await making(request, seen, fault)
        except (Refused, BrokeOff) as no:
            refused = no if isinstance(no, Refused) else self.broke_off(fault)
            headers = {self.REQUEST_ID: f"req_{seen.number}"}
            return await say(request, fault, self.error(refused, seen), status=refused.status, headers=headers)

    def _found(self, request: web.Request, seen: Seen) -> Making:
        if self.key_in(seen) != self.key:
            raise Refused(401, "authentication_error", "Incorrect API key provided.", code="invalid_api_key")
        table = self.routes() if request.method == "POST" else self.looks()
        for path, making in table.items():
            if path == request.path or (path.endswith("*") and request.path.startswith(path[:-1])):
                return making
        raise Refused(404, "not_found_error", f"Invalid URL ({request.method} {request.path})")

    # --- making -----------------------------------------------------------------------------------------------------

    def producing(
        self, request: web.Request, seen: Seen, fault: Fault, model: str, prompt: Used, *, stream: bool = False
    ) -> Production:
        """The making of one answer, which bills it."""
        return Production(
            seen, fault, self.ledger, model, prompt, go=self.go, transport=transport_of(request), stream=stream
        )

    def broke_off(self, fault: Fault) -> Refused:
        """What it says of its own error in the middle of an answer."""
        return Refused(500, fault.error_type or "server_error", fault.message, code=fault.error_code)

    def checked(self, seen: Seen) -> dict[str, Any]:
        """The body as an object that names a model this provider has."""
        body = seen.json
        if not isinstance(body, dict):
            raise Refused(400, "invalid_request_error", "We could not parse the JSON body of your request.")
        if not isinstance(body.get("model"), str) or body["model"] not in self.ledger.rates:
            raise Refused(404, "not_found_error", "The model does not exist.", code="model_not_found", param="model")
        return body
