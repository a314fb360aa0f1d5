"""A crash in the middle of an hour of real calls: what was lost is settled from the driver's own log, exactly and once.

The trace is looked for beside the checkout; without it this test skips.
"""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from running_purse import RunningPurse, running_purse

from engine.core.amounts import format_amount, parse

TRACE = Path(__file__).parents[3] / "shared/data/azure_llm_conv_2023.csv"
ROWS = 3_000
WITHIN_S = 60.0

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="`purse up` was written for Linux"),
    pytest.mark.skipif(not TRACE.exists(), reason="the recorded trace is not beside this checkout"),
    pytest.mark.timeout(600),
]


def true_costs() -> list[int]:
    """What each call of the trace cost, computed here and nowhere else."""
    with TRACE.open() as lines:
        cells = (line.strip().split(",") for line in islice(lines, 1, 1 + ROWS))
        return [int(given) * 150 + int(made) * 600 for _, given, made in cells]


def logged(log: Path) -> dict[int, int]:
    """The rows of the trace whose calls were made, by the driver's own log, and what each cost."""
    with log.open(newline="") as lines:
        return {int(row["hold"].rpartition(":")[2]): nanos(row["usd"]) for row in csv.DictReader(lines)}


def nanos(usd: str) -> int:
    return parse(usd, unit="usd", scale=9)


def drive_command(wallet: RunningPurse, log: Path) -> list[str]:
    options = ["--limit-rows", str(ROWS), "--output-cap", "1000", "--run", "crash", "--log", str(log)]
    return ["--url", wallet.url, "--key", wallet.key, "--json", "drive", str(TRACE), *options]


@contextmanager
def driving(wallet: RunningPurse, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "commonpurse", *drive_command(wallet, log)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        yield process
        process.send_signal(signal.SIGKILL)


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def ready(wallet: RunningPurse) -> bool:
    try:
        with urlopen(f"{wallet.url}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def crash(wallet: RunningPurse, log: Path, *, calls: int) -> None:
    """Web and engine die while calls are under way, come back, and die again together with who drives."""
    begun = lines_of(log)
    with driving(wallet, log) as driver:
        for made in (calls // 3, calls):
            until_logged(log, begun + made)
            wallet.kill("web")
            wallet.kill("engine")
        driver.send_signal(signal.SIGKILL)
        driver.wait()
    until(lambda: ready(wallet), "the wallet did not come back")


def until_logged(log: Path, lines: int) -> None:
    until(lambda: lines_of(log) >= lines, "the drive does not go on")


def lines_of(log: Path) -> int:
    """How many calls it names, some maybe twice."""
    return max(0, log.read_bytes().count(b"\n") - 1) if log.exists() else 0


def backfill(wallet: RunningPurse, log: Path, *options: str) -> tuple[int, dict[str, Any]]:
    command = [
        sys.executable,
        "-m",
        "commonpurse",
        "backfill",
        str(log),
        "--data",
        str(wallet.data),
        "--json",
        *options,
    ]
    result = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    return result.returncode, json.loads(result.stdout)


def books(wallet: RunningPurse) -> tuple[int, int]:
    """Settled and held, by the wallet's own status."""
    [budget] = json.loads(wallet.ask("--json", "status").stdout)["budgets"]
    return nanos(budget["settled"]), nanos(budget["held"])


def test_h4_what_a_crash_lost_is_backfilled_from_the_drivers_own_log(tmp_path: Path) -> None:
    config, log, costs = tmp_path / "purse.toml", tmp_path / "calls.csv", true_costs()
    config.write_text('[budgets.trace]\nunit = "usd"\nlimit = "1000"\nper = "total"\n')
    with running_purse(tmp_path / "data", "--config", str(config)) as wallet:
        lost = 0
        while not lost:  # nearly always at once: calls were under way in 64 workers
            crash(wallet, log, calls=300)
            code, said = backfill(wallet, log, "--apply")
            assert (code, said["counts"]["conflict"]) == (0, 0)
            lost = said["counts"]["new"]
        made = logged(log)
        assert all(costs[row - 1] == cost for row, cost in made.items()), "the log says what the trace says"
        until(lambda: books(wallet)[0] == sum(made.values()), "every call that was made counts exactly, and once")

        driven = json.loads(wallet.ask(*drive_command(wallet, log)[4:]).stdout)  # the rest of the hour
        assert driven["exact"] is True
        until(lambda: books(wallet) == (sum(costs), 0), "the wallet comes to the exact sum of the trace")
        whole = backfill(wallet, log, "--apply")
        assert (whole[0], whole[1]["counts"]["there"]) == (0, ROWS)
        assert books(wallet) == (sum(costs), 0)

        altered = tmp_path / "altered.csv"
        one = f"drive:crash:7,{format_amount(costs[6], scale=9)}\n"
        assert one in log.read_text()
        altered.write_text(log.read_text().replace(one, f"drive:crash:7,{format_amount(costs[6] + 1, scale=9)}\n"))
        code, said = backfill(wallet, altered, "--apply")
        assert (code, said["counts"]["conflict"], said["counts"]["there"]) == (3, 1, ROWS - 1)
        [conflict] = [row for row in said["rows"] if row["found"] == "conflict"]
        assert (conflict["hold"], conflict["charged"]) == ("drive:crash:7", {"usd": format_amount(costs[6], scale=9)})
        assert books(wallet) == (sum(costs), 0)
