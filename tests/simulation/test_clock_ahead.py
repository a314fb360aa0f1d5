"""A server whose clock steps ten minutes forward, and back: what a real one cannot be made to do in a test.

asks at their true time ── told          ten minutes ahead ── stamped, not told          put right ── skipped, told
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
import structlog
from simulation.memory_nats import MemoryServer
from simulation.storm import Storm
from simulation.virtual_time import Process, VirtualLoop, virtual_time
from simulation.world import MIDNIGHT_NS, NATS, NS, PLAN, WALLET

from commonpurse.doctor import Patient, Report, examine
from commonpurse.proof import Proof, Record
from engine.core.messages import ApplyPlan, AskMessage, Entry, Hold, Option, Told
from engine.errors import Untrusted
from engine.journal import Journal, Stored
from engine.service import Engine

AHEAD_S = 600
WITHIN_S = 60.0


class Scene:
    """One server, and whatever a test starts on it. Midnight is five minutes away."""

    def __init__(self, tmp_path: Path) -> None:
        self.data = tmp_path
        self.processes: list[Process] = []

    def play(self, acts: Callable[[Scene], Awaitable[None]]) -> None:
        began_ns = MIDNIGHT_NS - 300 * NS
        with virtual_time(began_ns=began_ns, seed=1) as loop, structlog.testing.capture_logs():
            loop.run_until_complete(self._run(acts, loop))

    async def _run(self, acts: Callable[[Scene], Awaitable[None]], loop: VirtualLoop) -> None:
        storm = Storm(1)
        storm.begin(loop.time)
        storm.calm = True
        self.server = MemoryServer(storm)
        with self.server.instead_of_nats():
            try:
                async with Journal.connect(NATS, wallet=WALLET) as journal:
                    await journal.ensure_stream()
                    await self.append(journal, ApplyPlan("first", PLAN, ""), kind="admin")
                await acts(self)
            finally:
                for process in self.processes:
                    process.bury()
                await asyncio.sleep(5)

    async def append(self, journal: Journal, *asks: ApplyPlan | Hold, kind: str = "ask") -> int:
        raw = msgspec.json.encode(AskMessage(asks=list(asks)))
        return (await journal.append(kind, raw, wait_s=5)).seq  # type: ignore[arg-type]  # it is one of the three

    async def ask(self, *asks: Hold) -> int:
        async with Journal.connect(NATS, wallet=WALLET) as journal:
            return await self.append(journal, *asks)

    def hold(self, id: str, *, ttl_s: int) -> Hold:
        by = self.server.now() + 5 * NS
        return Hold(id, [Option({"usd": 10_000_000})], by=by, labels={"provider": "jev"}, ttl_s=ttl_s)

    async def engine(self, *, until: Callable[[Engine], bool] | None = None) -> Engine:
        """Run one until it has come so far. Raises what ends it before."""
        process = Process(f"engine{len(self.processes)}")
        self.processes.append(process)
        made: list[Engine] = []

        async def work() -> None:
            async with Journal.connect(NATS, wallet=WALLET, name="engine") as journal:
                made.append(Engine(journal, instance=process.name))
                await made[0].run()

        task = process.spawn(work())
        async with asyncio.timeout(WITHIN_S):
            while not task.done() and (until is None or not made or not until(made[0])):  # noqa: ASYNC110  # no wall clock
                await asyncio.sleep(0.1)
        if task.done():
            task.result()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        return made[0]

    async def stopped(self) -> str:
        """Why an engine stops."""
        with pytest.raises(BaseExceptionGroup) as caught:
            await self.engine()
        (error,) = caught.value.exceptions
        assert isinstance(error, Untrusted), error
        return str(error)

    async def doctor(self, *, skip_time: bool) -> Report:
        patient = Patient(data=self.data, wallet=WALLET, nats=NATS, now=lambda: time.time_ns())
        return await examine(patient, skip_time=skip_time, by_whom="ops", reason="a dead battery")

    @property
    def record(self) -> list[Stored]:
        return self.server.streams[f"PURSE_{WALLET}"].record

    @property
    def entries(self) -> dict[int, Entry]:
        tolds = [msgspec.json.decode(stored.data, type=Told) for stored in self.record if stored.kind == "told"]
        return {entry.seq: entry for told in tolds for entry in told.told}

    def proof(self) -> Proof:
        record = Record(WALLET)
        for stored in self.record:
            record.take(stored)
        return record.proof()


def told_up_to(seq: int) -> Callable[[Engine], bool]:
    return lambda engine: engine.wallet.upto >= seq and not engine._decided


def test_a_clock_that_stepped_forward_and_back_costs_no_lapse_and_no_reset(tmp_path: Path) -> None:
    async def acts(scene: Scene) -> None:
        before = await scene.ask(scene.hold("before", ttl_s=120))
        await scene.engine(until=told_up_to(before))

        scene.server.clock_step_ns = AHEAD_S * NS  # over midnight, and past the end of `before`
        ahead = await scene.ask(scene.hold("ahead", ttl_s=60))
        why = await scene.stopped()
        assert f"message {ahead:,} bears the stamp" in why
        assert "set the wrong one right" in why
        report = await scene.doctor(skip_time=True)
        assert (report.exit_code, report.clock, scene.record[-1].seq) == (4, None, ahead)

        scene.server.clock_step_ns = 0
        assert "so it was wrong then: `purse doctor`" in await scene.stopped()
        report = await scene.doctor(skip_time=True)
        assert report.clock is not None, report.findings
        assert report.exit_code == 0

        after = await scene.ask(scene.hold("after", ttl_s=60))
        engine = await scene.engine(until=told_up_to(after))
        entries = scene.entries
        assert entries[ahead].at == entries[before].at < entries[ahead + 1].at
        assert all(not entry.lapsed for entry in entries.values())
        assert {meter.period for meter in engine.wallet.metering.values() if meter.budget == "jev"} == {"2026-11-30"}
        assert list(engine.wallet.open) == ["before", "ahead", "after"]
        state = engine.wallet.dump()

        await asyncio.sleep(AHEAD_S)  # the stamps are in the past now, and still count for nothing
        engine = await scene.engine(until=lambda engine: engine.ready.is_set())
        assert engine.wallet.dump() == state
        assert scene.entries == entries
        assert scene.proof().outcomes["held"] == 3

    Scene(tmp_path).play(acts)


def test_an_engine_as_wrong_as_the_server_tells_and_then_time_stands_still(tmp_path: Path) -> None:
    async def acts(scene: Scene) -> None:
        scene.server.clock_step_ns = 250 * NS  # less than an engine minds
        told = await scene.ask(scene.hold("told", ttl_s=600))
        await scene.engine(until=told_up_to(told))
        scene.server.clock_step_ns = 0
        later = await scene.ask(scene.hold("later", ttl_s=600))
        await scene.engine(until=told_up_to(later))
        assert scene.entries[later].at == scene.entries[told].at
        report = await scene.doctor(skip_time=True)
        assert (report.exit_code, report.clock) == (1, None)
        assert any("s in the future" in finding.says for finding in report.findings), report.findings

    Scene(tmp_path).play(acts)
