"""Everybody who waits is woken, a few at a time, in the order they came: whoever else asks is served in between."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from web import bell
from web.bell import Bell


async def test_all_are_woken_in_order_and_others_have_their_turn_in_between() -> None:
    rung, woken, count = Bell(), list[int](), 3 * bell.WOKEN_AT_ONCE + 1

    async def viewer(number: int) -> None:
        assert await rung.rung(within_s=60)
        woken.append(number)

    viewers = [asyncio.create_task(viewer(number)) for number in range(count)]
    await asyncio.sleep(0)
    rung.ring()
    seen = [0]
    while seen[-1] < count:
        await asyncio.sleep(0)  # a turn of the loop, as everybody else has it
        seen.append(len(woken))
    assert woken == list(range(count))
    assert max(later - earlier for earlier, later in pairwise(seen)) == bell.WOKEN_AT_ONCE
    await asyncio.gather(*viewers)


async def test_whoever_comes_after_a_ring_waits_for_the_next() -> None:
    rung = Bell()
    rung.ring()
    late = asyncio.create_task(rung.rung(within_s=60))
    await asyncio.sleep(0)
    assert not late.done()
    rung.ring()
    assert await late


async def test_a_viewer_who_leaves_between_the_ring_and_its_turn_is_no_error() -> None:
    rung = Bell()
    viewers = [asyncio.create_task(rung.rung(within_s=60)) for _ in range(2 * bell.WOKEN_AT_ONCE)]
    await asyncio.sleep(0)
    rung.ring()
    viewers[-1].cancel()
    answers = await asyncio.gather(*viewers, return_exceptions=True)
    assert answers[:-1] == [True] * (len(viewers) - 1)
    assert isinstance(answers[-1], asyncio.CancelledError)


async def test_where_nobody_rings_the_wait_ends_by_itself() -> None:
    assert await Bell().rung(within_s=0.01) is False
