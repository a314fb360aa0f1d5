"""The fake OpenAI satisfies the official SDK, bills what it made, and goes wrong where it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import openai
import pytest
import pytest_asyncio
from providers.fake_openai import FakeOpenAI, fake_openai
from providers.faults import Fault, rate_limited
from providers.ledger import Used
from providers.production import Reply, words

ASK: dict[str, Any] = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "what is a purse"}]}
PROMPT = 4 + 1 + 3 + 3  # words, the role's own, the message, the answer's head
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}


@pytest_asyncio.fixture(loop_scope="session")
async def fake() -> AsyncIterator[FakeOpenAI]:
    async with fake_openai() as provider:
        yield provider


@pytest_asyncio.fixture(loop_scope="session")
async def client(fake: FakeOpenAI) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{fake.url}/v1", api_key=fake.key, max_retries=0) as sdk:
        yield sdk


async def streamed(client: openai.AsyncOpenAI, **more: Any) -> list[Any]:
    return [chunk async for chunk in await client.chat.completions.create(**ASK, stream=True, **more)]


def text_of(chunks: list[Any]) -> str:
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


# --- what it says -----------------------------------------------------------------------------------------------------


async def test_a_plain_answer_says_what_it_used_and_is_billed_for_it(fake: FakeOpenAI, client: Any) -> None:
    answer = await client.chat.completions.create(**ASK)
    assert answer.choices[0].message.content == fake.reply.text
    assert (answer.choices[0].finish_reason, answer.usage.total_tokens) == ("stop", PROMPT + 12)
    (line,) = fake.ledger.lines
    assert line.used == Used(input=PROMPT, output=12)
    assert line.amount == PROMPT * 150 + 12 * 600  # nano-dollars


async def test_a_stream_says_what_it_used_only_when_asked(client: Any) -> None:
    asked = await streamed(client, stream_options={"include_usage": True})
    assert (asked[-1].choices, asked[-1].usage.completion_tokens) == ([], 12)
    assert [chunk.usage for chunk in asked[:-1]] == [None] * (len(asked) - 1)
    assert [chunk.usage for chunk in await streamed(client)] == [None] * (len(asked) - 1)


async def test_it_stops_at_the_cap(fake: FakeOpenAI, client: Any) -> None:
    answer = await client.chat.completions.create(**ASK, max_tokens=5)
    assert answer.choices[0].message.content == "".join(words(5))
    assert (answer.choices[0].finish_reason, answer.usage.completion_tokens) == ("length", 5)
    chunks = await streamed(client, max_completion_tokens=5)
    assert (text_of(chunks), chunks[-1].choices[0].finish_reason) == ("".join(words(5)), "length")


async def test_reasoning_counts_against_the_cap_and_as_output(fake: FakeOpenAI, client: Any) -> None:
    fake.reply = Reply(reasoning=4)
    answer = await client.chat.completions.create(**{**ASK, "model": "o4-mini"}, max_completion_tokens=6)
    assert answer.usage.completion_tokens == 6
    assert answer.usage.completion_tokens_details.reasoning_tokens == 4
    assert answer.choices[0].message.content == "".join(words(2))


async def test_every_choice_is_made_and_billed(fake: FakeOpenAI, client: Any) -> None:
    answer = await client.chat.completions.create(**ASK, n=3, max_tokens=2)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert fake.ledger.lines[0].used.output == 6


async def test_a_cached_prompt_is_part_of_the_prompt_and_cheaper(fake: FakeOpenAI, client: Any) -> None:
    fake.reply = Reply(cache_read=8)
    answer = await client.chat.completions.create(**ASK)
    assert (answer.usage.prompt_tokens, answer.usage.prompt_tokens_details.cached_tokens) == (PROMPT, 8)
    assert fake.ledger.total == (PROMPT - 8) * 150 + 8 * 75 + 12 * 600


async def test_it_calls_a_tool(client: Any) -> None:
    answer = await client.chat.completions.create(**ASK, tools=[TOOL])
    assert answer.choices[0].finish_reason == "tool_calls"
    assert answer.choices[0].message.tool_calls[0].function.arguments == '{"city": "Zürich"}'
    async with client.chat.completions.stream(**ASK, tools=[TOOL]) as stream:
        final = await stream.get_final_completion()
    assert final.choices[0].message.tool_calls[0].function.name == "weather"


async def test_responses_are_made_plain_and_streamed(fake: FakeOpenAI, client: Any) -> None:
    plain = await client.responses.create(model="gpt-4o-mini", input="what is a purse")
    assert (plain.output_text, plain.usage.output_tokens, plain.status) == (fake.reply.text, 12, "completed")
    async with client.responses.stream(model="gpt-4o-mini", input="what is a purse") as stream:
        kinds = [event.type async for event in stream]
        final = await stream.get_final_response()
    assert (final.output_text, kinds[0], kinds[-1]) == (fake.reply.text, "response.created", "response.completed")
    assert final.usage == plain.usage


async def test_a_response_cut_at_its_cap_is_incomplete(fake: FakeOpenAI, client: Any) -> None:
    fake.reply = Reply(tokens=words(40))
    answer = await client.responses.create(model="gpt-4o-mini", input="hi", max_output_tokens=16)
    assert (answer.status, answer.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    tool = {"type": "function", "name": "weather", "parameters": {"type": "object"}, "strict": False}
    answer = await client.responses.create(model="gpt-4o-mini", input="hi", tools=[tool])
    assert answer.output[0].arguments == '{"city": "Zürich"}'


async def test_embeddings_and_models(fake: FakeOpenAI, client: Any) -> None:
    answer = await client.embeddings.create(model="text-embedding-3-small", input=["a purse", "two"])
    assert (len(answer.data), answer.usage.total_tokens) == (2, 3)
    assert fake.ledger.total == 3 * 20
    assert "gpt-4o-mini" in [model.id async for model in client.models.list()]


# --- what it refuses --------------------------------------------------------------------------------------------------


async def test_it_refuses_what_the_real_one_refuses(fake: FakeOpenAI, client: Any) -> None:
    with pytest.raises(openai.BadRequestError, match="not supported with this model"):
        await client.chat.completions.create(**{**ASK, "model": "o4-mini"}, max_tokens=5)
    with pytest.raises(openai.BadRequestError, match="cannot both be set"):
        await client.chat.completions.create(**ASK, max_tokens=5, max_completion_tokens=5)
    with pytest.raises(openai.BadRequestError, match="only allowed when 'stream'"):
        await client.chat.completions.create(**ASK, stream_options={"include_usage": True})
    with pytest.raises(openai.NotFoundError):
        await client.chat.completions.create(**{**ASK, "model": "gpt-none"})
    with pytest.raises(openai.AuthenticationError):
        await client.with_options(api_key="someone-elses").chat.completions.create(**ASK)
    assert fake.ledger.lines == []


async def test_a_429_is_tried_again_and_free(fake: FakeOpenAI, client: Any) -> None:
    fake.next_faults.append(rate_limited("0"))
    await client.with_options(max_retries=1).chat.completions.create(**ASK)
    assert (len(fake.requests), len(fake.ledger.lines)) == (2, 1)


async def test_a_server_error_is_free(fake: FakeOpenAI, client: Any) -> None:
    fake.fault = Fault(status=503)
    with pytest.raises(openai.InternalServerError):
        await client.chat.completions.create(**ASK)
    assert fake.ledger.lines == []


async def test_it_remembers_what_it_was_sent(fake: FakeOpenAI, client: Any) -> None:
    await client.chat.completions.create(**ASK, extra_headers={"x-mine": "7"}, extra_body={"unheard_of": {"a": [1]}})
    seen = await fake.request()
    assert (seen.method, seen.path, seen.headers["X-Mine"]) == ("POST", "/v1/chat/completions", "7")
    assert seen.json["unheard_of"] == {"a": [1]}


# --- what goes wrong --------------------------------------------------------------------------------------------------


async def test_an_error_in_mid_stream_is_billed_up_to_there(fake: FakeOpenAI, client: Any) -> None:
    fake.fault = Fault(error_after=3)
    with pytest.raises(openai.APIError):
        await streamed(client)
    fake.fault = Fault(error_after=3, error_style="chunk")
    with pytest.raises(openai.APIError):
        await streamed(client)
    assert [(line.used.output, line.ended) for line in fake.ledger.lines] == [(3, "failed")] * 2


async def test_an_error_before_the_first_token_is_free(fake: FakeOpenAI, client: Any) -> None:
    fake.fault = Fault(error_after=0)
    with pytest.raises(openai.APIError):
        await streamed(client)
    assert fake.ledger.lines == []


async def test_a_connection_reset_in_mid_stream_is_billed_up_to_there(fake: FakeOpenAI, client: Any) -> None:
    fake.fault = Fault(reset_after=3)
    with pytest.raises(openai.APIConnectionError):
        await streamed(client)
    assert [(line.used.output, line.ended) for line in fake.ledger.lines] == [(3, "failed")]
    assert not fake.requests[0].aborted.is_set()  # the provider left, not the client


async def test_a_client_that_leaves_is_noticed_and_pays_what_was_made(fake: FakeOpenAI, client: Any) -> None:
    fake.fault = Fault(pause_after=3)
    stream = await client.chat.completions.create(**ASK, stream=True)
    seen = await fake.request()
    async with asyncio.timeout(30):
        await seen.paused.wait()
        await stream.close()
        await seen.aborted.wait()
        await seen.ended.wait()
    assert [(line.used.output, line.ended) for line in fake.ledger.lines] == [(3, "aborted")]


async def test_a_pause_ends_when_the_test_says_so(fake: FakeOpenAI, client: Any) -> None:
    fake.fault = Fault(pause_before_answer=True)
    asking = asyncio.create_task(client.chat.completions.create(**ASK))
    async with asyncio.timeout(30):
        await (await fake.request()).paused.wait()
        assert not asking.done()
        fake.go.set()
        await asking
    assert not fake.requests[0].aborted.is_set()


@pytest.mark.parametrize(
    "fault",
    [
        Fault(piece_bytes=1),
        Fault(piece_bytes=7, line_end="\r\n", comments=True),
        Fault(one_piece=True),
        Fault(gzip=True),
        Fault(gzip=True, piece_bytes=3),
        Fault(padding_bytes=200_000),
    ],
    ids=["bytes", "odd-lines", "one-piece", "gzip", "gzip-in-pieces", "huge"],
)
async def test_however_the_bytes_come_the_sdk_reads_the_same(fake: FakeOpenAI, client: Any, fault: Fault) -> None:
    fake.fault = fault
    assert text_of(await streamed(client)) == fake.reply.text
    answer = await client.chat.completions.create(**ASK)
    assert answer.choices[0].message.content == fake.reply.text


async def test_usage_can_be_missing_null_zero_or_elsewhere(fake: FakeOpenAI, client: Any) -> None:
    asked = {"include_usage": True}
    fake.fault = Fault(usage="none")
    assert all(chunk.usage is None for chunk in await streamed(client, stream_options=asked))
    fake.fault = Fault(usage="null")
    chunks = await streamed(client, stream_options=asked)
    assert (chunks[-1].choices, chunks[-1].usage) == ([], None)
    fake.fault = Fault(usage="zeros")
    assert (await streamed(client, stream_options=asked))[-1].usage.total_tokens == 0
    fake.fault = Fault(usage="last_choice")
    assert (await streamed(client))[-1].usage.completion_tokens == 12
    fake.fault = Fault(usage="every_chunk")
    assert [chunk.usage.completion_tokens for chunk in await streamed(client)] == [0, *range(1, 13), 12]
    fake.fault = Fault(usage="x_groq")
    assert (await streamed(client))[-1].model_extra["x_groq"]["usage"]["completion_tokens"] == 12
    assert [line.used.output for line in fake.ledger.lines] == [12] * 6  # the bill is what was made


async def test_it_can_make_more_than_its_cap_and_bills_it(fake: FakeOpenAI, client: Any) -> None:
    fake.fault = Fault(extra_output=1000)
    answer = await client.chat.completions.create(**ASK, max_tokens=5)
    assert (answer.usage.completion_tokens, fake.ledger.lines[0].used.output) == (1005, 1005)


async def test_it_can_send_a_client_elsewhere_or_say_something_else(fake: FakeOpenAI) -> None:
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {fake.key}"}) as http:
        fake.fault = Fault(redirect_to="http://192.0.2.1/v1/chat/completions")
        async with http.post(f"{fake.url}/v1/chat/completions", json=ASK, allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (307, "http://192.0.2.1/v1/chat/completions")
        fake.fault = Fault(content_type="text/html", body=b"<html>")
        async with http.post(f"{fake.url}/v1/chat/completions", json=ASK) as answer:
            assert (answer.content_type, await answer.read()) == ("text/html", b"<html>")
        fake.fault = Fault(reset_before_answer=True)
        with pytest.raises(aiohttp.ClientConnectionError):
            await http.post(f"{fake.url}/v1/chat/completions", json=ASK)
        fake.fault = Fault(end_after=2, garbage_after=1)
        async with http.post(f"{fake.url}/v1/chat/completions", json={**ASK, "stream": True}) as answer:
            lines = (await answer.text()).splitlines()
        assert 'data: {"id": "chatcmpl-' in lines
        assert "data: [DONE]" not in lines
