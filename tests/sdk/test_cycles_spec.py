"""All that the protocol's own document says may be asked, asked of a whole wallet: it names every answer."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from sdk.clients import FETCHED
from sdk.cycles_spec import FIXTURE, asked_of, document, rows
from sdk.cycles_world import Caller

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "cycles-clients.md"
TOOL = FETCHED / "schemathesis"
CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance",
    "response_headers_conformance",
)  # fmt: skip
EXAMPLES = 25
"""Drawn for each operation, beside those that are made of its edges."""

RESERVATIONS = 20
"""Reservations that are there to be asked about."""

WAIT_S = 500.0  # a deadline for a busy machine, not a measurement

pytestmark = pytest.mark.timeout(600)


async def answers(caller: Caller, folder: Path) -> dict[str, Any]:
    """The tool's report, of the same requests every time."""
    reservations = [
        (await caller.reserve(f"r-{number}", 100, ttl_ms=86_400_000))["body"]["reservation_id"]
        for number in range(RESERVATIONS)
    ]
    said, report = folder / "protocol.yaml", folder / "report.json"
    said.write_text(yaml.safe_dump(asked_of(document(), reservations)))
    command = [
        sys.executable, "-m", "schemathesis.cli", "run", str(said), "--url", caller.wallet.purse.url,
        "--header", f"X-Cycles-API-Key: {caller.wallet.key}", "--phases", "examples,coverage,fuzzing",
        "--checks", ",".join(CHECKS), "--max-examples", str(EXAMPLES), "--generation-deterministic", "--no-shrink",
        "--report", "json", "--report-json-path", str(report), "--no-color",
    ]  # fmt: skip
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(TOOL)}
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    async with asyncio.timeout(WAIT_S):
        told, _ = await process.communicate()
    assert report.exists(), told.decode()
    return {**json.loads(report.read_text()), "told": told.decode()}


async def test_every_answer_is_one_that_the_protocol_names(caller: Caller, tmp_path: Path) -> None:
    if not TOOL.exists() or not FIXTURE.exists():
        pytest.skip(f"needs {TOOL} and {FIXTURE}, which `make sdks` fetches")
    report = await answers(caller, tmp_path)
    assert (report["failures"], report["errors"]) == ([], []), report["told"]
    assert report["operations"] == {
        "total": 9,
        "selected": 9,
        "tested": 9,
        "errored": 0,
        "skipped": 0,
        "skip_reasons": [],
    }
    accepted = {
        operation: sum(phase["accepted"] for phase in rates.values())
        for operation, rates in report["valid_rates"].items()
    }
    assert len(accepted) == 9
    assert {operation for operation, count in accepted.items() if not count} == set(), report["valid_rates"]


def test_the_page_of_cycles_clients_has_the_departures_that_are_tested_and_no_others() -> None:
    _, _, after = PAGE.read_text().partition("\n## Where the wallet departs from the specification\n")
    table = [line for line in after.partition("\n## ")[0].splitlines() if line.startswith("| ")]
    assert table[1:] == list(rows())
