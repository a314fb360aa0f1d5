"""The fake Workers AI speaks its native shape and OpenAI's, says its neurons, and runs out of them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import openai
import pytest
import pytest_asyncio
from providers.fake_workers_ai import BGE, FLUX, LLAMA, FakeWorkersAI, fake_workers_ai
from providers.faults import Fault
from providers.ledger import Used

PROMPT = 4 + 3
NEURONS = PROMPT * 25_608 + 12 * 75_147
ASK = {"prompt": "what is a purse"}


@pytest_asyncio.fixture(loop_scope="session")
async def fake() -> AsyncIterator[FakeWorkersAI]:
    async with fake_workers_ai() as provider:
        yield provider


@pytest_asyncio.fixture(loop_scope="session")
async def http(fake: FakeWorkersAI) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {fake.key}"}) as session:
        yield session


async def run(http: Any, fake: FakeWorkersAI, body: dict[str, Any], model: str = LLAMA) -> tuple[int, Any, Any]:
    async with http.post(f"{fake.base_url}/run/{model}", json=body) as answer:
        return answer.status, answer.headers, await answer.json()


async def test_a_native_answer_says_its_neurons_in_header_and_body(fake: FakeWorkersAI, http: Any) -> None:
    status, headers, body = await run(http, fake, ASK)
    assert (status, body["success"], body["result"]["response"]) == (200, True, fake.reply.text)
    assert headers["cf-ai-neurons"] == "1.08102"
    assert body["result"]["usage"]["neurons"] == 1.08102
    assert fake.ledger.lines[0].used == Used(input=PROMPT, output=12)
    assert fake.ledger.total == NEURONS == 1_081_020


async def test_it_stops_at_its_own_cap_of_256(fake: FakeWorkersAI, http: Any) -> None:
    fake.reply = type(fake.reply)(tokens=("so ",) * 300)
    await run(http, fake, ASK)
    await run(http, fake, {**ASK, "max_tokens": 5})
    assert [line.used.output for line in fake.ledger.lines] == [256, 5]


async def test_a_native_stream_ends_with_its_usage(fake: FakeWorkersAI, http: Any) -> None:
    async with http.post(f"{fake.base_url}/run/{LLAMA}", json={**ASK, "stream": True}) as answer:
        lines = [line.removeprefix("data: ") for line in (await answer.text()).splitlines() if line]
    assert lines[-1] == "[DONE]"
    chunks = [json.loads(line) for line in lines[:-1]]
    assert "".join(chunk["response"] for chunk in chunks) == fake.reply.text
    assert chunks[-1]["usage"]["neurons"] == 1.08102


async def test_vectors_and_pictures_have_their_price_in_the_header(fake: FakeWorkersAI, http: Any) -> None:
    _, headers, body = await run(http, fake, {"text": ["a purse", "two"]}, BGE)
    assert (body["result"]["shape"], headers["cf-ai-neurons"]) == ([2, 4], "0.018174")
    _, headers, body = await run(http, fake, {"prompt": "a purse"}, FLUX)
    assert (headers["cf-ai-neurons"], bool(body["result"]["image"])) == ("172.8", True)


async def test_it_speaks_openai_too(fake: FakeWorkersAI) -> None:
    async with openai.AsyncOpenAI(base_url=f"{fake.base_url}/v1", api_key=fake.key, max_retries=0) as client:
        messages: list[Any] = [{"role": "user", "content": "what is a purse"}]
        answer = await client.chat.completions.create(model=LLAMA, messages=messages)
        assert (answer.choices[0].message.content, answer.usage.completion_tokens) == (fake.reply.text, 12)
        assert answer.usage.model_extra["neurons"] * 1_000_000 == pytest.approx(fake.ledger.total)
        await client.embeddings.create(model=BGE, input="a purse")
        assert fake.ledger.lines[-1].amount == 2 * 6_058


async def test_the_daily_allocation_ends_with_3036_and_costs_nothing_more(fake: FakeWorkersAI, http: Any) -> None:
    fake.allocation = NEURONS
    assert (await run(http, fake, ASK))[0] == 200
    status, _, body = await run(http, fake, ASK)
    assert (status, body["success"], body["errors"][0]["code"]) == (429, False, 3036)
    fake.spent_code = 4006
    async with http.post(f"{fake.base_url}/v1/chat/completions", json={"model": LLAMA, "messages": []}) as answer:
        assert (await answer.json())["errors"][0]["code"] == 4006
    assert len(fake.ledger.lines) == 1


async def test_where_the_neurons_stand_can_be_chosen(fake: FakeWorkersAI, http: Any) -> None:
    fake.fault = Fault(usage="header")
    _, headers, body = await run(http, fake, ASK)
    assert ("cf-ai-neurons" in headers, "neurons" in body["result"]["usage"]) == (True, False)
    fake.fault = Fault(usage="body")
    _, headers, body = await run(http, fake, ASK)
    assert ("cf-ai-neurons" in headers, "neurons" in body["result"]["usage"]) == (False, True)
    fake.fault = Fault(usage="none")
    _, headers, body = await run(http, fake, ASK)
    assert ("cf-ai-neurons" in headers, "usage" in body["result"]) == (False, False)


async def test_it_refuses_in_cloudflares_shape(fake: FakeWorkersAI, http: Any) -> None:
    assert (await run(http, fake, ASK, "@cf/none"))[2]["errors"][0]["code"] == 5007
    assert (await run(http, fake, {}))[0] == 400
    async with http.post(f"{fake.base_url}/run/{LLAMA}", json=ASK, headers={"Authorization": "Bearer no"}) as answer:
        assert (answer.status, (await answer.json())["errors"][0]["code"]) == (401, 10000)
    assert fake.ledger.lines == []
