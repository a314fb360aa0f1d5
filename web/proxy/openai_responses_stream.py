"""A stream of the Responses API: counted as it passes, ended as one that reached its cap if it is cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from engine.prices import Usage
from web.proxy import sse
from web.proxy.bodies import read_json
from web.proxy.dialect import Call, Meter, Reading, Way
from web.proxy.openai_usage import responses_usage
from web.proxy.sse import Event

_LAST = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})


class ResponsesMeter(Meter):
    """Its last event carries the whole response with its usage."""

    def __init__(self, call: Call, way: Way) -> None:
        super().__init__(call, way)
        self._response: dict[str, object] = {"id": "resp_cut", "object": "response", "model": way.model, "output": []}
        self._number = 0
        self._said: list[str] = []

    def feed(self, event: Event) -> Sequence[bytes]:
        said = read_json(event.data) if event.data is not None else None
        if not isinstance(said, dict):
            return [event.raw]
        kind = said.get("type")
        kind = kind if kind and isinstance(kind, str) else event.name
        number = said.get("sequence_number")
        self._number = number if type(number) is int else self._number
        delta = said.get("delta")
        if isinstance(delta, str):
            self.output.add(delta)
            if kind == "response.output_text.delta":
                self._said.append(delta)
        response = said.get("response")
        if isinstance(response, dict):
            self._note(response, last=kind in _LAST)
        self.failed = self.failed or kind in ("error", "response.failed") or bool(said.get("error"))
        return [event.raw]

    def _note(self, response: Mapping[str, object], *, last: bool) -> None:
        self._response |= response
        if last:
            self.ended = True
            usage = responses_usage(response.get("usage"), service=response.get("service_tier"))
            self.reading = Reading(usage, str(response.get("model") or ""))

    def cut(self, seen: Usage) -> Sequence[bytes]:
        went_in, came_out = seen.input_tokens, seen.output_tokens
        part = {"type": "output_text", "text": "".join(self._said), "annotations": []}
        message = {"type": "message", "id": "msg_cut", "role": "assistant", "status": "incomplete", "content": [part]}
        response = {
            **self._response,
            "status": "incomplete",
            "incomplete_details": {"reason": "max_output_tokens"},
            "output": [message] if self._said else [],
            "usage": {
                "input_tokens": went_in, "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": came_out, "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": went_in + came_out,
            },
        }  # fmt: skip
        last = {"type": "response.incomplete", "sequence_number": self._number + 1, "response": response}
        text = msgspec.json.encode(last, enc_hook=str).decode()
        return [sse.encode(text, name="response.incomplete")]
