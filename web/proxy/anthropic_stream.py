"""One running stream of an Anthropic message: what passes, what was seen, and how it ends when it is cut.

Every event passes as it came. `message_start` says the input, `message_delta` totals so far: the last one's are final.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from engine.prices import Usage
from web.proxy import sse
from web.proxy.anthropic_usage import merged, reading_of, says_output, usage_of
from web.proxy.bodies import read_json
from web.proxy.dialect import Call, Meter, Way
from web.proxy.sse import Event

BLOCK_TOKENS_MAX = 64
"""Around one block of content: what begins and ends it, the name of a tool."""

_SHOWN = ("text", "thinking", "partial_json")
"""Members of a delta that the model wrote. A signature is none, and a citation repeats what went in."""


class MessageMeter(Meter):
    """For one stream."""

    def __init__(self, call: Call, way: Way) -> None:
        super().__init__(call, way)
        self._message: Mapping[str, object] = {}
        self._said: dict[str, object] = {}
        self._totals = False
        self._open: object = None

    def feed(self, event: Event) -> Sequence[bytes]:
        said = read_json(event.data) if event.data is not None else None
        if isinstance(said, dict):
            self._count(said)
        return [event.raw]

    def _count(self, said: Mapping[str, object]) -> None:
        match said.get("type"):
            case "message_start":
                self._start(said.get("message"))
            case "content_block_start":
                self._open = said.get("index")
                self.output.add_tokens(BLOCK_TOKENS_MAX)
                self._see(said.get("content_block"))
            case "content_block_delta":
                self._see(said.get("delta"))
            case "content_block_stop":
                self._open = None
            case "message_delta":
                self._total(said.get("usage"), said.get("delta"))
            case "message_stop":
                self.ended = True
                self._final()
            case "error":
                self.failed = True

    def _start(self, message: object) -> None:
        if isinstance(message, dict):
            self._message = message
            self._said = merged({}, message.get("usage"))
            self.partial = usage_of(self._said)
            self.reading = reading_of({"model": message.get("model")})

    def _see(self, part: object) -> None:
        if not isinstance(part, dict):
            return
        for name in _SHOWN:
            text = part.get(name)
            if isinstance(text, str):
                self.output.add(text)

    def _total(self, usage: object, delta: object) -> None:
        if not says_output(usage):
            return
        self._said = merged(self._said, usage)
        self._totals = True
        self.partial = usage_of(self._said)
        if isinstance(delta, dict) and delta.get("stop_reason") is not None:
            self._final()

    def _final(self) -> None:
        """The message has come to its end: its last totals are what it used, if it said any."""
        if self._totals:
            self.reading = reading_of(self._message, self._said)

    def cut(self, seen: Usage) -> Sequence[bytes]:
        """The open block ends, then the message, as if it had come to its cap."""
        events: list[dict[str, object]] = []
        if self._open is not None:
            events.append({"type": "content_block_stop", "index": self._open})
        delta = {"stop_reason": "max_tokens", "stop_sequence": None}
        events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": seen.output_tokens}})
        events.append({"type": "message_stop"})
        return [sse.encode(msgspec.json.encode(event).decode(), name=str(event["type"])) for event in events]
