"""The client on the real server: what it sends together, asks again, takes back and never loses."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections import Counter
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any, cast

import pytest
from integration import rig
from integration.rig import (
    CENT,
    SECOND,
    audited,
    engine_on,
    eventually,
    process_of,
    projector_on,
    serving,
    told,
    used,
    wallet_on,
)
from integration.wire import Wire, acknowledgements, nothing
from nats.aio.msg import Msg

from engine import asking
from engine.client import Purse
from engine.core.messages import (
    Again,
    AnyAsk,
    Exhausted,
    Freeze,
    Held,
    Hold,
    Invalid,
    Late,
    Observe,
    Option,
    Settle,
    Settled,
)
from engine.embedded import EmbeddedServer
from engine.errors import BadAsk
from engine.journal import Journal

CALLERS = """
import asyncio, json, os
from collections import Counter
from engine.client import Purse

async def main():
    async with Purse.connect(os.environ["PURSE_NATS_URL"], wallet=os.environ["PURSE_WALLET"]) as purse:
        asks = [purse.hold({"usd": "0.01"}, wait_s=60) for _ in range(125)]
        told = Counter(outcome.__struct_config__.tag for outcome in await asyncio.gather(*asks))
        print(json.dumps(told))

asyncio.run(main())
"""


def hold(id: str, purse: Purse, amount: int = CENT, *, wait_s: float = 20) -> Hold:
    return Hold(id, [Option({"usd": amount})], by=purse.by(wait_s))


# --- asking -----------------------------------------------------------------------------------------------------------


async def test_a_hold_is_told_with_what_is_left_and_a_receipt_that_stands_on_the_record(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with serving(nats_server, wallet_name) as (purse, journal):
        answered = await purse.ask(hold("h", purse))
        assert isinstance(answered.outcome, Held)
        assert answered.outcome.budgets["jev"].remaining == 99 * CENT
        assert purse.receipt == (answered.told, answered.chain)
        stored = await journal.read(answered.told)
        assert stored is not None
        assert stored.data.endswith(f'"chain":"{answered.chain}"}}'.encode())
        ask = await journal.read(answered.seq)
        assert ask is not None
        assert ask.ts == answered.at


async def test_asks_that_wait_travel_together(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with serving(nats_server, wallet_name) as (purse, journal):
        asks = [purse.hold({"usd": "0.001"}, id=f"h{number}", wait_s=20) for number in range(500)]
        outcomes = await asyncio.gather(*asks)
        assert all(isinstance(outcome, Held) for outcome in outcomes)
        assert len({outcome.id for outcome in outcomes if isinstance(outcome, Held)}) == 500
        found = await told(journal)
        assert len(found.entries) < 20, "the messages"
        assert len(found.tolds) < 20


async def test_a_list_is_one_message_and_each_ask_sees_the_ones_before_it(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with serving(nats_server, wallet_name) as (purse, _):
        asks: list[AnyAsk] = [hold("a", purse, 60 * CENT), hold("b", purse, 60 * CENT), Settle("a", {"usd": 10 * CENT})]
        answered = await purse.ask_all([*asks, hold("c", purse, 60 * CENT)], wait_s=20)
        assert [type(one.outcome) for one in answered] == [Held, Exhausted, Settled, Held]
        assert len({one.seq for one in answered}) == 1


async def test_a_crowd_travels_in_shares_so_that_nobody_waits_for_all(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with serving(nats_server, wallet_name) as (purse, _):
        crowd = [purse.ask(hold(f"h{n}", purse, 1), wait_s=20) for n in range(1_000)]
        answered = await asyncio.gather(*crowd)
        assert {type(one.outcome) for one in answered} == {Held}
        sizes = Counter(one.seq for one in answered).values()
        assert max(sizes) <= 1_000 // asking.SHARES
        assert sum(sizes) == 1_000


async def test_a_list_has_at_most_1024_asks(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with serving(nats_server, wallet_name) as (purse, journal):
        before = await journal.last_seq()
        for count in (0, 1025):
            with pytest.raises(BadAsk, match="1 to 1024"):
                await purse.ask_all([hold(f"h{number}", purse, 1) for number in range(count)])
        assert await journal.last_seq() == before
        assert len(await purse.ask_all([hold(f"h{n}", purse, 1) for n in range(1024)], wait_s=20)) == 1024


MALFORMED: list[tuple[Any, str]] = [
    (Hold("h", [Option({"usd": cast("int", "1")})], by=1), "usd|amounts"),
    (Hold("h", [Option({"usd": cast("int", 0.5)})], by=1), "usd|amounts"),
    (Hold("h", cast("list[Option]", [{"amounts": "all"}]), by=1), "options|amounts"),
    (Hold("h", cast("list[Option]", None), by=1), "options"),
    (Hold("h", [Option({"usd": 1})], by=1, labels={"user": "\ud800"}), "surrogate|utf-8|labels|encode"),
    (Settle(cast("str", 7), {"usd": 1}), "hold"),
    (Settle("h", {}), "amounts"),
    (cast("AnyAsk", {"ask": "hold"}), "ask|object|tag"),
]


@pytest.mark.parametrize(("ask", "place"), MALFORMED, ids=[str(number) for number in range(len(MALFORMED))])
async def test_a_malformed_ask_is_refused_at_the_door_and_harms_nobody_else(
    nats_server: EmbeddedServer, wallet_name: str, ask: AnyAsk, place: str
) -> None:
    async with serving(nats_server, wallet_name) as (purse, journal), projector_on(nats_server.url, wallet_name):
        results = await asyncio.gather(
            purse.ask(hold("a", purse), wait_s=20),
            purse.ask(ask, wait_s=20),
            purse.ask(hold("b", purse), wait_s=20),
            return_exceptions=True,
        )
        first, bad, last = results
        assert isinstance(bad, BadAsk), bad
        assert any(word in str(bad).lower() for word in place.split("|")), str(bad)
        for result in (first, last):
            assert isinstance(result, asking.Answered)
            assert isinstance(result.outcome, Held)
        assert (await told(journal)).count(Invalid) == 0


@pytest.mark.parametrize(
    "ask",
    [
        Hold("id with spaces", [Option({"usd": 1})], by=1),
        Hold("h", [], by=1),
        Hold("h", [Option({"usd": -1})], by=1),
        Hold("h", [Option({"usd": 2**63})], by=1),
        Hold("h", [Option({"USD": 1})], by=1),
        Hold("h", [Option({"usd": 1})], by=1, ttl_s=0),
        Hold("h", [Option({"usd": 1})], by=2**62),
    ],
)
async def test_what_the_plan_forbids_never_reaches_the_stream(
    nats_server: EmbeddedServer, wallet_name: str, ask: AnyAsk
) -> None:
    async with serving(nats_server, wallet_name) as (purse, journal), projector_on(nats_server.url, wallet_name):
        before = await journal.last_seq()
        with pytest.raises(BadAsk):
            await purse.ask(ask)
        with pytest.raises(BadAsk, match=r"asks\[1\]"):
            await purse.ask_all([hold("fine", purse), ask])
        assert await journal.last_seq() == before


async def test_a_projector_that_never_answers_makes_no_hold_late(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with serving(nats_server, wallet_name) as (purse, journal):

        async def say_nothing(_: Msg) -> None:
            return

        await journal.client.subscribe(journal.names.subject("read.*"), cb=say_nothing)
        began = time.monotonic()
        assert isinstance(await purse.hold({"usd": "0.01"}, wait_s=10), Held)
        assert isinstance(await purse.hold({"usd": "0.01"}, wait_s=10), Held)
        assert time.monotonic() - began < 10


# --- asking again -----------------------------------------------------------------------------------------------------


async def test_m7_a_message_that_was_stored_without_a_word_is_not_stored_twice(
    nats_server: EmbeddedServer, wallet_name: str, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "APPEND_WAIT_S", 0.2)
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        Purse.connect(wire.url, wallet=wallet_name) as purse,
    ):
        wire.lose = acknowledgements
        asked = asyncio.create_task(purse.hold({"usd": "0.01"}, wait_s=20))
        await eventually(lambda: wire.lost >= 2)
        wire.lose = nothing
        async with engine_on(nats_server.url, wallet_name):
            assert isinstance(await asked, Held)
        assert await asks_on(journal) == 2, "the plan and the hold"


async def asks_on(journal: Journal) -> int:
    found = await audited(journal)
    return len(found.entries) + found.untold


async def test_m8_a_duplicate_that_is_not_there_goes_out_under_another_name(
    nats_server: EmbeddedServer, wallet_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "PATIENCE_S", 60)  # asking again would hide it
    async with serving(nats_server, wallet_name) as (purse, journal):
        instance = purse._asker._instance
        taken = await journal.append("ask", b'{"asks":[]}', wait_s=20, msg_id=f"{instance}.1")
        answered = await purse.ask(hold("h", purse), wait_s=20)
        assert isinstance(answered.outcome, Held)
        assert answered.seq > taken.seq


async def test_an_ask_whose_answer_was_lost_is_asked_again_and_answered_alike(
    nats_server: EmbeddedServer, wallet_name: str, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "PATIENCE_S", 0.2)
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        engine_on(nats_server.url, wallet_name),
        Purse.connect(wire.url, wallet=wallet_name) as purse,
    ):
        wire.lose = lambda _, payload: b'"answers"' in payload and wire.lost < 1
        assert isinstance(await purse.hold({"usd": "0.01"}, id="h", wait_s=20), Held)
        found = await told(journal)
        assert (found.count(Held), found.count(Again)) == (1, 1)
        wire.lose = lambda _, payload: b'"answers"' in payload and wire.lost < 2
        settled = await purse.settle("h", {"usd": "0.004"}, wait_s=20)
        assert isinstance(settled, Again)
        assert isinstance(settled.was, Settled)
        assert settled.was.charged == {"usd": 4 * CENT // 10}
        assert used(await told(journal)) == (4 * CENT // 10, 0)


async def test_a_caller_who_waits_for_an_engine_to_start_is_served_once(
    nats_server: EmbeddedServer, wallet_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "PATIENCE_S", 0.1)
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        Purse.connect(nats_server.url, wallet=wallet_name) as purse,
    ):
        asked = asyncio.create_task(purse.hold({"usd": "0.01"}, id="h", wait_s=20))
        await eventually(lambda: rig.holds_messages(journal, 3))  # the plan, the hold, the hold again
        async with engine_on(nats_server.url, wallet_name):
            assert isinstance(await asked, Held)
            found = await told(journal)
        assert found.count(Held) == 1
        assert used(found) == (0, CENT)


async def test_a_client_whose_connection_is_cut_again_and_again_loses_nothing_and_pays_once(
    nats_server: EmbeddedServer, wallet_name: str, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "PATIENCE_S", 0.1)
    monkeypatch.setattr(asking, "APPEND_WAIT_S", 60)  # a cut is noticed, not waited out
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        engine_on(nats_server.url, wallet_name),
        Purse.connect(wire.url, wallet=wallet_name) as purse,
    ):

        async def call(number: int) -> None:
            assert isinstance(await purse.hold({"usd": "0.01"}, id=f"h{number}", wait_s=20), Held)
            await purse.settle(f"h{number}", {"usd": "0.005"}, wait_s=20)

        heard = itertools.count(1)

        def cut_now_and_then(_: str, __: bytes) -> bool:
            if next(heard) % 5 == 0:
                wire.cut()
            return False

        wire.lose = cut_now_and_then
        for first in range(0, 80, 20):
            await asyncio.gather(*(call(number) for number in range(first, first + 20)))
        assert wire.cuts > 3
        assert used(await told(journal)) == (40 * CENT, 0)


@pytest.mark.parametrize("off_s", [-7200, 7200], ids=["two hours behind", "two hours ahead"])
async def test_a_client_whose_clock_is_off_learns_the_streams_time_and_is_served(
    nats_server: EmbeddedServer, wallet_name: str, monkeypatch: pytest.MonkeyPatch, off_s: int
) -> None:
    clock = SimpleNamespace(time_ns=lambda: time.time_ns() + off_s * SECOND, monotonic=time.monotonic)
    monkeypatch.setattr(asking, "time", clock)
    async with serving(nats_server, wallet_name) as (purse, journal):
        assert isinstance(await purse.hold({"usd": "0.01"}, wait_s=5), Held)
        assert abs(purse.now() - time.time_ns()) < 2 * SECOND
        assert isinstance(await purse.hold({"usd": "0.01"}, wait_s=5), Held)
        found = await told(journal)
        assert found.count(Late) + found.count(Invalid) == 1


# --- many -------------------------------------------------------------------------------------------------------------


async def test_500_holds_from_four_processes_never_pass_the_limit(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    """A1, A3: one dollar, 500 holds of a cent."""
    environment = {"PURSE_NATS_URL": nats_server.url, "PURSE_WALLET": wallet_name}
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        engine_on(nats_server.url, wallet_name),
        AsyncExitStack() as stack,
    ):
        processes = [await stack.enter_async_context(process_of(["-c", CALLERS], **environment)) for _ in range(4)]
        counts = [json.loads(output) for output in await asyncio.gather(*(one.output() for one in processes))]
        assert sum(count.get("held", 0) for count in counts) == 100
        assert sum(count.get("exhausted", 0) for count in counts) == 400
        found = await told(journal)
        assert (found.count(Held), found.count(Exhausted)) == (100, 400)
        assert used(found) == (0, 100 * CENT)


# --- small things -----------------------------------------------------------------------------------------------------


async def test_it_knows_whether_an_engine_is_there(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with serving(nats_server, wallet_name) as (purse, _):
        assert await purse.ready()
    async with Purse.connect(nats_server.url, wallet=wallet_name) as purse:
        assert not await purse.ready()


async def test_what_operators_ask_goes_to_the_admin_subject(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with serving(nats_server, wallet_name) as (purse, journal):
        answered = await purse.ask(Freeze("f", "all", "incident"), wait_s=20)
        stored = await journal.read(answered.seq)
        assert stored is not None
        assert stored.kind == "admin"


@pytest.mark.parametrize("amount", ["0.1e3", "-1", "1,5", 0.1, True, None, "NaN", "0.0000000001", "9" * 30])
async def test_amounts_that_are_none_are_refused_by_their_unit(
    nats_server: EmbeddedServer, wallet_name: str, amount: Any
) -> None:
    async with Purse.connect(nats_server.url, wallet=wallet_name) as purse:
        with pytest.raises(BadAsk, match=r"amounts\.usd"):
            await purse.hold({"usd": amount})


async def test_l15_a_unit_nobody_knows_is_refused(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with Purse.connect(nats_server.url, wallet=wallet_name) as purse:
        with pytest.raises(BadAsk, match="unknown unit"):
            await purse.hold({"USD": "1"})
        with pytest.raises(BadAsk, match="at least one amount"):
            await purse.hold({})


async def test_a_figure_from_the_future_is_refused_at_the_door(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with Purse.connect(nats_server.url, wallet=wallet_name) as purse:
        with pytest.raises(BadAsk, match="as_of"):
            await purse.observe(Observe("o", "jev", "total", 1, purse.now() + 3600 * SECOND, "cloudflare"))
