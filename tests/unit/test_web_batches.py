"""Many asks in one request: one message on the stream, one outcome each, all or none of them sent."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from desk_client import Desk, open_desk


@pytest_asyncio.fixture
async def desk() -> AsyncIterator[Desk]:
    async with open_desk() as desk:
        yield desk


async def test_a_batch_is_one_message_and_answers_one_outcome_each_in_order(desk: Desk) -> None:
    hold = {"ask": "hold", "amounts": {"usd": "0.6"}, "labels": {"provider": "jev"}}
    asks = [
        {**hold, "id": "a"},
        {**hold, "id": "b"},
        {"ask": "settle", "hold": "a", "amounts": {"usd": "0.1"}},
        {**hold, "id": "b2"},
        {"ask": "renew", "hold": "b2", "n": 1},
        {"ask": "release", "hold": "b2"},
        {"ask": "observe", "budget": "neurons", "figure": "5"},
        {"ask": "adjust", "id": "x", "budget": "jev", "period": "2026-11-30", "amount": "-0.1", "reason": "typo"},
        {"ask": "freeze", "scope": "all", "reason": "stop"},
        {"ask": "thaw", "scope": "all"},
        {"ask": "revoke", "label": "user", "value": "u", "reason": "r"},
        {"ask": "restore", "label": "user", "value": "u"},
    ]
    told = (await desk.post("/v1/holds:batch", {"asks": asks}))["told"]
    assert [(one["status"], one["outcome"]) for one in told] == [
        (201, "held"), (429, "exhausted"), (200, "settled"), (201, "held"), (200, "held"), (200, "settled"),
        (200, "observed"), (200, "adjusted"), (200, "done"), (200, "done"), (200, "done"), (200, "done"),
    ]  # fmt: skip
    assert desk.purse.messages == 1


async def test_a_batch_item_reads_like_the_single_answer(desk: Desk) -> None:
    hold = {"id": "a", "amounts": {"usd": "0.6"}, "labels": {"provider": "jev"}}
    (told,) = (await desk.post("/v1/holds:batch", {"asks": [{"ask": "hold", **hold}]}))["told"]
    single = await desk.post("/v1/holds", hold)
    assert {**told, "receipt": 0} == {"status": 201, **single.body, "receipt": 0}


async def test_one_bad_item_refuses_the_whole_batch_unsent_and_is_named(desk: Desk) -> None:
    asks = [
        {"ask": "hold", "id": "a", "amounts": {"usd": "0.6"}},
        {"ask": "settle", "hold": "a", "amounts": {"usd": "-1"}},
    ]
    refused = await desk.post("/v1/holds:batch", {"asks": asks})
    assert (refused.status, refused["field"]) == (400, "asks[1].amounts.usd")
    assert desk.purse.asked == []


async def test_a_batch_of_1024_asks_is_taken_and_one_more_is_too_large(desk: Desk) -> None:
    asks = [{"ask": "hold", "amounts": {"usd": "0.0001"}} for _ in range(1024)]
    told = await desk.post("/v1/holds:batch", {"asks": asks})
    too_many = await desk.post("/v1/holds:batch", {"asks": [*asks, asks[0]]})
    assert (told.status, len(told["told"])) == (200, 1024)
    assert too_many.status == 413
    assert desk.purse.messages == 1


async def test_a_batch_whose_asks_are_too_many_bytes_is_too_large(desk: Desk) -> None:
    labels = {f"tag{n}": "\\" * 100 for n in range(5)}
    asks = [{"ask": "hold", "amounts": {"usd": "0"}, "labels": labels} for _ in range(700)]
    too_large = await desk.post("/v1/holds:batch", {"asks": asks})
    assert too_large.status == 413
    assert desk.purse.asked == []
