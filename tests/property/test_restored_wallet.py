"""A wallet that was dumped and read back is the same wallet: wherever a story is cut, it goes on alike."""

from __future__ import annotations

import os
from random import Random

import msgspec
import pytest
from auditor import Auditor
from property.story import Story

from engine.core import limits, memory
from engine.core.messages import AnyAsk, AnyOutcome
from engine.core.restore import load
from engine.core.tell import tell
from engine.core.wallet import Wallet

STORIES, STEPS = (600, 150) if os.environ.get("PURSE_SOAK") else (40, 90)
CUTS = 6  # in a story, and one after its very first message

Message = tuple[int, int, list[AnyAsk] | None]


def story_of(seed: int) -> list[Message]:
    random, auditor = Random(seed), Auditor()
    story = Story(auditor)
    asks: list[AnyAsk] | None
    ts, asks = story.opening(random)
    told: list[Message] = []
    for seq in range(1, STEPS + 1):
        told.append((seq, ts, asks))
        auditor.predict(seq, ts, asks)
        ts, asks = story.message(random)
    return told


Said = tuple[bytes, bytes, int | None]


def said(wallet: Wallet, message: Message) -> Said:
    """What goes on the record for one message and what its callers hear, to the byte; and when something is due."""
    seq, ts, asks = message
    heard: list[AnyOutcome] = []
    entry = tell(wallet, seq=seq, ts=ts, asks=asks, heard=heard)
    return msgspec.json.encode(entry), msgspec.json.encode(heard), wallet.next_due()


def check_cut(story: list[Message], cut: int, dumps: list[bytes], words: list[Said]) -> None:
    """Restore where the story was cut, and go on to its end."""
    wallet = load(dumps[cut])
    assert wallet.dump() == dumps[cut]
    wallet.check()
    for message, wanted, dump in zip(story[cut:], words[cut:], dumps[cut + 1 :], strict=True):
        assert said(wallet, message) == wanted, f"cut after {cut}: {message}"
        assert wallet.dump() == dump, f"cut after {cut}: {message}"
        wallet.check()


def check_story(seed: int) -> None:
    story, wallet = story_of(seed), Wallet(name="main")
    dumps, words = [wallet.dump()], list[Said]()
    for message in story:
        words.append(said(wallet, message))
        dumps.append(wallet.dump())
    for cut in {1, *Random(seed).sample(range(len(story)), CUTS)}:
        check_cut(story, cut, dumps, words)


@pytest.mark.timeout(3_600 if os.environ.get("PURSE_SOAK") else 120)
def test_m17_a_story_cut_anywhere_and_restored_goes_on_to_the_same_words_and_the_same_bytes() -> None:
    for seed in range(20_000, 20_000 + STORIES):
        check_story(seed)


def test_m17_so_it_does_with_the_smallest_buckets_and_a_lapse_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "BUCKET_IDS_MAX", 2)
    monkeypatch.setattr(limits, "LAPSES_MAX", 1)
    for seed in range(30_000, 30_000 + STORIES // 4):
        check_story(seed)
