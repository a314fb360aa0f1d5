"""K: how refusals are read by clients. Here by the newest client of OpenAI, unchanged, counting its requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import openai
import pytest
from desk_client import DOLLAR, KEY
from guarded import CHAT, MESSAGES, NOTHING, OverOpenAI, over_openai, scripted
from integration.rig import WITHIN_S

from engine.core.messages import Cooling, Exhausted, Freeze, Hold, Late, Option, Revoke, Settle
from engine.core.plan import Budget, Plan
from engine.errors import NoAnswer, StreamRefused

CENT = DOLLAR // 100
ONE_CENT = Plan(
    budgets={"day": Budget("usd", CENT, note="Ask Kim for more", link="https://example.org/more", public="amounts")}
)
CALL: Mapping[str, Any] = {"model": "gpt-4o", "messages": MESSAGES, "max_tokens": 500}
"""Holds about half a cent."""


class Client:
    """The stock client with all its retries, and how many requests it has made."""

    def __init__(self, sdk: openai.AsyncOpenAI, guard: OverOpenAI) -> None:
        self.sdk, self.guard = sdk, guard
        self.requests = 0

    async def refused(self, **call: Any) -> openai.APIStatusError:
        before = self.requests
        with pytest.raises(openai.APIStatusError) as caught:
            await self.sdk.chat.completions.create(**{**CALL, **call})
        self.tries = self.requests - before
        return caught.value


@asynccontextmanager
async def client_of(plan: Plan = ONE_CENT, *, key: str = KEY, **more: Any) -> AsyncIterator[Client]:
    async with over_openai(plan, **more) as guard:
        url = str(guard.desk.client.make_url("/openai/v1"))
        http = openai.DefaultAsyncHttpxClient()
        async with openai.AsyncOpenAI(base_url=url, api_key=key, http_client=http) as sdk:
            client = Client(sdk, guard)

            async def count(_: object) -> None:
                client.requests += 1

            http.event_hooks = {"request": [count], "response": []}
            yield client


async def spend(guard: OverOpenAI, amount: int) -> None:
    """Somebody else's call of today that cost so much."""
    await guard.purse.ask(Hold("theirs", [Option({"usd": amount})], by=guard.purse.by(5), labels={}))
    await guard.purse.ask(Settle("theirs", {"usd": amount}))


async def hold(guard: OverOpenAI, amount: int) -> None:
    """Somebody else's call that is still running."""
    await guard.purse.ask(Hold("theirs", [Option({"usd": amount})], by=guard.purse.by(5), labels={}))


# --- a budget's no ----------------------------------------------------------------------------------------------------


async def test_k1_k7_a_budget_that_is_used_up_is_one_request_and_no_retry() -> None:
    async with client_of() as client:
        await spend(client.guard, CENT - 100)
        refused = await client.refused()
        assert client.tries == 1
        assert refused.status_code == 402
        assert refused.response.headers["x-should-retry"] == "false"
        assert "retry-after" not in refused.response.headers
        assert client.guard.fake.requests == []


async def test_k2_the_refusal_has_a_type_of_its_own() -> None:
    async with client_of() as client:
        await spend(client.guard, CENT)
        refused = await client.refused()
        assert (refused.type, refused.code) == ("insufficient_quota", "insufficient_quota")


async def test_k4_the_refusal_says_which_budget_how_much_and_until_when() -> None:
    async with client_of() as client:
        await spend(client.guard, CENT - 2_000_000)
        refused = await client.refused()
        body: Any = refused.body
        metadata = body["metadata"]
        assert metadata.pop("hold")
        fits = metadata.pop("affordable_max_tokens")
        assert body["message"] == (
            "Today's shared budget has 0.002 usd left, not enough for this call. "
            f"It resets at 00:00 UTC (in 9 h 55 min). Try max_tokens <= {fits}."
        )
        assert body["param"] is None
        assert metadata == {
            "wallet": "main", "reason": "spent", "budget": "day", "used_pct": 80.0, "held_pct": 0.0,
            "resets_at": "2026-12-01T00:00:00.000Z", "note": "Ask Kim for more",
            "link": "https://example.org/more",
        }  # fmt: skip
        assert (await client.refused(max_tokens=fits + 1)).status_code == 402
        heard = await client.sdk.chat.completions.create(**{**CALL, "max_tokens": fits})
        assert heard.usage is not None, "what it says would fit fits"


async def test_k1_a_budget_that_others_hold_may_be_tried_again_soon() -> None:
    async with client_of() as client:
        await hold(client.guard, CENT - 100)
        client.sdk = client.sdk.with_options(max_retries=0)
        refused = await client.refused()
        assert (refused.status_code, refused.code) == (429, "rate_limit_exceeded")
        assert 1 <= int(refused.response.headers["retry-after"]) <= 30
        assert "x-should-retry" not in refused.response.headers


