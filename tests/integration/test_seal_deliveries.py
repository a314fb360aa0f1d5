"""Seals at a second stream and at a webhook: each once, also when everything begins anew."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
import pytest
from integration.rig import eventually
from nats.js.api import StreamConfig
from scripted_upstream import scripted_upstream

from engine.core.messages import Seal, SealedBudget
from engine.embedded import EmbeddedServer
from engine.journal import Journal
from projector.delivery.parcel import NotTaken, Parcel
from projector.delivery.second_stream import SecondStream
from projector.delivery.sent import FOLDER
from projector.seals.deliveries import delivering
from projector.seals.settings import SealSettings
from projector.seals.witness import Line, SealWitness


def line(day: str) -> Line:
    return Line(12, "ab" * 32, 11, 99, Seal(day, 86_400, 4, 0, {"jev": SealedBudget(day, 100, 5)}))


LINES = [line("2026-11-30"), line("2026-12-01")]


@pytest.fixture
async def elsewhere(nats_server: EmbeddedServer, wallet_name: str) -> AsyncIterator[Journal]:
    """A stream of somebody else's, for `<wallet name>.>`."""
    async with Journal.connect(nats_server.url, wallet=wallet_name) as journal:
        await journal.client.jetstream().add_stream(
            StreamConfig(name=f"SEALS_{wallet_name}", subjects=[f"{wallet_name}.>"])
        )
        yield journal


async def stored(journal: Journal, wallet_name: str) -> list[bytes]:
    jetstream = journal.client.jetstream()
    info = await jetstream.stream_info(f"SEALS_{wallet_name}")
    found = [await jetstream.get_msg(f"SEALS_{wallet_name}", seq) for seq in range(1, info.state.messages + 1)]
    return [one.data or b"" for one in found]


@asynccontextmanager
async def delivered(settings: SealSettings, data: Path) -> AsyncIterator[None]:
    async with delivering(settings, data, "main") as deliveries:
        task = asyncio.create_task(deliveries.run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def notes(data: Path, name: str) -> int:
    file = data / FOLDER / f"main-seals-{name}.ids"
    return len(file.read_text().splitlines()) if file.exists() else 0


async def test_each_seal_reaches_stream_and_webhook_once_and_also_those_from_before(
    nats_server: EmbeddedServer, elsewhere: Journal, wallet_name: str, tmp_path: Path
) -> None:
    witness = SealWitness(tmp_path, "main")
    witness.see(LINES[0])
    witness.write()
    async with scripted_upstream() as hook:
        hook.answers({}, status=200)
        settings = SealSettings(
            nats_url=nats_server.url, subject=wallet_name, webhook_url=hook.base_url + "/hook", webhook_secret="s"
        )
        async with delivered(settings, tmp_path):
            await eventually(lambda: notes(tmp_path, "stream") == notes(tmp_path, "webhook") == 1)
            witness.see(LINES[1])
            witness.write()
            await eventually(lambda: notes(tmp_path, "stream") == notes(tmp_path, "webhook") == 2)
        assert [msgspec.json.decode(one, type=Line) for one in await stored(elsewhere, wallet_name)] == LINES
        assert [msgspec.json.decode(one.raw, type=Line) for one in hook.asked] == LINES

        (tmp_path / FOLDER / "main-seals-stream.ids").unlink()  # as if the process had ended before it noted them
        async with delivered(settings, tmp_path):
            await eventually(lambda: notes(tmp_path, "stream") == 2)
        assert len(await stored(elsewhere, wallet_name)) == 2
        assert len(hook.asked) == 2


async def test_a_stream_that_is_not_there_or_a_server_that_is_not_takes_nothing(
    nats_server: EmbeddedServer, wallet_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.journal.CONNECT_WAIT_S", 0.5)
    for url in (nats_server.url, "nats://someone:hunter2@127.0.0.1:9"):
        with pytest.raises(NotTaken) as refused:
            await SecondStream(url, f"nobody.{wallet_name}").carry(Parcel("seal:main:2026-11-30", b"{}"))
        assert "hunter2" not in str(refused.value)


async def test_another_seal_of_the_same_day_does_not_replace_the_first(
    nats_server: EmbeddedServer, elsewhere: Journal, wallet_name: str
) -> None:
    second = SecondStream(nats_server.url, wallet_name)
    for body in (b"1", b"2"):
        await second.carry(Parcel("seal:main:2026-11-30", body))
    assert await stored(elsewhere, wallet_name) == [b"1"]
