"""Workers AI's routes in OpenAI's words: the same calls, sent elsewhere, that say neurons beside their tokens."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from engine.prices import Usage
from web.proxy.dialect import Call, Incoming, Meter, Reading, Way
from web.proxy.openai_chat import ChatCompletions
from web.proxy.openai_chat_stream import ChatMeter
from web.proxy.openai_embeddings import Embeddings
from web.proxy.workers_ai import WORKERS_AI, allowance_gone, neurons_of


class WorkersChat(ChatCompletions):
    """`POST /workers-ai/v1/chat/completions`."""

    provider = WORKERS_AI
    path = "/v1/chat/completions"
    cap = "max_tokens"

    def reading(self, answer: object, headers: Mapping[str, str]) -> Reading:
        return _with_neurons(super().reading(answer, headers), answer, headers)

    def allowance_gone(self, status: int, answer: object) -> bool:
        return allowance_gone(status, answer)

    def meter(self, incoming: Incoming, call: Call, way: Way, headers: Mapping[str, str]) -> Meter:
        asked = incoming.body.value.get("stream_options")
        shows = isinstance(asked, dict) and asked.get("include_usage") is True
        return WorkersChatMeter(call, way, shows_usage=shows)


class WorkersEmbeddings(Embeddings):
    """`POST /workers-ai/v1/embeddings`."""

    provider = WORKERS_AI
    path = "/v1/embeddings"

    def reading(self, answer: object, headers: Mapping[str, str]) -> Reading:
        return _with_neurons(super().reading(answer, headers), answer, headers)

    def allowance_gone(self, status: int, answer: object) -> bool:
        return allowance_gone(status, answer)


class WorkersChatMeter(ChatMeter):
    """The last chunk says the neurons beside the tokens."""

    _neurons: int | None = None

    def _note_usage(self, chunk: Mapping[str, object], *, final: bool) -> bool:
        neurons = neurons_of(chunk.get("usage"))
        self._neurons = self._neurons if neurons is None else neurons
        return super()._note_usage(chunk, final=final)

    def _end(self) -> None:
        if self.partial is not None:
            self.partial = msgspec.structs.replace(self.partial, neurons=self._neurons)
        super()._end()


def _with_neurons(reading: Reading, answer: object, headers: Mapping[str, str]) -> Reading:
    neurons = neurons_of(answer.get("usage") if isinstance(answer, dict) else None, headers)
    if neurons is None:
        return reading
    usage = msgspec.structs.replace(reading.usage or Usage(), neurons=neurons)
    return Reading(usage, reading.model, reading.exact)


WORKERS_CHAT = WorkersChat()
WORKERS_EMBEDDINGS = WorkersEmbeddings()
