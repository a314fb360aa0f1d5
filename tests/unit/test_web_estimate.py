"""What a call could cost, asked before it is made: the bound that a guarded call would hold, and nothing held."""

from __future__ import annotations

from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import pytest
import pytest_asyncio
from desk_client import DOLLAR, NEURON, Desk, Heard, open_desk

from engine.core.plan import Budget, Plan
from engine.prices import load_book, worst
from web import builtin
from web.proxy.intake import Intake

MESSAGES = [{"role": "user", "content": "How large is the moon?"}]
PLAN = Plan(
    budgets={
        "money": Budget("usd", DOLLAR),
        "openai": Budget("usd", DOLLAR // 2, where={"provider": "openai"}),
        "neurons": Budget("neurons", 10_000 * NEURON, source="cloudflare"),
        "user-daily": Budget("usd", DOLLAR, each="user"),
    }
)


@pytest_asyncio.fixture
async def desk() -> AsyncIterator[Desk]:
    async with open_desk(PLAN) as desk:
        yield desk


async def estimate(desk: Desk, model: str = "gpt-4o", key: str | None = "purse_test_key", **more: Any) -> Heard:
    body = {"model": model, **({} if "input" in more else {"messages": MESSAGES}), **more}
    return await desk.post("/v1/estimate", body, key=key)


def nanos(usd: str) -> int:
    return int(Decimal(usd) * DOLLAR)


# --- what it could cost -----------------------------------------------------------------------------------------------


async def test_it_is_the_most_that_a_guarded_call_would_hold(desk: Desk) -> None:
    found = await estimate(desk, max_tokens=1000)
    price = load_book().find("openai", "gpt-4o")
    intake = Intake("gpt-4o")
    intake.messages(MESSAGES)
    assert price is not None
    assert found.status == 200
    assert found["input_tokens_max"] == intake.most_tokens()
    assert nanos(found["amounts"]["usd"]) == worst(price, input_tokens=intake.most_tokens(), output_tokens=1000)["usd"]
    assert (found["provider"], found["model"], found["max_tokens"]) == ("openai", "gpt-4o", 1000)
    assert found["price_book"] == load_book({builtin.MODEL: builtin.PRICE}).digest


async def test_nothing_is_held_and_nothing_is_asked_of_the_wallet(desk: Desk) -> None:
    await estimate(desk)
    assert desk.purse.asked == []


async def test_several_answers_cost_their_output_each(desk: Desk) -> None:
    one, three = await estimate(desk, max_tokens=1000), await estimate(desk, max_tokens=1000, n=3)
    assert nanos(three["amounts"]["usd"]) == nanos(one["amounts"]["usd"]) + 2 * 1000 * 10_000


async def test_without_a_cap_it_is_the_one_that_a_guarded_call_gets(desk: Desk) -> None:
    assert (await estimate(desk))["max_tokens"] == 4096


async def test_a_model_that_embeds_has_no_output(desk: Desk) -> None:
    found = await estimate(desk, "text-embedding-3-small", input=["hello", "world"])
    assert (found["max_tokens"], found["affordable_max_tokens"]) == (0, None)
    assert found["amounts"].keys() == {"usd"}


async def test_what_goes_in_with_the_messages_counts(desk: Desk) -> None:
    tool = {"type": "function", "function": {"name": "look_up", "description": "Looks up a word.", "parameters": {}}}
    plain = (await estimate(desk))["input_tokens_max"]
    assert (await estimate(desk, system="Be brief."))["input_tokens_max"] > plain
    assert (await estimate(desk, tools=[tool]))["input_tokens_max"] > plain


async def test_a_dated_id_is_priced_and_its_provider_is_known(desk: Desk) -> None:
    found = await estimate(desk, "claude-3-5-sonnet-20241022")
    assert (found["provider"], found["model"]) == ("anthropic", "claude-3-5-sonnet")


async def test_neurons_are_counted_beside_dollars_with_a_margin(desk: Desk) -> None:
    found = await estimate(desk, "@cf/meta/llama-3.3-70b-instruct-fp8-fast", max_tokens=1000)
    neurons, usd = (Decimal(found["amounts"][unit]) for unit in ("neurons", "usd"))
    assert neurons > 3 * Decimal(1000) * Decimal("2.253") / 1_000_000 / Decimal("0.000011")
    assert abs(neurons * Decimal("0.000011") - usd) < Decimal("0.00000001")


async def test_tokens_and_requests_are_amounts_where_a_budget_counts_them() -> None:
    plan = Plan(budgets={"calls": Budget("requests", 1), "tokens": Budget("tokens", 5000)})
    async with open_desk(plan) as desk:
        found = await estimate(desk, max_tokens=1000)
        assert found["amounts"]["requests"] == "1"
        assert found["amounts"]["tokens"] == str(found["input_tokens_max"] + 1000)
        assert found["used_pct_after"].keys() == {"calls", "tokens"}
        assert found["affordable_max_tokens"] == 5000 - found["input_tokens_max"]
        await desk.post("/v1/holds", {"id": "a", "amounts": {"requests": "1"}})
        spent = await estimate(desk, max_tokens=1000)
        assert (spent["fits"], spent["affordable_max_tokens"]) == (False, 0)


# --- whether it fits --------------------------------------------------------------------------------------------------


async def test_it_says_the_share_of_every_shared_budget_that_would_count_it(desk: Desk) -> None:
    found = await estimate(desk, max_tokens=20_000)  # twenty cents, and a little for what goes in
    assert found["fits"] is True
    assert found["used_pct_after"] == {"money": 20.0, "openai": 40.0}
    claude = await estimate(desk, "claude-3-5-sonnet-latest", max_tokens=20_000)
    assert claude["used_pct_after"].keys() == {"money"}


async def test_what_others_use_leaves_less(desk: Desk) -> None:
    await desk.post("/v1/holds", {"id": "a", "amounts": {"usd": "0.45"}, "labels": {"provider": "openai"}})
    found = await estimate(desk, max_tokens=10_000)
    assert (found["fits"], found["used_pct_after"]["openai"]) == (False, 110.0)


async def test_the_affordable_cap_fits_and_one_more_does_not(desk: Desk) -> None:
    most = (await estimate(desk, max_tokens=1))["affordable_max_tokens"]
    assert (await estimate(desk, max_tokens=most))["fits"] is True
    assert (await estimate(desk, max_tokens=most + 1))["fits"] is False
    three = (await estimate(desk, max_tokens=1, n=3))["affordable_max_tokens"]
    assert (await estimate(desk, max_tokens=three, n=3))["fits"] is True
    assert (await estimate(desk, max_tokens=three + 1, n=3))["fits"] is False


async def test_what_an_estimate_says_fits_is_held(desk: Desk) -> None:
    found = await estimate(desk, max_tokens=(await estimate(desk))["affordable_max_tokens"])
    held = await desk.post("/v1/holds", {"amounts": found["amounts"], "labels": {"provider": "openai"}})
    assert held.status == 201


async def test_a_stranger_hears_shares_and_whether_it_fits_and_no_amount(desk: Desk) -> None:
    found = await estimate(desk, key=None, max_tokens=20_000)
    shares = {"money": 20.0, "openai": 40.0}
    assert found.body == {"fits": True, "cost_pct": shares, "used_pct_after": shares}


# --- prices that are not there, and an operator's own -----------------------------------------------------------------


@pytest.mark.parametrize("model", ["gpt-4o-turbo-max", "claude-opus-4.1x", "x" * 256, "\x00"])
async def test_a_model_without_a_price_is_refused_by_name(desk: Desk, model: str) -> None:
    refused = await estimate(desk, model)
    assert (refused.status, refused["outcome"], refused["field"]) == (400, "model_not_priced", "model")
    assert refused["type"] == "/problems/model-not-priced"
    assert len(refused["detail"]) < 200


async def test_another_provider_may_not_have_it(desk: Desk) -> None:
    assert (await estimate(desk, provider="anthropic"))["outcome"] == "model_not_priced"
    assert (await estimate(desk, provider="openai")).status == 200


async def test_an_operators_own_price_goes_before_the_books() -> None:
    own = {"gpt-4o": {"input_usd_per_mtok": "0", "output_usd_per_mtok": "1000"}}
    async with open_desk(PLAN, prices=own) as desk:
        found = await estimate(desk, max_tokens=10)
        assert found["amounts"] == {"usd": "0.01"}
        assert found["price_book"] == load_book({builtin.MODEL: builtin.PRICE, **own}).digest != load_book().digest


async def test_with_a_ceiling_a_model_that_nobody_knows_has_that_price() -> None:
    own = {"ceiling": {"input_usd_per_mtok": "0", "output_usd_per_mtok": "100"}}
    async with open_desk(PLAN, prices=own) as desk:
        assert (await estimate(desk, "brand-new", max_tokens=100))["amounts"] == {"usd": "0.01"}


# --- what is sent -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"max_token": 5}, "max_token"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"n": 0}, "n"),
        ({"messages": "hello"}, "messages"),
        ({"tools": {}}, "tools"),
        ({"model": ""}, "model"),
    ],
)
async def test_what_cannot_be_understood_is_refused_by_its_field(desk: Desk, more: dict[str, Any], field: str) -> None:
    refused = await estimate(desk, **more) if "model" not in more else await estimate(desk, more["model"])
    assert (refused.status, refused["field"]) == (400, field)


async def test_there_must_be_something_to_estimate(desk: Desk) -> None:
    refused = await desk.post("/v1/estimate", {"model": "gpt-4o"})
    assert (refused.status, refused["field"]) == (400, "messages")


async def test_without_a_plan_or_figures_there_is_no_estimate() -> None:
    async with open_desk(plan=None) as desk:
        assert (await estimate(desk)).status == 503
