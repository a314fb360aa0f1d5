"""The live tests that Cycles' official client brings along, as its authors published them, against a whole wallet."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from importlib.metadata import Distribution
from pathlib import Path
from xml.etree import ElementTree

import pytest
from sdk.clients import FETCHED
from sdk.cycles_world import CLIENT, TENANT, CyclesWallet

SOURCE = FETCHED / "cycles-source" / "runcycles"
TESTS = {
    "test_health_check", "test_reservation_lifecycle", "test_reserve_and_release", "test_decide_endpoint",
    "test_balance_query",
}  # fmt: skip
WAIT_S = 240.0  # a deadline for a program that starts on a busy machine, not a measurement

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module", autouse=True)
def fetched() -> None:
    missing = CLIENT.missing or (None if SOURCE.exists() else f"needs {SOURCE}, which `make sdks` fetches")
    if missing:
        pytest.skip(missing)


def test_the_tests_are_those_of_the_client_that_all_else_here_runs() -> None:
    (installed,) = [
        found for found in Distribution.discover(path=[str(FETCHED / "cycles")]) if found.name == "runcycles"
    ]
    assert f"\nVersion: {installed.version}\n" in (SOURCE / "PKG-INFO").read_text()


async def test_the_clients_own_live_tests_pass(wallet: CyclesWallet, tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    before = (await wallet.budgets())["tenant"]
    command = [sys.executable, "-m", "pytest", "tests/integration", "-p", "no:cacheprovider", f"--junitxml={report}"]
    asked = {"CYCLES_BASE_URL": wallet.purse.url, "CYCLES_API_KEY": wallet.keys[TENANT], "CYCLES_TENANT": TENANT}
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": CLIENT.packages,
        "PYTHONDONTWRITEBYTECODE": "1", **asked,
    }  # fmt: skip
    process = await asyncio.create_subprocess_exec(
        *command, cwd=SOURCE, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    async with asyncio.timeout(WAIT_S):
        said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
    cases = list(ElementTree.parse(report).iter("testcase"))
    assert {case.get("name") for case in cases if len(case) == 0} == TESTS, said.decode()
    after = (await wallet.budgets())["tenant"]
    assert (after.settled - before.settled, after.held) == (8_000, 0), "one was committed at that, one released"
