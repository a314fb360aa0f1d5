"""Which stamps a `clock` skips: the engine's book of clocks against a naive reading of any stream."""

from __future__ import annotations

from random import Random

from property.naive_time import Message, skipped

from engine.clocks import Clocks
from engine.core.messages import AnyAsk, Clock, Settle

STORIES, STEPS = 300, 40


def stream_of(random: Random) -> list[Message]:
    """Messages with stamps from 0 to 30, clocks for some of these among them, and tolds that cover what they like."""
    stream: list[Message] = []
    waiting: list[int] = []
    for seq in range(1, STEPS + 1):
        ts = random.randint(0, 30)
        if waiting and random.random() < 0.25:
            upto = random.choice(waiting)
            waiting = [one for one in waiting if one > upto]
            stream.append(Message(seq, ts, upto=upto))
            continue
        asks: list[AnyAsk] = [Settle("x", release=True)]
        if random.random() < 0.25:
            start = random.randint(-1, 25)
            asks.append(Clock(f"k{random.randint(1, 9)}", start, start + random.randint(0, 9), ""))
        stream.append(Message(seq, ts, None if random.random() < 0.05 else asks))
        waiting.append(seq)
    return stream


def heard(stream: list[Message]) -> set[int]:
    """By a reader that knows every clock before it decides: what an engine does."""
    clocks, upto = Clocks(), 0
    for message in stream:
        if message.upto is not None:
            upto = message.upto
        else:
            clocks.hear(message.seq, message.asks or [], upto=upto)
    return {one.seq for one in stream if one.upto is None and clocks.skips(one.seq, one.ts)}


def heard_on_the_way(stream: list[Message]) -> set[int]:
    """By a reader that takes a message in when it is told and knows only what came before: a proof of a record."""
    clocks, upto = Clocks(), 0
    waiting: list[Message] = []
    found: set[int] = set()
    for message in [*stream, Message(len(stream) + 1, 0, upto=len(stream))]:
        if message.upto is None:
            clocks.hear(message.seq, message.asks or [], upto=upto)
            waiting.append(message)
            continue
        upto = message.upto
        found |= {one.seq for one in waiting if one.seq <= upto and clocks.skips(one.seq, one.ts)}
        waiting = [one for one in waiting if one.seq > upto]
    return found


def test_whoever_reads_a_stream_skips_the_same_stamps() -> None:
    seen = 0
    for seed in range(STORIES):
        stream = stream_of(Random(seed))
        expected = skipped(stream)
        assert heard(stream) == expected, seed
        assert heard_on_the_way(stream) == expected, seed
        seen += len(expected)
    assert seen > STORIES  # the stories have what they are about
