"""The stand-in for a model, until an operator configures an upstream: it streams words, and bills them honestly.

It speaks OpenAI's chat completions on loopback, so that a call to it takes the whole way of a real one: estimate, hold,
stream, settle. One word is one token. It calls nobody, knows nothing and says so.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

MODEL = "built-in"
PROVIDER = "jev"  # the label of its calls: what the default plan has a budget for
PRICE = {
    "provider": PROVIDER,
    "input_usd_per_mtok": "100",
    "output_usd_per_mtok": "300",
    "neurons_per_mtok_input": "1000000",
    "neurons_per_mtok_output": "3000000",
}  # dear, and in two units at once: both meters of the default plan should be seen to move
MAX_TOKENS = 4_096
WORD_S = 0.04

_ANSWER = (
    "You asked {words}. I am the stand-in that comes with Common Purse: no model was called and I know nothing, but I "
    "cost real budget. Before I began, the most that this answer could cost was held for you, so nobody else could "
    "spend it. The meter moves while I speak. When I stop, what I really used is settled and the rest of the hold "
    "comes back. Put the address and the key of a model into purse.toml, under [upstreams.openai], and this box asks "
    "that one instead."
)


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """Where it listens, and the key it wants: other programs on this machine are nobody's guests."""

    base_url: str
    key: str


@asynccontextmanager
async def built_in(*, word_s: float = WORD_S) -> AsyncIterator[BuiltIn]:
    """Listen for as long as the block runs."""
    key = secrets.token_urlsafe(24)
    app = web.Application()
    app.router.add_post("/chat/completions", _Answers(key, word_s).complete)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0, handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield BuiltIn(f"http://127.0.0.1:{runner.addresses[0][1]}", key)
    finally:
        await runner.cleanup()


@dataclass(frozen=True, slots=True)
class _Answers:
    key: str
    word_s: float

    async def complete(self, request: web.Request) -> web.StreamResponse:
        """`POST /chat/completions`, plain or streamed."""
        if not hmac.compare_digest(request.headers.get("Authorization", ""), f"Bearer {self.key}"):
            return _error(401, "another key is needed")
        try:
            asked = json.loads(await request.read())
            question = _text(asked["messages"])
            limit = int(asked.get("max_completion_tokens") or asked.get("max_tokens") or MAX_TOKENS)
        except (ValueError, TypeError, KeyError, AttributeError):
            return _error(400, "expected a chat completion")
        words, whole = _words(question), answer_to(question)
        said = whole[:limit]
        usage = {"prompt_tokens": words, "completion_tokens": len(said), "total_tokens": words + len(said)}
        answer = _Answer(
            f"chatcmpl-{secrets.token_hex(8)}", int(time.time()), said, usage, "stop" if said == whole else "length"
        )
        if not asked.get("stream"):
            await asyncio.sleep(self.word_s * len(said))
            return web.json_response(answer.plain())
        return await self._stream(
            request, answer, with_usage=bool((asked.get("stream_options") or {}).get("include_usage"))
        )

    async def _stream(self, request: web.Request, answer: _Answer, *, with_usage: bool) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for number, word in enumerate(answer.said):
            delta = {"content": f" {word}" if number else word} | ({} if number else {"role": "assistant"})
            await response.write(answer.chunk([{"index": 0, "delta": delta, "finish_reason": None}]))
            await asyncio.sleep(self.word_s)
        await response.write(answer.chunk([{"index": 0, "delta": {}, "finish_reason": answer.finish}]))
        if with_usage:
            await response.write(answer.chunk([], usage=answer.usage))
        await response.write(b"data: [DONE]\n\n")
        return response


@dataclass(frozen=True, slots=True)
class _Answer:
    id: str
    created: int
    said: list[str]
    usage: Mapping[str, int]
    finish: str

    def plain(self) -> dict[str, object]:
        message = {"role": "assistant", "content": " ".join(self.said)}
        choice = {"index": 0, "message": message, "finish_reason": self.finish}
        return self._head("chat.completion") | {"choices": [choice], "usage": self.usage}

    def chunk(self, choices: list[dict[str, object]], *, usage: Mapping[str, int] | None = None) -> bytes:
        data = self._head("chat.completion.chunk") | {"choices": choices, "usage": usage}
        return f"data: {json.dumps(data)}\n\n".encode()

    def _head(self, kind: str) -> dict[str, object]:
        return {"id": self.id, "object": kind, "created": self.created, "model": MODEL}


def answer_to(question: str) -> list[str]:
    """The words it says to any question."""
    words = _words(question)
    return _ANSWER.format(words="one word" if words == 1 else f"{words} words").split()


def _text(messages: list[dict[str, object]]) -> str:
    return " ".join(str(message["content"]) for message in messages)


def _words(text: str) -> int:
    return len(text.split())


def _error(status: int, message: str) -> web.Response:
    return web.json_response(
        {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}, status=status
    )
