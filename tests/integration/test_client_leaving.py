"""What becomes of the asks of callers who leave, of settles while nothing works, and of `holding` blocks."""

from __future__ import annotations

import asyncio
import time

import pytest
from integration import rig
from integration.rig import (
    CENT,
    audited,
    change_stream,
    engine_on,
    eventually,
    nothing_untold,
    serving,
    told,
    used,
    wallet_on,
)
from integration.wire import Wire, nothing

from engine import client
from engine.client import Purse
from engine.core.messages import (
    Frozen,
    Held,
    Hold,
    Option,
    Settle,
    Settled,
)
from engine.embedded import EmbeddedServer
from engine.errors import NoAnswer, Refused, StreamRefused
from engine.journal import Journal


def hold(id: str, purse: Purse, amount: int = CENT, *, wait_s: float = 20) -> Hold:
    return Hold(id, [Option({"usd": amount})], by=purse.by(wait_s))


# --- giving up --------------------------------------------------------------------------------------------------------


async def test_a_hold_nobody_waited_for_holds_nothing(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        Purse.connect(nats_server.url, wallet=wallet_name) as purse,
    ):
        with pytest.raises(NoAnswer):
            await purse.hold({"usd": "0.01"}, id="h", wait_s=0.3)
        await eventually(lambda: rig.holds_messages(journal, 3))  # the plan, the hold, its give-up
        async with engine_on(nats_server.url, wallet_name):
            await eventually(lambda: nothing_untold(journal))
            assert used(await told(journal)) == (0, 0)
            assert isinstance(await purse.hold({"usd": "0.01"}, id="h", wait_s=20), Held), "the id is free again"


async def test_a_hold_that_was_granted_too_late_to_be_heard_is_taken_back(
    nats_server: EmbeddedServer, wallet_name: str, wire: Wire
) -> None:
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        engine_on(nats_server.url, wallet_name) as started,
        Purse.connect(wire.url, wallet=wallet_name) as purse,
    ):
        wire.lose = lambda _, payload: b'"answers"' in payload
        with pytest.raises(NoAnswer):
            await purse.hold({"usd": "0.01"}, id="h", wait_s=0.3)
        wire.lose = nothing
        wallet = started.service.wallet
        await eventually(lambda: wallet.closed.get("h", wallet.at) is not None)
        assert used(await told(journal)) == (0, 0)


async def test_a_caller_who_is_cancelled_leaves_nothing_held(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        Purse.connect(nats_server.url, wallet=wallet_name) as purse,
    ):
        asked = asyncio.create_task(purse.hold({"usd": "0.01"}, id="h", wait_s=20))
        await eventually(lambda: rig.holds_messages(journal, 2))
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        async with engine_on(nats_server.url, wallet_name) as started:
            wallet = started.service.wallet
            await eventually(lambda: wallet.closed.get("h", wallet.at) is not None)
            assert used(await told(journal)) == (0, 0)


