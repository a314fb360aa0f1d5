"""A call has left once its body begins to: not while a connection is looked for, and not when there is none."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer, unused_port

from web.proxy.bodies import BODY_BYTES_MAX
from web.proxy.relay import Leaving
from web.proxy.upstreams import open_session


class Seen:
    """A provider that keeps the body it got, and who asked how often a body left."""

    def __init__(self) -> None:
        self.left = 0
        self.body = b""
        self.headers: dict[str, str] = {}

    def leaves(self) -> None:
        assert not self.body, "it left before it arrived"
        self.left += 1

    async def take(self, request: web.Request) -> web.Response:
        self.body, self.headers = await request.read(), dict(request.headers)
        return web.Response()


@pytest.fixture
async def provider() -> Any:
    seen = Seen()
    app = web.Application(client_max_size=2 * BODY_BYTES_MAX)
    app.router.add_post("/", seen.take)
    async with TestServer(app) as server:
        yield server, seen


@pytest.mark.parametrize("size", [0, 2, BODY_BYTES_MAX], ids=["nothing", "short", "largest"])
async def test_a_body_of_any_size_arrives_whole_and_leaves_once(provider: tuple[TestServer, Seen], size: int) -> None:
    server, seen = provider
    body = b"x" * size
    async with open_session() as session, session.post(server.make_url("/"), data=Leaving(body, seen.leaves)) as answer:
        assert answer.status == 200
    assert (seen.left, seen.body == body) == (1, True)
    assert seen.headers["Content-Length"] == str(size)


async def test_where_nobody_listens_nothing_leaves() -> None:
    seen = Seen()
    async with open_session() as session:
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.post(f"http://127.0.0.1:{unused_port()}/", data=Leaving(b"{}", seen.leaves))
    assert seen.left == 0
