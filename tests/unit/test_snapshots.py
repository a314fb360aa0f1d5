"""Snapshot files: whole or not at all, believed only if every bit of them is what was written."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs
from wallets import Books

from engine import snapshots
from engine.core.restore import NotRestoredError, load
from engine.core.wallet import SCHEMA, Wallet
from engine.snapshots import HASH_BYTES, Snapshot, Snapshots, UnusableError, decode, encode

CHAIN = bytes(range(32))


def wallet() -> Wallet:
    """One that has a bit of everything."""
    books = Books()
    books.at("09:00").hold("open", "0.10", user="alice")
    books.hold("lapsed", "0.10", ttl_s=1)
    books.hold("closed", "0.10")
    books.settle("closed", "0.04")
    books.hold("refused", "9.00", by="09:30")
    books.freeze("user=bob")
    books.revoke("key", "k1")
    books.observe("0.50")
    books.at("09:01").tick()
    return books.wallet


def snapshot(told: int = 77) -> Snapshot:
    return Snapshot(wallet(), told, CHAIN)


def rewritten(data: bytes, change: Callable[[dict[str, Any]], None], *, body: bytes | None = None) -> bytes:
    """The same file as another release might have written it: whole, with another header."""
    head, _, rest = data.partition(b"\n")
    header = msgspec.json.decode(head)
    change(header)
    kept = rest[:-HASH_BYTES] if body is None else body
    running = msgspec.json.encode({**header, "bytes": len(kept)}) + b"\n" + kept
    return running + blake2b(running, digest_size=HASH_BYTES).digest()


def why(data: bytes, *, name: str = "main") -> str:
    with pytest.raises(UnusableError) as error:
        decode(data, wallet=name)
    return str(error.value)


def test_what_is_read_is_what_was_written() -> None:
    found = decode(encode(snapshot()), wallet="main")
    assert found.wallet.dump() == wallet().dump()
    assert (found.told, found.chain) == (77, CHAIN)
    found.wallet.check()


def test_m13_torn_at_any_byte_it_is_detected() -> None:
    data = encode(snapshot())
    for length in range(len(data)):
        why(data[:length])
    assert "torn" in why(data[:-1])
    assert "torn" in why(data + b"\0")


def test_m13_any_flipped_bit_is_detected_in_the_header_too() -> None:
    data = encode(snapshot())
    for place in range(len(data)):
        flipped = bytearray(data)
        flipped[place] ^= 1 << (place % 8)
        why(bytes(flipped))


def test_m13_two_halves_of_different_snapshots_are_detected() -> None:
    one, other = encode(snapshot(77)), encode(snapshot(78))
    assert len(one) == len(other)
    for cut in range(60, len(one) - 1, 97):
        why(one[:cut] + other[cut:])


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("schema", 1, "schema 1"),
        ("rules", 99, "rules 99"),
        ("wallet", "other", "of the wallet 'other'"),
        ("upto", 1_000, "of another state"),
        ("chain", "zz", "non-hexadecimal"),
    ],
)
def test_m13_of_another_schema_other_rules_or_another_wallet_it_is_not_used(
    field: str, value: object, said: str
) -> None:
    assert said in why(rewritten(encode(snapshot()), lambda header: header.update({field: value})))


def test_m13_a_whole_file_without_a_wallet_in_it_is_not_used() -> None:
    data = encode(snapshot())
    for body in (b"", b"{}", b"[]", json({"schema": SCHEMA}), b"\xff"):
        assert "no state of a wallet" in why(rewritten(data, lambda _: None, body=body))


def test_m13_a_hold_on_a_meter_that_is_not_there_is_not_used() -> None:
    body = msgspec.json.decode(wallet().dump())
    body["meters"] = []
    assert "names what it does not have" in why(rewritten(encode(snapshot()), lambda _: None, body=json(body)))


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("changed", b"", "differ in length"),
        ("forget_at", b"1234567", "bytes length not a multiple"),
        ("ids", "closed\nother", "differ in length"),
        ("kinds", [], "other amounts than their kinds say"),
        ("charged", b"", "other amounts than their kinds say"),
        ("kinds", [["settled", False, ["usd", "jpy"]]], "other amounts than their kinds say"),
    ],
)
def test_m13_closed_holds_whose_columns_do_not_belong_together_are_not_used(
    column: str, value: object, said: str
) -> None:
    body = msgspec.json.decode(wallet().dump())
    assert body["closed"][0]["ids"] == "closed"
    body["closed"][0][column] = value
    assert said in why(rewritten(encode(snapshot()), lambda _: None, body=json(body)))


def json(value: object) -> bytes:
    return msgspec.json.encode(value)


@pytest.mark.parametrize("dump", [b'{"schema":1,"other":"shape"}', b'{"schema":0}'])
def test_a_state_of_an_unknown_schema_is_refused_by_its_number(dump: bytes) -> None:
    with pytest.raises(NotRestoredError, match=rf"under schema \d, this release reads schema {SCHEMA}"):
        load(dump)
    whole = json({**msgspec.json.decode(wallet().dump()), "schema": SCHEMA + 1})
    with pytest.raises(NotRestoredError, match=f"under schema {SCHEMA + 1}, this release reads schema {SCHEMA}"):
        load(whole)


# --- a folder of them -------------------------------------------------------------------------------------------------


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_the_newest_three_are_kept(tmp_path: Path) -> None:
    shelf = Snapshots(tmp_path, "main")
    for told in (5, 100, 20, 3_000, 1_000):
        shelf.write(snapshot(told))
    assert [int(name.partition(".")[0]) for name in names(shelf.folder)] == [100, 1_000, 3_000]
    newest = shelf.newest()
    assert newest is not None
    assert newest.told == 3_000


def test_nothing_is_found_where_nothing_is(tmp_path: Path) -> None:
    assert Snapshots(tmp_path, "main").newest() is None


def test_m13_bad_ones_are_skipped_and_reported_with_the_reason_and_the_next_good_one_is_taken(tmp_path: Path) -> None:
    shelf = Snapshots(tmp_path, "main")
    for told in (10, 20, 30):
        shelf.write(snapshot(told))
    good, torn, other = (shelf.folder / name for name in names(shelf.folder))
    torn.write_bytes(torn.read_bytes()[:200])
    other.write_bytes(rewritten(other.read_bytes(), lambda header: header.update(schema=9)))
    (shelf.folder / f"{99:020}.snapshot").mkdir()  # whatever somebody put there
    with capture_logs() as logs:
        newest = shelf.newest()
    assert newest is not None
    assert newest.told == 10
    skipped = [said for said in logs if said["event"] == "snapshot_skipped"]
    assert [Path(said["file"]).name for said in skipped] == [f"{99:020}.snapshot", other.name, torn.name]
    assert "schema 9" in skipped[1]["why"]
    assert "torn" in skipped[2]["why"]
    assert good.exists()
    assert torn.exists()


def test_what_a_killed_writer_left_is_cleared_away_and_what_is_being_written_is_not(tmp_path: Path) -> None:
    shelf = Snapshots(tmp_path, "main")
    shelf.write(snapshot(1))
    left, written = shelf.folder / "a.unfinished", shelf.folder / "b.unfinished"
    left.write_bytes(b"half")
    with open(written, "wb") as file:
        snapshots.fcntl.flock(file, snapshots.fcntl.LOCK_EX)
        shelf.write(snapshot(2))
        assert not left.exists()
        assert written.exists()
    assert len(list(shelf.folder.glob("*.snapshot"))) == 2


def test_a_write_that_fails_leaves_the_older_ones(tmp_path: Path) -> None:
    shelf = Snapshots(tmp_path, "main")
    shelf.write(snapshot(1))
    (shelf.folder / f"{2:020}.snapshot").mkdir()  # its name is taken by something that no rename replaces
    with pytest.raises(OSError, match=r"(?i)directory"):
        shelf.write(snapshot(2))
    newest = shelf.newest()
    assert newest is not None
    assert newest.told == 1
