"""Many seeded stories: the volume in which rare meetings of rules happen, and what must hold of every one of them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from functools import cache
from random import Random

import msgspec
import pytest
from auditor import Auditor
from property.sightings import EVERY, sightings
from property.story import Story
from property.trial import Trial

from engine.core import limits
from engine.core.messages import AnyAsk, Entry
from engine.core.tell import fold, tell
from engine.core.wallet import Wallet

SOAK = bool(os.environ.get("PURSE_SOAK"))
STORIES, STEPS = (3_000, 200) if SOAK else (130, 120)
FIXED_STORIES, FIXED_STEPS = (600, 120) if SOAK else (40, 80)

Message = tuple[int, int, list[AnyAsk] | None]
"""Sequence, timestamp, asks (None: it cannot be read)."""


@cache
def fixed_story(seed: int) -> tuple[Message, ...]:
    """One story, told to nobody but the auditor that it looks at."""
    random, auditor = Random(seed), Auditor()
    story = Story(auditor)
    asks: list[AnyAsk] | None
    ts, asks = story.opening(random)
    told: list[Message] = []
    for seq in range(1, FIXED_STEPS + 1):
        told.append((seq, ts, asks))
        auditor.predict(seq, ts, asks)
        ts, asks = story.message(random)
    return tuple(told)


def fixed_stories() -> Iterator[tuple[Message, ...]]:
    return (fixed_story(seed) for seed in range(10_000, 10_000 + FIXED_STORIES))


def live(seed: int, steps: int) -> Counter[str]:
    """One story in which every step is checked. Returns what was seen in it."""
    random, trial, seen = Random(seed), Trial(), Counter[str]()
    story = Story(trial.auditor)
    asks: list[AnyAsk] | None
    ts, asks = story.opening(random)
    for _ in range(steps):
        skipped = random.random() < 0.02
        told = trial.say(story.ahead(random, ts) if skipped else ts, asks, skipped=skipped)
        seen.update(sightings(asks, told, trial.auditor))
        seen["a stamp that was skipped"] += skipped
        ts, asks = story.message(random)
    return seen


def read_back(entry: Entry) -> Entry:
    return msgspec.json.decode(msgspec.json.encode(entry), type=Entry)


def asks_read_back(asks: list[AnyAsk] | None) -> list[AnyAsk] | None:
    return None if asks is None else msgspec.json.decode(msgspec.json.encode(asks), type=list[AnyAsk])


@pytest.mark.timeout(3_600 if SOAK else 300)
def test_every_verdict_is_predicted_and_every_hard_place_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Counter[str]()
    for seed in range(STORIES):
        seen += live(seed, STEPS)
    monkeypatch.setattr(limits, "LAPSES_MAX", 1)
    monkeypatch.setattr(limits, "SEALS_MAX", 2)
    for seed in range(STORIES, STORIES + STORIES // 2):
        seen += live(seed, STEPS)
    assert EVERY - set(seen) == set(), f"never happened; what did: {seen}"


def test_at_most_the_cap_of_holds_lapse_before_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LAPSES_MAX", 2)
    counts = Counter[int]()
    for story in fixed_stories():
        wallet = Wallet(name="main")
        for seq, ts, asks in story:
            counts[len(tell(wallet, seq=seq, ts=ts, asks=asks).lapsed)] += 1
            wallet.check()
    assert set(counts) == {0, 1, 2}


def test_the_fold_of_the_recorded_entries_is_the_wallet_that_told_them() -> None:
    for story in fixed_stories():
        teller, reader = Wallet(name="main"), Wallet(name="main")
        for seq, ts, asks in story:
            entry = tell(teller, seq=seq, ts=ts, asks=asks)
            fold(reader, seq=seq, ts=ts, asks=asks_read_back(asks), entry=read_back(entry))
            assert reader.dump() == teller.dump(), f"message {seq} of {story}"
        reader.check()


def test_a_replay_from_zero_tells_the_same_and_ends_in_the_same_state() -> None:
    for story in fixed_stories():
        first, second = Wallet(name="main"), Wallet(name="main")
        told = [tell(first, seq=seq, ts=ts, asks=asks) for seq, ts, asks in story]
        again = [tell(second, seq=seq, ts=ts, asks=asks_read_back(asks)) for seq, ts, asks in story]
        assert [msgspec.json.encode(entry) for entry in again] == [msgspec.json.encode(entry) for entry in told]
        assert second.dump() == first.dump()


def test_asking_everything_twice_changes_nothing() -> None:
    for story in fixed_stories():
        once, twice = Wallet(name="main"), Wallet(name="main")
        for seq, ts, asks in story:
            doubled = None if asks is None else [ask for ask in asks for _ in range(2)]
            entry = tell(once, seq=seq, ts=ts, asks=asks)
            assert tell(twice, seq=seq, ts=ts, asks=doubled).out[:: 1 if asks is None else 2] == entry.out
            assert twice.dump() == once.dump(), f"message {seq} of {story}"


def test_who_followed_the_first_half_tells_the_second_half_alike() -> None:
    for story in fixed_stories():
        teller, standby = Wallet(name="main"), Wallet(name="main")
        for seq, ts, asks in story:
            entry = tell(teller, seq=seq, ts=ts, asks=asks)
            if seq <= len(story) // 2:
                fold(standby, seq=seq, ts=ts, asks=asks, entry=entry)
            else:
                assert tell(standby, seq=seq, ts=ts, asks=asks) == entry
        assert standby.dump() == teller.dump()
