"""A fake Workers AI: its native `/run/{model}` and its OpenAI-style routes.

It bills neurons, and may have none left for today.
"""

from __future__ import annotations

import base64
import json
from typing import Any, ClassVar

from aiohttp import web
from providers.answer import EventStream, say
from providers.fake_openai import FakeOpenAI
from providers.faults import NO_FAULT, Fault
from providers.ledger import Ledger, Rate, Used
from providers.production import BrokeOff, EndedEarly, Production, Reply, Seen, count_tokens
from providers.provider import Making, Refused

ACCOUNT = "/client/v4/accounts/0123456789abcdef/ai"
DEFAULT_CAP = 256
DIMENSIONS = 4
SPENT = "You have used up your daily free allocation of 10,000 neurons, please upgrade to the Workers Paid plan."

LLAMA = "@cf/meta/llama-3.1-8b-instruct"
BGE = "@cf/baai/bge-base-en-v1.5"
FLUX = "@cf/black-forest-labs/flux-1-schnell"

RATES = {
    LLAMA: Rate(input=25_608, output=75_147),
    "@cf/meta/llama-3.2-1b-instruct": Rate(input=2_457, output=18_252),
    BGE: Rate(input=6_058),
    FLUX: Rate(input=0, call=172_800_000),
}
"""Millionths of a neuron a token, or a call."""


