"""Blocks and guarded functions of the client on the real server: what they hold, raise, and settle."""

from __future__ import annotations

from decimal import Decimal

import pytest
from integration.rig import CENT, DOLLAR, audited, serving, used

from engine.client import Purse
from engine.core.messages import Exhausted as ExhaustedOutcome
from engine.core.messages import Option
from engine.embedded import EmbeddedServer
from engine.errors import Exhausted, Misconfigured


async def test_a_block_takes_the_first_option_that_fits_and_says_which(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with serving(nats_server, wallet_name) as (purse, journal):
        options = [Option({"usd": 2 * DOLLAR}, grade=0), Option({"usd": 10 * CENT}, grade=1)]
        async with purse.holding(options=options, wait_s=20) as hold:
            assert hold.option == 1
            assert hold.units == {"usd"}
            hold.cost(usd="0.04")
        assert used(await audited(journal)) == (4 * CENT, 0)


async def test_what_does_not_fit_is_raised_with_its_reason(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with serving(nats_server, wallet_name) as (purse, _):
        with pytest.raises(Exhausted) as refused:
            async with purse.holding({"usd": 2}, wait_s=20):
                pytest.fail("the block must not begin")
        error = refused.value
        assert (error.why, error.budget, error.unit, error.fits) == ("never", "jev", "usd", Decimal(1))
        assert error.resets_at is None  # a budget for all time
        assert isinstance(error.outcome, ExhaustedOutcome)


async def test_a_guarded_function_is_held_and_settled(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with serving(nats_server, wallet_name) as (purse, journal):

        @purse.guarded(lambda pages: {"usd": pages * Decimal("0.01")}, cost=lambda said: {"usd": said}, wait_s=20)
        async def scan(pages: int) -> str:
            if pages > 50:
                raise TimeoutError
            return "0.015"

        assert await scan(pages=3) == "0.015"
        assert used(await audited(journal)) == (15 * CENT // 10, 0)
        with pytest.raises(TimeoutError):
            await scan(60)
        assert used(await audited(journal)) == (60 * CENT + 15 * CENT // 10, 0)


async def test_an_error_that_means_no_call_is_released(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with serving(nats_server, wallet_name) as (purse, journal):
        with pytest.raises(ConnectionRefusedError):
            async with purse.holding({"usd": "0.5"}, on_error="release", wait_s=20):
                raise ConnectionRefusedError
        assert used(await audited(journal)) == (0, 0)


async def test_the_address_of_a_web_process_is_not_the_brokers() -> None:
    with pytest.raises(Misconfigured, match="over HTTP"):
        async with Purse.connect("http://127.0.0.1:8080"):
            pytest.fail("it must not connect")
