"""Cycles' own hooks in a run of the OpenAI Agents SDK, unchanged: what they hold and what they settle."""

from __future__ import annotations

from typing import Any

import pytest
from providers.fake_openai import FakeOpenAI
from providers.faults import Fault
from sdk.cycles_world import HOOKS, LIMIT, TENANT, Caller, Spending

pytestmark = pytest.mark.timeout(600)  # beyond the clients' own deadlines

PROGRAM = HOOKS

streamed_or_not = pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])


async def run(caller: Caller, provider: FakeOpenAI, **more: Any) -> dict[str, Any]:
    """The hooks name the agent themselves: it is called as its budget is."""
    asked = {"provider": provider.base_url, "provider_key": provider.key, "unit": "USD_MICROCENTS", "estimate": 60_000}
    return await caller.ask("run", **{**asked, "subject": {"tenant": TENANT}, "agent": caller.agent, **more})


@streamed_or_not
async def test_a_run_is_charged_the_estimate_of_its_model_as_these_hooks_do(
    caller: Caller, provider: FakeOpenAI, stream: bool
) -> None:
    said = await run(caller, provider, stream=stream)
    assert said == {"said": provider.reply.text}
    assert len(provider.requests) == 1
    assert await caller.spending() == Spending(settled=60_000, held=0, remaining=40_000)


async def test_a_run_in_tokens_is_charged_the_tokens_that_the_provider_counted(
    caller: Caller, provider: FakeOpenAI
) -> None:
    before = (await caller.wallet.budgets())["tokens"]
    assert await run(caller, provider, unit="TOKENS", estimate=5_000) == {"said": provider.reply.text}
    (seen,) = provider.requests
    assert seen.used is not None
    after = (await caller.wallet.budgets())["tokens"]
    assert (after.settled - before.settled, after.held) == (seen.used.input + seen.used.output, 0)


async def test_a_tool_of_a_run_is_charged_beside_its_model(caller: Caller, provider: FakeOpenAI) -> None:
    said = await run(caller, provider, tool=True, a_tool=1_234)
    assert said == {"said": "rain in Zürich"}
    assert await caller.spending() == Spending(settled=61_234, held=0, remaining=LIMIT - 61_234)


async def test_a_run_that_does_not_fit_asks_nothing(caller: Caller, provider: FakeOpenAI) -> None:
    assert await run(caller, provider, estimate=LIMIT + 1) == {"refused": "BUDGET_EXCEEDED", "status": 409}
    assert provider.requests == []
    assert await caller.spending() == Spending(settled=0, held=0, remaining=LIMIT)


async def test_a_tool_that_does_not_fit_is_not_called(caller: Caller, provider: FakeOpenAI) -> None:
    error = (await run(caller, provider, tool=True, a_tool=40_001))["error"]
    assert (error["catch"][0], "Cycles error for tool=weather" in error["message"]) == ("UserError", True), error
    assert await caller.spending() == Spending(settled=60_000, held=0, remaining=40_000)


async def test_a_run_whose_model_fails_holds_nothing_any_more(caller: Caller, provider: FakeOpenAI) -> None:
    provider.fault = Fault(status=500)
    assert await run(caller, provider) == {"failed": 500}
    assert await caller.spending() == Spending(settled=0, held=0, remaining=LIMIT)


async def test_a_guardrail_lets_a_run_begin_that_fits_its_tenants_budget_and_no_other(
    caller: Caller, provider: FakeOpenAI
) -> None:
    dollars = (await caller.wallet.budgets())["tenant"].remaining
    tripped = await run(caller, provider, guardrail=True, estimate=dollars + 1)
    assert tripped["tripped"]["decision"] == "DENY", tripped
    assert provider.requests == []
    assert await run(caller, provider, guardrail=True) == {"said": provider.reply.text}
