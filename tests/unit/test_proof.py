"""What can be proved from a record: its meters entry by entry, and every way in which it may contradict itself."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from records import recorded
from wallets import Books, amounts, budget, moment

from commonpurse.proof import Metered, Proof, Record
from engine.core import chain
from engine.core.messages import Clock, Entry, Hold, Option, Settle, Settled
from engine.errors import Untrusted
from engine.journal import Stored

CENT = 10_000_000


def hold(id: str, said: str) -> Hold:
    return Hold(id, [Option(amounts(said))], moment("09:30"))


def settle(hold: str, said: str) -> Settle:
    return Settle(hold, amounts(said))


def proved(stream: list[Stored]) -> Proof:
    record = Record("main")
    for stored in stream:
        record.take(stored)
    return record.proof()


def meter(books: Books, budget: str = "jev") -> Metered:
    """The one meter of a budget."""
    [found] = proved(recorded(books)).of(budget)
    return found


# --- what is said of a whole record -----------------------------------------------------------------------------------


def test_a_meter_is_shown_as_it_ended_and_at_its_highest() -> None:
    books = Books().at("09:00")
    books.hold("a", "0.40")
    books.hold("b", "0.30")  # message 3: the plan was the first
    books.settle("a", "0.25")
    found = meter(books)
    assert (found.settled, found.held, found.extra) == (25 * CENT, 30 * CENT, 0)
    assert (found.highest, found.highest_at, found.limit) == (70 * CENT, 3, 100 * CENT)
    assert found.above_at is None


def test_what_a_hold_used_counts_even_if_its_message_also_ends_it() -> None:
    books = Books().at("09:00")
    books.send(hold("a", "0.90"), settle("a", "0.10"), hold("b", "0.20"))
    found = meter(books)
    assert (found.settled, found.held, found.highest) == (10 * CENT, 20 * CENT, 90 * CENT)


def test_an_overrun_is_named_by_its_message() -> None:
    books = Books().at("09:00")
    books.hold("a", "0.90")
    books.settle("a", "1.10")
    books.hold("free", "0")
    found = meter(books)
    assert (found.above_at, found.highest) == (3, 110 * CENT)
    assert not proved(recorded(books)).never_above


def test_a_limit_is_the_one_that_was_in_force() -> None:
    books = Books().at("09:00")
    books.change(jev=budget("2.00"))
    books.hold("a", "1.50")
    assert (meter(books).above_at, meter(books).limit) == (None, 200 * CENT)
    books.change(jev=budget("1.00"))
    assert (meter(books).above_at, meter(books).limit) == (4, 100 * CENT)


def test_a_limit_for_some_is_not_passed_by_them() -> None:
    books = Books(jev=budget("1.00", limit_for={"cohort=premium": "1.50"})).at("09:00")
    books.hold("a", "1.20", cohort="premium")
    assert meter(books).above_at is None


def test_every_day_and_every_user_has_a_meter() -> None:
    books = Books(jev=budget("1.00", each="user"))
    books.at("23:00").hold("a", "0.40", user="alice")
    books.hold("b", "0.50", user="bob")
    books.at("2026-12-01 01:00").hold("c", "0.60", user="alice")
    found = proved(recorded(books)).of("jev")
    assert [(one.each, one.period, one.highest // CENT) for one in found] == [
        ("alice", "2026-11-30", 40),
        ("bob", "2026-11-30", 50),
        ("alice", "2026-12-01", 60),
    ]


def test_outcomes_are_counted_and_refusals_by_their_why() -> None:
    books = Books().at("09:00")
    books.hold("a", "0.60")
    books.hold("b", "0.60")
    books.settle("a", "0.50")
    books.hold("c", "0.60")
    books.hold("d", "1.01")
    found = proved(recorded(books))
    assert found.outcomes == {"planned": 1, "held": 1, "busy": 1, "settled": 1, "spent": 1, "never": 1}
    assert (found.entries, found.asks, found.messages, found.untold) == (6, 6, 9, 0)


def test_how_tolds_group_messages_changes_nothing_but_the_chain() -> None:
    books = Books().at("09:00")
    for number in range(5):
        books.hold(str(number), "0.15")
        books.settle(str(number), "0.10")
    one, three, all_ = (proved(recorded(books, each=each)) for each in (1, 3, 64))
    assert one.meters == three.meters == all_.meters
    assert len({one.chain, three.chain, all_.chain}) == 3


def test_asks_without_a_told_are_counted_and_change_nothing() -> None:
    books = Books().at("09:00")
    books.hold("a", "0.40")
    books.hold("b", "0.40")
    found = proved(recorded(books, each=2)[:-1])
    assert (found.untold, found.entries) == (1, 2)
    assert found.of("jev")[0].held == 40 * CENT


def test_an_ask_that_cannot_be_read_and_an_empty_message_are_entries_too() -> None:
    books = Books().at("09:00")
    books.send_raw(b"not json")
    books.tick()
    found = proved(recorded(books))
    assert (found.entries, found.asks, found.outcomes["invalid"]) == (3, 1, 1)


def test_nothing_on_the_stream_proves_nothing_and_is_no_error() -> None:
    assert proved([]) == Proof("main", 0, 0, 0, 0, {}, [], chain.GENESIS.hex())


# --- what contradicts itself ------------------------------------------------------------------------------------------


@pytest.fixture
def books() -> Books:
    books = Books().at("09:00")
    books.hold("a", "0.40")
    books.settle("a", "0.25")
    books.hold("b", "0.40")
    return books


Change = Callable[[list[Stored]], list[Stored]]


def flip(place: int) -> Change:
    """One character of one message is another."""
    return lambda stream: [
        msgspec.structs.replace(stored, data=stored.data.replace(b"000", b"001", 1)) if index == place else stored
        for index, stored in enumerate(stream)
    ]


CHANGES: dict[str, Change] = {
    "an amount that was asked": flip(1),
    "an amount that was told": flip(4),
    "a later amount that was told": flip(5),
    "when it was asked": lambda stream: [msgspec.structs.replace(stream[0], ts=stream[0].ts + 1), *stream[1:]],
    "an ask that is gone": lambda stream: stream[1:],
    "an ask that came in between": lambda stream: [*stream[:2], stream[1], *stream[2:]],
    "two asks in another order": lambda stream: [stream[1], stream[0], *stream[2:]],
    "a told that is gone": lambda stream: [*stream[:4], stream[5]],
    "a told that stands there twice": lambda stream: [*stream, stream[-1]],
    "a told that is cut off": lambda stream: [*stream[:-1], msgspec.structs.replace(stream[-1], data=b'{"v":1}')],
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_record_that_was_changed_is_not_trusted(books: Books, what: str) -> None:
    stream = recorded(books)
    assert CHANGES[what](stream) != stream
    with pytest.raises(Untrusted):
        proved(CHANGES[what](stream))


def change_last(books: Books, **fields: object) -> list[Entry]:
    return [*books.entries[:-1], msgspec.structs.replace(books.entries[-1], **fields)]


def test_an_entry_for_another_message_is_not_trusted_though_its_chain_is_right(books: Books) -> None:
    with pytest.raises(Untrusted, match="names another message or moment"):
        proved(recorded(books, entries=change_last(books, seq=9)))


def test_an_entry_at_another_moment_is_not_trusted_though_its_chain_is_right(books: Books) -> None:
    with pytest.raises(Untrusted, match="names another message or moment"):
        proved(recorded(books, entries=change_last(books, at=moment("09:01"))))


def with_a_stamp_ahead(*, clock: bool) -> Books:
    books = Books().at("09:00")
    books.hold("a", "0.40", ttl_s=60)
    books.skipped = True
    books.at("09:20").hold("b", "0.10", by="09:20")
    books.skipped = False
    if clock:
        books.at("09:00:30").send(Clock("k", moment("09:10"), moment("09:30"), "a dead battery"))
    return books


def test_a_stamp_that_a_clock_skips_is_no_other_moment() -> None:
    proof = proved(recorded(with_a_stamp_ahead(clock=True)))
    assert proof.outcomes == {"planned": 1, "held": 2, "done": 1}


def test_a_skipped_stamp_without_a_clock_is_another_moment() -> None:
    with pytest.raises(Untrusted, match="names another message or moment"):
        proved(recorded(with_a_stamp_ahead(clock=False)))


def test_an_ask_without_an_outcome_is_not_trusted_though_its_chain_is_right(books: Books) -> None:
    with pytest.raises(Untrusted, match="has not one outcome an ask"):
        proved(recorded(books, entries=change_last(books, out=[])))


def test_a_settlement_of_a_hold_that_never_was_is_not_trusted_though_its_chain_is_right(books: Books) -> None:
    books.settle("nobody", "0.10")
    told = Settled("nobody", "settled", {"usd": 10 * CENT})
    with pytest.raises(Untrusted, match="cannot have happened"):
        proved(recorded(books, entries=change_last(books, out=[told])))
