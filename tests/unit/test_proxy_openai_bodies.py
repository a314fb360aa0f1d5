"""What OpenAI's bodies could cost: every cap, every multiple, and what has no bound and is refused unsent."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import pytest
from guarded import MESSAGES

from engine.core.plan import Budget, Plan
from engine.prices import load_book
from web.proxy.bodies import Body
from web.proxy.dialect import Call, Dialect, Incoming, Way
from web.proxy.openai_chat import CHAT
from web.proxy.openai_embeddings import EMBEDDINGS
from web.proxy.openai_responses import RESPONSES
from web.proxy.options import Priced, options_of
from web.proxy.refusals import Declined
from web.proxy.upstreams import Upstream

UPSTREAM = Upstream(name="openai", provider="openai", base_url="https://upstream.test/v1", key="k")
PLAN = Plan(budgets={"day": Budget("usd", 10**9)})
SAID = {"model": "gpt-4o-mini", "messages": MESSAGES}
ASKED = {"model": "gpt-4o-mini", "input": "Say hello"}


def incoming(body: object) -> Incoming:
    return Incoming(body=Body(json.dumps(body).encode()))


def call_of(body: object, dialect: Dialect = CHAT) -> Call:
    return dialect.read(incoming(body))


def best(body: object, dialect: Dialect = CHAT) -> Priced:
    return options_of(call_of(body, dialect), UPSTREAM, load_book({}), PLAN)[0][0]


def sent(body: object, dialect: Dialect = CHAT, *, output_tokens: int = 7) -> dict[str, Any]:
    asked = incoming(body)
    way = Way("gpt-4o-mini", output_tokens)
    found: dict[str, Any] = json.loads(dialect.write(asked, dialect.read(asked), way).body)
    return found


def declined(body: object, dialect: Dialect = CHAT) -> tuple[str, str | None]:
    with pytest.raises(Declined) as caught:
        best(body, dialect)
    assert caught.value.refusal.status == 400
    return caught.value.refusal.reason, caught.value.refusal.param


# --- caps -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "cap", "fields"),
    [
        ({**SAID, "max_tokens": 50}, 50, {"max_tokens"}),
        ({**SAID, "max_completion_tokens": 60}, 60, {"max_completion_tokens"}),
        ({**SAID, "max_completion_tokens": 60, "max_tokens": 50}, 50, {"max_tokens", "max_completion_tokens"}),
        ({**SAID, "max_tokens": None}, 4096, {"max_completion_tokens"}),
        (SAID, 4096, {"max_completion_tokens"}),
    ],
    ids=["old", "new", "both", "null", "none"],
)
def test_the_cap_that_is_held_is_the_cap_that_is_sent(body: dict[str, Any], cap: int, fields: set[str]) -> None:
    priced = best(body)
    assert priced.way.output_tokens == cap
    written = sent(body)
    assert {field for field in ("max_tokens", "max_completion_tokens") if written.get(field) is not None} == fields
    assert all(written[field] == 7 for field in fields)


def test_the_cap_of_the_responses_api() -> None:
    assert best({**ASKED, "max_output_tokens": 80}, RESPONSES).way.output_tokens == 80
    assert best(ASKED, RESPONSES).way.output_tokens == 4096
    assert sent(ASKED, RESPONSES)["max_output_tokens"] == 7


@pytest.mark.parametrize("cap", [0, -1, 1.5, "50", True, [], 2**40])
def test_a_cap_that_is_none_is_refused(cap: object) -> None:
    assert declined({**SAID, "max_tokens": cap}) == ("invalid", "max_tokens")
    assert declined({**SAID, "max_completion_tokens": cap}) == ("invalid", "max_completion_tokens")
    assert declined({**ASKED, "max_output_tokens": cap}, RESPONSES) == ("invalid", "max_output_tokens")


@pytest.mark.parametrize("field", ["n", "best_of"])
def test_every_choice_may_reach_the_cap(field: str) -> None:
    one = best({**SAID, "max_tokens": 100}).worst()["usd"]
    four = best({**SAID, "max_tokens": 100, field: 4}).worst()["usd"]
    assert four - one == 3 * 100 * 600
    assert declined({**SAID, field: 0}) == ("invalid", field)
    assert declined({**SAID, field: 129}) == ("invalid", field)


@pytest.mark.parametrize("written", ["Max_Tokens", "N", "Stream", "MODEL", "max_Completion_tokens"])
def test_a_field_in_another_case_is_refused_since_some_would_follow_it(written: str) -> None:
    reason, param = declined({**SAID, written: 100_000})
    assert (reason, param) == ("invalid", written.lower())


def test_a_key_given_twice_is_refused_since_we_cannot_know_which_one_counts() -> None:
    with pytest.raises(Declined) as caught:
        Body(b'{"model":"gpt-4o-mini","messages":[{"role":"user","content":"a","content":"b"}]}')
    assert caught.value.refusal.message == "content: this key is given twice"


# --- what goes in -----------------------------------------------------------------------------------------------------


def intake(body: object, dialect: Dialect = CHAT) -> int:
    return best(body, dialect).input_tokens


TOOL = {"type": "function", "function": {"name": "f", "description": "long " * 200, "parameters": {"type": "object"}}}


@pytest.mark.parametrize(
    "more",
    [
        {"tools": [TOOL]},
        {"functions": [TOOL["function"]]},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"title": "long " * 200}}}},
        {"documents": [{"text": "long " * 200}]},
        {"messages": [*MESSAGES, {"role": "assistant", "tool_calls": [{"function": {"arguments": "long " * 200}}]}]},
        {"messages": [*MESSAGES, {"role": "tool", "content": "long " * 200}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "long " * 200}]}]},
        {"a field of tomorrow": {"deep": ["long " * 200]}},
    ],
    ids=lambda more: next(iter(more)),
)
def test_whatever_a_model_may_read_is_counted(more: Mapping[str, Any]) -> None:
    assert intake({**SAID, **more}) >= intake(SAID) + 190


@pytest.mark.parametrize("more", [{"instructions": "long " * 200}, {"tools": [{**TOOL, "name": "f"}]}], ids=str)
def test_whatever_a_model_may_read_is_counted_in_the_responses_api(more: Mapping[str, Any]) -> None:
    assert intake({**ASKED, **more}, RESPONSES) >= intake(ASKED, RESPONSES) + 190


def test_an_image_is_bounded_by_the_largest_there_is_not_by_its_address_or_bytes() -> None:
    def shown(url: str) -> int:
        part = {"type": "image_url", "image_url": {"url": url}}
        return intake({**SAID, "messages": [{"role": "user", "content": [part]}]})

    by_address = shown("https://example.org/cat.png")
    by_bytes = shown("data:image/png;base64," + base64.b64encode(b"x" * 300_000).decode())
    assert by_address == by_bytes
    assert 40_000 < by_address < 60_000


def test_tokens_as_numbers_are_counted_one_by_one() -> None:
    body = {"model": "text-embedding-3-small", "input": [[1, 2, 3], [4] * 500]}
    assert intake(body, EMBEDDINGS) >= 503
    assert best(body, EMBEDDINGS).worst()["usd"] >= 503 * 20


def test_embeddings_cost_what_goes_in() -> None:
    body = {"model": "text-embedding-3-small", "input": ["one", "two"]}
    priced = best(body, EMBEDDINGS)
    assert priced.way.output_tokens == 0
    assert json.loads(EMBEDDINGS.write(incoming(body), call_of(body, EMBEDDINGS), priced.way).body) == body


# --- what has no bound ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("web_search_options", {}), ("prediction", {"type": "content", "content": "x"}), ("models", ["a", "b"]),
        ("plugins", [{"id": "web"}]),
    ],
)  # fmt: skip
def test_what_could_cost_anything_is_refused_in_a_chat(field: str, value: object) -> None:
    assert declined({**SAID, field: value}) == ("cannot_bound", field)
    assert best({**SAID, field: None}).way.output_tokens == 4096


@pytest.mark.parametrize("model", ["gpt-4o-search-preview", "gpt-5-search-api"])
def test_a_model_that_searches_by_itself_is_refused(model: str) -> None:
    assert declined({**SAID, "model": model}) == ("cannot_bound", "model")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("previous_response_id", "resp_1"), ("conversation", "conv_1"), ("conversation", {"id": "conv_1"}),
        ("prompt", {"id": "pmpt_1"}), ("background", True), ("context_management", [{"type": "compaction"}]),
    ],
)  # fmt: skip
def test_what_could_cost_anything_is_refused_in_the_responses_api(field: str, value: object) -> None:
    assert declined({**ASKED, field: value}, RESPONSES) == ("cannot_bound", field)
    assert best({**ASKED, field: None}, RESPONSES).way.output_tokens == 4096


@pytest.mark.parametrize(
    "kind",
    ["web_search", "web_search_preview", "file_search", "code_interpreter", "image_generation", "mcp",
     "computer_use_preview", "a_tool_of_tomorrow"],
)  # fmt: skip
def test_a_tool_that_the_provider_runs_is_refused(kind: str) -> None:
    assert declined({**ASKED, "tools": [{"type": kind}]}, RESPONSES) == ("cannot_bound", "tools")


def test_an_item_that_lies_at_the_provider_is_refused() -> None:
    items = [{"type": "item_reference", "id": "msg_1"}]
    assert declined({**ASKED, "input": items}, RESPONSES) == ("cannot_bound", "input")


@pytest.mark.parametrize("tier", ["auto", "default", None])
def test_the_standard_service_tier_may_be_named(tier: str | None) -> None:
    assert best({**SAID, "service_tier": tier}).call.service == ""


def test_a_service_tier_is_held_at_its_own_price_where_it_has_one_and_refused_where_not() -> None:
    five = {**SAID, "model": "gpt-5-mini"}
    standard, priority = best(five).worst()["usd"], best({**five, "service_tier": "priority"}).worst()["usd"]
    assert priority > standard
    assert declined({**SAID, "service_tier": "scale"}) == ("cannot_bound", "service_tier")


@pytest.mark.parametrize("body", [{"messages": []}, {"model": ""}, {"model": 7}, {"model": None}], ids=str)
def test_a_body_without_a_model_is_refused(body: object) -> None:
    assert declined(body) == ("invalid", "model")


def test_f2_a_model_without_a_price_is_refused() -> None:
    assert declined({**SAID, "model": "gpt-unheard-of"}) == ("model_not_priced", "model")


def test_embeddings_are_no_stream() -> None:
    assert declined({"model": "text-embedding-3-small", "input": "x", "stream": True}, EMBEDDINGS)[1] == "stream"


# --- what is sent -----------------------------------------------------------------------------------------------------


def test_only_model_cap_and_stream_options_are_written_anew() -> None:
    body = {**SAID, "stream": True, "temperature": 0.70, "logprobs": True, "top_logprobs": 3, "store": True, "seed": 7}
    written = sent(body)
    changed = {"max_completion_tokens": 7, "stream_options": {"include_usage": True}}
    assert written == {**body, **changed}


def test_stream_options_that_are_none_are_refused() -> None:
    assert declined({**SAID, "stream": True, "stream_options": "usage"}) == ("invalid", "stream_options")


@pytest.mark.parametrize(
    ("model", "hidden"),
    [
        ("gpt-4o", False), ("gpt-4.1-mini", False), ("gpt-3.5-turbo", False), ("ft:gpt-4o-mini:acme::x", False),
        ("meta-llama/llama-3.3-70b", False), ("o4-mini", True), ("gpt-5", True), ("openai/o3", True),
        ("gemini-2.5-pro", True), ("grok-4", True), ("a model of tomorrow", True),
    ],
)  # fmt: skip
def test_a_model_may_think_unseen_unless_it_is_known_not_to(model: str, hidden: bool) -> None:
    assert call_of({**SAID, "model": model}).hidden is hidden
