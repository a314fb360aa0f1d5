"""OpenAI Agents SDK: a model provider whose every model call is held before it is made and settled by its usage.

    async with Purse("http://127.0.0.1:8080", key="purse_...") as purse:
        run = RunConfig(model_provider=PurseProvider(purse, MultiProvider()))
        await Runner.run(agent, "Hello", run_config=run)

One that does not fit raises `Exhausted` out of the run, and the model is not called. Tools and handoffs are part of
what a call may cost. What ends without usage is charged at the grant, as an estimate.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from agents import Model, ModelProvider

from commonpurse.aio import Purse
from commonpurse.costs import cost_of, cost_of_usage
from engine.guarding import Said, Terms
from engine.holding import OnError
from engine.prices import Usage


class PurseProvider(ModelProvider):
    """Another provider, whose models are guarded. For `RunConfig(model_provider=...)`."""

    def __init__(
        self,
        purse: Purse,
        provider: Any,
        worst: Said | None = None,
        *,
        labels: Mapping[str, str] | None = None,
        on_error: OnError = "charge",
    ) -> None:
        """`worst`: the most one model call could cost; None: the wallet is asked for an estimate each time.

        `on_error`: what an error of the model means; see `engine.holding`.
        """
        self._purse, self._provider, self._worst = purse, provider, worst
        self._labels, self._on_error = dict(labels or {}), on_error

    def get_model(self, model_name: str | None) -> Model:
        model = self._provider.get_model(model_name)
        return GuardedModel(self._purse, model, self._worst, labels=self._labels, on_error=self._on_error)

    async def aclose(self) -> None:
        await self._provider.aclose()


class GuardedModel(Model):
    """A model whose calls are held and settled. For `Agent(model=...)`. `name`: what it is priced as."""

    def __init__(
        self,
        purse: Purse,
        model: Any,
        worst: Said | None = None,
        *,
        name: str = "",
        labels: Mapping[str, str] | None = None,
        on_error: OnError = "charge",
    ) -> None:
        self._purse, self._model, self._worst, self._on_error = purse, model, worst, on_error
        self.name = name or str(getattr(model, "model", ""))
        self._labels = {**(labels or {}), **({"model": self.name} if self.name else {})}

    async def get_response(
        self,
        system_instructions: str | None,
        input: Any,  # noqa: A002 - the SDK's own name
        model_settings: Any,
        tools: list[Any],
        output_schema: Any,
        handoffs: list[Any],
        tracing: Any,
        **more: Any,
    ) -> Any:
        """Raises `Exhausted` or another `Refused`, and whatever `Purse.hold` raises."""
        asked = (system_instructions, input, model_settings, tools, output_schema, handoffs)
        async with self._holding(await self._most(*asked)) as hold:
            response = await self._model.get_response(*asked, tracing, **more)
            Terms({}, self._cost).settle(hold, response)
            return response

    async def stream_response(
        self,
        system_instructions: str | None,
        input: Any,  # noqa: A002 - the SDK's own name
        model_settings: Any,
        tools: list[Any],
        output_schema: Any,
        handoffs: list[Any],
        tracing: Any,
        **more: Any,
    ) -> AsyncIterator[Any]:
        """As above. A stream that is left before its end is charged at the grant."""
        asked = (system_instructions, input, model_settings, tools, output_schema, handoffs)
        async with self._holding(await self._most(*asked)) as hold:
            async for event in self._model.stream_response(*asked, tracing, **more):
                if event.type in ("response.completed", "response.incomplete"):
                    Terms({}, self._cost_of_stream).settle(hold, event.response)
                yield event

    async def close(self) -> None:
        await self._model.close()

    def get_retry_advice(self, request: Any) -> Any:
        return self._model.get_retry_advice(request)

    # --- holding ------------------------------------------------------------------------------------------------------

    def _holding(self, worst: Said) -> Any:
        return self._purse.holding(worst, labels=self._labels, on_error=self._on_error)

    async def _most(
        self, system: str | None, items: Any, settings: Any, tools: list[Any], schema: Any, handoffs: list[Any]
    ) -> Said:
        if self._worst is not None:
            return self._worst
        call: dict[str, Any] = {"model": self.name, "input": items}
        if system:
            call["system"] = system
        if functions := [*map(_tool, tools), *map(_handoff, handoffs), *_schema(schema)]:
            call["tools"] = functions
        if settings.max_tokens is not None:
            call["max_tokens"] = settings.max_tokens
        return (await self._purse.estimate(**call)).amounts

    def _cost(self, response: Any) -> Said | None:
        return cost_of_usage(self.name, usage_of(response.usage))

    def _cost_of_stream(self, response: Any) -> Said | None:
        """Its answer in full, or, of a provider that makes its own stream into one, at least its usage."""
        return cost_of(response) or self._cost(response)


def usage_of(said: Any) -> Usage | None:
    """The SDK's own count of a call; None where its provider did not say."""
    if said is None or not (said.input_tokens or said.output_tokens):
        return None
    return Usage(
        input_tokens=said.input_tokens, output_tokens=said.output_tokens,
        cache_read_tokens=said.input_tokens_details.cached_tokens or 0,
        output_reasoning_tokens=said.output_tokens_details.reasoning_tokens or 0,
    )  # fmt: skip


def _tool(tool: Any) -> dict[str, Any]:
    schema = getattr(tool, "params_json_schema", None)
    return {
        "type": "function",
        "name": tool.name,
        "description": getattr(tool, "description", ""),
        "parameters": schema,
    }


def _handoff(handoff: Any) -> dict[str, Any]:
    return {
        "type": "function", "name": handoff.tool_name, "description": handoff.tool_description,
        "parameters": handoff.input_json_schema,
    }  # fmt: skip


def _schema(schema: Any) -> list[dict[str, Any]]:
    """What the answer must look like goes to the model as well."""
    if schema is None or schema.is_plain_text():
        return []
    return [{"type": "function", "name": schema.name(), "parameters": schema.json_schema()}]
