"""Guarded streams: passed on as they come, counted on the way, cut at their grant, aborted when nobody listens."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest
from desk_client import DOLLAR, KEY
from guarded import ASKED, CHAT, MESSAGES, OverOpenAI, completion, over_openai, scripted
from integration.rig import WITHIN_S, eventually
from providers.faults import Fault, hangs_after
from providers.production import Reply, words

from engine.core.messages import Renew, Settle
from engine.core.plan import Budget, Plan
from web.proxy import hold, stream
from web.proxy.openai_chat_stream import ChatMeter

STREAMED = {**ASKED, "max_tokens": 1000, "stream": True}
THOUGHT = {"model": "gpt-5-mini", "messages": MESSAGES, "max_completion_tokens": 1000, "stream": True}


def chunks(events: list[str]) -> list[dict[str, Any]]:
    assert events[-1] == "[DONE]"
    return [json.loads(event) for event in events[:-1]]


def said(events: list[str]) -> str:
    found = (choice["delta"].get("content") or "" for chunk in chunks(events) for choice in chunk["choices"])
    return "".join(found)


# --- as it should be --------------------------------------------------------------------------------------------------


async def test_d5_a_stream_is_settled_at_what_the_provider_counted() -> None:
    reply = Reply(tokens=words(30), cache_read=2)
    async with over_openai(reply=reply) as guard:
        events = await guard.stream()
        assert said(events) == reply.text
        assert (guard.last.estimated, guard.last.amounts) == (False, {"usd": guard.billed})
        assert guard.meter() == (guard.billed, 0)


async def test_d10_usage_is_asked_for_and_hidden_from_who_did_not_ask() -> None:
    async with over_openai() as guard:
        events = await guard.stream()
        assert guard.fake.requests[0].json["stream_options"] == {"include_usage": True}
        assert [chunk for chunk in chunks(events) if not chunk["choices"]] == []
        assert not any(chunk.get("usage") for chunk in chunks(events))
        assert guard.last.amounts == {"usd": guard.billed}


async def test_d10_who_asked_for_the_usage_gets_it() -> None:
    async with over_openai() as guard:
        events = await guard.stream(stream_options={"include_usage": True, "include_obfuscation": False})
        sent = guard.fake.requests[0].json["stream_options"]
        assert sent == {"include_usage": True, "include_obfuscation": False}
        assert chunks(events)[-1]["usage"]["completion_tokens"] == 12
        events = await guard.stream(stream_options={"include_usage": False})
        assert chunks(events)[-1]["choices"]


async def test_d11_reasoning_counts_as_output() -> None:
    async with over_openai(reply=Reply(tokens=words(5), reasoning=40)) as guard:
        await guard.events(CHAT, THOUGHT)
        assert guard.fake.ledger.lines[0].used.reasoning == 40
        assert guard.last.amounts == {"usd": guard.billed}


async def test_d11_reasoning_that_is_left_out_of_the_count_is_in_the_total() -> None:
    patch = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 55}
    async with over_openai(fault=Fault(usage_patch=patch)) as guard:
        await guard.chat()
        assert guard.last.amounts == {"usd": 10 * 150 + 45 * 600}


@pytest.mark.parametrize("usage", ["last_choice", "every_chunk", "x_groq"])
@pytest.mark.parametrize("without_done", [False, True], ids=["done", "no-done"])
async def test_d13_servers_that_report_elsewhere_are_counted_once(usage: Any, without_done: bool) -> None:
    async with over_openai(fault=Fault(usage=usage, without_done=without_done)) as guard:
        path, body = CHAT, {**STREAMED}
        await guard.events(path, body)
        assert (guard.last.estimated, guard.last.amounts) == (False, {"usd": guard.billed})


@pytest.mark.parametrize(
    "fault",
    [
        Fault(piece_bytes=1), Fault(piece_bytes=7), Fault(one_piece=True), Fault(line_end="\r\n"), Fault(line_end="\r"),
        Fault(comments=True), Fault(gzip=True), Fault(content_type="text/plain"), Fault(padding_bytes=200_000),
        Fault(without_done=True), Fault(garbage_after=3),
    ],
    ids=lambda fault: next(iter(str(fault).split(","))),
)  # fmt: skip
async def test_however_the_bytes_come_the_count_is_the_same(fault: Fault) -> None:
    async with over_openai(fault=fault) as guard:
        headers = {"Authorization": f"Bearer {KEY}"}
        async with guard.desk.client.post(CHAT, json=STREAMED, headers=headers) as answer:
            assert answer.status == 200
            await answer.read()
        assert (guard.last.estimated, guard.last.amounts) == (False, {"usd": guard.billed})


async def test_choices_of_one_stream_are_counted_together() -> None:
    async with over_openai() as guard:
        await guard.stream(n=3)
        assert guard.last.amounts == {"usd": guard.billed}


async def test_a_tool_call_is_counted_like_any_text() -> None:
    tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
    async with over_openai(fault=Fault(end_after=2)) as guard:
        headers = {"Authorization": f"Bearer {KEY}"}
        async with guard.desk.client.post(CHAT, json={**STREAMED, "tools": [tool]}, headers=headers) as answer:
            await answer.read()
        assert guard.last.estimated
        granted = guard.holds[0].options[0].amounts["usd"]
        assert 0 < guard.last.amounts["usd"] < granted


# --- progress ---------------------------------------------------------------------------------------------------------


async def test_a_running_stream_tells_what_it_has_cost_and_renews_its_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hold, "PROGRESS_S", 0.01)
    plan = Plan(budgets={"day": Budget("usd", DOLLAR)}, ttl_s=1, ttl_s_min=1)
    async with over_openai(plan, reply=Reply(tokens=words(50)), fault=hangs_after(40)) as guard:
        running = asyncio.create_task(guard.stream())
        await eventually(lambda: [ask for ask in guard.settles if not ask.final])
        await eventually(lambda: [ask for ask in guard.purse.asked if isinstance(ask, Renew)])
        progress = next(ask for ask in guard.settles if not ask.final)
        assert 0 < progress.amounts["usd"] <= guard.holds[0].options[0].amounts["usd"]
        guard.fake.go.set()
        await running
        assert guard.meter() == (guard.billed, 0)


# --- cut and aborted --------------------------------------------------------------------------------------------------


async def left_after_some_of(guard: OverOpenAI, body: object) -> float:
    """A client that leaves in the midst of its stream. Milliseconds until its provider noticed."""
    headers = {"Authorization": f"Bearer {KEY}"}
    async with guard.desk.client.post(CHAT, json=body, headers=headers) as answer:
        seen = await guard.fake.request()
        await seen.paused.wait()
        await answer.content.readany()
        left_at = time.monotonic()
        answer.close()
        async with asyncio.timeout(WITHIN_S):
            await seen.aborted.wait()
        noticed_ms = (time.monotonic() - left_at) * 1000
    await guard.settled()
    return noticed_ms


async def test_d1_d8_d15_a_client_that_leaves_ends_the_stream_upstream_and_pays_what_it_saw() -> None:
    async with over_openai(reply=Reply(tokens=words(90)), fault=hangs_after(20)) as guard:
        noticed_ms = await left_after_some_of(guard, STREAMED)
        print(f"a client left; its stream was aborted upstream within {noticed_ms:.1f} ms")
        granted = guard.holds[0].options[0].amounts["usd"]
        assert guard.last.estimated
        assert guard.billed <= guard.last.amounts["usd"] <= granted
        assert guard.last.amounts["usd"] < granted


async def test_a_bug_while_a_stream_is_read_costs_the_grant(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> object:
        raise ZeroDivisionError

    monkeypatch.setattr(ChatMeter, "feed", broken)
    async with over_openai() as guard:
        events = await guard.events(CHAT, STREAMED)
        assert json.loads(events[-1])["error"]["code"] == "upstream_broken"
        assert (guard.last.estimated, guard.last.amounts) == (True, guard.holds[0].options[0].amounts)


async def test_where_tokens_may_be_hidden_a_client_that_leaves_pays_the_grant() -> None:
    async with over_openai(reply=Reply(tokens=words(90)), fault=hangs_after(20)) as guard:
        await left_after_some_of(guard, THOUGHT)
        assert (guard.last.estimated, guard.last.amounts) == (True, guard.holds[0].options[0].amounts)


async def test_a_client_that_takes_nothing_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "CLIENT_STALL_S", 0.2)
    async with over_openai(reply=Reply(tokens=("x" * 500_000,) * 90)) as guard:
        headers = {"Authorization": f"Bearer {KEY}"}
        async with guard.desk.client.post(CHAT, json=STREAMED, headers=headers) as answer:
            seen = await guard.fake.request()
            async with asyncio.timeout(WITHIN_S):
                await seen.aborted.wait()
            answer.close()
        await guard.settled()
        assert guard.last.estimated


async def test_d17_a_stream_that_does_not_obey_its_cap_is_cut_and_ends_as_one_that_reached_it() -> None:
    """The provider was told 100 and would go on for ever."""

    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o-mini"}
    piece = json.dumps({**chunk, "choices": [{"index": 0, "delta": {"content": " word"}, "finish_reason": None}]})
    async with scripted() as guard:
        guard.upstream.streams_for_ever(f"data: {piece}\n\n".encode())
        events = await guard.stream(stream_options={"include_usage": True})
        async with asyncio.timeout(WITHIN_S):
            await guard.upstream.aborted.wait()
        *_, finish, usage = chunks(events)
        assert finish["choices"] == [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": "length"}]
        assert (usage["choices"], usage["id"], usage["model"]) == ([], "c", "gpt-4o-mini")
        assert usage["usage"]["completion_tokens"] > 100
        assert guard.last.estimated
        assert guard.last.amounts == guard.holds[0].options[0].amounts
        assert said(events).count("word") >= 100


async def test_a_stream_that_breaks_off_says_so_and_costs_what_was_seen() -> None:
    async with over_openai(reply=Reply(tokens=words(60)), fault=Fault(reset_after=30)) as guard:
        events = await guard.events(CHAT, STREAMED)
        error = json.loads(events[-1])["error"]
        assert (error["code"], error["type"]) == ("upstream_broken", "server_error")
        granted = guard.holds[0].options[0].amounts["usd"]
        assert guard.last.estimated
        assert guard.billed <= guard.last.amounts["usd"] < granted


@pytest.mark.parametrize("style", ["event", "chunk"])
async def test_b19_an_error_in_mid_stream_charges_what_was_seen(style: Any) -> None:
    async with over_openai(reply=Reply(tokens=words(60)), fault=Fault(error_after=30, error_style=style)) as guard:
        headers = {"Authorization": f"Bearer {KEY}"}
        async with guard.desk.client.post(CHAT, json=STREAMED, headers=headers) as answer:
            raw = await answer.text()
        assert "The server had an error" in raw
        assert guard.last.estimated
        assert guard.billed <= guard.last.amounts["usd"] < guard.holds[0].options[0].amounts["usd"]


@pytest.mark.parametrize(
    "fault",
    [Fault(error_after=0), Fault(reset_after=0), Fault(end_after=0), Fault(status=500)],
    ids=["error", "reset", "end", "refused"],
)
async def test_b6_a_stream_that_fails_before_its_first_token_costs_nothing(fault: Fault) -> None:
    async with over_openai(fault=fault) as guard:
        headers = {"Authorization": f"Bearer {KEY}"}
        async with guard.desk.client.post(CHAT, json=STREAMED, headers=headers) as answer:
            await answer.read()
        assert guard.last.release
        assert guard.meter() == (0, 0)
        assert guard.billed == 0


async def test_d17_a_stream_that_ends_early_costs_what_was_seen() -> None:
    async with over_openai(reply=Reply(tokens=words(60)), fault=Fault(end_after=30)) as guard:
        events = await guard.events(CHAT, STREAMED)
        assert json.loads(events[-1])["error"]["code"] == "upstream_broken"
        assert guard.last.estimated
        assert 0 < guard.last.amounts["usd"] < guard.holds[0].options[0].amounts["usd"]


@pytest.mark.parametrize("usage", ["none", "zeros"])
async def test_d9_a_stream_that_ends_well_without_its_usage_costs_the_grant_not_zero(usage: Any) -> None:
    async with over_openai(fault=Fault(usage=usage)) as guard:
        await guard.stream()
        assert (guard.last.estimated, guard.last.amounts) == (True, guard.holds[0].options[0].amounts)


async def test_a_stream_that_stalls_is_ended_and_costs_what_was_seen() -> None:
    async with over_openai(reply=Reply(tokens=words(60)), fault=hangs_after(30), table={"idle_s": 0.2}) as guard:
        events = await guard.events(CHAT, STREAMED)
        assert json.loads(events[-1])["error"]["code"] == "upstream_broken"
        async with asyncio.timeout(WITHIN_S):
            await (await guard.fake.request()).aborted.wait()
        assert guard.last.estimated
        assert guard.billed <= guard.last.amounts["usd"] < guard.holds[0].options[0].amounts["usd"]


async def test_an_upstreams_key_does_not_pass_in_a_stream() -> None:
    async with scripted() as guard:
        guard.upstream.streams([b'data: {"choices": [], "echo": "sk-upstream-secret"}\n\n', b"data: [DONE]\n\n"])
        assert "sk-upstream-secret" not in str(await guard.stream())


async def test_an_answer_that_is_no_stream_although_one_was_asked_for_is_settled_like_any() -> None:
    async with scripted() as guard:
        guard.upstream.answers(completion(prompt=10, output=5))
        heard = await guard.chat({**STREAMED})
        assert heard.status == 200
        assert isinstance(guard.last, Settle)
        assert guard.last.amounts == {"usd": 4_500}
