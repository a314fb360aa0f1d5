"""The engine on the real server: record then tell, one told for many, one moment for each, and nothing stops it."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from types import SimpleNamespace

import msgspec
import pytest
from integration import rig
from integration.rig import (
    CENT,
    DOLLAR,
    SECOND,
    Started,
    append,
    append_raw,
    audit,
    audited,
    engine_on,
    engine_process,
    eventually,
    record_of,
    wallet_on,
)
from nats.aio.msg import Msg

from engine import service
from engine.core import limits
from engine.core.messages import (
    Again,
    AnyAsk,
    ApplyPlan,
    AskMessage,
    Closed,
    Exhausted,
    Freeze,
    Frozen,
    Held,
    Hold,
    Invalid,
    Option,
    Reply,
    Settle,
    Settled,
)
from engine.core.plan import Budget, Plan
from engine.embedded import EmbeddedServer
from engine.errors import Misconfigured, Untrusted
from engine.journal import Journal, Stored
from engine.recorded import Recorded
from engine.service import Engine


def hold(id: str, amount: int = CENT, *, ttl_s: int | None = None) -> Hold:
    return Hold(id, [Option({"usd": amount})], by=time.time_ns() + 60 * SECOND, ttl_s=ttl_s)


class Inbox:
    """Somebody who asks, and all that engines said to them."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.address = journal.client.new_inbox()
        self.replies: list[Reply] = []
        self.recorded: list[bool] = []

    async def open(self) -> None:
        await self._journal.client.subscribe(f"{self.address}.*", cb=self._hear)

    async def _hear(self, message: Msg) -> None:
        reply = msgspec.json.decode(message.data, type=Reply)
        self.replies.append(reply)
        stored = await self._journal.read(reply.told)
        self.recorded.append(stored is not None and Recorded.read(stored).chain.hex() == reply.chain)

    async def ask(self, *asks: AnyAsk, token: str = "1") -> int:
        return await append(self._journal, *asks, sender=f"{self.address}.{token}")

    @property
    def answered(self) -> set[int]:
        return {answer.seq for reply in self.replies for answer in reply.answers}


@asynccontextmanager
async def inbox_of(journal: Journal) -> AsyncIterator[Inbox]:
    inbox = Inbox(journal)
    await inbox.open()
    yield inbox


async def told_up_to(started: Started[Engine], seq: int) -> None:
    """Until the record of this message has come back to the engine."""
    await eventually(lambda: started.service.wallet.upto >= seq and not started.service._decided)


async def test_what_is_said_is_on_the_record_before_it_is_said(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        engine_on(nats_server.url, wallet_name),
        inbox_of(journal) as inbox,
    ):
        seqs = [await inbox.ask(hold(f"h{number}"), token=str(number)) for number in range(20)]
        await eventually(lambda: inbox.answered == set(seqs) and len(inbox.recorded) == len(inbox.replies))
        assert all(inbox.recorded)


async def test_one_told_covers_the_messages_that_came_while_the_last_was_in_flight(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        engine_on(nats_server.url, wallet_name) as started,
    ):
        await asyncio.gather(*(append(journal, hold(f"h{number}", 1)) for number in range(200)))
        await told_up_to(started, 200)
        found = await audited(journal)
        assert found.count(Held) == 200
        assert len(found.tolds) < 150
        assert max(told.n for told in found.tolds) <= limits.TOLD_MESSAGES_MAX


