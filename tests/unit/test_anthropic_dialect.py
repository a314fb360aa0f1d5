"""Anthropic's wire shapes, read: what a call could become, how it is sent, what answers and streams say."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from engine.prices import Usage
from web.proxy.anthropic import ANTHROPIC, passed_headers
from web.proxy.anthropic_messages import MESSAGES
from web.proxy.anthropic_stream import MessageMeter
from web.proxy.anthropic_usage import usage_of
from web.proxy.bodies import Body
from web.proxy.dialect import Call, Incoming, Way
from web.proxy.refusals import Declined, Refusal
from web.proxy.sse import Parser

HAIKU = "claude-haiku-4-5"
WHOLE = {
    "input_tokens": 10, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 20,
    "cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 2},
}  # fmt: skip
COUNTED = Usage(
    input_tokens=22, cache_read_tokens=7, cache_write_tokens=3, cache_write_1h_tokens=2, output_tokens=20
)  # fmt: skip


def incoming(**more: object) -> Incoming:
    body = {"model": HAIKU, "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}], **more}
    return Incoming(body=Body(json.dumps(body).encode()))


def sent(request: Incoming, tokens: int, model: str = HAIKU) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(MESSAGES.write(request, MESSAGES.read(request), Way(model, tokens)).body)
    return found


# --- what a call could become -----------------------------------------------------------------------------------------


def test_everything_that_is_read_counts_as_input() -> None:
    least = MESSAGES.read(incoming()).input_tokens(HAIKU)
    text = "x" * 1000
    for more in (
        {"system": text},
        {"system": [{"type": "text", "text": text}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": text}]}]},
        {"tools": [{"name": "a", "description": text, "input_schema": {}}]},
        {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": text}]}]},
        {"messages": [{"role": "assistant", "content": [{"type": "thinking", "thinking": text, "signature": "s"}]}]},
        {"output_config": {"format": {"type": "json_schema", "schema": {"description": text}}}},
        {"something_new": {"with": text}},
    ):
        assert MESSAGES.read(incoming(**more)).input_tokens(HAIKU) >= least + 900, more


def test_a_picture_counts_by_a_constant_and_not_by_its_bytes() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "A" * 1_000_000}
    call = MESSAGES.read(incoming(messages=[{"role": "user", "content": [{"type": "image", "source": source}]}]))
    assert 4_784 <= call.input_tokens(HAIKU) < 20_000


@pytest.mark.parametrize(
    ("model", "thinking", "hidden"),
    [
        (HAIKU, None, False),
        (HAIKU, {"type": "disabled"}, False),
        (HAIKU, {"type": "enabled", "budget_tokens": 1024}, True),
        (HAIKU, {"type": "adaptive"}, True),
        ("claude-something-9", None, True),
        ("claude-something-9", {"type": "disabled"}, False),
    ],
)
def test_a_call_that_may_think_may_hide_tokens(model: str, thinking: object, hidden: bool) -> None:
    more = {} if thinking is None else {"thinking": thinking}
    assert MESSAGES.read(incoming(model=model, **more)).hidden is hidden


@pytest.mark.parametrize("more", [{"max_tokens": -1}, {"max_tokens": "9"}, {"max_tokens": True}, {"stream": "yes"}])
def test_what_cannot_be_understood_is_refused_by_its_field(more: dict[str, object]) -> None:
    with pytest.raises(Declined) as caught:
        MESSAGES.read(incoming(**more))
    assert (caught.value.refusal.status, caught.value.refusal.param) == (400, next(iter(more)))


def test_a_field_in_another_case_is_refused() -> None:
    with pytest.raises(Declined):
        MESSAGES.read(incoming(MCP_servers=[1]))


# --- how it is sent ---------------------------------------------------------------------------------------------------


def test_model_and_cap_are_written_and_the_rest_stays() -> None:
    said = sent(incoming(temperature=0.5, metadata={"user_id": "u"}, top_k=5), 50, "claude-cheaper")
    assert (said["model"], said["max_tokens"]) == ("claude-cheaper", 50)
    assert (said["temperature"], said["metadata"], said["top_k"]) == (0.5, {"user_id": "u"}, 5)


@pytest.mark.parametrize(
    ("budget", "asked", "granted", "becomes"),
    [
        (2_000, 4_000, 4_000, {"type": "enabled", "budget_tokens": 2_000, "display": "omitted"}),
        (3_000, 4_000, 2_000, {"type": "enabled", "budget_tokens": 1_999, "display": "omitted"}),
        (2_000, 4_000, 2_000, {"type": "enabled", "budget_tokens": 1_999, "display": "omitted"}),
        (1_024, 2_000, 1_000, {"type": "disabled"}),
        (9_000, 4_000, 2_000, {"type": "enabled", "budget_tokens": 9_000, "display": "omitted"}),
    ],
    ids=["fits", "shrunk", "at-the-edge", "too-small-to-think", "the-clients-own-way"],
)
def test_a_thinking_budget_stays_below_a_smaller_cap(budget: int, asked: int, granted: int, becomes: object) -> None:
    thinking = {"type": "enabled", "budget_tokens": budget, "display": "omitted"}
    assert sent(incoming(max_tokens=asked, thinking=thinking), granted)["thinking"] == becomes


def test_headers_that_go_along() -> None:
    assert passed_headers({}) == {"anthropic-version": "2023-06-01"}
    asked = {"anthropic-version": "2030-01-01", "anthropic-beta": "a-1, fast-mode-2026-02-01 ,b-2,", "cookie": "c"}
    assert passed_headers(asked) == {"anthropic-version": "2030-01-01", "anthropic-beta": "a-1,b-2"}
    assert "anthropic-beta" not in passed_headers({"anthropic-beta": "code-execution-2025-05-22"})


# --- what an answer says ----------------------------------------------------------------------------------------------


def test_input_is_what_was_read_written_and_neither() -> None:
    assert usage_of(WHOLE) == COUNTED


def test_what_was_written_without_saying_for_how_long() -> None:
    old = {"input_tokens": 1, "output_tokens": 1, "cache_creation_input_tokens": 5}
    assert usage_of(old) == Usage(input_tokens=6, cache_write_tokens=5, output_tokens=1)
    half = usage_of({**old, "cache_creation": {"ephemeral_5m_input_tokens": 2}})
    assert half == Usage(input_tokens=6, cache_write_tokens=2, cache_write_1h_tokens=3, output_tokens=1)


@pytest.mark.parametrize(
    "said",
    [None, {}, [], "12", {"input_tokens": 5}, {"output_tokens": None}, {"output_tokens": -1}, {"output_tokens": True},
     {"output_tokens": 1.5}, {"input_tokens": 0, "output_tokens": 0}],
)  # fmt: skip
def test_what_says_nothing_of_what_came_out_is_no_report(said: object) -> None:
    assert usage_of(said) is None


def test_searches_and_speed_have_their_price() -> None:
    said = {**WHOLE, "server_tool_use": {"web_search_requests": 2}, "speed": "fast"}
    usage = usage_of(said)
    assert usage is not None
    assert (usage.web_searches, usage.service) == (2, "fast")


def test_f8_rounds_that_the_totals_leave_out_make_it_an_estimate() -> None:
    def exact(*kinds: str) -> bool:
        rounds = [{"type": kind, "input_tokens": 1, "output_tokens": 1} for kind in kinds]
        return MESSAGES.reading({"model": HAIKU, "usage": {**WHOLE, "iterations": rounds}}, {}).exact

    assert exact()
    assert exact("message", "message")
    assert not exact("message", "compaction")
    assert not exact("fallback_message")


# --- a stream ---------------------------------------------------------------------------------------------------------


def meter(cap: int = 100) -> MessageMeter:
    return MessageMeter(Call(model=HAIKU, input_tokens=lambda model: 50, output_tokens=cap), Way(HAIKU, cap))


def feed(into: MessageMeter, events: Iterable[Mapping[str, object]]) -> bytes:
    raw = b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)
    passed = b"".join(out for event in Parser().feed(raw) for out in into.feed(event))
    assert passed == raw
    return passed


START = {"type": "message_start", "message": {"model": HAIKU, "usage": {**WHOLE, "output_tokens": 1}}}
OPEN = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
DELTA = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello"}}
CLOSE = {"type": "content_block_stop", "index": 0}
STOP = {"type": "message_stop"}


def total(stop: str | None = "end_turn", **usage: object) -> dict[str, object]:
    return {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": usage}


def test_d6_a_streams_usage_is_the_start_with_what_the_deltas_say_in_its_place() -> None:
    stream = meter()
    feed(stream, [START, OPEN, DELTA])
    assert stream.reading.usage is None
    assert stream.partial is not None
    assert stream.partial.input_tokens == 22
    feed(stream, [CLOSE, total(output_tokens=20), STOP])
    assert (stream.reading.usage, stream.reading.model, stream.ended) == (COUNTED, HAIKU, True)


def test_totals_are_totals_and_the_last_one_counts() -> None:
    stream = meter()
    feed(stream, [START, total(None, output_tokens=9), total(None, output_tokens=15, input_tokens=11)])
    assert (stream.reading.usage, stream.partial and stream.partial.output_tokens) == (None, 15)
    feed(stream, [total(output_tokens=20, input_tokens=10, cache_read_input_tokens=None), STOP])
    assert stream.reading.usage == COUNTED


def test_a_stream_in_which_nothing_came_out_costs_what_went_in() -> None:
    stream = meter()
    feed(stream, [START, total(output_tokens=0), STOP])
    assert stream.reading.usage is not None
    assert (stream.reading.usage.input_tokens, stream.reading.usage.output_tokens) == (22, 0)


def test_a_stream_that_never_says_what_came_out_reports_nothing() -> None:
    stream = meter()
    feed(
        stream,
        [START, OPEN, DELTA, CLOSE, {"type": "message_delta", "delta": {"stop_reason": "x"}, "usage": None}, STOP],
    )
    assert (stream.ended, stream.reading.usage) == (True, None)


def test_whatever_the_model_wrote_is_seen() -> None:
    def seen(delta: dict[str, object]) -> int:
        stream = meter()
        feed(stream, [START, {"type": "content_block_delta", "index": 0, "delta": delta}])
        return stream.output.most

    assert seen({"type": "text_delta", "text": "hello"}) == 5
    assert seen({"type": "thinking_delta", "thinking": "hello"}) == 5
    assert seen({"type": "input_json_delta", "partial_json": '{"a"'}) == 4
    assert seen({"type": "signature_delta", "signature": "c2lnbmF0dXJl"}) == 0


def test_an_error_is_a_failure_and_garbage_passes() -> None:
    stream = meter()
    feed(stream, [START, {"type": "error", "error": {"type": "overloaded_error"}}])
    assert (stream.failed, stream.ended) == (True, False)
    for raw in (b"data: {\n\n", b"data: [1]\n\n", b": ping\n\n", b'data: {"type": "content_block_delta"}\n\n'):
        (event,) = Parser().feed(raw)
        assert meter().feed(event) == [raw]


def test_a_cut_stream_ends_its_block_and_its_message() -> None:
    stream = meter()
    feed(stream, [START, OPEN, DELTA])
    said = b"".join(stream.cut(Usage(input_tokens=22, output_tokens=69)))
    events = [json.loads(event.data or "") for event in Parser().feed(said)]
    assert [event["type"] for event in events] == ["content_block_stop", "message_delta", "message_stop"]
    assert (events[1]["delta"]["stop_reason"], events[1]["usage"]) == ("max_tokens", {"output_tokens": 69})
    feed(stream, [CLOSE])
    assert b"content_block_stop" not in b"".join(stream.cut(Usage()))


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "status", "kind"),
    [
        ("spent", 402, "billing_error"), ("tier", 402, "billing_error"), ("spent", 429, "billing_error"),
        ("busy", 429, "rate_limit_error"), ("cooling", 429, "rate_limit_error"),
        ("never", 400, "invalid_request_error"),
        ("frozen", 403, "permission_error"), ("wrong_key", 401, "authentication_error"), ("x", 404, "not_found_error"),
        ("x", 409, "invalid_request_error"), ("x", 413, "request_too_large"), ("x", 503, "api_error"),
    ],
)  # fmt: skip
def test_a_refusal_has_the_type_its_client_knows(reason: str, status: int, kind: str) -> None:
    refusal = Refusal(status=status, reason=reason, message="No.", metadata={"budget": "day"})
    said = ANTHROPIC.error(refusal, request_id="r")
    details = {"error_code": reason, "budget": "day"}
    assert said == {"type": "error", "error": {"type": kind, "message": "No.", "details": details}, "request_id": "r"}
