"""The guide for clients of Cycles, followed word for word: its plan, its key, its program. And its table is so."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from running_purse import running_purse
from sdk.cycles_spec import rows
from sdk.cycles_world import CLIENT

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "cycles-clients.md").read_text()
FENCES = dict(re.findall(r"^```(\w+)\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL))
WAIT_S = 120.0  # a deadline for a program that starts on a busy machine, not a measurement


def test_who_follows_the_guide_has_a_guarded_program(tmp_path: Path) -> None:
    if CLIENT.missing:
        pytest.skip(CLIENT.missing)
    config, program = tmp_path / "purse.toml", tmp_path / "program.py"
    config.write_text(FENCES["toml"])
    program.write_text(f'{FENCES["python"]}\n\nask("What is a purse?")\n')
    new_key, *exports = FENCES["sh"].splitlines()
    told = dict(re.fullmatch(r"export (\w+)=(\S+)", line).groups() for line in exports)  # type: ignore[union-attr]
    with running_purse(tmp_path / "data", "--config", str(config)) as purse:
        made = purse.ask("--json", *shlex.split(new_key)[1:])
        told |= {"CYCLES_BASE_URL": purse.url, "CYCLES_API_KEY": json.loads(made.stdout)["key"]}
        environment = {**CLIENT.environment(), **told, "HOME": str(tmp_path)}
        ran = subprocess.run(
            [sys.executable, str(program)], env=environment, capture_output=True, text=True, timeout=WAIT_S
        )
        assert ran.returncode == 0, ran.stderr
        balances = urllib.request.Request(
            f"{purse.url}/v1/balances?tenant={told['CYCLES_TENANT']}",
            headers={"X-Cycles-API-Key": told["CYCLES_API_KEY"]},
        )
        with urllib.request.urlopen(balances, timeout=WAIT_S) as answer:
            (balance,) = json.loads(answer.read())["balances"]
    cent, limit = 1_000_000, 500_000_000
    assert balance["spent"]["amount"] == cent
    assert balance["remaining"]["amount"] == limit - cent


def test_the_guide_has_the_departures_that_are_tested_and_no_others() -> None:
    _, _, after = GUIDE.partition("\n## Held against the protocol's own document\n")
    table = [line for line in after.partition("\n## ")[0].splitlines() if line.startswith("| ")]
    assert table[1:] == list(rows())
