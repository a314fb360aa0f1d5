"""A fake Anthropic: messages, plain and streaming, count_tokens, models.

It respects `max_tokens`, a thinking budget and tools, and refuses what the real one refuses. Its `input_tokens` leave
out what was read from a cache or written to one.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Self

from aiohttp import web
from providers.answer import EventStream, say
from providers.faults import NO_FAULT, Fault
from providers.ledger import Ledger, Rate, Used
from providers.production import BrokeOff, EndedEarly, Production, Reply, Seen
from providers.provider import FakeProvider, Making, Refused

THINKING_BUDGET_MIN = 1024
TOOLS_PROMPT_TOKENS = 346
"""What giving any tool adds to the prompt."""

SEARCH = 10_000_000_000
"""Pico-dollars a web search."""


def _rate(input_: int, output: int) -> Rate:
    return Rate(
        input=input_, output=output, cache_read=input_ // 10, cache_write=input_ * 5 // 4, cache_write_1h=input_ * 2,
        search=SEARCH,
    )  # fmt: skip


RATES = {
    "claude-haiku-4-5": _rate(1_000_000, 5_000_000),
    "claude-haiku-4-5-20251001": _rate(1_000_000, 5_000_000),
    "claude-opus-4-8": _rate(5_000_000, 25_000_000),
    "claude-opus-5": _rate(5_000_000, 25_000_000),
    "claude-sonnet-4-6": _rate(3_000_000, 15_000_000),
    "claude-sonnet-5": _rate(2_000_000, 10_000_000),
}
"""Pico-dollars a token."""

_KINDS = {
    400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
    404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 504: "timeout_error",
    529: "overloaded_error",
}  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """What a body asks for."""

    model: str
    prompt_tokens: int
    cap: int
    stream: bool
    thinking: bool
    tool: str | None
    searches: bool

    @classmethod
    def of(cls, body: dict[str, Any]) -> Self:
        cap = body.get("max_tokens")
        if not isinstance(cap, int) or isinstance(cap, bool):
            raise Refused(400, "invalid_request_error", "max_tokens: Field required")
        if cap < 0:
            raise Refused(400, "invalid_request_error", "max_tokens: must be greater than or equal to 0")
        thinking = body.get("thinking") or {}
        if thinking.get("type") == "enabled":
            budget = thinking.get("budget_tokens", 0)
            if budget < THINKING_BUDGET_MIN:
                raise Refused(400, "invalid_request_error", "thinking.budget_tokens: must be at least 1024")
            if budget >= cap:
                raise Refused(
                    400, "invalid_request_error", "`max_tokens` must be greater than `thinking.budget_tokens`."
                )
        tools = body.get("tools") or []
        own = [tool["name"] for tool in tools if tool.get("type", "custom") == "custom"]
        chosen = (body.get("tool_choice") or {}).get("type", "auto")
        return cls(
            model=body["model"],
            prompt_tokens=prompt_tokens(body),
            cap=cap,
            stream=bool(body.get("stream")),
            thinking=thinking.get("type") in ("enabled", "adaptive"),
            tool=own[0] if own and chosen != "none" else None,
            searches=any(str(tool.get("type", "")).startswith("web_search") for tool in tools),
        )


def prompt_tokens(body: dict[str, Any]) -> int:
    """A token for every three bytes of what is said, four more a message, and what tools add by being there."""
    said = sum(_bytes(body.get(name)) for name in ("system", "messages", "tools"))
    return -(-said // 3) + 4 * len(body.get("messages") or []) + TOOLS_PROMPT_TOKENS * bool(body.get("tools"))


def _bytes(value: object) -> int:
    match value:
        case str():
            return len(value.encode())
        case list():
            return sum(_bytes(each) for each in value)
        case dict():
            return sum(_bytes(each) for key, each in value.items() if key not in ("type", "role"))
    return 0


class FakeAnthropic(FakeProvider):
    """`url` is its base address."""

    KEY = "sk-ant-of-the-provider"
    REQUEST_ID = "request-id"

    def __init__(self, *, reply: Reply | None = None, fault: Fault = NO_FAULT) -> None:
        super().__init__(Ledger("usd", RATES, divisor=1000), reply=reply, fault=fault)

    def routes(self) -> dict[str, Making]:
        return {"/v1/messages": self.messages, "/v1/messages/count_tokens": self.count}

    def looks(self) -> dict[str, Making]:
        return {"/v1/models": self.models}

    def key_in(self, seen: Seen) -> str | None:
        return seen.headers.get("x-api-key") or super().key_in(seen)

    def error(self, refused: Refused, seen: Seen) -> dict[str, Any]:
        said: dict[str, Any] = {
            "type": refused.kind or _KINDS.get(refused.status, "api_error"),
            "message": refused.message,
        }
        if refused.code is not None and refused.status != 404:
            said["details"] = {"error_code": refused.code}
        return {"type": "error", "error": said, "request_id": f"req_{seen.number}"}

    def checked(self, seen: Seen) -> dict[str, Any]:
        if "anthropic-version" not in seen.headers:
            raise Refused(400, "invalid_request_error", "anthropic-version: header is required")
        body = super().checked(seen)
        if not isinstance(body.get("messages"), list) or not body["messages"]:
            raise Refused(400, "invalid_request_error", "messages: at least one message is required")
        return body

    # --- messages ---------------------------------------------------------------------------------------------------

    async def messages(self, request: web.Request, seen: Seen, fault: Fault) -> web.StreamResponse:
        asked = Asked.of(self.checked(seen))
        prompt = self._prompt(asked)
        making = self.producing(request, seen, fault, asked.model, prompt, stream=asked.stream)
        if asked.stream:
            return await self._stream(EventStream(request, fault, self._headers(seen)), fault, asked, making, seen)
        blocks: list[dict[str, Any]] = []
        async with making as made:
            async for block, piece in self._made(made, asked):
                _grow(blocks, block, piece)
            await made.last()
        body = self._message(seen, asked, blocks, self._stop(asked, made.used, fault))
        if fault.usage != "none":
            body["usage"] = self._usage(made.used, fault)
        return await say(request, fault, body, headers=self._headers(seen))

    def _prompt(self, asked: Asked) -> Used:
        reply, left = self.reply, asked.prompt_tokens
        read = min(reply.cache_read, left)
        write = min(reply.cache_write, left - read)
        write_1h = min(reply.cache_write_1h, left - read - write)
        searches = reply.web_searches if asked.searches else 0
        return Used(input=left, cache_read=read, cache_write=write, cache_write_1h=write_1h, searches=searches)

    async def _made(self, made: Production, asked: Asked) -> AsyncIterator[tuple[str, str]]:
        """Kind of block and piece, a token each: thinking, then text, or a tool's arguments."""
        left = 1 << 30 if made.fault.ignores_cap else asked.cap
        for _ in range(min(self.reply.reasoning, left) if asked.thinking else 0):
            await made.token(reasoning=True)
            left -= 1
            yield "thinking", "hm "
        pieces = self.reply.tool_arguments if asked.tool else self.reply.tokens
        for piece in pieces[:left]:
            await made.token()
            yield asked.tool or "text", piece

    def _stop(self, asked: Asked, used: Used, fault: Fault) -> str:
        wanted = len(self.reply.tool_arguments if asked.tool else self.reply.tokens)
        wanted += self.reply.reasoning if asked.thinking else 0
        if used.output - fault.extra_output < wanted:
            return "max_tokens"
        return "tool_use" if asked.tool else "end_turn"

    def _message(self, seen: Seen, asked: Asked, blocks: list[dict[str, Any]], stop: str | None) -> dict[str, Any]:
        return {
            "id": f"msg_{seen.number}", "type": "message", "role": "assistant", "model": asked.model,
            "content": [_finished(block) for block in blocks], "stop_reason": stop, "stop_sequence": None,
        }  # fmt: skip

    def _headers(self, seen: Seen) -> dict[str, str]:
        return {
            "request-id": f"req_{seen.number}", "anthropic-organization-id": "org-fake",
            "anthropic-ratelimit-requests-remaining": "59", "Set-Cookie": "__cf_bm=not-for-you; path=/; HttpOnly",
        }  # fmt: skip

    # --- usage ------------------------------------------------------------------------------------------------------

    def _usage(self, used: Used, fault: Fault) -> dict[str, Any] | None:
        if fault.usage == "null":
            return None
        if fault.usage == "zeros":
            used = Used()
        said: dict[str, Any] = {
            "input_tokens": used.plain_input,
            "cache_creation_input_tokens": used.cache_write + used.cache_write_1h,
            "cache_read_input_tokens": used.cache_read,
            "cache_creation": {
                "ephemeral_5m_input_tokens": used.cache_write, "ephemeral_1h_input_tokens": used.cache_write_1h,
            },
            "output_tokens": used.output,
            "service_tier": "standard",
        }  # fmt: skip
        if used.reasoning:
            said["output_tokens_details"] = {"thinking_tokens": used.reasoning}
        if used.searches:
            said["server_tool_use"] = {"web_search_requests": used.searches, "web_fetch_requests": 0}
        return said | dict(fault.usage_patch)

    def _first_usage(self, used: Used, fault: Fault) -> dict[str, Any] | None:
        if fault.usage == "delta_only":
            used = Used()
        said = self._usage(used, fault)
        return said if said is None or fault.usage_patch or fault.usage == "zeros" else said | {"output_tokens": 1}

    def _last_usage(self, used: Used, fault: Fault) -> dict[str, Any]:
        if fault.usage in ("none", "null", "start_only"):
            return {"usage": None} if fault.usage != "none" else {}
        said = self._usage(used, fault)
        assert said is not None
        if fault.usage == "delta_only":
            names = said.keys()
        elif fault.usage == "cumulative":
            names = said.keys() - {"cache_creation", "service_tier"}
        else:
            names = said.keys() & {"output_tokens", "output_tokens_details", "server_tool_use"}
        return {"usage": {name: count for name, count in said.items() if name in names}}

    # --- events -----------------------------------------------------------------------------------------------------

    async def _stream(
        self, out: EventStream, fault: Fault, asked: Asked, making: Production, seen: Seen
    ) -> web.StreamResponse:
        async def event(name: str, **fields: object) -> None:
            await out.event({"type": name, **fields}, name=name)

        try:
            async with making as made:
                await out.open()
                message = self._message(seen, asked, [], None)
                if fault.usage != "none":
                    message["usage"] = self._first_usage(made.used, fault)
                await event("message_start", message=message)
                await event("ping")
                await self._stream_blocks(event, out, fault, made, asked)
                await made.last()
                if fault.usage == "cumulative":  # two of them, both say totals
                    await event("message_delta", delta={}, **self._last_usage(made.used, fault))
                delta = {"stop_reason": self._stop(asked, made.used, fault), "stop_sequence": None}
                await event("message_delta", delta=delta, **self._last_usage(made.used, fault))
                await event("message_stop")
        except BrokeOff:
            await out.event(self.error(self.broke_off(fault), seen), name="error")
        except EndedEarly:
            pass
        return await out.close()

    async def _stream_blocks(self, event: Any, out: EventStream, fault: Fault, made: Production, asked: Asked) -> None:
        index, current = -1, ""
        async for kind, piece in self._made(made, asked):
            if kind != current:
                if current:
                    await self._stop_block(event, index, current)
                index, current = index + 1, kind
                await event("content_block_start", index=index, content_block=_opened(kind))
            await event("content_block_delta", index=index, delta=_delta(kind, piece))
            if fault.garbage_after == made.used.output:
                await out.event('{"type": "content_block', name="content_block_delta")
        if current:
            await self._stop_block(event, index, current)

    async def _stop_block(self, event: Any, index: int, kind: str) -> None:
        if kind == "thinking":
            await event("content_block_delta", index=index, delta={"type": "signature_delta", "signature": "c2ln"})
        await event("content_block_stop", index=index)

    # --- without money ----------------------------------------------------------------------------------------------

    async def count(self, request: web.Request, seen: Seen, fault: Fault) -> web.StreamResponse:
        body = self.checked(seen)
        return await say(request, fault, {"input_tokens": prompt_tokens(body)}, headers=self._headers(seen))

    async def models(self, request: web.Request, seen: Seen, fault: Fault) -> web.StreamResponse:
        data = [
            {
                "id": name,
                "type": "model",
                "display_name": name,
                "created_at": "2025-10-01T00:00:00Z",
                "lifecycle": "active",
            }
            for name in self.ledger.rates
        ]
        page = {"data": data, "has_more": False, "first_id": data[0]["id"], "last_id": data[-1]["id"]}
        return await say(request, fault, page, headers=self._headers(seen))


