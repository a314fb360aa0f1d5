"""What `purse doctor` sees around the stream: a line a thing, with what to do, and never a key."""

from __future__ import annotations

import socket
from pathlib import Path

from commonpurse.findings import Patient, Report
from commonpurse.surroundings import look_around, look_at_port
from engine.core.wallet import Wallet
from engine.snapshots import Snapshot, Snapshots
from engine.spool_file import SpoolFile, asks_in

SECRET = "sk-never-shown-4711"
UPSTREAM = '[upstreams.openai]\nbase_url = "https://api.example.com/v1"\nkey_env = "MODEL_KEY"\n'


def looked(patient: Patient, **environment: str) -> Report:
    report = Report()
    look_around(patient, report, environment)
    assert SECRET not in str(report)
    return report


def found(report: Report, check: str) -> list[tuple[str, str]]:
    return [(finding.state, finding.says) for finding in report.findings if finding.check == check]


def states(report: Report, check: str) -> list[str]:
    return [state for state, _ in found(report, check)]


def test_a_key_file_that_others_may_read_fails_and_says_how_to_mend_it(tmp_path: Path) -> None:
    key = tmp_path / "admin.key"
    key.write_text(SECRET)
    key.chmod(0o644)
    report = looked(Patient(data=tmp_path))
    ((state, says),) = found(report, "keys")
    assert (state, f"chmod 600 {key}" in says) == ("problem", True)
    assert report.exit_code == 1
    key.chmod(0o600)
    assert states(looked(Patient(data=tmp_path)), "keys") == ["ok"]


def test_an_upstreams_key_is_there_or_is_not_and_is_never_shown(tmp_path: Path) -> None:
    config = tmp_path / "purse.toml"
    config.write_text(UPSTREAM)
    patient = Patient(data=tmp_path, config=config)
    missing = looked(patient)
    ((state, says),) = found(missing, "upstreams")
    assert (state, "MODEL_KEY" in says) == ("warning", True)
    assert missing.exit_code == 0
    assert states(looked(patient, MODEL_KEY=SECRET), "upstreams") == ["ok"]


def test_a_config_that_cannot_be_read_is_said_once(tmp_path: Path) -> None:
    config = tmp_path / "purse.toml"
    config.write_text("[web]\nasks_per_minute = -1\n")
    report = looked(Patient(data=tmp_path, config=config))
    ((state, says),) = found(report, "config")
    assert (state, "web.asks_per_minute" in says) == ("problem", True)
    assert found(report, "upstreams") == []


def test_snapshots_are_good_or_it_says_from_where_the_next_start_reads(tmp_path: Path) -> None:
    patient, snapshots = Patient(data=tmp_path), Snapshots(tmp_path, "main")
    assert states(looked(patient), "snapshots") == ["ok", "ok"]
    snapshots.write(Snapshot(Wallet("main"), 7, b"c" * 32))
    assert "sequence 7" in found(looked(patient), "snapshots")[0][1]
    snapshots.write(Snapshot(Wallet("main"), 9, b"c" * 32))
    older, newer = sorted(snapshots.folder.glob("*.snapshot"))
    newer.write_bytes(newer.read_bytes()[:-1])
    (state, says), _ = found(looked(patient), "snapshots")
    assert (state, "sequence 7" in says) == ("warning", True)
    older.write_bytes(b"")
    (state, says), _ = found(looked(patient), "snapshots")
    assert (state, "whole stream" in says) == ("warning", True)


def test_settlements_that_wait_on_disk_are_counted(tmp_path: Path) -> None:
    patient, folder = Patient(data=tmp_path), tmp_path / "spool" / "main"
    assert states(looked(patient), "spool") == ["ok"]
    file = SpoolFile.make(folder)
    first, _ = file.keep([(b'{"ask":"settle","hold":"a"},{"ask":"settle","hold":"b"}', 2), (b'{"ask":"settle"}', 1)])
    assert asks_in(file.path) == 3
    file.strike([first])
    assert asks_in(file.path) == 1
    ((state, says),) = found(looked(patient), "spool")
    assert (state, says[:2]) == ("warning", "1 ")
    file.close()


def test_a_port_in_use_is_a_warning_with_another_way(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = Report()
        look_at_port(Patient(data=tmp_path), busy, {"PURSE_PORT": str(taken.getsockname()[1])})
    ((state, says),) = found(busy, "port")
    assert (state, "--port" in says) == ("warning", True)
    free = Report()
    look_at_port(Patient(data=tmp_path), free, {"PURSE_PORT": "0"})
    assert states(free, "port") == ["ok"]
