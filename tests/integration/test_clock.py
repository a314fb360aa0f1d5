"""A server whose clock was ahead: the engine stops before it tells what bears those stamps, and how it goes on.

The clock of the real server is right. It is the engine's and the doctor's own that are ten minutes behind: to them the
stamps are ahead. Where the server's clock has been put right since, the doctor is told so.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import msgspec
import pytest
from integration import rig
from integration.rig import CENT, SECOND, append, audited, engine_on, eventually, record_of, wallet_on
from property import naive_time

import commonpurse.doctor
from commonpurse.doctor import Patient, Report, examine
from commonpurse.proof import prove
from engine import clock_check
from engine.clocks import Clocks
from engine.core.chain import GENESIS, link, seal
from engine.core.messages import AnyAsk, Clock, Done, Held, Hold, Option, Settle, Told
from engine.core.tell import read
from engine.embedded import EmbeddedServer
from engine.errors import Untrusted
from engine.journal import Journal
from engine.recorded import Recorded

BEHIND_S = 600


def behind() -> int:
    """What this machine's clock says where it is ten minutes behind."""
    return time.time_ns() - BEHIND_S * SECOND


def hold(id: str, *, ttl_s: int = 60) -> Hold:
    return Hold(id, [Option({"usd": 5 * CENT})], by=time.time_ns() + 60 * SECOND, ttl_s=ttl_s)


async def stopped(url: str, wallet: str, now: Callable[[], int] = behind) -> str:
    """Why an engine whose own clock is behind does not tell what waits."""
    async with engine_on(url, wallet, ready=False, now=now) as started:
        error = await started.end()
    assert isinstance(error, Untrusted)
    return str(error)


def put_right(monkeypatch: pytest.MonkeyPatch, now: Callable[[], int] = behind) -> None:
    """From now on the server's clock says what ours does; what it has stamped stays stamped."""

    async def told(journal: Journal) -> int:
        return now()

    monkeypatch.setattr(Journal, "now", told)


async def doctor(
    url: str, wallet: str, data: Path, *, skip_time: bool = True, now: Callable[[], int] = behind
) -> Report:
    patient = Patient(data=data, wallet=wallet, nats=url, now=now)
    return await examine(patient, skip_time=skip_time, by_whom="ops", reason="a dead battery")


def says(report: Report, check: str) -> str:
    return " ".join(finding.says for finding in report.findings if finding.check == check)


async def told_once(url: str, wallet: str, journal: Journal) -> None:
    """A hold that was told when all was well."""
    async with engine_on(url, wallet) as started:
        await rig.told_up_to(started, await append(journal, hold("before", ttl_s=1)))


async def waiting_on(journal: Journal) -> int:
    """Two messages nobody has told yet. The sequence of the first one."""
    first = await append(journal, hold("waiting"))
    await append(journal, Settle("waiting", {"usd": 2 * CENT}))
    return first


