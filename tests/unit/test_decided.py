"""What an engine writes of what it decided: the bytes of `Entry` and `Reply`, though each outcome is written once."""

from __future__ import annotations

import msgspec
import pytest

from bench.day import Day
from engine.core.chain import GENESIS
from engine.core.messages import Answer, AnyOutcome, Reply
from engine.core.tell import read, tell
from engine.core.wallet import Wallet
from engine.decided import Decided, replies, written

ASKS = 6_000

_encoder = msgspec.json.Encoder()


@pytest.fixture(scope="module")
def day() -> list[tuple[Decided, list[AnyOutcome]]]:
    """A day with every outcome in it, as an engine decides it: what it keeps, and the outcomes that callers hear."""
    wallet, made = Wallet("main"), []
    for stored in Day(ASKS):
        if stored.kind != "told":
            message, heard = read(stored.data), list[AnyOutcome]()
            asks = message.asks if message is not None else None
            entry = tell(wallet, seq=stored.seq, ts=stored.ts, asks=asks, heard=heard)
            encoded, answers = written(entry, heard)
            sender = f"_INBOX.client{stored.seq % 3}.{stored.seq}" if stored.seq % 7 else ""
            decided = Decided(stored.seq, stored.ts, stored.data, entry, encoded, sender, answers, "", 0.0)
            made.append((decided, heard))
    return made


def test_entries_lie_on_the_stream_as_they_always_did(day: list[tuple[Decided, list[AnyOutcome]]]) -> None:
    assert any(decided.entry.lapsed for decided, _ in day)
    assert any(decided.entry.sealed for decided, _ in day)
    assert any(not decided.entry.out for decided, _ in day)
    for decided, _ in day:
        assert decided.encoded == _encoder.encode(decided.entry)


def test_who_asks_again_hears_more_than_is_on_the_record(day: list[tuple[Decided, list[AnyOutcome]]]) -> None:
    assert any(heard != decided.entry.out for decided, heard in day)
    for decided, heard in day:
        assert bytes(decided.answers) == _encoder.encode(heard)


def test_one_message_a_client_says_all_that_is_for_it(day: list[tuple[Decided, list[AnyOutcome]]]) -> None:
    covered = day[40:104]
    said = dict(replies([decided for decided, _ in covered], told=9, linked=GENESIS))
    assert len(said) == 3
    for inbox, message in said.items():
        client = inbox.rpartition(".")[0]
        mine = [
            Answer(decided.sender, decided.seq, decided.entry.at, heard)
            for decided, heard in covered
            if decided.sender.startswith(client)
        ]
        assert inbox == mine[-1].to
        assert message == _encoder.encode(Reply(9, GENESIS.hex(), mine))
