"""OpenAI's chat completions: what one of them could cost, how it is sent, and what it says that it used.

Whatever has no bound that we know, or no price in the book, is refused by its field; every other field passes as it is.
"""

from __future__ import annotations

from collections.abc import Mapping

from web.proxy.bodies import check_spelling, count_of, flag_of, text_of
from web.proxy.dialect import Call, Incoming, Meter, Outgoing, Provider, Reading, Way
from web.proxy.intake import Intake
from web.proxy.openai import OPENAI, check_bounded, hides_tokens
from web.proxy.openai_chat_stream import ChatMeter
from web.proxy.openai_usage import chat_usage, service_of
from web.proxy.refusals import Refusal

CAPS = ("max_completion_tokens", "max_tokens")
CHOICES_MAX = 128

_GUARDED = (*CAPS, "model", "n", "best_of", "stream", "stream_options", "messages", "service_tier")
_UNBOUNDED = {
    "web_search_options": "the searches that the provider makes are billed by number, and what they find as input",
    "prediction": "rejected prediction tokens are billed beside the answer, and no cap holds for them",
    "models": "another model could answer, at another price; name one",
    "plugins": "what a plugin does has a price of its own",
}
_NOT_IN_THE_PROMPT = frozenset(
    {
        "model",
        "metadata",
        "user",
        "safety_identifier",
        "prompt_cache_key",
        "logit_bias",
        "service_tier",
        "stream_options",
    }
)
"""Texts among the fields that no model reads."""


class ChatCompletions:
    """`POST /openai/v1/chat/completions`."""

    provider: Provider = OPENAI
    path = "/chat/completions"
    cap = CAPS[0]
    """Put into a call that names none."""

    def read(self, incoming: Incoming) -> Call:
        body = incoming.body.value
        check_spelling(body, _GUARDED)
        model = text_of(body, "model")
        check_bounded(body, _UNBOUNDED, model)
        stream = flag_of(body, "stream")
        if stream:
            incoming.body.member("stream_options")
        caps = [cap for cap in (count_of(body, field) for field in CAPS) if cap is not None]
        choices = [count_of(body, field, most=CHOICES_MAX) or 1 for field in ("n", "best_of")]
        intake = _intake(body, model)
        return Call(
            model=model,
            input_tokens=lambda asked: (intake if asked == model else _intake(body, asked)).most_tokens(),
            output_tokens=min(caps, default=None),
            choices=max(choices),
            stream=stream,
            audio=_may_sound(body, model) or intake.audio,
            service=service_of(body.get("service_tier")),
            hidden=hides_tokens(model),
        )

    def write(self, incoming: Incoming, call: Call, way: Way) -> Outgoing:
        body = incoming.body
        fields = [field for field in CAPS if body.value.get(field) is not None] or [self.cap]
        changed: dict[str, object] = {"model": way.model, **dict.fromkeys(fields, way.output_tokens)}
        if call.stream:
            changed["stream_options"] = {**body.member("stream_options"), "include_usage": True}
        return Outgoing(self.path, body.with_(**changed))

    def reading(self, answer: object, headers: Mapping[str, str]) -> Reading:
        if not isinstance(answer, dict):
            return Reading()
        usage = chat_usage(answer.get("usage"), service=answer.get("service_tier"))
        return Reading(usage, str(answer.get("model") or ""))

    def allowance_gone(self, status: int, answer: object) -> bool:
        return False

    def meter(self, incoming: Incoming, call: Call, way: Way, headers: Mapping[str, str]) -> Meter:
        asked = incoming.body.value.get("stream_options")
        return ChatMeter(call, way, shows_usage=isinstance(asked, dict) and asked.get("include_usage") is True)

    def error_event(self, refusal: Refusal, *, request_id: str) -> bytes:
        return OPENAI.error_event(refusal, request_id=request_id)


def _intake(body: Mapping[str, object], model: str) -> Intake:
    """All that a model may get to read: what is known by its place, and every other text, whoever reads it."""
    intake = Intake(model)
    for field, value in body.items():
        if field == "messages":
            intake.messages(value)
        elif field in ("tools", "functions") and value is not None:
            intake.tools(value)
        elif field not in _NOT_IN_THE_PROMPT and isinstance(value, str | dict | list):
            intake.json(value)
    return intake


def _may_sound(body: Mapping[str, object], model: str) -> bool:
    modalities = body.get("modalities")
    asked = isinstance(modalities, list) and "audio" in modalities
    return asked or body.get("audio") is not None or "audio" in model


CHAT = ChatCompletions()
