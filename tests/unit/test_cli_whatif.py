"""`purse whatif` on a raw export: what is printed, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import clean_environment, run
from records import recorded, story
from tampering import FOUND_BY_THE_CHAIN
from unit.test_cli_audit import DAY, written

PLAN = """
[budgets.jev]
unit = "usd"
limit = "{limit}"
"""

__all__ = ["clean_environment"]  # fixtures


@pytest.fixture
def record(tmp_path: Path) -> str:
    return written(recorded(story()), tmp_path / "record.jsonl")


def plan(folder: Path, limit: str) -> str:
    path = folder / "other.toml"
    path.write_text(PLAN.format(limit=limit))
    return str(path)


def test_the_same_plan_changes_nothing(record: str, tmp_path: Path) -> None:
    result = run("whatif", DAY, "--plan", plan(tmp_path, "1.00"), "--record", record)
    assert result.exit_code == 0
    assert "Nothing would have been otherwise." in result.stdout


def test_another_plan_is_shown_beside_what_was(record: str, tmp_path: Path) -> None:
    result = run("whatif", DAY, "--plan", plan(tmp_path, "0.50"), "--record", record)
    assert result.exit_code == 0
    said = result.stdout.splitlines()
    assert said[0].startswith("What if, on 2026-11-30 (UTC), wallet main, not over yet")
    assert "  budgets.jev.limit: 1 usd -> 0.5 usd; what was used stays" in said
    assert any(line.split() == ["holds", "served", "2", "1"] for line in said)
    assert any(line.split() == ["settled", "0.65", "0.25"] for line in said)
    assert "  bob  1 refused, 1 reason" in said
    assert any("hold b: held 0.4 usd -> exhausted (spent, jev)" in line for line in said)


def test_json_says_the_same(record: str, tmp_path: Path) -> None:
    result = run("whatif", DAY, "--plan", plan(tmp_path, "0.50"), "--record", record, "--json")
    document = json.loads(result.stdout)
    assert (document["same"], document["differ"]["holds"]["refused"]) == (False, 1)
    assert document["first"][0]["id"] == "b"
    assert document["budgets"][0]["would_be"]["settled"] == "0.25"


def test_factors_and_prices_need_no_plan(record: str) -> None:
    given = ("--hold-factor", "1.5", "--price", "small=2", "--assume", "grant", "--first", "0", "--json")
    document = json.loads(run("whatif", DAY, *given, "--record", record).stdout)
    assert document["change"] == {"plan": [], "hold_factor": "1.5", "prices": {"small": "2"}, "assume": "grant"}
    assert document["first"] == []


WRONG = [
    (DAY,),
    ("30 November", "--hold-factor", "2"),
    (DAY, "--hold-factor", "0"),
    (DAY, "--hold-factor", "much"),
    (DAY, "--price", "small"),
    (DAY, "--price", "small=1", "--price", "small=2"),
    (DAY, "--price", "small=x"),
    (DAY, "--plan", "nowhere.toml"),
    (DAY, "--hold-factor", "2", "--first", "10001"),
    (DAY, "--hold-factor", "2", "--assume", "nothing"),
]


@pytest.mark.parametrize("arguments", WRONG)
def test_what_cannot_be_meant_ends_with_2(arguments: tuple[str, ...], record: str) -> None:
    assert run("whatif", *arguments, "--record", record).exit_code == 2


@pytest.mark.parametrize("text", ["", "[budgets.jev]\nunit = 'usd'", "[budget.jev]\nunit = 'usd'"])
def test_what_is_no_plan_ends_with_1(text: str, record: str, tmp_path: Path) -> None:
    path = tmp_path / "other.toml"
    path.write_text(text)
    result = run("whatif", DAY, "--plan", str(path), "--record", record)
    assert (result.exit_code, "other.toml" in result.stderr) == (1, True)


def test_m19_a_tampered_record_ends_with_4(tmp_path: Path) -> None:
    tamper, _ = FOUND_BY_THE_CHAIN["an ask with another amount"]
    record = written(tamper(recorded(story())), tmp_path / "record.jsonl")
    assert run("whatif", DAY, "--hold-factor", "2", "--record", record).exit_code == 4
