"""What a client was handed and cannot send is on its disk, and from there on the stream: once, whatever dies."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
import structlog
from integration.rig import (
    CENT,
    Audit,
    Process,
    audited,
    change_stream,
    engine_on,
    eventually,
    process_of,
    record_of,
    wallet_on,
)
from integration.wire import Wire, acknowledgements, nothing

from engine import asking, spool_file
from engine.client import Purse
from engine.core.messages import Again, AskMessage, Held, Hold, Observe, Option, Settle, Settled
from engine.core.plan import Budget, Plan
from engine.core.tell import read
from engine.embedded import EmbeddedServer
from engine.errors import Misconfigured, NoAnswer, NotKept, StreamRefused
from engine.journal import Journal

HANDS_OVER = """
import asyncio, os, resource, signal
from pathlib import Path
from engine.client import Purse
from engine.errors import NoAnswer, NotKept
from engine.process import configure_logs

configure_logs({})
COUNT, CENT, LIMIT = int(os.environ["COUNT"]), "0.0001", os.environ.get("FILE_BYTES_MAX")

async def settle(purse, number):
    try:
        await purse.settle(f"h{number}", {"usd": CENT}, wait_s=2)
    except NotKept as error:
        return f"not kept: {error}"
    except NoAnswer as error:
        return "kept" if error.kept else "lost"
    return "told"

