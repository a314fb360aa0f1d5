"""`purse audit` and `purse receipt` on a raw export: what is printed, and how they end."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from click.testing import Result
from command_line import clean_environment, run
from records import recorded, seals_of, story, two_days, written
from tampering import FOUND_BY_THE_CHAIN, cut, edited, forked

from engine.journal import Stored
from engine.recorded import Recorded
from projector.seals.witness import SealWitness, path_of

__all__ = ["clean_environment"]  # fixtures

DAY = "2026-11-30"


def audit(stream: Sequence[Stored], path: Path, *arguments: str) -> Result:
    return run("audit", *arguments, "--record", str(written(stream, path / "record.jsonl")))


def receipt(stream: Sequence[Stored], seq: int) -> str:
    return f"{seq}:{Recorded.read(stream[seq - 1]).chain.hex()}"


# --- a day ------------------------------------------------------------------------------------------------------------


def test_a_day_that_is_right_ends_with_0_and_can_be_read(tmp_path: Path) -> None:
    stream = recorded(story())
    result = audit(stream, tmp_path, DAY)
    assert result.exit_code == 0
    said = result.stdout.splitlines()
    assert said[0].startswith("Audit of 2026-11-30 (UTC), wallet main: 2026-11-30T00:00:00Z until 2026-12-01T00:00:00Z")
    assert said[0].endswith(", not over yet (as of 2026-11-30T09:20:00Z)")
    assert f"Receipt: {receipt(stream, 9)}" in said[2]
    assert "  jev of 2026-11-30 (usd)" in said
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize("process", ["--one-process", "--no-redecide"])
def test_one_process_says_the_same_as_two(tmp_path: Path, process: str) -> None:
    stream = recorded(story())
    two = json.loads(audit(stream, tmp_path, DAY, "--json").stdout)
    one = json.loads(audit(stream, tmp_path, DAY, "--json", process).stdout)
    ours = ("checked", "unchecked") if process == "--no-redecide" else ()
    assert {name: two[name] for name in two if name not in ours} == {n: one[n] for n in one if n not in ours}
    assert ("decided again by the rules" in str(one["checked"])) == (process == "--one-process")


def test_another_decision_ends_with_1_and_is_named_by_the_second_process_too(tmp_path: Path) -> None:
    other = forked(lambda stream: stream, told=lambda e: msgspec.structs.replace(e, lapsed=[]))(recorded(story()))
    for process in ((), ("--one-process",)):
        document = audit(other, tmp_path, DAY, "--json", *process)
        assert document.exit_code == 1
        found = json.loads(document.stdout)
        assert (found["right"], found["first_wrong"], found["difference"]["seq"]) == (False, 6, 6)
    result = audit(other, tmp_path, DAY)
    assert result.exit_code == 1
    assert "SOMETHING IS OFF, first at sequence 6." in result.stdout


@pytest.mark.parametrize("what", FOUND_BY_THE_CHAIN)
def test_m19_a_tampered_record_ends_with_4_and_names_its_first_sequence(tmp_path: Path, what: str) -> None:
    tamper, first = FOUND_BY_THE_CHAIN[what]
    result = audit(tamper(recorded(story())), tmp_path, DAY, "--one-process", "--json")
    assert result.exit_code == 4
    said = json.loads(result.stdout)
    assert (said["trusted"], said["first_wrong"]) == (False, first)
    assert f"first at sequence {first:,}" in result.stderr


def test_m19_a_cut_and_a_fork_end_with_4_where_a_receipt_is_given(tmp_path: Path) -> None:
    stream = recorded(story())
    kept = receipt(stream, 9)
    for changed in (cut(8)(stream), forked(edited(2, b'"user":"alice"', b'"user":"mallo"'))(stream)):
        assert audit(changed, tmp_path, DAY).exit_code == 0
        assert audit(changed, tmp_path, DAY, "--receipt", kept).exit_code == 4
    assert audit(stream, tmp_path, DAY, "--receipt", kept).exit_code == 0


def test_m19_a_file_that_was_cut_off_behind_its_first_line_ends_with_4(tmp_path: Path) -> None:
    stream = recorded(story())
    file = written(stream, tmp_path / "record.jsonl")
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:-1]))
    for process in ((), ("--one-process",)):
        result = run("audit", DAY, "--record", str(file), "--json", *process)
        assert (result.exit_code, json.loads(result.stdout)["first_wrong"]) == (4, 9)


@pytest.mark.parametrize(
    "arguments",
    [(), (DAY, "--hold", "a"), ("monday",), (DAY, "--receipt", "9"), ("--at", "noon"), ("--at", "2026-11-30T09:00:00"),
     (DAY, "--follow")],
)  # fmt: skip
def test_what_cannot_be_meant_ends_with_2(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert audit(recorded(story()), tmp_path, *arguments).exit_code == 2


@pytest.mark.parametrize("text", ["", "{}\n", "no\n", '{"export":"raw","v":2,"wallet":"w"}\n'])
def test_what_is_no_raw_export_is_said_of_the_file_and_ends_with_1(tmp_path: Path, text: str) -> None:
    file = tmp_path / "other.jsonl"
    file.write_text(text)
    result = run("audit", DAY, "--record", str(file))
    assert result.exit_code == 1
    assert "raw export" in result.stderr


def test_a_torn_line_is_named_by_its_number(tmp_path: Path) -> None:
    file = Path(written(recorded(story()), tmp_path / "torn.jsonl"))
    file.write_bytes(file.read_bytes()[:-9])
    result = run("audit", DAY, "--record", str(file))
    assert result.exit_code == 1
    assert "line 10 " in result.stderr


def test_where_nothing_is_that_is_said(tmp_path: Path) -> None:
    result = run("audit", DAY, "--data", str(tmp_path / "none"))
    assert result.exit_code == 1
    assert "there is no store" in result.stderr


# --- with an export ---------------------------------------------------------------------------------------------------


def test_an_audit_writes_its_day_in_the_same_reading(tmp_path: Path) -> None:
    stream = recorded(story())
    result = audit(stream, tmp_path, DAY, "--export", "day.csv", "--json")
    assert result.exit_code == 0
    said = json.loads(result.stdout)
    head, *rows = (tmp_path / "day.csv").read_text().splitlines()
    assert said["export"] == {"file": "day.csv", **json.loads(head.removeprefix("# "))}
    found = list(csv.DictReader(rows))
    assert (len(found), said["export"]["rows"], said["export"]["days"]) == (said["export"]["rows"], 6, DAY)
    assert sum(int(row["settled"]) for row in found) == 650_000_000
    assert said["budgets"][0]["settled"] == "0.65"
    assert "Exported: 6 rows to day.csv" in audit(stream, tmp_path, DAY, "--export", "day.csv").stdout


def test_rows_behind_the_day_are_not_in_its_export(tmp_path: Path) -> None:
    assert audit(recorded(story()), tmp_path, "2026-11-29", "--export", "day.jsonl").exit_code == 0
    assert json.loads((tmp_path / "day.jsonl").read_text())["rows"] == 0


@pytest.mark.parametrize("arguments", [("--hold", "a"), (DAY, "--follow"), ("--at", "2026-11-30T09:00:00Z")])
def test_an_export_goes_with_a_day_alone(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert audit(recorded(story()), tmp_path, *arguments, "--export", "day.csv").exit_code == 2


@pytest.mark.parametrize("file", ["day.txt", "nowhere/day.csv"])
def test_a_file_that_cannot_be_written_ends_with_1(tmp_path: Path, file: str) -> None:
    assert audit(recorded(story()), tmp_path, DAY, "--export", file).exit_code == 1


def test_m19_a_tampered_record_leaves_no_file(tmp_path: Path) -> None:
    tamper, _ = FOUND_BY_THE_CHAIN["an ask with another amount"]
    assert audit(tamper(recorded(story())), tmp_path, DAY, "--export", "day.csv").exit_code == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["record.jsonl"]


# --- a moment ---------------------------------------------------------------------------------------------------------


def test_the_wallet_is_shown_as_it_was_between_two_messages(tmp_path: Path) -> None:
    stream = recorded(story())
    said = json.loads(audit(stream, tmp_path, "--at", "2026-11-30T09:00:30Z", "--json").stdout)
    assert (said["upto"], said["open_holds"], said["start"]) == (2, 1, 0)
    assert (said["budgets"][0]["held"], said["budgets"][0]["remaining"]) == ("0.4", "0.6")
    later = json.loads(audit(stream, tmp_path, "--at", "2026-11-30T10:02:00+01:00", "--json").stdout)
    assert (later["upto"], later["budgets"][0]["settled"], later["budgets"][0]["held"]) == (4, "0.25", "0.4")
    text = audit(stream, tmp_path, "--at", "2026-11-30T09:00:30Z").stdout.splitlines()
    assert text[1] == "  jev of 2026-11-30: 0.4 of 1 usd used (settled 0, held 0.4, extra 0), 0.6 left"


def test_a_hold_that_is_due_is_said_to_be(tmp_path: Path) -> None:
    said = json.loads(audit(recorded(story()), tmp_path, "--at", "2026-11-30T09:15:00Z", "--json").stdout)
    assert (said["open_holds"], said["due"]) == (1, 1)


def test_before_the_first_message_there_is_nothing(tmp_path: Path) -> None:
    said = json.loads(audit(recorded(story()), tmp_path, "--at", "2026-11-29T00:00:00Z", "--json").stdout)
    assert (said["upto"], said["budgets"], said["plan"]) == (0, [], "")


# --- a call -----------------------------------------------------------------------------------------------------------


def test_a_call_is_shown_from_its_hold_to_its_end_with_receipts(tmp_path: Path) -> None:
    stream = recorded(story())
    said = json.loads(audit(stream, tmp_path, "--hold", "a", "--json").stdout)
    assert [(one["seq"], one["outcome"]["outcome"]) for one in said["events"]] == [(2, "held"), (3, "settled")]
    assert said["events"][1]["ask"]["amounts"] == {"usd": "0.25"}
    assert said["events"][1]["outcome"]["charged"] == {"usd": "0.25"}
    assert said["events"][1]["receipt"] == {"seq": 8, "chain": receipt(stream, 8)[2:]}
    lapsed = audit(stream, tmp_path, "--hold", "b").stdout
    assert "message 6: by time -> lapsed" in lapsed
    assert f"receipt  {receipt(stream, 9)}" in lapsed


def test_a_hold_nobody_asked_for_is_not_found(tmp_path: Path) -> None:
    result = audit(recorded(story()), tmp_path, "--hold", "z")
    assert (result.exit_code, "names this hold" in result.stderr) == (1, True)


# --- seals, snapshots -------------------------------------------------------------------------------------------------


def test_the_command_compares_with_a_copy_of_the_witness_and_names_day_and_sequence(tmp_path: Path) -> None:
    stream, other = two_days(), two_days(first="0.20")
    witness = SealWitness(tmp_path, "main")
    for line in seals_of(stream):
        witness.see(line)
    witness.write()
    copy = str(path_of(tmp_path, "main"))
    right, rewritten = (str(written(one, tmp_path / f"{one[6].seq}{i}.jsonl")) for i, one in enumerate((stream, other)))
    days = "2026-11-30..2026-12-01"
    said = run("audit", days, "--record", right, "--seals", copy)
    assert (said.exit_code, "The seals of 2 days are those that a witness has seen." in said.stdout) == (0, True)
    alone = run("audit", days, "--record", rewritten)
    assert (alone.exit_code, "no witness was given" in alone.stdout) == (0, True)
    shown = run("audit", days, "--record", rewritten, "--seals", copy, "--one-process")
    place = seals_of(stream)[0].told
    assert (shown.exit_code, f"first at sequence {place}: the seal of 2026-11-30" in shown.stderr) == (4, True)


def test_a_witness_with_lines_that_are_no_seals_is_named(tmp_path: Path) -> None:
    (tmp_path / "copy.jsonl").write_text("{}\n")
    record = written(two_days(), tmp_path / "record.jsonl")
    said = run("audit", "2026-11-30", "--record", str(record), "--seals", str(tmp_path / "copy.jsonl"))
    assert (said.exit_code, "copy.jsonl: 1 of its lines are no seals" in said.stderr) == (1, True)


def test_a_file_leaves_no_snapshots_anywhere(tmp_path: Path) -> None:
    record = str(written(two_days(), tmp_path / "record.jsonl"))
    assert run("audit", "2026-11-30", "--record", record).exit_code == 0
    assert run("audit", "--at", "2026-11-30T12:00:00Z", "--record", record).exit_code == 0
    assert [file.name for file in tmp_path.iterdir()] == ["record.jsonl"]


# --- a receipt --------------------------------------------------------------------------------------------------------


def verify(stream: Sequence[Stored], path: Path, given: str, *arguments: str) -> Result:
    return run("receipt", "verify", given, "--record", str(written(stream, path / "record.jsonl")), *arguments)


def test_a_receipt_stands_where_the_record_is_the_one_that_was_told(tmp_path: Path) -> None:
    stream = recorded(story())
    result = verify(stream, tmp_path, receipt(stream, 8))
    assert (result.exit_code, result.stdout.startswith("It stands: the 8 messages")) == (0, True)


def test_an_answer_of_the_api_in_a_file_is_a_receipt(tmp_path: Path) -> None:
    stream = recorded(story())
    seq, _, chain = receipt(stream, 8).partition(":")
    for document in ({"outcome": "held", "receipt": {"seq": int(seq), "chain": chain}}, {"seq": 8, "chain": chain}):
        (tmp_path / "answer.json").write_text(json.dumps(document))
        result = verify(stream, tmp_path, str(tmp_path / "answer.json"), "--json")
        assert json.loads(result.stdout) == {"stands": True, "seq": 8, "chain": chain, "messages": 8}


def test_m19_a_receipt_does_not_stand_where_anything_before_it_was_changed(tmp_path: Path) -> None:
    stream = recorded(story())
    kept = receipt(stream, 9)
    changed = [
        edited(2, b'"usd":400000000', b'"usd":300000000')(stream),
        forked(edited(2, b'"user":"alice"', b'"user":"mallo"'))(stream),
        cut(8)(stream),
    ]
    for record in changed:
        assert verify(record, tmp_path, kept).exit_code == 4
    assert verify(stream, tmp_path, f"7:{'0' * 64}").exit_code == 4
    assert verify(stream, tmp_path, f"3:{'0' * 64}").exit_code == 4


@pytest.mark.parametrize("given", ["", "7", "7:abc", "none.json", "0:" + "0" * 64])
def test_what_is_no_receipt_ends_with_2(tmp_path: Path, given: str) -> None:
    assert verify(recorded(story()), tmp_path, given).exit_code == 2