# --- blocks -----------------------------------------------------------------------------------------------------------


def _opened(kind: str) -> dict[str, Any]:
    match kind:
        case "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case "text":
            return {"type": "text", "text": ""}
    return {"type": "tool_use", "id": "toolu_1", "name": kind, "input": {}}


def _delta(kind: str, piece: str) -> dict[str, Any]:
    match kind:
        case "thinking":
            return {"type": "thinking_delta", "thinking": piece}
        case "text":
            return {"type": "text_delta", "text": piece}
    return {"type": "input_json_delta", "partial_json": piece}


def _grow(blocks: list[dict[str, Any]], kind: str, piece: str) -> None:
    if not blocks or blocks[-1]["kind"] != kind:
        blocks.append({"kind": kind, "said": ""})
    blocks[-1]["said"] += piece


def _finished(block: dict[str, Any]) -> dict[str, Any]:
    kind, said = block["kind"], block["said"]
    match kind:
        case "thinking":
            return {"type": "thinking", "thinking": said, "signature": "c2ln"}
        case "text":
            return {"type": "text", "text": said}
    return {"type": "tool_use", "id": "toolu_1", "name": kind, "input": _parsed(said)}


def _parsed(arguments: str) -> object:
    """What a cap left of the arguments may be no JSON: then there is no input."""
    try:
        return json.loads(arguments)
    except ValueError:
        return {}


def fake_anthropic(*, reply: Reply | None = None, fault: Fault = NO_FAULT) -> FakeAnthropic:
    return FakeAnthropic(reply=reply, fault=fault)