async def main():
    go = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, go.set)
    async with Purse.connect(
        os.environ["PURSE_NATS_URL"], wallet=os.environ["PURSE_WALLET"], data=Path(os.environ["PURSE_DATA"])
    ) as purse:
        if LIMIT:
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(LIMIT), resource.RLIM_INFINITY))
        held = await asyncio.gather(*(purse.hold({"usd": CENT}, id=f"h{n}", wait_s=20) for n in range(COUNT)))
        print(len(held), flush=True)
        await go.wait()
        said = await asyncio.gather(*(settle(purse, number) for number in range(COUNT)))
        print(*sorted(set(said)), sep="; ", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@asynccontextmanager
async def wallet_with_engine(server: EmbeddedServer, wallet: str) -> AsyncIterator[Journal]:
    async with wallet_on(server.url, wallet) as journal, engine_on(server.url, wallet):
        yield journal


def connect(server: EmbeddedServer, wallet: str, data: Path) -> AbstractAsyncContextManager[Purse]:
    return Purse.connect(server.url, wallet=wallet, data=data)


async def away(server: EmbeddedServer) -> None:
    server.kill()
    await server.wait()


async def back(server: EmbeddedServer, journal: Journal) -> None:
    """Started again, and found again by who looks at the record."""
    await server.start()
    await eventually(lambda: journal.client.is_connected)


def spools(data: Path, wallet: str) -> list[bytes]:
    """What lies in the spool's files."""
    return [path.read_bytes() for path in (data / "spool" / wallet).glob("*.spool")]


async def settles_on(journal: Journal) -> Counter[str]:
    """How often each hold was settled on the stream, from all that was ever asked there."""
    messages = [read(stored.data) for stored in await record_of(journal) if stored.kind != "told"]
    asks = [ask for message in messages if isinstance(message, AskMessage) for ask in message.asks]
    return Counter(ask.hold for ask in asks if isinstance(ask, Settle))


async def told(journal: Journal) -> Audit:
    """The record, once everything on it is told."""
    found = await audited(journal)
    while found.untold:
        found = await eventually(lambda: audited(journal))
    return found


def used(found: Audit) -> tuple[int, int]:
    settled, held, _, _ = found.wallet.meters().get(("jev", None, "total"), (0, 0, 0, 0))
    return settled, held


async def handed_over(purse: Purse, hold: str, usd: str, *, wait_s: float = 0.3) -> bool:
    """Settle; whether the client says that it is kept."""
    with pytest.raises(NoAnswer) as unheard:
        await purse.settle(hold, {"usd": usd}, wait_s=wait_s)
    return unheard.value.kept


class Client:
    """A process that holds, waits for a word, and settles."""

    def __init__(self, process: Process) -> None:
        self.process = process

    async def said(self) -> str:
        output = self.process._process.stdout
        assert output is not None
        return (await asyncio.wait_for(output.readline(), 60)).decode().strip()

    async def go_on(self) -> str:
        """What its settles came to."""
        self.process.signal(signal.SIGUSR1)
        return await self.said()


@asynccontextmanager
async def client_process(
    server: EmbeddedServer, wallet: str, data: Path, *, count: int, **more: str
) -> AsyncIterator[Client]:
    environment = {
        "PURSE_NATS_URL": server.url, "PURSE_WALLET": wallet, "PURSE_DATA": str(data), "COUNT": str(count),
    } | more  # fmt: skip
    async with process_of(["-c", HANDS_OVER], **environment) as process:
        client = Client(process)
        assert await client.said() == str(count)
        yield client


# --- the stream is away -----------------------------------------------------------------------------------------------


async def test_b22_h4_a_settle_the_stream_cannot_take_is_on_disk_before_its_caller_hears_so(
    own_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    async with wallet_with_engine(own_server, wallet_name) as journal:
        async with connect(own_server, wallet_name, tmp_path) as purse:
            assert isinstance(await purse.hold({"usd": "0.01"}, id="h", wait_s=20), Held)
            await away(own_server)
            assert await handed_over(purse, "h", "0.004")
            assert purse.spool_depth == 1
            (written,) = spools(tmp_path, wallet_name)
            assert b'{"ask":"settle","hold":"h","amounts":{"usd":4000000}}' in written
            await back(own_server, journal)
            await eventually(lambda: purse.spool_depth == 0)
            assert spools(tmp_path, wallet_name) == [b""]
        assert spools(tmp_path, wallet_name) == []
        found = await told(journal)
        assert used(found) == (4 * CENT // 10, 0)
        assert await settles_on(journal) == {"h": 1}


async def test_nothing_is_written_to_disk_while_the_stream_takes_it(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    async with (
        wallet_with_engine(nats_server, wallet_name),
        connect(nats_server, wallet_name, tmp_path) as purse,
    ):
        for number in range(50):
            await purse.hold({"usd": "0.01"}, id=f"h{number}", wait_s=20)
            await purse.settle(f"h{number}", {"usd": "0.001"}, wait_s=20)
        assert spools(tmp_path, wallet_name) == [b""]


async def test_h1_h3_settles_of_a_client_killed_while_the_stream_is_away_all_land_once(
    own_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    """3,000 of them: more than one message, or anybody's row limit, takes."""
    count = 3_000
    async with wallet_with_engine(own_server, wallet_name) as journal:
        async with client_process(own_server, wallet_name, tmp_path, count=count) as client:
            await away(own_server)
            assert await client.go_on() == "kept"
            client.process.signal(signal.SIGKILL)
            await client.process.wait()
        await back(own_server, journal)
        async with connect(own_server, wallet_name, tmp_path) as purse:
            await eventually(lambda: purse.spool_depth == 0)
        found = await told(journal)
        assert found.count(Settled) == count
        assert used(found) == (count * CENT // 100, 0)
        assert await settles_on(journal) == {f"h{number}": 1 for number in range(count)}
        assert spools(tmp_path, wallet_name) == []


async def test_h1_a_client_that_closes_while_the_stream_is_away_says_how_much_it_leaves_on_disk(
    own_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    async with wallet_with_engine(own_server, wallet_name) as journal:
        async with connect(own_server, wallet_name, tmp_path) as purse:
            for number in range(3):
                assert isinstance(await purse.hold({"usd": "0.01"}, id=f"h{number}", wait_s=20), Held)
            await away(own_server)
            settling = [asyncio.create_task(purse.settle(f"h{number}", {"usd": "0.004"})) for number in range(3)]
            await asyncio.sleep(0)
            with structlog.testing.capture_logs() as logs:
                await purse._asker.close(5)
        said = await asyncio.gather(*settling, return_exceptions=True)
        assert [isinstance(error, NoAnswer) and error.kept for error in said] == [True] * 3
        assert [line for line in logs if line["event"] == "settlements_spooled"] == [
            {"event": "settlements_spooled", "log_level": "warning", "count": 3}
        ]
        await back(own_server, journal)
        async with connect(own_server, wallet_name, tmp_path) as purse:
            await eventually(lambda: purse.spool_depth == 0)
        assert await settles_on(journal) == {"h0": 1, "h1": 1, "h2": 1}
        assert used(await told(journal)) == (12 * CENT // 10, 0)


async def test_b18_b19_a_call_whose_settle_finds_no_stream_is_charged_at_its_cost_and_never_released(
    own_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    async with (
        wallet_with_engine(own_server, wallet_name) as journal,
        connect(own_server, wallet_name, tmp_path) as purse,
    ):
        with pytest.raises(ZeroDivisionError):
            await call_and_fail(purse, own_server)
        assert purse.spool_depth == 1
        await back(own_server, journal)
        await eventually(lambda: purse.spool_depth == 0)
        assert used(await told(journal)) == (4 * CENT // 10, 0)


async def call_and_fail(purse: Purse, server: EmbeddedServer) -> None:
    """The call is billed, then the stream goes, then the block breaks."""
    async with purse.holding({"usd": "0.01"}, wait_s=2) as call:
        call.cost(usd="0.004")
        await away(server)
        raise ZeroDivisionError


async def test_a_give_up_and_a_figure_are_kept_as_a_settle_is(
    own_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    plan = Plan({"jev": Budget("usd", 100 * CENT, per="total", source="acme")})
    async with wallet_on(own_server.url, wallet_name, plan=plan) as journal:
        async with connect(own_server, wallet_name, tmp_path) as purse:
            asked = asyncio.create_task(purse.hold({"usd": "0.01"}, id="h", wait_s=20))
            await eventually(lambda: two_messages(journal))
            await away(own_server)
            asked.cancel()
            with pytest.raises(NoAnswer):
                await purse.observe(Observe("o", "jev", "total", 5 * CENT, 1, "acme"), wait_s=0.2)
            await eventually(lambda: purse.spool_depth == 2)
        await back(own_server, journal)
        async with engine_on(own_server.url, wallet_name), connect(own_server, wallet_name, tmp_path) as purse:
            await eventually(lambda: purse.spool_depth == 0)
            found = await told(journal)
        assert found.wallet.meters()["jev", None, "total"] == (0, 0, 5 * CENT, 5 * CENT)


async def two_messages(journal: Journal) -> bool:
    return await journal.last_seq() >= 2


async def test_b7_of_a_list_its_settles_are_kept_and_its_holds_are_not(
    own_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    async with wallet_with_engine(own_server, wallet_name) as journal:
        async with connect(own_server, wallet_name, tmp_path) as purse:
            assert isinstance(await purse.hold({"usd": "0.01"}, id="old", wait_s=20), Held)
            await away(own_server)
            new = Hold("new", [Option({"usd": CENT})], by=purse.by(0.3))
            with pytest.raises(NoAnswer) as unheard:
                await purse.ask_all([new, Settle("old", {"usd": CENT // 2})], wait_s=0.3)
            assert unheard.value.kept
            (written,) = spools(tmp_path, wallet_name)
            assert b'"old"' in written
            assert b'"new"' not in written
        await back(own_server, journal)
        async with connect(own_server, wallet_name, tmp_path) as purse:
            await eventually(lambda: purse.spool_depth == 0)
        found = await told(journal)
        assert used(found) == (CENT // 2, 0)


async def test_two_clients_on_one_folder_leave_each_others_settles_alone(
    own_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    async with (
        wallet_with_engine(own_server, wallet_name) as journal,
        connect(own_server, wallet_name, tmp_path) as first,
        connect(own_server, wallet_name, tmp_path) as second,
    ):
        for purse, hold in ((first, "a"), (second, "b")):
            assert isinstance(await purse.hold({"usd": "0.01"}, id=hold, wait_s=20), Held)
        await away(own_server)
        assert await handed_over(first, "a", "0.001")
        assert await handed_over(second, "b", "0.002")
        assert (first.spool_depth, second.spool_depth) == (1, 1)
        await back(own_server, journal)
        await eventually(lambda: (first.spool_depth, second.spool_depth) == (0, 0))
        assert await settles_on(journal) == {"a": 1, "b": 1}


async def test_a_settle_stored_without_a_word_goes_to_disk_and_is_on_the_stream_once(
    nats_server: EmbeddedServer, wallet_name: str, wire: Wire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "SPOOL_AFTER_S", 0.1)
    monkeypatch.setattr(asking, "APPEND_WAIT_S", 0.5)
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        Purse.connect(wire.url, wallet=wallet_name, data=tmp_path) as purse,
    ):
        wire.lose = acknowledgements
        settling = asyncio.create_task(purse.settle("h", {"usd": "0.004"}, wait_s=0.4))
        await eventually(lambda: purse.spool_depth == 1)
        assert not settling.done()
        with pytest.raises(NoAnswer) as unheard:
            await settling
        assert unheard.value.kept
        wire.lose = nothing
        await eventually(lambda: purse.spool_depth == 0)
        assert await settles_on(journal) == {"h": 1}


# --- a stream or a disk without room ----------------------------------------------------------------------------------


async def test_m14_settles_that_a_full_stream_refuses_are_kept_and_land_once_there_is_room(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    async with wallet_with_engine(nats_server, wallet_name) as journal:
        async with connect(nats_server, wallet_name, tmp_path) as purse:
            for number in range(20):
                assert isinstance(await purse.hold({"usd": "0.01"}, id=f"h{number}", wait_s=20), Held)
            await told(journal)
            await change_stream(journal, max_bytes=(await journal.check_stream()).bytes + 50)
            kept = await asyncio.gather(*(handed_over(purse, f"h{number}", "0.004") for number in range(20)))
            assert kept == [True] * 20
            assert purse.spool_depth == 20
            with pytest.raises(StreamRefused):
                await purse.hold({"usd": "0.01"}, wait_s=20)
            await change_stream(journal, max_bytes=-1)
            await eventually(lambda: purse.spool_depth == 0)
        assert used(await told(journal)) == (20 * 4 * CENT // 10, 0)
        assert await settles_on(journal) == {f"h{number}": 1 for number in range(20)}


async def test_a_folder_in_which_nothing_can_be_kept_is_an_error_at_the_start(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    (tmp_path / "spool").write_text("a file where the folder should be")
    with pytest.raises(Misconfigured, match=f"settlements cannot be kept in {tmp_path}/spool.*PURSE_DATA"):
        async with connect(nats_server, wallet_name, tmp_path):
            pytest.fail("it began")


async def test_a_settle_that_neither_the_stream_nor_the_disk_takes_is_an_error_to_its_caller(
    own_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    """A process that may write no file larger than 4,096 bytes stands for a disk that is full."""
    async with (
        wallet_with_engine(own_server, wallet_name) as journal,
        client_process(own_server, wallet_name, tmp_path, count=200, FILE_BYTES_MAX="4096") as client,
    ):
        await away(own_server)
        said = await client.go_on()
        assert said.startswith("not kept: the stream did not take it in time, nor did the spool: the disk")
        assert said.endswith("send it again")
        await back(own_server, journal)
        await eventually(lambda: all_settled(journal, 200))  # it was tried on all the same


async def all_settled(journal: Journal, count: int) -> bool:
    return (await audited(journal)).count(Settled) == count


async def test_a_full_spool_says_so_and_takes_more_once_there_is_room(
    own_server: EmbeddedServer, wallet_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool_file, "ASKS_MAX", 2)
    async with (
        wallet_with_engine(own_server, wallet_name) as journal,
        connect(own_server, wallet_name, tmp_path) as purse,
    ):
        for number in range(4):
            assert isinstance(await purse.hold({"usd": "0.01"}, id=f"h{number}", wait_s=20), Held)
        await away(own_server)
        assert await handed_over(purse, "h0", "0.001")
        assert await handed_over(purse, "h1", "0.001")
        with pytest.raises(NotKept, match=r"nor did the spool: the spool is full \(2 asks\); send it again"):
            await purse.settle("h2", {"usd": "0.001"}, wait_s=0.3)
        await back(own_server, journal)
        await eventually(lambda: purse.spool_depth == 0)
        await away(own_server)
        assert await handed_over(purse, "h3", "0.001")
        await back(own_server, journal)
        await eventually(lambda: all_settled(journal, 4))


# --- everything at once -----------------------------------------------------------------------------------------------


async def test_h1_calls_through_a_server_that_dies_again_and_again_are_each_charged_once(
    own_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    async with wallet_with_engine(own_server, wallet_name) as journal:
        async with connect(own_server, wallet_name, tmp_path) as purse:
            gate = asyncio.Semaphore(10)
            calls: list[asyncio.Task[bool]] = []

            def begin(count: int) -> None:
                first = len(calls)
                calls.extend(asyncio.create_task(one_call(purse, first + number, gate)) for number in range(count))

            for number in range(3):
                begin(20)
                await eventually(lambda least=40 * number + 5: done(calls) >= least)
                refused_before = refused(calls)
                await (away(own_server) if number % 2 else own_server.stop())
                begin(20)
                await eventually(lambda most=refused_before: refused(calls) > most)  # nobody answers
                await back(own_server, journal)
            ended = await asyncio.gather(*calls)
            await eventually(lambda: purse.spool_depth == 0)
        assert spools(tmp_path, wallet_name) == []
        await eventually(lambda: nothing_held(journal))
        found = await told(journal)
        assert used(found) == (sum(ended) * CENT // 10, 0)
        assert 0 < sum(ended) < len(ended) == 120
        assert found.wallet.open == {}
        assert found.count(Settled) >= sum(ended)


def done(calls: list[asyncio.Task[bool]]) -> int:
    return sum(call.done() for call in calls)


def refused(calls: list[asyncio.Task[bool]]) -> int:
    return sum(call.done() and not call.result() for call in calls)


async def one_call(purse: Purse, number: int, gate: asyncio.Semaphore) -> bool:
    """Whether the call was made, and so costs a tenth of a cent."""
    async with gate:
        try:
            outcome = await purse.hold({"usd": "0.01"}, id=f"h{number}", wait_s=0.5)
        except (NoAnswer, StreamRefused):
            return False
        kept = isinstance(outcome, Held) and await settled_or_kept(purse, f"h{number}")
        assert kept == isinstance(outcome, Held)
        return kept


async def settled_or_kept(purse: Purse, hold: str) -> bool:
    try:
        return isinstance(await purse.settle(hold, {"usd": "0.001"}, wait_s=0.5), Settled | Again)
    except NoAnswer as unheard:
        return unheard.kept


async def nothing_held(journal: Journal) -> bool:
    return used(await audited(journal))[1] == 0
