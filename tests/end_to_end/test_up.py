"""`purse up` as a person runs it: a wallet on this machine, from the first start to the last."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest
from integration.rig import eventually
from providers import observed

from engine.embedded import embedded_nats

WAIT_S = 60.0  # on a machine where much else runs

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for the children in /proc")


class Running:
    """A `purse up` that has said it is ready."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.page = self.key = ""

    async def until_ready(self) -> None:
        while not (self.page and self.key):
            line = await self._line(self.process.stdout)
            if found := re.match(r"\s+page\s+(\S+)", line):
                self.page = found[1]
            if found := re.match(r"\s+admin key\s+(\S+)", line):
                self.key = found[1]

    async def event(self) -> str:
        """The next line about something that happened."""
        return await self._line(self.process.stderr)

    async def _line(self, pages: asyncio.StreamReader | None) -> str:
        assert pages is not None
        async with asyncio.timeout(WAIT_S):
            line = (await pages.readline()).decode()
        assert line, "it ended"
        return line.rstrip("\n")

    def children(self) -> dict[str, int]:
        """Name -> process id of what it runs."""
        found = {}
        for status in Path("/proc").glob("[0-9]*/stat"):
            try:
                parent = int(status.read_text().rpartition(")")[2].split()[1])
                command = (status.parent / "cmdline").read_bytes().split(b"\0")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if parent == self.process.pid:
                found[name_of(command)] = int(status.parent.name)
        return found

    async def ask(self, path: str, body: dict[str, object] | None = None) -> tuple[int, dict[str, object]]:
        headers = {"Authorization": f"Bearer {self.key}"}
        async with aiohttp.ClientSession(headers=headers, timeout=aiohttp.ClientTimeout(total=WAIT_S)) as session:
            method = "GET" if body is None else "POST"
            async with session.request(method, f"{self.page}{path}", json=body) as answer:
                return answer.status, await answer.json(content_type=None)

    async def end(self, sig: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(sig)
        async with asyncio.timeout(WAIT_S):
            await self.process.communicate()
        assert self.process.returncode is not None
        return self.process.returncode


def name_of(command: list[bytes]) -> str:
    return (command[command.index(b"-m") + 1] if b"-m" in command else os.path.basename(command[0])).decode()


async def start(data: Path, *options: str) -> asyncio.subprocess.Process:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PURSE_")}
    return await asyncio.create_subprocess_exec(
        *[sys.executable, "-m", "commonpurse", "up", "--data", str(data), *options],
        env={**environment, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


@asynccontextmanager
async def up(data: Path, *options: str) -> AsyncIterator[Running]:
    running = Running(await start(data, "--port", "0", *options))
    try:
        await running.until_ready()
        yield running
    finally:
        if running.process.returncode is None:
            await running.end(signal.SIGTERM)


async def failed(data: Path, *options: str) -> tuple[int | None, str]:
    """Exit code and what it said, of a start that does not succeed."""
    process = await start(data, *options)
    async with asyncio.timeout(WAIT_S):
        _, said = await process.communicate()
    return process.returncode, said.decode()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def hold(id: str) -> dict[str, object]:
    return {"id": id, "amounts": {"neurons": "100"}, "wait_s": 30}


async def test_the_next_start_goes_on_with_the_same_day_and_key(tmp_path: Path) -> None:
    async with up(tmp_path) as first:
        status, held = await first.ask("v1/holds", hold("one"))
        assert (status, held["outcome"]) == (201, "held")
        assert (tmp_path / "admin.key").read_text().strip() == first.key
        assert await first.end(signal.SIGINT) == 0
    async with up(tmp_path) as second:
        status, again = await second.ask("v1/holds", hold("one"))
        assert (status, again["outcome"]) == (200, "held")
        assert second.key == first.key
        assert await second.end(signal.SIGTERM) == 0


async def test_nothing_it_started_outlives_it(tmp_path: Path) -> None:
    async with up(tmp_path) as running:
        children = running.children()
        assert sorted(children) == ["engine", "nats-server", "projector", "web"]
        assert await running.end() == 0
        assert [name for name, pid in children.items() if alive(pid)] == []


async def test_a_part_that_is_killed_comes_back_and_the_wallet_goes_on(tmp_path: Path) -> None:
    async with up(tmp_path) as running:
        await running.ask("v1/holds", hold("before"))
        for victim in ("engine", "projector", "web", "nats-server"):
            os.kill(running.children()[victim], signal.SIGKILL)
            assert f"{victim} was ended by SIGKILL: starting it again" in await running.event()
            assert (await held_once_up(running, f"after-{victim}"))["outcome"] == "held"
        _, again = await running.ask("v1/holds", hold("before"))
        assert again["outcome"] == "held"
        assert await running.end() == 0


async def held_once_up(running: Running, id: str) -> dict[str, object]:
    """Ask until the front answers with more than "not yet": the same id each time, as a client outside does."""
    async with asyncio.timeout(WAIT_S):
        while True:
            try:
                status, answer = await running.ask("v1/holds", hold(id))
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.05)  # nobody listens: nothing to wait for but time
                continue
            if status != 503:
                return answer


async def test_a_server_that_was_joined_is_left_running(tmp_path: Path) -> None:
    async with embedded_nats(tmp_path / "server") as server:
        async with up(tmp_path / "data", "--nats", server.url) as running:
            assert sorted(running.children()) == ["engine", "projector", "web"]
            assert (await running.ask("v1/holds", hold("one")))[0] == 201
            assert await running.end() == 0
        assert alive(server.pid)


async def test_a_taken_port_ends_it_with_1_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, said = await failed(tmp_path / "data", "--port", port)
    assert code == 1
    assert port in said
    assert "--port" in said
    assert "PURSE_PORT" in said
    assert not (tmp_path / "data").exists()


async def test_a_folder_in_use_ends_the_second_start_with_1(tmp_path: Path) -> None:
    async with up(tmp_path) as first:
        code, said = await failed(tmp_path, "--port", "0")
        assert code == 1
        assert f"the data folder {tmp_path} is in use" in said
        assert (await first.ask("v1/holds", hold("one")))[0] == 201


async def test_a_wrong_config_ends_it_with_1_naming_the_place(tmp_path: Path) -> None:
    config = tmp_path / "purse.toml"
    config.write_text('[budgets.team]\nunit = "usd"\nlimit = "lots"\n')
    code, said = await failed(tmp_path / "data", "--port", "0", "--config", str(config))
    assert code == 1
    assert "budgets.team.limit" in said


async def test_a_config_that_would_restart_a_meter_ends_it_with_1(tmp_path: Path) -> None:
    config = tmp_path / "purse.toml"
    config.write_text('[budgets.team]\nunit = "usd"\nlimit = "5"\n')
    async with up(tmp_path / "data", "--config", str(config)):
        pass
    config.write_text('[budgets.team]\nunit = "usd"\nlimit = "5"\nper = "month"\n')
    code, said = await failed(tmp_path / "data", "--port", "0", "--config", str(config))
    assert code == 1
    assert "purse plan apply --yes" in said


async def test_an_observer_that_cannot_observe_ends_it_with_1_before_anything_starts(tmp_path: Path) -> None:
    config = tmp_path / "purse.toml"
    config.write_text(
        '[budgets.team]\nunit = "usd"\nlimit = "5"\nper = "month"\nsource = "openai"\n'
        '[observers.bill]\nsource = "openai"\nbudget = "team"\nkey_env = "HOME"\n'
    )
    code, said = await failed(tmp_path / "data", "--port", "0", "--config", str(config))
    assert code == 1
    assert f"{config}: observers.bill.budget: openai counts by days, this budget by the month" in said
    assert not (tmp_path / "data").exists()


async def test_what_the_account_says_is_in_the_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDFLARE_TOKEN", observed.KEY)
    config = tmp_path / "purse.toml"
    now_s = int(time.time())
    async with observed.reports_at(now_s + 2 * observed.DAY_S) as reports:
        for day in (0, 1):  # a midnight may come in between
            reports.spend("4300", at_s=now_s + day * observed.DAY_S)
        config.write_text(
            '[budgets.neurons]\nunit = "neurons"\nlimit = "10000"\nsource = "cloudflare"\n'
            f'[observers.workers]\nsource = "cloudflare"\nbudget = "neurons"\naccount = "{observed.ACCOUNT}"\n'
            f'key_env = "CLOUDFLARE_TOKEN"\nbase_url = "{reports.url}{observed.BELOW["cloudflare"]}"\n'
        )
        async with up(tmp_path / "data", "--config", str(config)) as running:

            async def seen() -> dict[str, Any] | None:
                _, status = await running.ask("v1/status")
                (budget,) = cast("list[dict[str, Any]]", status["budgets"])
                return budget if budget["observed"] else None

            budget = await eventually(seen, within_s=WAIT_S)  # its first try comes within five seconds
            assert (budget["extra"], budget["used_pct"]) == ("4300", 43.0)
            assert budget["reading"]["stale"] is False
            assert await running.end() == 0
        logs = [file.read_text() for file in (tmp_path / "data" / "logs").iterdir()]
        assert logs
        assert not any(observed.KEY in log for log in logs)
