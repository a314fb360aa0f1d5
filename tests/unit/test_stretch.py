"""One call's life from a stretch of the stream: the same events as from the whole record, for every call of a story."""

from __future__ import annotations

import pytest
from recorded_stories import Writer, written_story

from engine.core.messages import Hold
from engine.core.tell import read
from engine.journal import Stored
from projector.audit.life import Life
from projector.audit.looking import STRETCH_MESSAGES_MAX, LookAtLife, look
from projector.audit.stretch import Stretch
from projector.reading import CopySource
from projector.replay import Replay


def calls(stream: list[Stored]) -> dict[str, None]:
    """Every hold that was asked for, in order."""
    found: dict[str, None] = {}
    for stored in stream:
        message = read(stored.data) if stored.kind != "told" else None
        for ask in message.asks if message is not None else ():
            if isinstance(ask, Hold):
                found.setdefault(ask.id)
    return found


def life_from_the_whole(stream: list[Stored], id: str) -> Life:
    life, reading = Life(id), Replay()
    for stored in stream:
        for answered in reading.take(stored):
            life.fold(answered)
    return life


@pytest.mark.parametrize("seed", range(4))
def test_a_stretch_shows_what_the_whole_record_shows(seed: int) -> None:
    writer = written_story(seed, steps=60)
    for id in calls(writer.stream):
        whole = life_from_the_whole(writer.stream, id)
        stretch = Stretch(id, whole.scales)
        for stored in writer.stream:
            if stored.seq >= whole.events[0].seq:
                stretch.take(stored)
        assert stretch.life.events == whole.events, id


async def test_without_a_beginning_it_is_looked_for_among_the_newest_and_it_says_how_far_it_read() -> None:
    writer: Writer = written_story(1, steps=60)
    id = next(iter(calls(writer.stream)))
    end = writer.stream[-1].seq
    source = CopySource(writer.stream)
    seen = (await look(source, LookAtLife("main", id, None, {}))).life
    assert seen is not None
    assert (seen.after, seen.upto, seen.end) == (max(0, end - STRETCH_MESSAGES_MAX), end, end)
    assert seen.events[0].seq == life_from_the_whole(writer.stream, id).events[0].seq
    behind = (await look(source, LookAtLife("main", id, end, {}))).life
    assert behind is not None
    assert behind.events == []
