"""`python -m bench.proxy.upstream PORT`: a provider that takes exactly as long as it is told, and next to no CPU.

It speaks as much HTTP as its clients do: keep-alive, bodies with a length, one request at a time on a connection. It
counts the calls it answered, so that nobody can be fast by leaving one out. It must never be what limits a figure.

    POST .../chat/completions   an answer after `service_ms`; as a stream then an event every `event_ms`
    POST /pace                  a `Pace` for the calls from now on
    GET  /count                 how many calls it has answered
"""

from __future__ import annotations

import asyncio
import sys
from typing import cast

import msgspec

from bench.loop import loop_factory

MODEL = "gpt-4o-mini"
WORDS = 16
USAGE = {"prompt_tokens": 24, "completion_tokens": WORDS, "total_tokens": 24 + WORDS}
DONE = b"data: [DONE]\n\n"
END_OF_HEAD = b"\r\n\r\n"
NOT_HERE = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"


class Pace(msgspec.Struct, frozen=True):
    """How it answers: the first byte after `service_ms`, the events of a stream `event_ms` apart."""

    service_ms: float = 0.0
    event_ms: float = 0.0


class StreamOptions(msgspec.Struct, frozen=True):
    include_usage: bool = False


class Asked(msgspec.Struct, frozen=True):
    """What it reads of a call."""

    stream: bool = False
    stream_options: StreamOptions | None = None

    @property
    def wants_usage(self) -> bool:
        return self.stream_options is not None and self.stream_options.include_usage


class Provider:
    """What all connections share."""

    def __init__(self) -> None:
        self.calls = 0
        self.pace = Pace()
        self.whole = _response(_completion())
        deltas = [{"role": "assistant", "content": ""}, *[{"content": " word"} for _ in range(WORDS)]]
        self.events = [_framed(_event(_chunk(delta))) for delta in deltas]
        stop = _event({**_chunk({}), "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        self.ends = {
            asked: _framed(stop + (_event({**_chunk({}), "choices": [], "usage": USAGE}) if asked else b"") + DONE)
            + b"0\r\n\r\n"
            for asked in (False, True)
        }


class Connection(asyncio.Protocol):
    """One client's."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._came = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by its class

    def data_received(self, data: bytes) -> None:
        self._came += data
        head, found, rest = self._came.partition(END_OF_HEAD)
        if not found or len(rest) < (length := _length(head)):
            return
        self._came = rest[length:]
        self._answer(head.split(b" ", 2)[1], rest[:length])

    def _answer(self, path: bytes, body: bytes) -> None:
        provider = self._provider
        if path == b"/pace":
            provider.pace = msgspec.json.decode(body, type=Pace)
            self._transport.write(_response({}))
        elif path == b"/count":
            self._transport.write(_response({"calls": provider.calls}))
        elif not path.endswith(b"/chat/completions"):
            self._transport.write(NOT_HERE)
        else:
            provider.calls += 1
            asked = msgspec.json.decode(body, type=Asked)
            pieces = [provider.whole]
            if asked.stream:
                pieces = [*provider.events, provider.ends[asked.wants_usage]]
                pieces[0] = STREAM_HEAD + pieces[0]
            self._write(pieces, asyncio.get_running_loop().time() + provider.pace.service_ms / 1e3)

    def _write(self, pieces: list[bytes], at: float, n: int = 0) -> None:
        """The first of them at this time, and each of the others `event_ms` later."""
        asyncio.get_running_loop().call_at(at, self._write_now, pieces, at, n)

    def _write_now(self, pieces: list[bytes], at: float, n: int) -> None:
        if not self._transport.is_closing():
            self._transport.write(pieces[n])
            if n + 1 < len(pieces):
                self._write(pieces, at + self._provider.pace.event_ms / 1e3, n + 1)


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


def _response(value: object) -> bytes:
    body = msgspec.json.encode(value)
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


def _framed(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _event(value: object) -> bytes:
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


def _chunk(delta: object) -> dict[str, object]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
    head = {"id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    return {**head, "choices": [choice]}


def _completion() -> dict[str, object]:
    message = {"role": "assistant", "content": " ".join(["word"] * WORDS), "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    head = {"id": "chatcmpl-bench", "object": "chat.completion", "created": 1, "model": MODEL}
    return {**head, "choices": [choice], "usage": USAGE}


async def serve(port: int) -> None:
    """Until it is killed."""
    provider = Provider()
    server = await asyncio.get_running_loop().create_server(lambda: Connection(provider), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(serve(int(sys.argv[1])))