async def test_b13_a_call_larger_than_the_budget_is_told_what_would_fit() -> None:
    async with client_of() as client:
        refused = await client.refused(max_tokens=5_000)
        assert (client.tries, refused.status_code, refused.code) == (1, 400, "call_exceeds_budget")
        body: Any = refused.body
        fits = body["metadata"]["affordable_max_tokens"]
        assert str(body["message"]).endswith(f"Try max_tokens <= {fits}.")
        assert (await client.sdk.chat.completions.create(**{**CALL, "max_tokens": fits})).usage is not None
        refused = await client.refused(max_tokens=fits + 1)
        assert refused.status_code == 400 or refused.status_code == 402


async def test_the_status_of_a_used_up_budget_is_the_operators_and_never_retried() -> None:
    for status in (402, 403, 429):
        async with client_of(refusal_status=status) as client:
            await spend(client.guard, CENT)
            refused = await client.refused()
            assert (client.tries, refused.status_code, refused.code) == (1, status, "insufficient_quota")


# --- every other no ---------------------------------------------------------------------------------------------------


async def freeze(guard: OverOpenAI) -> None:
    await guard.purse.ask(Freeze("f", "all", "a bill to look at"))


async def revoke(guard: OverOpenAI) -> None:
    await guard.purse.ask(Revoke("r", "model", "gpt-4o", "too dear"))


async def nobody(guard: OverOpenAI) -> None:
    guard.purse.error = NoAnswer("nobody")


async def full(guard: OverOpenAI) -> None:
    guard.purse.error = StreamRefused("full")


async def nothing(_: OverOpenAI) -> None:
    pass


Before = Callable[[OverOpenAI], Awaitable[None]]


@pytest.mark.parametrize(
    ("before", "call", "status", "kind", "code"),
    [
        (freeze, NOTHING, 403, "permission_error", "budget_frozen"),
        (revoke, NOTHING, 403, "permission_error", "access_revoked"),
        (nothing, {"model": "gpt-unheard-of"}, 400, "invalid_request_error", "model_not_priced"),
        (nothing, {"max_tokens": 0}, 400, "invalid_request_error", "invalid"),
        (nothing, {"extra_body": {"web_search_options": {}}}, 400, "invalid_request_error", "cannot_bound"),
        (nothing, {"service_tier": "scale"}, 400, "invalid_request_error", "cannot_bound"),
    ],
    ids=["frozen", "revoked", "no-price", "invalid", "unbounded", "no-tier"],
)
async def test_k1_every_no_that_stays_a_no_is_one_request(
    before: Before, call: dict[str, Any], status: int, kind: str, code: str
) -> None:
    async with client_of() as client:
        await before(client.guard)
        refused = await client.refused(**call)
        assert (client.tries, refused.status_code, refused.type, refused.code) == (1, status, kind, code)
        assert refused.response.headers["x-should-retry"] == "false"
        assert refused.request_id
        assert client.guard.fake.requests == []


async def test_k1_a_wrong_key_is_one_request() -> None:
    async with client_of(key="purse_somebody_elses") as client:
        refused = await client.refused()
        assert (client.tries, refused.status_code, refused.code) == (1, 401, "invalid_api_key")
        assert "purse_somebody_elses" not in str(refused.body)


@pytest.mark.parametrize("before", [nobody, full])
async def test_while_nobody_can_decide_the_client_is_asked_to_come_again(before: Before) -> None:
    async with client_of() as client:
        await client.sdk.chat.completions.create(**CALL)
        await before(client.guard)
        client.sdk = client.sdk.with_options(max_retries=0)
        refused = await client.refused()
        assert (refused.status_code, refused.type) == (503, "server_error")
        assert refused.response.headers["retry-after"] == "2"
        assert len(client.guard.fake.requests) == 1


async def test_cooling_is_not_retried_and_says_for_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    async with client_of() as client:
        told(client, Cooling("x", "user", client.guard.purse.clock + 90 * 10**9), monkeypatch)
        refused = await client.refused()
        assert (client.tries, refused.status_code, refused.code) == (1, 429, "slow_down")
        body: Any = refused.body
        assert body["metadata"]["seconds"] == 90


async def test_a_hold_that_was_heard_too_late_may_be_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with client_of() as client:
        told(client, Late("x", client.guard.purse.clock), monkeypatch)
        client.sdk = client.sdk.with_options(max_retries=0)
        refused = await client.refused()
        assert (refused.status_code, refused.code, refused.response.headers["retry-after"]) == (503, "late", "1")


async def test_only_cached_answers_are_left_reads_like_a_used_up_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    async with client_of() as client:
        tier = Exhausted(
            "x", "tier", "day", "usd", "2026-11-30", settled=9, held=0, extra=0, limit=10, remaining=1, fits=1,
            resets_at=client.guard.purse.clock + 10**9,
        )  # fmt: skip
        told(client, tier, monkeypatch)
        refused = await client.refused()
        assert (client.tries, refused.status_code, refused.code) == (1, 402, "insufficient_quota")


