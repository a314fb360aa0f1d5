"""Data of an earlier build under this one, and data of a later one: the first goes on, the second is left as it is.

`tests/releases` has the earlier folders and says how they were made.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Awaitable, Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import pytest
from command_line import clean_environment, run  # noqa: F401  they act on every test here
from integration.rig import append, change_stream, engine_on, eventually, record_of
from running_purse import environment, running_purse

from engine.core.chain import link, seal
from engine.core.messages import ApplyPlan, Clock, Entry, Settle, Told
from engine.core.plan import digest
from engine.core.wallet import SCHEMA
from engine.embedded import embedded_nats
from engine.journal import Journal
from engine.recorded import Recorded

RELEASES = Path(__file__).parents[1] / "releases"
NAMES = sorted(file.name.removesuffix(".tar.xz") for file in RELEASES.glob("*.tar.xz"))
COST = 200_000_000  # of the hold that was open, in nano-dollars: of 0.25 it cost 0.20
Later: TypeAlias = Callable[[Path, pytest.MonkeyPatch], Awaitable[None]]
FIELDS = ("limit", "settled", "held", "extra")


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def data(name: str, tmp_path: Path) -> Path:
    return unpacked(name, tmp_path)


def unpacked(name: str, folder: Path) -> Path:
    with tarfile.open(RELEASES / f"{name}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "data"


def then(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RELEASES / f"{name}.then.json").read_text())
    return found


def figures(budgets: list[dict[str, Any]]) -> dict[str, tuple[str, ...]]:
    """What each budget that is shared says, be it as a status or an audit has it."""
    shared = (one for one in budgets if one.get("each") is None)
    return {one.get("name") or one["budget"]: tuple(one[field] for field in FIELDS) for one in shared}


async def settled_meanwhile(data: Path) -> None:
    """What a client appends while its wallet is being upgraded: the cost of the hold that was open.

    The folder may be years old by now and the hold long forgotten, so the same message says that no time has passed.
    """
    async with embedded_nats(data, wallet="main") as server, Journal.connect(server.url) as journal:
        seq = await append(journal, Settle("open", {"usd": COST}))
        settle = await journal.read(seq)
        assert settle is not None
        await append(journal, Clock("no-time-passed", settle.ts, settle.ts + 1, "an upgrade takes no time"))


def test_a_wallet_of_an_earlier_build_goes_on(name: str, data: Path) -> None:
    recorded = then(name)
    moment, old = recorded["status"]["as_of"], figures(recorded["status"]["budgets"])
    looked = run("audit", "--at", moment, "--no-keep", "--json", "--data", str(data))
    assert figures(json.loads(looked.output)["budgets"]) == old
    asyncio.run(settled_meanwhile(data))
    with running_purse(data) as purse:
        said = [json.loads(line) for log in ("engine.log", "projector.log") for line in lines(data / "logs" / log)]
        skipped = [line for line in said if line["event"] == "snapshot_skipped"]
        number = int(name.rpartition("-")[2])
        assert bool(skipped) == (number != SCHEMA), "its snapshots are read where they are ours, and only there"
        assert all(f"schema {number}, this release reads schema {SCHEMA}" in line["why"] for line in skipped)

        now = figures(json.loads(purse.ask("--json", "status").output)["budgets"])["total"]
        assert now == (old["total"][0], added(old["total"][1], "0.2"), "0", "0"), "the open hold is settled"
        assert purse.ask("hold", "--id", "new", "--amount", "usd=0.01").exit_code == 0
        assert purse.ask("settle", "new", "--amount", "usd=0.01").exit_code == 0

        audited = run("audit", moment[:10], "--data", str(data))
        assert audited.exit_code == 0, audited.output
        rebuilt = run("rebuild", "--dry-run", "--data", str(data))
        assert rebuilt.exit_code == 0, rebuilt.output


def lines(log: Path) -> list[str]:
    return log.read_text().splitlines()


def added(amount: str, more: str) -> str:
    return str(Decimal(amount) + Decimal(more))


# --- data of a later build --------------------------------------------------------------------------------------------


async def rules_2(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build that knows rules 2 has put a plan in force that asks for them."""
    async with (
        embedded_nats(data, wallet="main") as server,
        Journal.connect(server.url) as journal,
        engine_on(server.url_for("engine"), "main") as later,
    ):
        monkeypatch.setattr("engine.core.plan.RULES", 2)
        plan = later.service.wallet.plan
        assert plan is not None
        newer = msgspec.structs.replace(plan, rules=2)
        seq = await append(journal, ApplyPlan("rules-2", newer, digest(plan)))
        await eventually(lambda: later.service.told_seq > seq)
    monkeypatch.undo()


async def stream_2(data: Path, _: pytest.MonkeyPatch) -> None:
    """A build that sets streams otherwise has said so in the stream's metadata."""
    async with embedded_nats(data) as server, Journal.connect(server.url) as journal:
        await change_stream(journal, metadata={"commonpurse.format": "2"})


async def message_2(data: Path, _: pytest.MonkeyPatch) -> None:
    """A build that stores other messages has told something in one of version 2."""
    async with embedded_nats(data) as server, Journal.connect(server.url) as journal:
        newest = await journal.last_of("told")
        assert newest is not None
        last = Recorded.read(newest)
        seq = await append(journal)
        tick = await journal.read(seq)
        assert tick is not None
        entry = Entry(seq, max(tick.ts, last.told.told[-1].at))
        body = msgspec.json.encode(Told(v=2, engine="later", upto=seq, n=1, told=[entry]))[:-1]
        linked = link(last.chain, [(tick.seq, tick.ts, tick.data)], body)
        await journal.append("told", seal(body, linked), wait_s=30)


async def record(data: Path) -> list[tuple[int, bytes]]:
    async with embedded_nats(data) as server, Journal.connect(server.url) as journal:
        return [(stored.seq, stored.data) for stored in await record_of(journal)]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (rules_2, r"the plan in force since message 65 asks for rules 2, this release knows rules 1: a later release"),
        (stream_2, r"format is '2', this release reads '1'"),
        (message_2, r"sequence 66 is a message of version 2, this release reads 1: a later release"),
    ],
    ids=["rules", "stream", "messages"],
)
def test_a_wallet_of_a_later_build_is_refused_and_left_as_it_is(
    written: Later, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = unpacked(NAMES[-1], tmp_path)
    asyncio.run(written(data, monkeypatch))
    before = asyncio.run(record(data))
    refused = subprocess.run(
        [sys.executable, "-m", "commonpurse", "up", "--data", str(data), "--port", "0"],
        env=environment(), capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert refused.returncode in (1, 4)
    assert re.search(said, refused.stderr), refused.stderr
    doctor, audit = run("doctor", "--data", str(data)), run("audit", "today", "--data", str(data))
    for command in (doctor, audit):
        assert re.search(said, command.output), command.output
        assert command.exit_code != 0
    assert "Put back" not in doctor.output
    assert asyncio.run(record(data)) == before
