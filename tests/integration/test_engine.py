"""The engine on the real server: record then tell, one told for many, one moment for each, and nothing stops it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import msgspec
import pytest
from integration.rig import (
    CENT,
    SECOND,
    append,
    append_raw,
    audit,
    audited,
    engine_on,
    eventually,
    inbox_of,
    past,
    penny,
    record_of,
    told_up_to,
    wallet_on,
)
from nats.aio.msg import Msg

from engine.core import limits
from engine.core.messages import (
    Again,
    Closed,
    Exhausted,
    Held,
    Invalid,
    Settle,
    Settled,
)
from engine.embedded import EmbeddedServer
from engine.errors import Untrusted
from engine.journal import Stored


async def test_what_is_said_is_on_the_record_before_it_is_said(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        engine_on(nats_server.url, wallet_name),
        inbox_of(journal) as inbox,
    ):
        seqs = [await inbox.ask(penny(f"h{number}"), token=str(number)) for number in range(20)]
        await eventually(lambda: inbox.answered == set(seqs) and len(inbox.recorded) == len(inbox.replies))
        assert all(inbox.recorded)


async def test_one_told_covers_the_messages_that_came_while_the_last_was_in_flight(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        engine_on(nats_server.url, wallet_name) as started,
    ):
        await asyncio.gather(*(append(journal, penny(f"h{number}", 1)) for number in range(200)))
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
            await append(journal, penny(f"h{number}"))
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
        await append(journal, penny("h", ttl_s=1))
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


async def test_the_chain_holds_over_the_whole_record_and_breaks_where_it_was_changed(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with (
        wallet_on(nats_server.url, wallet_name) as journal,
        engine_on(nats_server.url, wallet_name) as started,
    ):
        for number in range(6):
            last = await append(journal, penny(f"h{number}"), Settle(f"h{number}", {"usd": number}))
            await told_up_to(started, last)
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
        after = await append(journal, penny("h"))
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
        seq = await append(journal, *(penny(f"h{number}", CENT) for number in range(1024)))
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
        await inbox.ask(penny("h"))
        seq = await inbox.ask(penny("h"), Settle("h", {"usd": 1}), Settle("h", {"usd": 1}), penny("h"))
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
