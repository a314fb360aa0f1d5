"""The `purse` command against a small fake of the API: what it sends, what it says, how it ends."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import click
import pytest
from api_contract import check_contract
from click.testing import CliRunner, Result
from fake_api import AT, KEY, STATUS, FakeApi, fake_api

from commonpurse.__main__ import COMMANDS, purse
from commonpurse.http import Api
from engine.core.wallet import SCHEMA
from engine.errors import NoAnswer


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with fake_api() as running:
        yield running


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("PURSE_")] + ["NO_COLOR"]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def run_plain(*arguments: str) -> Result:
    return CliRunner().invoke(purse, arguments, catch_exceptions=False)


HOLD = ("hold", "--id", "call-1", "--amount", "usd=0.25", "--label", "provider=jev")


def test_the_fake_passes_the_contract_of_the_real_api(api: FakeApi) -> None:
    check_contract(api.url, KEY)


# --- hold -------------------------------------------------------------------------------------------------------------


def test_a_hold_says_what_it_holds_from_where_until_when_and_what_is_left(api: FakeApi) -> None:
    result = api.ask(*HOLD)
    assert result.exit_code == 0
    assert result.output == "held 0.25 usd from jev until 2040-11-30 14:05:12 UTC; 0.75 usd left\n"
    assert api.bodies("/v1/holds") == [{"id": "call-1", "amounts": {"usd": "0.25"}, "labels": {"provider": "jev"}}]


def test_a_hold_sends_every_option_it_is_given(api: FakeApi) -> None:
    api.canned["/v1/holds"] = (201, {"outcome": "held", "id": "x", "amounts": {"usd": "1"}, "periods": {}})
    api.ask(*HOLD, "--least", "usd=0.1", "--ttl", "60", "--on-lapse", "release", "--wait", "2.5")
    assert api.bodies("/v1/holds") == [{
        "id": "call-1", "options": [{"amounts": {"usd": "0.25"}, "least": {"usd": "0.1"}}],
        "labels": {"provider": "jev"}, "ttl_s": 60, "on_lapse": "release", "wait_s": 2.5,
    }]  # fmt: skip


def test_a_hold_sends_the_grade_of_its_answer(api: FakeApi) -> None:
    api.canned["/v1/holds"] = (201, {"outcome": "held", "id": "x", "amounts": {"usd": "1"}, "periods": {}})
    api.ask(*HOLD, "--grade", "0")
    [sent] = api.bodies("/v1/holds")
    assert sent["options"] == [{"amounts": {"usd": "0.25"}, "grade": 0}]
    assert "amounts" not in sent


def test_a_refusal_by_tier_says_what_is_left(api: FakeApi) -> None:
    problem = {"why": "tier", "budget": "jev", "unit": "usd", "fits": "0", "tier": None, "detail": "It is: cache only."}
    api.canned["/v1/holds"] = (402, {"outcome": "exhausted", "status": 402, **problem})
    result = api.ask(*HOLD, "--grade", "0")
    assert result.exit_code == 3
    assert result.output == "refused by the jev budget: It is: cache only.\n"


def test_a_hold_without_an_id_makes_one_and_says_it(api: FakeApi) -> None:
    result = api.ask("hold", "--amount", "usd=0.25")
    [id] = api.calls
    assert result.output.endswith(f"its id is {id}\n")


def test_the_same_hold_twice_is_held_once_and_both_succeed(api: FakeApi) -> None:
    assert [api.ask(*HOLD).exit_code for _ in range(2)] == [0, 0]
    assert api.held == 250_000_000


def test_a_used_up_budget_is_a_refusal_with_exit_code_3(api: FakeApi) -> None:
    api.limit = 100_000_000
    api.ask("hold", "--id", "first", "--amount", "usd=0.05")
    api.ask("settle", "first", "--amount", "usd=0.1")
    result = api.ask("hold", "--id", "second", "--amount", "usd=0.01")
    assert result.exit_code == 3
    assert result.output == "refused: today's jev budget is used up; it resets at 2040-12-01 00:00 UTC\n"


def test_json_prints_the_answer_of_the_api_unchanged(api: FakeApi) -> None:
    first = api.ask("--json", *HOLD)
    after = api.ask(*HOLD, "--json")
    assert json.loads(first.output) == json.loads(after.output)
    assert first.output.count("\n") == 1
    assert json.loads(first.output)["receipt"] == {"seq": 7, "chain": "ab" * 32}


def test_json_prints_a_refusal_too(api: FakeApi) -> None:
    result = api.ask("--json", "hold", "--id", "x", "--amount", "usd=2")
    assert result.exit_code == 3
    assert json.loads(result.output)["why"] == "never"


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        ("frozen", 403),
        ("revoked", 403),
        ("cooling", 429),
        ("late", 503),
        ("closed", 409),
        ("conflict", 422),
        ("invalid", 400),
    ],
)
def test_every_verdict_but_held_is_exit_code_3(api: FakeApi, outcome: str, status: int) -> None:
    api.canned["/v1/holds"] = (status, {"outcome": outcome, "status": status, "detail": "Slow down."})
    result = api.ask(*HOLD)
    assert (result.exit_code, result.output) == (3, "refused: Slow down.\n")


def test_a_wallet_without_a_plan_is_an_error_not_a_refusal(api: FakeApi) -> None:
    api.canned["/v1/holds"] = (503, {"outcome": "invalid", "why": "no_plan", "status": 503, "detail": "No plan yet."})
    result = api.ask(*HOLD)
    assert (result.exit_code, result.output) == (1, "purse: HTTP 503: No plan yet.\n")


def test_a_stream_that_cannot_be_trusted_is_exit_code_4(api: FakeApi) -> None:
    api.canned["/v1/holds"] = (503, {"type": "/problems/untrusted", "status": 503, "detail": "It cannot be trusted."})
    assert api.ask(*HOLD).exit_code == 4


def test_an_error_page_of_something_else_is_one_clear_line(api: FakeApi) -> None:
    api.fail("/v1/holds", "garbage")
    result = api.ask(*HOLD)
    assert (result.exit_code, result.output) == (1, "purse: HTTP 502\n")


def test_control_characters_of_others_do_not_reach_the_terminal(api: FakeApi) -> None:
    api.canned["/v1/holds"] = (403, {"outcome": "frozen", "status": 403, "detail": "\x1b[2Jheld 1 usd"})
    assert "\x1b" not in api.ask(*HOLD).output


# --- the key and the address ------------------------------------------------------------------------------------------


def test_a_wrong_key_is_an_error_that_says_so(api: FakeApi) -> None:
    result = run_plain("--url", api.url, "--key", "wrong", *HOLD)
    assert result.exit_code == 1
    assert result.output == "purse: the key is missing or not known: This key is not known here.\n"


def test_the_key_comes_from_the_data_folder_when_none_is_given(api: FakeApi, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/admin.key").write_text(f"{KEY}\n")
    assert run_plain("--url", api.url, *HOLD).exit_code == 0


def test_the_data_folder_is_where_purse_data_says(
    api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "admin.key").write_text(KEY)
    monkeypatch.setenv("PURSE_DATA", str(tmp_path))
    assert run_plain("--url", api.url, *HOLD).exit_code == 0


def test_the_key_of_this_machine_is_not_sent_to_another(tmp_path: Path) -> None:
    from commonpurse.commands import Face

    (tmp_path / "data").mkdir()
    (tmp_path / "data/admin.key").write_text(KEY)
    assert Face("https://purse.example.org").key is None
    assert Face("http://127.0.0.1:8080").key == KEY


def test_address_and_key_come_from_the_environment_and_what_is_written_wins(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PURSE_URL", api.url)
    monkeypatch.setenv("PURSE_KEY", "wrong")
    assert run_plain(*HOLD).exit_code == 1
    assert run_plain("--key", KEY, *HOLD).exit_code == 0
    assert run_plain(*HOLD, "--key", KEY).exit_code == 0


def test_nobody_there_is_one_line_that_names_the_address_and_the_way_out() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        result = run_plain("--url", url, "status")
    assert result.exit_code == 1
    assert result.output == (
        f"purse: no answer from {url} (connection refused); "
        "start a wallet with `purse up`, or name another with --url\n"
    )


def test_a_hold_nobody_answered_says_how_to_ask_again(api: FakeApi) -> None:
    api.fail("/v1/holds", "after")
    result = api.ask(*HOLD)
    assert result.exit_code == 1
    assert "asking again with the same id is safe (--id call-1)" in result.output


# --- usage ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ("hold", "--id", "x"),
        ("hold", "--amount", "usd"),
        ("hold", "--amount", "usd=0.1e3"),
        ("hold", "--amount", "usd=-1"),
        ("hold", "--amount", "usd=1", "--amount", "usd=2"),
        ("hold", "--amount", "usd=1", "--ttl", "0"),
        ("settle", "x"),
        ("renew", "x"),
        ("adjust", "jev", "much", "--period", "2040-11-30", "--reason", "r"),
        ("revoke", "alice", "--reason", "r"),
        ("freeze", "all"),
        ("--url", "example.org", "status"),
        ("drive", "missing.csv"),
        ("nonsense",),
    ],
)
def test_what_is_written_wrongly_is_exit_code_2_and_sends_nothing(api: FakeApi, arguments: tuple[str, ...]) -> None:
    assert api.ask(*arguments).exit_code == 2
    assert api.seen == []


# --- settle, release, renew -------------------------------------------------------------------------------------------


def test_a_settle_says_what_was_charged_and_what_came_back(api: FakeApi) -> None:
    api.ask(*HOLD)
    result = api.ask("settle", "call-1", "--amount", "usd=0.2")
    assert (result.exit_code, result.output) == (0, "settled at 0.2 usd; 0.05 usd came back; 0.8 usd left\n")


def test_a_settle_above_the_hold_says_so(api: FakeApi) -> None:
    api.ask(*HOLD)
    assert "(more than was held)" in api.ask("settle", "call-1", "--amount", "usd=0.3").output


def test_a_settle_of_another_amount_is_an_error_that_says_what_stands(api: FakeApi) -> None:
    api.ask(*HOLD)
    api.ask("settle", "call-1", "--amount", "usd=0.2")
    assert api.ask("settle", "call-1", "--amount", "usd=0.2").exit_code == 0
    assert api.ask("settle", "call-1", "--amount", "usd=0.3").exit_code == 1
    assert api.settled == 200_000_000


def test_a_settle_sends_every_option_it_is_given(api: FakeApi) -> None:
    api.ask("settle", "a:b", "--amount", "usd=0.2", "--progress", "--estimated", "--held-at", "2040-11-30T14:05:00Z",
        "--label", "provider=jev")  # fmt: skip
    assert api.bodies("/v1/holds/a:b/settle") == [{
        "amounts": {"usd": "0.2"}, "final": False, "estimated": True, "held_at": "2040-11-30T14:05:00Z",
        "labels": {"provider": "jev"},
    }]  # fmt: skip


def test_release_and_renew_send_what_the_api_takes(api: FakeApi) -> None:
    released = {"outcome": "settled", "id": "x", "state": "settled", "charged": {}, "released": {"usd": "0.25"}}
    api.canned["/v1/holds/x/release"] = (200, released)
    api.canned["/v1/holds/x/renew"] = (404, {"outcome": "unknown", "status": 404, "detail": "Not known."})
    assert api.ask("release", "x").output == "released: 0.25 usd came back\n"
    assert api.ask("renew", "x", "--n", "1", "--ttl", "600", "--amount", "usd=0.5").exit_code == 3
    assert api.bodies("/v1/holds/x/release") == [{}]
    assert api.bodies("/v1/holds/x/renew") == [{"n": 1, "ttl_s": 600, "amounts": {"usd": "0.5"}}]


# --- the desk ---------------------------------------------------------------------------------------------------------


def test_desk_commands_send_what_the_api_takes(api: FakeApi) -> None:
    line = {"budget": "jev", "period": "2040-11-30", "limit": "1", "remaining": "0.4"}
    api.canned |= {
        "/v1/observations": (200, {"outcome": "observed", "raised_by": "0", **line}),
        "/v1/adjustments": (200, {"outcome": "adjusted", **line}),
        **{f"/v1/{verb}": (200, {"outcome": "done", "id": "1"}) for verb in ("freeze", "thaw", "revoke", "restore")},
    }
    told = [
        api.ask("observe", "neurons", "4300", "--period", "2040-11-30", "--source", "cloudflare"),
        api.ask("adjust", "jev", "-0.5", "--period", "2040-11-30", "--reason", "refund", "--id", "r1"),
        api.ask("freeze", "user=alice", "--reason", "why", "--until", "2040-11-30T18:00:00Z"),
        api.ask("thaw", "user=alice"),
        api.ask("revoke", "key=k3", "--reason", "leaked"),
        api.ask("restore", "key=k3"),
    ]
    assert [result.exit_code for result in told] == [0] * 6
    assert [result.output for result in told[:2]] == [
        "observed: the wallet had counted that much; 0.4 left in jev\n", "adjusted; 0.4 left in jev\n",
    ]  # fmt: skip
    assert [(path, body) for _, path, body in api.seen] == [
        ("/v1/observations", {"budget": "neurons", "figure": "4300", "period": "2040-11-30", "source": "cloudflare"}),
        (
            "/v1/adjustments",
            {"id": "r1", "budget": "jev", "period": "2040-11-30", "amount": "-0.5", "reason": "refund"},
        ),
        ("/v1/freeze", {"scope": "user=alice", "reason": "why", "until": "2040-11-30T18:00:00Z"}),
        ("/v1/thaw", {"scope": "user=alice"}),
        ("/v1/revoke", {"label": "key", "value": "k3", "reason": "leaked"}),
        ("/v1/restore", {"label": "key", "value": "k3"}),
    ]


# --- status -----------------------------------------------------------------------------------------------------------


def test_status_shows_each_budget_in_a_line(api: FakeApi) -> None:
    api.canned["/v1/status"] = (200, STATUS)
    shown = """\
