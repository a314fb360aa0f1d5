"""More than can be served: who cannot be helped hears so at once, nobody pays for what they never heard of."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from integration.rig import CENT, Audit, Reader, audited, engine_on, eventually, running, wallet_on

from engine import asking
from engine.client import Purse
from engine.core.messages import Held, Hold, Option, Settle, Settled
from engine.embedded import EmbeddedServer
from engine.errors import NoAnswer, NotKept, StreamRefused
from engine.journal import Journal


def used(found: Audit) -> tuple[int, int]:
    """Settled and held in the budget that every test shares."""
    settled, held, _, _ = found.wallet.meters().get(("jev", None, "total"), (0, 0, 0, 0))
    return settled, held


async def told(journal: Journal) -> Audit:
    """The record, once everything on it is told."""
    found = await audited(journal)
    while found.untold:
        found = await eventually(lambda: audited(journal))
    return found


async def test_past_so_many_waiting_asks_a_hold_is_refused_at_once_and_a_settle_still_waits(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "ASKS_WAITING_MAX", 10)
    monkeypatch.setattr(asking, "SETTLES_WAITING_MAX", 2)
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        Purse.connect(nats_server.url, wallet=wallet_name, data=tmp_path) as purse,
    ):
        holding = [asyncio.create_task(purse.hold({"usd": "0.001"}, wait_s=20)) for _ in range(10)]
        await eventually(lambda: longer(journal, 1))
        began = time.monotonic()
        with pytest.raises(StreamRefused, match="too many asks are waiting"):
            await purse.hold({"usd": "0.001"}, wait_s=20)
        settling = [asyncio.create_task(purse.settle(f"s{n}", {"usd": "0.001"}, wait_s=20)) for n in range(2)]
        await eventually(lambda: longer(journal, 2))
        with pytest.raises(NotKept, match="send it again"):
            await purse.settle("s2", {"usd": "0.001"}, wait_s=20)
        assert time.monotonic() - began < 10, "nobody waited in vain"
        async with engine_on(nats_server.url, wallet_name):
            assert all(isinstance(outcome, Held) for outcome in await asyncio.gather(*holding))
            await asyncio.gather(*settling)
            assert isinstance(await purse.hold({"usd": "0.001"}, wait_s=20), Held), "there is room again"
            await purse.settle("s2", {"usd": "0.001"}, wait_s=20)


async def longer(journal: Journal, than: int) -> bool:
    return await journal.last_seq() > than


async def test_an_engine_that_was_away_charges_nobody_who_has_left(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        Purse.connect(nats_server.url, wallet=wallet_name, data=tmp_path) as purse,
    ):
        async with engine_on(nats_server.url, wallet_name):
            assert isinstance(await purse.hold({"usd": "0.01"}, id="before", wait_s=20), Held)
        calls = [purse.hold({"usd": "0.01"}, id=f"h{number}", wait_s=0.5) for number in range(200)]
        heard = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(error) for error in heard] == [NoAnswer] * 200
        async with engine_on(nats_server.url, wallet_name):
            assert isinstance(await purse.settle("before", {"usd": "0.004"}, wait_s=20), Settled)
            await eventually(lambda: everybody_is_gone(journal))
            again = await asyncio.gather(*(purse.hold({"usd": "0.01"}, wait_s=20) for _ in range(99)))
            assert [type(outcome) for outcome in again] == [Held] * 99, "all the room is there"
        assert used(await told(journal)) == (4 * CENT // 10, 99 * CENT)


async def everybody_is_gone(journal: Journal) -> bool:
    found = await audited(journal)
    return not found.untold and used(found) == (4 * CENT // 10, 0) and not found.wallet.open


async def test_a_reader_that_stands_still_holds_up_neither_the_engine_nor_other_readers(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    """As a projector that hangs would: its part of the stream stays with the server."""
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        engine_on(nats_server.url, wallet_name),
        Journal.connect(nats_server.url, wallet=wallet_name, name="stalled") as stalled,
        Purse.connect(nats_server.url, wallet=wallet_name) as purse,
    ):
        reader = Reader(stalled)
        reader.open.clear()
        async with running(reader, reader.follower.run(), stalled):
            for first in range(0, 10_240, 1024):
                asks = [
                    Hold(f"h{n}", [Option({"usd": 1})], by=purse.by(20), labels={"user": "u" * 100})
                    for n in range(first, first + 1024)
                ]
                answered = await purse.ask_all(asks, wait_s=20)
                assert all(isinstance(one.outcome, Held) for one in answered)
                await purse.ask_all([Settle(ask.id, {"usd": 1}) for ask in asks], wait_s=20)
            assert reader.heard == []
            last = await journal.last_seq()
            reader.open.set()
            await eventually(lambda: len(reader.heard) >= last)
            assert reader.seqs == list(range(1, last + 1))
