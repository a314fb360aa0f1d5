"""The follower on the real server: every message once and in order, whatever happens between; a lie is found out."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import msgspec
import nats.errors
import pytest
from integration import rig
from integration.rig import Reader, Started, eventually, make_stream, reader_on, remove_stream
from integration.wire import Wire

from engine import follower
from engine.embedded import EmbeddedServer
from engine.errors import PurseError, Untrusted
from engine.follower import place_of
from engine.journal import Journal, Stored

BATCH = 1_000  # messages the server stores in one atomic step


class Consumers(msgspec.Struct):
    consumers: list[dict[str, Any]] = []


async def consumers_of(journal: Journal) -> list[dict[str, Any]]:
    return (await journal.api(f"CONSUMER.LIST.{journal.names.stream}", {}, Consumers)).consumers


async def fill(journal: Journal, count: int, data: bytes) -> None:
    """Append many messages in few disk flushes."""
    for batch in range(count // BATCH):
        headers = {"Nats-Batch-Id": f"b{batch}"}
        for number in range(1, BATCH):
            headers["Nats-Batch-Sequence"] = str(number)
            await journal.client.publish(journal.names.subject("ask"), data, headers=headers)
        headers |= {"Nats-Batch-Sequence": str(BATCH), "Nats-Batch-Commit": "1"}
        await journal.client.request(journal.names.subject("ask"), data, headers=headers, timeout=rig.WITHIN_S)


async def append(journal: Journal, *datas: bytes) -> None:
    for data in datas:
        await journal.append("ask", data, wait_s=rig.WITHIN_S)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Notice a silence sooner."""
    monkeypatch.setattr(follower, "HEARTBEAT_S", 0.1)
    monkeypatch.setattr(follower, "SILENCE_S_MAX", 0.4)


@asynccontextmanager
async def reading(url: str, wallet: str, *first: bytes) -> AsyncIterator[tuple[Started[Reader], Journal]]:
    """A reader of a new stream that has heard what lies on it, and a connection for others."""
    async with Journal.connect(url, wallet=wallet) as journal:
        await journal.ensure_stream()
        await append(journal, *first)
        async with reader_on(url, wallet) as started:
            await eventually(lambda: len(started.service.heard) == len(first))
            yield started, journal


def data_of(reader: Reader) -> list[bytes]:
    return [stored.data for stored in reader.heard]


