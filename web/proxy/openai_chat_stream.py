"""A stream of chat completion chunks: counted as it passes, ended as the provider would if it is cut.

The chunk with the usage is asked for in every call; who did not ask for it does not get it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from engine.prices import Usage
from web.proxy import sse, tokens
from web.proxy.bodies import read_json
from web.proxy.dialect import Call, Meter, Reading, Way
from web.proxy.openai_usage import chat_usage
from web.proxy.sse import Event

DONE = "[DONE]"

_NOT_SAID = frozenset({"role", "id", "type", "index", "format", "expires_at"})
"""Members of a delta that are not part of what the model made."""


class ChatMeter(Meter):
    """`shows_usage`: the client asked for the chunk with the usage itself."""

    def __init__(self, call: Call, way: Way, *, shows_usage: bool) -> None:
        super().__init__(call, way)
        self._shows_usage = shows_usage
        self._finished: set[int] = set()
        self._head: dict[str, object] = {"id": "chatcmpl-cut", "object": "chat.completion.chunk", "created": 0}
        self._model = way.model

    def feed(self, event: Event) -> Sequence[bytes]:
        if event.data is None:
            return [event.raw]
        if event.data.strip() == DONE:
            self._end()
            return [event.raw]
        chunk = read_json(event.data)
        if not isinstance(chunk, dict):
            return [event.raw]
        self.failed = self.failed or event.name == "error" or bool(chunk.get("error"))
        choices = chunk.get("choices")
        choices = choices if isinstance(choices, list) else []
        self._note_head(chunk)
        for choice in choices:
            if isinstance(choice, dict):
                self._note(choice)
        said = self._note_usage(chunk, final=not choices)
        if len(self._finished) >= self.call.choices:
            self.ended = True
        hidden = said and not choices and not self._shows_usage and not self.failed
        return [] if hidden else [event.raw]

    def close(self) -> None:
        if self.ended:
            self._end()

    def _end(self) -> None:
        """The provider says that this is all: what it reported last is what was used."""
        self.ended = True
        if self.partial is not None:
            self.reading = Reading(self.partial, self._model)

    def _note_head(self, chunk: Mapping[str, object]) -> None:
        self._head |= {name: chunk[name] for name in ("id", "object", "created") if name in chunk}
        model = chunk.get("model")
        if isinstance(model, str) and model:
            self._model = model

    def _note(self, choice: Mapping[str, object]) -> None:
        index = choice.get("index")
        index = index if type(index) is int and 0 <= index < self.call.choices else 0
        for text in _texts(choice.get("delta")):
            self.output.add(text)
        self.output.add_tokens(_sound(choice.get("delta")))
        if choice.get("finish_reason") is not None:
            self._finished.add(index)

    def _note_usage(self, chunk: Mapping[str, object], *, final: bool) -> bool:
        """Servers that speak like OpenAI report in every chunk, in the last, or under a name of their own."""
        said = chunk.get("usage")
        if said is None and isinstance(own := chunk.get("x_groq"), dict):
            said = own.get("usage")
        usage = chat_usage(said, service=chunk.get("service_tier"))
        if usage is not None:
            self.partial = usage
            if final:
                self._end()
        return said is not None

    def cut(self, seen: Usage) -> Sequence[bytes]:
        return [sse.encode(text) for text in self._last_words(seen)]

    def _last_words(self, seen: Usage) -> Iterator[str]:
        head = {**self._head, "model": self._model}
        for index in range(self.call.choices):
            if index not in self._finished:
                choice = {"index": index, "delta": {}, "logprobs": None, "finish_reason": "length"}
                yield _written({**head, "choices": [choice]})
        if self._shows_usage:
            total = seen.input_tokens + seen.output_tokens
            counts = {
                "prompt_tokens": seen.input_tokens,
                "completion_tokens": seen.output_tokens,
                "total_tokens": total,
            }
            yield _written({**head, "choices": [], "usage": counts})
        yield DONE


def _written(chunk: Mapping[str, object]) -> str:
    return msgspec.json.encode(chunk).decode()


def _texts(delta: object) -> Iterator[str]:
    """Whatever a model made, under whatever name: text, refusal, reasoning, a tool's name and arguments."""
    if isinstance(delta, str):
        yield delta
    elif isinstance(delta, dict):
        for name, value in delta.items():
            if name not in _NOT_SAID and name != "audio":
                yield from _texts(value)
    elif isinstance(delta, list):
        for value in delta:
            yield from _texts(value)


def _sound(delta: object) -> int:
    audio = delta.get("audio") if isinstance(delta, dict) else None
    data = audio.get("data") if isinstance(audio, dict) else None
    return tokens.audio_tokens(len(data)) if isinstance(data, str) else 0
