"""One reading of a record: what it yields, and the first sequence it names where the record contradicts itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import pytest
from records import recorded
from wallets import Books, moment

from engine.core import chain
from engine.core.messages import AskMessage, Loss, Told
from engine.errors import Untrusted
from engine.journal import Stored
from engine.losses import KnownLosses
from engine.snapshots import Snapshot
from projector.reading import CopySource
from projector.replay import Answered, BrokenRecord, Replay, replay


@pytest.fixture
def books() -> Books:
    books = Books().at("09:00")
    books.hold("a", "0.40")
    books.settle("a", "0.25")
    books.hold("b", "0.40")
    return books


def taken(stream: Sequence[Stored], *, losses: KnownLosses | None = None) -> tuple[list[Answered], Replay]:
    reading = Replay(losses=losses)
    return [answered for stored in stream for answered in reading.take(stored)], reading


def test_every_ask_message_comes_once_with_its_entry(books: Books) -> None:
    found, reading = taken(recorded(books))
    assert [answered.stored.seq for answered in found] == [1, 2, 3, 4]
    assert [answered.entry for answered in found] == books.entries
    assert [answered.told for answered in found] == [5, 5, 6, 6]
    assert (reading.upto, reading.told, reading.untold, reading.asks) == (4, 6, 0, 4)


def test_what_has_no_told_yet_is_not_yielded(books: Books) -> None:
    found, reading = taken(recorded(books)[:-1])
    assert (len(found), reading.untold) == (2, 2)


async def test_from_a_snapshot_only_the_rest_comes(books: Books) -> None:
    stream = recorded(books)
    told = next(stored for stored in stream if stored.seq == 5)
    half = Books().at("09:00")
    half.hold("a", "0.40")
    start = Snapshot(half.wallet, 5, bytes.fromhex(told.data[-66:-2].decode()))
    found: list[Answered] = []
    reading = await replay(CopySource(stream), found.append, start=start)
    assert [answered.stored.seq for answered in found] == [3, 4]
    whole: list[Answered] = []
    assert (await replay(CopySource(stream), whole.append)).chain == reading.chain
    assert whole[2:] == found


async def test_progress_is_heard_to_the_end(books: Books) -> None:
    heard: list[tuple[int, int]] = []
    await replay(CopySource(recorded(books)), progress=lambda seq, end: heard.append((seq, end)))
    assert heard[-1] == (6, 6)


async def test_a_copy_with_nothing_in_it_is_whole() -> None:
    reading = await replay(CopySource([]))
    assert (reading.messages, reading.chain) == (0, chain.GENESIS)


# --- what contradicts itself ------------------------------------------------------------------------------------------

Change = Callable[[list[Stored]], list[Stored]]


def altered(place: int) -> Change:
    return lambda stream: [
        msgspec.structs.replace(stored, data=stored.data.replace(b"000", b"001", 1)) if index == place else stored
        for index, stored in enumerate(stream)
    ]


def swapped(stream: list[Stored]) -> list[Stored]:
    two, three = stream[1], stream[2]
    return [stream[0], msgspec.structs.replace(three, seq=2), msgspec.structs.replace(two, seq=3), *stream[3:]]


def inserted(stream: list[Stored]) -> list[Stored]:
    behind = [msgspec.structs.replace(stored, seq=stored.seq + 1) for stored in stream[2:]]
    return [*stream[:2], msgspec.structs.replace(stream[1], seq=3), *behind]


def renumbered(stream: list[Stored]) -> list[Stored]:
    """One is taken out, and the rest moves up."""
    return [stream[0], *(msgspec.structs.replace(stored, seq=stored.seq - 1) for stored in stream[2:])]


CHANGES: dict[str, tuple[Change, int]] = {
    "an ask that was altered": (altered(1), 5),
    "a told that was altered": (altered(5), 6),
    "a stamp that was altered": (
        lambda stream: [msgspec.structs.replace(stream[0], ts=stream[0].ts + 1), *stream[1:]],
        5,
    ),
    "an ask that is gone": (lambda stream: [stream[0], *stream[2:]], 2),
    "an ask that is gone, and the rest moved up": (renumbered, 4),
    "an ask that was put in": (inserted, 7),
    "two asks that were swapped": (swapped, 5),
    "a told that is gone": (lambda stream: [*stream[:4], stream[5]], 5),
    "a message that comes twice": (lambda stream: [*stream, stream[-1]], 6),
    "a told that is cut off": (
        lambda stream: [*stream[:-1], msgspec.structs.replace(stream[-1], data=b'{"v":1}')],
        6,
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_the_first_sequence_that_cannot_be_is_named(books: Books, what: str) -> None:
    change, first = CHANGES[what]
    stream = recorded(books)
    changed = change(stream)
    assert changed != stream
    with pytest.raises(BrokenRecord) as broken:
        taken(changed)
    assert isinstance(broken.value, Untrusted)
    assert broken.value.seq == first


def test_a_broken_chain_names_the_asks_it_covers(books: Books) -> None:
    with pytest.raises(BrokenRecord) as broken:
        taken(altered(3)(recorded(books)))
    assert (broken.value.seq, broken.value.covers) == (6, (3, 4))


# --- losses -----------------------------------------------------------------------------------------------------------


def with_a_loss() -> list[Stored]:
    """Sequence 2 is lost, the told behind it void, and an operator has accepted that."""
    books = Books().at("09:00")
    books.hold("a", "0.40")
    whole = recorded(books, each=1)  # plan, hold, told of the plan, told of the hold
    loss = Loss("l", 2, 4, "the store lost it")
    told_of_the_plan = whole[2]
    left = [whole[0], told_of_the_plan, whole[3]]
    accepted = Books().at("09:00")
    accepted.send(loss)
    entry = msgspec.structs.replace(accepted.entries[1], seq=5)
    raw = msgspec.json.encode(AskMessage(asks=[loss]))
    plan = msgspec.structs.replace(books.entries[0])
    ask = Stored(5, moment("09:00"), "admin", raw)
    body = msgspec.json.encode(Told(engine="e", upto=5, n=2, told=[plan, entry])).removesuffix(b"}")
    covered = [(one.seq, one.ts, one.data) for one in (whole[0], ask)]
    linked = chain.link(chain.GENESIS, covered, body)
    return [*left, ask, Stored(6, moment("09:00"), "told", chain.seal(body, linked))]


async def test_a_gap_that_a_loss_covers_is_passed_over_and_its_tolds_count_no_more() -> None:
    found: list[Answered] = []
    reading = await replay(CopySource(with_a_loss()), found.append)
    assert [answered.stored.seq for answered in found] == [1, 5]
    assert reading.gaps == [(2, 2)]


async def test_without_its_loss_the_same_gap_is_none_to_pass_over() -> None:
    with pytest.raises(BrokenRecord) as broken:
        await replay(CopySource(with_a_loss()[:-2]))
    assert broken.value.seq == 2