def told(client: Client, outcome: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wallet answers so to every hold."""
    tell = client.guard.purse._tell

    def instead(asks: Any) -> Any:
        return [msgspec.structs.replace(answer, outcome=outcome) for answer in tell(asks)]

    monkeypatch.setattr(client.guard.purse, "_tell", instead)


# --- addresses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/openai/v1/files"), ("POST", "/openai/v1/images/generations"), ("POST", "/openai/v1/audio/speech"),
        ("POST", "/openai/v1/completions"), ("DELETE", "/openai/v1/models/gpt-4o"), ("GET", CHAT), ("PUT", CHAT),
        ("POST", "/openai/v1/batches"), ("GET", "/openai"), ("POST", "/openai/v1/responses/resp_1/cancel"),
        ("POST", "/openai/v1//chat/completions"), ("OPTIONS", CHAT), ("POST", "/openai/v1/chat/completions/"),
        ("GET", "/openai/v1/models/%2e%2e/files"), ("GET", "/openai/v1/models/../../admin"),
    ],
)  # fmt: skip
async def test_e2_what_is_not_guarded_is_not_there(method: str, path: str) -> None:
    async with client_of() as client:
        headers = {"Authorization": f"Bearer {KEY}"}
        async with client.guard.desk.client.request(method, path, json={}, headers=headers) as answer:
            assert answer.status in (400, 404)
            body = await answer.json()
            if path.startswith("/openai"):
                assert body["error"]["code"] in ("unknown_url", "invalid")
        assert client.guard.fake.requests == []


# --- and yes ----------------------------------------------------------------------------------------------------------


async def test_the_stock_client_works_unchanged() -> None:
    """Plain, streamed, with tools, embeddings, responses and the list of models, by one changed line."""
    async with client_of(Plan(budgets={"day": Budget("usd", DOLLAR)})) as client:
        sdk, guard = client.sdk, client.guard
        plain = await sdk.chat.completions.create(**CALL)
        assert plain.choices[0].message.content == guard.fake.reply.text

        text = ""
        async for chunk in await sdk.chat.completions.create(**CALL, stream=True):
            text += chunk.choices[0].delta.content or ""
        assert text == guard.fake.reply.text

        tool: Any = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
        called = await sdk.chat.completions.create(**CALL, tools=[tool])
        assert called.choices[0].message.tool_calls

        found = await sdk.embeddings.create(model="text-embedding-3-small", input=["one two", "three"])
        assert [len(each.embedding) for each in found.data] == [8, 8]

        answer = await sdk.responses.create(model="gpt-4.1-mini", input="Say hello")
        assert answer.output_text == guard.fake.reply.text
        async with sdk.responses.stream(model="gpt-4.1-mini", input="Say hello") as stream:
            final = await stream.get_final_response()
        assert final.output_text == guard.fake.reply.text

        assert "gpt-4o" in [model.id async for model in sdk.models.list()]
        assert client.requests == 7
        assert guard.meter() == (guard.billed, 0)
        assert len(guard.holds) == 6
        assert not [ask for ask in guard.settles if ask.estimated or ask.release]


async def test_a_stream_that_was_cut_reads_like_one_that_reached_its_cap() -> None:
    """The provider does not obey the cap; the client sees no error, only that there is no more."""
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o"}
    said = msgspec.json.encode({**chunk, "choices": [{"index": 0, "delta": {"content": " word"}}]})
    async with scripted() as guard:
        guard.upstream.streams_for_ever(b"data: " + said + b"\n\n")
        url = str(guard.desk.client.make_url("/openai/v1"))
        async with openai.AsyncOpenAI(base_url=url, api_key=KEY, max_retries=0) as sdk:
            usage: Any = {"include_usage": True}
            stream = await sdk.chat.completions.create(**CALL, stream=True, stream_options=usage)
            seen = [chunk async for chunk in stream]
        async with asyncio.timeout(WITHIN_S):
            await guard.upstream.aborted.wait()
        assert seen[-2].choices[0].finish_reason == "length"
        assert seen[-1].usage is not None
        assert guard.last.estimated


async def test_the_responses_api_is_cut_the_same_way() -> None:
    said = msgspec.json.encode({"type": "response.output_text.delta", "sequence_number": 3, "delta": " word"})
    created = {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-4o", "status": "in_progress"}
    begin = msgspec.json.encode({"type": "response.created", "sequence_number": 0, "response": created})
    async with scripted() as guard:
        guard.upstream.streams_for_ever(b"data: " + said + b"\n\n", first=b"data: " + begin + b"\n\n")
        url = str(guard.desk.client.make_url("/openai/v1"))
        async with openai.AsyncOpenAI(base_url=url, api_key=KEY, max_retries=0) as sdk:
            stream = await sdk.responses.create(model="gpt-4o", input="Go on", max_output_tokens=50, stream=True)
            seen = [event async for event in stream]
        async with asyncio.timeout(WITHIN_S):
            await guard.upstream.aborted.wait()
        last: Any = seen[-1]
        assert (last.type, last.response.id, last.response.status) == ("response.incomplete", "resp_1", "incomplete")
        assert last.response.incomplete_details.reason == "max_output_tokens"
        assert last.response.output_text.startswith(" word word")
        assert guard.last.amounts == guard.holds[0].options[0].amounts
