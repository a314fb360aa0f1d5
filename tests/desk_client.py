"""The web application over a fake purse, as one client of it sees it. Shared by the unit tests of `web`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientResponse, web
from aiohttp.test_utils import TestClient, TestServer
from api_document import CheckingClient
from fake_purse import FakePurse

from engine.core.plan import Budget, Plan
from web.app import make_app
from web.desk import DESK
from web.lookback import Lookback, Looking
from web.settings import Settings
from web.status import Board

KEY = "purse_test_key"
DOLLAR = 1_000_000_000
NEURON = 1_000_000

PLAN = Plan(
    budgets={
        "jev": Budget(
            "usd", DOLLAR, where={"provider": "jev"}, note="Ask Kim for more", link="https://example.org/more"
        ),
        "neurons": Budget("neurons", 10_000 * NEURON, source="cloudflare", public="amounts"),
        "user-daily": Budget("jpy", 80 * 10**6, each="user"),
    }
)
"""A dollar a day for one provider, neurons for all with public amounts, 80 yen a day for each user."""


@dataclass(frozen=True)
class Heard:
    """One answer: status, headers, and the JSON it carries."""

    status: int
    headers: Mapping[str, str]
    body: Any

    def __getitem__(self, member: str) -> Any:
        return self.body[member]


class Desk:
    """The application, spoken to with the admin key unless told otherwise."""

    def __init__(self, client: TestClient[Any, Any], purse: FakePurse, board: Board, came: list[str]) -> None:
        self.client, self.purse, self.board = client, purse, board
        self.came = came
        """Method and path of every request that has come in."""

    async def post(self, path: str, body: object = None, *, key: str | None = KEY, **more: Any) -> Heard:
        return await self.send("POST", path, key=key, json=body, **more)

    async def get(self, path: str, *, key: str | None = KEY, **more: Any) -> Heard:
        return await self.send("GET", path, key=key, **more)

    async def send(self, method: str, path: str, *, key: str | None = KEY, **more: Any) -> Heard:
        headers = {**({"Authorization": f"Bearer {key}"} if key else {}), **more.pop("headers", {})}
        async with self.client.request(method, path, headers=headers, **more) as answer:
            return await heard(answer)

    async def new_key(self, role: str = "spend", **more: object) -> tuple[str, str]:
        """Make a key: the key, and its short id."""
        made = await self.post("/v1/keys", {"role": role, **more})
        assert made.status == 201, made.body
        return made["key"], made["id"]

    async def hold(self, id: str | None = None, usd: object = "0.25", **more: Any) -> Heard:
        """Hold dollars of the jev budget."""
        body = {"amounts": {"usd": usd}, "labels": {"provider": "jev"}, **({"id": id} if id else {}), **more}
        return await self.post("/v1/holds", body)

    async def settle(self, id: str, usd: object, **more: Any) -> Heard:
        return await self.post(f"/v1/holds/{id}/settle", {"amounts": {"usd": usd}, **more})


async def heard(answer: ClientResponse) -> Heard:
    body = await answer.json(content_type=None) if "json" in answer.content_type else await answer.text()
    return Heard(answer.status, answer.headers, body)


@asynccontextmanager
async def open_desk(
    plan: Plan | None = PLAN, *, purse: FakePurse | None = None, looking: Looking | None = None, **settings: Any
) -> AsyncIterator[Desk]:
    """The application, served on a free port for as long as the block runs. `looking`: who looks into the past."""
    purse = purse if purse is not None else FakePurse(plan)
    lookback = Lookback(Settings(), looking=looking) if looking is not None else None
    app = make_app(purse, Settings(**{"admin_key": KEY, **settings}), lookback=lookback)
    came: list[str] = []
    app.middlewares.insert(0, _noting(came))
    server = TestServer(app)
    await server.start_server(auto_decompress=False)  # as `python -m web` does
    async with CheckingClient(server) as client:
        board = app[DESK].board
        running = [asyncio.create_task(board.run()), asyncio.create_task(app[DESK].keys.run())]
        try:
            yield Desk(client, purse, board, came)
        finally:
            for task in running:
                task.cancel()
            await asyncio.wait(running)


def _noting(came: list[str]) -> Any:
    @web.middleware
    async def note(request: web.Request, handler: Any) -> web.StreamResponse:
        came.append(f"{request.method} {request.path}")
        answer: web.StreamResponse = await handler(request)
        return answer

    return note
