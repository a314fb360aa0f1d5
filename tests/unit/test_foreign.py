"""What the server wrote among the tolds is passed over by every reader; no told in any state passes for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_stories import write_raw
from records import recorded, story
from tampering import renumbered
from unit.test_verify import verify

from engine.foreign import is_foreign
from engine.journal import Stored
from projector.reading import CopySource
from projector.replay import Answered, BrokenRecord, Replay

FOREIGN = [
    b'{"stream":"PURSE_main","seq":3}',
    b'{"stream":"PURSE_main","domain":"hub","seq":3,"duplicate":true}',
    b'{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 3"},"stream":"PURSE_main","seq":0}',
    b'{"type":"io.nats.jetstream.api.v1.stream_msg_get_response","error":{"code":404}}',
    b'{"type":"io.nats.jetstream.api.v1.stream_msg_get_response","message":{"subject":"purse.main.told","data":"e30="}}',
]
NEITHER = [
    b"", b"{}", b"null", b"[]", b"7", b'"stream"', b"\x00" * 40, b'{"stream":"PURSE_main","seq":3', b"\xff",
    b'{"stream":"PURSE_main","seq":3}}', b'{"stream":"PURSE_main","told":[]}', b'{"error":{},"engine":"e"}',
    b'{"asks":[]}', b'{"stream":"x","n":1}', b'{"type":"x","chain":"' + b"0" * 64 + b'"}',
]  # fmt: skip
STREAM = recorded(story())
TOLD = next(one.data for one in STREAM if one.kind == "told")


@pytest.mark.parametrize("data", FOREIGN)
def test_an_answer_of_the_server_is_foreign(data: bytes) -> None:
    assert is_foreign(data)
    assert verify.is_foreign(data)


@pytest.mark.parametrize("data", [*NEITHER, TOLD])
def test_anything_else_is_not(data: bytes) -> None:
    assert not is_foreign(data)
    assert not verify.is_foreign(data)


@given(st.data())
def test_no_damage_makes_a_told_foreign(data: st.DataObject) -> None:
    told = bytearray(data.draw(st.sampled_from([one.data for one in STREAM if one.kind == "told"])))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(told) - 1))
        end = data.draw(st.integers(at, len(told)))
        match data.draw(st.sampled_from(["cut", "zero", "noise", "flip", "other"])):
            case "cut":
                del told[at:end]
            case "zero":
                told[at:end] = bytes(end - at)
            case "noise":
                told[at:end] = data.draw(st.binary(max_size=20))
            case "flip":
                told[at] ^= 1 << data.draw(st.integers(0, 7))
            case _:  # another message's bytes in its place
                told[at:end] = data.draw(st.sampled_from([one.data for one in STREAM]))[at:end]
        if not told:
            break
    assert not is_foreign(bytes(told))
    assert not verify.is_foreign(bytes(told))


def among(stream: Sequence[Stored], *places: int) -> list[Stored]:
    """The record as it would have become with the server's answers before these places."""
    mixed: list[Stored] = []
    for place, one in enumerate(stream):
        if place in places:
            mixed.append(Stored(0, one.ts, "told", FOREIGN[place % len(FOREIGN)]))
        mixed.append(one)
    return renumbered([*mixed, Stored(0, 0, "told", FOREIGN[0])])


def read_all(stream: Sequence[Stored]) -> tuple[list[Answered], Replay]:
    reading = Replay()
    return [answered for stored in stream for answered in reading.take(stored)], reading


def test_readers_pass_over_it_and_say_how_many_there_were(tmp_path: Path) -> None:
    mixed = among(STREAM, 6, 7, 8)
    answered, reading = read_all(mixed)
    whole, _ = read_all(STREAM)
    assert [one.entry for one in answered] == [one.entry for one in whole]
    assert (reading.foreign, reading.untold, reading.messages) == (4, 0, len(STREAM) + 4)
    found = verify.verify(write_raw(mixed, tmp_path / "record.jsonl")).summary()
    assert (found["foreign"], found["tolds"], found["untold"]) == (4, 3, 0)
    assert [one.seq for one in mixed if one.data in FOREIGN] == [7, 9, 11, 13]


@pytest.mark.parametrize("place", [6, 7])
def test_a_told_that_was_put_away_behind_such_an_answer_is_missed_by_the_next(place: int, tmp_path: Path) -> None:
    changed = list(STREAM)
    changed[place] = msgspec.structs.replace(changed[place], data=FOREIGN[0])
    with pytest.raises(BrokenRecord):
        read_all(changed)
    with pytest.raises(verify.Bad):
        verify.verify(write_raw(changed, tmp_path / "record.jsonl"))


async def test_a_copy_has_them_too() -> None:
    source = CopySource(among(STREAM, 7))
    _, reading = read_all(source._messages)
    assert (await source.last(), reading.foreign) == (len(STREAM) + 2, 2)
