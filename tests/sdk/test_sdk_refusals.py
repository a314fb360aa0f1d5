"""What a refusal becomes in every client: its own error, after exactly one request that goes no further."""

from __future__ import annotations

import pytest
from sdk.calls import ask, guarding
from sdk.clients import Client, Running
from sdk.refusals import CODES, RAISES, REFUSALS, Refusal, caught_as, code_of

pytestmark = pytest.mark.timeout(600)  # beyond the clients' own deadlines

WAYS = ("plain", "stream", "tools-stream")


def ways(client: Client, refusal: Refusal) -> list[str]:
    if refusal.does:
        return [refusal.does] if client.elsewhere else []
    return [*WAYS, *(["embeddings"] if client.embeds else [])]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.name.replace(" ", "-"))
async def test_k1_k7_a_no_that_stays_a_no_is_one_request(client: Running, refusal: Refusal) -> None:
    told = client.client
    if not ways(told, refusal):
        pytest.skip("it has nothing else to ask for")
    async with guarding(told, refusal.plan) as guard:
        await refusal.before(guard)
        for number, does in enumerate(ways(told, refusal), start=1):
            said = await ask(client, guard, does, **refusal.asked)
            error = said.get("error")
            assert error, (does, said)
            raised = RAISES[told.family][refusal.status]
            assert (caught_as(error), error["status"]) == (raised, refusal.status), (does, error)
            assert refusal.words in error["message"]
            assert code_of(error) == CODES[refusal.name][told.provider == "anthropic"]
            assert len(guard.desk.came) == number, (does, "is one request")
        assert guard.fake.requests == []
