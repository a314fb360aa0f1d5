"""`purse doctor` as an operator runs it, on real stores."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from integration import rig
from integration.rig import engine_on, projector_on, wallet_on

from engine.bucket import Bucket
from engine.client import Purse
from engine.core.messages import Held
from engine.embedded import EmbeddedServer, embedded_nats
from engine.journal import Journal

WALLET = "main"


async def doctor(data: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code and what it printed as JSON."""
    command = ["-m", "commonpurse", "doctor", "--data", str(data), "--json", *arguments]
    async with rig.process_of(command) as process:
        said = await process.output()
        return await process.wait(), json.loads(said) if said else {}


def findings(said: dict[str, Any], check: str) -> list[tuple[str, str]]:
    return [(found["state"], found["says"]) for found in said["findings"] if found["check"] == check]


async def use(server: EmbeddedServer, data: Path, *, calls: int) -> int:
    """A wallet in which some holds are made; the last sequence of its stream."""
    async with (
        wallet_on(server.url, WALLET) as journal,
        engine_on(server.url, WALLET, data=data, snapshots=False),
        projector_on(server.url, WALLET, data=data, snapshots=False),
        Purse.connect(server.url, wallet=WALLET) as purse,
    ):
        for number in range(calls):
            assert isinstance(await purse.hold({"usd": "0.01"}, id=f"{journal.names.wallet}{number}"), Held)
        return await journal.last_seq()


def names_aside(data: Path) -> list[str]:
    return sorted(copy.name for copy in (data / "nats" / "aside").iterdir())


def forget_the_stream(data: Path) -> None:
    for folder in (data / "nats" / "store").glob(f"jetstream/*/streams/PURSE_{WALLET}"):
        shutil.rmtree(folder)


async def test_all_is_well_on_a_wallet_that_was_closed(tmp_path: Path) -> None:
    async with embedded_nats(tmp_path) as server:
        last = await use(server, tmp_path, calls=3)
    code, said = await doctor(tmp_path)
    assert code == 0, said
    whole = f"Whole from its beginning to sequence {last}, as everybody has seen it."
    assert findings(said, "stream") == [("ok", whole)]
    assert {found["check"] for found in said["findings"]} >= {"config", "disk", "copies", "server", "stream", "clock"}


async def test_a_wallet_that_runs_is_looked_at_where_it_runs(tmp_path: Path) -> None:
    async with embedded_nats(tmp_path, wallet=WALLET) as server:
        await use(server, tmp_path, calls=1)
        code, said = await doctor(tmp_path)
        assert code == 0, said
        assert "runs on" in findings(said, "server")[0][1]


async def test_it_names_what_is_lost_and_the_ways_out_and_changes_nothing(tmp_path: Path) -> None:
    async with embedded_nats(tmp_path) as server:
        last = await use(server, tmp_path, calls=3)
    forget_the_stream(tmp_path)
    async with embedded_nats(tmp_path) as server, wallet_on(server.url, WALLET):
        pass
    code, said = await doctor(tmp_path)
    assert (code, said["exit_code"], said["lost"]) == (4, 4, [[2, last]])
    words = " ".join(says for _, says in findings(said, "stream"))
    assert f"2 to {last} are lost" in words
    assert "--restore-aside" in words
    assert "--accept-loss" in words
    async with embedded_nats(tmp_path) as server, Journal.connect(server.url, wallet=WALLET) as journal:
        assert await journal.last_seq() == 1


async def test_an_accepted_loss_is_on_the_record_with_who_and_why(tmp_path: Path) -> None:
    async with embedded_nats(tmp_path) as server:
        last = await use(server, tmp_path, calls=3)
    forget_the_stream(tmp_path)
    async with embedded_nats(tmp_path) as server, wallet_on(server.url, WALLET):
        pass
    code, said = await doctor(tmp_path, "--accept-loss", "--reason", "the disk broke")
    assert code == 0, said
    loss = said["loss"]
    assert (loss["from_seq"], loss["to_seq"], loss["reason"]) == (1, last, "the disk broke")
    assert loss["used"] == [{"budget": "jev", "period": "total", "used": 3 * rig.CENT}]
    async with (
        embedded_nats(tmp_path) as server,
        engine_on(server.url, WALLET, data=tmp_path, snapshots=False) as started,
    ):
        (meter,) = await rig.eventually(lambda: list(started.service.wallet.metering.values()))
        assert meter.used == 3 * rig.CENT
    assert (await doctor(tmp_path))[0] == 0


async def test_where_the_whole_stream_is_gone_a_plan_comes_before_the_loss(tmp_path: Path) -> None:
    async with embedded_nats(tmp_path) as server:
        await use(server, tmp_path, calls=3)
    forget_the_stream(tmp_path)
    config = tmp_path / "purse.toml"
    config.write_text('[budgets.jev]\nunit = "usd"\nlimit = "1.00"\nper = "total"\n', encoding="utf-8")
    code, said = await doctor(tmp_path, "--accept-loss", "--config", str(config))
    assert code == 0, said
    async with (
        embedded_nats(tmp_path) as server,
        engine_on(server.url, WALLET, data=tmp_path, snapshots=False) as started,
    ):
        (meter,) = await rig.eventually(lambda: list(started.service.wallet.metering.values()))
        assert (meter.budget, meter.used) == ("jev", 3 * rig.CENT)


