"""Workers AI behind the wallet: neurons, its own route and OpenAI's words, and the day its allocation ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import openai
import pytest
import pytest_asyncio
from desk_client import KEY, NEURON
from guarded_provider import DOLLAR_A_DAY, NEURONS_A_DAY, GuardedProvider, guarded_provider
from providers.fake_workers_ai import BGE, FLUX, LLAMA, fake_workers_ai
from providers.faults import Fault
from providers.production import Reply, words

from engine.core.plan import Budget, Plan
from web.proxy.workers_ai import neurons_of

ASK = {"prompt": "what is a purse", "max_tokens": 50}
CHAT: dict[str, Any] = {"model": LLAMA, "messages": [{"role": "user", "content": "what is a purse"}], "max_tokens": 50}


@pytest_asyncio.fixture
async def guard() -> AsyncIterator[GuardedProvider]:
    async with guarded_provider(fake_workers_ai(), "workers-ai", NEURONS_A_DAY) as guard:
        yield guard


@pytest_asyncio.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEY}"}) as session:
        yield session


async def run(http: Any, guard: GuardedProvider, body: object, model: str = LLAMA, **more: Any) -> tuple[Any, Any]:
    async with http.post(f"{guard.url}/run/{model}", json=body, **more) as answer:
        return answer, await answer.json(content_type=None)


# --- native -----------------------------------------------------------------------------------------------------------


async def test_a_run_is_settled_at_the_neurons_that_are_reported(guard: GuardedProvider, http: Any) -> None:
    answer, body = await run(http, guard, ASK)
    assert (answer.status, body["result"]["response"]) == (200, guard.fake.reply.text)
    assert answer.headers["x-purse-max-tokens"] == "50"
    assert guard.meter() == (guard.fake.ledger.total, 0)
    assert guard.holds[0].labels == {"provider": "cloudflare", "model": LLAMA}
    assert guard.fake.requests[0].headers["Authorization"] == f"Bearer {guard.fake.key}"


async def test_the_reported_figure_wins_wherever_it_stands(guard: GuardedProvider, http: Any) -> None:
    for fault in (Fault(usage="header"), Fault(usage="body"), Fault(usage_patch={"neurons": 0.5})):
        guard.fake.next_faults.append(fault)
        await run(http, guard, ASK)
    assert guard.meter() == (guard.fake.ledger.total, 0)  # the header says more than 0.5, and the larger counts


async def test_f11_three_times_the_documented_figure_is_what_is_charged_and_was_held() -> None:
    prices = {FLUX: {"neurons_per_call": "57.6"}}
    async with guarded_provider(fake_workers_ai(), "workers-ai", NEURONS_A_DAY, prices=prices) as guard:
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEY}"}) as http:
            _, body = await run(http, guard, {"prompt": "a purse", "steps": 4}, FLUX)
        assert body["result"]["image"]
        assert guard.fake.requests[0].json == {"prompt": "a purse", "steps": 4}  # no cap put where none is taken
        assert guard.settles[0].amounts == {"neurons": 172_800_000}
        assert guard.holds[0].options[0].amounts["neurons"] >= 172_800_000


async def test_where_nothing_is_reported_tokens_are_counted_or_the_grant_is_charged(
    guard: GuardedProvider, http: Any
) -> None:
    guard.fake.fault = Fault(usage="none")
    await run(http, guard, ASK)
    (settle,) = guard.settles
    assert (settle.estimated, settle.amounts) == (True, guard.holds[0].options[0].amounts)


async def test_a_native_stream_passes_and_is_settled(guard: GuardedProvider, http: Any) -> None:
    for fault in (Fault(), Fault(piece_bytes=1), Fault(piece_bytes=5, line_end="\r\n", comments=True)):
        guard.fake.fault = fault
        async with http.post(f"{guard.url}/run/{LLAMA}", json={**ASK, "stream": True}) as answer:
            lines = [line for line in (await answer.text()).splitlines() if line.startswith("data: ")]
        assert (len(lines), lines[-1]) == (12 + 2, "data: [DONE]")
    assert guard.meter() == (guard.fake.ledger.total, 0)
    assert not any(settle.estimated for settle in guard.settles)


async def test_a_client_that_leaves_ends_the_run_at_once(guard: GuardedProvider, http: Any) -> None:
    guard.fake.fault = Fault(pause_after=5)
    answer = await http.post(f"{guard.url}/run/{LLAMA}", json={**ASK, "stream": True})
    seen = await guard.fake.request()
    async with asyncio.timeout(30):
        await seen.paused.wait()
        answer.close()
        await seen.aborted.wait()
    (settle,) = await guard.settled()
    assert settle.estimated
    assert guard.fake.ledger.total <= settle.amounts["neurons"] <= guard.holds[0].options[0].amounts["neurons"]


async def test_a_model_that_ignores_the_cap_is_cut_and_ends_cleanly(guard: GuardedProvider, http: Any) -> None:
    guard.fake.fault, guard.fake.reply = Fault(ignores_cap=True), Reply(tokens=words(4_000))
    async with http.post(f"{guard.url}/run/{LLAMA}", json={**ASK, "max_tokens": 4, "stream": True}) as answer:
        lines = [line for line in (await answer.text()).splitlines() if line]
    assert lines[-1] == "data: [DONE]"
    assert '"usage"' in lines[-2]
    (settle,) = await guard.settled()
    assert settle.estimated


async def test_vectors_cost_what_goes_in(guard: GuardedProvider, http: Any) -> None:
    answer, body = await run(http, guard, {"text": ["a purse", "two"]}, BGE)
    assert (answer.status, body["result"]["shape"]) == (200, [2, 4])
    assert "x-purse-max-tokens" not in answer.headers
    assert guard.meter() == (guard.fake.ledger.total, 0)


async def test_a_call_without_a_cap_gets_the_operators(guard: GuardedProvider, http: Any) -> None:
    answer, _ = await run(http, guard, {"messages": CHAT["messages"]})
    assert answer.headers["x-purse-max-tokens"] == "4096"
    assert guard.fake.requests[0].json["max_tokens"] == 4096


@pytest.mark.parametrize(
    ("body", "query"),
    [
        ({"requests": [{"prompt": "x"}]}, {}),
        ({"prompt": "x", "queueRequest": True}, {}),
        ({"prompt": "x"}, {"queueRequest": "true"}),
        ({"text": "x", "target_lang": "fr"}, {}),
        ({"input": "x"}, {}),
    ],
)
async def test_what_has_no_bound_is_refused(guard: GuardedProvider, http: Any, body: Any, query: Any) -> None:
    answer, said = await run(http, guard, body, params=query)
    assert (answer.status, said["errors"][0]["metadata"]["reason"]) == (400, "cannot_bound")
    assert guard.fake.requests == []


async def test_a_name_leads_nowhere_else(guard: GuardedProvider, http: Any) -> None:
    for name in ("@cf/meta/..%2f..%2f..%2fanything", "@cf//x", "%2e%2e/%2e%2e/tokens", "@cf/meta/x%3Fy=1"):
        async with http.post(f"{guard.url}/run/{name}", json=ASK) as answer:
            assert answer.status in (400, 404), name
    assert guard.fake.requests == []


# --- in OpenAI's words ------------------------------------------------------------------------------------------------


async def test_it_serves_the_openai_client(guard: GuardedProvider) -> None:
    async with guard.openai() as client:
        plain = await client.chat.completions.create(**CHAT)
        assert plain.choices[0].message.content == guard.fake.reply.text
        chunks = [chunk async for chunk in await client.chat.completions.create(**CHAT, stream=True)]
        assert all(chunk.choices for chunk in chunks)  # who did not ask for the chunk with the usage does not get it
        await client.embeddings.create(model=BGE, input=["a purse"])
    assert guard.meter() == (guard.fake.ledger.total, 0)
    assert not any(settle.estimated for settle in guard.settles)
    assert guard.fake.requests[1].json["stream_options"] == {"include_usage": True}


async def test_a_chat_without_a_cap_gets_the_operators(guard: GuardedProvider) -> None:
    async with guard.openai() as client:
        await client.chat.completions.create(model=LLAMA, messages=CHAT["messages"])
    assert guard.fake.requests[0].json["max_tokens"] == 4096


# --- refusals ---------------------------------------------------------------------------------------------------------


async def test_a_refusal_has_cloudflares_shape_and_code() -> None:
    plan = Plan(budgets={"neurons": Budget("neurons", 100 * NEURON)})
    async with guarded_provider(fake_workers_ai(), "workers-ai", plan) as guard:
        await guard.desk.post(
            "/v1/adjustments",
            {"id": "a", "budget": "neurons", "period": "2026-11-30", "amount": "99.999", "reason": "r"},
        )
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEY}"}) as http:
            answer, body = await run(http, guard, ASK)
            assert (answer.status, answer.headers["x-should-retry"]) == (402, "false")
            assert (body["success"], body["result"], body["errors"][0]["code"]) == (False, None, 3036)
            assert body["errors"][0]["metadata"]["budget"] == "neurons"
            answer, body = await run(http, guard, {**ASK, "max_tokens": 100_000})
            assert (answer.status, body["errors"][0]["metadata"]["reason"]) == (400, "never")
            answer, body = await run(http, guard, ASK, "@cf/meta/never-priced")
            assert (answer.status, body["errors"][0]["metadata"]["reason"]) == (400, "model_not_priced")
            answer, body = await run(http, guard, ASK, headers={"Authorization": "Bearer no"})
            assert (answer.status, body["errors"][0]["code"]) == (401, 10000)
            async with http.post(f"{guard.url}/ai/anything") as other:
                assert (other.status, (await other.json())["errors"][0]["code"]) == (404, 7003)
        async with guard.openai() as client:
            with pytest.raises(openai.APIStatusError) as caught:
                await client.chat.completions.create(**CHAT)
            assert caught.value.status_code == 402
        assert guard.fake.requests == []


# --- the allocation ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [3036, 4006])
async def test_k6_the_end_of_the_daily_allocation_is_observed_and_costs_nothing(code: int, http: Any) -> None:
    async with guarded_provider(fake_workers_ai(allocation=1), "workers-ai", NEURONS_A_DAY) as guard:
        guard.fake.spent_code = code
        assert (await run(http, guard, ASK))[0].status == 200
        answer, body = await run(http, guard, ASK)
        assert (answer.status, body["errors"][0]["code"]) == (429, code)
        assert guard.settles[1].release
        assert [(seen.budget, seen.figure, seen.source) for seen in guard.observed] == [
            ("neurons", 10_000 * NEURON, "cloudflare")
        ]
        answer, body = await run(http, guard, ASK)  # and nobody asks the provider again before the day ends
        assert (answer.status, body["errors"][0]["code"]) == (402, 3036)
        assert len(guard.fake.requests) == 2


async def test_k6_the_same_in_openais_words() -> None:
    async with guarded_provider(fake_workers_ai(allocation=0), "workers-ai", NEURONS_A_DAY) as guard:
        async with guard.openai(max_retries=0) as client:
            with pytest.raises(openai.RateLimitError):
                await client.chat.completions.create(**CHAT)
            with pytest.raises(openai.APIStatusError) as caught:
                await client.chat.completions.create(**CHAT)
        assert (caught.value.status_code, len(guard.fake.requests), len(guard.observed)) == (402, 1, 1)


async def test_another_429_is_not_taken_for_the_end_of_the_allocation(guard: GuardedProvider, http: Any) -> None:
    guard.fake.fault = Fault(status=429, error_code=3040)
    assert (await run(http, guard, ASK))[0].status == 429
    assert (guard.observed, guard.meter()) == ([], (0, 0))


async def test_dollars_are_counted_beside_neurons() -> None:
    plan = Plan(budgets={**NEURONS_A_DAY.budgets, **DOLLAR_A_DAY.budgets})
    async with guarded_provider(fake_workers_ai(), "workers-ai", plan) as guard:
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEY}"}) as http:
            await run(http, guard, ASK)
        neurons, dollars = guard.settles[0].amounts["neurons"], guard.settles[0].amounts["usd"]
        assert dollars == -(-neurons * 11 // 1000)  # 11 dollars for a million neurons


# --- figures ----------------------------------------------------------------------------------------------------------


def test_neurons_are_read_exactly_and_rounded_up() -> None:
    assert neurons_of({}, {"cf-ai-neurons": "172.8"}) == 172_800_000
    assert neurons_of({}, {"cf-ai-neurons": "0.0000001"}) == 1
    assert neurons_of({}, {"cf-ai-neurons": "0.00"}) == 0
    assert neurons_of({"neurons": 3}, {"cf-ai-neurons": "2"}) == 3_000_000


@pytest.mark.parametrize("said", ["", "NaN", "inf", "-1", "1e400", "1e999999999", "many", "0x10", None, True, [], {}])
def test_what_is_no_figure_is_not_believed(said: Any) -> None:
    assert neurons_of({"neurons": said}, {"cf-ai-neurons": str(said)}) is None


def test_a_trace_of_a_neuron_is_its_smallest_part() -> None:
    assert neurons_of(None, {"cf-ai-neurons": "1e-999999999"}) == 1
    assert neurons_of(None, {"cf-ai-neurons": "1e9"}) == 10**15
