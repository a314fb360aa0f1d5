"""A: check-then-act races and stale replicas. Whoever asks first, and from wherever, the limit holds."""

import pytest
from wallets import Books, budget

from engine.core.messages import Held, Hold, Option

CENT = 10_000_000


def holds(books: Books, count: int, cents: int, **labels: str) -> list[Hold]:
    return [Hold(f"c{n}", [Option({"usd": cents * CENT})], books.ts, labels) for n in range(count)]


def test_a1_parallel_calls_of_one_session_cannot_pass_its_cap() -> None:
    books = Books(session=budget("1.00", each="session"))
    told = books.send(*holds(books, 10, 30, session="s1"))
    assert told == ["held 0.30"] * 3 + ["exhausted: busy, 0.10 fits"] * 7
    assert books.hold("other", "0.30", session="s2") == "held 0.30"


def test_a3_replicas_decide_the_same_stream_so_their_number_is_no_matter() -> None:
    books = Books()
    for hold in holds(books, 6, 30):
        books.send(hold)
    assert books.held() == "0.90"
    assert books.replayed().dump() == books.wallet.dump()


def test_a4_what_one_replica_was_told_every_other_knows() -> None:
    books = Books(key=budget("1.00", each="key"))
    books.hold("a", "1.00", key="k1")
    books.settle("a", "1.00")
    assert books.hold("b", "0.01", key="k1") == "exhausted: spent, 0.00 fits"
    assert books.replica.dump() == books.wallet.dump()


def test_a5_six_calls_over_two_front_ends_stay_under_the_limit_of_the_model() -> None:
    books = Books(model=budget("0.002", each="model"))
    told = [books.hold(f"{pod}-{n}", "0.00063", model="m") for n in range(3) for pod in ("pod1", "pod2")]
    assert [outcome.split(",")[0] for outcome in told] == ["held 0.00063"] * 3 + ["exhausted: busy"] * 3


def test_a6_a_restart_changes_nothing() -> None:
    books = Books()
    books.hold("a", "0.40")
    books.settle("a", "0.30")
    books.hold("b", "0.20")
    restarted = books.replayed()
    assert restarted.dump() == books.wallet.dump()
    assert restarted.meters()["jev", None, "2026-11-30"] == (30 * CENT, 20 * CENT, 0, 0)


def test_a8_a_balance_that_is_not_zero_is_not_enough() -> None:
    books = Books()
    books.hold("a", "0.99")
    books.settle("a", "0.99")
    assert books.hold("b", "0.50") == "exhausted: spent, 0.01 fits"


def test_a9_below_zero_nothing_is_held_and_the_overdraft_is_what_was_running() -> None:
    books = Books()
    for id in ("a", "b"):
        books.hold(id, "0.50")
    for id in ("a", "b"):
        books.settle(id, "0.80")
    assert books.left() == "-0.60"
    assert books.send(*holds(books, 200, 1)) == ["exhausted: spent, 0.00 fits"] * 200
    assert books.left() == "-0.60"


def test_a11_of_a_burst_into_the_last_ten_cents_only_what_fits_is_held() -> None:
    books = Books(jev=budget("25.00"))
    books.hold("a", "24.90")
    books.settle("a", "24.90")
    told = books.send(*holds(books, 50, 10))
    assert told.count("held 0.10") == 1
    assert books.left() == "0.00"


def test_a12_the_call_that_would_cross_the_limit_is_refused_not_the_next_one() -> None:
    books = Books(provider=budget("5.00"))
    books.hold("a", "4.90")
    books.settle("a", "4.90")
    assert books.hold("b", "1.10") == "exhausted: spent, 0.10 fits"
    assert books.hold("c", "1.10", least="0.05") == "held 0.10"


@pytest.mark.parametrize("burst", [1, 10, 500])
def test_a13_the_bound_on_a_burst_is_the_limit(burst: int) -> None:
    books = Books()
    books.send(*holds(books, burst, 7))
    held = [outcome for outcome in books.entries[-1].out if isinstance(outcome, Held)]
    assert len(held) == min(burst, 14)
    assert not books.left().startswith("-")


def test_a14_two_instances_cannot_both_serve_the_last_of_it() -> None:
    books = Books()
    assert books.hold("instance1", "0.60") == "held 0.60"
    assert books.hold("instance2", "0.60") == "exhausted: busy, 0.40 fits"


def test_a15_spending_past_the_limit_is_never_granted_whatever_a_provider_allows() -> None:
    books = Books(jev=budget("20.00"))
    for n in range(100):
        books.hold(f"c{n}", "0.90")
        if n < 22:
            books.settle(f"c{n}", "0.90")
    assert (books.settled(), books.left()) == ("19.80", "0.20")