async def test_where_nothing_is_lost_nothing_is_accepted(tmp_path: Path) -> None:
    async with embedded_nats(tmp_path) as server:
        last = await use(server, tmp_path, calls=1)
    code, said = await doctor(tmp_path, "--accept-loss")
    assert (code, said["loss"]) == (0, None)
    async with embedded_nats(tmp_path) as server, Journal.connect(server.url, wallet=WALLET) as journal:
        assert await journal.last_seq() == last


async def test_a_store_that_was_set_aside_can_be_put_back(tmp_path: Path) -> None:
    async with embedded_nats(tmp_path) as server:
        last = await use(server, tmp_path, calls=3)
        server.kill(signal.SIGKILL)
        await server.wait()
        await server.start()  # an unclean stop: the store is set aside first
    (copy,) = names_aside(tmp_path)
    forget_the_stream(tmp_path)
    code, said = await doctor(tmp_path)
    assert (code, said["lost"]) == (4, [[1, last]])
    code, said = await doctor(tmp_path, "--restore-aside")
    assert (code, said["restored"], said["last_seq"], said["replaced_last_seq"]) == (0, copy, last, 0)
    assert names_aside(tmp_path) == [copy, said["kept"].rsplit("/", 1)[-1]]
    assert (await doctor(tmp_path))[0] == 0
    async with (
        embedded_nats(tmp_path) as server,
        engine_on(server.url, WALLET, data=tmp_path, snapshots=False) as started,
    ):
        assert len(started.service.wallet.open) == 3


async def test_no_copy_is_put_back_while_the_wallet_runs(tmp_path: Path) -> None:
    async with embedded_nats(tmp_path) as server:
        await use(server, tmp_path, calls=1)
        code, said = await doctor(tmp_path, "--restore-aside")
    assert (code, said) == (1, {})


@pytest.mark.parametrize("arguments", [["--restore-aside"], ["--restore-aside", "20200101"]])
async def test_a_copy_that_is_not_there_is_an_error(tmp_path: Path, arguments: list[str]) -> None:
    assert await doctor(tmp_path, *arguments) == (1, {})


async def test_a_folder_without_a_store_and_a_config_that_cannot_be_read_are_problems(tmp_path: Path) -> None:
    config = tmp_path / "purse.toml"
    config.write_text("[budgets.jev]\nunit = 7\n", encoding="utf-8")
    code, said = await doctor(tmp_path, "--config", str(config))
    assert code == 1
    assert [state for state, _ in findings(said, "config") + findings(said, "stream")] == ["problem", "problem"]


async def test_where_no_stamp_is_ahead_no_time_is_skipped(tmp_path: Path) -> None:
    async with embedded_nats(tmp_path) as server:
        last = await use(server, tmp_path, calls=1)
    code, said = await doctor(tmp_path, "--skip-time")
    assert (code, said["clock"]) == (0, None)
    assert "nothing to skip" in findings(said, "skip")[0][1]
    async with embedded_nats(tmp_path) as server, Journal.connect(server.url, wallet=WALLET) as journal:
        assert await journal.last_seq() == last


@pytest.mark.parametrize("other", ["--restore-aside", "--accept-loss"])
async def test_skipping_time_and_another_way_out_at_once_are_a_wrong_usage(tmp_path: Path, other: str) -> None:
    assert (await doctor(tmp_path, "--skip-time", other))[0] == 2


async def test_both_ways_out_at_once_are_a_wrong_usage(tmp_path: Path) -> None:
    assert (await doctor(tmp_path, "--restore-aside", "--accept-loss"))[0] == 2


async def test_it_says_what_its_user_may_do_and_whether_keys_can_be_read(tmp_path: Path) -> None:
    async with embedded_nats(tmp_path, wallet=WALLET) as server, wallet_on(server.url, WALLET) as journal:
        _, said = await doctor(tmp_path)
        [(state, says)] = findings(said, "permissions")
        assert (state, "may not change" in says) == ("ok", True)
        assert findings(said, "keyring") == [("ok", "0 keys are kept beside the stream, 0 of them have ended.")]
        bucket = Bucket(journal, "keys")
        await bucket.make()
        for name, document in (("origin-secret", b"x"), ("aaaaaaaaaa", b"{}"), ("bbbbbbbbbb", b"\xff")):
            assert await bucket.put(name, document, after=0)
        code, said = await doctor(tmp_path)
        [(state, says), _] = findings(said, "keyring")
        assert (code, state) == (1, "problem")
        assert "aaaaaaaaaa, bbbbbbbbbb" in says


async def test_it_warns_of_a_user_who_may_empty_the_stream(tmp_path: Path) -> None:
    async with embedded_nats(tmp_path, wallet="another") as server, wallet_on(server.url, WALLET):
        _, said = await doctor(tmp_path, "--nats", server.url)
        [(state, says)] = findings(said, "permissions")
        assert state == "warning"
        assert "UPDATE, DELETE, PURGE, RESTORE, MSG.DELETE" in says
