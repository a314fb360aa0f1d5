"""What becomes of a guarded call that is no stream: held before it is sent, settled at what was used."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from desk_client import DOLLAR, KEY
from fake_purse import Answered
from guarded import ASKED, CHAT, MESSAGES, UPSTREAM_KEY, Guarded, completion, over_openai, scripted
from providers.faults import HANGS_BEFORE_ANSWER, Fault
from providers.production import Reply, words

from engine.core.messages import AnyAsk, Held, Hold, Option, Settle
from engine.core.plan import Budget, Plan, Tier, Tiers
from engine.errors import NoAnswer
from web.desk import DESK
from web.proxy import hold
from web.proxy.guard import GUARD
from web.proxy.hold import Endings, OpenHold
from web.proxy.openai_chat import ChatCompletions

MINI_IN, MINI_OUT = 150, 600
"""Nano-dollars a token of gpt-4o-mini."""


# --- the way of a call ------------------------------------------------------------------------------------------------


async def test_a_call_is_held_before_it_is_sent_and_settled_at_what_was_used() -> None:
    async with over_openai(reply=Reply(tokens=words(20), cache_read=4)) as guard:
        heard = await guard.chat()
        assert heard.status == 200
        hold, settle = guard.purse.asked
        assert isinstance(hold, Hold)
        assert isinstance(settle, Settle)
        assert hold.labels == {"provider": "openai", "model": "gpt-4o-mini"}
        assert len(hold.price_book) == 64
        assert (settle.hold, settle.estimated, settle.amounts) == (hold.id, False, {"usd": guard.billed})
        assert hold.options[0].amounts["usd"] >= guard.billed > 0
        assert guard.meter() == (guard.billed, 0)


async def test_no_answer_waits_for_its_settlement(monkeypatch: pytest.MonkeyPatch) -> None:
    async with over_openai() as guard:
        settling = stuck_settles(guard, monkeypatch)
        assert (await guard.chat()).status == 200
        assert guard.settles == []
        settling.go.set()
        await guard.settled()
        assert guard.meter() == (guard.billed, 0)


async def test_whoever_closes_waits_for_settlements_on_their_way(monkeypatch: pytest.MonkeyPatch) -> None:
    async with over_openai() as guard:
        settling = stuck_settles(guard, monkeypatch)
        assert (await guard.chat()).status == 200
        asyncio.get_running_loop().call_later(0.05, settling.go.set)
    assert guard.meter() == (guard.billed, 0)


async def test_past_a_bound_answers_wait_for_their_settlements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hold, "ENDINGS_MAX", 0)
    async with over_openai() as guard:
        settling = stuck_settles(guard, monkeypatch)
        call = asyncio.create_task(guard.chat())
        await settling.begun.wait()
        for _ in range(3):
            await guard.desk.get("/livez")
        assert not call.done()
        settling.go.set()
        assert (await call).status == 200


async def test_a_call_is_settled_before_whoever_made_it_can_hold_again() -> None:
    async with over_openai() as guard:
        for _ in range(3):
            assert (await guard.chat()).status == 200
        assert [type(ask) for ask in guard.purse.asked] == [Hold, Settle] * 3


class Stuck:
    """Settlements that do not go on before `go`."""

    def __init__(self) -> None:
        self.begun, self.go = asyncio.Event(), asyncio.Event()


def stuck_settles(guard: Guarded, monkeypatch: pytest.MonkeyPatch) -> Stuck:
    settling, asked = Stuck(), guard.purse.ask

    async def ask(one: AnyAsk, *, wait_s: float = 5.0) -> Answered:
        if isinstance(one, Settle):
            settling.begun.set()
            await settling.go.wait()
        return await asked(one, wait_s=wait_s)

    monkeypatch.setattr(guard.purse, "ask", ask)
    return settling


async def test_the_answer_says_what_was_granted() -> None:
    async with over_openai() as guard:
        heard = await guard.chat()
        hold = guard.holds[0]
        said = {name: value for name, value in heard.headers.items() if name.startswith("x-purse")}
        assert said == {
            "x-purse-hold": hold.id, "x-purse-tier": "0", "x-purse-model": "gpt-4o-mini", "x-purse-max-tokens": "100",
            "x-purse-remaining-pct": "100.0", "x-purse-upstream-request-id": "req_0",
        }  # fmt: skip
        assert heard.headers["x-ratelimit-remaining-requests"] == "59"
        assert "Set-Cookie" not in heard.headers


async def test_l19_a_call_without_a_cap_gets_the_operators_and_is_told_so() -> None:
    async with over_openai(table={"default_max_tokens": 7}) as guard:
        heard = await guard.chat({"model": "gpt-4o-mini", "messages": MESSAGES})
        assert guard.fake.requests[0].json["max_completion_tokens"] == 7
        assert heard.headers["x-purse-max-tokens"] == "7"
        assert heard["usage"]["completion_tokens"] == 7
        assert guard.holds[0].options[0].amounts["usd"] < 100 * MINI_OUT + 500 * MINI_IN


async def test_what_nobody_here_knows_goes_upstream_byte_for_byte() -> None:
    raw = (
        '{"model":"gpt-4o-mini", "messages":[ {"role":"user","content":"\\u00e4 b"}],"max_tokens":5,"new":{"x":1.50e2}}'
    )
    async with scripted() as guard:
        guard.upstream.answers(completion())
        await guard.desk.send("POST", CHAT, data=raw, headers={"Content-Type": "application/json"})
        sent = guard.upstream.last.raw.decode()
        assert '[ {"role":"user","content":"\\u00e4 b"}]' in sent
        assert '"new":{"x":1.50e2}' in sent


async def test_d2_the_model_that_really_answered_has_its_own_price() -> None:
    async with scripted() as guard:
        guard.upstream.answers(completion(prompt=10, output=5, model="gpt-4o-2024-08-06"))
        await guard.chat()
        assert guard.last.amounts == {"usd": 10 * 2_500 + 5 * 10_000}


async def test_a_hold_counts_tokens_and_requests_where_the_plan_has_such_budgets() -> None:
    plan = Plan(
        budgets={"day": Budget("usd", DOLLAR), "calls": Budget("requests", 2), "words": Budget("tokens", 10**6)}
    )
    async with over_openai(plan) as guard:
        await guard.chat()
        used = guard.fake.ledger.lines[0].used
        assert guard.last.amounts == {"usd": guard.billed, "requests": 1, "tokens": used.input + used.output}
        await guard.chat()
        heard = await guard.chat()
        assert (heard.status, heard["error"]["metadata"]["budget"]) == (402, "calls")
        assert len(guard.fake.requests) == 2


async def test_n_choices_are_held_n_times() -> None:
    async with over_openai() as guard:
        await guard.chat()
        await guard.chat({**ASKED, "n": 3})
        one, three = (hold.options[0].amounts["usd"] for hold in guard.holds)
        assert three - one == 2 * 100 * MINI_OUT
        assert guard.meter() == (guard.billed, 0)


PERCENT = 10_000  # millionths
TIERED = Plan(
    budgets={"day": Budget("usd", DOLLAR)},
    tiers=Tiers([Tier(50 * PERCENT, 0), Tier(75 * PERCENT, 1), Tier(95 * PERCENT, 2)]),
)


@pytest.mark.parametrize(
    ("used_pct", "model", "cap", "tier"),
    [(10, "gpt-4o", 100, "0"), (60, "gpt-4o", 50, "1"), (80, "gpt-4o-mini", 50, "2")],
    ids=["full", "half", "cheaper"],
)
async def test_e7_as_money_runs_low_less_is_held_and_exactly_that_is_sent(
    used_pct: int, model: str, cap: int, tier: str
) -> None:
    async with over_openai(TIERED, table={"cheaper": {"gpt-4o": "gpt-4o-mini"}}) as guard:
        await guard.purse.ask(Settle("others", {"usd": DOLLAR * used_pct // 100}))
        heard = await guard.chat({**ASKED, "model": "gpt-4o"})
        sent = guard.fake.requests[0].json
        assert (sent["model"], sent["max_tokens"]) == (model, cap)
        assert (heard.headers["x-purse-model"], heard.headers["x-purse-max-tokens"]) == (model, str(cap))
        assert heard.headers["x-purse-tier"] == tier
        assert guard.last.amounts == {"usd": guard.billed}
        assert [(option.name, option.grade) for option in guard.holds[0].options] == [
            ("full", 0), ("half", 1), ("cheaper", 2)
        ]  # fmt: skip


async def test_past_the_last_tier_a_call_is_refused_as_used_up() -> None:
    async with over_openai(TIERED, table={"cheaper": {"gpt-4o": "gpt-4o-mini"}}) as guard:
        await guard.purse.ask(Settle("others", {"usd": DOLLAR * 97 // 100}))
        heard = await guard.chat({**ASKED, "model": "gpt-4o"})
        assert (heard.status, heard["error"]["code"]) == (402, "insufficient_quota")
        assert heard["error"]["metadata"]["reason"] == "tier"
        assert guard.fake.requests == []


# --- attempts ---------------------------------------------------------------------------------------------------------


async def test_g3_every_attempt_of_one_call_is_a_hold_of_its_own() -> None:
    async with over_openai() as guard:
        guard.fake.next_faults += [Fault(status=500), Fault(status=503)]
        for attempt in ("0", "1", "2"):
            headers = {"Idempotency-Key": '"call-7"', "x-stainless-retry-count": attempt}
            heard = await guard.chat(headers=headers)
        assert heard.status == 200
        assert [hold.id for hold in guard.holds] == ["call-7", "call-7:1", "call-7:2"]
        assert guard.meter() == (guard.billed, 0)


async def test_one_key_sends_one_call_however_often_it_is_asked_at_once() -> None:
    async with over_openai(fault=HANGS_BEFORE_ANSWER) as guard:
        headers = {"Idempotency-Key": "call-7"}
        first = asyncio.create_task(guard.chat(headers=headers))
        await (await guard.fake.request()).paused.wait()
        second = await guard.chat(headers=headers)
        assert (second.status, second["error"]["code"]) == (409, "in_progress")
        assert second.headers["x-should-retry"] == "false"
        guard.fake.go.set()
        assert (await first).status == 200
        third = await guard.chat(headers=headers)
        assert (third.status, third["error"]["code"]) == (409, "closed")
        assert len(guard.fake.requests) == 1


# --- what can go wrong upstream ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 404, 408, 409, 413, 422, 429, 500, 502, 503, 529])
async def test_b1_a_call_that_the_provider_refuses_costs_nothing_and_its_error_passes(status: int) -> None:
    async with over_openai(fault=Fault(status=status, error_code="odd", headers={"Retry-After": "3"})) as guard:
        heard = await guard.chat()
        assert (heard.status, heard["error"]["code"], heard.headers["Retry-After"]) == (status, "odd", "3")
        assert guard.last.release
        assert guard.meter() == (0, 0)


@pytest.mark.parametrize("status", [504, 524])
async def test_a_gateway_that_stopped_waiting_does_not_say_that_nothing_happened(status: int) -> None:
    async with over_openai(fault=Fault(status=status)) as guard:
        assert (await guard.chat()).status == status
        assert (guard.last.estimated, guard.last.amounts) == (True, guard.holds[0].options[0].amounts)


async def test_an_upstream_that_is_not_there_costs_nothing() -> None:
    async with scripted(table={"base_url": "http://127.0.0.1:9/v1"}) as guard:
        heard = await guard.chat()
        assert (heard.status, heard["error"]["code"]) == (502, "upstream_unreachable")
        assert heard.headers["Retry-After"] == "1"
        assert guard.last.release
        assert guard.meter() == (0, 0)


async def test_l9_an_answer_that_was_lost_after_the_call_was_sent_costs_the_grant() -> None:
    async with over_openai(fault=Fault(reset_before_answer=True)) as guard:
        heard = await guard.chat()
        assert (heard.status, heard["error"]["code"]) == (502, "upstream_broken")
        assert (guard.last.estimated, guard.last.amounts) == (True, guard.holds[0].options[0].amounts)


async def test_an_upstream_that_says_nothing_is_not_waited_for_and_costs_the_grant() -> None:
    async with over_openai(fault=HANGS_BEFORE_ANSWER, table={"idle_s": 0.05}) as guard:
        heard = await guard.chat()
        assert (heard.status, heard["error"]["code"]) == (504, "upstream_timeout")
        await (await guard.fake.request()).aborted.wait()
        assert (guard.last.estimated, guard.last.amounts) == (True, guard.holds[0].options[0].amounts)


@pytest.mark.parametrize("usage", ["none", "null", "zeros"])
async def test_b10_an_answer_that_does_not_say_what_it_used_costs_the_grant(usage: Any) -> None:
    async with over_openai(fault=Fault(usage=usage)) as guard:
        assert (await guard.chat()).status == 200
        assert (guard.last.estimated, guard.last.amounts) == (True, guard.holds[0].options[0].amounts)


@pytest.mark.parametrize(
    "patch",
    [{"prompt_tokens": -5}, {"completion_tokens": "7"}, {"prompt_tokens": 1.5}, {"completion_tokens": True}],
    ids=str,
)
async def test_e15_a_count_that_is_none_is_not_believed(patch: dict[str, Any]) -> None:
    async with over_openai(fault=Fault(usage_patch=patch)) as guard:
        assert (await guard.chat()).status == 200
        assert (guard.last.estimated, guard.last.amounts) == (True, guard.holds[0].options[0].amounts)


async def test_a_call_that_used_more_than_its_grant_is_charged_all_of_it() -> None:
    async with over_openai(fault=Fault(extra_output=900)) as guard:
        await guard.chat()
        assert guard.last.amounts == {"usd": guard.billed}
        assert guard.billed > guard.holds[0].options[0].amounts["usd"]


async def test_a_service_tier_with_another_price_is_charged_at_that_price() -> None:
    async with scripted() as guard:
        guard.upstream.answers(completion(prompt=10, output=5, model="gpt-5-mini", service_tier="priority"))
        await guard.chat({**ASKED, "model": "gpt-5-mini"})
        standard = 10 * 250 + 5 * 2_000
        assert guard.last.amounts["usd"] == standard * 9 // 5


async def test_a_service_tier_without_a_price_costs_no_less_than_the_grant() -> None:
    async with scripted() as guard:
        guard.upstream.answers(completion(service_tier="scale"))
        await guard.chat()
        assert (guard.last.estimated, guard.last.amounts) == (True, guard.holds[0].options[0].amounts)


async def test_openrouter_says_what_it_cost_and_that_is_what_is_charged() -> None:
    async with over_openai() as guard:
        guard.fake.usage_extra = {"cost": 0.00123456789012}
        await guard.chat()
        assert guard.last.amounts == {"usd": 1_234_568}


async def test_an_answer_that_is_no_json_passes_and_costs_the_grant() -> None:
    async with over_openai(fault=Fault(body=b"<html>", content_type="text/html")) as guard:
        heard = await guard.chat()
        assert (heard.status, heard.body) == (200, "<html>")
        assert guard.last.estimated


async def test_a_redirect_is_not_followed_and_costs_nothing() -> None:
    async with scripted() as elsewhere, over_openai() as guard:
        guard.fake.next_faults.append(Fault(redirect_to=elsewhere.upstream.base_url))
        heard = await guard.chat()
        assert (heard.status, heard["error"]["code"]) == (502, "upstream_redirects")
        assert elsewhere.upstream.asked == []
        assert guard.last.release


# --- whoever leaves, whatever breaks here -----------------------------------------------------------------------------


async def test_d15_a_client_that_leaves_ends_the_call_upstream_and_it_costs_the_grant() -> None:
    async with over_openai(fault=HANGS_BEFORE_ANSWER) as guard:
        call = asyncio.create_task(guard.chat())
        seen = await guard.fake.request()
        call.cancel()
        await seen.aborted.wait()
        await guard.settled()
        assert (guard.last.estimated, guard.last.amounts) == (True, guard.holds[0].options[0].amounts)


async def test_a_bug_before_anything_is_sent_releases_the_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> object:
        raise ZeroDivisionError

    monkeypatch.setattr(ChatCompletions, "write", broken)
    async with over_openai() as guard:
        heard = await guard.chat()
        assert (heard.status, heard["error"]["code"]) == (500, "internal")
        assert guard.fake.requests == []
        assert guard.last.release


async def test_a_bug_after_the_call_was_sent_costs_the_grant(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> object:
        raise ZeroDivisionError

    monkeypatch.setattr(ChatCompletions, "reading", broken)
    async with over_openai() as guard:
        assert (await guard.chat()).status == 500
        assert (guard.last.estimated, guard.last.amounts) == (True, guard.holds[0].options[0].amounts)


async def test_a_hold_for_less_than_the_call_could_cost_sends_nothing() -> None:
    """What the wallet holds is compared with what is sent, although the wallet never grants less."""
    async with over_openai() as guard:
        tell = guard.purse._tell

        def less(asks: Any) -> Any:
            answers = tell(asks)
            held = answers[0].outcome
            if isinstance(asks[0], Hold):
                object.__setattr__(answers[0], "outcome", type(held)(**{**fields(held), "amounts": {"usd": 1}}))
            return answers

        guard.purse._tell = less  # type: ignore[method-assign]
        assert (await guard.chat()).status == 500
        assert guard.fake.requests == []


def fields(struct: Any) -> dict[str, Any]:
    return {name: getattr(struct, name) for name in struct.__struct_fields__}


async def test_e16_a_wallet_without_a_budget_for_the_call_sends_nothing() -> None:
    plan = Plan(budgets={"jev": Budget("usd", DOLLAR, where={"provider": "jev"})})
    async with over_openai(plan) as guard:
        heard = await guard.chat()
        assert (heard.status, heard["error"]["code"]) == (403, "no_budget")
        assert guard.fake.requests == []
        assert guard.last.release


async def test_a_settle_that_nobody_hears_does_not_hold_up_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async with over_openai() as guard:
        ask = guard.purse.ask

        async def deaf(asked: Any, **more: Any) -> Any:
            if isinstance(asked, Settle):
                raise NoAnswer("nobody", kept=True)
            return await ask(asked, **more)

        monkeypatch.setattr(guard.purse, "ask", deaf)
        assert (await guard.chat()).status == 200


async def test_a_wallet_that_cannot_decide_sends_nothing() -> None:
    async with over_openai() as guard:
        await guard.chat()
        guard.purse.error = NoAnswer("nobody")
        heard = await guard.chat()
        assert (heard.status, heard["error"]["type"], heard.headers["Retry-After"]) == (503, "server_error", "2")
        assert len(guard.fake.requests) == 1


async def test_a_long_call_tells_its_progress_and_renews_its_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(budgets={"day": Budget("usd", DOLLAR)}, ttl_s=1, ttl_s_min=1)
    async with over_openai(plan, fault=HANGS_BEFORE_ANSWER) as guard:
        call = asyncio.create_task(guard.chat())
        await guard.renewed(2)
        guard.fake.go.set()
        assert (await call).status == 200
        assert guard.meter() == (guard.billed, 0)


async def test_a_settle_on_its_way_cannot_be_stopped_by_who_leaves_however_often() -> None:
    """Cancelled in its block, and again while the settle waits to be heard."""
    async with over_openai() as guard:
        purse, endings = guard.purse, Endings()
        ask, heard, go = purse.ask, asyncio.Event(), asyncio.Event()

        async def slow(asked: Any, **more: Any) -> Any:
            if isinstance(asked, Settle):
                heard.set()
                await go.wait()
            return await ask(asked, **more)

        held = (await ask(Hold("h", [Option({"usd": 100})], by=purse.by(5)))).outcome
        assert isinstance(held, Held)
        purse.ask = slow  # type: ignore[method-assign]

        async def call() -> None:
            async with OpenHold(purse, endings, held) as hold:
                hold.sending()
                await asyncio.Event().wait()

        calling = asyncio.create_task(call())
        await asyncio.sleep(0)
        calling.cancel()
        await heard.wait()
        calling.cancel()
        await asyncio.wait([calling])
        assert purse.wallet.open, "it waits to be heard"
        go.set()
        await endings.close()
        assert not purse.wallet.open
        assert guard.meter() == (100, 0)


async def test_what_a_call_cost_is_told_before_the_application_ends() -> None:
    async with over_openai(fault=HANGS_BEFORE_ANSWER) as guard:
        calling = asyncio.create_task(guard.chat())
        await (await guard.fake.request()).paused.wait()
        calling.cancel()
        await asyncio.wait([calling])
        purse = guard.purse
    assert not purse.wallet.open


# --- secrets ----------------------------------------------------------------------------------------------------------


async def test_no_key_crosses_to_the_other_side() -> None:
    async with scripted() as guard:
        guard.upstream.answers(completion(id=f"echo {UPSTREAM_KEY}"), x_request_id="req_1", set_cookie="a=b")
        heard = await guard.chat(headers={"OpenAI-Organization": "org-mine", "Cookie": "a=b", "X-Forwarded-For": "::1"})
        sent = guard.upstream.last
        assert sent.headers["Authorization"] == f"Bearer {UPSTREAM_KEY}"
        assert KEY not in str(sent)
        assert not {"OpenAI-Organization", "Cookie", "X-Forwarded-For"} & sent.headers.keys()
        assert UPSTREAM_KEY not in str(heard)


async def test_what_the_provider_says_about_our_key_or_account_does_not_pass() -> None:
    async with scripted() as guard:
        guard.upstream.answers({"error": {"message": "Incorrect API key provided: sk-ups***cret."}}, status=401)
        heard = await guard.chat()
        assert (heard.status, heard["error"]["code"]) == (502, "upstream_key_refused")
        assert "sk-ups" not in str(heard)
        guard.upstream.answers({"error": {"message": "Rate limit for org-AbCdEfGh1234 in proj_Zyxwvuts99"}}, status=429)
        heard = await guard.chat()
        assert heard["error"]["message"] == "Rate limit for org-*** in proj_***"


async def test_nothing_that_may_be_printed_has_a_key_in_it() -> None:
    async with scripted() as guard:
        assert UPSTREAM_KEY not in repr(guard.desk.client.app[GUARD])
        assert UPSTREAM_KEY not in repr(guard.desk.client.app[DESK].settings)