async def test_whenever_a_caller_is_cancelled_nothing_stays_held(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with serving(nats_server, wallet_name) as (purse, journal):
        loop = asyncio.get_running_loop()
        asked = [asyncio.create_task(purse.hold({"usd": "0.01"}, wait_s=20)) for _ in range(80)]
        for number, task in enumerate(asked):
            loop.call_later(number * 0.0002, task.cancel)
        ended = await asyncio.gather(*asked, return_exceptions=True)
        heard = [outcome for outcome in ended if isinstance(outcome, Held)]
        await asyncio.gather(*(purse.release(held.id) for held in heard))

        async def nothing_held() -> bool:
            return used(await told(journal)) == (0, 0)

        await eventually(nothing_held)
        assert len(heard) < 80


async def test_of_a_list_whose_caller_left_the_settles_stay_and_the_holds_go(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        Purse.connect(nats_server.url, wallet=wallet_name) as purse,
    ):
        async with engine_on(nats_server.url, wallet_name):
            assert isinstance(await purse.hold({"usd": "0.01"}, id="old", wait_s=20), Held)
        with pytest.raises(NoAnswer):
            await purse.ask_all([hold("new", purse), Settle("old", {"usd": CENT // 2})], wait_s=0.3)
        async with engine_on(nats_server.url, wallet_name):
            await eventually(lambda: settled_alone(journal))


async def settled_alone(journal: Journal) -> bool:
    return used(await audited(journal)) == (CENT // 2, 0)


async def test_a_settle_handed_over_while_the_server_is_down_lands_exactly_once(
    own_server: EmbeddedServer, wallet_name: str
) -> None:
    async with serving(own_server, wallet_name) as (purse, journal):
        assert isinstance(await purse.hold({"usd": "0.01"}, id="h", wait_s=20), Held)
        own_server.kill()
        await own_server.wait()
        with pytest.raises(NoAnswer):
            await purse.settle("h", {"usd": "0.004"}, wait_s=0.3)  # its caller does not wait for it
        await own_server.start()
        await eventually(lambda: journal.client.is_connected)
        await eventually(lambda: settled_once(journal))
        assert (await told(journal)).count(Settled) == 1


async def settled_once(journal: Journal) -> bool:
    return used(await audited(journal)) == (4 * CENT // 10, 0)


async def test_a_client_that_closes_first_gets_its_settles_out(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with wallet_on(nats_server.url, wallet_name) as journal, engine_on(nats_server.url, wallet_name):
        async with Purse.connect(nats_server.url, wallet=wallet_name) as purse:
            for number in range(5):
                await purse.hold({"usd": "0.01"}, id=f"h{number}", wait_s=20)
            leaving = [asyncio.create_task(purse.settle(f"h{number}", {"usd": "0.001"})) for number in range(5)]
            await asyncio.sleep(0)
        await asyncio.gather(*leaving)
        assert used(await told(journal)) == (5 * CENT // 10, 0)


async def test_what_is_on_the_stream_is_not_sent_again_by_a_client_whose_callers_have_left(
    nats_server: EmbeddedServer, wallet_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long no engine answers; and a client that has nothing else to do closes at once."""
    monkeypatch.setattr(client, "CLOSE_WAIT_S", 60)
    async with wallet_on(nats_server.url, wallet_name) as journal:
        async with Purse.connect(nats_server.url, wallet=wallet_name) as purse:
            left = [purse.settle("h", {"usd": "0.001"}, wait_s=0.3), purse.hold({"usd": "0.01"}, id="i", wait_s=0.3)]
            ended = await asyncio.gather(*left, return_exceptions=True)
            assert [type(error) for error in ended] == [NoAnswer, NoAnswer]
            began = time.monotonic()
        assert time.monotonic() - began < 30
        async with engine_on(nats_server.url, wallet_name):
            await eventually(lambda: nothing_untold(journal))
        found = await told(journal)
        assert used(found) == (CENT // 10, 0)
        assert len(found.outcomes) == 4, "the plan, the settle, the hold and its give-up"


# --- a stream without room --------------------------------------------------------------------------------------------


async def test_m14_a_full_stream_refuses_holds_at_once_and_settles_land_when_there_is_room(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with serving(nats_server, wallet_name) as (purse, journal):
        assert isinstance(await purse.hold({"usd": "0.01"}, id="h", wait_s=20), Held)
        await told(journal)
        full = (await journal.check_stream()).bytes + 50
        await change_stream(journal, max_bytes=full)
        settling = asyncio.create_task(purse.settle("h", {"usd": "0.004"}, wait_s=20))
        for _ in range(3):
            began = time.monotonic()
            with pytest.raises(StreamRefused) as refused:
                await purse.hold({"usd": "0.01"}, wait_s=20)
            assert refused.value.code == 10077
            assert time.monotonic() - began < 5
        assert not settling.done()
        await change_stream(journal, max_bytes=-1)
        assert isinstance(await settling, Settled)
        found = await told(journal)
        assert found.count(Settled) == 1
        assert used(found) == (4 * CENT // 10, 0)


# --- holding ----------------------------------------------------------------------------------------------------------


async def test_holding_settles_at_what_the_call_cost(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with serving(nats_server, wallet_name) as (purse, journal):
        async with purse.holding({"usd": "0.01"}) as call:
            assert call.held.amounts == {"usd": CENT}
            call.cost(usd="0.004")
        assert used(await told(journal)) == (4 * CENT // 10, 0)


async def test_l9_a_block_that_raises_is_charged_at_its_hold(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with serving(nats_server, wallet_name) as (purse, journal):
        with pytest.raises(ZeroDivisionError):
            async with purse.holding({"usd": "0.01"}):
                raise ZeroDivisionError
        found = await told(journal)
        assert used(found) == (CENT, 0)
        (settled,) = (outcome for outcome in found.outcomes if isinstance(outcome, Settled))
        assert settled.state == "estimated"


async def test_a_block_that_raises_after_it_said_its_cost_is_charged_that(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with serving(nats_server, wallet_name) as (purse, journal):
        with pytest.raises(ZeroDivisionError):
            await fail_after(purse, "0.004")
        assert used(await told(journal)) == (4 * CENT // 10, 0)


async def fail_after(purse: Purse, cost: str) -> None:
    async with purse.holding({"usd": "0.01"}) as call:
        call.cost(usd=cost)
        raise ZeroDivisionError


async def test_a_call_that_was_never_made_costs_nothing(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with serving(nats_server, wallet_name) as (purse, journal):
        async with purse.holding({"usd": "0.01"}) as call:
            call.release()
        assert used(await told(journal)) == (0, 0)


async def test_l5_progress_stands_at_once_and_is_kept_whatever_comes(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with serving(nats_server, wallet_name) as (purse, journal):
        async with purse.holding({"usd": "0.01"}) as call:
            await call.progress(usd="0.003")
            assert used(await told(journal)) == (3 * CENT // 10, 7 * CENT // 10)
            await call.progress(usd="0.012")
            call.release()
        assert used(await told(journal)) == (12 * CENT // 10, 0)


async def test_a_block_that_is_not_held_never_begins(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with serving(nats_server, wallet_name) as (purse, _):
        await purse.freeze("all", "incident")
        with pytest.raises(Refused, match="frozen") as refused:
            async with purse.holding({"usd": "0.01"}):
                pytest.fail("the call was made")
        assert isinstance(refused.value.outcome, Frozen)


async def test_a_block_whose_settle_finds_no_engine_ends_with_its_own_error(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        Purse.connect(nats_server.url, wallet=wallet_name) as purse,
    ):
        async with engine_on(nats_server.url, wallet_name):
            block = purse.holding({"usd": "0.01"}, wait_s=0.5)
            call = await block.__aenter__()
        call.cost(usd="0.004")
        assert not await block.__aexit__(ZeroDivisionError, ZeroDivisionError(), None)
        async with engine_on(nats_server.url, wallet_name):
            await eventually(lambda: settled_once(journal))
