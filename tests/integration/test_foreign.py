"""A client that names another's subject as its inbox: what the server then writes there stops nobody."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from integration import rig
from integration.rig import Started, append, audited, engine_on, eventually, projector_on, told
from integration.test_audit import EVER

from commonpurse.doctor import examine
from commonpurse.findings import Patient
from engine.client import Purse
from engine.core.messages import ApplyPlan, AskMessage, Held, Hold, Invalid, Option
from engine.core.plan import Plan
from engine.embedded import EmbeddedServer, embedded_nats
from engine.foreign import is_foreign
from engine.journal import Journal
from engine.service import Engine
from projector.audit.running import audit
from projector.export.raw import export_raw
from projector.reading import StreamSource

VERIFY = Path(__file__).parents[2] / "examples" / "verify.py"
TOLD, ADMIN = "purse.main.told", "purse.main.admin"
INFO, GET = "$JS.API.STREAM.INFO.PURSE_main", "$JS.API.STREAM.MSG.GET.PURSE_main"
NOTHING = msgspec.json.encode(AskMessage(asks=[]))
WAYS: list[tuple[str, bytes, dict[str, str]]] = [
    ("purse.main.ask", NOTHING, {}),  # acknowledged
    ("purse.main.ask", NOTHING, {"Nats-Expected-Last-Sequence": "1"}),  # refused
    ("purse.main.ask", NOTHING, {"Nats-Msg-Id": "twice"}),  # a duplicate, from the second time on
    ("purse.main.ask", b"\x00 no JSON", {}),
    (INFO, b"", {}),
    (INFO, b"no JSON", {}),
    (GET, b'{"last_by_subj":"purse.main.told"}', {}),  # holds a told, as text in a field
    (GET, b'{"seq":1}', {}),
    (GET, b'{"seq":1000000}', {}),
    (GET, b"", {}),
]
"""All that a client may publish and the server itself answers."""


class Wallet:
    """A wallet on a server of its own: the operator's connection, and one of a program that may only ask."""

    def __init__(self, server: EmbeddedServer, operator: Journal, client: Journal, purse: Purse) -> None:
        self.server, self.operator, self.client, self.purse = server, operator, client, purse
        self.held = 0

    async def mischief(self, times: int, *, at: str = TOLD) -> None:
        """All ways in turn, and a hold that is granted after each."""
        for number in range(times):
            subject, data, headers = WAYS[number % len(WAYS)]
            await self.client.client.publish(subject, data, reply=at, headers=headers or None)
            await self.client.client.flush()
            await self.hold()

    async def mischief_alone(self) -> None:
        """All ways, while no engine runs."""
        for subject, data, headers in WAYS:
            await self.client.client.publish(subject, data, reply=TOLD, headers=headers or None)
        await self.client.client.flush()

    async def hold(self) -> None:
        ask = Hold(f"h{self.held}", [Option({"usd": 1})], by=self.purse.by(60))
        assert isinstance((await self.purse.ask(ask, wait_s=60)).outcome, Held)
        self.held += 1

    async def foreign(self) -> int:
        return sum(one.kind == "void" and is_foreign(one.data) for one in await rig.record_of(self.operator))

    @asynccontextmanager
    async def engine(self, *, patience_s: float = 0.0, data: Path | None = None) -> AsyncIterator[Started[Engine]]:
        async with engine_on(self.server.url_for("engine"), "main", patience_s=patience_s, data=data) as started:
            yield started


@asynccontextmanager
async def wallet_in(folder: Path) -> AsyncIterator[Wallet]:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(embedded_nats(folder, wallet="main"))
        operator = await stack.enter_async_context(Journal.connect(server.url))
        await operator.ensure_stream()
        await append(operator, ApplyPlan("p", Plan({"jev": rig.JEV}), ""))
        client = await stack.enter_async_context(Journal.connect(server.url_for("client")))
        purse = await stack.enter_async_context(Purse.connect(server.url_for("client")))
        yield Wallet(server, operator, client, purse)


