"""The Responses route of the fake OpenAI: one message or one function call, plain or as its numbered events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp import web
from providers.answer import EventStream, say
from providers.faults import Fault
from providers.ledger import Used
from providers.production import BrokeOff, EndedEarly, Production, Seen, count_tokens
from providers.provider import Refused

if TYPE_CHECKING:
    from providers.fake_openai import FakeOpenAI

CREATED = 1_790_000_000


class ResponsesApi:
    """One call of `/v1/responses`."""

    def __init__(self, provider: FakeOpenAI) -> None:
        self._provider = provider

    async def make(self, request: web.Request, seen: Seen, fault: Fault) -> web.StreamResponse:
        body = self._body = self._provider.checked(seen)
        if "input" not in body and "prompt" not in body:
            raise Refused(400, "invalid_request_error", "Missing required parameter: 'input'.", param="input")
        if "max_tokens" in body:
            raise Refused(
                400, "invalid_request_error", "Unsupported parameter: 'max_tokens'.",
                code="unsupported_parameter", param="max_tokens",
            )  # fmt: skip
        cap = body.get("max_output_tokens")
        if cap is not None and cap < 16:
            raise Refused(400, "invalid_request_error", "'max_output_tokens' must be >= 16.", param="max_output_tokens")
        self._id, self._fault = f"resp_{seen.number}", fault
        self._cap = cap if cap is not None and not fault.ignores_cap else 1 << 30
        self._tool = self._first_tool()
        tokens = (
            count_tokens(body.get("input")) + count_tokens(body.get("instructions")) + count_tokens(body.get("tools"))
        )
        prompt = self._provider.prompt_of(tokens + 3)
        stream = bool(body.get("stream"))
        making = self._provider.producing(request, seen, fault, body["model"], prompt, stream=stream)
        headers = {"x-request-id": f"req_{seen.number}"}
        if stream:
            return await self._stream(EventStream(request, fault, headers), making)
        text = ""
        async with making as made:
            async for piece in self._pieces(made):
                text += piece
            await made.last()
        return await say(request, fault, self._response("completed", text, made.used), headers=headers)

    def _first_tool(self) -> str | None:
        tools = [tool["name"] for tool in self._body.get("tools") or [] if tool.get("type") == "function"]
        return tools[0] if tools and self._body.get("tool_choice") != "none" else None

    async def _pieces(self, made: Production) -> Any:
        reply = self._provider.reply
        pieces = reply.tool_arguments if self._tool else reply.tokens
        for _ in range(min(reply.reasoning, self._cap)):
            await made.token(reasoning=True)
        left = max(0, self._cap - reply.reasoning)
        self._cut = len(pieces) > left
        for piece in pieces[:left]:
            await made.token()
            yield piece

    # --- documents --------------------------------------------------------------------------------------------------

    def _response(self, status: str, text: str | None, used: Used | None) -> dict[str, Any]:
        cut = status == "completed" and self._cut
        status = "incomplete" if cut else status
        body = self._body
        return {
            "id": self._id, "object": "response", "created_at": CREATED, "status": status, "background": False,
            "error": None, "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "instructions": body.get("instructions"), "max_output_tokens": body.get("max_output_tokens"),
            "model": body["model"], "output": [] if text is None else [self._item(status, text)],
            "parallel_tool_calls": True, "previous_response_id": None, "reasoning": {"effort": None, "summary": None},
            "service_tier": "default", "store": True, "temperature": 1.0, "text": {"format": {"type": "text"}},
            "tool_choice": body.get("tool_choice", "auto"), "tools": body.get("tools") or [], "top_p": 1.0,
            "truncation": "disabled", "user": None, "metadata": {},
            **({"usage": None} if used is None else self._usage(used)),
        }  # fmt: skip

    def _usage(self, used: Used) -> dict[str, Any]:
        fault = self._fault
        if fault.usage == "none":
            return {}
        if fault.usage == "null":
            return {"usage": None}
        if fault.usage == "zeros":
            used = Used()
        said = {
            "input_tokens": used.input,
            "input_tokens_details": {"cached_tokens": used.cache_read, "cache_write_tokens": used.cache_write},
            "output_tokens": used.output,
            "output_tokens_details": {"reasoning_tokens": used.reasoning},
            "total_tokens": used.input + used.output,
        }
        return {"usage": said | dict(fault.usage_patch)}

    def _item(self, status: str, text: str) -> dict[str, Any]:
        if self._tool:
            call = {"id": "fc_1", "call_id": "call_1", "name": self._tool, "arguments": text}
            return {**call, "type": "function_call", "status": status}
        content = [self._part(text)] if status != "in_progress" else []
        return {"id": "msg_1", "type": "message", "status": status, "role": "assistant", "content": content}

    def _part(self, text: str) -> dict[str, Any]:
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}

    # --- events -----------------------------------------------------------------------------------------------------

    async def _stream(self, out: EventStream, making: Production) -> web.StreamResponse:
        self._out, self._number, self._cut = out, -1, False
        try:
            async with making as made:
                await out.open()
                for name in ("response.created", "response.in_progress"):
                    await self._event(name, response=self._response("in_progress", None, None))
                text = await self._stream_item(made)
                await made.last()
                whole = self._response("completed", text, made.used)
                await self._event(f"response.{whole['status']}", response=whole)
        except BrokeOff:
            broke = self._provider.broke_off(self._fault)
            await self._event("error", code=broke.code, message=broke.message, param=None)
        except EndedEarly:
            pass
        return await out.close()

    async def _stream_item(self, made: Production) -> str:
        at: dict[str, Any] = {"output_index": 0}
        tool = self._tool is not None
        what = {"item_id": "fc_1", **at} if tool else {"item_id": "msg_1", **at, "content_index": 0}
        await self._event("response.output_item.added", item=self._item("in_progress", ""), **at)
        if not tool:
            await self._event("response.content_part.added", part=self._part(""), **what)
        text = ""
        async for piece in self._pieces(made):
            text += piece
            if tool:
                await self._event("response.function_call_arguments.delta", delta=piece, **what)
            else:
                await self._event("response.output_text.delta", delta=piece, logprobs=[], **what)
            if self._fault.garbage_after == made.used.output:
                await self._out.event('{"type": "response.', name="response.output_text.delta")
        status = "incomplete" if self._cut else "completed"
        if tool:
            await self._event("response.function_call_arguments.done", arguments=text, name=self._tool, **what)
        else:
            await self._event("response.output_text.done", text=text, logprobs=[], **what)
            await self._event("response.content_part.done", part=self._part(text), **what)
        await self._event("response.output_item.done", item=self._item(status, text), **at)
        return text

    async def _event(self, name: str, /, **fields: object) -> None:
        self._number += 1
        await self._out.event({"type": name, "sequence_number": self._number, **fields}, name=name)
