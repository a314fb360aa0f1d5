"""OpenAI's embeddings: only what goes in costs, and all of it is known before."""

from __future__ import annotations

from collections.abc import Mapping

from web.proxy.bodies import check_spelling, text_of
from web.proxy.dialect import Call, Incoming, Meter, Outgoing, Provider, Reading, Way
from web.proxy.intake import Intake
from web.proxy.openai import OPENAI
from web.proxy.openai_usage import embeddings_usage
from web.proxy.refusals import Refusal, bad


class Embeddings:
    """`POST /openai/v1/embeddings`."""

    provider: Provider = OPENAI
    path = "/embeddings"

    def read(self, incoming: Incoming) -> Call:
        body = incoming.body.value
        check_spelling(body, ("model", "input", "stream"))
        if body.get("stream"):
            raise bad("stream", "embeddings are no stream")
        return Call(
            model=text_of(body, "model"),
            input_tokens=lambda asked: _intake(body, asked).most_tokens(),
            output_tokens=0,
        )

    def write(self, incoming: Incoming, call: Call, way: Way) -> Outgoing:
        return Outgoing(self.path, incoming.body.with_(model=way.model))

    def reading(self, answer: object, headers: Mapping[str, str]) -> Reading:
        if not isinstance(answer, dict):
            return Reading()
        return Reading(embeddings_usage(answer.get("usage")), str(answer.get("model") or ""))

    def allowance_gone(self, status: int, answer: object) -> bool:
        return False

    def meter(self, incoming: Incoming, call: Call, way: Way, headers: Mapping[str, str]) -> Meter:
        raise AssertionError("embeddings are no stream")  # `read` lets none through

    def error_event(self, refusal: Refusal, *, request_id: str) -> bytes:
        return OPENAI.error_event(refusal, request_id=request_id)


def _intake(body: Mapping[str, object], model: str) -> Intake:
    intake = Intake(model)
    for field, value in body.items():
        if field == "input" and value is not None:
            intake.input(value)
        elif field not in ("model", "user", "encoding_format") and isinstance(value, str | dict | list):
            intake.json(value)
    return intake


EMBEDDINGS = Embeddings()
