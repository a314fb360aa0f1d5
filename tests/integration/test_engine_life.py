"""An engine's life on the real server: time passes, it starts again, it ends, and it says why."""

from __future__ import annotations

import asyncio
import json
import signal
import time

import msgspec
import pytest
from integration import rig
from integration.rig import (
    CENT,
    DOLLAR,
    SECOND,
    append,
    audited,
    engine_on,
    engine_process,
    eventually,
    inbox_of,
    past,
    penny,
    record_of,
    told_up_to,
    wallet_on,
)

from engine import service
from engine.core.messages import (
    ApplyPlan,
    AskMessage,
    Freeze,
    Frozen,
    Held,
    Invalid,
    Settle,
)
from engine.core.plan import Budget, Plan
from engine.embedded import EmbeddedServer
from engine.errors import Misconfigured, Untrusted
from engine.journal import Journal


async def test_time_passes_by_a_tick_when_nothing_else_comes(
    nats_server: EmbeddedServer, wallet_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "TICK_S", 0.1)
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        engine_on(nats_server.url, wallet_name) as started,
    ):
        await append(journal, penny("h", ttl_s=1))
        wallet = started.service.wallet
        await eventually(lambda: "h" in wallet.open)
        await eventually(lambda: "h" in wallet.provisional)
        await eventually(lambda: not started.service._decided)
        found = await audited(journal)
        (lapsing,) = (entry for entry in found.entries.values() if entry.lapsed)
        assert lapsing.out == []
        assert wallet.meters()["jev", None, "total"] == (CENT, 0, 0, 0)


async def test_a_hold_that_fell_due_while_no_engine_ran_lapses_soon_after_one_starts(
    nats_server: EmbeddedServer, wallet_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream's newest message is old by then: its stamp says nothing about what time it is now."""
    monkeypatch.setattr(service, "TICK_S", 0.1)
    async with wallet_on(nats_server.url, wallet_name) as journal:
        await append(journal, penny("h", ttl_s=6))
        async with engine_on(nats_server.url, wallet_name) as started:
            await eventually(lambda: "h" in started.service.wallet.open)
        newest = (await record_of(journal))[-1].ts
        await eventually(lambda: past(journal, newest + 6 * SECOND))
        began = time.monotonic()
        async with engine_on(nats_server.url, wallet_name) as started:
            await eventually(lambda: "h" in started.service.wallet.provisional)
        assert time.monotonic() - began < 5, "it did not count from the newest message on"


async def test_a_freeze_with_an_end_ends_by_itself(
    nats_server: EmbeddedServer, wallet_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "TICK_S", 0.1)
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        engine_on(nats_server.url, wallet_name) as started,
    ):
        until = await journal.now() + SECOND
        await append(journal, Freeze("f", "all", "incident", until=until))
        refused = await append(journal, penny("h"))
        wallet = started.service.wallet
        await eventually(lambda: wallet.upto >= refused and not wallet.frozen)
        assert wallet.at >= until
        granted = await append(journal, penny("i"))
        await told_up_to(started, granted)
        found = await audited(journal)
        assert isinstance(found.entries[refused].out[0], Frozen)
        assert isinstance(found.entries[granted].out[0], Held)


