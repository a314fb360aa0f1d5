"""An hour of real calls (Azure LLM inference traces 2023, CC-BY) through a whole wallet, parts of which die.

The trace is looked for beside the checkout; without it these tests skip. PURSE_SOAK=1 sends all 19,366 rows.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from urllib.request import urlopen

import pytest
import pytest_asyncio
from running_purse import RunningPurse, running_purse

from commonpurse.proof import Proof, prove
from engine.core.amounts import parse
from engine.embedded import EmbeddedServer, embedded_nats

TRACE = Path(__file__).parents[3] / "shared/data/azure_llm_conv_2023.csv"
SOAK = bool(os.environ.get("PURSE_SOAK"))
ROWS = 19_366 if SOAK else 2_500
LONGEST = 1_000  # the file's largest output, in tokens
WHOLE_SUM = 5_807_479_500  # nano-dollars at $0.15 and $0.60 per million tokens in and out
KILL_EVERY_S = 1.5

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="`purse up` was written for Linux"),
    pytest.mark.skipif(not TRACE.exists(), reason="the recorded trace is not beside this checkout"),
    pytest.mark.timeout(900),
]


@pytest_asyncio.fixture(loop_scope="session")
async def server(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    async with embedded_nats(tmp_path / "server") as running:
        yield running


def rows() -> list[tuple[int, int]]:
    with TRACE.open() as lines:
        cells = (line.strip().split(",") for line in islice(lines, 1, 1 + ROWS))
        return [(int(given), int(made)) for _, given, made in cells]


def true_cost() -> int:
    """What the trace cost, summed here and nowhere else."""
    return sum(given * 150 + made * 600 for given, made in rows())


def plan(folder: Path, limit: str) -> str:
    file = folder / "purse.toml"
    file.write_text(f'[budgets.trace]\nunit = "usd"\nlimit = "{limit}"\nper = "total"\n')
    return str(file)


def drive(wallet: RunningPurse, *, run: str = "whole") -> dict[str, object]:
    arguments = ("--json", "drive", str(TRACE), "--limit-rows", str(ROWS), "--output-cap", str(LONGEST), "--run", run)
    answer: dict[str, object] = json.loads(wallet.ask(*arguments).stdout)
    return answer


def shown_by_the_projector(wallet: RunningPurse) -> tuple[int, int]:
    deadline = time.monotonic() + 60
    while not ready(wallet):
        assert time.monotonic() < deadline, "the wallet did not come back"
    [budget] = json.loads(wallet.ask("--json", "status").stdout)["budgets"]
    return nanos(budget["settled"]), nanos(budget["held"])


def ready(wallet: RunningPurse) -> bool:
    try:
        with urlopen(f"{wallet.url}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def nanos(usd: object) -> int:
    assert isinstance(usd, str)
    return parse(usd, unit="usd", scale=9)


@contextmanager
def killed_twice_each(wallet: RunningPurse, *parts: str) -> Iterator[threading.Thread]:
    """kill -9 of one part after the other, a while apart, in a thread that ends when each has died twice."""

    def kill() -> None:
        dice = random.Random(9)
        for part in (*parts, *parts):
            time.sleep(KILL_EVERY_S * dice.uniform(0.5, 1.5))
            wallet.kill(part)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    yield killer
    killer.join()


def assert_books_agree(proof: Proof, driven: dict[str, object], wallet_says: tuple[int, int]) -> None:
    [meter] = proof.of("trace")
    assert driven["exact"] is True
    assert (nanos(driven["settled"]), meter.held, proof.untold) == (meter.settled, 0, 0)
    assert wallet_says == (meter.settled, 0)
    assert proof.outcomes.get("conflict", 0) == 0


def test_the_recorded_hour_costs_what_it_cost(server: EmbeddedServer, tmp_path: Path) -> None:
    with running_purse(tmp_path / "data", "--config", plan(tmp_path, "1000"), "--nats", server.url) as wallet:
        driven, shown = drive(wallet), shown_by_the_projector(wallet)
    proof = asyncio.run(prove(server.url))
    assert_books_agree(proof, driven, shown)
    assert proof.of("trace")[0].settled == true_cost()
    assert ROWS < 19_366 or true_cost() == WHOLE_SUM


def test_a_small_budget_is_never_exceeded_at_any_sequence(server: EmbeddedServer, tmp_path: Path) -> None:
    limit = "2.00" if SOAK else "0.20"
    with running_purse(tmp_path / "data", "--config", plan(tmp_path, limit), "--nats", server.url) as wallet:
        driven, shown = drive(wallet), shown_by_the_projector(wallet)
    proof = asyncio.run(prove(server.url))
    assert_books_agree(proof, driven, shown)
    [meter] = proof.of("trace")
    assert proof.never_above
    assert meter.limit * 98 // 100 < meter.highest <= meter.limit == nanos(limit)
    assert driven["overruns"] == 0


def test_kill_9_of_any_part_changes_no_figure(tmp_path: Path) -> None:
    """The trace is sent again under another run's name for as long as parts die: the test ends with the last death."""
    with running_purse(tmp_path / "data", "--config", plan(tmp_path, "1000")) as wallet:
        driven = list[dict[str, object]]()
        with killed_twice_each(wallet, "engine", "projector", "web", "nats-server") as killer:
            while killer.is_alive() or not driven:
                driven.append(drive(wallet, run=f"run-{len(driven)}"))
        shown = shown_by_the_projector(wallet)
    for told in driven:
        assert (told["exact"], told["errors"], told["held"]) == (True, 0, ROWS), told
        assert nanos(told["settled"]) == true_cost()
    assert shown == (len(driven) * true_cost(), 0)
