"""OpenAI's Responses API: what one call could cost, how it is sent, and what it says that it used.

What the provider would add to the prompt by itself (an earlier response, a conversation, a stored prompt) and the tools
that it runs have no bound known here. They are refused by their field; every other field passes as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from web.proxy import sse
from web.proxy.bodies import check_spelling, count_of, flag_of, text_of
from web.proxy.dialect import Call, Incoming, Meter, Outgoing, Reading, Way
from web.proxy.intake import Intake
from web.proxy.openai import OPENAI, check_bounded, hides_tokens
from web.proxy.openai_responses_stream import ResponsesMeter
from web.proxy.openai_usage import responses_usage, service_of
from web.proxy.refusals import Refusal, unbounded

CAP = "max_output_tokens"
TOOLS = frozenset({"function", "custom"})
"""Tools that the caller runs itself. Every other one is run, and billed, by the provider."""

_GUARDED = (CAP, "model", "stream", "input", "instructions", "tools", "background", "service_tier")
_UNBOUNDED = {
    "previous_response_id": "all that was said before goes in again; send it as `input`",
    "conversation": "all that was said before goes in again; send it as `input`",
    "prompt": "a prompt that is stored at the provider goes in; send its text",
    "background": "it would run on after its answer, and what it used be known only later",
    "context_management": "the provider makes summaries by itself, which are billed",
    "models": "another model could answer, at another price; name one",
    "plugins": "what a plugin does has a price of its own",
}
_NOT_IN_THE_PROMPT = frozenset(
    {"model", "metadata", "user", "safety_identifier", "prompt_cache_key", "service_tier", "include", "truncation"}
)


class Responses:
    """`POST /openai/v1/responses`."""

    provider = OPENAI

    def read(self, incoming: Incoming) -> Call:
        body = incoming.body.value
        check_spelling(body, _GUARDED)
        model = text_of(body, "model")
        check_bounded(body, _UNBOUNDED, model)
        _check_tools(body.get("tools"))
        for kind in _kinds(body.get("input")):
            if kind == "item_reference":
                raise unbounded("input", "an item that is stored at the provider goes in; send the item itself")
        intake = _intake(body, model)
        return Call(
            model=model,
            input_tokens=lambda asked: (intake if asked == model else _intake(body, asked)).most_tokens(),
            output_tokens=count_of(body, CAP),
            stream=flag_of(body, "stream"),
            audio="audio" in model or intake.audio,
            service=service_of(body.get("service_tier")),
            hidden=hides_tokens(model),
        )

    def write(self, incoming: Incoming, call: Call, way: Way) -> Outgoing:
        return Outgoing("/responses", incoming.body.with_(model=way.model, **{CAP: way.output_tokens}))

    def reading(self, answer: object, headers: Mapping[str, str]) -> Reading:
        if not isinstance(answer, dict):
            return Reading()
        usage = responses_usage(answer.get("usage"), service=answer.get("service_tier"))
        return Reading(usage, str(answer.get("model") or ""))

    def allowance_gone(self, status: int, answer: object) -> bool:
        return False

    def meter(self, incoming: Incoming, call: Call, way: Way, headers: Mapping[str, str]) -> Meter:
        return ResponsesMeter(call, way)

    def error_event(self, refusal: Refusal, *, request_id: str) -> bytes:
        error = {"type": "error", "code": refusal.reason, "message": refusal.message, "param": None}
        return sse.encode(msgspec.json.encode(error).decode(), name="error")


def _check_tools(tools: object) -> None:
    for tool in tools if isinstance(tools, list) else []:
        kind = tool.get("type") if isinstance(tool, dict) else None
        if not isinstance(kind, str) or kind not in TOOLS:
            raise unbounded("tools", "only tools of type function and custom, which the caller runs, are known here")


def _kinds(value: object) -> Iterator[object]:
    """The type of every item, and of every part of one."""
    if isinstance(value, dict):
        yield value.get("type")
        for member in value.values():
            yield from _kinds(member)
    elif isinstance(value, list):
        for member in value:
            yield from _kinds(member)


def _intake(body: Mapping[str, object], model: str) -> Intake:
    """All that a model may get to read: what is known by its place, and every other text, whoever reads it."""
    intake = Intake(model)
    for field, value in body.items():
        if field == "input" and value is not None:
            intake.input(value)
        elif field == "tools" and value is not None:
            intake.tools(value)
        elif field not in _NOT_IN_THE_PROMPT and isinstance(value, str | dict | list):
            intake.json(value)
    return intake


RESPONSES = Responses()
