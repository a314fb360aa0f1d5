"""Faults of streams, disconnects and usage parsing (D), and some of prices (F), as they meet Anthropic and Workers AI.

The official client talks to the wallet, the wallet to a provider that keeps a bill of its own: the two must agree.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import anthropic
import pytest
import pytest_asyncio
from guarded_provider import NEURONS_A_DAY, GuardedProvider, guarded_provider
from providers.fake_anthropic import fake_anthropic
from providers.fake_workers_ai import LLAMA, fake_workers_ai
from providers.faults import Fault
from providers.production import Reply, Seen, words

from engine.core.plan import Budget, Plan

ASK: dict[str, Any] = {
    "model": "claude-haiku-4-5",
    "max_tokens": 1000,
    "messages": [{"role": "user", "content": "What is a purse?"}],
}
THINKING = {"type": "enabled", "budget_tokens": 1024}


@pytest_asyncio.fixture
async def guard() -> AsyncIterator[GuardedProvider]:
    async with guarded_provider(fake_anthropic(), "anthropic") as guard:
        yield guard


@pytest_asyncio.fixture
async def client(guard: GuardedProvider) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with guard.anthropic(max_retries=0) as client:
        yield client


async def streamed(client: Any, **more: Any) -> Any:
    async with client.messages.stream(**{**ASK, **more}) as stream:
        return await stream.get_final_message()


async def left_in_mid_stream(guard: GuardedProvider, client: Any, *, after: int, **more: Any) -> Seen:
    """The client reads the beginning of a stream and goes away."""
    guard.fake.fault = Fault(pause_after=after)
    stream = await client.messages.create(**{**ASK, **more}, stream=True)
    seen: Seen = await guard.fake.request(len(guard.fake.requests) - 1)
    async with asyncio.timeout(30):
        await seen.paused.wait()
        await stream.close()
        await seen.ended.wait()
    return seen


async def test_d1_a_client_that_leaves_an_anthropic_stream_pays_what_it_was_sent(
    guard: GuardedProvider, client: Any
) -> None:
    await left_in_mid_stream(guard, client, after=5)
    (settle,) = await guard.settled()
    assert settle.estimated
    assert 0 < guard.fake.ledger.total <= settle.amounts["usd"]
    assert settle.amounts["usd"] <= guard.holds[0].options[0].amounts["usd"]


async def test_d2_what_was_seen_of_a_stream_has_the_price_of_its_model(guard: GuardedProvider, client: Any) -> None:
    for model in ("claude-haiku-4-5", "claude-opus-4-8"):
        await left_in_mid_stream(guard, client, after=5, model=model)
    cheap, dear = await guard.settled(2)
    assert dear.amounts["usd"] == pytest.approx(5 * cheap.amounts["usd"], abs=5)
    assert [hold.labels["model"] for hold in guard.holds] == ["claude-haiku-4-5", "claude-opus-4-8"]


async def test_d5_no_stream_is_settled_at_nothing(guard: GuardedProvider, client: Any) -> None:
    for count in range(1, 4):
        await streamed(client)
        assert guard.meter() == (guard.fake.ledger.total, 0)
        assert guard.settles[-1].amounts["usd"] * count == guard.fake.ledger.total > 0


async def test_d6_a_stream_costs_input_cache_and_output(guard: GuardedProvider, client: Any) -> None:
    guard.fake.reply = Reply(cache_read=3, cache_write=2, cache_write_1h=1)
    for usage in ("normal", "cumulative", "delta_only"):
        guard.fake.fault = Fault(usage=usage)
        await streamed(client)
    assert [settle.amounts["usd"] for settle in guard.settles] == [4_000 + 300 + 2_500 + 2_000 + 60_000] * 3
    assert guard.meter() == (guard.fake.ledger.total, 0)


async def test_d7_mixed_traffic_comes_to_the_providers_own_bill(guard: GuardedProvider, client: Any) -> None:
    replies = [
        Reply(), Reply(tokens=words(200)), Reply(cache_read=5), Reply(cache_write=4, cache_write_1h=4),
        Reply(reasoning=30), Reply(tokens=()),
    ]  # fmt: skip
    for reply in replies:
        guard.fake.reply = reply
        await client.messages.create(**ASK)
        await streamed(client, max_tokens=17)
        await streamed(client, model="claude-sonnet-4-6", thinking={"type": "adaptive"})
    assert len(guard.fake.ledger.lines) == 18
    assert guard.meter() == (guard.fake.ledger.total, 0)


async def test_d8_a_cancelled_plain_call_is_charged_at_its_grant(guard: GuardedProvider, client: Any) -> None:
    guard.fake.fault = Fault(pause_after=5)
    asking = asyncio.create_task(client.messages.create(**ASK))
    seen = await guard.fake.request()
    async with asyncio.timeout(30):
        await seen.paused.wait()
        asking.cancel()
        await seen.aborted.wait()
    (settle,) = await guard.settled()
    assert (settle.estimated, settle.amounts) == (True, guard.holds[0].options[0].amounts)
    assert settle.amounts["usd"] >= guard.fake.ledger.total > 0


@pytest.mark.parametrize("usage", ["none", "null", "zeros", "start_only"])
async def test_d9_a_cost_nobody_says_is_the_grant_and_never_zero(
    guard: GuardedProvider, client: Any, usage: Any
) -> None:
    guard.fake.fault = Fault(usage=usage)
    async for _ in await client.messages.create(**ASK, stream=True):
        pass
    (settle,) = await guard.settled()
    assert (settle.estimated, settle.amounts) == (True, guard.holds[0].options[0].amounts)


async def test_d11_thinking_is_charged_as_output_although_little_of_it_is_shown(
    guard: GuardedProvider, client: Any
) -> None:
    guard.fake.reply, guard.fake.fault = Reply(reasoning=1_000), Fault(extra_output=500)
    await streamed(client, max_tokens=2_000, thinking=THINKING)
    assert guard.fake.ledger.lines[0].used.output == 1_512
    assert guard.meter() == (guard.fake.ledger.total, 0)


async def test_d13_progress_and_end_of_a_stream_are_charged_once(guard: GuardedProvider, client: Any) -> None:
    guard.fake.reply = Reply(tokens=words(400))
    await streamed(client)
    assert len(guard.settles) == 1
    assert guard.meter() == (guard.fake.ledger.total, 0)


async def test_d15_the_provider_is_left_as_soon_as_the_client_leaves(guard: GuardedProvider, client: Any) -> None:
    guard.fake.reply = Reply(tokens=words(900))
    seen = await left_in_mid_stream(guard, client, after=5)
    assert seen.aborted.is_set()
    assert guard.fake.ledger.lines[0].used.output == 5  # the other 895 were never made


async def test_d17_a_stream_that_breaks_off_is_settled_from_our_own_count(guard: GuardedProvider, client: Any) -> None:
    for fault in (Fault(reset_after=5), Fault(end_after=5)):
        guard.fake.next_faults.append(fault)
        with pytest.raises(anthropic.APIError):
            await streamed(client)
    settles = await guard.settled(2)
    assert all(settle.estimated for settle in settles)
    assert sum(settle.amounts["usd"] for settle in settles) >= guard.fake.ledger.total > 0


async def test_l10_a_provider_that_makes_more_than_it_may_is_charged_in_full(
    guard: GuardedProvider, client: Any
) -> None:
    guard.fake.fault = Fault(extra_output=50_000)
    await client.messages.create(**{**ASK, "max_tokens": 5})
    assert guard.settles[0].amounts["usd"] > guard.holds[0].options[0].amounts["usd"]
    assert guard.meter() == (guard.fake.ledger.total, 0)


async def test_a13_of_forty_messages_at_once_no_more_is_billed_than_the_budget() -> None:
    plan = Plan(budgets={"day": Budget("usd", 30_000_000)})  # room for five of them at their worst
    async with (
        guarded_provider(fake_anthropic(reply=Reply(tokens=words(900))), "anthropic", plan) as guard,
        guard.anthropic(max_retries=0) as client,
    ):
        calls = [client.messages.create(**ASK) for _ in range(40)]
        said = await asyncio.gather(*calls, return_exceptions=True)
        done = [answer for answer in said if not isinstance(answer, BaseException)]
        assert all(isinstance(answer, anthropic.APIStatusError) for answer in said if answer not in done)
        assert 5 <= len(done) == len(guard.fake.ledger.lines) < 40
        assert guard.meter() == (guard.fake.ledger.total, 0)
        assert guard.fake.ledger.total <= 30_000_000


async def test_g3_every_try_of_a_client_is_a_hold_of_its_own(guard: GuardedProvider, client: Any) -> None:
    guard.fake.next_faults.extend([Fault(status=500, headers={"retry-after-ms": "1"})] * 2)
    await client.with_options(max_retries=2).messages.create(**ASK)
    assert len({hold.id for hold in guard.holds}) == len(guard.fake.requests) == 3
    assert guard.meter() == (guard.fake.ledger.total, 0)
    assert len(guard.fake.ledger.lines) == 1


async def test_f3_a_misspelt_claude_is_refused_and_not_free(guard: GuardedProvider, client: Any) -> None:
    with pytest.raises(anthropic.BadRequestError) as caught:
        await client.messages.create(**{**ASK, "model": "claude-opus-4.1x"})
    assert (caught.value.error_code, guard.fake.requests) == ("model_not_priced", [])


async def test_f6_cached_input_has_its_own_price(guard: GuardedProvider, client: Any) -> None:
    guard.fake.reply = Reply(cache_read=8, tokens=())
    await client.messages.create(**ASK)
    assert guard.settles[0].amounts["usd"] == 2 * 1_000 + 8 * 100


@pytest.mark.parametrize("stream", [False, True])
async def test_d7_neurons_come_to_the_providers_own_bill(stream: bool) -> None:
    messages: Any = [{"role": "user", "content": "What is a purse?"}]
    async with (
        guarded_provider(fake_workers_ai(), "workers-ai", NEURONS_A_DAY) as guard,
        guard.openai(max_retries=0) as client,
    ):
        for cap in (1, 7, 100):
            answer: Any = await client.chat.completions.create(
                model=LLAMA, messages=messages, max_tokens=cap, stream=stream
            )
            if stream:
                async for _ in answer:
                    pass
        assert guard.meter() == (guard.fake.ledger.total, 0)
        assert len(guard.fake.ledger.lines) == 3
