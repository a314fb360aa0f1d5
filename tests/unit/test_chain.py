"""The chain commits to every byte that led to a decision, from the first message on."""

from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.chain import GENESIS, Covered, NotChainedError, link, open_sealed, seal

ASKS: list[Covered] = [(1, 1_000, b'{"asks":[]}'), (2, 2_000, b'{"v":1,"asks":[]}')]
BODY = b'{"v":1,"told":[]'


def test_the_chain_is_what_the_page_says_it_is() -> None:
    number = (1).to_bytes(8) + (1_000).to_bytes(8) + b'{"asks":[]}' + (2).to_bytes(8) + (2_000).to_bytes(8)
    expected = blake2b(bytes(32) + number + b'{"v":1,"asks":[]}' + BODY, digest_size=32).digest()
    assert link(GENESIS, ASKS, BODY) == expected


@pytest.mark.parametrize(
    "changed",
    [
        [(3, 1_000, b'{"asks":[]}'), ASKS[1]],
        [(1, 1_001, b'{"asks":[]}'), ASKS[1]],
        [(1, 1_000, b'{"asks":[ ]}'), ASKS[1]],
        [ASKS[1], ASKS[0]],
        [ASKS[0]],
        [*ASKS, ASKS[1]],
    ],
    ids=["number", "stamp", "bytes", "order", "one less", "one more"],
)
def test_any_other_asks_give_another_chain(changed: list[Covered]) -> None:
    assert link(GENESIS, changed, BODY) != link(GENESIS, ASKS, BODY)


def test_another_told_or_another_past_gives_another_chain() -> None:
    assert link(GENESIS, ASKS, BODY + b" ") != link(GENESIS, ASKS, BODY)
    assert link(link(GENESIS, [], b""), ASKS, BODY) != link(GENESIS, ASKS, BODY)


@given(st.binary(max_size=64), st.binary(min_size=32, max_size=32))
def test_a_sealed_told_opens_into_its_body_and_its_chain(body: bytes, chain: bytes) -> None:
    assert open_sealed(seal(body, chain)) == (body, chain)


def test_a_sealed_told_is_json_with_its_chain_last() -> None:
    assert seal(BODY, bytes(32)) == BODY + b',"chain":"' + b"0" * 64 + b'"}'


@pytest.mark.parametrize(
    "message",
    [
        b"",
        BODY + b"}",
        BODY + b',"chain":"' + b"0" * 63 + b'"}',
        BODY + b',"chain":"' + b"g" * 64 + b'"}',
        BODY + b',"chain":"' + b"\xff" * 64 + b'"}',
        BODY + b',"chain":"' + b"0 " * 32 + b'"}',
        BODY + b',"chain":"' + b"AB" * 32 + b'"}',
        seal(BODY, bytes(32)) + b" ",
    ],
    ids=["nothing", "no chain", "short", "not hex", "not text", "blanks", "capitals", "something behind"],
)
def test_what_does_not_end_in_a_chain_as_we_write_it_is_not_a_told(message: bytes) -> None:
    with pytest.raises(NotChainedError):
        open_sealed(message)