async def test_a_client_that_has_the_server_write_among_the_tolds_stops_nobody(tmp_path: Path) -> None:
    async with wallet_in(tmp_path) as wallet:
        async with (
            projector_on(wallet.server.url_for("projector"), "main") as projector,
            wallet.engine(patience_s=0.3),
        ):
            async with wallet.engine(data=tmp_path):
                await wallet.mischief(50)
            await wallet.mischief(len(WAYS))  # the other takes over, behind what lies there
            await told(wallet.operator)
            await eventually(lambda: f"h{wallet.held - 1}" in projector.service.projection.wallet.open)
        await wallet.mischief_alone()
        async with wallet.engine(data=tmp_path), wallet.engine():  # from a snapshot, and from the beginning
            await wallet.mischief(len(WAYS))
        await proves(wallet, tmp_path)


async def proves(wallet: Wallet, folder: Path) -> None:
    """Audit, the stand-alone verifier and the doctor find the record right, and say what lies there."""
    foreign = await wallet.foreign()
    assert foreign >= 60
    found = await audited(wallet.operator)
    assert (found.count(Held), found.untold) == (wallet.held, 0)
    source = StreamSource(wallet.operator)
    report = await audit(source, EVER)
    assert (report.right, report.read["foreign"]) == (True, foreign)
    assert any("answers of the NATS server" in one for one in report.unchecked)
    await export_raw(source, folder / "record.jsonl")
    verified = subprocess.run(  # noqa: ASYNC221  # nothing else runs
        [sys.executable, str(VERIFY), str(folder / "record.jsonl")], capture_output=True, text=True, check=False
    )
    assert verified.returncode == 0, verified.stdout
    assert f"{foreign:,} answers of the broker" in verified.stdout
    doctor = await examine(Patient(data=folder, nats=wallet.server.url))
    [says] = [one for one in doctor.findings if one.check == "foreign"]
    assert (says.state, f"{foreign:,} answers" in says.says) == ("warning", True)
    assert not [one for one in doctor.findings if one.state == "untrusted"]


async def test_what_the_server_writes_among_what_operators_say_is_an_ask_that_cannot_be_read(tmp_path: Path) -> None:
    async with wallet_in(tmp_path) as wallet, wallet.engine():
        await wallet.mischief(2 * len(WAYS), at=ADMIN)
        await wallet.mischief(len(WAYS), at="purse.main.ask")
        found = await told(wallet.operator)
        record = await rig.record_of(wallet.operator)
        there = [one.seq for one in record if is_foreign(one.data) and one.kind in ("admin", "ask")]
        assert len(there) >= 3 * len(WAYS)
        assert all([type(out) for out in found.entries[seq].out] == [Invalid] for seq in there)
        assert found.count(Held) == wallet.held


async def test_what_is_neither_a_told_nor_the_servers_still_stops_an_engine(tmp_path: Path) -> None:
    async with wallet_in(tmp_path) as wallet, wallet.engine() as engine:
        await wallet.hold()
        await wallet.operator.append("told", b'{"stream":"PURSE_main","told":[]}', wait_s=rig.WITHIN_S)
        assert "cannot be read" in str(await engine.end())


@pytest.mark.parametrize("word", ["ready", "read.status", "read.details", "figures"])
async def test_nobody_of_ours_answers_into_the_record(tmp_path: Path, word: str) -> None:
    async with (
        wallet_in(tmp_path) as wallet,
        wallet.engine(),
        projector_on(wallet.server.url_for("projector"), "main"),
    ):
        await wallet.hold()
        last = await wallet.operator.last_seq()
        await wallet.operator.client.publish(f"purse.main.{word}", b"2026-11-30", reply=ADMIN)
        await wallet.hold()  # what was asked before it was read before it
        record = await rig.record_of(wallet.operator)
        assert [one.kind for one in record if one.seq > last] == ["ask", "told"]