async def test_a_told_covers_at_most_64_messages(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with wallet_on(nats_server.url, wallet_name) as journal:
        await asyncio.gather(*(append(journal) for _ in range(150)))
        async with engine_on(nats_server.url, wallet_name) as started:
            await told_up_to(started, 151)
        assert [told.n for told in (await audited(journal)).tolds] == [64, 64, 23]


async def test_each_message_is_decided_at_its_own_moment_however_many_one_told_covers(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with wallet_on(nats_server.url, wallet_name) as journal:
        for number in range(5):
            await append(journal, hold(f"h{number}"))
        async with engine_on(nats_server.url, wallet_name) as started:
            await told_up_to(started, 6)
        record = await record_of(journal)
        found = audit(record, wallet_name)
        assert [told.n for told in found.tolds] == [6]
        stamps = {stored.seq: stored.ts for stored in record if stored.kind != "told"}
        assert {seq: entry.at for seq, entry in found.entries.items()} == stamps
        assert len(set(stamps.values())) == 6


async def test_a_hold_lapses_at_its_own_moment_even_if_it_is_told_later(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    """Two messages on either side of an expiry, decided long after by one told: the first still finds it open."""
    async with wallet_on(nats_server.url, wallet_name) as journal:
        await append(journal, hold("h", ttl_s=1))
        before = await append(journal, Settle("h", {"usd": 1}, final=False))
        held = await journal.read(before)
        assert held is not None
        await eventually(lambda: past(journal, held.ts + SECOND))
        after = await append(journal, Settle("h", {"usd": 2}, final=False))
        async with engine_on(nats_server.url, wallet_name) as started:
            await told_up_to(started, after)
        found = await audited(journal)
        assert [told.n for told in found.tolds] == [4]
        first, second = found.entries[before].out[0], found.entries[after].out[0]
        assert isinstance(first, Settled)
        assert (first.state, first.charged) == ("open", {"usd": 1})
        assert [lapsed.hold for lapsed in found.entries[after].lapsed] == ["h"]
        assert isinstance(second, Settled)
        assert (second.state, second.charged) == ("lapsed", {"usd": CENT})


async def past(journal: Journal, moment: int) -> bool:
    return await journal.now() > moment


async def test_the_chain_holds_over_the_whole_record_and_breaks_where_it_was_changed(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        engine_on(nats_server.url, wallet_name) as started,
    ):
        for number in range(6):
            await append(journal, hold(f"h{number}"), Settle(f"h{number}", {"usd": number}))
            await told_up_to(started, 2 * number + 3)
        record = await record_of(journal)
        assert audit(record, wallet_name).count(Settled) == 6
    for forged in forgeries(record):
        with pytest.raises((Untrusted, AssertionError, ValueError)):
            assert audit(forged, wallet_name).untold == 0


def forgeries(record: list[Stored]) -> Iterator[list[Stored]]:
    """What somebody might make of a record, numbered as if nothing had happened."""
    for at, one in enumerate(record):
        before, after = record[:at], record[at + 1 :]
        other = one.data.replace(b'"usd":', b'"usd":1', 1)
        if other != one.data:
            yield [*before, msgspec.structs.replace(one, data=other), *after]
        if one.kind != "told":
            yield [*before, msgspec.structs.replace(one, ts=one.ts + 1), *after]
        yield numbered([*before, one, one, *after])
        if after:
            yield numbered([*before, *after])
            yield numbered([*before, after[0], one, *after[1:]])


def numbered(record: list[Stored]) -> list[Stored]:
    return [msgspec.structs.replace(stored, seq=seq) for seq, stored in enumerate(record, start=1)]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"not json",
        b"[1]",
        b'{"v":1,"asks":[{"ask":"gift","id":"x"}]}',
        b'{"v":1,"asks":[{"ask":"hold","id":"x","options":"all","by":1}]}',
        b'{"v":1,"asks":' + b"[" * 5000 + b"]" * 5000 + b"}",
        b'{"v":1,"from":"\xff","asks":[]}',
        b'{"asks":[' + b",".join([b'{"ask":"settle","hold":"h"}'] * 1025) + b"]}",
        b'{"v":1,"asks":[],"pad":"' + b"x" * 512 * 1024 + b'"}',
    ],
    ids=["empty", "text", "list", "unknown ask", "wrong type", "deep", "not utf-8", "too many", "too large"],
)
async def test_a_message_that_cannot_be_read_is_told_invalid_and_the_engine_goes_on(
    nats_server: EmbeddedServer, wallet_name: str, raw: bytes
) -> None:
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        engine_on(nats_server.url, wallet_name) as started,
    ):
        unreadable = await append_raw(journal, raw)
        after = await append(journal, hold("h"))
        await told_up_to(started, after)
        found = await audited(journal)
        (outcome,) = found.entries[unreadable].out
        assert isinstance(outcome, Invalid)
        assert outcome.field == "message"
        assert isinstance(found.entries[after].out[0], Held)


async def test_a_message_of_1024_asks_is_one_append_and_every_ask_has_its_outcome(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        engine_on(nats_server.url, wallet_name) as started,
    ):
        seq = await append(journal, *(hold(f"h{number}", CENT) for number in range(1024)))
        await told_up_to(started, seq)
        out = (await audited(journal)).entries[seq].out
        assert [type(outcome) for outcome in out] == [Held] * 100 + [Exhausted] * 924


