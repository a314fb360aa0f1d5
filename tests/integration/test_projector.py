"""The projector on the real server: what it shows is what the engine holds, whatever happened to it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from integration import rig
from integration.rig import (
    CENT,
    DOLLAR,
    SECOND,
    Started,
    append_raw,
    audited,
    engine_on,
    eventually,
    process_of,
    projector_on,
    wallet_on,
)
from integration.wire import Wire
from nats.js.errors import NoKeysError

from engine.client import Purse
from engine.core.documents import DayTotals, Detail, Status, WalletDay
from engine.core.messages import Adjust, Again, Freeze, Held, Observe, Option, Settled
from engine.core.plan import Budget, Plan
from engine.embedded import EmbeddedServer
from engine.errors import NoAnswer, Untrusted
from engine.journal import Journal
from engine.service import Engine
from engine.snapshots import Snapshots
from projector.days.bucket import documents as documents_of
from projector.days.bucket import is_totals
from projector.service import Projector

PLAN = Plan(
    {
        "jev": Budget("usd", DOLLAR, per="total"),
        "day": Budget("usd", DOLLAR, source="cloudflare", public="amounts", note="wait", link="https://example.org"),
        "user": Budget("usd", DOLLAR, per="total", each="user"),
        "odd.name": Budget("usd", DOLLAR, per="hour", zone="Asia/Kolkata"),
    }
)


class Show:
    """A wallet with an engine, a projector and a client."""

    def __init__(self, engine: Started[Engine], projector: Started[Projector], purse: Purse, journal: Journal) -> None:
        self.engine, self.projector, self.purse, self.journal = engine.service, projector.service, purse, journal

    async def caught_up(self) -> Status:
        """The status once it shows all that the engine has decided."""

        async def shown() -> Status | None:
            status = await self.purse.status()
            wallet = self.engine.wallet
            return status if status is not None and status.seq == wallet.upto and not self.engine._decided else None

        return await eventually(shown)

    async def trade(self, name: str) -> None:
        """A bit of everything."""
        purse = self.purse
        for number in range(6):
            id = f"{name}-{number}"
            assert isinstance(await purse.hold({"usd": "0.02"}, id=id, labels={"user": f"u{number % 2}"}), Held)
        await purse.settle(f"{name}-0", {"usd": "0.01"})
        await purse.settle(f"{name}-1", {"usd": "0.03"})
        await purse.settle(f"{name}-2", {"usd": "0.005"}, final=False)
        await purse.release(f"{name}-3")
        await purse.settle(f"{name}-stray", {"usd": "0.001"})
        await purse.hold({"usd": "5"}, id=f"{name}-never")
        today = (await self.caught_up()).budgets[1].period
        await purse.observe(Observe(f"{name}-o", "day", today, 20 * CENT, purse.now() - SECOND, "cloudflare"))
        await purse.adjust(Adjust(f"{name}-a", "jev", "total", -CENT // 10, "a gift"))


@asynccontextmanager
async def showing(server: EmbeddedServer, wallet: str) -> AsyncIterator[Show]:
    async with AsyncExitStack() as stack:
        journal = await stack.enter_async_context(wallet_on(server.url, wallet, plan=PLAN))
        engine = await stack.enter_async_context(engine_on(server.url, wallet))
        projector = await stack.enter_async_context(projector_on(server.url, wallet))
        purse = await stack.enter_async_context(Purse.connect(server.url, wallet=wallet))
        yield Show(engine, projector, purse, journal)


async def documents(journal: Journal) -> dict[str, bytes]:
    """What stands in the bucket."""
    bucket = await journal.client.jetstream().key_value(f"PURSE_{journal.names.wallet}_days")
    try:
        return {key: (await bucket.get(key)).value or b"" for key in await bucket.keys()}
    except NoKeysError:
        return {}


async def written(show: Show) -> dict[str, bytes]:
    """The documents, once all that the projector has folded is written."""

    async def all_of_them() -> dict[str, bytes] | None:
        expected = documents_of(show.projector.projection)
        return expected if await documents(show.journal) == expected else None

    return await eventually(all_of_them)


async def test_the_status_shows_the_engines_meters(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with showing(nats_server, wallet_name) as show:
        await show.trade("a")
        status = await show.caught_up()
        meters = show.engine.wallet.meters()
        assert [one.name for one in status.budgets] == ["jev", "day", "odd.name"]
        for one in status.budgets:
            assert (one.settled, one.held, one.extra) == meters[one.name, None, one.period][:3]
            assert (one.unit, one.scale, one.limit) == ("usd", 9, DOLLAR)
            assert one.start <= status.as_of < one.resets_at
        assert status.open_holds == len(show.engine.wallet.open) == 3
        assert status.plan == show.engine.wallet.plan_digest
        day = status.budgets[1]
        assert day.observed is not None
        assert (day.observed.figure, day.source, day.public, day.note) == (20 * CENT, "cloudflare", "amounts", "wait")
        assert day.used >= 20 * CENT


async def test_every_period_has_a_document_that_says_how_far_it_is_folded(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with showing(nats_server, wallet_name) as show:
        await show.trade("a")
        status = await show.caught_up()
        everything = await written(show)
        kept = {key: msgspec.json.decode(raw, type=DayTotals) for key, raw in everything.items() if is_totals(key)}
        assert "jev.total" in kept
        total = kept["jev.total"]
        assert total.seq == status.seq
        assert (total.settled, total.held) == (status.budgets[0].settled, status.budgets[0].held)
        assert (total.holds, total.settles, total.strays, total.overruns) == (6, 4, 1, 1)
        assert total.refused == {"never": 1}
        assert len(kept) == 4
        details = {key: msgspec.json.decode(raw, type=Detail) for key, raw in everything.items() if "detail" in key}
        assert {key.removesuffix(".detail") for key in details} == kept.keys()
        by_user = next(one for one in details["jev.total.detail"].breakdowns if one.label == "user")
        assert {one.value: one.holds for one in by_user.top} == {"u0": 3, "u1": 3, None: 0}


async def test_a_projector_that_was_killed_writes_the_same_documents_again(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    environment = {"PURSE_NATS_URL": nats_server.url, "PURSE_WALLET": wallet_name}
    async with showing(nats_server, wallet_name) as show:
        async with process_of(["-m", "projector"], **environment) as process:
            await process.until("caught_up")
            await show.trade("a")
            process.signal(signal.SIGKILL)
        await show.trade("b")
        await show.caught_up()
        before, status = await written(show), await show.purse.status()
        await forget_documents(show.journal)
        async with process_of(["-m", "projector"], **environment) as process:
            await process.until("caught_up")

            async def same() -> bool:
                return await documents(show.journal) == before

            await eventually(same)
            process.signal(signal.SIGTERM)
            assert await process.wait() == 0
        assert status is not None
        async with projector_on(nats_server.url, wallet_name) as third:
            shown = third.service.projection.status(status.as_of)
            assert msgspec.structs.replace(shown, as_of=status.as_of) == status


async def forget_documents(journal: Journal) -> None:
    """Somebody emptied the bucket."""
    bucket = f"KV_PURSE_{journal.names.wallet}_days"
    gone = await journal.api(f"STREAM.PURGE.{bucket}", {}, rig.Made)
    assert gone.error is None


async def test_changes_are_pushed_and_otherwise_a_heartbeat(
    nats_server: EmbeddedServer, wallet_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("projector.service.PUSH_S", 0.05)
    monkeypatch.setattr("projector.service.HEARTBEAT_S", 0.2)
    async with showing(nats_server, wallet_name) as show:
        await show.caught_up()
        statuses = show.purse.follow_status()
        first = await asyncio.wait_for(anext(statuses), rig.WITHIN_S)
        held = asyncio.create_task(show.purse.hold({"usd": "0.02"}, labels={"user": "ann"}))
        async for status in statuses:
            if status.seq > first.seq:
                break
        await held
        assert status.budgets[0].held == 2 * CENT
        again = [await asyncio.wait_for(anext(statuses), rig.WITHIN_S) for _ in range(2)]
        assert [one.seq for one in again] == [status.seq, status.seq], "still alive, nothing new"
        assert again[1].as_of - again[0].as_of >= SECOND // 10
        await statuses.aclose()


async def test_one_calls_life_can_be_read(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with showing(nats_server, wallet_name) as show:
        await show.trade("a")
        await show.caught_up()
        open_, closed = await show.purse.life("a-5"), await show.purse.life("a-1")
        stray, refused = await show.purse.life("a-stray"), await show.purse.life("a-never")
        assert open_ is not None
        assert (open_.state, open_.amounts, open_.charged) == ("open", {"usd": 2 * CENT}, {"usd": 0})
        assert open_.periods["jev"] == "total"
        assert closed is not None
        assert (closed.state, closed.charged) == ("settled", {"usd": 3 * CENT})
        assert stray is not None
        assert stray.state == "stray"
        assert refused is None
        for unknown in ("nobody", "", "\U0001f600", "x" * 5000):
            assert await show.purse.life(unknown) is None


async def test_the_plan_and_the_days_can_be_read(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with showing(nats_server, wallet_name) as show:
        await show.trade("a")
        status = await show.caught_up()
        assert await show.purse.plan() == PLAN
        days = msgspec.json.decode(await show.purse.read("days"), type=list[DayTotals])
        assert {(day.budget, day.period) for day in days} >= {(one.name, one.period) for one in status.budgets}
        assert [day.start for day in days] == sorted((day.start for day in days), reverse=True)
        today = status.budgets[1].period
        one = await day_of(show, today)
        assert ("day", today) in {(day.budget, day.period) for day in one}
        assert all(day.period.startswith(today) for day in one)
        assert await day_of(show, "1999-01-01") == []


async def day_of(show: Show, day: str) -> list[DayTotals]:
    answer = await show.purse.read("details", day.encode())
    totals, _, details = msgspec.json.decode(answer, type=tuple[list[DayTotals], WalletDay | None, list[Detail]])
    assert {(one.budget, one.period) for one in details} == {
        (one.budget, one.period) for one in totals if one.period == day
    }
    return totals


async def test_nothing_is_answered_before_it_has_caught_up(
    nats_server: EmbeddedServer, wallet_name: str, wire: Wire
) -> None:
    wire.lose = lambda subject, _: subject == f"purse.{wallet_name}.admin"  # it never hears of the plan
    async with (
        wallet_on(nats_server.url, wallet_name, plan=PLAN) as journal,
        projector_on(wire.url, wallet_name, ready=False),
    ):
        await eventually(lambda: wire.lost)
        for word in ("status", "plan", "days", "life"):
            with pytest.raises(NoAnswer, match="TimeoutError"):
                await journal.request(journal.names.subject(f"read.{word}"), wait_s=0.2)


async def test_time_goes_on_in_what_it_shows_although_the_newest_message_is_old(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with wallet_on(nats_server.url, wallet_name, plan=PLAN) as journal:
        async with engine_on(nats_server.url, wallet_name) as started:
            await eventually(lambda: started.service.told_seq)
        newest = await journal.now()
        await eventually(lambda: later(journal, newest + SECOND))
        async with (
            projector_on(nats_server.url, wallet_name),
            Purse.connect(nats_server.url, wallet=wallet_name) as purse,
        ):
            status = await purse.status()
            assert status is not None
            assert abs(status.as_of - await journal.now()) < SECOND // 2


async def later(journal: Journal, moment: int) -> bool:
    return await journal.now() >= moment


async def test_a_record_that_was_changed_is_not_shown(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with Journal.connect(nats_server.url, wallet=wallet_name) as journal, AsyncExitStack() as stack:
        await journal.ensure_stream()
        await append_raw(journal, b'{"asks":[]}')
        forged = b'{"v":1,"engine":"e","upto":1,"n":1,"told":[{"seq":1,"at":1}],"chain":"' + b"0" * 64 + b'"}'
        await journal.append("told", forged, wait_s=rig.WITHIN_S)
        started = await stack.enter_async_context(projector_on(nats_server.url, wallet_name))
        error = await started.end()
        assert isinstance(error, Untrusted)
        assert "chain is broken at sequence 2" in str(error)


async def test_two_projectors_do_no_harm(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with showing(nats_server, wallet_name) as show, projector_on(nats_server.url, wallet_name) as second:
        await show.trade("a")
        status = await show.caught_up()
        await eventually(lambda: second.service.projection.wallet.upto >= status.seq)
        await written(show)
        assert second.service.projection.totals == show.projector.projection.totals


async def test_m17_started_from_a_snapshot_it_shows_what_it_shows_without_one(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    async with showing(nats_server, wallet_name) as show:
        async with projector_on(nats_server.url, wallet_name, data=tmp_path) as first:
            await show.trade("a")
            await follows(show, first)
        async with projector_on(nats_server.url, wallet_name, data=tmp_path) as second:
            heard = second.service.projection.wallet.upto
            await show.trade("b")
            await follows(show, second)
            assert second.service.projection.totals == show.projector.projection.totals
            ids = [f"{name}-{number}" for name in "ab" for number in (*range(6), "stray", "never")]
            lives = [second.service.projection.life(id) for id in ids]
            assert lives == [show.projector.projection.life(id) for id in ids]
        assert heard
        assert len(list((tmp_path / "snapshots" / wallet_name / "projector").iterdir())) >= 2


async def follows(show: Show, started: Started[Projector]) -> None:
    status = await show.caught_up()
    await eventually(lambda: started.service.projection.wallet.upto >= status.seq)


async def test_m13_a_snapshot_the_stream_contradicts_ends_it(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    async with showing(nats_server, wallet_name) as show:
        async with projector_on(nats_server.url, wallet_name, data=tmp_path) as first:
            await show.trade("a")
            await follows(show, first)
        (newest,) = sorted((tmp_path / "snapshots" / wallet_name / "projector").iterdir())[-1:]
        other = Snapshots(tmp_path, wallet_name, of="projector")
        snapshot = other.newest()
        assert snapshot is not None
        newest.unlink()
        other.write(msgspec.structs.replace(snapshot, chain=bytes(32)))
        async with projector_on(nats_server.url, wallet_name, data=tmp_path, ready=False) as second:
            assert "bears another chain" in str(await second.end())


async def test_a_frozen_budget_is_shown_frozen_until_it_is_thawed(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with showing(nats_server, wallet_name) as show:
        await show.purse.ask(Freeze("f", "day", "incident", "ops"))
        (frost,) = (await show.caught_up()).frozen
        assert (frost.scope, frost.reason, frost.until) == ("day", "incident", None)
        assert isinstance((await show.purse.ask(Freeze("f", "day", "incident", "ops"))).outcome, Again)
        await show.purse.thaw("day")
        assert (await show.caught_up()).frozen == []


async def test_it_goes_on_after_the_server_was_restarted(own_server: EmbeddedServer, wallet_name: str) -> None:
    async with showing(own_server, wallet_name) as show:
        await show.purse.hold({"usd": "0.02"}, id="a", labels={"user": "ann"}, wait_s=20)
        await own_server.restart()
        await eventually(lambda: show.journal.client.is_connected)
        assert isinstance(await show.purse.settle("a", {"usd": "0.01"}, wait_s=20), Settled | Again)
        status = await eventually(lambda: settled(show))
        assert status.budgets[0].settled == CENT
        await written(show)
        assert (await audited(show.journal)).wallet.dump() == show.projector.projection.wallet.dump()


async def settled(show: Show) -> Status | None:
    status = await show.purse.status()
    return status if status is not None and status.budgets[0].settled else None


async def test_a_held_amount_is_shown_within_a_moment_of_its_answer(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with showing(nats_server, wallet_name) as show:
        options = [Option({"usd": CENT})]
        outcome = await show.purse.hold(options=options, id="a", labels={"user": "ann"})
        assert isinstance(outcome, Held)
        assert (await show.caught_up()).budgets[0].held == CENT
