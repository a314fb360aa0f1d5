"""LangChain: a callback handler that holds every model call before it is made and settles it by its usage.

    purse = Purse("http://127.0.0.1:8080", key="purse_...")
    model = ChatOpenAI(model="gpt-4o-mini", max_completion_tokens=500, callbacks=[PurseHandler(purse)])

One that does not fit raises `Exhausted` out of `invoke`, and the model is not called. A call that is retried inside of
its model is held once. What ends without usage (a stream without `stream_usage`, an error) is charged at the grant, as
an estimate; a stream that is left before its end lapses so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import convert_to_openai_messages

from commonpurse.costs import cost_of_usage
from commonpurse.integrations.open_holds import OpenHolds
from commonpurse.sync import Holding, Purse
from engine.guarding import Said, Terms, Worst
from engine.holding import OnError
from engine.prices import Usage

CAPS = ("max_completion_tokens", "max_output_tokens", "max_tokens", "max_tokens_to_sample")


class PurseHandler(BaseCallbackHandler):
    """For `callbacks=[...]` of a model, a chain or a run, with or without asyncio. Safe for any number of runs."""

    raise_error = True  # else LangChain logs a refusal and makes the call

    def __init__(
        self,
        purse: Purse,
        worst: Worst | None = None,
        *,
        labels: Mapping[str, str] | None = None,
        on_error: OnError = "charge",
        ttl_s: int | None = None,
    ) -> None:
        """`worst`: the most a call could cost, or a function of its messages and parameters (as OpenAI writes both).

        None: the wallet is asked for an estimate. `on_error`: what an error of the model means; see `engine.holding`.
        """
        self._purse, self._worst, self._labels = purse, worst, dict(labels or {})
        self._on_error, self._ttl_s = on_error, ttl_s
        self._open: OpenHolds[Holding] = OpenHolds()

    # --- what LangChain calls -----------------------------------------------------------------------------------------

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[Any]], *, run_id: UUID, **more: Any
    ) -> None:
        """Raises `Exhausted` or another `Refused`, and whatever `Purse.hold` raises."""
        said = [message for each in messages for message in convert_to_openai_messages(each)]
        self._begin(run_id, said, more)

    def on_llm_start(self, serialized: dict[str, Any], prompts: list[str], *, run_id: UUID, **more: Any) -> None:
        """Raises as above."""
        self._begin(run_id, [{"role": "user", "content": prompt} for prompt in prompts], more)

    def on_llm_end(self, response: Any, *, run_id: UUID, **more: Any) -> None:
        hold = self._open.take(run_id.hex)
        if hold is not None:
            Terms({}, cost_of_result).settle(hold, response)
            hold.end()

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        hold = self._open.take(run_id.hex)
        if hold is not None:
            hold.failed(error, self._on_error)
            hold.end()

    # --- holding ------------------------------------------------------------------------------------------------------

    def _begin(self, run_id: UUID, messages: list[dict[str, Any]], more: Mapping[str, Any]) -> None:
        asked: Mapping[str, Any] = more.get("invocation_params") or {}
        model = model_of(asked)
        labels = {**self._labels, **({"model": model} if model else {})}
        hold = self._purse.open(self._most(messages, asked, model), labels=labels, ttl_s=self._ttl_s)
        self._open.put(run_id.hex, hold)

    def _most(self, messages: list[dict[str, Any]], asked: Mapping[str, Any], model: str) -> Said:
        if callable(self._worst):
            said: Any = self._worst(messages, asked)
            return dict(said)
        if self._worst is not None:
            return self._worst
        call: dict[str, Any] = {"model": model, "messages": messages}
        if tools := asked.get("tools"):
            call["tools"] = tools
        if (cap := next((asked[name] for name in CAPS if asked.get(name) is not None), None)) is not None:
            call["max_tokens"] = cap
        if isinstance(asked.get("n"), int):
            call["n"] = asked["n"]
        return self._purse.estimate(**call).amounts


def model_of(asked: Mapping[str, Any]) -> str:
    """The model that is called, "" where it does not say."""
    return next((asked[name] for name in ("model", "model_name", "model_id") if isinstance(asked.get(name), str)), "")


def cost_of_result(response: Any) -> Said | None:
    """What an `LLMResult` says that it cost; None where it does not tell. Choices of one call share their usage."""
    messages = [getattr(each, "message", None) for generation in response.generations for each in generation]
    message = next((each for each in messages if getattr(each, "usage_metadata", None)), None)
    if message is None:
        return None
    about = getattr(message, "response_metadata", None) or {}
    return cost_of_usage(model_of(about), usage_of(message.usage_metadata), provider=about.get("model_provider") or "")


def usage_of(said: Mapping[str, Any]) -> Usage:
    """LangChain's own count of a call: whatever was cached is in `input_tokens` already."""
    into, out = said.get("input_token_details") or {}, said.get("output_token_details") or {}
    written = into.get("cache_creation") or 0
    for_1h = into.get("ephemeral_1h_input_tokens") or 0
    return Usage(
        input_tokens=said["input_tokens"], output_tokens=said["output_tokens"],
        cache_read_tokens=into.get("cache_read") or 0,
        cache_write_tokens=max(written, into.get("ephemeral_5m_input_tokens") or 0),
        cache_write_1h_tokens=for_1h, input_audio_tokens=into.get("audio") or 0,
        output_audio_tokens=out.get("audio") or 0, output_reasoning_tokens=out.get("reasoning") or 0,
    )  # fmt: skip
