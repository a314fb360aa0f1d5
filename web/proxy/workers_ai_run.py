"""Workers AI's own route: what a run of one model could cost, what it says that it used, how its streams are counted.

What a model makes follows from what it is asked: `prompt` or `messages` is text, up to `max_tokens`; `text` alone
becomes vectors, which cost nothing on their way out. Pictures and sound have no tokens: they need a price a call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from engine.prices import Usage
from web.proxy import sse
from web.proxy.bodies import check_spelling, count_of, flag_of, path_of, read_json
from web.proxy.dialect import Call, Incoming, Meter, Outgoing, Reading, Way
from web.proxy.intake import Intake
from web.proxy.openai import hides_tokens
from web.proxy.refusals import Refusal, unbounded
from web.proxy.sse import Event
from web.proxy.workers_ai import WORKERS_AI, allowance_gone, neurons_of

DONE = "[DONE]"

_WITHOUT_TOKENS = re.compile(r"flux|diffusion|dreamshaper|lucid-|phoenix-|whisper|melotts|aura-|nova-3|resnet|detr")
"""Models that make pictures, or hear, speak or look: none of them takes a cap."""

_LATER = ("requests", "queueRequest")
"""Runs that are put in a queue: what they cost is not known when their answer comes."""

_GUARDED = ("input", "max_tokens", "messages", "prompt", "stream", "text", "tools", *_LATER)
_COUNTED_APART = frozenset({"audio", "image", "images", "mask", "messages", "prompt", "text", "tools"})
_NOT_READ = frozenset({"lora", "max_tokens", "raw", "seed", "stream", "temperature", "top_k", "top_p"})


class Run:
    """`POST /workers-ai/run/{model}`."""

    provider = WORKERS_AI

    def read(self, incoming: Incoming) -> Call:
        body, model = incoming.body.value, path_of(incoming.match["model"], field="model")
        check_spelling(body, _GUARDED)
        _check_bounded(incoming)
        return Call(
            model=model, input_tokens=lambda model: _intake(body, model).most_tokens(),
            output_tokens=count_of(body, "max_tokens") if _makes_text(body, model) else 0,
            stream=flag_of(body, "stream"), capped="input" not in body or not _makes_text(body, model),
            hidden=hides_tokens(model),
        )  # fmt: skip

    def write(self, incoming: Incoming, call: Call, way: Way) -> Outgoing:
        cap = {"max_tokens": way.output_tokens} if way.output_tokens else {}
        return Outgoing(f"/run/{path_of(way.model, field='model')}", incoming.body.with_(**cap))

    def reading(self, answer: object, headers: Mapping[str, str]) -> Reading:
        result = answer.get("result") if isinstance(answer, dict) else None
        usage = result.get("usage") if isinstance(result, dict) else None
        if usage is None and isinstance(answer, dict):
            usage = answer.get("usage")
        return Reading(usage_of(usage, headers))

    def allowance_gone(self, status: int, answer: object) -> bool:
        return allowance_gone(status, answer)

    def meter(self, incoming: Incoming, call: Call, way: Way, headers: Mapping[str, str]) -> Meter:
        return RunMeter(call, way)

    def error_event(self, refusal: Refusal, *, request_id: str) -> bytes:
        return WORKERS_AI.error_event(refusal, request_id=request_id)


def _check_bounded(incoming: Incoming) -> None:
    """Raises `Declined` for what may cost more than this one run of it."""
    body = incoming.body.value
    for name in _LATER:
        if body.get(name) or incoming.query.get(name, "").lower() == "true":
            raise unbounded(name, "what is put in a queue is paid for later")
    if "text" in body and not body.keys().isdisjoint({"source_lang", "target_lang", "max_length"}):
        raise unbounded("text", "what becomes of it takes no cap")


def _makes_text(body: Mapping[str, object], model: str) -> bool:
    asked = not body.keys().isdisjoint({"input", "messages", "prompt"})
    return asked and _WITHOUT_TOKENS.search(model) is None


def _intake(body: Mapping[str, object], model: str) -> Intake:
    """All that goes in."""
    intake = Intake(model)
    for name in ("prompt", "text"):
        if body.get(name) is not None:
            intake.input(body[name])
    if body.get("messages") is not None:
        intake.messages(body["messages"])
    if body.get("tools"):
        intake.tools(body["tools"])
    for name in ("image", "images", "mask"):
        if body.get(name) is not None:
            intake.messages([{"role": "user", "content": [{"type": "image"}] * _images(body[name])}])
    for name in sorted(body.keys() - _COUNTED_APART - _NOT_READ):
        intake.json(body[name])
    return intake


def _images(value: object) -> int:
    """One, also as a list of its bytes, or as many as there are in a list."""
    return len(value) if isinstance(value, list) and any(isinstance(each, str | dict) for each in value) else 1


def usage_of(said: object, headers: Mapping[str, str] | None = None) -> Usage | None:
    """Tokens and neurons, None where neither is said."""
    neurons = neurons_of(said, headers)
    known = said if isinstance(said, dict) else {}
    counts = [known.get(name) for name in ("prompt_tokens", "completion_tokens")]
    put_in, made = (count if type(count) is int and count >= 0 else None for count in counts)
    if neurons is None and made is None:
        return None
    return Usage(input_tokens=put_in or 0, output_tokens=made or 0, neurons=neurons)


class RunMeter(Meter):
    """For one stream: `{"response": "..."}` a piece, or pieces as chat completions have them."""

    def __init__(self, call: Call, way: Way) -> None:
        super().__init__(call, way)
        self._chat = False

    def feed(self, event: Event) -> Sequence[bytes]:
        if event.data is not None and event.data.strip() == DONE:
            self.ended = True
            return [event.raw]
        said = read_json(event.data) if event.data is not None else None
        if isinstance(said, dict):
            self._count(said, event)
        return [event.raw]

    def _count(self, said: Mapping[str, object], event: Event) -> None:
        if said.get("error") or said.get("errors") or event.name == "error":
            self.failed = True
        for text in _shown(said):
            self.output.add(text)
        self._chat = self._chat or "choices" in said
        usage = usage_of(said.get("usage"))
        if usage is not None:
            self.reading = Reading(usage)

    def cut(self, seen: Usage) -> Sequence[bytes]:
        counts = {"prompt_tokens": seen.input_tokens, "completion_tokens": seen.output_tokens}
        usage = {**counts, "total_tokens": seen.input_tokens + seen.output_tokens}
        choice = {"index": 0, "delta": {}, "finish_reason": "length"}
        last = {"choices": [choice], "usage": usage} if self._chat else {"response": "", "usage": usage}
        return [sse.encode(msgspec.json.encode(last).decode()), sse.encode(DONE)]


def _shown(said: Mapping[str, object]) -> Iterator[str]:
    """Every text of a piece that the model wrote."""
    for name in ("response", "tool_calls"):
        yield from _texts(said.get(name))
    choices = said.get("choices")
    for choice in choices if isinstance(choices, list) else []:
        if isinstance(choice, dict):
            yield from _texts(choice.get("delta"))
            yield from _texts(choice.get("text"))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for member in value.values():
            yield from _texts(member)
    elif isinstance(value, list):
        for member in value:
            yield from _texts(member)


RUN = Run()
