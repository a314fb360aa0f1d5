"""B: leaked, phantom or mis-freed holds. Every hold ends exactly once, and its money is where the books say."""

import pytest
from wallets import TODAY, Books, budget

from engine.core.messages import Exhausted


def test_b1_a_failed_call_releases_exactly_its_hold() -> None:
    books = Books()
    books.hold("failed", "0.40")
    books.hold("running", "0.30")
    assert books.release("failed") == "settled 0.00, 0.40 back"
    assert books.meters() == ("0.00", "0.30", "0.00", "0.70")


def test_b2_what_is_available_is_rebuilt_from_the_record() -> None:
    books = Books()
    for id in "abc":
        books.hold(id, "0.20")
    books.release("a")
    books.settle("b", "0.14")
    assert books.left() == "0.66"
    assert books.replayed().dump() == books.wallet.dump()


def test_b3_the_counter_is_the_fold_of_what_was_told() -> None:
    books = Books(jev=budget("500.00"))
    for n in range(50):
        books.hold(f"c{n}", "2.00")
        books.settle(f"c{n}", {"usd": 1_114_800_001 + n})
    assert books.replayed().meters() == books.wallet.meters()
    assert books.settled() == "55.740001275"


def test_b5_a_hold_is_never_shown_as_spent() -> None:
    books = Books(jev=budget("25.00"))
    books.hold("a", "25.00")
    assert books.meters() == ("0.00", "25.00", "0.00", "0.00")
    assert books.hold("b", "1.00") == "exhausted: busy, 0.00 fits"
    assert isinstance(books.last, Exhausted)
    assert (books.last.settled, books.last.held) == (0, 25_000_000_000)


def test_b6_a_stream_that_fails_before_its_first_token_gives_everything_back() -> None:
    books = Books()
    books.hold("a", "1.00")
    books.release("a")
    assert books.hold("b", "1.00") == "held 1.00"


def test_b7_settling_is_one_step_in_which_the_hold_goes_and_the_charge_comes() -> None:
    books = Books()
    books.hold("a", "0.40")
    books.settle("a", "0.30")
    assert (books.meters(), books.state("a")) == (("0.30", "0.00", "0.00", "0.70"), "settled")


def test_b10_unknown_usage_is_settled_at_the_estimate_flagged_and_a_repeat_is_nothing() -> None:
    books = Books()
    books.at("23:59").hold("a", "0.40")
    assert books.at("2026-12-01 00:01").estimate("a", "0.25") == "estimated 0.25, 0.15 back (estimated)"
    assert books.estimate("a", "0.25") == "again: estimated"
    assert books.settled(day=TODAY) == "0.25"


def test_b11_eight_holds_have_eight_ends() -> None:
    books = Books(jev=budget("9.00"))
    books.at("09:00")
    for n in range(8):
        books.hold(f"c{n}", "1.00")
    books.settle("c0", "0.51")
    books.settle("c1", "0.51")
    books.release("c2")
    assert len(books.at("09:10").tick()) == 5
    assert [books.state(f"c{n}") for n in range(8)] == ["settled"] * 3 + ["lapsed"] * 5
    assert books.meters() == ("6.02", "0.00", "0.00", "2.98")


def test_b13_a_refusal_says_the_largest_amount_that_would_have_fitted() -> None:
    books = Books()
    assert books.hold("a", "1.20") == "exhausted: never, 1.00 fits"
    assert isinstance(books.last, Exhausted)
    assert books.hold("a", {"usd": books.last.fits}) == "held 1.00"


def test_b14_a_hold_larger_than_what_is_left_is_refused_not_shrunk() -> None:
    books = Books()
    books.hold("a", "0.70")
    assert books.hold("b", "0.40") == "exhausted: busy, 0.30 fits"
    assert books.held() == "0.70"


def test_b15_a_call_that_cost_more_than_its_hold_is_charged_past_the_limit() -> None:
    books = Books(jev=budget("400"))
    books.hold("a", "400")
    assert books.settle("a", "450") == "settled 450.00 (overrun)"
    assert books.left() == "-50.00"


@pytest.mark.parametrize("seconds", ["09:00:31", "09:30", "23:00"])
def test_b16_a_settle_after_the_hold_ran_out_is_always_charged(seconds: str) -> None:
    books = Books(on_lapse="release")
    books.at("09:00").hold("a", "0.40", ttl_s=30)
    assert books.at(seconds).settle("a", "0.35") == "corrected 0.35 (late, corrected)"
    assert books.settled() == "0.35"


def test_b17_the_same_id_for_another_call_is_a_conflict_and_never_a_success() -> None:
    books = Books()
    books.hold("a", "0.10", key="k1")
    books.hold("b", "0.10", key="k1")
    assert books.hold("a", "0.10", key="k2") == "conflict: labels"
    assert books.settle("a", "0.10", id="same") == "settled 0.10"
    assert books.settle("b", "0.10", id="same") == "conflict: id"
    assert books.held() == "0.10"


def test_b18_a_call_whose_settlement_never_came_is_charged_at_its_worst_case() -> None:
    books = Books()
    books.at("09:00").hold("a", "0.40")
    assert books.at("09:10").tick() == ["a lapsed at 0.40"]
    assert books.settled() == "0.40"


def test_b19_what_was_seen_before_a_call_broke_is_charged() -> None:
    books = Books()
    books.hold("a", "0.40")
    books.progress("a", "0.13")
    assert books.release("a") == "settled 0.13, 0.27 back"


def test_b20_the_books_tell_the_truth_past_the_limit() -> None:
    books = Books()
    books.hold("a", "0.60")
    books.hold("b", "0.40")
    books.settle("a", "0.90")
    assert books.settle("b", "0.70") == "settled 0.70 (overrun)"
    assert books.left() == "-0.60"


def test_b21_a_settle_31_seconds_after_expiry_is_debited() -> None:
    books = Books()
    books.at("09:00").hold("a", "0.40", ttl_s=60)
    assert books.at("09:01:31").settle("a", "0.40") == "corrected 0.40 (late, corrected)"
    assert books.settled() == "0.40"


def test_b22_a_new_day_carries_only_the_holds_that_live() -> None:
    books = Books()
    books.at("23:59").hold("a", "0.40")
    assert books.at("2026-12-01 00:00").hold("b", "1.00") == "held 1.00"
    assert books.held(day=TODAY) == "0.40"
    books.settle("a", "0.30")
    assert books.meters(day=TODAY) == ("0.30", "0.00", "0.00", "0.70")


def test_b24_every_budget_that_was_held_is_settled() -> None:
    books = Books(user=budget("1.00", each="user"), key=budget("1.00", each="key"), site=budget("5.00"))
    books.hold("batch", "0.50", user="alice", key="k1")
    books.settle("batch", "0.42")
    assert [books.settled("user", each="alice"), books.settled("key", each="k1"), books.settled("site")] == ["0.42"] * 3


@pytest.mark.parametrize("scope", ["all", "jev", "user=alice"])
def test_b25_a_freeze_refuses_new_holds_and_takes_every_settlement(scope: str) -> None:
    books = Books()
    books.hold("a", "0.40", user="alice")
    books.freeze(scope)
    assert books.hold("b", "0.10", user="alice") == f"frozen: {scope}"
    assert books.settle("a", "0.30") == "settled 0.30, 0.10 back"
