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
from sdk.cycles_spec import FIXTURE, Document, anything, document, what_fits
from sdk.cycles_world import SPENDTHRIFT, Caller

TOOL = FETCHED / "schemathesis"
CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance",
    "response_headers_conformance", "negative_data_rejection", "unsupported_method", "allow_header_conformance",
    "missing_required_header", "ignored_auth", "use_after_free", "ensure_resource_availability",
)  # fmt: skip
EXAMPLES = 15
"""Drawn for each operation, beside those that are made of its edges."""

RESERVATIONS = 60
"""Reservations that are there to be asked about."""

WAIT_S = 500.0  # a deadline for a busy machine, not a measurement

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module", autouse=True)
def fetched() -> None:
    missing = [str(place) for place in (TOOL, FIXTURE) if not place.exists()]
    if missing:
        pytest.skip(f"needs {' and '.join(missing)}, which `make sdks` fetches")


async def answers(caller: Caller, folder: Path, said: Document, *options: str) -> dict[str, Any]:
    """The tool's report on the wallet. It asks the same every time."""
    asked, report = folder / "protocol.yaml", folder / "report.json"
    asked.write_text(yaml.safe_dump(said))
    command = [
        sys.executable, "-m", "schemathesis.cli", "run", str(asked), "--url", caller.wallet.purse.url,
        "--header", f"X-Cycles-API-Key: {caller.wallet.keys[caller.tenant]}", "--checks", ",".join(CHECKS),
        "--max-examples", str(EXAMPLES), "--generation-deterministic", "--no-shrink", "--no-color",
        "--report", "json", "--report-json-path", str(report), *options,
    ]  # fmt: skip
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(TOOL)}
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    async with asyncio.timeout(WAIT_S):
        told, _ = await process.communicate()
    assert report.exists(), told.decode()
    return {**json.loads(report.read_text()), "told": told.decode()}


async def reservations(caller: Caller) -> list[str]:
    asked = [await caller.reserve(f"r-{number}", 100, ttl_ms=86_400_000) for number in range(RESERVATIONS)]
    return [said["body"]["reservation_id"] for said in asked]


async def test_whatever_is_asked_the_protocol_names_the_answer(caller: Caller, tmp_path: Path) -> None:
    """The most of it is refused: a body that is not as the protocol says must be."""
    caller.tenant = SPENDTHRIFT
    said = anything(document(), caller.tenant, await reservations(caller))
    report = await answers(caller, tmp_path, said, "--phases", "coverage,fuzzing", "--mode", "all")
    assert (report["failures"], report["errors"]) == ([], []), report["told"]
    assert (report["operations"]["tested"], report["complete"]) == (9, True)
    assert report["test_cases"]["generated"] > 500
    await caller.wallet.audited()


async def test_whatever_fits_is_granted_and_ends_as_the_protocol_names(caller: Caller, tmp_path: Path) -> None:
    said = what_fits(document(), caller.tenant, await reservations(caller))
    report = await answers(caller, tmp_path, said, "--phases", "coverage,fuzzing", "--mode", "positive")
    assert (report["failures"], report["errors"]) == ([], []), report["told"]
    assert (report["operations"]["tested"], report["complete"]) == (9, True)
    accepted = {
        operation: sum(phase["accepted"] for phase in rates.values())
        for operation, rates in report["valid_rates"].items()
    }
    assert len(accepted) == 9
    assert min(accepted.values()) >= 3, report["valid_rates"]
    await caller.wallet.audited()
