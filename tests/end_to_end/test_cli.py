"""The `purse` command against a real wallet: what a person sees, what a script gets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from api_contract import check_contract
from running_purse import RunningPurse, running_purse

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="`purse up` was written for Linux")

PLAN = """
[budgets.jev]
unit = "usd"
limit = "1"
where = { provider = "jev" }
[budgets.bob]
unit = "usd"
limit = "1"
where = { provider = "bob" }
[budgets.neurons]
unit = "neurons"
limit = "10000"
source = "cloudflare"
"""


@pytest.fixture(scope="module")
def wallet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPurse]:
    folder = tmp_path_factory.mktemp("purse")
    (folder / "purse.toml").write_text(PLAN)
    with running_purse(folder / "data", "--config", str(folder / "purse.toml")) as running:
        yield running


def test_the_real_api_passes_the_contract_of_the_fake(wallet: RunningPurse) -> None:
    check_contract(wallet.url, wallet.key)


def test_a_call_from_its_hold_to_its_settlement(wallet: RunningPurse) -> None:
    held = wallet.ask("hold", "--id", "call", "--amount", "usd=0.75", "--label", "provider=bob")
    assert held.exit_code == 0
    assert held.output.startswith("held 0.75 usd from bob until ")
    assert held.output.endswith("; 0.25 usd left\n")
    refused = wallet.ask("hold", "--id", "other", "--amount", "usd=0.5", "--label", "provider=bob")
    assert refused.exit_code == 3
    renewed = wallet.ask("renew", "call", "--n", "1", "--ttl", "900", "--amount", "usd=1")
    assert (renewed.exit_code, renewed.output.endswith("; 0 usd left\n")) == (0, True)
    wallet.ask("settle", "call", "--amount", "usd=0.5", "--progress")
    settled = wallet.ask("settle", "call", "--amount", "usd=1.1")
    assert settled.output == "settled at 1.1 usd; -0.1 usd left (more than was held)\n"
    used_up = wallet.ask("hold", "--id", "other", "--amount", "usd=0.01", "--label", "provider=bob")
    assert used_up.exit_code == 3
    assert used_up.output.startswith("refused: today's bob budget is used up; it resets at 00:00 UTC")


def test_json_is_the_shape_that_programs_rely_on(wallet: RunningPurse) -> None:
    held = json.loads(wallet.ask("--json", "hold", "--id", "j", "--amount", "neurons=100").output)
    said = ("outcome", "id", "option", "amounts", "at", "expires_at", "periods", "tier", "remaining", "receipt")
    assert set(said) <= set(held)
    settled = json.loads(wallet.ask("settle", "j", "--amount", "neurons=40", "--json").output)
    assert (settled["charged"], settled["released"]) == ({"neurons": "40"}, {"neurons": "60"})
    assert {"seq", "chain"} == set(settled["receipt"])


def test_released_money_comes_back(wallet: RunningPurse) -> None:
    wallet.ask("hold", "--id", "r", "--amount", "neurons=100")
    assert wallet.ask("release", "r").output.startswith("released: 100 neurons came back; ")
    assert wallet.ask("release", "r").exit_code == 0


def test_the_desk_observes_adjusts_freezes_and_revokes(wallet: RunningPurse) -> None:
    period = json.loads(wallet.ask("--json", "observe", "neurons", "4300").output)["period"]
    adjusted = wallet.ask("adjust", "jev", "-0.01", "--period", period, "--reason", "refund", "--id", "a1")
    assert adjusted.output.startswith("adjusted; ")
    assert wallet.ask("freeze", "all", "--reason", "lunch").output == "frozen\n"
    frozen = wallet.ask("hold", "--amount", "usd=0.01")
    assert (frozen.exit_code, "lunch" in frozen.output) == (3, True)
    assert wallet.ask("thaw", "all").output == "thawed\n"
    wallet.ask("revoke", "user=alice", "--reason", "leaked")
    assert wallet.ask("hold", "--amount", "usd=0", "--label", "user=alice").exit_code == 3
    wallet.ask("restore", "user=alice")
    assert wallet.ask("hold", "--amount", "usd=0", "--label", "user=alice").exit_code == 0


def test_status_shows_every_budget(wallet: RunningPurse) -> None:
    lines = wallet.ask("status").output.splitlines()
    assert lines[0].startswith("wallet main as of ")
    assert [line.split()[0] for line in lines[1:]] == ["jev", "bob", "neurons"]
    budgets = json.loads(wallet.ask("--json", "status").output)["budgets"]
    assert [budget["name"] for budget in budgets] == ["jev", "bob", "neurons"]
    assert all(isinstance(budget["limit"], str) for budget in budgets)


def test_a_plan_is_shown_compared_and_applied(wallet: RunningPurse, tmp_path: Path) -> None:
    shown, file = wallet.ask("plan", "show").output, tmp_path / "purse.toml"
    file.write_text(shown)
    assert wallet.ask("plan", "diff", str(file)).output == "nothing: this plan is in force\n"
    file.write_text(shown.replace('limit = "10000"', 'limit = "20000"'))
    diff = wallet.ask("plan", "diff", str(file)).output
    assert diff == "budgets.neurons.limit: 10000 neurons -> 20000 neurons; what was used stays\n"
    assert wallet.ask("plan", "apply", str(file)).exit_code == 0
    assert wallet.ask("plan", "diff", str(file)).output == "nothing: this plan is in force\n"
    file.write_text(file.read_text().replace('where = { provider = "bob" }', 'where = { provider = "rob" }'))
    unwilling = wallet.ask("plan", "apply", str(file))
    assert (unwilling.exit_code, "bob would start at zero" in unwilling.output) == (1, True)
    assert wallet.ask("plan", "apply", str(file), "--yes").output.endswith("; at zero: bob\n")


def test_a_wrong_key_and_a_wrong_word_are_errors_not_refusals(wallet: RunningPurse) -> None:
    assert wallet.ask("--key", "wrong", "hold", "--amount", "usd=0.01").exit_code == 1
    assert wallet.ask("hold", "--amount", "usd").exit_code == 2


def test_the_command_finds_the_key_that_purse_up_left(wallet: RunningPurse) -> None:
    said = subprocess.run(
        [sys.executable, "-m", "commonpurse", "hold", "--amount", "usd=0"],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(sys.path),
            "PURSE_URL": wallet.url,
            "PURSE_DATA": str(wallet.data),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.startswith("held 0 usd, which no budget limits,")
