"""Looks into the past on a real stream: by processes of their own, the same as the audit's, and gone with who asked."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import msgspec
import pytest
from integration import rig
from integration.rig import engine_on, eventually, projector_on, wallet_on

from engine.client import Purse
from engine.core.amounts import SCALES
from engine.core.messages import Held
from engine.embedded import embedded_nats
from engine.journal import Journal
from engine.stream_clock import written
from projector.audit.looking import LookAtLife, LookAtMoment, SeenLife, look, look_apart
from projector.reading import StreamSource

WALLET = "main"
NS = 1_000_000_000


def children() -> set[str]:
    """The processes that this one has started and that run."""
    found = Path("/proc/self/task")
    return {one for task in found.iterdir() for one in (task / "children").read_text().split()}


async def test_a_look_in_a_process_of_its_own_sees_what_the_audit_says(tmp_path: Path) -> None:
    async with (
        embedded_nats(tmp_path, wallet=WALLET) as server,
        wallet_on(server.url, WALLET) as journal,
        engine_on(server.url, WALLET, data=tmp_path),
        projector_on(server.url, WALLET, data=tmp_path),
        Purse.connect(server.url, wallet=WALLET, data=tmp_path) as client,
    ):
        assert isinstance(await client.hold({"usd": "0.05"}, id="a", labels={"user": "alice"}), Held)
        await client.settle("a", {"usd": "0.02"})
        await client.hold({"usd": "5"}, id="b")
        now = await journal.now()
        at = now // NS * NS + NS  # a whole second, as the command takes it
        moment = (await look_apart(LookAtMoment(WALLET, at, server.url, str(tmp_path)))).moment
        life = (await look_apart(LookAtLife(WALLET, "a", 0, dict(SCALES), server.url))).life
        refused = (await look_apart(LookAtLife(WALLET, "b", None, dict(SCALES), server.url))).life
        async with rig.process_of(
            ["-m", "commonpurse", "audit", "--at", written(at), "--data", str(tmp_path), "--json"]
        ) as process:
            said = json.loads(await process.output())
        assert moment is not None
        assert {**msgspec.to_builtins(moment), "start": 0} == {**said, "start": 0}
        assert life is not None
        assert [event.outcome["outcome"] for event in life.events] == ["held", "settled"]
        assert life.events == (await here(journal, "a")).events
        assert refused is not None
        assert refused.events[0].outcome["outcome"] == "exhausted"


async def here(journal: Journal, id: str) -> SeenLife:
    """The same look in this process."""
    seen = await look(StreamSource(journal), LookAtLife(WALLET, id, 0, dict(SCALES)))
    assert seen.life is not None
    return seen.life


async def test_a_look_ends_with_whoever_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    before = children()
    asked = asyncio.create_task(look_apart(LookAtMoment(WALLET, 1, "nats://192.0.2.1:4222")))
    await eventually(lambda: children() - before)
    asked.cancel()
    await asyncio.wait([asked])
    assert asked.cancelled()
    assert children() - before == set()


async def test_a_look_at_a_stream_that_is_not_there_says_so(tmp_path: Path) -> None:
    seen = await look_apart(LookAtMoment(WALLET, 1, "nats://127.0.0.1:9"))
    assert seen.error
    assert seen.moment is None
