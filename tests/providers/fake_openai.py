"""A fake OpenAI: chat completions, responses, embeddings, models; plain and streaming. Also what speaks like it.

It respects `max_tokens`, `max_completion_tokens`, `max_output_tokens`, `n` and tools, and refuses what the real one
refuses.
"""

from __future__ import annotations

import base64
import struct
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from aiohttp import web
from providers.answer import EventStream, say
from providers.faults import NO_FAULT, Fault
from providers.ledger import Ledger, Rate, Used
from providers.production import BrokeOff, EndedEarly, Production, Reply, Seen, count_tokens
from providers.provider import FakeProvider, Making, Refused
from providers.responses_api import ResponsesApi

CREATED = 1_790_000_000
DIMENSIONS = 8

RATES = {
    "gpt-4o": Rate(input=2_500_000, output=10_000_000, cache_read=1_250_000),
    "gpt-4o-mini": Rate(input=150_000, output=600_000, cache_read=75_000),
    "gpt-4.1-mini": Rate(input=400_000, output=1_600_000, cache_read=100_000),
    "gpt-5-mini": Rate(input=250_000, output=2_000_000, cache_read=25_000),
    "o4-mini": Rate(input=1_100_000, output=4_400_000, cache_read=275_000),
    "text-embedding-3-small": Rate(input=20_000),
}
"""Pico-dollars a token."""

_REASONING_MODELS = ("o1", "o3", "o4", "gpt-5")


@dataclass(frozen=True)
class Asked:
    """What a body asks for."""

    model: str
    prompt_tokens: int
    cap: int | None
    choices: int
    stream: bool
    include_usage: bool
    tool: str | None

    @classmethod
    def of(cls, body: dict[str, Any], *, default_cap: int | None = None) -> Self:
        model = body["model"]
        if "max_tokens" in body and "max_completion_tokens" in body:
            raise _unsupported("max_tokens", "'max_tokens' and 'max_completion_tokens' cannot both be set.")
        if "max_tokens" in body and model.startswith(_REASONING_MODELS):
            raise _unsupported("max_tokens", "'max_tokens' is not supported with this model.")
        stream = bool(body.get("stream"))
        if body.get("stream_options") is not None and not stream:
            raise Refused(400, "invalid_request_error", "'stream_options' is only allowed when 'stream' is set.")
        cap = body.get("max_completion_tokens", body.get("max_tokens", default_cap))
        if cap is not None and (not isinstance(cap, int) or isinstance(cap, bool) or cap < 1):
            raise Refused(400, "invalid_request_error", "Invalid 'max_tokens'.", code="integer_below_min_value")
        return cls(
            model=model,
            prompt_tokens=count_tokens(body.get("messages")) + count_tokens(body.get("tools")) + 3,
            cap=cap,
            choices=body.get("n") or 1,
            stream=stream,
            include_usage=bool((body.get("stream_options") or {}).get("include_usage")),
            tool=_tool_of(body),
        )


def _unsupported(param: str, message: str) -> Refused:
    return Refused(400, "invalid_request_error", message, code="unsupported_parameter", param=param)


def _tool_of(body: dict[str, Any]) -> str | None:
    functions = [tool["function"]["name"] for tool in body.get("tools") or [] if tool.get("type") == "function"]
    return functions[0] if functions and body.get("tool_choice") != "none" else None


