"""Cycles' gates in a LangChain agent, unchanged, before LangChain's own client of OpenAI."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langchain_runcycles import CyclesFanOutGate, CyclesModelGate, CyclesToolGate
from langchain_runcycles.extractors import openai_cost
from line_by_line import QUESTION, Asked, Said, answer_lines
from runcycles import Action, Amount, AsyncCyclesClient, CyclesClient, CyclesConfig, Subject, Unit

MODEL = Action(kind="llm.completion", name="gpt-4o")


def config(asked: Asked) -> CyclesConfig:
    return CyclesConfig(base_url=asked["url"], api_key=asked["key"], journal_dir=asked["journal"])


@tool(return_direct=True)
def weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"


def agent(asked: Asked, client: CyclesClient | AsyncCyclesClient) -> Any:
    """`gates`: those of them that guard it. `mode`, `estimate` (microcents): of each."""
    model = ChatOpenAI(
        base_url=asked["provider"], api_key=asked["provider_key"], model="gpt-4o", max_completion_tokens=100,
        max_retries=0,
    )  # fmt: skip
    subject = Subject(**asked["subject"])
    mode, estimate = asked["mode"], Amount(unit=Unit.USD_MICROCENTS, amount=asked["estimate"])
    cost = openai_cost(prompt_per_million_usd=2.50, completion_per_million_usd=10.00)
    gates = {
        "fan-out": lambda: CyclesFanOutGate(10, client=client, subject=subject, action=MODEL),
        "model": lambda: CyclesModelGate(
            client, subject=subject, action=MODEL, mode=mode, estimate=estimate, cost_fn=cost
        ),
        "tool": lambda: CyclesToolGate(
            client, subject=subject, action={"weather": Action(kind="tool.weather", name="weather")}, mode=mode,
            estimate=estimate, cost_fn=lambda request, result: Amount(unit=Unit.USD_MICROCENTS, amount=asked["a_tool"]),
        ),
    }  # fmt: skip
    tools = [weather] if "tool" in asked["gates"] else []
    return create_agent(model, tools=tools, middleware=[gates[name]() for name in asked["gates"]])


def told(state: Any) -> Said:
    return {"messages": [[message.type, message.text] for message in state["messages"]]}


def question() -> Any:
    return {"messages": [{"role": "user", "content": QUESTION}]}


def plain(asked: Asked) -> Said:
    with CyclesClient(config(asked)) as client:
        return told(agent(asked, client).invoke(question()))


def awaiting(asked: Asked) -> Said:
    async def run() -> Said:
        async with AsyncCyclesClient(config(asked)) as client:
            return told(await agent(asked, client).ainvoke(question()))

    return asyncio.run(run())


if __name__ == "__main__":
    answer_lines({"cycles-gate": {"plain": plain, "async": awaiting}})
