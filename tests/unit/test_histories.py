"""Recorded streams replay to the same words, the same balances and the same chain for ever.

A red test here means that this code reads what lies on people's streams otherwise than the code that wrote it did. That
needs a new rules number, never a new recording.
"""

import msgspec
import pytest
from histories.reading import NAMES, asked, balances, expected, history, skipped, told

from engine.core.chain import GENESIS, Covered, link, open_sealed
from engine.core.messages import Entry, Told
from engine.core.retell import retell
from engine.core.tell import fold, tell
from engine.core.wallet import Wallet


def retold(name: str) -> tuple[Wallet, list[Entry]]:
    """The wallet that decides the history anew, and what it says."""
    wallet, passed = Wallet(), skipped(name)
    entries = [
        tell(wallet, seq=line.seq, ts=line.ts, asks=asks, skipped=line.seq in passed) for line, asks in asked(name)
    ]
    return wallet, entries


def refolded(name: str) -> Wallet:
    """The wallet that takes in what was told."""
    wallet = Wallet()
    for (line, asks), entry in zip(asked(name), told(name), strict=True):
        fold(wallet, seq=line.seq, ts=line.ts, asks=asks, entry=entry)
    return wallet


@pytest.mark.parametrize("name", NAMES)
def test_deciding_a_history_anew_says_what_was_told(name: str) -> None:
    _, entries = retold(name)
    assert entries == told(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_history_ends_in_its_balances(name: str) -> None:
    wallet, _ = retold(name)
    wallet.check()
    ending = expected(name)
    assert balances(wallet, bytes.fromhex(ending.chain)) == ending


@pytest.mark.parametrize("name", NAMES)
def test_folding_and_deciding_a_history_give_the_same_wallet_to_the_byte(name: str) -> None:
    assert refolded(name).dump() == retold(name)[0].dump()


@pytest.mark.parametrize("name", NAMES)
def test_a_history_is_replayed_as_it_was_told_to_the_byte(name: str) -> None:
    wallet, passed = Wallet(), skipped(name)
    for (line, asks), entry in zip(asked(name), told(name), strict=True):
        assert retell(wallet, seq=line.seq, ts=line.ts, asks=asks, entry=entry, skipped=line.seq in passed)
    assert wallet.dump() == retold(name)[0].dump()


@pytest.mark.parametrize("name", NAMES)
def test_the_chain_of_a_history_holds(name: str) -> None:
    chain, covered = GENESIS, list[Covered]()
    for line in history(name):
        if line.kind == "ask":
            covered.append((line.seq, line.ts, line.data.encode()))
            continue
        body, sealed = open_sealed(line.data.encode())
        chain, covered = link(chain, covered, body), []
        assert sealed == chain, f"the told at {line.seq} does not follow from what came before"
    assert not covered
    assert chain.hex() == expected(name).chain


@pytest.mark.parametrize("name", NAMES)
def test_what_was_told_is_written_again_to_the_byte(name: str) -> None:
    for line in history(name):
        if line.kind == "told":
            body, _ = open_sealed(line.data.encode())
            assert msgspec.json.encode(msgspec.json.decode(line.data, type=Told)) == body + b"}"


@pytest.mark.parametrize("name", NAMES)
def test_every_told_covers_what_came_since_the_last(name: str) -> None:
    waiting: list[int] = []
    for line in history(name):
        if line.kind == "ask":
            waiting.append(line.seq)
            continue
        said = msgspec.json.decode(line.data, type=Told)
        assert ([entry.seq for entry in said.told], said.n, said.upto) == (waiting, len(waiting), waiting[-1])
        waiting = []


def test_there_are_histories() -> None:
    assert len(NAMES) >= 5
