"""Anthropic's messages: what one of them could cost, what it says that it used, and how a stream of it is counted.

Its `input_tokens` leave out what was read from a cache or written to one; thinking is output like any other. Tools that
the provider runs itself are refused: how often it runs them, and what they bring back to be read, has no bound.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from web.proxy.anthropic import ANTHROPIC, passed_headers
from web.proxy.anthropic_stream import MessageMeter
from web.proxy.anthropic_usage import reading_of
from web.proxy.bodies import check_spelling, count_of, flag_of, text_of
from web.proxy.dialect import Call, Incoming, Meter, Outgoing, Reading, Way
from web.proxy.intake import Intake
from web.proxy.refusals import Refusal, unbounded

THINKING_BUDGET_MIN = 1_024
"""The least that the provider takes."""

_CLIENT_TOOLS = ("bash_", "browser_toolset_", "computer_", "memory_", "text_editor_")
"""Tools that it describes and the client runs: their answers come in as calls of their own."""

_DATED_TOOL = re.compile(r"[a-z0-9_]+_20\d{6}")
"""Every tool that the provider describes has the day of its version in its name; no block of content has."""

_RUN_THERE = "the provider runs this tool itself, as often as it likes"
_UNBOUNDED_FIELDS = {
    "billing_policy": "who pays for it is decided elsewhere",
    "compaction": "what the provider sums up for itself is billed beside the answer",
    "container": "the provider would run programs, for as long as it takes",
    "fallback_credit_token": "another call has a part in what it costs",
    "fallbacks": "other models would answer, at other prices",
    "mcp_servers": "the provider would call tools by itself, as often as it likes",
    "thread": "what the provider remembers of it goes in as well",
}
_BOUNDED_EDITS = ("clear_tool_uses_", "clear_thinking_")
_ONE_PRICE = {"speed": ("standard", "fast"), "inference_geo": ("global",)}
"""Fields in which any other value has another price, which no price book has."""

_GUARDED = (
    "context_management", "max_tokens", "messages", "model", "stream", "system", "thinking", "tools",
    *_UNBOUNDED_FIELDS, *_ONE_PRICE,
)  # fmt: skip
_COUNTED_APART = frozenset({"messages", "system", "tools"})
_NOT_READ = frozenset({"max_tokens", "metadata", "model", "stream", "stop_sequences", "temperature", "top_k", "top_p"})
"""Fields that the model never reads. Whatever is not known counts as if it did."""

_THINKS_ONLY_WHEN_ASKED = re.compile(r"claude-(?:3|instant|v1|2|(?:haiku|opus|sonnet)-4)")


class Messages:
    """`POST /anthropic/v1/messages`."""

    provider = ANTHROPIC

    def read(self, incoming: Incoming) -> Call:
        body = incoming.body.value
        check_spelling(body, _GUARDED)
        model = text_of(body, "model")
        _check_bounded(body)
        return Call(
            model=model, input_tokens=lambda model: _intake(body, model).most_tokens(),
            output_tokens=count_of(body, "max_tokens", least=0), stream=flag_of(body, "stream"),
            service="fast" if body.get("speed") == "fast" else "", hidden=_thinks(body, model),
        )  # fmt: skip

    def write(self, incoming: Incoming, call: Call, way: Way) -> Outgoing:
        changed: dict[str, object] = {"model": way.model, "max_tokens": way.output_tokens}
        thinking = _thinking_within(incoming.body.value, way)
        if thinking is not None:
            changed["thinking"] = thinking
        path = "/v1/messages?beta=true" if incoming.query.get("beta") == "true" else "/v1/messages"
        return Outgoing(path, incoming.body.with_(**changed), passed_headers(incoming.headers))

    def reading(self, answer: object, headers: Mapping[str, str]) -> Reading:
        return reading_of(answer)

    def allowance_gone(self, status: int, answer: object) -> bool:
        return False  # its limits are by the month, and no figure of a day

    def meter(self, incoming: Incoming, call: Call, way: Way, headers: Mapping[str, str]) -> Meter:
        return MessageMeter(call, way)

    def error_event(self, refusal: Refusal, *, request_id: str) -> bytes:
        return ANTHROPIC.error_event(refusal, request_id=request_id)


def _intake(body: Mapping[str, object], model: str) -> Intake:
    """All that goes in."""
    intake = Intake(model)
    intake.messages(body.get("messages"))
    if body.get("system") is not None:
        intake.messages(body["system"])
    if body.get("tools"):
        intake.tools(body["tools"])
    for name in sorted(body.keys() - _COUNTED_APART - _NOT_READ):
        intake.json(body[name])
    return intake


def _check_bounded(body: Mapping[str, object]) -> None:
    """Raises `Declined` for whatever may cost more than its tokens in and out."""
    for name, why in _UNBOUNDED_FIELDS.items():
        if body.get(name):
            raise unbounded(name, why)
    for name, allowed in _ONE_PRICE.items():
        if body.get(name) not in (None, *allowed):
            raise unbounded(name, "this has another price than the one known here")
    tools = body.get("tools")
    for at, tool in enumerate(tools if isinstance(tools, list) else []):
        kind = tool.get("type") if isinstance(tool, dict) else None
        if kind not in (None, "custom") and not str(kind).startswith(_CLIENT_TOOLS):
            raise unbounded(f"tools[{at}]", _RUN_THERE)
    if _offers_tools(body.get("messages")):
        raise unbounded("messages", _RUN_THERE)
    management = body.get("context_management")
    edits = management.get("edits") if isinstance(management, dict) else None
    for at, edit in enumerate(edits if isinstance(edits, list) else []):
        if not (isinstance(edit, dict) and str(edit.get("type")).startswith(_BOUNDED_EDITS)):
            raise unbounded(f"context_management.edits[{at}]", "it is billed beside the answer")


def _offers_tools(messages: object) -> bool:
    """Whether a tool that the provider runs is offered among what is said, and not in `tools` where it belongs."""
    left: list[object] = [messages]
    while left:
        said = left.pop()
        if isinstance(said, dict):
            kind = said.get("type")
            if isinstance(kind, str) and _DATED_TOOL.fullmatch(kind) and not kind.startswith(_CLIENT_TOOLS):
                return True
            left += [member for name, member in said.items() if name != "input"]
        elif isinstance(said, list):
            left += said
    return False


# --- thinking ---------------------------------------------------------------------------------------------------------


def _thinks(body: Mapping[str, object], model: str) -> bool:
    """Whether tokens may be billed that no stream shows: thinking may be summed up, or left out."""
    thinking = body.get("thinking")
    if isinstance(thinking, dict):
        return thinking.get("type") != "disabled"
    return _THINKS_ONLY_WHEN_ASKED.match(model) is None


def _thinking_within(body: Mapping[str, object], way: Way) -> Mapping[str, object] | None:
    """The client's thinking, made smaller where the cap of this way has become too small for it. None: as it is.

    A budget must stay below the cap. A client whose own cap was below it already has its reasons.
    """
    thinking, asked = body.get("thinking"), body.get("max_tokens")
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    if not isinstance(thinking, dict) or type(budget) is not int or type(asked) is not int:
        return None
    if budget >= asked or budget < way.output_tokens:
        return None
    if way.output_tokens <= THINKING_BUDGET_MIN:
        return {"type": "disabled"}
    return {**thinking, "budget_tokens": way.output_tokens - 1}


MESSAGES = Messages()
