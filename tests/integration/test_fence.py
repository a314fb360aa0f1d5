"""M11, M12: two engines on one stream. Every ask is told exactly once, both have the same wallet, either may die."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence

import pytest
from integration.rig import (
    CENT,
    Process,
    Started,
    append,
    audited,
    engine_on,
    engine_process,
    eventually,
    wallet_on,
)
from integration.wire import acknowledgements, wire_to

from engine import service
from engine.client import Purse
from engine.core.messages import AnyAsk, AnyOutcome, Entry, Exhausted, Held, Hold, Option, Settle
from engine.core.tell import tell
from engine.core.wallet import Wallet
from engine.embedded import EmbeddedServer
from engine.errors import Untrusted
from engine.journal import Journal
from engine.service import Engine


async def load(purse: Purse, name: str, *, calls: int, abreast: int = 8) -> list[str]:
    """Calls of one cent and less, some abreast: hold, then settle. What their holds were told."""

    async def caller(number: int) -> list[str]:
        told: list[str] = []
        for call in range(number, calls, abreast):
            id = f"{name}-{call}"
            outcome = await purse.hold({"usd": "0.01"}, id=id, wait_s=20)
            told.append(str(outcome.__struct_config__.tag))
            if isinstance(outcome, Held):
                await purse.settle(id, {"usd": "0.001"}, wait_s=20)
        return told

    return [tag for told in await asyncio.gather(*map(caller, range(abreast))) for tag in told]


async def both_at(journal: Journal, engines: Sequence[Started[Engine]]) -> None:
    """Until every engine has read and told all that lies on the stream."""
    last = await journal.last_seq()
    await eventually(lambda: all(quiet(started.service, last) for started in engines))


def quiet(engine: Engine, last: int) -> bool:
    return max(engine.wallet.upto, engine.told_seq) >= last and not engine._decided


@pytest.mark.parametrize("patience_s", [0.0, 0.15], ids=["both eager", "one waits 150 ms"])
async def test_m11_two_engines_tell_every_ask_exactly_once(
    nats_server: EmbeddedServer, wallet_name: str, patience_s: float
) -> None:
    url = nats_server.url
    async with (
        wallet_on(url, wallet_name) as journal,
        engine_on(url, wallet_name) as first,
        engine_on(url, wallet_name, patience_s=patience_s) as second,
        Purse.connect(url, wallet=wallet_name) as purse,
    ):
        told = await load(purse, "c", calls=120)
        await both_at(journal, [first, second])
        found = await audited(journal)  # proves the chain, and that nothing was told twice
        assert told == ["held"] * 120
        assert (found.count(Held), found.untold) == (120, 0)
        assert found.wallet.meters()["jev", None, "total"] == (120 * CENT // 10, 0, 0, 0)
        assert first.service.wallet.dump() == second.service.wallet.dump() == found.wallet.dump()
        speakers = {told.engine for told in found.tolds}
        assert first.service.instance in speakers
        if patience_s:
            assert speakers == {first.service.instance}, "a standby speaks only when nobody does"


async def test_a_standby_stays_quiet_however_long_nothing_was_asked(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    url = nats_server.url
    async with (
        wallet_on(url, wallet_name) as journal,
        engine_on(url, wallet_name) as first,
        engine_on(url, wallet_name, patience_s=0.5) as standby,
    ):
        for number in range(3):
            await both_at(journal, [first, standby])
            await asyncio.sleep(0.6)  # longer than its patience
            await append(journal, Hold(f"h{number}", [Option({"usd": CENT})], by=1))
        await both_at(journal, [first, standby])
        assert {told.engine for told in (await audited(journal)).tolds} == {first.service.instance}


async def test_m12_an_engine_that_is_killed_is_followed_by_the_other(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    url = nats_server.url
    async with (
        wallet_on(url, wallet_name) as journal,
        engine_process(url, wallet_name) as first,
        engine_on(url, wallet_name, patience_s=0.15) as standby,
        Purse.connect(url, wallet=wallet_name) as purse,
    ):
        before = await load(purse, "before", calls=16)
        told_before = standby.service.told_seq
        during = asyncio.create_task(load(purse, "during", calls=48))
        await eventually(lambda: standby.service.told_seq > told_before)
        first.signal(signal.SIGKILL)
        assert before + await during + await load(purse, "after", calls=16) == ["held"] * 80
        await both_at(journal, [standby])
        found = await audited(journal)
        assert found.wallet.meters()["jev", None, "total"] == (80 * CENT // 10, 0, 0, 0)
        assert found.wallet.dump() == standby.service.wallet.dump()
        assert len({told.engine for told in found.tolds}) == 2


async def test_m12_an_engine_that_slept_through_a_takeover_follows_the_other(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    url = nats_server.url
    async with (
        wallet_on(url, wallet_name) as journal,
        engine_process(url, wallet_name, patience_ms=100) as sleeper,
        Purse.connect(url, wallet=wallet_name) as purse,
    ):
        assert await load(purse, "alone", calls=8) == ["held"] * 8
        sleeper.signal(signal.SIGSTOP)
        async with engine_process(url, wallet_name, patience_ms=150) as other:
            assert await load(purse, "over", calls=8) == ["held"] * 8
            asleep = asyncio.create_task(load(purse, "woken", calls=32))
            sleeper.signal(signal.SIGCONT)
            assert await asleep == ["held"] * 32
            other.signal(signal.SIGTERM)
            assert await other.wait() == 0
        assert await load(purse, "last", calls=8) == ["held"] * 8, "the one that slept serves again"
        found = await audited(journal)
        assert found.wallet.meters()["jev", None, "total"] == (56 * CENT // 10, 0, 0, 0)
        assert alive(sleeper)


def alive(process: Process) -> bool:
    return not process.events("stream_not_trusted") and not process.events("stopped")


async def test_two_engines_never_grant_more_than_the_limit(nats_server: EmbeddedServer, wallet_name: str) -> None:
    url = nats_server.url
    async with (
        wallet_on(url, wallet_name) as journal,
        engine_on(url, wallet_name) as first,
        engine_on(url, wallet_name) as second,
        Purse.connect(url, wallet=wallet_name) as one,
        Purse.connect(url, wallet=wallet_name) as other,
    ):
        asks = [purse.hold({"usd": "0.03"}, wait_s=20) for purse in (one, other) for _ in range(30)]
        outcomes = [type(outcome) for outcome in await asyncio.gather(*asks)]
        assert (outcomes.count(Held), outcomes.count(Exhausted)) == (33, 27)
        await both_at(journal, [first, second])
        assert (await audited(journal)).count(Held) == 33


async def test_an_engine_that_decides_by_other_rules_stops_instead_of_speaking(
    nats_server: EmbeddedServer, wallet_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def generous(
        wallet: Wallet, *, seq: int, ts: int, asks: Sequence[AnyAsk] | None, heard: list[AnyOutcome], skipped: bool
    ) -> Entry:
        """Settles everything at nothing."""
        free = [Settle(ask.hold, release=True) if isinstance(ask, Settle) else ask for ask in asks or ()]
        return tell(wallet, seq=seq, ts=ts, asks=free, heard=heard, skipped=skipped)

    url = nats_server.url
    async with wallet_on(url, wallet_name) as journal, engine_on(url, wallet_name) as right:
        await append(journal, Hold("h", [Option({"usd": CENT})], by=2**62))
        await append(journal, Settle("h", {"usd": 1}))
        await both_at(journal, [right])
        monkeypatch.setattr(service, "tell", generous)
        async with engine_on(url, wallet_name, ready=False) as wrong:
            error = await wrong.end()
        assert isinstance(error, Untrusted)
        assert "told otherwise" in str(error)
        assert {told.engine for told in (await audited(journal)).tolds} == {right.service.instance}


async def test_a_told_whose_acknowledgement_never_comes_is_not_told_twice(
    nats_server: EmbeddedServer, wallet_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """M7 for the engine: it learns from its follower what became of the told."""
    monkeypatch.setattr(service, "TOLD_WAIT_S", 0.2)
    async with (
        wire_to(nats_server.url) as wire,
        wallet_on(nats_server.url, wallet_name) as journal,
        engine_on(wire.url, wallet_name) as started,
    ):
        wire.lose = acknowledgements
        for _ in range(5):
            await journal.append("ask", b'{"asks":[]}', wait_s=20)
        await both_at(journal, [started])
        assert wire.lost >= 1
        assert len((await audited(journal)).entries) == 6
