"""Server-Sent Events, read from chunks that may be cut anywhere, and written.

Every byte that came is in the `raw` of exactly one event, in order: whoever passes all events on has passed the stream
on unchanged. How chunks were cut changes nothing. Nothing here knows what an event means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

EVENT_BYTES_MAX = 8 * 1024 * 1024
"""One event may carry an image; a stream without an end of an event is none."""

# Two line ends in a row. Atomic, so that "\r\n" is never taken for two of them.
_END = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_LINE = re.compile(r"\r\n|\n|\r")
_BOM = "\ufeff"


class StreamBroken(Exception):
    """What came is no stream of events: one of them has no end."""


class Event(NamedTuple):
    """`data` is None where there is none: a comment that keeps the connection alive."""

    data: str | None
    name: str
    raw: bytes


class Parser:
    """Fed chunks, gives whole events."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0
        self._begun = False

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """The events that this chunk completes. Raises `StreamBroken`."""
        self._buffer += chunk
        start = 0
        while True:
            end = _END.search(self._buffer, max(start, self._searched))
            if end is None or (end.end() == len(self._buffer) and self._buffer.endswith(b"\r")):
                break  # a "\r" at the very end may be half of a line end
            yield self._event(bytes(self._buffer[start : end.end()]))
            start = self._searched = end.end()
        del self._buffer[:start]
        self._searched = max(0, len(self._buffer) - 3)
        if len(self._buffer) > EVENT_BYTES_MAX:
            raise StreamBroken(f"an event has at most {EVENT_BYTES_MAX} bytes")

    def end(self) -> Iterator[Event]:
        """The stream has ended. What came after the last whole event counts as one, as lenient clients read it."""
        if self._buffer:
            yield self._event(bytes(self._buffer))
            self._buffer.clear()

    def _event(self, raw: bytes) -> Event:
        if self._begun and raw.startswith(b"data: ") and raw.find(b"\n") == len(raw) - 2 and b"\r" not in raw:
            return Event(raw[6:-2].decode("utf-8", "replace"), "", raw)  # what nearly all are
        text = raw.decode("utf-8", "replace")
        if not self._begun:
            self._begun = True
            text = text.removeprefix(_BOM)
        data: list[str] = []
        name = ""
        for line in _LINE.split(text):
            field, _, value = line.partition(":")
            if field == "data":
                data.append(value.removeprefix(" "))
            elif field == "event":
                name = value.removeprefix(" ")
        return Event("\n".join(data) if data else None, name, raw)


def encode(data: str, *, name: str = "") -> bytes:
    """One event. `data` may have several lines."""
    lines = [f"event: {name}"] if name else []
    lines += [f"data: {line}" for line in _LINE.split(data)]
    return ("\n".join(lines) + "\n\n").encode()
