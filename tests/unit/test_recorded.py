"""A told read from the stream: whole, or its head alone with the bytes of its entries beside it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from engine.core.chain import GENESIS, link, seal
from engine.core.messages import Again, Entry, Told
from engine.errors import Untrusted
from engine.journal import Stored
from engine.recorded import Recorded

ENTRIES = [Entry(2, 10, out=[Again("a", 1)]), Entry(3, 11, out=[Again(',"told":[', 1), Again("]", 0)])]
TOLD = Told(engine="e-1", upto=3, n=2, told=ENTRIES)


def stored(body: bytes) -> Stored:
    return Stored(4, 12, "told", seal(body, link(GENESIS, (), body)))


def written(told: Told) -> bytes:
    return msgspec.json.encode(told).removesuffix(b"}")


def test_the_head_is_that_of_the_whole_and_the_entries_are_the_bytes_of_each() -> None:
    whole = Recorded.read(stored(written(TOLD)))
    head, entries = Recorded.read_head(stored(written(TOLD)))
    assert entries == b",".join(msgspec.json.encode(entry) for entry in ENTRIES)
    assert head.told == msgspec.structs.replace(whole.told, told=[])
    assert (head.seq, head.body, head.chain) == (whole.seq, whole.body, whole.chain)
    head.verify(GENESIS, ())


@pytest.mark.parametrize(
    "other",
    [
        lambda body: body.replace(b',"told":', b', "told": '),  # by a writer that leaves blanks
        lambda body: body + b',"more":1',  # by a later release
        lambda body: body.replace(b'"engine":"e-1"', b'"engine":"' + b"e" * 600 + b'"'),
    ],
)
def test_a_told_in_another_form_is_read_whole(other: Callable[[bytes], bytes]) -> None:
    body = other(written(TOLD))
    found, entries = Recorded.read_head(stored(body))
    assert entries == b""
    assert found == Recorded.read(stored(body))
    assert found.told.told == ENTRIES


@pytest.mark.parametrize(
    "data",
    [
        b"",
        written(TOLD),
        stored(written(TOLD)).data.replace(b'"chain":"', b'"chain": "'),
        stored(written(TOLD).replace(b'"upto":3', b'"upto":"x"')).data,
        stored(written(TOLD).replace(b'"upto":3', b'"upto":3,,')).data,
    ],
)
def test_what_is_no_told_is_not_trusted(data: bytes) -> None:
    with pytest.raises(Untrusted, match="cannot be read"):
        Recorded.read_head(Stored(4, 12, "told", data))
