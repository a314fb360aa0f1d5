"""Cycles' hooks and guardrail in a run of the OpenAI Agents SDK, unchanged, before its own client of OpenAI."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from agents import Agent, InputGuardrailTripwireTriggered, ModelSettings, OpenAIProvider, RunConfig, function_tool
from line_by_line import QUESTION, Asked, Said, answer_lines
from openai import APIStatusError, AsyncOpenAI
from runcycles import AsyncCyclesClient, BudgetExceededError, CyclesConfig, Unit
from runcycles_openai_agents import CyclesRunHooks, ToolEstimateConfig, cycles_budget_guardrail


@function_tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"


def agent(asked: Asked, guardrails: list[Any]) -> Agent[Any]:
    """It says one thing, or (`tool`) asks its tool and says what that says."""
    tools = {"tools": [weather], "tool_use_behavior": "stop_on_first_tool"} if asked.get("tool") else {}
    return Agent(
        asked["agent"], instructions="Answer briefly.", model="gpt-4o", model_settings=ModelSettings(max_tokens=100),
        input_guardrails=guardrails, **tools,
    )  # fmt: skip


async def run(asked: Asked) -> Said:
    """`unit` and `estimate` of every call of the model; `a_tool` of every call of a tool, in the same unit."""
    config = CyclesConfig(base_url=asked["url"], api_key=asked["key"], journal_dir=asked["journal"])
    unit, subject = Unit(asked["unit"]), asked["subject"]
    async with (
        AsyncCyclesClient(config) as client,
        AsyncOpenAI(base_url=asked["provider"], api_key=asked["provider_key"], max_retries=0) as provider,
    ):
        tool = ToolEstimateConfig(estimate=asked.get("a_tool", 0), unit=unit)
        hooks: CyclesRunHooks[Any] = CyclesRunHooks(
            client, llm_estimate=asked["estimate"], llm_unit=unit, tool_estimates={"weather": tool}, **subject
        )
        checked = cycles_budget_guardrail(
            client=client, estimate=asked["estimate"], unit=unit, fail_open=False, **subject
        )
        guardrails = [replace(checked, run_in_parallel=False)]  # else the model is asked beside it, and may be first
        settings = RunConfig(model_provider=OpenAIProvider(openai_client=provider), tracing_disabled=True)
        told = agent(asked, guardrails if asked.get("guardrail") else [])
        try:
            if asked.get("stream"):
                streamed = hooks.run_streamed(told, QUESTION, run_config=settings)
                async for _ in streamed.stream_events():
                    pass
                return {"said": streamed.final_output}
            return {"said": (await hooks.run(told, QUESTION, run_config=settings)).final_output}
        except BudgetExceededError as refused:
            return {"refused": refused.error_code, "status": refused.status}
        except InputGuardrailTripwireTriggered as tripped:
            return {"tripped": tripped.guardrail_result.output.output_info}
        except APIStatusError as failed:
            return {"failed": failed.status_code}


if __name__ == "__main__":
    answer_lines({"cycles-hooks": {"run": lambda asked: asyncio.run(run(asked))}})
