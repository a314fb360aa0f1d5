"""Strangers are counted by the engines for all web processes together, and by each alone where no engine answers."""

from __future__ import annotations

import msgspec
import pytest
from desk_client import PLAN, open_desk
from fake_purse import NS, FakePurse
from nats.aio.msg import Msg
from structlog.contextvars import get_contextvars
from unit.test_visitors import visit as from_address

from engine.core.messages import Counted, Visit
from engine.visit_counter import VisitCounter
from web.settings import Settings
from web.slowing import Slowing
from web.visitors import Visitors

STRANGER = from_address("192.0.2.1")


def webs(purse: FakePurse, count: int = 2, **settings: int) -> list[Slowing]:
    return [Slowing(purse, Settings(**settings), Visitors()) for _ in range(count)]  # type: ignore[arg-type]


async def test_two_web_processes_share_one_strangers_ten_questions() -> None:
    purse = FakePurse()
    one, other = webs(purse)
    waits = [await web.wait_s(STRANGER, "ask") for _ in range(8) for web in (one, other)]
    assert waits[:10] == [0] * 10
    assert all(waits[10:])
    assert one.slowed["ask"] + other.slowed["ask"] == 6
    assert {len(visit.visitor) for visit in purse.visited} == {16}


async def test_whoever_was_told_to_wait_is_told_again_without_asking_an_engine() -> None:
    purse = FakePurse()
    (web,) = webs(purse, 1)
    for _ in range(11):
        await web.wait_s(STRANGER, "ask")
    asked = len(purse.visited)
    assert await web.wait_s(STRANGER, "ask") > 0
    assert len(purse.visited) == asked
    assert await web.wait_s(from_address("192.0.2.2"), "ask") == 0
    purse.clock += 60 * NS
    assert await web.wait_s(STRANGER, "ask") == 0


async def test_where_no_engine_answers_each_web_process_counts_for_itself() -> None:
    purse = FakePurse()
    purse.visits = None
    one, other = webs(purse)
    for web in (one, other):
        assert [await web.wait_s(STRANGER, "ask") for _ in range(11)][:10] == [0] * 10
        assert await web.wait_s(STRANGER, "ask") > 0


async def test_an_engine_that_falls_silent_leaves_what_came_before_counted() -> None:
    purse = FakePurse()
    (web,) = webs(purse, 1)
    for _ in range(10):
        assert await web.wait_s(STRANGER, "ask") == 0
    purse.visits = None
    assert await web.wait_s(STRANGER, "ask") > 0


async def test_how_often_is_for_the_operator_to_say() -> None:
    purse = FakePurse()
    (web,) = webs(purse, 1, asks_per_minute=2, estimates_per_minute=3)
    assert [await web.wait_s(STRANGER, "ask") > 0 for _ in range(3)] == [False, False, True]
    assert [await web.wait_s(STRANGER, "estimate") > 0 for _ in range(4)] == [False] * 3 + [True]


async def test_nothing_is_sent_for_whoever_is_slowed_down() -> None:
    async with open_desk(PLAN, estimates_per_minute=0) as desk:
        heard = await desk.post("/v1/estimate", {"model": "gpt-4o", "messages": []}, key=None)
        assert heard.status == 429
        assert 1 <= heard["seconds"] <= 60
        assert desk.purse.asked == []


class _Heard(Msg):
    """A request whose answers are kept."""

    def __init__(self, data: bytes) -> None:
        super().__init__(None, subject="purse.main.visit", reply="_INBOX.a.1", data=data)  # type: ignore[arg-type]
        self.answers: list[Counted] = []

    async def respond(self, data: bytes) -> None:
        self.answers.append(msgspec.json.decode(data, type=Counted))


async def _told(counter: VisitCounter, visit: object) -> list[Counted]:
    message = _Heard(msgspec.json.encode(visit))
    await counter.on_visit(message)
    return message.answers


async def test_a_standby_counts_without_a_word_and_goes_on_where_the_other_was() -> None:
    speaks = False
    counter = VisitCounter(lambda: 90 * NS, lambda: speaks)
    assert [await _told(counter, Visit(b"a", "ask", 2)) for _ in range(2)] == [[], []]
    speaks = True
    assert await _told(counter, Visit(b"a", "ask", 2)) == [Counted(wait_s=30, until=120 * NS)]
    assert counter.slowed == 1


@pytest.mark.parametrize("wrong", [{}, {"visitor": "YQ==", "kind": "all", "most": 1}, Visit(b"a" * 33, "ask", 1), 7])
async def test_what_is_no_visit_is_not_answered(wrong: object) -> None:
    assert await _told(VisitCounter(lambda: NS, lambda: True), wrong) == []


async def test_whatever_is_logged_on_a_requests_behalf_bears_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    bound: list[str] = []

    async def secret(_purse: FakePurse) -> bytes:
        bound.append(get_contextvars()["request_id"])
        return b"s"

    monkeypatch.setattr(FakePurse, "visit_secret", secret)
    async with open_desk(PLAN) as desk:
        heard = await desk.post("/v1/estimate", {"model": "gpt-4o", "messages": []}, key=None)
        assert bound == [heard.headers["x-request-id"]]
