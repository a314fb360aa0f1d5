"""Every client gets its answers as if nothing stood between it and its provider, and the wallet settles the bill."""

from __future__ import annotations

import pytest
from providers.faults import Fault
from providers.production import Reply, words
from sdk.calls import ask, guarding
from sdk.clients import Running

pytestmark = pytest.mark.timeout(600)  # beyond the clients' own deadlines

ENDED = {
    "chat": {"done": "stop", "cut": "length", "tool": "tool_calls"},
    "responses": {"done": "completed", "cut": "max_output_tokens", "tool": "completed"},
    "messages": {"done": "end_turn", "cut": "max_tokens", "tool": "tool_use"},
    "ai": {"done": "stop", "cut": "length", "tool": "tool-calls"},
}
"""How an answer ends, in the words of each interface."""


def ended(client: Running, how: str) -> str:
    told = client.client
    return ENDED["ai" if told.family == "ai" else told.speaks][how]


@pytest.mark.parametrize("does", ["plain", "stream", "stream-with-usage"])
async def test_a_client_gets_its_answer_and_the_wallet_settles_the_bill(client: Running, does: str) -> None:
    async with guarding(client.client) as guard:
        said = await ask(client, guard, does)
        assert (said.get("text"), said.get("ended")) == (guard.fake.reply.text, ended(client, "done")), said
        (seen,) = guard.fake.requests
        if does != "stream":
            assert (said["input"], said["output"]) == (seen.used.input, seen.used.output)
        assert not (await guard.settled())[0].estimated
        assert guard.meter() == (guard.fake.ledger.total, 0)
        assert len(guard.desk.came) == 1


@pytest.mark.parametrize("does", ["tools", "tools-stream"])
async def test_a_client_gets_the_call_of_its_tool(client: Running, does: str) -> None:
    async with guarding(client.client) as guard:
        said = await ask(client, guard, does)
        assert said.get("tool") == ["weather", {"city": "Zürich"}], said
        assert said["ended"] == ended(client, "tool")
        await guard.settled()
        assert guard.meter() == (guard.fake.ledger.total, 0)
        assert len(guard.desk.came) == 1


async def test_a_client_gets_its_embeddings(client: Running) -> None:
    if not client.client.embeds:
        pytest.skip("it has none")
    async with guarding(client.client) as guard:
        said = await ask(client, guard, "embeddings")
        assert [vector[0] for vector in said.get("vectors", [])] == [0.0, 1.0], said
        await guard.settled()
        assert guard.meter() == (guard.fake.ledger.total, 0)
        assert len(guard.desk.came) == 1


@pytest.mark.parametrize("does", ["plain", "stream", "stream-with-usage"])
async def test_an_answer_that_reached_its_cap_says_so(client: Running, does: str) -> None:
    async with guarding(client.client, reply=Reply(tokens=words(40))) as guard:
        said = await ask(client, guard, does, max_tokens=16)
        assert (said.get("text"), said.get("ended")) == ("".join(words(16)), ended(client, "cut")), said


@pytest.mark.parametrize("does", ["stream", "stream-with-usage"])
async def test_a_stream_that_is_cut_at_its_grant_ends_like_one_that_reached_its_cap(client: Running, does: str) -> None:
    """The provider goes on past the cap, and would for long; the client sees no error, only that there is no more."""
    reply = Reply(tokens=words(5_000))
    async with guarding(client.client, reply=reply, fault=Fault(ignores_cap=True)) as guard:
        said = await ask(client, guard, does, max_tokens=16)
        assert "error" not in said, said
        assert said["ended"] == ended(client, "cut")
        assert reply.text.startswith(said["text"])
        assert 0 < len(said["text"]) < len(reply.text) / 2
        (settle,) = await guard.settled()
        (hold,) = guard.holds
        assert settle.estimated
        assert 0 < settle.amounts["usd"] <= hold.options[0].amounts["usd"]
        await guard.fake.requests[0].aborted.wait()
        assert len(guard.desk.came) == 1