async def test_a_hold_may_be_asked_again_settled_and_asked_once_more_in_one_message(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    """What its callers hear is taken down ask by ask: at the end of the message the hold is no longer open."""
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        engine_on(nats_server.url, wallet_name),
        inbox_of(journal) as inbox,
    ):
        await inbox.ask(hold("h"))
        seq = await inbox.ask(hold("h"), Settle("h", {"usd": 1}), Settle("h", {"usd": 1}), hold("h"))
        await eventually(lambda: seq in inbox.answered)
        (answer,) = (answer for reply in inbox.replies for answer in reply.answers if answer.seq == seq)
        first, settled, again, last = answer.out
        assert isinstance(first, Again)
        assert isinstance(first.was, Held)
        assert isinstance(settled, Settled)
        assert isinstance(again, Again)
        assert isinstance(again.was, Settled)
        assert isinstance(last, Closed)


async def test_nothing_is_ever_published_to_a_sender_that_is_no_inbox(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        engine_on(nats_server.url, wallet_name) as started,
        inbox_of(journal) as inbox,
    ):
        info = f"$JS.API.STREAM.DELETE.{journal.names.stream}"
        names = ("ask", "admin", "told", "live", "ready", "visit")
        heard: list[str] = []

        async def hear(message: Msg) -> None:
            if b'"answers"' in message.data:
                heard.append(message.subject)

        await journal.client.subscribe(">", cb=hear)
        senders = [info, *(journal.names.subject(name) for name in names)]
        senders += ["_INBOX", "_INBOX.>", "_INBOX.*", "_INBOX.a b", "_INBOX.a.b.c.d.e", f"x{inbox.address}.1", ">"]
        for sender in senders:
            await append(journal, sender=sender)
        last = await inbox.ask()
        await eventually(lambda: last in inbox.answered and heard)
        assert heard == [f"{inbox.address}.1"]
        assert started.service.ready.is_set()


async def test_time_passes_by_a_tick_when_nothing_else_comes(
    nats_server: EmbeddedServer, wallet_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "TICK_S", 0.1)
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        engine_on(nats_server.url, wallet_name) as started,
    ):
        await append(journal, hold("h", ttl_s=1))
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
        await append(journal, hold("h", ttl_s=3))
        async with engine_on(nats_server.url, wallet_name) as started:
            await eventually(lambda: "h" in started.service.wallet.open)
        newest = (await record_of(journal))[-1].ts
        await eventually(lambda: past(journal, newest + 3 * SECOND))
        began = time.monotonic()
        async with engine_on(nats_server.url, wallet_name) as started:
            await eventually(lambda: "h" in started.service.wallet.provisional)
        assert time.monotonic() - began < 2


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
        refused = await append(journal, hold("h"))
        wallet = started.service.wallet
        await eventually(lambda: wallet.upto >= refused and not wallet.frozen)
        assert wallet.at >= until
        granted = await append(journal, hold("i"))
        await told_up_to(started, granted)
        found = await audited(journal)
        assert isinstance(found.entries[refused].out[0], Frozen)
        assert isinstance(found.entries[granted].out[0], Held)


async def test_an_engine_whose_clock_is_five_minutes_behind_the_streams_stops_and_says_so(
    nats_server: EmbeddedServer, wallet_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    behind = SimpleNamespace(time_ns=lambda: time.time_ns() - 301 * SECOND, monotonic=time.monotonic)
    monkeypatch.setattr(service, "time", behind)
    async with wallet_on(nats_server.url, wallet_name) as journal:
        async with engine_on(nats_server.url, wallet_name, ready=False) as started:
            error = await started.end()
        assert isinstance(error, Untrusted)
        assert "clock is 301 s ahead of this machine's" in str(error)
        assert (await audited(journal)).tolds == []


async def test_an_engine_started_again_has_the_same_wallet_to_the_byte(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    plan = Plan({"jev": rig.JEV, "each": Budget("usd", DOLLAR, per="total", each="user")})
    async with wallet_on(nats_server.url, wallet_name, plan=plan) as journal:
        async with engine_on(nats_server.url, wallet_name) as started:
            for number in range(30):
                one = hold(f"h{number}", number * CENT)
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
            await inbox.ask(hold(f"h{number}"), token=str(number))
        async with engine_on(nats_server.url, wallet_name):
            await eventually(lambda: len(inbox.answered) == 3)
        async with engine_on(nats_server.url, wallet_name) as again:
            last = await inbox.ask(hold("i"))
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
            early = await append(journal, hold("h"))
            await append(journal, ApplyPlan("first", Plan({"jev": rig.JEV}), ""))
            after = await append(journal, hold("h"))
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
        seq = await inbox.ask(hold("h"))
        await eventually(lambda: seq in inbox.answered)
        grown = (await journal.check_stream()).bytes - state.bytes
        told = msgspec.json.encode(AskMessage(asks=[hold("i")]))
        await rig.change_stream(journal, max_bytes=state.bytes + grown + len(told) + 200)
        last = await inbox.ask(hold("i"))
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