wallet main as of 2040-11-30 13:55:12 UTC, event #123,456
  jev      ##########=====.....  75 % used, 0.75 of 1 usd, 0.25 held, 0.25 left, resets at 2040-12-01 00:00 UTC
  neurons  ########............  43 % used, resets at 2040-12-01 00:00 UTC
"""
    assert api.ask("status").output == shown


def test_status_says_what_is_frozen_and_that_figures_are_old(api: FakeApi) -> None:
    frost = {"scope": "all", "reason": "audit", "since": "2040-11-30T13:00:00.000Z", "until": None}
    api.canned["/v1/status"] = (200, {**STATUS, "live": False, "frozen": frost})
    lines = api.ask("status").output.splitlines()
    assert lines[0].endswith("(not live: nothing newer comes)")
    assert lines[-1] == "  frozen: everything, until an operator lifts it: audit"


def test_status_says_where_the_wallet_counts_its_own_calls_alone(api: FakeApi) -> None:
    jev, neurons = STATUS["budgets"]  # type: ignore[misc]
    old = {"source": "openai", "read_at": AT, "every_s": 30, "stale": True, "unreadable": False}
    gone = {
        "source": "cloudflare",
        "read_at": None,
        "every_s": 30,
        "stale": True,
        "unreadable": True,
        "why": "it is off",
    }
    budgets = [{**jev, "reading": old}, {**neurons, "reading": gone}]
    api.canned["/v1/status"] = (200, {**STATUS, "budgets": budgets})
    _, first, second = api.ask("status").output.splitlines()
    assert first.endswith(", counting its own calls since 2040-11-30 13:55:12 UTC: openai has no newer figure")
    assert second.endswith(", counting its own calls since the period began: cloudflare cannot be read (it is off)")
    budgets = [{**jev, "reading": {**old, "stale": False}}, neurons]
    api.canned["/v1/status"] = (200, {**STATUS, "budgets": budgets})
    assert "own calls" not in api.ask("status").output


def test_status_as_json_is_the_document(api: FakeApi) -> None:
    api.canned["/v1/status"] = (200, STATUS)
    assert json.loads(api.ask("--json", "status").output) == STATUS


async def test_the_live_stream_gives_each_document_and_says_when_it_ends(api: FakeApi) -> None:
    async with Api.open(api.url, KEY) as wallet:
        live = wallet.events("/v1/status/stream")
        assert [json.loads((await anext(live)).body)["seq"] for _ in range(2)] == [1, 2]
        with pytest.raises(NoAnswer, match="ended the stream"):
            await anext(live)


# --- the command itself -----------------------------------------------------------------------------------------------


def test_help_lists_every_command_and_imports_none() -> None:
    code = """
