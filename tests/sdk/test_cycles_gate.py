"""Cycles' own gates in a LangChain agent, unchanged: settled is what the provider bills."""

from __future__ import annotations

from typing import Any

import pytest
from providers.fake_openai import FakeOpenAI
from providers.faults import Fault
from sdk.cycles_world import GATE, LIMIT, Caller, Spending

pytestmark = pytest.mark.timeout(600)  # beyond the clients' own deadlines

PROGRAM = GATE
MODES = ("decide", "reserve", "decide+reserve")
NANOS = 10
"""In a microcent."""

every_mode = pytest.mark.parametrize("mode", MODES)
either_way = pytest.mark.parametrize("how", ["plain", "async"])


async def run(caller: Caller, provider: FakeOpenAI, mode: str, how: str = "plain", **more: Any) -> dict[str, Any]:
    asked = {"provider": provider.base_url, "provider_key": provider.key, "gates": ["model"], "estimate": 60_000}
    return await caller.ask(how, **{**asked, "mode": mode, **more})


@either_way
@every_mode
async def test_an_agent_behind_a_gate_is_charged_what_the_provider_bills(
    caller: Caller, provider: FakeOpenAI, mode: str, how: str
) -> None:
    said = await run(caller, provider, mode, how)
    assert said["messages"][-1] == ["ai", provider.reply.text], said
    billed = provider.ledger.total // NANOS
    assert provider.ledger.total == billed * NANOS > 0
    expected = 0 if mode == "decide" else billed
    assert await caller.spending() == Spending(settled=expected, held=0, remaining=LIMIT - expected)


@either_way
@every_mode
async def test_a_gate_that_is_refused_lets_nothing_through(
    caller: Caller, provider: FakeOpenAI, mode: str, how: str
) -> None:
    said = await run(caller, provider, mode, how, estimate=LIMIT + 1)
    kind, text = said["messages"][-1]
    assert kind == "ai"
    assert text.startswith("Model call denied by Cycles policy: "), said
    assert provider.requests == []
    assert await caller.spending() == Spending(settled=0, held=0, remaining=LIMIT)


async def test_a_model_that_fails_holds_nothing_any_more(caller: Caller, provider: FakeOpenAI) -> None:
    provider.fault = Fault(status=500)
    said = await run(caller, provider, "reserve")
    assert "InternalServerError" in said["error"]["catch"], said
    assert await caller.spending() == Spending(settled=0, held=0, remaining=LIMIT)


async def test_gates_of_turns_models_and_tools_together_are_charged_for_both(
    caller: Caller, provider: FakeOpenAI
) -> None:
    said = await run(caller, provider, "decide+reserve", gates=["fan-out", "model", "tool"], a_tool=1_234)
    assert said["messages"][-1] == ["tool", "rain in Zürich"], said
    expected = provider.ledger.total // NANOS + 1_234
    assert await caller.spending() == Spending(settled=expected, held=0, remaining=LIMIT - expected)
