"""The page's ask box over the real core: a stranger's question is one guarded call, and strangers are slowed down."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from desk_client import KEY, PLAN, Desk, open_desk

from engine.core.messages import Hold, Settle
from engine.core.plan import Budget, Plan
from engine.plan_file import DEFAULT_PLAN
from web import builtin
from web.ask_box import PATH
from web.ask_settings import STAND_IN, AskSettings

BOX = AskSettings("built-in", builtin.MODEL, max_tokens=12)
WORDS = 12


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtin, "WORD_S", 0.0)


async def ask(desk: Desk, question: object = "what is left?", **more: Any) -> Any:
    return await desk.post(PATH, {"question": question}, key=None, **more)


def said(events: str) -> list[Any]:
    return [json.loads(line[6:]) for line in events.splitlines() if line.startswith("data: {")]


async def test_a_question_is_held_streamed_and_settled() -> None:
    async with open_desk(DEFAULT_PLAN, ask=BOX) as desk:
        heard = await ask(desk)
        assert heard.status == 200
        assert heard.headers["x-purse-model"] == builtin.MODEL
        words = [chunk["choices"][0]["delta"].get("content", "") for chunk in said(heard.body)]
        assert "".join(words).startswith("You asked 3 words.")
        assert said(heard.body)[-1]["choices"][0]["finish_reason"] == "length"
        hold, settle = desk.purse.asked[0], desk.purse.asked[-1]
        assert isinstance(hold, Hold)
        assert isinstance(settle, Settle)
        assert hold.labels["provider"] == "jev"
        assert settle.amounts == {"usd": 3 * 100_000 + WORDS * 300_000, "neurons": (3 + WORDS * 3) * 1_000_000}
        assert not settle.estimated
        assert not desk.purse.wallet.open


async def test_a_refusal_is_in_words_that_the_page_can_show() -> None:
    plan = Plan(budgets={"jev": Budget("usd", 10_000_000)})
    async with open_desk(plan, ask=AskSettings("built-in", builtin.MODEL)) as desk:
        heard = await ask(desk)
        assert heard.status == 400
        assert heard["error"]["message"]
        assert heard["error"]["metadata"]["reason"] == "never"


async def test_the_eleventh_question_of_a_minute_hears_slow_down_and_costs_nothing() -> None:
    async with open_desk(DEFAULT_PLAN, ask=BOX) as desk:
        heard = [(await ask(desk)).status for _ in range(10)]
        assert heard == [200] * 10
        asked = len(desk.purse.asked)
        slowed = await ask(desk)
        assert slowed.status == 429
        assert slowed.headers["x-should-retry"] == "false"
        assert slowed["error"]["message"].startswith("Slow down.")
        assert 0 < slowed["error"]["metadata"]["seconds"] <= 60
        assert len(desk.purse.asked) == asked
        desk.purse.clock += 60_000_000_000
        assert (await ask(desk)).status == 200


@pytest.mark.parametrize(
    ("body", "field"),
    [({}, "question"), ({"question": ""}, "question"), ({"question": 7}, "question"),
     ({"question": "x" * 8_001}, "question"), ({"question": "x", "model": "dear"}, "question")],
)  # fmt: skip
async def test_a_body_that_is_no_question_is_refused(body: object, field: str) -> None:
    async with open_desk(DEFAULT_PLAN, ask=BOX) as desk:
        heard = await desk.post(PATH, body, key=None)
        assert heard.status == 400
        assert heard["error"]["param"] == field
        assert desk.purse.asked == []


async def test_other_sites_cannot_ask_in_a_visitors_name() -> None:
    async with open_desk(DEFAULT_PLAN, ask=BOX) as desk:
        assert (await ask(desk, headers={"Sec-Fetch-Site": "cross-site"})).status == 403
        assert (await ask(desk, headers={"Sec-Fetch-Site": "same-origin"})).status == 200


# --- whether there is a box -------------------------------------------------------------------------------------------


async def page(desk: Desk) -> str:
    status = await desk.purse.status()
    assert status is not None
    desk.board.show(status)
    return str((await desk.get("/", key=None)).body)


async def test_the_stand_in_spends_nobodys_real_budget() -> None:
    """Without a purse.toml it is there for the default plan, and gone as soon as an operator has another."""
    async with open_desk(DEFAULT_PLAN, ask=STAND_IN) as desk:
        assert (await ask(desk)).status == 200
        assert 'id="ask"' in await page(desk)
        desk.purse.apply(PLAN)
        asked = len(desk.purse.asked)
        assert (await ask(desk)).status == 404
        assert len(desk.purse.asked) == asked
        assert 'id="ask"' not in await page(desk)


async def test_without_a_box_there_is_no_trace_of_one() -> None:
    async with open_desk(DEFAULT_PLAN) as desk:
        assert (await ask(desk)).status == 404
        assert not re.search("ask.js|id=.ask.", await page(desk))


async def test_openais_clients_reach_the_stand_in_until_there_is_an_upstream() -> None:
    async with open_desk(DEFAULT_PLAN) as desk:
        body = {"model": builtin.MODEL, "messages": [{"role": "user", "content": "hello you"}], "max_tokens": 5}
        heard = await desk.post("/openai/v1/chat/completions", body, key=KEY)
        assert heard.status == 200
        assert heard["choices"][0]["message"]["content"] == "You asked 2 words. I"
        assert heard["usage"]["completion_tokens"] == 5
        assert (await desk.post("/openai/v1/chat/completions", body, key=None)).status == 401
