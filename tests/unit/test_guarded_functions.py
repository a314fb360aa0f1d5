"""Guarded functions: held for what their arguments say, settled at what their result says, whichever client does it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from fake_api import KEY, FakeApi, fake_api
from guarded import completion

from commonpurse import aio, sync
from commonpurse.costs import cost_of
from engine.errors import BadAsk, Exhausted

CENT = 10_000_000
COMPLETION = completion(prompt=1_000, output=100)
COMPLETION_USD = "0.00021"  # 1,000 at 0.15 and 100 at 0.60 dollars a million
MESSAGE = {
    "id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": [],
    "usage": {"input_tokens": 1_000, "output_tokens": 100},
}  # fmt: skip
MESSAGE_USD = "0.0045"  # 3 and 15 dollars a million


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with fake_api() as api:
        yield api


@pytest.fixture
def purse(api: FakeApi) -> Iterator[sync.Purse]:
    with sync.Purse(api.url, KEY) as purse:
        yield purse


@pytest_asyncio.fixture
async def async_purse(api: FakeApi) -> AsyncIterator[aio.Purse]:
    async with aio.Purse(api.url, KEY) as purse:
        yield purse


class Dumped:
    """As the SDKs' own objects give themselves as JSON."""

    def __init__(self, said: object) -> None:
        self.said = said

    def model_dump_json(self) -> str:
        return msgspec.json.encode(self.said).decode()


# --- what a call cost -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [dict, Dumped], ids=["json", "object"])
@pytest.mark.parametrize(("answer", "usd"), [(COMPLETION, COMPLETION_USD), (MESSAGE, MESSAGE_USD)])
def test_the_usage_of_an_answer_is_priced(answer: dict[str, Any], usd: str, wrap: Any) -> None:
    assert cost_of(wrap(answer)) == {"usd": usd, "tokens": "1100", "requests": "1"}


@pytest.mark.parametrize(
    "answer",
    [None, "text", {}, {**COMPLETION, "model": "nobody-knows"}, {**COMPLETION, "usage": {}}, SimpleNamespace(usage=1)],
)
def test_what_does_not_tell_its_cost_is_not_guessed(answer: Any) -> None:
    assert cost_of(answer) is None


# --- without asyncio --------------------------------------------------------------------------------------------------


def test_a_guarded_function_is_held_called_and_settled(purse: sync.Purse, api: FakeApi) -> None:
    @purse.guarded({"usd": "0.05"}, labels=lambda model: {"model": model})
    def ask(model: str) -> dict[str, Any]:
        """Ask it."""
        assert api.held == 5 * CENT
        return {**COMPLETION, "model": model}

    assert ask("gpt-4o-mini")["model"] == "gpt-4o-mini"
    assert (ask.__name__, ask.__doc__) == ("ask", "Ask it.")
    assert (api.settled, api.held) == (210_000, 0)
    assert api.bodies("/v1/holds")[0]["labels"] == {"model": "gpt-4o-mini"}


def test_worst_and_cost_may_be_functions(purse: sync.Purse, api: FakeApi) -> None:
    @purse.guarded(lambda pages: {"usd": pages * Decimal("0.01")}, cost=lambda said: {"usd": said["cost"]})
    def scan(pages: int) -> dict[str, str]:
        return {"cost": "0.025"}

    scan(3)
    assert api.bodies("/v1/holds")[0]["amounts"] == {"usd": "0.03"}
    assert api.settled == 25_000_000


def test_without_a_worst_case_the_wallet_is_asked_by_the_arguments(purse: sync.Purse, api: FakeApi) -> None:
    api.canned["/v1/estimate"] = (200, {"amounts": {"usd": "0.07"}, "fits": True})

    @purse.guarded()
    def ask(**call: Any) -> dict[str, Any]:
        return COMPLETION

    ask(model="gpt-4o-mini", messages=[{"role": "user", "content": "hi"}], max_completion_tokens=50, temperature=0)
    (asked,) = api.bodies("/v1/estimate")
    assert asked == {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 50}
    assert api.bodies("/v1/holds")[0]["amounts"] == {"usd": "0.07"}
    with pytest.raises(BadAsk, match="model"):
        ask(prompt="hi")


def test_a_refused_function_is_not_called(purse: sync.Purse) -> None:
    @purse.guarded({"usd": 2})
    def ask() -> None:
        pytest.fail("it must not be called")

    with pytest.raises(Exhausted) as refused:
        ask()
    assert refused.value.why == "never"


def test_a_result_that_does_not_tell_its_cost_is_charged_at_the_grant(purse: sync.Purse, api: FakeApi) -> None:
    @purse.guarded({"usd": "0.05"})
    def ask() -> str:
        return "an answer"

    ask()
    assert api.settled == 5 * CENT


def test_an_error_is_charged_or_released_as_the_guard_says(purse: sync.Purse, api: FakeApi) -> None:
    def fail() -> None:
        raise TimeoutError

    for guard in (purse.guarded({"usd": "0.05"}), purse.guarded({"usd": "0.05"}, on_error="release")):
        with pytest.raises(TimeoutError):
            guard(fail)()
    assert [call.charged for call in api.calls.values()] == [5 * CENT, 0]


def test_what_a_guard_cannot_hold_is_refused_when_it_is_made(purse: sync.Purse, async_purse: aio.Purse) -> None:
    async def later() -> None: ...
    def many() -> Iterator[int]:
        yield 1

    for function in (later, many):
        with pytest.raises(TypeError, match="is not a function that returns"):
            purse.guarded({"usd": "0.05"})(function)
    with pytest.raises(TypeError, match="is not an async function"):
        async_purse.guarded({"usd": "0.05"})(many)


# --- with asyncio -----------------------------------------------------------------------------------------------------


async def test_an_async_function_is_guarded_alike(async_purse: aio.Purse, api: FakeApi) -> None:
    api.canned["/v1/estimate"] = (200, {"amounts": {"usd": "0.07"}, "fits": True})

    @async_purse.guarded()
    async def ask(model: str, messages: list[Any]) -> dict[str, Any]:
        return {**COMPLETION, "model": model}

    answers = await asyncio.gather(*(ask("gpt-4o-mini", []) for _ in range(10)))
    assert len(answers) == 10
    assert (api.settled, api.held) == (10 * 210_000, 0)


async def test_an_async_block_settles_what_it_says(async_purse: aio.Purse, api: FakeApi) -> None:
    async with async_purse.holding({"usd": "0.10"}, id="a") as hold:
        await hold.progress(usd="0.02")
        hold.cost(usd="0.03")
    assert api.bodies("/v1/holds/a/settle")[0]["final"] is False
    with pytest.raises(Exhausted):
        async with async_purse.holding({"usd": 2}):
            pytest.fail("the block must not begin")


async def test_a_hold_whose_task_was_cancelled_is_given_back(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    async with aio.Purse(api.url, KEY) as purse:
        sending, go = threading.Event(), threading.Event()
        send = purse._sync._connections.send

        def slow(*asked: Any, **named: Any) -> Any:
            sending.set()
            go.wait(60)
            return send(*asked, **named)

        monkeypatch.setattr(purse._sync._connections, "send", slow)
        asking = asyncio.create_task(purse.hold({"usd": "0.1"}, wait_s=60))
        await asyncio.to_thread(sending.wait, 60)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        go.set()
        purse._threads.shutdown(wait=True)
        await asyncio.to_thread(purse._sync._outbox.close, 60)
        assert [call.state for call in api.calls.values()] == ["released"]
