"""Whatever a client or a provider says, a dialect understands it or declines it. It never breaks."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from engine.prices import Usage
from web.proxy.bodies import Body
from web.proxy.dialect import Call, Dialect, Incoming, Way
from web.proxy.refusals import Declined
from web.proxy.routes import GUARDED
from web.proxy.sse import Event

DIALECTS = dict(GUARDED)
STREAMS = {path: dialect for path, dialect in GUARDED if "embeddings" not in path}
WORDS = (
    "model", "max_tokens", "messages", "content", "role", "type", "text", "system", "tools", "thinking",
    "budget_tokens",
    "usage", "output_tokens", "input_tokens", "cache_creation", "delta", "message", "index", "stop_reason", "choices",
    "result", "response", "neurons", "completion_tokens", "prompt_tokens", "context_management", "edits", "input",
    "prompt", "stream", "stream_options", "n", "iterations", "finish_reason", "error", "errors", "output", "image",
)  # fmt: skip
TYPES = (
    "message_start", "message_delta", "message_stop", "content_block_start", "content_block_delta", "error", "enabled",
    "text", "image", "document", "response.completed", "response.output_text.delta", "response.created", "user",
)  # fmt: skip

scalars = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.sampled_from(TYPES) | st.text(max_size=8)
    | st.floats(allow_nan=False, allow_infinity=False)
)  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=6),
    max_leaves=20,
)
objects = st.dictionaries(st.sampled_from(WORDS), values, max_size=10)
often = settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow], deadline=None)


def exact(value: object) -> Any:
    """As a provider's answer is read: numbers exactly."""
    return json.loads(json.dumps(value), parse_float=Decimal)


def incoming(body: dict[str, Any]) -> Incoming:
    return Incoming(body=Body(json.dumps(body).encode()), match={"model": "@cf/meta/llama-3.1-8b-instruct"})


@pytest.mark.parametrize("path", DIALECTS)
@often
@given(body=objects)
def test_any_body_is_understood_or_declined(path: str, body: dict[str, Any]) -> None:
    dialect: Dialect = DIALECTS[path]
    request = incoming({**body, "model": "gpt-4o-mini"})
    try:
        call = dialect.read(request)
        bound = call.input_tokens(call.model)
    except Declined:
        return
    assert bound >= 0
    sent = json.loads(dialect.write(request, call, Way("gpt-4o-mini", 7)).body)
    changed = {name for name in request.body.value if sent.get(name) != json.loads(json.dumps(body)).get(name)}
    caps = {"max_tokens", "max_completion_tokens", "max_output_tokens"}
    assert changed <= {"model", "stream_options", "thinking", *caps}


@pytest.mark.parametrize("path", DIALECTS)
@often
@given(answer=values)
def test_any_answer_is_a_report_or_none(path: str, answer: object) -> None:
    dialect: Dialect = DIALECTS[path]
    reading = dialect.reading(exact(answer), {"cf-ai-neurons": str(answer)[:40]})
    assert reading.usage is None or (reading.usage.input_tokens >= 0 and reading.usage.output_tokens >= 0)
    assert isinstance(dialect.allowance_gone(429, exact(answer)), bool)


@pytest.mark.parametrize("path", STREAMS)
@often
@given(events=st.lists(values, max_size=8), names=st.sampled_from(("", "error", "message_delta")))
@example(events=[{"type": [None], "response": {}}], names="")
def test_any_events_pass_and_are_counted(path: str, events: list[object], names: str) -> None:
    call = Call(model="gpt-4o-mini", input_tokens=lambda model: 5, output_tokens=9, stream=True)
    dialect = STREAMS[path]
    meter = dialect.meter(incoming({"model": "gpt-4o-mini"}), call, Way("gpt-4o-mini", 9), {})
    for event in [*events, {"type": "message_start", "message": events[:1]}, {"choices": events}, {"response": events}]:
        text = json.dumps(event)
        passed = meter.feed(Event(text, names, text.encode()))
        assert b"".join(passed) in (b"", text.encode())
    meter.close()
    assert meter.output.most >= meter.output.least >= 0
    assert all(isinstance(piece, bytes) for piece in meter.cut(Usage(input_tokens=1, output_tokens=2)))
