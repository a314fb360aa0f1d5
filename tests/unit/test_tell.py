"""One ask message to its entry: its moment, what it may carry, and that no content can stop an engine."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wallets import SECOND, Books, moment

from engine.core import limits
from engine.core.messages import (
    Again,
    AnyOutcome,
    AskMessage,
    Entry,
    Held,
    Hold,
    Invalid,
    Option,
    Renew,
    Settle,
    Settled,
)
from engine.core.tell import read, tell
from engine.core.wallet import Wallet

# --- its moment -------------------------------------------------------------------------------------------------------


def test_time_never_runs_backwards() -> None:
    books = Books()
    books.at("09:00").hold("a", "0.10")
    books.at("08:00").hold("b", "0.10", by="09:00:05")
    assert books.entries[-1].at == moment("09:00")


def test_a_batch_is_a_list_in_which_every_ask_sees_the_ones_before_it() -> None:
    books = Books()
    hold = Hold("a", [Option({"usd": 600_000_000})], books.ts)
    other = Hold("b", [Option({"usd": 600_000_000})], books.ts)
    told = books.send(hold, other, Settle("a", {"usd": 100_000_000}), msgspec.structs.replace(other, by=books.ts + 1))
    assert told == ["held 0.60", "exhausted: busy, 0.40 fits", "settled 0.10, 0.50 back", "held 0.60"]


def test_an_invalid_ask_does_not_stop_the_ones_behind_it() -> None:
    books = Books()
    hold = Hold("a", [Option({"usd": 1})], books.ts)
    assert books.send(Settle("", {"usd": 1}), hold) == ["invalid: hold", "held 0.000000001"]


def test_how_messages_are_split_changes_no_money() -> None:
    one, many = Books(), Books()
    holds = [Hold(f"h{n}", [Option({"usd": 300_000_000})], one.ts) for n in range(5)]
    together = one.send(*holds)
    apart = [many.send(hold)[0] for hold in holds]
    assert together == apart
    assert one.meters() == many.meters()


# --- what it may carry ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"nonsense", b"null", b"[]", b"{}", b'{"asks":null}', b'{"asks":[{}]}', b'{"asks":[{"ask":"buy"}]}',
        b'{"asks":[{"ask":"hold"}]}', b'{"asks":[{"ask":"settle","hold":"a","amounts":{"usd":0.5}}]}',
        b'{"asks":[{"ask":"settle","hold":"a","amounts":{"usd":NaN}}]}', b"\xff\xfe", b"[" * 100_000,
        b'{"v":2,"asks":[]}', b'{"asks":[{"ask":"settle","hold":"\\ud800","amounts":{"usd":1}}]}',
        b'{"asks":[],"x":"' + b" " * limits.MESSAGE_BYTES_MAX + b'"}',
    ],
)  # fmt: skip
def test_a_message_that_cannot_be_read_is_one_invalid_and_is_covered_like_any_other(raw: bytes) -> None:
    books = Books()
    books.at("09:00").hold("a", "0.40")
    entry = books.at("09:10").send_raw(raw)
    assert [type(outcome) for outcome in entry.out] == [Invalid]
    assert books.lapses == ["a lapsed at 0.40"]


@pytest.mark.parametrize(("count", "readable"), [(limits.MESSAGE_ASKS_MAX, True), (limits.MESSAGE_ASKS_MAX + 1, False)])
def test_a_message_carries_at_most_1024_asks(count: int, readable: bool) -> None:
    raw = msgspec.json.encode(AskMessage(asks=[Settle("a", {"usd": 1})] * count))
    assert (read(raw) is not None) == readable


@pytest.mark.parametrize(("over", "readable"), [(0, True), (1, False)])
def test_a_message_has_at_most_512_kib(over: int, readable: bool) -> None:
    raw = b'{"asks":[]}'
    padded = raw + b" " * (limits.MESSAGE_BYTES_MAX - len(raw) + over)
    assert (read(padded) is not None) == readable


def test_fields_nobody_knows_yet_are_tolerated_on_the_stream() -> None:
    message = read(b'{"v":1,"new":1,"asks":[{"ask":"renew","hold":"a","n":1,"new":2}]}')
    assert message is not None
    assert message.asks == [Renew("a", 1)]


@given(st.binary(max_size=200))
def test_no_bytes_stop_an_engine(raw: bytes) -> None:
    message = read(raw)
    entry = tell(Wallet(), seq=1, ts=1, asks=message.asks if message is not None else None)
    assert entry.seq == 1


# --- asked again ------------------------------------------------------------------------------------------------------


def test_who_asks_again_hears_the_first_answer() -> None:
    books = Books()
    books.at("09:00").hold("a", "0.40")
    first = books.last
    books.at("09:01").hold("a", "0.40")
    assert books.last == Again("a", 2, "open")
    assert isinstance(first, Held)
    assert books.wallet.recall(_hold(books, "a"), books.last) == first


def test_who_is_refused_again_hears_the_same_refusal() -> None:
    books = Books()
    books.at("09:00").hold("a", "9.00", by="09:00:05")
    first = books.last
    books.hold("a", "9.00", by="09:00:05")
    assert isinstance(books.last, Again)
    ask = Hold("a", [Option({"usd": 9_000_000_000})], moment("09:00:05"))
    assert books.wallet.recall(ask, books.last) == first


def test_who_settles_again_hears_what_stands() -> None:
    books = Books()
    books.hold("a", "0.40")
    books.settle("a", "0.30")
    books.settle("a", "0.30")
    assert isinstance(books.last, Again)
    assert books.wallet.recall(Settle("a"), books.last) == Settled("a", "settled", {"usd": 300_000_000})


def test_who_asks_again_hears_the_first_answer_even_if_the_same_message_settles_the_hold() -> None:
    books = Books()
    books.at("09:00").hold("a", "0.40")
    books.send(Renew("a", 1))
    held, renewed = books.entries[-2].out[0], books.entries[-1].out[0]
    heard: list[AnyOutcome] = []
    asks = [_hold(books, "a"), Renew("a", 1), Settle("a", {"usd": 1})]
    told = tell(books.wallet, seq=1_000, ts=books.wallet.at, asks=asks, heard=heard).out
    assert [getattr(outcome, "was", None) for outcome in heard] == [held, renewed, None]
    assert [getattr(outcome, "was", None) for outcome in told] == [None, None, None]


def test_the_record_keeps_no_first_answer_twice() -> None:
    books = Books()
    books.hold("a", "0.40")
    books.hold("a", "0.40")
    assert b'"was"' not in msgspec.json.encode(books.entries[-1])


def test_an_entry_comes_back_from_its_bytes() -> None:
    books = Books()
    books.at("09:00").hold("a", "0.40")
    books.at("09:10").settle("a", "0.30")
    entry = books.entries[-1]
    assert msgspec.json.decode(msgspec.json.encode(entry), type=Entry) == entry


def _hold(books: Books, id: str) -> Hold:
    ask = books.wallet.open[id].first_ask()
    assert ask is not None
    return msgspec.structs.replace(ask, by=books.ts + SECOND)