class FakeOpenAI(FakeProvider):
    """`base_url` is what a client is given."""

    default_cap: ClassVar[int | None] = None
    """Of a call that names none."""

    def __init__(self, *, reply: Reply | None = None, fault: Fault = NO_FAULT, ledger: Ledger | None = None) -> None:
        super().__init__(ledger or Ledger("usd", RATES, divisor=1000), reply=reply, fault=fault)
        self.usage_extra: dict[str, Any] = {}
        """Fields beside the counts, as OpenRouter's `cost`."""

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    def routes(self) -> dict[str, Making]:
        return {
            "/v1/chat/completions": self.chat,
            "/v1/responses": ResponsesApi(self).make,  # a table, and so an object, for every request
            "/v1/embeddings": self.embeddings,
        }

    def looks(self) -> dict[str, Making]:
        return {"/v1/models": self.models}

    def error(self, refused: Refused, seen: Seen) -> dict[str, Any]:
        kind = refused.kind or ("server_error" if refused.status >= 500 else "invalid_request_error")
        return {"error": {"message": refused.message, "type": kind, "param": refused.param, "code": refused.code}}

    # --- chat completions -------------------------------------------------------------------------------------------

    async def chat(self, request: web.Request, seen: Seen, fault: Fault) -> web.StreamResponse:
        asked = Asked.of(self.checked(seen), default_cap=self.default_cap)
        making = self.producing(
            request, seen, fault, asked.model, self.prompt_of(asked.prompt_tokens), stream=asked.stream
        )
        if asked.stream:
            return await self._stream_chat(request, fault, asked, making, seen)
        choices = []
        async with making as made:
            for index in range(asked.choices):
                said = [piece async for piece in self.made(made, asked)]
                choices.append(self._choice(index, asked, said))
            await made.last()
        body = {
            **self._head(seen, asked, "chat.completion"),
            "choices": choices,
            **self.usage(made.used, asked.model, fault),
        }
        return await say(
            request, fault, body, headers=self._headers(seen) | self.figures(made.used, asked.model, fault)
        )

    async def made(self, made: Production, asked: Asked) -> Any:
        """The pieces of one choice's text or arguments, each made as it is asked for; then None if cut short."""
        left = asked.cap if asked.cap is not None and not made.fault.ignores_cap else 1 << 30
        pieces = self.reply.tool_arguments if asked.tool else self.reply.tokens
        for _ in range(min(self.reply.reasoning, left)):
            await made.token(reasoning=True)
        left = max(0, left - self.reply.reasoning)
        for piece in pieces[:left]:
            await made.token()
            yield piece
        if len(pieces) > left:
            yield None

    def _choice(self, index: int, asked: Asked, said: list[str | None]) -> dict[str, Any]:
        text = "".join(piece for piece in said if piece is not None)
        cut = bool(said) and said[-1] is None
        message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None, "annotations": []}
        if asked.tool:
            call = {"id": f"call_{index}", "type": "function", "function": {"name": asked.tool, "arguments": text}}
            message |= {"content": None, "tool_calls": [call]}
        return {"index": index, "message": message, "logprobs": None, "finish_reason": _finish(asked, cut)}

    async def _stream_chat(
        self, request: web.Request, fault: Fault, asked: Asked, making: Production, seen: Seen
    ) -> web.StreamResponse:
        out = EventStream(request, fault, self._headers(seen))
        head = self._head(seen, asked, "chat.completion.chunk")
        try:
            async with making as made:
                await out.open()
                for index in range(asked.choices):
                    await self._stream_choice(out, fault, asked, made, head, index)
                await made.last()
                if asked.include_usage and fault.usage in ("normal", "null", "zeros"):
                    await out.event({**head, "choices": [], **self.usage(made.used, asked.model, fault)})
        except BrokeOff:
            await self._stream_error(out, fault, head)
        except EndedEarly:
            return await out.close()
        if not fault.without_done:
            await out.event("[DONE]")
        return await out.close()

    async def _stream_choice(
        self, out: EventStream, fault: Fault, asked: Asked, made: Production, head: dict[str, Any], index: int
    ) -> None:
        async def chunk(delta: dict[str, Any], finish: str | None = None) -> None:
            choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}
            await out.event(
                {**head, "choices": [choice], **self._beside(asked, fault, made.used, last=finish is not None)}
            )

        first: dict[str, Any] = {"role": "assistant", "content": "", "refusal": None}
        if asked.tool:
            call = {"index": 0, "id": f"call_{index}", "type": "function"}
            first |= {"content": None, "tool_calls": [{**call, "function": {"name": asked.tool, "arguments": ""}}]}
        await chunk(first)
        cut = False
        async for piece in self.made(made, asked):
            cut = piece is None
            if piece is not None:
                tool = [{"index": 0, "function": {"arguments": piece}}]
                await chunk({"tool_calls": tool} if asked.tool else {"content": piece})
            if fault.garbage_after == made.used.output:
                await out.event('{"id": "chatcmpl-')
        await chunk({}, _finish(asked, cut))

    def _beside(self, asked: Asked, fault: Fault, used: Used, *, last: bool) -> dict[str, Any]:
        """What a chunk with a choice says of usage."""
        if fault.usage == "every_chunk" or (fault.usage == "last_choice" and last):
            return self.usage(used, asked.model, fault)
        if fault.usage == "x_groq" and last:
            return {"x_groq": {"id": "req_1", **self.usage(used, asked.model, fault)}}
        return {"usage": None} if asked.include_usage and fault.usage == "normal" else {}

    async def _stream_error(self, out: EventStream, fault: Fault, head: dict[str, Any]) -> None:
        broke = self.broke_off(fault)
        if fault.error_style == "chunk":
            choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}
            await out.event({**head, "error": {"code": 502, "message": broke.message}, "choices": [choice]})
        else:
            said = {"message": broke.message, "type": broke.kind, "param": None, "code": broke.code}
            await out.event({"error": said}, name="error")

    def _head(self, seen: Seen, asked: Asked, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{seen.number}", "object": kind, "created": CREATED, "model": asked.model,
            "service_tier": "default", "system_fingerprint": "fp_fake",
        }  # fmt: skip

    def _headers(self, seen: Seen) -> dict[str, str]:
        return {
            "x-request-id": f"req_{seen.number}", "openai-processing-ms": "7", "x-ratelimit-remaining-requests": "59",
            "Set-Cookie": "__cf_bm=not-for-you; path=/; HttpOnly",
        }  # fmt: skip

    # --- usage ------------------------------------------------------------------------------------------------------

    def prompt_of(self, tokens: int) -> Used:
        reply = self.reply
        read = min(reply.cache_read, tokens)
        return Used(input=tokens, cache_read=read, cache_write=min(reply.cache_write, tokens - read))

    def usage(self, used: Used, model: str, fault: Fault) -> dict[str, Any]:
        """The field as chat completions have it, or nothing."""
        if fault.usage == "none":
            return {}
        if fault.usage == "null":
            return {"usage": None}
        if fault.usage == "zeros":
            used = Used()
        said = {
            "prompt_tokens": used.input, "completion_tokens": used.output, "total_tokens": used.input + used.output,
            "prompt_tokens_details": {"cached_tokens": used.cache_read, "audio_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": used.reasoning, "audio_tokens": 0,
                "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
            },
        }  # fmt: skip
        return {"usage": said | self.figures_of(used, model, fault) | dict(fault.usage_patch)}

    def figures_of(self, used: Used, model: str, fault: Fault) -> dict[str, Any]:
        """Fields of a usage that say what it cost."""
        return self.usage_extra

    def figures(self, used: Used, model: str, fault: Fault) -> dict[str, str]:
        """Headers of a plain answer that say what it cost."""
        return {}

    # --- embeddings and models --------------------------------------------------------------------------------------

    async def embeddings(self, request: web.Request, seen: Seen, fault: Fault) -> web.StreamResponse:
        body = self.checked(seen)
        texts = body.get("input")
        if not isinstance(texts, str | list) or not texts:
            raise Refused(400, "invalid_request_error", "'input' must not be empty.", param="input")
        inputs: list[Any] = [texts] if isinstance(texts, str) or isinstance(texts[0], int) else texts
        tokens = sum(len(each) if isinstance(each, list) else max(1, len(each.split())) for each in inputs)
        async with self.producing(request, seen, fault, body["model"], Used(input=tokens)) as made:
            await made.at(0)
        said = self.usage(made.used, body["model"], fault)
        if isinstance(said.get("usage"), dict):
            left_out = ("completion_tokens", "completion_tokens_details", "prompt_tokens_details")
            said = {"usage": {name: count for name, count in said["usage"].items() if name not in left_out}}
        data = [
            {"object": "embedding", "index": at, "embedding": _vector(at, body.get("encoding_format"))}
            for at in range(len(inputs))
        ]
        answer = {"object": "list", "data": data, "model": body["model"], **said}
        headers = self._headers(seen) | self.figures(made.used, body["model"], fault)
        return await say(request, fault, answer, headers=headers)

    async def models(self, request: web.Request, seen: Seen, fault: Fault) -> web.StreamResponse:
        data = [{"id": name, "object": "model", "created": CREATED, "owned_by": "system"} for name in self.ledger.rates]
        return await say(request, fault, {"object": "list", "data": data}, headers=self._headers(seen))


def _finish(asked: Asked, cut: bool) -> str:
    return "length" if cut else "tool_calls" if asked.tool else "stop"


def _vector(at: int, encoding: object) -> object:
    numbers = [float(at + place) for place in range(DIMENSIONS)]
    if encoding != "base64":
        return numbers
    return base64.b64encode(struct.pack(f"<{DIMENSIONS}f", *numbers)).decode()


def fake_openai(*, reply: Reply | None = None, fault: Fault = NO_FAULT) -> FakeOpenAI:
    return FakeOpenAI(reply=reply, fault=fault)
