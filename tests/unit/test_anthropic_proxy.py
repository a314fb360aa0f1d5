"""The official Anthropic client, unchanged, with the wallet between it and its provider."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import anthropic
import pytest
import pytest_asyncio
from desk_client import DOLLAR, KEY
from guarded_provider import DOLLAR_A_DAY, GuardedProvider, guarded_provider
from providers.fake_anthropic import fake_anthropic
from providers.faults import Fault
from providers.production import Reply, words

from engine.core.plan import Budget, Plan, Tier, Tiers
from engine.errors import NoAnswer

ASK: dict[str, Any] = {
    "model": "claude-haiku-4-5",
    "max_tokens": 1000,
    "messages": [{"role": "user", "content": "What is a purse?"}],
}
TOOL = {"name": "weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}


@pytest_asyncio.fixture
async def guard() -> AsyncIterator[GuardedProvider]:
    async with guarded_provider(fake_anthropic(), "anthropic") as guard:
        yield guard


@pytest_asyncio.fixture
async def client(guard: GuardedProvider) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with guard.anthropic() as client:
        yield client


async def final(client: anthropic.AsyncAnthropic, **more: Any) -> Any:
    async with client.messages.stream(**{**ASK, **more}) as stream:
        return await stream.get_final_message()


async def use_up(guard: GuardedProvider) -> None:
    body = {"id": "a", "budget": "day", "period": "2026-11-30", "amount": "0.9999", "reason": "r"}
    assert (await guard.desk.post("/v1/adjustments", body)).status == 200


# --- answers ----------------------------------------------------------------------------------------------------------


async def test_a_plain_message_is_settled_at_what_the_provider_bills(guard: GuardedProvider, client: Any) -> None:
    message = await client.messages.create(**ASK)
    assert (message.content[0].text, message.stop_reason) == (guard.fake.reply.text, "end_turn")
    assert guard.meter() == (guard.fake.ledger.total, 0)
    assert guard.holds[0].labels == {"provider": "anthropic", "model": "claude-haiku-4-5"}
    assert not guard.settles[0].estimated


async def test_a_stream_passes_unchanged_and_is_settled_at_what_the_provider_bills(
    guard: GuardedProvider, client: Any
) -> None:
    message = await final(client)
    assert (message.content[0].text, message.usage.output_tokens) == (guard.fake.reply.text, 12)
    assert guard.meter() == (guard.fake.ledger.total, 0)
    assert not guard.settles[0].estimated


async def test_what_was_cached_is_priced_apart(guard: GuardedProvider, client: Any) -> None:
    guard.fake.reply = Reply(cache_read=3, cache_write=2, cache_write_1h=1)
    await client.messages.create(**ASK)
    await final(client)
    guard.fake.fault = Fault(usage="cumulative")
    await final(client)
    guard.fake.fault = Fault(usage="delta_only")
    await final(client)
    assert guard.meter() == (guard.fake.ledger.total, 0)
    assert len(guard.fake.ledger.lines) == 4


async def test_tools_of_the_clients_own_pass(guard: GuardedProvider, client: Any) -> None:
    for message in (await client.messages.create(**ASK, tools=[TOOL]), await final(client, tools=[TOOL])):
        assert (message.content[0].name, message.content[0].input) == ("weather", {"city": "Zürich"})
    assert guard.meter() == (guard.fake.ledger.total, 0)


async def test_thinking_is_output(guard: GuardedProvider, client: Any) -> None:
    guard.fake.reply = Reply(reasoning=40)
    message = await final(client, max_tokens=2000, thinking={"type": "enabled", "budget_tokens": 1024})
    assert [block.type for block in message.content] == ["thinking", "text"]
    assert guard.fake.ledger.lines[0].used.output == 52
    assert guard.meter() == (guard.fake.ledger.total, 0)


async def test_half_the_output_leaves_a_thinking_budget_that_the_provider_takes() -> None:
    tiers = Tiers([Tier(500_000, 0), Tier(1_000_000, 1)])
    plan = Plan(budgets={"day": Budget("usd", DOLLAR)}, tiers=tiers)
    async with guarded_provider(fake_anthropic(), "anthropic", plan) as guard, guard.anthropic() as client:
        used = {"id": "a", "budget": "day", "period": "2026-11-30", "amount": "0.6", "reason": "r"}
        assert (await guard.desk.post("/v1/adjustments", used)).status == 200
        thinking: Any = {"type": "enabled", "budget_tokens": 3_000}
        message = await final(client, max_tokens=4_000, thinking=thinking)
        assert message.stop_reason == "end_turn"
        asked = guard.fake.requests[0].json
        assert (asked["max_tokens"], asked["thinking"]["budget_tokens"]) == (2_000, 1_999)
        assert not guard.settles[0].estimated


async def test_counting_tokens_passes_without_money(guard: GuardedProvider, client: Any) -> None:
    counted = await client.messages.count_tokens(model=ASK["model"], messages=ASK["messages"])
    assert counted.input_tokens == 10
    assert (guard.holds, guard.fake.ledger.lines) == ([], [])
    with pytest.raises(anthropic.AuthenticationError):
        await client.with_options(api_key="nobodys").messages.count_tokens(model="claude-haiku-4-5", messages=[])
    guard.fake.fault = Fault(redirect_to="http://192.0.2.1/")
    with pytest.raises(anthropic.InternalServerError):
        await client.with_options(max_retries=0).messages.count_tokens(model=ASK["model"], messages=ASK["messages"])


async def test_the_key_may_stand_where_older_clients_put_it(guard: GuardedProvider) -> None:
    async with aiohttp.ClientSession() as http:
        headers = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
        async with http.post(f"{guard.url}/v1/messages", json=ASK, headers=headers) as answer:
            assert answer.status == 200
        async with http.post(f"{guard.url}/v1/messages", json=ASK, headers={**headers, "x-api-key": "no"}) as answer:
            assert (answer.status, (await answer.json())["error"]["type"]) == (401, "authentication_error")
    seen = guard.fake.requests[0].headers
    assert (seen["x-api-key"], seen.get("Authorization")) == (guard.fake.key, None)
    assert len(guard.fake.requests) == 1


async def test_versions_and_betas_go_along_but_not_those_that_have_no_bound(
    guard: GuardedProvider, client: Any
) -> None:
    betas = [
        "interleaved-thinking-2025-05-14",
        "fast-mode-2026-02-01",
        "context-1m-2025-08-07",
        "mcp-client-2026-09-15",
    ]
    await client.beta.messages.create(**ASK, betas=betas, extra_query={"beta": "true", "other": "1"})
    seen = guard.fake.requests[0]
    assert seen.headers["anthropic-version"] == client.default_headers["anthropic-version"]
    assert seen.headers["anthropic-beta"] == "interleaved-thinking-2025-05-14,context-1m-2025-08-07"
    assert seen.query == {"beta": "true"}


async def test_answers_say_what_was_granted_and_nothing_of_our_account(guard: GuardedProvider, client: Any) -> None:
    raw = await client.messages.with_raw_response.create(**ASK)
    assert raw.headers["x-purse-max-tokens"] == "1000"
    assert raw.headers["x-purse-model"] == "claude-haiku-4-5"
    assert raw.headers["request-id"] == raw.headers["x-request-id"] != "req_0"
    assert raw.headers["anthropic-ratelimit-requests-remaining"] == "59"
    assert "anthropic-organization-id" not in raw.headers
    assert "set-cookie" not in raw.headers


async def test_a_call_without_a_cap_gets_the_operators(guard: GuardedProvider) -> None:
    async with aiohttp.ClientSession(headers={"x-api-key": KEY}) as http:
        body = {name: value for name, value in ASK.items() if name != "max_tokens"}
        async with http.post(f"{guard.url}/v1/messages", json=body) as answer:
            assert (answer.status, answer.headers["x-purse-max-tokens"]) == (200, "4096")
    assert guard.fake.requests[0].json["max_tokens"] == 4096
    assert guard.fake.requests[0].headers["anthropic-version"] == "2023-06-01"


async def test_warming_a_cache_makes_nothing_and_costs_its_input(guard: GuardedProvider, client: Any) -> None:
    guard.fake.reply = Reply(cache_write=8)
    message = await client.messages.create(**{**ASK, "max_tokens": 0})
    assert message.usage.output_tokens == 0
    assert guard.meter() == (2 * 1000 + 8 * 1250, 0)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(piece_bytes=1),
        Fault(piece_bytes=7, line_end="\r\n", comments=True),
        Fault(one_piece=True),
        Fault(gzip=True),
        Fault(padding_bytes=1_000_000),
    ],
    ids=["bytes", "odd-lines", "one-piece", "gzip", "huge"],
)
async def test_however_the_bytes_come_the_client_reads_the_same(
    guard: GuardedProvider, client: Any, fault: Fault
) -> None:
    guard.fake.fault = fault
    assert (await final(client)).content[0].text == guard.fake.reply.text
    assert (await client.messages.create(**ASK)).content[0].text == guard.fake.reply.text
    assert guard.meter() == (guard.fake.ledger.total, 0)


async def test_a_provider_that_refuses_our_key_tells_the_client_nothing_of_it(
    guard: GuardedProvider, client: Any
) -> None:
    guard.fake.key = "another"
    client = client.with_options(max_retries=0)
    for call in (client.messages.create(**ASK), client.messages.count_tokens(model="x", messages=ASK["messages"])):
        with pytest.raises(anthropic.InternalServerError) as caught:
            await call
        assert caught.value.error_code == "upstream_key_refused"
        assert guard.fake.KEY not in caught.value.message
    assert guard.meter() == (0, 0)


@pytest.mark.parametrize("stream", [False, True])
async def test_what_is_no_answer_costs_the_grant_and_a_detour_is_not_taken(
    guard: GuardedProvider, client: Any, stream: bool
) -> None:
    client = client.with_options(max_retries=0)
    guard.fake.fault = Fault(redirect_to="http://192.0.2.1/v1/messages")
    with pytest.raises(anthropic.InternalServerError) as caught:
        await client.messages.create(**ASK, stream=stream)
    assert (caught.value.status_code, guard.meter()) == (502, (0, 0))
    guard.fake.fault = Fault(content_type="text/html", body=b"<html>")
    async with (
        aiohttp.ClientSession(headers={"x-api-key": KEY}) as http,
        http.post(f"{guard.url}/v1/messages", json=ASK) as answer,
    ):
        assert await answer.read() == b"<html>"
    assert guard.settles[-1].estimated
    assert guard.settles[-1].amounts == guard.holds[-1].options[0].amounts


# --- refusals ---------------------------------------------------------------------------------------------------------


async def test_what_is_used_up_is_a_billing_error_after_one_request(guard: GuardedProvider, client: Any) -> None:
    await use_up(guard)
    with pytest.raises(anthropic.PaymentRequiredError) as caught:
        await client.messages.create(**ASK)
    error = caught.value.body["error"]
    assert (error["type"], caught.value.error_code) == ("billing_error", "spent")
    assert error["details"]["budget"] == "day"
    assert error["details"]["resets_at"] == "2026-12-01T00:00:00.000Z"
    assert "resets at 00:00 UTC" in error["message"]
    assert (len(guard.holds), guard.fake.requests) == (1, [])
    with pytest.raises(anthropic.PaymentRequiredError):
        await final(client)
    assert (len(guard.holds), guard.fake.requests) == (2, [])


async def test_what_can_never_fit_says_the_cap_that_would(guard: GuardedProvider, client: Any) -> None:
    with pytest.raises(anthropic.BadRequestError) as caught:
        await client.messages.create(**{**ASK, "max_tokens": 1_000_000}, timeout=60)
    details = caught.value.body["error"]["details"]
    assert (caught.value.error_code, len(guard.holds), guard.fake.requests) == ("never", 1, [])
    fits = details["affordable_max_tokens"]
    await client.messages.create(**{**ASK, "max_tokens": fits}, timeout=60)
    with pytest.raises(anthropic.BadRequestError):
        await client.messages.create(**{**ASK, "max_tokens": fits + 1}, timeout=60)


async def test_others_in_the_way_are_a_rate_limit_that_passes(guard: GuardedProvider, client: Any) -> None:
    guard.fake.fault = Fault(pause_before_answer=True)
    asking = asyncio.create_task(client.messages.create(**{**ASK, "max_tokens": 150_000}, timeout=60))
    await guard.fake.request()
    with pytest.raises(anthropic.RateLimitError) as caught:
        await client.with_options(max_retries=0).messages.create(**{**ASK, "max_tokens": 150_000}, timeout=60)
    assert (caught.value.error_code, caught.value.body["error"]["type"]) == ("busy", "rate_limit_error")
    assert 1 <= int(caught.value.response.headers["retry-after"]) <= 30
    guard.fake.go.set()
    await asking


async def test_a_freeze_is_a_permission_error_after_one_request(guard: GuardedProvider, client: Any) -> None:
    await guard.desk.post("/v1/freeze", {"scope": "all", "reason": "checking"})
    with pytest.raises(anthropic.PermissionDeniedError) as caught:
        await client.messages.create(**ASK)
    assert (caught.value.error_code, len(guard.holds), guard.fake.requests) == ("frozen", 1, [])


@pytest.mark.parametrize("situation", ["spent", "never", "frozen", "revoked", "not_priced", "cannot_bound", "no_key"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_refusal_that_time_does_not_heal_is_one_request(
    guard: GuardedProvider, client: Any, situation: str, stream: bool
) -> None:
    ask = {**ASK}
    match situation:
        case "spent":
            await use_up(guard)
        case "never":
            ask["max_tokens"] = 10_000_000
        case "frozen":
            await guard.desk.post("/v1/freeze", {"scope": "all", "reason": "r"})
        case "revoked":
            await guard.desk.post("/v1/revoke", {"label": "model", "value": ask["model"], "reason": "r"})
        case "not_priced":
            ask["model"] = "claude-none"
        case "cannot_bound":
            ask["tools"] = [{"type": "web_search_20250305", "name": "web_search"}]
        case "no_key":
            client = client.with_options(api_key="nobodys")
    with pytest.raises(anthropic.APIStatusError) as caught:
        await client.messages.create(**ask, stream=stream, timeout=60)
    assert caught.value.response.headers["x-should-retry"] == "false"
    assert (guard.sent, guard.fake.requests) == (1, [])


async def test_a_model_without_a_price_is_refused_and_never_free(guard: GuardedProvider, client: Any) -> None:
    with pytest.raises(anthropic.BadRequestError) as caught:
        await client.messages.create(**{**ASK, "model": "claude-opus-4.1-typo"})
    assert (caught.value.error_code, guard.holds, guard.fake.requests) == ("model_not_priced", [], [])


async def test_nobody_to_decide_is_a_refusal(guard: GuardedProvider, client: Any) -> None:
    guard.purse.error = NoAnswer("no engine")
    with pytest.raises(anthropic.InternalServerError) as caught:
        await client.with_options(max_retries=0).messages.create(**ASK)
    assert (caught.value.status_code, guard.fake.requests) == (503, [])


async def test_without_a_key_or_an_upstream_nothing_is_sent(guard: GuardedProvider, client: Any) -> None:
    with pytest.raises(anthropic.AuthenticationError):
        await client.with_options(api_key="nobodys").messages.create(**ASK)
    async with guarded_provider(fake_anthropic(), "openai") as other, aiohttp.ClientSession() as http:
        url = other.url.replace("/openai", "/anthropic/v1/messages")
        async with http.post(url, json=ASK, headers={"x-api-key": KEY}) as answer:
            assert (answer.status, (await answer.json())["error"]["type"]) == (404, "not_found_error")
    assert guard.holds == []


async def test_every_other_address_is_not_there(guard: GuardedProvider) -> None:
    async with aiohttp.ClientSession(headers={"x-api-key": KEY}) as http:
        for method, path in [
            ("POST", "/v1/complete"), ("POST", "/v1/messages/batches"), ("GET", "/v1/models"), ("GET", "/v1/messages"),
            ("POST", "/v1/messages/"), ("POST", "/v1/organizations/cost_report"), ("POST", ""),
        ]:  # fmt: skip
            async with http.request(method, guard.url + path, json=ASK) as answer:
                assert answer.status == 404, path
                assert (await answer.json())["type"] == "error"
    assert guard.fake.requests == []


# --- what has no bound ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tools", [TOOL, {"type": "web_search_20250305", "name": "web_search"}]),
        ("tools", [{"type": "web_fetch_20250910", "name": "web_fetch"}]),
        ("tools", [{"type": "code_execution_20250825", "name": "code_execution"}]),
        ("tools", [{"type": "mcp_toolset", "mcp_server_name": "x"}]),
        ("tools", [{"type": "advisor_20260301", "name": "advisor", "model": "claude-opus-5"}]),
        ("messages", [{"role": "system", "content": [{"type": "tools", "tools": [{"type": "web_search_20260318"}]}]}]),
        ("mcp_servers", [{"type": "url", "url": "https://example.org", "name": "x"}]),
        ("container", "container_1"),
        ("fallbacks", [{"model": "claude-opus-5"}]),
        ("context_management", {"edits": [{"type": "compact_20260112"}]}),
        ("compaction", {"type": "summarize"}),
        ("inference_geo", "us"),
        ("speed", "ludicrous"),
        ("speed", "fast"),
    ],
)  # fmt: skip
async def test_what_the_provider_would_run_or_price_otherwise_is_refused(
    guard: GuardedProvider, client: Any, field: str, value: object
) -> None:
    with pytest.raises(anthropic.BadRequestError) as caught:
        await client.messages.create(**ASK, extra_body={field: value})
    assert caught.value.error_code == "cannot_bound"
    assert (guard.holds, guard.fake.requests) == ([], [])


async def test_what_has_a_bound_passes(guard: GuardedProvider, client: Any) -> None:
    edits = {"edits": [{"type": "clear_tool_uses_20250919"}]}
    tools = [{"type": "bash_20250124", "name": "bash"}, {"type": "custom", **TOOL}]
    body = {"context_management": edits, "inference_geo": None, "mcp_servers": [], "unheard_of": {"a": 1}}
    await client.messages.create(**ASK, tools=tools, extra_body=body)
    assert guard.fake.requests[0].json["unheard_of"] == {"a": 1}
    assert guard.meter() == (guard.fake.ledger.total, 0)


# --- streams that end otherwise ---------------------------------------------------------------------------------------


async def test_a_client_that_leaves_ends_the_call_at_the_provider_at_once(guard: GuardedProvider, client: Any) -> None:
    guard.fake.fault = Fault(pause_after=5)
    stream = await client.messages.create(**ASK, stream=True)
    seen = await guard.fake.request()
    async with asyncio.timeout(30):
        await seen.paused.wait()
        await stream.close()
        await seen.aborted.wait()
    (settle,) = await guard.settled()
    assert settle.estimated
    assert guard.fake.ledger.total <= settle.amounts["usd"] <= guard.holds[0].options[0].amounts["usd"]


async def test_an_aborted_call_that_may_think_unseen_costs_its_grant(guard: GuardedProvider, client: Any) -> None:
    guard.fake.fault = Fault(pause_after=5)
    guard.fake.reply = Reply(reasoning=40)
    thinking = {"type": "enabled", "budget_tokens": 1024}
    stream = await client.messages.create(**{**ASK, "max_tokens": 2000}, stream=True, thinking=thinking)
    seen = await guard.fake.request()
    async with asyncio.timeout(30):
        await seen.paused.wait()
        await stream.close()
    (settle,) = await guard.settled()
    assert (settle.estimated, settle.amounts) == (True, guard.holds[0].options[0].amounts)


async def test_an_error_in_mid_stream_passes_and_is_charged_at_what_was_seen(
    guard: GuardedProvider, client: Any
) -> None:
    guard.fake.fault = Fault(error_after=5, error_type="overloaded_error", message="Overloaded")
    with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
        await final(client.with_options(max_retries=0))
    (settle,) = await guard.settled()
    assert settle.estimated
    assert guard.fake.ledger.total <= settle.amounts["usd"]


async def test_an_error_before_the_first_token_costs_nothing(guard: GuardedProvider, client: Any) -> None:
    guard.fake.fault = Fault(error_after=0)
    with pytest.raises(anthropic.APIError):
        await final(client.with_options(max_retries=0))
    guard.fake.fault = Fault(status=529)
    with pytest.raises(anthropic.OverloadedError):
        await client.with_options(max_retries=0).messages.create(**ASK)
    assert await guard.settled(2)
    assert guard.meter() == (guard.fake.ledger.total, 0) == (0, 0)


async def test_a_provider_that_ignores_the_cap_is_cut_and_the_stream_ends_as_one_that_reached_it(
    guard: GuardedProvider, client: Any
) -> None:
    guard.fake.fault = Fault(ignores_cap=True)
    guard.fake.reply = Reply(tokens=words(4_000))
    message = await final(client, max_tokens=4)
    assert message.stop_reason == "max_tokens"
    assert guard.fake.reply.text.startswith(message.content[0].text)
    seen = await guard.fake.request()
    async with asyncio.timeout(30):
        await seen.ended.wait()
    (settle,) = await guard.settled()
    assert settle.estimated
    assert seen.aborted.is_set()


async def test_each_attempt_is_a_call_of_its_own(guard: GuardedProvider, client: Any) -> None:
    guard.fake.next_faults.append(Fault(status=529, headers={"retry-after-ms": "1"}))
    message = await client.messages.create(**ASK)
    assert message.stop_reason == "end_turn"
    assert (len(guard.holds), len({hold.id for hold in guard.holds})) == (2, 2)
    assert guard.meter() == (guard.fake.ledger.total, 0)


async def test_tokens_and_requests_are_budgets_too() -> None:
    plan = Plan(
        budgets={"day": DOLLAR_A_DAY.budgets["day"], "tokens": Budget("tokens", 10**6), "calls": Budget("requests", 1)}
    )
    async with guarded_provider(fake_anthropic(), "anthropic", plan) as guard, guard.anthropic() as client:
        await client.messages.create(**ASK)
        assert guard.settles[0].amounts["tokens"] == 10 + 12
        with pytest.raises(anthropic.PaymentRequiredError):
            await client.messages.create(**ASK)
