"""`purse drive` against a real wallet whose parts are killed under it: not one nano-dollar too much or too little."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from running_purse import RunningPurse, running_purse

from commonpurse.drive import Drive, Load, Patience, Tally
from commonpurse.http import Api
from commonpurse.trace import Prices, Row, Trace
from engine.core.amounts import parse

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds the parts in /proc")

ROWS = 240
PRICES = Prices.of(input_usd_per_mtok="0.15", output_usd_per_mtok="0.60", output_cap=100)
REAL = sum((number % 7 + 1) * 111 * 150 + number % 130 * 600 for number in range(ROWS))
LIMIT = 10**9
PLAN = '[budgets.jev]\nunit = "usd"\nlimit = "1"\neach = "provider"\n'  # so every test has a meter of its own


@pytest.fixture(scope="module")
def wallet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPurse]:
    folder = tmp_path_factory.mktemp("purse")
    (folder / "purse.toml").write_text(PLAN)
    with running_purse(folder / "data", "--config", str(folder / "purse.toml")) as running:
        yield running


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.csv"
    rows = (f"2023-11-16 18:15:46.{n:07},{(n % 7 + 1) * 111},{n % 130}" for n in range(ROWS))
    path.write_text("\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *rows, ""]))
    return path


class Eventful(Trace):
    """A trace in which something happens when a row is reached."""

    def __init__(self, path: Path, events: dict[int, Callable[[], object]]) -> None:
        super().__init__(path)
        self._events = events

    def __iter__(self) -> Iterator[Row]:
        for row in super().__iter__():
            self._events.get(row.number, bool)()
            yield row


def used_nanos(wallet: RunningPurse, name: str) -> int:
    """By the engine's own word: a hold of nothing always fits and says what remains."""
    held = wallet.ask("--json", "hold", "--amount", "usd=0", "--label", f"provider={name}")
    [remaining] = json.loads(held.output)["remaining"].values()
    return LIMIT - parse(remaining, unit="usd", scale=9)


async def run(wallet: RunningPurse, trace: Trace, name: str, *, batch: int = 1) -> Tally:
    patience = Patience(hold_s=60, first_pause_s=0.02, longest_pause_s=0.5)
    load = Load(name, PRICES, labels={"provider": name}, concurrency=8, batch=batch, patience=patience)
    async with Api.open(wallet.url, wallet.key, connections=8) as api:
        drive = Drive(api, trace, load)
        await drive.run()
    return drive.tally


def test_the_sums_of_trace_and_wallet_are_the_same(wallet: RunningPurse, trace: Path) -> None:
    options = ("--output-cap", "100", "--label", "provider=sums", "--run", "sums")
    told = json.loads(wallet.ask("--json", "drive", str(trace), *options).stdout)
    assert told["exact"] is True
    assert told["overruns"] == sum(number % 130 > 100 for number in range(ROWS))
    assert parse(told["trace"], unit="usd", scale=9) == parse(told["settled"], unit="usd", scale=9) == REAL
    again = json.loads(wallet.ask("--json", "drive", str(trace), *options, "--batch", "50").stdout)
    assert (again["already"], again["settled"], again["exact"]) == (ROWS, told["settled"], True)
    assert used_nanos(wallet, "sums") == REAL


def test_web_engine_and_server_may_be_killed_in_the_middle(wallet: RunningPurse, trace: Path) -> None:
    parts = {60: "web", 120: "engine", 180: "nats-server"}
    events = {row: (lambda part=part: wallet.kill(part)) for row, part in parts.items()}
    tally = asyncio.run(run(wallet, Eventful(trace, events), "killed"))
    assert tally.exact, tally
    assert (tally.held, tally.retries > 0) == (ROWS, True)
    assert tally.settled_nanos == used_nanos(wallet, "killed") == REAL


def test_a_drive_that_is_cut_off_goes_on_under_its_name(wallet: RunningPurse, trace: Path) -> None:
    async def cut_off() -> None:
        me = asyncio.current_task()
        assert me is not None
        with suppress(asyncio.CancelledError):
            await run(wallet, Eventful(trace, {100: me.cancel}), "cut-off")

    asyncio.run(cut_off())
    assert used_nanos(wallet, "cut-off") > 0
    tally = asyncio.run(run(wallet, Trace(trace), "cut-off", batch=20))
    assert tally.exact, tally
    assert (tally.already > 0, tally.already + tally.held) == (True, ROWS)
    assert used_nanos(wallet, "cut-off") == REAL
