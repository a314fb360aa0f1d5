"""When too many ask at once: turned away at the door, those who have spent last of all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
import pytest_asyncio
from desk_client import Desk, Heard, open_desk
from fake_purse import Answered

from engine.core.messages import AnyAsk
from engine.errors import NoAnswer
from web import crowd


@pytest_asyncio.fixture
async def desk() -> AsyncIterator[Desk]:
    async with open_desk() as desk:
        yield desk


class Slow:
    """Makes the wallet think until it is told to answer. `asked`: how many wait."""

    def __init__(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked = 0
        self.answer = asyncio.Event()
        self.more = asyncio.Condition()
        at_once = desk.purse.ask_all

        async def ask_all(asks: Sequence[AnyAsk], *, wait_s: float = 5.0) -> list[Answered]:
            async with self.more:
                self.asked += 1
                self.more.notify_all()
            await self.answer.wait()
            return await at_once(asks, wait_s=wait_s)

        monkeypatch.setattr(desk.purse, "ask_all", ask_all)

    async def until(self, asked: int) -> None:
        async with asyncio.timeout(5), self.more:
            await self.more.wait_for(lambda: self.asked >= asked)


async def test_past_so_many_holds_the_next_is_turned_away_at_once_and_settles_get_in(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crowd, "INSIDE_MAX", {"hold": 2, "settle": 1})
    await desk.hold("before", "0.1")
    slow = Slow(desk, monkeypatch)
    inside = [asyncio.create_task(desk.hold(id, "0.1")) for id in ("a", "b")]
    await slow.until(2)
    refused = await desk.hold("c", "0.1")
    assert overloaded(refused)
    assert "Nothing may be spent" in refused["detail"]
    inside.append(asyncio.create_task(desk.settle("before", "0.05")))
    await slow.until(3)
    assert overloaded(await desk.settle("before", "0.05"))
    assert (await desk.get("/v1/status")).status == 200, "who only looks is not in the way"
    slow.answer.set()
    assert [answer.status for answer in await asyncio.gather(*inside)] == [201, 201, 200]
    assert (await desk.hold("c", "0.1")).status == 201


def overloaded(refused: Heard) -> bool:
    return (refused.status, refused["type"], refused.headers["Retry-After"]) == (503, "/problems/overloaded", "2")


async def test_whoever_is_answered_with_an_error_makes_room_too(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowd, "INSIDE_MAX", {"hold": 1, "settle": 1})
    for body in ({"amounts": {"usd": "-1"}}, {"no": "hold"}):
        for _ in range(3):
            assert (await desk.post("/v1/holds", body)).status == 400
    assert (await desk.hold("a", "0.1")).status == 201


async def test_an_answer_that_never_came_says_whether_the_settle_is_kept(desk: Desk) -> None:
    await desk.hold("a", "0.1")
    desk.purse.error = NoAnswer("silence", kept=True)
    assert (await desk.settle("a", "0.05"))["spooled"] is True
    desk.purse.error = NoAnswer("silence")
    assert "spooled" not in (await desk.settle("a", "0.05")).body
