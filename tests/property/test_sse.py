"""Events are the same however a stream is cut into chunks, and no byte of it is lost."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from web.proxy.sse import EVENT_BYTES_MAX, Event, Parser, StreamBroken, encode

SAID = (
    '\ufeff: hello\n\ndata: {"a": "ein \u00e4"}\n\nevent: message_start\r\ndata: {"b": 1}\r\n\r\n\n\n'
    "id: 7\rdata: one\rdata:two\r\r: ping\n\ndata\n\ndata:  \u65e5\u672c \n\nretry: 5\n\ndata: [DONE]\n\ndata: cut off"
).encode()
MEANT = [
    (None, ""), ('{"a": "ein \u00e4"}', ""), ('{"b": 1}', "message_start"), ("one\ntwo", ""), (None, ""), ("", ""),
    (" \u65e5\u672c ", ""), (None, ""), ("[DONE]", ""), ("cut off", ""),
]  # fmt: skip


def parsed(chunks: list[bytes]) -> list[Event]:
    parser = Parser()
    return [event for chunk in chunks for event in parser.feed(chunk)] + list(parser.end())


def meant(events: list[Event]) -> list[tuple[str | None, str]]:
    """Blank lines between events are nobody's event."""
    return [(event.data, event.name) for event in events if event.raw.strip(b"\r\n")]


def test_a_stream_cut_in_two_at_any_byte_is_the_same_stream() -> None:
    for at in range(len(SAID) + 1):
        events = parsed([SAID[:at], SAID[at:]])
        assert meant(events) == MEANT, at
        assert b"".join(event.raw for event in events) == SAID


def test_a_stream_that_comes_byte_by_byte_is_the_same_stream() -> None:
    events = parsed([SAID[at : at + 1] for at in range(len(SAID))])
    assert meant(events) == MEANT
    assert b"".join(event.raw for event in events) == SAID


lines = st.lists(
    st.sampled_from(["data: x", "data:y", "event: e", ": c", "", "data", "id: 1", "data: \u65e5"]), max_size=12
)
ends = st.sampled_from(["\n", "\r\n", "\r"])


@given(lines=lines, end=ends, cuts=st.lists(st.integers(0, 150), max_size=8))
def test_any_stream_is_the_same_however_it_is_cut(lines: list[str], end: str, cuts: list[int]) -> None:
    raw = end.join([*lines, ""]).encode()
    places = sorted({0, len(raw), *(cut for cut in cuts if cut < len(raw))})
    chunks = [raw[start:stop] for start, stop in itertools.pairwise(places)]
    events = parsed(chunks)
    assert b"".join(event.raw for event in events) == raw
    assert meant(events) == meant(parsed([raw]))


@given(data=st.text(), name=st.sampled_from(["", "error", "message_stop"]))
def test_what_is_written_is_read_again(data: str, name: str) -> None:
    events = parsed([encode(data, name=name)])
    assert meant(events) == [("\n".join(data.replace("\r\n", "\n").replace("\r", "\n").split("\n")), name)]


def test_an_event_without_an_end_is_no_stream() -> None:
    parser = Parser()
    try:
        for _ in range(3):
            list(parser.feed(b"x" * (EVENT_BYTES_MAX // 2)))
    except StreamBroken:
        return
    raise AssertionError("it would have filled the memory")
