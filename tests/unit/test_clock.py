"""Clock: stamps of a server whose clock was ahead count for nothing, and nothing lapses or resets by them."""

import pytest
from auditor import Auditor, differences
from histories.reading import asked, skipped, told
from wallets import TODAY, Books, budget, moment

from engine.clocks import Clocks
from engine.core.limits import AMOUNT_MAX
from engine.core.messages import AnyAsk, ApplyPlan, Clock, Done, Settle
from engine.core.plan import Plan
from engine.core.tell import tell
from engine.core.wallet import Wallet

AHEAD = "2026-12-03 12:00"
FIRST = ApplyPlan("p", Plan({"jev": budget("1.00")}), "")


def waiting() -> Books:
    """Given 0.30 settled and 0.20 held of a day's 1.00."""
    books = Books(jev=budget("1.00"))
    books.at("09:00").hold("a", "0.30")
    books.settle("a", "0.30")
    books.hold("b", "0.20", ttl_s=60)
    return books


def test_a_message_whose_stamp_is_skipped_is_decided_at_the_moment_before_it() -> None:
    books = waiting()
    at = books.wallet.at
    books.skipped = True
    assert books.at(AHEAD).hold("c", "0.51", by=at) == "exhausted: busy, 0.50 fits"
    assert books.wallet.at == at
    assert books.entries[-1].lapsed == []
    assert books.meters() == ("0.30", "0.20", "0.00", "0.50")


def test_what_would_have_happened_without_is_a_lapse_and_a_reset() -> None:
    books = waiting()
    assert books.at(AHEAD).tick() == ["b lapsed at 0.20"]
    assert books.meters() == ("0.00", "0.00", "0.00", "1.00")


def test_after_skipped_stamps_time_goes_on_from_where_it_was() -> None:
    books = waiting()
    books.skipped = True
    books.at(AHEAD).tick()
    books.skipped = False
    assert books.at("09:00:59").tick() == []
    assert books.at("09:01").tick() == ["b lapsed at 0.20"]


def test_a_message_that_cannot_be_read_is_skipped_like_any_other() -> None:
    books = waiting()
    at, books.skipped = books.wallet.at, True
    entry = books.at(AHEAD).send_raw(b"nonsense")
    assert (entry.at, len(entry.out)) == (at, 1)


def test_where_nothing_came_before_time_begins_with_the_first_stamp_that_counts() -> None:
    wallet = Wallet()
    assert tell(wallet, seq=1, ts=moment(AHEAD), asks=[FIRST], skipped=True).at == 0
    entry = tell(wallet, seq=2, ts=moment("09:00"), asks=[Settle("x", {"usd": 5})])
    assert (entry.at, list(wallet.meters())) == (moment("09:00"), [("jev", None, TODAY)])


def test_a_clock_changes_nothing_in_the_wallet() -> None:
    books = waiting()
    before = books.wallet.meters(), len(books.wallet.open)
    assert books.send(Clock("k", 5, 9, "a dead battery", "ops")) == ["done"]
    assert books.last == Done("k")
    assert (books.wallet.meters(), len(books.wallet.open)) == before


def test_the_same_clock_again_is_again_and_another_under_its_id_a_conflict() -> None:
    books = waiting()
    books.send(Clock("k", 5, 9, "a dead battery"))
    assert books.send(Clock("k", 5, 9, "a dead battery")) == ["again"]
    assert books.send(Clock("k", 5, 10, "a dead battery")) == ["conflict: id"]


@pytest.mark.parametrize(
    ("field", "ask"),
    [
        ("id", Clock("a b", 5, 9, "")),
        ("to", Clock("k", -1, 9, "")),
        ("to", Clock("k", 9, 9, "")),
        ("to", Clock("k", 9, 5, "")),
        ("to", Clock("k", 5, AMOUNT_MAX + 1, "")),
        ("reason", Clock("k", 5, 9, "x" * 257)),
        ("by_whom", Clock("k", 5, 9, "", "x" * 257)),
    ],
)
def test_a_clock_that_cannot_be_understood_is_invalid_and_skips_nothing(field: str, ask: Clock) -> None:
    books = waiting()
    assert books.send(ask) == [f"invalid: {field}"]
    assert not heard(ask).skips(seq=5, ts=6)


# --- which messages -------------------------------------------------------------------------------------------------


def heard(*asks: AnyAsk, seq: int = 9, upto: int = 3) -> Clocks:
    """Clocks that lie at sequence 9, where all up to 3 has been told."""
    clocks = Clocks()
    clocks.hear(seq, asks, upto=upto)
    return clocks


@pytest.mark.parametrize(("ts", "skips"), [(99, False), (100, True), (199, True), (200, False)])
def test_its_range_of_stamps_has_its_start_and_not_its_end(ts: int, skips: bool) -> None:
    assert heard(Clock("k", 100, 200, "")).skips(5, ts) is skips


@pytest.mark.parametrize(("seq", "skips"), [(3, False), (4, True), (8, True), (9, False), (10, False)])
def test_it_skips_what_lies_before_it_and_was_not_told_before_it(seq: int, skips: bool) -> None:
    """A later message with such a stamp came when it was really that late."""
    assert heard(Clock("k", 100, 200, "")).skips(seq, 150) is skips


def test_a_clock_is_new_once_and_another_of_its_id_does_not_count() -> None:
    clocks = Clocks()
    assert clocks.hear(9, [Settle("x", release=True), Clock("k", 100, 200, "")], upto=3)
    assert not clocks.hear(11, [Clock("k", 1, 2_000, "")], upto=9)
    assert (clocks.skips(10, 150), clocks.skips(5, 150)) == (False, True)


# --- the record -----------------------------------------------------------------------------------------------------


def test_the_auditor_predicts_the_history_of_a_clock_that_was_ahead() -> None:
    name = "a_clock_that_was_ahead"
    auditor, passed, entries = Auditor(), skipped(name), told(name)
    assert len(passed) == 8
    for (line, asks), entry in zip(asked(name), entries, strict=True):
        expected = auditor.predict(line.seq, line.ts, asks, skipped=line.seq in passed)
        assert differences(expected, entry) == []
    moments = {entry.at for entry in entries if entry.seq in passed}
    assert moments == {max(entry.at for entry in entries if entry.seq < min(passed))}