async def test_it_hears_what_lies_on_the_stream_and_then_what_comes(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with reading(nats_server.url, wallet_name, b"1", b"2") as (started, journal):
        await journal.append("admin", b"3", wait_s=rig.WITHIN_S)
        await journal.append("told", b"4", wait_s=rig.WITHIN_S)
        await eventually(lambda: len(started.service.heard) == 4)
        assert [(stored.seq, stored.kind, stored.data) for stored in started.service.heard] == [
            (1, "ask", b"1"),
            (2, "ask", b"2"),
            (3, "admin", b"3"),
            (4, "told", b"4"),
        ]
        assert started.service.heard[2] == await journal.read(3)


async def test_it_begins_after_the_sequence_it_is_given(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with Journal.connect(nats_server.url, wallet=wallet_name) as journal:
        await journal.ensure_stream()
        await append(journal, b"1", b"2", b"3")
    async with reader_on(nats_server.url, wallet_name, after=2) as started:
        await eventually(lambda: started.service.seqs == [3])


async def test_m4_a_reader_that_falls_far_behind_misses_nothing(nats_server: EmbeddedServer, wallet_name: str) -> None:
    count = 20 * BATCH
    async with Journal.connect(nats_server.url, wallet=wallet_name) as journal:
        await make_stream(journal, allow_atomic=True)
        async with reader_on(nats_server.url, wallet_name) as started:
            started.service.open.clear()
            await fill(journal, count, b"x" * 100)
            await eventually(lambda: started.journal.client.stats["in_msgs"] > BATCH)  # they pile up in the client
            started.service.open.set()
            await eventually(lambda: len(started.service.heard) >= count)
        assert started.service.seqs == list(range(1, count + 1))


async def test_m5_it_goes_on_after_the_server_was_restarted(own_server: EmbeddedServer, wallet_name: str) -> None:
    async with reading(own_server.url, wallet_name, b"1", b"2") as (started, journal):
        await own_server.restart()
        await eventually(lambda: journal.client.is_connected)
        await append(journal, b"3", b"4")
        await eventually(lambda: len(started.service.heard) >= 4)
        assert data_of(started.service) == [b"1", b"2", b"3", b"4"]


@pytest.mark.usefixtures("impatient")
async def test_m5_it_goes_on_after_the_server_was_killed_and_stayed_away_a_while(
    own_server: EmbeddedServer, wallet_name: str
) -> None:
    async with reading(own_server.url, wallet_name, b"1") as (started, journal):
        own_server.kill()
        await own_server.wait()
        await asyncio.sleep(follower.SILENCE_S_MAX)  # until it begins to look for a new consumer
        await own_server.start()
        await eventually(lambda: journal.client.is_connected)
        await append(journal, b"2")
        await eventually(lambda: data_of(started.service) == [b"1", b"2"])


async def test_a_server_that_stands_still_for_seconds_loses_nothing(
    own_server: EmbeddedServer, wallet_name: str
) -> None:
    async with reading(own_server.url, wallet_name, b"1") as (started, journal):
        own_server.kill(signal.SIGSTOP)
        await asyncio.sleep(3)
        own_server.kill(signal.SIGCONT)
        await append(journal, b"2", b"3")
        await eventually(lambda: len(started.service.heard) >= 3)
        assert data_of(started.service) == [b"1", b"2", b"3"]
        await eventually(lambda: only_one_is_heard(journal, started))


async def only_one_is_heard(journal: Journal, started: Started[Reader]) -> bool:
    """No consumer of an earlier try is still delivering to somebody who listens."""
    return sum(bool(consumer.get("push_bound")) for consumer in await consumers_of(journal)) == 1


@pytest.mark.usefixtures("impatient")
async def test_a_lost_answer_to_a_new_consumer_leaves_no_second_one_behind(
    nats_server: EmbeddedServer, wallet_name: str, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.journal.API_WAIT_S", 0.3)
    async with reading(wire.url, wallet_name, b"1") as (started, journal):
        wire.lose = lambda _, payload: b"consumer_create_response" in payload
        await remove_consumers(journal)
        await eventually(lambda: wire.lost >= 3)
        wire.lose = lambda _, __: False
        await append(journal, b"2")
        await eventually(lambda: data_of(started.service) == [b"1", b"2"])
        await eventually(lambda: only_one_is_heard(journal, started))


async def remove_consumers(journal: Journal) -> None:
    for consumer in await consumers_of(journal):
        await journal.api(f"CONSUMER.DELETE.{journal.names.stream}.{consumer['name']}", {}, rig.Made)


@pytest.mark.usefixtures("impatient")
async def test_it_replaces_a_consumer_that_somebody_deleted(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with reading(nats_server.url, wallet_name, b"1") as (started, journal):
        await remove_consumers(journal)
        await append(journal, b"2")
        await eventually(lambda: data_of(started.service) == [b"1", b"2"])


async def test_m4_a_message_that_is_lost_on_the_way_is_read_again(
    nats_server: EmbeddedServer, wallet_name: str, wire: Wire
) -> None:
    async with reading(nats_server.url, wallet_name) as (_, journal), reader_on(wire.url, wallet_name) as started:
        wire.lose = lambda _, payload: payload == b"2" and wire.lost == 0
        await append(journal, b"1", b"2", b"3", b"4")
        await eventually(lambda: len(started.service.heard) >= 4)
        assert wire.lost == 1
        assert data_of(started.service) == [b"1", b"2", b"3", b"4"]


async def test_m9_order_is_by_sequence_never_by_arrival(
    nats_server: EmbeddedServer, wallet_name: str, wire: Wire
) -> None:
    async with reading(nats_server.url, wallet_name) as (_, journal), reader_on(wire.url, wallet_name) as started:
        wire.repeat = lambda subject, _: subject == journal.names.subject("ask")
        for count, data in enumerate((b"1", b"2", b"3"), start=1):
            await append(journal, data)
            await heard(started, count)
        assert data_of(started.service) == [b"1", b"2", b"3"]
        assert not started.task.done()


async def heard(started: Started[Reader], count: int) -> None:
    await eventually(lambda: len(started.service.heard) >= count)


@pytest.mark.parametrize(
    "reply",
    [
        "$JS.ACK.PURSE_main.follow-x.1.4711.7.1796047500123456789.0",
        "$JS.ACK._.AbCdEfGh.PURSE_main.follow-x.1.4711.7.1796047500123456789.0",
        "$JS.ACK.hub.AbCdEfGh.PURSE_main.follow-x.1.4711.7.1796047500123456789.0.r4nd0m",
    ],
)
def test_both_versions_of_a_messages_place_are_understood(reply: str) -> None:
    assert place_of(reply) == (4711, 1796047500123456789)


@pytest.mark.parametrize("headers", [{"Status": "100"}, {"Status": "100", "Nats-Last-Stream": "99"}, {"X": "\xff"}])
async def test_no_header_makes_it_skip_a_message(
    nats_server: EmbeddedServer, wallet_name: str, headers: dict[str, str]
) -> None:
    async with reading(nats_server.url, wallet_name, b"1") as (started, journal):
        await journal.client.publish(journal.names.subject("ask"), b"", headers=headers)
        await append(journal, b"3")
        await eventually(lambda: data_of(started.service) == [b"1", b"", b"3"])


@pytest.mark.parametrize(
    "header", [b"XX", b"NATS/1.0", b"NATS/1.0\r\n", b"NATS/1.0 \xff\xff\xff\r\n\r\n", b"\r\n\r\n\r\n"]
)
async def test_headers_that_are_no_headers_stop_nobody(
    nats_server: EmbeddedServer, wallet_name: str, header: bytes
) -> None:
    async with reading(nats_server.url, wallet_name, b"1") as (started, journal):
        subject = journal.names.subject("ask")
        await say(
            nats_server.url, b"HPUB %b %d %d\r\n%b2\r\n" % (subject.encode(), len(header), len(header) + 1, header)
        )
        await append(journal, b"3")
        await eventually(lambda: data_of(started.service) == [b"1", b"2", b"3"])


async def say(url: str, line: bytes) -> None:
    """Speak to the server as only a very odd client would."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    await reader.readline()
    options = {"user": address.username, "pass": address.password, "headers": True, "verbose": False}
    writer.write(b"CONNECT %b\r\n%bPING\r\n" % (msgspec.json.encode(options), line))
    answer = await reader.readline()
    writer.close()
    await writer.wait_closed()
    assert answer == b"PONG\r\n"


@pytest.mark.usefixtures("impatient")
async def test_m2_m3_a_stream_that_ends_below_what_was_seen_is_not_trusted(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with reading(nats_server.url, wallet_name, b"1", b"2", b"3", b"4") as (started, journal):
        await remove_stream(journal)
        await journal.ensure_stream()
        await append(journal, b"1", b"2")
        error = await started.end()
        assert isinstance(error, Untrusted)
        assert re.search(r"ends at sequence 2, but 4 was seen: 3 to 4 are lost", str(error))
        assert len(started.service.heard) == 4


@pytest.mark.usefixtures("impatient")
async def test_m2_a_stream_that_has_grown_as_long_again_is_not_trusted(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    """Sequences that were seen were handed out again before anybody looked."""
    async with reading(nats_server.url, wallet_name, b"1", b"2") as (started, journal):
        await remove_stream(journal)
        await journal.ensure_stream()
        await append(journal, b"1", b"2", b"3")
        error = await started.end()
        assert isinstance(error, Untrusted)
        assert "at sequence 2 lies another message" in str(error)
        assert data_of(started.service) == [b"1", b"2"]


async def test_m2_a_message_that_is_gone_is_not_skipped(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with Journal.connect(nats_server.url, wallet=wallet_name) as journal:
        await make_stream(journal, deny_delete=False)
        await append(journal, b"1", b"2", b"3", b"4")
        await journal.api(f"STREAM.MSG.DELETE.{journal.names.stream}", {"seq": 3}, rig.Made)
        async with reader_on(nats_server.url, wallet_name) as started:
            error = await started.end()
        assert isinstance(error, Untrusted)
        assert "sequences 3 to 3 are missing" in str(error)
        assert data_of(started.service) == [b"1", b"2"]


async def test_m2_a_stream_whose_beginning_is_gone_is_not_trusted(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with Journal.connect(nats_server.url, wallet=wallet_name) as journal:
        await make_stream(journal, deny_purge=False)
        await append(journal, b"1", b"2", b"3")
        await journal.api(f"STREAM.PURGE.{journal.names.stream}", {"seq": 3}, rig.Made)
        async with reader_on(nats_server.url, wallet_name) as started:
            error = await started.end()
        assert isinstance(error, Untrusted)
        assert "sequences 1 to 2 are missing" in str(error)
        assert started.service.heard == []


async def test_an_error_of_the_callback_ends_it_and_is_not_swallowed(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    """Not even one of the kinds that the follower itself would try again after: the message was half taken in."""

    class Clumsy(Reader):
        async def _take(self, stored: Stored) -> None:
            await super()._take(stored)
            raise nats.errors.ConnectionClosedError

    async with Journal.connect(nats_server.url, wallet=wallet_name) as journal:
        await journal.ensure_stream()
        await append(journal, b"1", b"2")
        clumsy = Clumsy(journal)
        task = asyncio.create_task(clumsy.follower.run())
        await asyncio.wait([task], timeout=rig.WITHIN_S)
        assert isinstance(task.exception(), nats.errors.ConnectionClosedError)
        assert data_of(clumsy) == [b"1"]


@pytest.mark.usefixtures("impatient")
async def test_m5_a_connection_on_which_nothing_works_any_more_ends_the_process(
    nats_server: EmbeddedServer, wallet_name: str, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.follower.ZOMBIE_S_MAX", 1.0)
    monkeypatch.setattr("engine.journal.API_WAIT_S", 0.2)
    async with reading(wire.url, wallet_name, b"1") as (started, _):
        wire.lose = lambda _, __: True  # but pings are answered
        error = await started.end()
        assert isinstance(error, PurseError)
        assert "connected, but the stream has not answered" in str(error)
