"""The journal on the real server: settings, appends that are retried, a stream that is full, gone or not ours."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

import msgspec
import pytest
from integration import rig
from integration.rig import eventually, make_stream
from integration.wire import Wire, acknowledgements, nothing
from nats.aio.msg import Msg

from engine.embedded import EmbeddedServer
from engine.errors import Misconfigured, NoAnswer, StreamRefused
from engine.journal import Journal


class Config(msgspec.Struct):
    config: dict[str, object]


async def config_of(journal: Journal) -> Mapping[str, object]:
    return (await journal.api(f"STREAM.INFO.{journal.names.stream}", {}, Config)).config


async def test_the_stream_is_made_with_the_settings_that_money_needs(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with Journal.connect(nats_server.url, wallet=wallet_name) as journal:
        await journal.ensure_stream()
        await journal.ensure_stream()  # a second time changes nothing
        config = await config_of(journal)
    wanted = {
        "name": f"PURSE_{wallet_name}",
        "subjects": [f"purse.{wallet_name}.{kind}" for kind in ("ask", "admin", "told")],
        "retention": "limits",
        "storage": "file",
        "discard": "new",
        "num_replicas": 1,
        "duplicate_window": 120 * 10**9,
        "deny_delete": True,
        "deny_purge": True,
        "allow_direct": True,
        "max_age": 0,
    }
    assert {field: config[field] for field in wanted} == wanted


@pytest.mark.parametrize(
    ("field", "drifted"),
    [
        ("subjects", ["purse.WALLET.>"]),
        ("storage", "memory"),
        ("discard", "old"),
        ("duplicate_window", 10**9),
        ("deny_delete", False),
        ("deny_purge", False),
        ("allow_direct", False),
        ("compression", "s2"),
        ("max_msg_size", 1024),
        ("max_age", 3600 * 10**9),
        ("max_msgs_per_subject", 1000),
        ("allow_msg_ttl", True),
        ("no_ack", True),
        ("format", None),
    ],
)
async def test_a_stream_whose_settings_drifted_is_refused_by_the_name_of_the_setting(
    nats_server: EmbeddedServer, wallet_name: str, field: str, drifted: object
) -> None:
    changed = {"metadata": {}} if field == "format" else {field: drifted}
    if field == "subjects":
        changed = {"subjects": [f"purse.{wallet_name}.>"]}
    async with Journal.connect(nats_server.url, wallet=wallet_name) as journal:
        await make_stream(journal, **changed)
        with pytest.raises(Misconfigured, match=rf"{field} is "):
            await journal.check_stream()
        with pytest.raises(Misconfigured, match=rf"{field} is "):
            await journal.ensure_stream()


async def test_a_stream_with_a_size_of_its_own_is_fine(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with Journal.connect(nats_server.url, wallet=wallet_name) as journal:
        await make_stream(journal, max_bytes=10**6, max_msgs=10**6)
        await journal.check_stream()


async def test_a_wallet_without_a_stream_says_who_makes_it(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with Journal.connect(nats_server.url, wallet=wallet_name) as journal:
        with pytest.raises(StreamRefused, match="purse up") as refused:
            await journal.check_stream()
        assert refused.value.code == 404
        with pytest.raises(StreamRefused) as refused:
            await journal.append("ask", b"{}", wait_s=rig.WITHIN_S)
        assert refused.value.code == 503


async def test_what_is_appended_is_read_back_with_its_sequence_and_time(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with Journal.connect(nats_server.url, wallet=wallet_name) as journal:
        await journal.ensure_stream()
        before = await journal.now()
        appended = await journal.append("admin", b"some bytes \x00\xff", wait_s=rig.WITHIN_S)
        stored = await journal.read(appended.seq)
        assert stored is not None
        assert (stored.seq, stored.kind, stored.data) == (1, "admin", b"some bytes \x00\xff")
        assert before <= stored.ts <= await journal.now()
        assert await journal.read(2) is None
        assert await journal.last_seq() == 1


async def test_a_retry_under_the_same_name_is_a_duplicate_and_the_message_is_there(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    async with Journal.connect(nats_server.url, wallet=wallet_name) as journal:
        await journal.ensure_stream()
        first = await journal.append("ask", b"once", wait_s=rig.WITHIN_S, msg_id="a.1")
        again = await journal.append("ask", b"once", wait_s=rig.WITHIN_S, msg_id="a.1")
        assert (first.duplicate, again.duplicate) == (False, True)
        assert again.seq == first.seq
        assert await journal.stored_as(b"once", again)
        assert not await journal.stored_as(b"another", again)
        assert await journal.last_seq() == 1


async def test_m7_a_publish_that_times_out_although_it_was_stored_is_found_by_its_name(
    nats_server: EmbeddedServer, wallet_name: str, wire: Wire
) -> None:
    async with Journal.connect(wire.url, wallet=wallet_name) as journal:
        await journal.ensure_stream()
        wire.lose = acknowledgements
        with pytest.raises(NoAnswer):
            await journal.append("ask", b"once", wait_s=0.2, msg_id="a.1")
        await eventually(lambda: wire.lost == 1)
        wire.lose = nothing
        again = await journal.append("ask", b"once", wait_s=rig.WITHIN_S, msg_id="a.1")
        assert again.duplicate
        assert await journal.stored_as(b"once", again)
        assert await journal.last_seq() == 1


async def test_only_the_first_told_takes_a_place(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with Journal.connect(nats_server.url, wallet=wallet_name) as journal:
        await journal.ensure_stream()
        await journal.append("ask", b"{}", wait_s=rig.WITHIN_S)
        first = await journal.append("told", b"one", wait_s=rig.WITHIN_S, after_told=0)
        await journal.append("ask", b"{}", wait_s=rig.WITHIN_S)  # asks do not move the fence
        with pytest.raises(StreamRefused) as refused:
            await journal.append("told", b"two", wait_s=rig.WITHIN_S, after_told=0)
        assert refused.value.code == 10071
        await journal.append("told", b"two", wait_s=rig.WITHIN_S, after_told=first.seq)


async def test_nothing_is_kept_for_later_while_there_is_no_connection(
    own_server: EmbeddedServer, wallet_name: str
) -> None:
    async with Journal.connect(own_server.url, wallet=wallet_name) as journal:
        await journal.ensure_stream()
        await own_server.stop()
        await eventually(lambda: not journal.client.is_connected)
        for _ in range(20):
            began = time.monotonic()
            with pytest.raises(StreamRefused, match="not connected"):
                await journal.append("ask", b"a ghost", wait_s=rig.WITHIN_S)
            assert time.monotonic() - began < rig.WITHIN_S / 2, "it was refused at once, not waited for"
        await own_server.start()
        await eventually(lambda: journal.client.is_connected)
        appended = await journal.append("ask", b"alive", wait_s=rig.WITHIN_S)
        assert appended.seq == 1, "what was refused while there was no connection came later"


async def test_a_connection_can_be_given_up_while_the_server_is_gone(
    own_server: EmbeddedServer, wallet_name: str
) -> None:
    async with Journal.connect(own_server.url, wallet=wallet_name) as journal:
        await journal.ensure_stream()
        hanging = asyncio.create_task(journal.append("ask", b"{}", wait_s=0.5))
        await own_server.stop()
        await eventually(lambda: not journal.client.is_connected)
    await asyncio.wait([hanging])
    hanging.exception()  # stored or not, both are fine


async def test_a_connection_that_the_server_ends_with_an_error_heals(
    nats_server: EmbeddedServer, wallet_name: str, wire: Wire
) -> None:
    async with Journal.connect(wire.url, wallet=wallet_name) as journal:
        await journal.ensure_stream()
        reconnected = asyncio.Event()
        journal.on_reconnect.append(reconnected.set)
        wire.say(b"-ERR 'Authentication Expired'\r\n")
        await eventually(reconnected.is_set)
        assert (await journal.append("ask", b"{}", wait_s=rig.WITHIN_S)).seq == 1


async def test_a_cancellation_that_comes_together_with_an_answer_is_not_swallowed(
    nats_server: EmbeddedServer, wallet_name: str
) -> None:
    """A process that was told to end at that moment would run on."""
    async with Journal.connect(nats_server.url, wallet=wallet_name) as journal:
        await journal.ensure_stream()

        async def cancel(_: Msg) -> None:
            asking.cancel()

        await journal.client.subscribe(f"{journal._inbox}.*", cb=cancel)
        asking = asyncio.create_task(journal.last_seq())
        with pytest.raises(asyncio.CancelledError):
            await asking


async def test_a_full_stream_refuses_and_forgets_nothing(nats_server: EmbeddedServer, wallet_name: str) -> None:
    async with Journal.connect(nats_server.url, wallet=wallet_name) as journal:
        await make_stream(journal, max_bytes=4096)
        for _ in range(3):
            await journal.append("ask", b"x" * 1000, wait_s=rig.WITHIN_S)
        with pytest.raises(StreamRefused) as refused:
            await journal.append("ask", b"x" * 1000, wait_s=rig.WITHIN_S)
        assert refused.value.code == 10077
        first = await journal.read(1)
        assert first is not None
        assert first.data == b"x" * 1000


async def test_wrong_credentials_are_said_clearly_and_not_repeated(
    nats_server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.journal.CONNECT_WAIT_S", 1.0)
    with pytest.raises(Misconfigured, match="refuses these credentials") as refused:
        async with Journal.connect(nats_server.url.replace("purse:", "purse:guessed-")):
            pytest.fail("connected with a wrong password")
    said = f"{refused.value!r} {refused.value.__cause__!r}"
    assert "guessed" not in said
    assert nats_server.url.split(":")[2].split("@")[0] not in said
    assert "127.0.0.1" in said


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost",
        "http://u:secret@h:1",
        "nats://",
        "nats://u:secret@h:port",
        "nats://u:secret@h:99999",
        "nats://u:secret@[::1",
        "nats://u:sec#ret@h:4222",
        "nats://u:secret@h:4222,",
    ],
)
async def test_an_address_that_is_none_is_said_and_not_repeated(url: str) -> None:
    with pytest.raises(Misconfigured, match="expected nats://user:password@host:port") as refused:
        async with Journal.connect(url):
            pytest.fail("connected to nowhere")
    assert "sec" not in str(refused.value)


@pytest.mark.parametrize("name", ["", "a.b", "a b", "*", ">", "x" * 33, "ä"])
async def test_a_wallets_name_is_one_word(nats_server: EmbeddedServer, name: str) -> None:
    with pytest.raises(Misconfigured, match="the wallet's name"):
        async with Journal.connect(nats_server.url, wallet=name):
            pytest.fail("connected")


async def test_a_server_that_is_not_there_is_said_within_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.journal.CONNECT_WAIT_S", 0.5)
    with pytest.raises(NoAnswer, match=r"127\.0\.0\.1:1 "):
        async with Journal.connect("nats://user:secret@127.0.0.1:1"):
            pytest.fail("connected to nobody")