class FakeWorkersAI(FakeOpenAI):
    """Its `base_url` is the account's address up to `/ai`."""

    KEY = "cf-token-of-the-provider"
    REQUEST_ID = "cf-ray"
    default_cap: ClassVar[int | None] = DEFAULT_CAP

    def __init__(self, *, reply: Reply | None = None, fault: Fault = NO_FAULT, allocation: int | None = None) -> None:
        super().__init__(reply=reply, fault=fault, ledger=Ledger("neurons", RATES))
        self.allocation = allocation
        """Millionths of neurons it gives away today, or no end of them."""
        self.spent_code = 3036

    @property
    def base_url(self) -> str:
        return self.url + ACCOUNT

    def routes(self) -> dict[str, Making]:
        table: dict[str, Making] = {
            f"{ACCOUNT}/v1/chat/completions": self.chat,
            f"{ACCOUNT}/v1/embeddings": self.embeddings,
            f"{ACCOUNT}/run/*": self.run,
        }
        return {path: self._while_there_are_neurons(making) for path, making in table.items()}

    def looks(self) -> dict[str, Making]:
        return {}

    def _while_there_are_neurons(self, making: Making) -> Making:
        async def checked(request: web.Request, seen: Seen, fault: Fault) -> web.StreamResponse:
            if self.allocation is not None and self.ledger.total >= self.allocation:
                raise Refused(429, "", SPENT, code=self.spent_code)
            return await making(request, seen, fault)

        return checked

    def error(self, refused: Refused, seen: Seen) -> dict[str, Any]:
        code = (
            refused.code
            if isinstance(refused.code, int)
            else {401: 10000, 404: 5007, 400: 5006}.get(refused.status, 8005)
        )
        return {"result": {}, "success": False, "errors": [{"code": code, "message": refused.message}], "messages": []}

    # --- native -----------------------------------------------------------------------------------------------------

    async def run(self, request: web.Request, seen: Seen, fault: Fault) -> web.StreamResponse:
        model = request.path.removeprefix(f"{ACCOUNT}/run/")
        body = seen.json
        if model not in self.ledger.rates:
            raise Refused(404, "", f"No such model {model}", code=5007)
        if not isinstance(body, dict):
            raise Refused(400, "", "Invalid input", code=5006)
        if model == FLUX:
            return await self._image(request, seen, fault, model)
        if model == BGE:
            return await self._vectors(request, seen, fault, model, body)
        if "prompt" not in body and "messages" not in body:
            raise Refused(400, "", "required properties at '/' are 'prompt' or 'messages'", code=5006)
        prompt = Used(input=count_tokens(body.get("prompt")) + count_tokens(body.get("messages")) + 3)
        stream = bool(body.get("stream"))
        making = self.producing(request, seen, fault, model, prompt, stream=stream)
        pieces = self.reply.tokens if fault.ignores_cap else self.reply.tokens[: body.get("max_tokens", DEFAULT_CAP)]
        if stream:
            return await self._stream_run(EventStream(request, fault), fault, model, making, pieces)
        async with making as made:
            for _ in pieces:
                await made.token()
            await made.last()
        result: dict[str, Any] = {"response": "".join(pieces), **self.usage(made.used, model, fault)}
        if body.get("tools"):
            arguments = json.loads("".join(self.reply.tool_arguments))
            result |= {"response": None, "tool_calls": [{"name": _tool_name(body["tools"][0]), "arguments": arguments}]}
        return await self._result(request, fault, result, made.used, model)

    async def _stream_run(
        self, out: EventStream, fault: Fault, model: str, making: Production, pieces: tuple[str, ...]
    ) -> web.StreamResponse:
        try:
            async with making as made:
                await out.open()
                for piece in pieces:
                    await made.token()
                    await out.event({"response": piece, "p": "abdefghijk"[: len(piece)]})
                    if fault.garbage_after == made.used.output:
                        await out.event('{"response": "')
                await made.last()
                if usage := self.usage(made.used, model, fault):
                    await out.event({"response": "", **usage})
        except BrokeOff:
            await out.event({"errors": [{"code": 8005, "message": self.fault.message}], "success": False}, name="error")
        except EndedEarly:
            return await out.close()
        if not fault.without_done:
            await out.event("[DONE]")
        return await out.close()

    async def _vectors(
        self, request: web.Request, seen: Seen, fault: Fault, model: str, body: dict[str, Any]
    ) -> web.StreamResponse:
        texts = body.get("text")
        if not isinstance(texts, str | list) or not texts:
            raise Refused(400, "", "required properties at '/' are 'text'", code=5006)
        texts = [texts] if isinstance(texts, str) else texts
        async with self.producing(request, seen, fault, model, Used(input=count_tokens(texts))) as made:
            await made.at(0)
        data = [[float(at + place) for place in range(DIMENSIONS)] for at in range(len(texts))]
        result = {"shape": [len(texts), DIMENSIONS], "data": data, "pooling": "mean"}
        return await self._result(request, fault, result, made.used, model)

    async def _image(self, request: web.Request, seen: Seen, fault: Fault, model: str) -> web.StreamResponse:
        async with self.producing(request, seen, fault, model, Used()) as made:
            await made.at(0)
        return await self._result(
            request, fault, {"image": base64.b64encode(b"\xff\xd8\xff").decode()}, made.used, model
        )

    async def _result(
        self, request: web.Request, fault: Fault, result: dict[str, Any], used: Used, model: str
    ) -> web.StreamResponse:
        body = {"result": result, "success": True, "errors": [], "messages": []}
        return await say(request, fault, body, headers=self.figures(used, model, fault))

    # --- usage ------------------------------------------------------------------------------------------------------

    def figures(self, used: Used, model: str, fault: Fault) -> dict[str, str]:
        if fault.usage in ("body", "none", "null"):
            return {}
        return {"cf-ai-neurons": _neurons(0 if fault.usage == "zeros" else self.ledger.price(model, used))}

    def figures_of(self, used: Used, model: str, fault: Fault) -> dict[str, Any]:
        if fault.usage == "header":
            return {}
        return {"neurons": json.loads(_neurons(0 if fault.usage == "zeros" else self.ledger.price(model, used)))}


def _tool_name(tool: dict[str, Any]) -> str:
    return str(tool.get("name") or tool["function"]["name"])


def _neurons(millionths: int) -> str:
    """A decimal number of neurons."""
    whole, part = divmod(millionths, 1_000_000)
    return f"{whole}.{part:06d}".rstrip("0").rstrip(".")


def fake_workers_ai(
    *, reply: Reply | None = None, fault: Fault = NO_FAULT, allocation: int | None = None
) -> FakeWorkersAI:
    return FakeWorkersAI(reply=reply, fault=fault, allocation=allocation)