async def test_an_engine_started_again_has_the_same_wallet_to_the_byte(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    plan = Plan({"jev": rig.JEV, "each": Budget("usd", DOLLAR, per="total", each="user")})
    async with wallet_on(nats_server.url, wallet_name, plan=plan) as journal:
        async with engine_on(nats_server.url, wallet_name) as started:
            for number in range(30):
                one = penny(f"h{number}", number * CENT)
                labelled = msgspec.structs.replace(one, labels={"user": f"u{number % 3}"})
                last = await append(journal, labelled, Settle(f"h{number // 2}", {"usd": number * CENT // 3}))
            await told_up_to(started, last)
            first = started.service.wallet.dump()
        async with engine_on(nats_server.url, wallet_name) as started:
            assert started.service.wallet.dump() == first
        assert (await audited(journal)).wallet.dump() == first


async def test_h2_nothing_is_told_before_the_replay_is_complete(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with wallet_on(nats_server.url, wallet_name) as journal, inbox_of(journal) as inbox:
        for number in range(3):
            await inbox.ask(penny(f"h{number}"), token=str(number))
        async with engine_on(nats_server.url, wallet_name):
            await eventually(lambda: len(inbox.answered) == 3)
        async with engine_on(nats_server.url, wallet_name) as again:
            last = await inbox.ask(penny("i"))
            await eventually(lambda: last in inbox.answered)
            assert again.service.ready.is_set()
        found = await audited(journal)
        assert [told.n for told in found.tolds] == [4, 1]
        assert sum(len(reply.answers) for reply in inbox.replies) == 4, "what was told before is not said again"


async def test_a_long_backlog_is_told_to_its_end(nats_server: EmbeddedServer, wallet_name: str) -> None:
    """What waits to be told must not stop the reading: the told that shortens it comes through the same reading."""
    async with wallet_on(nats_server.url, wallet_name) as journal:
        async with engine_on(nats_server.url, wallet_name) as started:
            await asyncio.gather(*(append(journal) for _ in range(1_000)))
            await told_up_to(started, 1_001)
        assert len((await audited(journal)).entries) == 1_001


async def test_before_the_first_plan_everything_is_invalid_and_then_it_is_not(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with Journal.connect(nats_server.url, wallet=wallet_name) as journal:
        await journal.ensure_stream()
        async with engine_on(nats_server.url, wallet_name) as started:
            early = await append(journal, penny("h"))
            await append(journal, ApplyPlan("first", Plan({"jev": rig.JEV}), ""))
            after = await append(journal, penny("h"))
            await told_up_to(started, after)
        found = await audited(journal)
        assert found.entries[early].out == [Invalid("h", "plan", "no_plan: this wallet has no plan yet")]
        assert isinstance(found.entries[after].out[0], Held)


async def test_an_engine_of_a_wallet_without_a_stream_waits_for_its_operator(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with (
        engine_on(nats_server.url, wallet_name, ready=False) as started,
        wallet_on(nats_server.url, wallet_name) as journal,
    ):
        await told_up_to(started, 1)
        assert len((await audited(journal)).tolds) == 1


async def test_an_engine_of_a_stream_with_drifted_settings_says_so(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with Journal.connect(nats_server.url, wallet=wallet_name) as journal:
        await rig.make_stream(journal, discard="old")
        async with engine_on(nats_server.url, wallet_name, ready=False) as started:
            assert isinstance(await started.end(), Misconfigured)


async def test_a_told_that_somebody_forged_stops_the_engine(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        engine_on(nats_server.url, wallet_name) as started,
    ):
        await told_up_to(started, 1)
        record = await record_of(journal)
        await journal.append("told", record[-1].data, wait_s=rig.WITHIN_S)
        assert isinstance(await started.end(), Untrusted)


async def test_an_engine_says_that_it_is_ready_and_how_far_it_is(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        engine_on(nats_server.url, wallet_name) as started,
    ):
        await told_up_to(started, 1)
        answer = await journal.client.request(journal.names.subject("ready"), timeout=rig.WITHIN_S)
        assert json.loads(answer.data) == {
            "ready": True,
            "upto": 1,
            "told": 2,
            "engine": started.service.instance,
        }


async def test_m14_a_full_stream_holds_up_the_tolds_and_loses_nothing(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        engine_on(nats_server.url, wallet_name) as started,
        inbox_of(journal) as inbox,
    ):
        await told_up_to(started, 1)
        state = await journal.check_stream()
        seq = await inbox.ask(penny("h"))
        await eventually(lambda: seq in inbox.answered)
        grown = (await journal.check_stream()).bytes - state.bytes
        told = msgspec.json.encode(AskMessage(asks=[penny("i")]))
        await rig.change_stream(journal, max_bytes=state.bytes + grown + len(told) + 200)
        last = await inbox.ask(penny("i"))
        await eventually(lambda: started.service.wallet.upto == last)
        assert last not in inbox.answered
        await rig.change_stream(journal, max_bytes=-1)
        await eventually(lambda: last in inbox.answered)
        assert (await audited(journal)).count(Held) == 2


async def told_once(journal: Journal) -> bool:
    return await journal.last_seq() == 2


async def test_the_process_ends_with_exit_code_4_when_the_stream_cannot_be_trusted(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        engine_process(nats_server.url, wallet_name) as process,
    ):
        await eventually(lambda: told_once(journal))
        await rig.remove_stream(journal)
        await journal.ensure_stream()
        assert await process.wait() == 4
        (said,) = process.events("stream_not_trusted")
        assert "are lost" in said["why"] or "was replaced" in said["why"]  # what came again may have come already
        assert nats_server.url.split("@")[0] not in json.dumps(process.said)


async def test_the_process_ends_cleanly_when_it_is_told_to(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with wallet_on(nats_server.url, wallet_name), engine_process(nats_server.url, wallet_name) as process:
        process.signal(signal.SIGTERM)
        assert await process.wait() == 0


@pytest.mark.parametrize(
    ("environment", "code"),
    [
        ({"PURSE_PATIENCE_MS": "soon"}, 2),
        ({"PURSE_NATS_URL": "nats://127.0.0.1:1"}, 1),
    ],
)
async def test_a_process_that_cannot_start_says_why_in_one_line(environment: dict[str, str], code: int) -> None:
    async with rig.process_of(["-m", "engine"], **environment) as process:
        assert await process.wait() == code
        assert [said["level"] for said in process.said if said["event"] != "nats_error"] == ["error"]
