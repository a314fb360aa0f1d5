"""Day seals on the real server: the eager engine's tick seals a quiet day, and the projector's witness sees each once.

A day is brought to its end by a plan: Kiritimati is 25 hours ahead of Pago Pago, so any date of the one is over there.
"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
from integration.rig import CENT, DOLLAR, engine_on, eventually, process_of, projector_on, wallet_on
from integration.test_doctor import doctor, findings

from engine.client import Purse
from engine.core.messages import ApplyPlan, Held, Seal, Told
from engine.core.plan import Budget, Plan, digest
from engine.embedded import EmbeddedServer, embedded_nats
from engine.journal import Journal
from projector.audit.running import audit
from projector.day_range import parse
from projector.export.raw import export_raw
from projector.reading import StreamSource
from projector.seals.witness import Line, known, path_of

WALLET = "main"
VERIFY = Path(__file__).parents[2] / "examples" / "verify.py"
WEST = Plan({"jev": Budget("usd", DOLLAR, zone="Pacific/Pago_Pago")}, zone="Pacific/Pago_Pago")
EAST = msgspec.structs.replace(WEST, zone="Pacific/Kiritimati")


async def sealed_on(journal: Journal) -> list[Seal]:
    newest = await journal.last_of("told")
    if newest is None:
        return []
    told = msgspec.json.decode(newest.data, type=Told)
    return [seal for entry in told.told for seal in entry.sealed]


async def end_the_day(server: EmbeddedServer, data: Path) -> list[Seal]:
    """A wallet with a call of five cents, whose day a change of zone ends. The seals that a tick brought."""
    async with (
        wallet_on(server.url, WALLET, plan=WEST) as journal,
        engine_on(server.url, WALLET, data=data, snapshots=False),
        projector_on(server.url, WALLET, data=data, snapshots=False) as projector,
        Purse.connect(server.url, wallet=WALLET) as purse,
    ):
        assert isinstance(await purse.hold({"usd": "0.10"}, id="a"), Held)
        await purse.settle("a", {"usd": "0.05"})
        assert isinstance(await purse.hold({"usd": "0.10"}, id="b"), Held)
        await purse.ask(ApplyPlan("east", EAST, digest(WEST)))
        seals = await eventually(lambda: sealed_on(journal))
        await eventually(lambda: projector.service.projection.sealed)
        await eventually(lambda: list(known(path_of(data, WALLET)).lines.values()))
        return list(seals)


async def test_c7_a_tick_seals_the_day_on_which_nothing_comes_and_the_witness_sees_it(tmp_path: Path) -> None:
    async with embedded_nats(tmp_path) as server:
        seals = await end_the_day(server, tmp_path)
        [seal] = seals
        assert (seal.open_holds, seal.budgets["jev"].settled, seal.budgets["jev"].held) == (1, 5 * CENT, 10 * CENT)
        [line] = known(path_of(tmp_path, WALLET)).lines.values()
        assert (line.seal, line.seq > seal.upto) == (seal, True)
        written = path_of(tmp_path, WALLET).read_bytes()
        async with projector_on(server.url, WALLET, data=tmp_path, snapshots=False) as again:
            sealed = again.service.projection.sealed
            assert [one.day for one in sealed] == [seal.day]
        assert path_of(tmp_path, WALLET).read_bytes() == written


async def test_an_engine_started_again_tells_no_seal_twice(tmp_path: Path) -> None:
    async with embedded_nats(tmp_path) as server:
        await end_the_day(server, tmp_path)
        async with (
            engine_on(server.url, WALLET, data=tmp_path),
            Journal.connect(server.url, wallet=WALLET) as journal,
            Purse.connect(server.url, wallet=WALLET) as purse,
        ):
            assert isinstance(await purse.hold({"usd": "0.01"}, id="c"), Held)
            assert await sealed_on(journal) == []


async def test_audit_and_verifier_say_of_the_seal_what_stands_on_the_stream(tmp_path: Path) -> None:
    async with embedded_nats(tmp_path) as server:
        [seal] = await end_the_day(server, tmp_path)
        async with Journal.connect(server.url, wallet=WALLET) as journal:
            source = StreamSource(journal)
            report = await audit(source, parse(seal.day, zone=EAST.zone, now=0))
            await export_raw(source, tmp_path / "record.jsonl")
    assert (report.right, len(report.seals)) == (True, 1)
    [told] = report.seals
    assert (told["day"], told["upto"], told["open_holds"]) == (seal.day, seal.upto, seal.open_holds)
    assert told["budgets"] == {"jev": {"period": seal.day, "limit": "1", "settled": "0.05", "held": "0.1"}}
    async with process_of(["-I", "-S", str(VERIFY), str(tmp_path / "record.jsonl"), "--json"]) as verifier:
        verified = json.loads(await verifier.output())
    assert (verified["ok"], verified["seals"]) == (True, 1)


async def test_doctor_compares_the_seals_with_their_witness(tmp_path: Path) -> None:
    async with embedded_nats(tmp_path) as server:
        [seal] = await end_the_day(server, tmp_path)
    code, said = await doctor(tmp_path)
    assert (code, findings(said, "seals")) == (
        0, [("ok", "1 day is sealed. Their witness has seen each of them so.")],
    )  # fmt: skip
    path = path_of(tmp_path, WALLET)
    line = msgspec.json.decode(path.read_bytes(), type=Line)
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(line, chain="00" * 32)) + b"\n")
    code, said = await doctor(tmp_path)
    assert code == 4, json.dumps(said)
    [(state, says)] = findings(said, "seals")
    assert (state, seal.day in says) == ("untrusted", True)
