"""A client notices that the stream denies what it has heard, and believes no permission until an operator says why."""

from __future__ import annotations

import pytest
from integration.rig import CENT, eventually, serving, told, used
from structlog.testing import capture_logs

from engine import heard
from engine.client import Purse
from engine.core.messages import Done, Held, Hold, Loss, Option, Settle
from engine.embedded import EmbeddedServer
from engine.errors import Untrusted


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heard, "LOOK_AGAIN_S", 0.05)


def hold(id: str, purse: Purse) -> Hold:
    return Hold(id, [Option({"usd": CENT})], by=purse.by(60))


async def untroubled(purse: Purse) -> bool:
    return purse._asker.heard._doubted is None and not purse.contradiction


async def test_what_is_heard_late_or_after_a_reconnect_is_compared_and_stands(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with serving(nats_server, wallet_name) as (purse, _):
        first = await purse.ask(hold("a", purse), wait_s=60)
        newest = await purse.ask(hold("b", purse), wait_s=60)
        with capture_logs() as logs:
            purse._asker.heard.hear(first.told, first.chain)
            await eventually(lambda: untroubled(purse))
            for listener in purse.journal.on_reconnect:
                listener()
            await eventually(lambda: untroubled(purse))
        assert purse.receipt == (newest.told, newest.chain)
        assert [one for one in logs if one["event"] == "receipt_contradicted"] == []


async def test_m19_a_client_whose_receipt_the_stream_denies_believes_no_permission_until_a_loss_is_accepted(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with (
        serving(nats_server, wallet_name) as (operator, _),
        Purse.connect(nats_server.url, wallet=wallet_name) as purse,
    ):
        answered = await purse.ask(hold("a", purse), wait_s=60)
        purse._asker.heard.newest = (answered.told, "0" * 64)  # as if the record had been another then
        with capture_logs() as logs:
            purse._asker.heard.hear(answered.told, answered.chain)
            await eventually(lambda: purse.contradiction)
        assert [one["told"] for one in logs if one["event"] == "receipt_contradicted"] == [answered.told]
        with pytest.raises(Untrusted, match=f"sequence {answered.told:,}"):
            await purse.ask(hold("b", purse), wait_s=60)
        with pytest.raises(Untrusted):
            await purse.ask_all([Settle("a", {"usd": 1}), hold("c", purse)], wait_s=60)

        loss = Loss("loss", answered.told, answered.told, "an older copy was put back", "ops")
        assert isinstance((await operator.ask(loss, wait_s=60)).outcome, Done)
        await eventually(lambda: untroubled(purse))
        assert purse.receipt[0] == 0
        assert isinstance((await purse.ask(hold("b", purse), wait_s=60)).outcome, Held)
        assert purse.receipt[0] > answered.told


async def test_what_must_not_be_lost_is_sent_all_the_same(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with serving(nats_server, wallet_name) as (purse, journal):
        await purse.ask(hold("a", purse), wait_s=60)
        purse._asker.heard.contradiction = "a test"
        await purse.ask(Settle("a", {"usd": 1}), wait_s=60)
        assert used(await told(journal)) == (1, 0)