import sys
from commonpurse.__main__ import purse
purse.main(["--help"], standalone_mode=False)
print([name for name in sys.modules if name in ("aiohttp", "msgspec", "rich", "nats", "asyncio")])
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert said.splitlines()[-1] == "[]"
    assert all(f"\n  {name} " in said for name in COMMANDS)


ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_is_there_and_explains_itself(name: str) -> None:
    command = getattr(import_module(f"commonpurse.commands.{COMMANDS[name][0]}"), name)
    assert isinstance(command, click.Command)
    assert command.name == name
    assert command.help


def test_version_names_the_program_its_rules_and_its_server() -> None:
    said = run_plain("--version").output
    assert said.startswith("commonpurse ")
    assert "rules 1, stream 1, messages 1, snapshots 4, nats-server v2." in said


@pytest.mark.parametrize("arguments", ["--version --json", "--json --version"])
def test_version_is_data_too(arguments: str) -> None:
    said = json.loads(run_plain(*arguments.split()).output)
    assert said["nats_server"].startswith("2.")
    assert {said[name] for name in ("rules", "stream", "messages")} == {1}
    assert (said["snapshots"], said["commonpurse"]) == (SCHEMA, version("commonpurse"))


def test_no_command_at_all_is_a_usage_error() -> None:
    for arguments in ([], ["--json"]):
        assert run_plain(*arguments).exit_code == 2


def test_no_color_is_respected(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = CliRunner()
    arguments = ["--url", api.url, "--key", KEY, *HOLD]
    assert "\x1b[32m" in runner.invoke(purse, arguments, color=True).output
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in runner.invoke(purse, arguments, color=True).output


def test_a_program_imports_the_purse_from_here() -> None:
    import commonpurse
    from engine.client import Purse
    from engine.errors import PurseError

    assert commonpurse.Purse is Purse
    assert commonpurse.PurseError is PurseError
    with pytest.raises(AttributeError):
        _ = commonpurse.Wallet
