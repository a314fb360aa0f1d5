"""What everything above the journal relies on, asked of the real server and of the one in memory alike.

The simulation proves something about the product only as far as its server behaves like the real one. Here that is
shown.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from integration.rig import WITHIN_S, Made, Reader, eventually, make_stream, reader_on, running
from nats.aio.msg import Msg
from nats.js.errors import BucketNotFoundError
from simulation.memory_nats import MemoryServer

from engine.embedded import EmbeddedServer
from engine.errors import NoAnswer, StreamRefused, Untrusted
from engine.journal import Journal

NOWHERE = "nats://in-memory"


@pytest_asyncio.fixture(params=["the real server", "in memory"], loop_scope="session")
async def url(request: pytest.FixtureRequest, nats_server: EmbeddedServer) -> AsyncIterator[str]:
    if request.param == "the real server":
        yield nats_server.url
    else:
        with MemoryServer().instead_of_nats():
            yield NOWHERE


@pytest_asyncio.fixture(loop_scope="session")
async def journal(url: str, wallet_name: str) -> AsyncIterator[Journal]:
    async with Journal.connect(url, wallet=wallet_name) as connected:
        await connected.ensure_stream()
        yield connected


# --- appending and reading back ---------------------------------------------------------------------------------------


async def test_a_wallet_without_a_stream_takes_nothing(url: str, wallet_name: str) -> None:
    async with Journal.connect(url, wallet=wallet_name) as journal:
        with pytest.raises(StreamRefused) as refused:
            await journal.check_stream()
        assert refused.value.code == 404
        with pytest.raises(StreamRefused) as refused:
            await journal.append("ask", b"{}", wait_s=WITHIN_S)
        assert refused.value.code == 503


async def test_the_stream_is_made_once_and_passes_its_own_check(journal: Journal) -> None:
    await journal.ensure_stream()
    assert (await journal.check_stream()).last_seq == 0


async def test_what_is_appended_is_read_back_to_the_byte(journal: Journal) -> None:
    before = await journal.now()
    appended = await journal.append("admin", b"some bytes \x00\xff", wait_s=WITHIN_S)
    stored = await journal.read(appended.seq)
    assert stored is not None
    assert (stored.seq, stored.kind, stored.data) == (1, "admin", b"some bytes \x00\xff")
    assert before <= stored.ts <= await journal.now()
    assert await journal.read(2) is None
    assert await journal.last_seq() == 1


async def test_the_next_and_the_last_message_of_a_kind_are_found(journal: Journal) -> None:
    for kind in ("ask", "admin", "told", "admin", "ask"):
        await journal.append(kind, kind.encode(), wait_s=WITHIN_S)
    after_first, after_last = await journal.next_of("admin", 2), await journal.next_of("admin", 4)
    last, missing = await journal.last_of("told"), await journal.next_of("told", 3)
    assert after_first is not None
    assert last is not None
    assert (after_first.seq, last.seq, after_last, missing) == (4, 3, None, None)


async def test_sequences_follow_each_other_and_time_does_not_run_backwards(journal: Journal) -> None:
    appends = [journal.append("ask", str(number).encode(), wait_s=WITHIN_S) for number in range(20)]
    assert sorted(one.seq for one in await asyncio.gather(*appends)) == list(range(1, 21))
    stored = [await journal.read(seq) for seq in range(1, 21)]
    times = [one.ts for one in stored if one is not None]
    assert len(times) == 20
    assert times == sorted(times)
    assert times[-1] <= await journal.now()


async def test_one_connections_appends_are_stored_in_the_order_in_which_they_were_sent(journal: Journal) -> None:
    appends = [journal.append("ask", str(number).encode(), wait_s=WITHIN_S) for number in range(20)]
    assert [one.seq for one in await asyncio.gather(*appends)] == list(range(1, 21))


async def test_a_name_used_again_within_the_window_is_a_duplicate(journal: Journal) -> None:
    first = await journal.append("ask", b"once", wait_s=WITHIN_S, msg_id="a.1")
    again = await journal.append("ask", b"twice", wait_s=WITHIN_S, msg_id="a.1")
    assert (first.duplicate, again.duplicate, again.seq) == (False, True, first.seq)
    assert await journal.stored_as(b"once", again)
    assert not await journal.stored_as(b"twice", again)
    assert await journal.last_seq() == 1


async def test_a_name_used_again_beyond_the_window_is_stored_a_second_time(url: str, wallet_name: str) -> None:
    async with Journal.connect(url, wallet=wallet_name) as journal:
        await make_stream(journal, duplicate_window=10**8)
        first = await journal.append("ask", b"once", wait_s=WITHIN_S, msg_id="a.1")

        async def stored_again() -> int | None:
            again = await journal.append("ask", b"once", wait_s=WITHIN_S, msg_id="a.1")
            return None if again.duplicate else again.seq

        assert await eventually(stored_again) == first.seq + 1
        assert await journal.last_seq() == 2


async def test_a_name_that_was_refused_is_not_taken(journal: Journal) -> None:
    with pytest.raises(StreamRefused):
        await journal.append("told", b"one", wait_s=WITHIN_S, msg_id="a.1", after_told=7)
    appended = await journal.append("told", b"one", wait_s=WITHIN_S, msg_id="a.1", after_told=0)
    assert (appended.seq, appended.duplicate) == (1, False)


async def test_a_told_counts_only_in_the_place_it_claims(journal: Journal) -> None:
    await journal.append("ask", b"{}", wait_s=WITHIN_S)
    first = await journal.append("told", b"one", wait_s=WITHIN_S, after_told=0)
    await journal.append("ask", b"{}", wait_s=WITHIN_S)  # asks do not move the fence
    for wrong_last in (0, 1, first.seq + 1, 99):
        with pytest.raises(StreamRefused) as refused:
            await journal.append("told", b"two", wait_s=WITHIN_S, after_told=wrong_last)
        assert refused.value.code == 10071
    assert (await journal.append("told", b"two", wait_s=WITHIN_S, after_told=first.seq)).seq == 4


async def test_of_two_tolds_for_one_place_exactly_one_is_stored(journal: Journal, url: str, wallet_name: str) -> None:
    async with Journal.connect(url, wallet=wallet_name) as other:
        both = [one.append("told", b"told", wait_s=WITHIN_S, after_told=0) for one in (journal, other)]
        ends = await asyncio.gather(*both, return_exceptions=True)
    (refused,) = [end for end in ends if isinstance(end, StreamRefused)]
    assert refused.code == 10071
    assert await journal.last_seq() == 1


async def test_a_full_stream_refuses_and_forgets_nothing(url: str, wallet_name: str) -> None:
    async with Journal.connect(url, wallet=wallet_name) as journal:
        await make_stream(journal, max_bytes=4096)
        for number in range(3):
            await journal.append("ask", b"x" * 1000, wait_s=WITHIN_S, msg_id=f"a.{number}")
        with pytest.raises(StreamRefused) as refused:
            await journal.append("ask", b"x" * 1000, wait_s=WITHIN_S, msg_id="a.3")
        assert refused.value.code == 10077
        again = await journal.append("ask", b"x" * 1000, wait_s=WITHIN_S, msg_id="a.2")
        assert again.duplicate, "full or not, it says what is there already"
        assert await journal.read(1) is not None


# --- following --------------------------------------------------------------------------------------------------------


async def test_a_follower_hears_what_lies_there_and_then_what_comes(
    journal: Journal, url: str, wallet_name: str
) -> None:
    await journal.append("ask", b"1", wait_s=WITHIN_S)
    await journal.append("admin", b"2", wait_s=WITHIN_S)
    async with reader_on(url, wallet_name) as started:
        await eventually(lambda: len(started.service.heard) == 2)
        await journal.append("told", b"3", wait_s=WITHIN_S)
        await eventually(lambda: len(started.service.heard) == 3)
        heard = started.service.heard
    assert [(one.seq, one.kind, one.data) for one in heard] == [(1, "ask", b"1"), (2, "admin", b"2"), (3, "told", b"3")]
    assert [await journal.read(one.seq) for one in heard] == heard


async def test_a_follower_hears_the_receipt_that_was_sent_along(journal: Journal, url: str, wallet_name: str) -> None:
    await journal.append("ask", b"1", wait_s=WITHIN_S, seen="7 abc")
    await journal.append("ask", b"2", wait_s=WITHIN_S)
    async with reader_on(url, wallet_name) as started:
        await eventually(lambda: len(started.service.heard) == 2)
        assert [stored.seen for stored in started.service.heard] == ["7 abc", ""]


async def test_a_follower_begins_after_the_sequence_it_is_given(journal: Journal, url: str, wallet_name: str) -> None:
    for data in (b"1", b"2", b"3"):
        await journal.append("ask", data, wait_s=WITHIN_S)
    async with reader_on(url, wallet_name, after=2) as started:
        await eventually(lambda: started.service.seqs == [3])


async def test_a_slow_follower_hears_everything_in_order(journal: Journal, url: str, wallet_name: str) -> None:
    async with reader_on(url, wallet_name) as started:
        started.service.open.clear()
        appends = [journal.append("ask", b"x", wait_s=WITHIN_S) for _ in range(200)]
        await asyncio.gather(*appends)
        started.service.open.set()
        await eventually(lambda: len(started.service.heard) == 200)
        assert started.service.seqs == list(range(1, 201))


async def test_a_message_that_is_gone_is_a_gap_and_not_skipped(url: str, wallet_name: str) -> None:
    async with Journal.connect(url, wallet=wallet_name) as journal:
        await make_stream(journal, deny_delete=False)
        for data in (b"1", b"2", b"3"):
            await journal.append("ask", data, wait_s=WITHIN_S)
        await journal.api(f"STREAM.MSG.DELETE.{journal.names.stream}", {"seq": 2}, Made)
        reader = Reader(journal)
        async with running(reader, reader.follower.run(), journal) as started:
            error = await started.end()
        assert isinstance(error, Untrusted)
        assert reader.seqs == [1]


async def test_a_stream_that_ends_before_what_was_seen_is_not_trusted(journal: Journal) -> None:
    await journal.append("ask", b"1", wait_s=WITHIN_S)
    reader = Reader(journal, after=5)
    async with running(reader, reader.follower.run(), journal) as started:
        assert isinstance(await started.end(), Untrusted)


# --- core: what engine, asker and projector say to each other --------------------------------------------------------


async def test_who_listens_hears_in_order_and_can_answer(journal: Journal, url: str, wallet_name: str) -> None:
    heard: list[bytes] = []

    async def answer(message: Msg) -> None:
        heard.append(message.data)
        await message.respond(b"heard " + message.data)

    async with Journal.connect(url, wallet=wallet_name) as other:
        subscription = await other.client.subscribe(other.names.subject("ready"), cb=answer)
        await eventually(lambda: _answers(journal))
        heard.clear()
        answers = [journal.request(journal.names.subject("ready"), str(n).encode(), wait_s=WITHIN_S) for n in range(9)]
        assert await asyncio.gather(*answers) == [b"heard %d" % n for n in range(9)]
        assert heard == [b"%d" % n for n in range(9)]
        await subscription.unsubscribe()
        await eventually(lambda: _nobody_answers(journal))


async def _answers(journal: Journal) -> bool:
    return not await _nobody_answers(journal)


async def _nobody_answers(journal: Journal) -> bool:
    try:
        await journal.request(journal.names.subject("ready"), wait_s=WITHIN_S)
    except NoAnswer:
        return True
    return False


async def test_nobody_there_is_said_at_once(journal: Journal) -> None:
    async with asyncio.timeout(WITHIN_S / 2):
        with pytest.raises(NoAnswer, match="NoResponders"):
            await journal.request(journal.names.subject("read.status"), wait_s=WITHIN_S)


async def test_an_inbox_hears_whatever_is_said_below_it(journal: Journal, url: str, wallet_name: str) -> None:
    heard: list[tuple[str, bytes]] = []

    async def hear(message: Msg) -> None:
        heard.append((message.subject, message.data))

    inbox = journal.client.new_inbox()
    await journal.client.subscribe(f"{inbox}.*", cb=hear)
    await journal.last_seq()  # an exchange on the same connection: by now the server knows of the inbox
    async with Journal.connect(url, wallet=wallet_name) as other:
        assert other.client.new_inbox() != inbox
        for number in range(5):
            await other.client.publish(f"{inbox}.{number}", b"%d" % number)
        await eventually(lambda: len(heard) == 5)
    assert heard == [(f"{inbox}.{number}", b"%d" % number) for number in range(5)]


async def test_a_connection_says_whether_it_is_one(url: str) -> None:
    async with Journal.connect(url, wallet=secrets.token_hex(4)) as journal:
        assert (journal.client.is_connected, journal.client.is_closed) == (True, False)
    assert (journal.client.is_connected, journal.client.is_closed) == (False, True)
    with pytest.raises(StreamRefused, match="not connected"):
        await journal.append("ask", b"a ghost", wait_s=WITHIN_S)


async def test_documents_beside_the_stream_are_kept_in_a_bucket(journal: Journal) -> None:
    bucket = f"PURSE_{journal.names.wallet}_days"
    jetstream = journal.client.jetstream()
    with pytest.raises(BucketNotFoundError):
        await jetstream.key_value(bucket)
    await jetstream.create_key_value(bucket=bucket, history=1)
    await jetstream.key_value(bucket)
    await journal.keep(bucket, "jev.total", b"{}", wait_s=WITHIN_S)