async def test_an_engine_stops_before_stamps_that_are_ahead_and_names_the_message_and_both_times(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with wallet_on(nats_server.url, wallet_name) as journal:
        last = await waiting_on(journal) + 1
        why = await stopped(nats_server.url, wallet_name)
        moment = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
        stop = rf"message 1 bears the stamp ({moment}), \d+ s ahead of this machine's clock, which says ({moment})"
        found = re.search(stop, why)
        assert found is not None, why
        assert found[1] > found[2]
        assert re.search(r"The server's clock is \+\d+ s off this machine's now: set the wrong one right", why), why
        assert await journal.last_seq() == last  # nothing was told


async def test_the_engine_process_ends_with_exit_code_4_where_the_clocks_differ(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    lying = "import time\ntrue = time.time_ns\ntime.time_ns = lambda: true() - 600_000_000_000\n"
    (tmp_path / "sitecustomize.py").write_text(lying, encoding="utf-8")
    environment = {
        "PURSE_NATS_URL": nats_server.url,
        "PURSE_WALLET": wallet_name,
        "PYTHONPATH": f"{tmp_path}:{rig.REPOSITORY}",
    }
    async with (
        wallet_on(nats_server.url, wallet_name),
        rig.process_of(["-m", "engine"], **environment) as process,
    ):
        assert await process.wait() == 4
        assert "ahead of this machine's clock" in process.events("stream_not_trusted")[0]["why"]


async def test_once_the_clock_is_right_skipped_time_lets_the_wallet_go_on_and_nothing_lapses_by_those_stamps(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = nats_server.url
    monkeypatch.setattr(clock_check, "CLOCK_AHEAD_S_MAX", 1)
    monkeypatch.setattr(commonpurse.doctor, "CLOCK_AHEAD_S_MAX", 1)
    async with wallet_on(url, wallet_name) as journal:
        await told_once(url, wallet_name, journal)
        now, at = await journal.now(), (await audited(journal)).wallet.at
        await eventually(lambda: rig.past(journal, now + 3 * SECOND))
        waiting = await waiting_on(journal)
        tick = await append(journal)  # by its stamp `before` lapses
        put_right(monkeypatch, lambda: now)
        why = await stopped(url, wallet_name, lambda: now)
        assert "The server's clock agrees now, so it was wrong then: `purse doctor`" in why

        report = await doctor(url, wallet_name, tmp_path, skip_time=False, now=lambda: now)
        assert (report.exit_code, report.clock) == (4, None)
        assert f"3 messages from sequence {waiting} to {tick} wait to be told" in says(report, "time")
        assert "s ahead of this machine's clock" in says(report, "time")
        assert "nothing lapses and no budget resets by those stamps" in says(report, "time")
        assert await journal.last_seq() == tick

        report = await doctor(url, wallet_name, tmp_path, now=lambda: now)
        assert report.clock is not None, report.findings
        assert (report.exit_code, report.clock.reason, report.clock.by_whom) == (0, "a dead battery", "ops")
        monkeypatch.undo()

        # a little later by that clock, which is now
        async with engine_on(url, wallet_name) as started:
            await rig.told_up_to(started, tick + 1)
        found = await audited(journal)
        assert [found.entries[seq].at for seq in range(waiting, tick + 1)] == [at] * (tick + 1 - waiting)
        assert [found.entries[seq].lapsed for seq in range(waiting, tick + 1)] == [[]] * (tick + 1 - waiting)
        assert isinstance(found.entries[waiting].out[0], Held)
        assert found.entries[tick + 1].out == [Done(report.clock.id)]
        assert [lapsed.hold for lapsed in found.entries[tick + 1].lapsed] == ["before"]

        # and again by whoever reads it later, from the record alone
        async with engine_on(url, wallet_name) as started:
            assert started.service.wallet.dump() == found.wallet.dump()
        async with rig.projector_on(url, wallet_name) as shown:
            assert shown.service.projection.wallet.dump() == found.wallet.dump()
        assert (await prove(url, wallet_name)).untold == 0
        assert (await examine(Patient(data=tmp_path, wallet=wallet_name, nats=url))).exit_code == 0


async def test_no_time_is_skipped_while_the_clocks_still_differ(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    async with wallet_on(nats_server.url, wallet_name) as journal:
        await waiting_on(journal)
        last = await journal.last_seq()
        report = await doctor(nats_server.url, wallet_name, tmp_path)
        assert (report.exit_code, report.clock, await journal.last_seq()) == (4, None, last)
        assert "set the wrong one right first" in says(report, "skip")


async def test_no_time_is_skipped_while_an_engine_runs(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = nats_server.url
    async with wallet_on(url, wallet_name) as journal, engine_on(url, wallet_name, patience_s=3_600):
        await append(journal, hold("waiting"))
        last = await journal.last_seq()
        put_right(monkeypatch)
        report = await doctor(url, wallet_name, tmp_path)
        assert (report.exit_code, report.clock, await journal.last_seq()) == (4, None, last)
        assert "stop the wallet first" in says(report, "skip")


async def test_where_no_stamp_is_ahead_none_is_skipped(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path
) -> None:
    async with wallet_on(nats_server.url, wallet_name) as journal:
        last = await journal.last_seq()
        report = await examine(Patient(data=tmp_path, wallet=wallet_name, nats=nats_server.url), skip_time=True)
        assert (report.exit_code, report.clock, await journal.last_seq()) == (0, None, last)
        assert "nothing to skip" in says(report, "skip")


async def test_what_was_told_ahead_stays_told_and_the_doctor_says_when_the_engine_goes_on(
    nats_server: EmbeddedServer, wallet_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = nats_server.url
    async with wallet_on(url, wallet_name):
        async with engine_on(url, wallet_name) as started:
            await eventually(lambda: started.service.told_seq)
        put_right(monkeypatch)
        report = await doctor(url, wallet_name, tmp_path)
        assert (report.exit_code, report.clock) == (1, None)
        assert "Told is told" in says(report, "time")


async def test_an_engine_that_has_decided_by_stamps_that_are_skipped_starts_again(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    """One that stands by has not said so yet."""
    url = nats_server.url
    async with wallet_on(url, wallet_name) as journal:
        async with engine_on(url, wallet_name, patience_s=3_600) as started:
            waiting = await append(journal, hold("waiting"))
            await eventually(lambda: started.service.wallet.upto == waiting)
            clock = await append(journal, Clock("k", 0, 2**62, "a test"))
            error = await started.end()
        assert isinstance(error, Untrusted)
        assert "start again" in str(error)
        async with engine_on(url, wallet_name) as started:
            await rig.told_up_to(started, clock)
        found = await audited(journal)
        assert (found.entries[waiting].at, found.entries[clock].at > 0) == (0, True)


async def test_a_clock_behind_what_was_told_skips_nothing_of_it(nats_server: EmbeddedServer, wallet_name: str) -> None:
    """No operator's ask can make an engine say otherwise than what stands on record."""
    url = nats_server.url
    async with wallet_on(url, wallet_name) as journal:
        async with engine_on(url, wallet_name) as started:
            await rig.told_up_to(started, await append(journal, hold("told")))
            await rig.told_up_to(started, await append(journal, Clock("k", 0, 2**62, "a test")))
            await rig.told_up_to(started, await append(journal, hold("later")))
            state = started.service.wallet.dump()
        async with engine_on(url, wallet_name) as started:
            assert started.service.wallet.dump() == state


async def test_on_any_stream_the_engine_finds_the_clocks_and_what_was_told_before_them(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    """Random streams, tolds where they like; what is skipped must be what a naive reading says."""
    random, total = Random(7), 0
    async with Journal.connect(nats_server.url, wallet=wallet_name) as journal:
        await journal.ensure_stream()
        chain, waiting = GENESIS, list[tuple[int, int, bytes]]()
        for number in range(120):
            if waiting and random.random() < 0.2:
                told = Told(engine="e", upto=waiting[0][0], n=1, told=[])
                body = msgspec.json.encode(told)[:-1]
                chain = link(chain, waiting[:1], body)
                await journal.append("told", seal(body, chain), wait_s=rig.WITHIN_S)
                del waiting[0]
                continue
            start = time.time_ns() - random.randrange(2 * SECOND)
            asks: list[AnyAsk] = [Settle("x", release=True)]
            if random.random() < 0.2:
                asks = [Clock(f"k{number}", start, start + random.randrange(1, 2 * SECOND), "a test")]
            waiting.append((await append(journal, *asks), 0, b""))
        stream = []
        for stored in await record_of(journal):
            message = read(stored.data) if stored.kind != "told" else None
            upto = Recorded.read(stored).told.upto if stored.kind == "told" else None
            stream.append(naive_time.Message(stored.seq, stored.ts, message.asks if message else None, upto))
        for after in (0, 40, 90):
            clocks = Clocks()
            await clocks.look(journal, after=after)
            found = {
                one.seq for one in stream if one.upto is None and one.seq > after and clocks.skips(one.seq, one.ts)
            }
            assert found == {seq for seq in naive_time.skipped(stream) if seq > after}
            total += len(found)
    assert total
