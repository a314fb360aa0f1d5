"""The fake Anthropic satisfies the official SDK, bills what it made, and goes wrong where it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import anthropic
import httpx2
import pytest
import pytest_asyncio
from providers.fake_anthropic import FakeAnthropic, fake_anthropic, prompt_tokens
from providers.faults import Fault
from providers.ledger import Used
from providers.production import Reply, words

ASK: dict[str, Any] = {
    "model": "claude-haiku-4-5",
    "max_tokens": 1000,
    "messages": [{"role": "user", "content": "What is a purse?"}],
}
PROMPT = 6 + 4  # 16 bytes of text, and the message
TOOL = {"name": "weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}
THINKING = {"type": "enabled", "budget_tokens": 1024}


@pytest_asyncio.fixture(loop_scope="session")
async def fake() -> AsyncIterator[FakeAnthropic]:
    async with fake_anthropic() as provider:
        yield provider


@pytest_asyncio.fixture(loop_scope="session")
async def client(fake: FakeAnthropic) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(base_url=fake.url, api_key=fake.key, max_retries=0) as sdk:
        yield sdk


async def final(client: anthropic.AsyncAnthropic, **more: Any) -> Any:
    async with client.messages.stream(**{**ASK, **more}) as stream:
        return await stream.get_final_message()


# --- what it says -----------------------------------------------------------------------------------------------------


async def test_a_plain_message_says_what_it_used_and_is_billed_for_it(fake: FakeAnthropic, client: Any) -> None:
    message = await client.messages.create(**ASK)
    assert (message.content[0].text, message.stop_reason) == (fake.reply.text, "end_turn")
    assert (message.usage.input_tokens, message.usage.output_tokens) == (PROMPT, 12)
    assert fake.ledger.lines[0].used == Used(input=PROMPT, output=12)
    assert fake.ledger.total == PROMPT * 1000 + 12 * 5000  # nano-dollars


async def test_a_stream_adds_up_to_the_same_message(fake: FakeAnthropic, client: Any) -> None:
    message = await final(client)
    assert (message.content[0].text, message.stop_reason) == (fake.reply.text, "end_turn")
    assert (message.usage.input_tokens, message.usage.output_tokens) == (PROMPT, 12)


async def test_input_leaves_out_what_was_cached(fake: FakeAnthropic, client: Any) -> None:
    fake.reply = Reply(cache_read=3, cache_write=2, cache_write_1h=1)
    for message in (await client.messages.create(**ASK), await final(client)):
        usage = message.usage
        assert (usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens) == (4, 3, 3)
        assert usage.cache_creation.ephemeral_1h_input_tokens == 1
    assert fake.ledger.total == 2 * (4 * 1000 + 3 * 100 + 2 * 1250 + 1 * 2000 + 12 * 5000)


async def test_it_stops_at_max_tokens(client: Any) -> None:
    for message in (await client.messages.create(**{**ASK, "max_tokens": 5}), await final(client, max_tokens=5)):
        assert (message.content[0].text, message.stop_reason) == ("".join(words(5)), "max_tokens")
        assert message.usage.output_tokens == 5


async def test_thinking_is_output_and_counts_against_the_cap(fake: FakeAnthropic, client: Any) -> None:
    fake.reply = Reply(reasoning=1030)
    message = await final(client, max_tokens=1033, thinking=THINKING)
    assert [block.type for block in message.content] == ["thinking", "text"]
    assert (message.content[1].text, message.usage.output_tokens) == ("".join(words(3)), 1033)
    assert message.usage.output_tokens_details.thinking_tokens == 1030


async def test_it_uses_a_tool(client: Any) -> None:
    for message in (await client.messages.create(**ASK, tools=[TOOL]), await final(client, tools=[TOOL])):
        (block,) = message.content
        assert (message.stop_reason, block.name, block.input) == ("tool_use", "weather", {"city": "Zürich"})


async def test_web_searches_are_billed_beside_the_tokens(fake: FakeAnthropic, client: Any) -> None:
    fake.reply = Reply(web_searches=2)
    message = await final(client, tools=[{"type": "web_search_20250305", "name": "web_search"}])
    assert message.usage.server_tool_use.web_search_requests == 2
    assert fake.ledger.total > 2 * 10_000_000


async def test_counting_tokens_is_free_and_says_what_a_message_uses(fake: FakeAnthropic, client: Any) -> None:
    counted = await client.messages.count_tokens(model=ASK["model"], messages=ASK["messages"])
    assert counted.input_tokens == PROMPT == prompt_tokens(ASK)
    assert "claude-haiku-4-5" in [model.id async for model in client.models.list()]
    assert fake.ledger.lines == []


# --- what it refuses --------------------------------------------------------------------------------------------------


async def test_it_refuses_what_the_real_one_refuses(fake: FakeAnthropic, client: Any) -> None:
    with pytest.raises(anthropic.BadRequestError, match="must be greater than `thinking"):
        await client.messages.create(**{**ASK, "max_tokens": 1024}, thinking=THINKING)
    with pytest.raises(anthropic.BadRequestError, match="at least 1024"):
        await client.messages.create(**ASK, thinking={"type": "enabled", "budget_tokens": 5})
    with pytest.raises(anthropic.NotFoundError):
        await client.messages.create(**{**ASK, "model": "claude-none"})
    with pytest.raises(anthropic.AuthenticationError):
        await client.with_options(api_key="someone-elses").messages.create(**ASK)
    async with aiohttp.ClientSession(headers={"x-api-key": fake.key}) as http:
        async with http.post(f"{fake.url}/v1/messages", json=ASK) as answer:
            assert (answer.status, (await answer.json())["error"]["type"]) == (400, "invalid_request_error")
        headers = {"anthropic-version": "2023-06-01"}
        async with http.post(f"{fake.url}/v1/messages", json={**ASK, "max_tokens": None}, headers=headers) as answer:
            assert "max_tokens" in (await answer.json())["error"]["message"]
    assert fake.ledger.lines == []


async def test_a_refusal_says_its_cause(fake: FakeAnthropic, client: Any) -> None:
    fake.fault = Fault(status=429, error_code="enforced_spend_limit_reached")
    with pytest.raises(anthropic.RateLimitError) as caught:
        await client.messages.create(**ASK)
    assert caught.value.error_code == "enforced_spend_limit_reached"
    fake.fault = Fault(status=529)
    with pytest.raises(anthropic.OverloadedError):
        await client.messages.create(**ASK)


# --- what goes wrong --------------------------------------------------------------------------------------------------


async def test_an_error_in_mid_stream_is_billed_up_to_there(fake: FakeAnthropic, client: Any) -> None:
    fake.fault = Fault(error_after=3, error_type="overloaded_error", message="Overloaded")
    with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
        await final(client)
    fake.fault = Fault(reset_after=2)
    with pytest.raises(httpx2.RemoteProtocolError):
        await final(client)
    assert [(line.used.output, line.ended) for line in fake.ledger.lines] == [(3, "failed"), (2, "failed")]


async def test_a_client_that_leaves_is_noticed_and_pays_what_was_made(fake: FakeAnthropic, client: Any) -> None:
    fake.fault = Fault(pause_after=3)
    stream = await client.messages.create(**ASK, stream=True)
    seen = await fake.request()
    async with asyncio.timeout(30):
        await seen.paused.wait()
        await stream.close()
        await seen.aborted.wait()
        await seen.ended.wait()
    assert [(line.used.output, line.ended) for line in fake.ledger.lines] == [(3, "aborted")]


@pytest.mark.parametrize(
    "fault",
    [
        Fault(piece_bytes=1),
        Fault(piece_bytes=7, line_end="\r\n", comments=True),
        Fault(one_piece=True),
        Fault(gzip=True),
    ],
    ids=["bytes", "odd-lines", "one-piece", "gzip"],
)
async def test_however_the_bytes_come_the_sdk_reads_the_same(fake: FakeAnthropic, client: Any, fault: Fault) -> None:
    fake.fault = fault
    assert (await final(client)).content[0].text == fake.reply.text
    assert (await client.messages.create(**ASK)).content[0].text == fake.reply.text


async def events(fake: FakeAnthropic, client: Any, fault: Fault) -> list[Any]:
    fake.fault = fault
    return [event async for event in await client.messages.create(**ASK, stream=True)]


async def test_usage_stands_in_the_places_it_is_told_to(fake: FakeAnthropic, client: Any) -> None:
    def said(found: list[Any]) -> list[Any]:
        return [event.usage for event in found if event.type == "message_delta"]

    plain = await events(fake, client, Fault())
    assert (plain[0].message.usage.input_tokens, said(plain)[0].output_tokens) == (PROMPT, 12)
    assert said(plain)[0].input_tokens is None
    late = await events(fake, client, Fault(usage="delta_only"))
    assert (late[0].message.usage.input_tokens, said(late)[0].input_tokens) == (0, PROMPT)
    twice = await events(fake, client, Fault(usage="cumulative"))
    assert [(usage.input_tokens, usage.output_tokens) for usage in said(twice)] == [(PROMPT, 12)] * 2
    early = await events(fake, client, Fault(usage="start_only"))
    assert (early[0].message.usage.input_tokens, said(early)[0]) == (PROMPT, None)
    none = await events(fake, client, Fault(usage="none"))
    assert (none[0].message.usage, said(none)) == (None, [None])
    zeros = await events(fake, client, Fault(usage="zeros"))
    assert (zeros[0].message.usage.output_tokens, said(zeros)[0].output_tokens) == (0, 0)
    assert [line.used.output for line in fake.ledger.lines] == [12] * 6
