"""L: what direct peers did with these inputs, and what is right."""

import pytest
from wallets import Books, budget, words

from engine.core.limits import AMOUNT_MAX
from engine.core.messages import Exhausted, Hold, Option, Settle


def test_l1_what_a_call_really_cost_is_recorded_past_the_limit() -> None:
    books = Books(jev=budget("100"))
    books.hold("a", "50")
    assert books.settle("a", "200") == "settled 200.00 (overrun)"
    assert books.left() == "-100.00"


def test_l2_an_overrun_leaves_the_wallet_usable() -> None:
    books = Books(jev=budget("100"))
    books.hold("a", "60")
    books.hold("b", "40")
    books.settle("a", "61")
    books.settle("b", "10")
    assert books.hold("c", "29") == "held 29.00"
    assert books.left() == "0.00"


def test_l3_with_charge_on_lapse_nobody_takes_the_place_of_a_late_settle() -> None:
    books = Books(jev=budget("100"))
    books.at("09:00").hold("a", "90")
    assert books.at("09:10").hold("b", "100") == "exhausted: spent, 10.00 fits"
    books.settle("a", "90")
    assert books.settled() == "90.00"


def test_l3_with_release_on_lapse_a_late_settle_is_still_charged_in_full() -> None:
    books = Books(jev=budget("100"), on_lapse="release")
    books.at("09:00").hold("a", "90")
    assert books.at("09:10").hold("b", "100") == "held 100.00"
    assert books.settle("a", "90") == "corrected 90.00 (late, corrected)"
    assert books.meters() == ("90.00", "100.00", "0.00", "-90.00")


def test_l4_a_settle_key_belongs_to_one_hold() -> None:
    books = Books()
    books.hold("a", "0.20")
    books.hold("b", "0.20")
    books.settle("a", "0.10", id="key-1")
    assert books.settle("b", "0.10", id="key-1") == "conflict: id"
    assert books.settled() == "0.10"


def test_l5_progress_reported_before_an_exception_is_kept() -> None:
    books = Books(tokens=budget("100 tokens"))
    books.hold("a", "50 tokens")
    books.progress("a", "7 tokens")
    assert books.release("a") == "settled 7 tokens, 43 tokens back"


@pytest.mark.parametrize(("on_lapse", "settled"), [("charge", "100"), ("release", "90")])
def test_l6_progress_survives_the_death_of_the_process(on_lapse: str, settled: str) -> None:
    books = Books(tokens=budget("100 tokens"), on_lapse="release" if on_lapse == "release" else "charge")
    books.at("09:00").hold("a", "100 tokens")
    books.progress("a", "90 tokens")
    books.at("09:10").tick()
    assert books.settled("tokens") == settled


def test_l7_a_settle_larger_than_all_that_was_left_is_charged() -> None:
    books = Books(jev=budget("60"))
    books.hold("a", "30")
    books.settle("a", "200")
    assert books.settled() == "200.00"


def test_l8_a_settle_after_expiry_is_charged_and_flagged() -> None:
    books = Books(on_lapse="release")
    books.at("09:00").hold("a", "0.40")
    assert books.at("10:00").settle("a", "0.40") == "corrected 0.40 (late, corrected)"


def test_l9_work_that_fails_after_the_provider_billed_is_charged_at_what_is_known_or_at_the_hold() -> None:
    books = Books()
    books.at("09:00").hold("known", "0.40")
    books.hold("unknown", "0.30")
    books.estimate("known", "0.22")
    books.at("09:10").tick()
    assert books.settled() == "0.52"


def test_l10_one_more_than_the_hold_is_the_truth() -> None:
    books = Books(tokens=budget("500 tokens"))
    books.hold("a", "100 tokens")
    assert books.settle("a", "101 tokens") == "settled 101 tokens (overrun)"


def test_l11_zero_is_a_settlement_that_releases_the_hold() -> None:
    books = Books()
    books.hold("a", "0.40")
    assert books.settle("a", "0") == "settled 0.00, 0.40 back"
    assert books.hold("a", "0.40") == "closed: settled 0.00"


def test_l12_two_callers_with_one_id_and_other_fields_are_told_so() -> None:
    books = Books()
    books.hold("reservation_1", "0.40", session="one")
    assert books.hold("reservation_1", "0.20", session="two") == "conflict: options"
    assert books.hold("reservation_1", "0.40", session="two") == "conflict: labels"
    assert books.held() == "0.40"


@pytest.mark.parametrize("amount", [b"NaN", b"1e9", b"0.5", b'"1"', b"true", b"null", b"Infinity"])
def test_l13_what_is_no_whole_number_never_reaches_a_decision(amount: bytes) -> None:
    books = Books()
    raw = b'{"asks":[{"ask":"hold","id":"a","options":[{"amounts":{"usd":%s}}],"by":1}]}' % amount
    assert [words(outcome) for outcome in books.send_raw(raw).out] == ["invalid: message"]
    assert books.held() == "0.00"


def test_l13_a_billion_under_a_limit_of_one_never_fits() -> None:
    assert Books().hold("a", "1000000000") == "exhausted: never, 1.00 fits"


def test_l14_three_tenths_fit_into_three_tenths() -> None:
    books = Books(jev=budget("0.3"))
    assert [books.hold(id, "0.1") for id in "abc"] == ["held 0.10"] * 3


@pytest.mark.parametrize("unit", ["USD", "usd ", "dollars", ""])
def test_l15_an_unknown_unit_is_an_error_and_not_unlimited(unit: str) -> None:
    books = Books()
    assert books.send(Hold("a", [Option({unit: 1})], books.ts)) == ["invalid: amounts"]
    assert books.send(Settle("a", {unit: 1})) == ["invalid: amounts"]


def test_l16_a_call_past_the_limit_is_spent_and_the_next_is_refused() -> None:
    books = Books()
    books.hold("a", "0.90")
    books.settle("a", "0.90")
    books.hold("b", "0.10")
    assert books.settle("b", "0.50") == "settled 0.50 (overrun)"
    assert books.settled() == "1.40"
    assert books.hold("c", "0.10") == "exhausted: spent, 0.00 fits"


def test_l17_the_parent_counts_what_both_children_spend() -> None:
    books = Books(parent=budget("1.00", each="team"), child=budget("1.00", each="user"))
    books.hold("a", "1.00", team="t", user="alice")
    assert books.hold("b", "1.00", team="t", user="bob") == "exhausted: busy, 0.00 fits"
    assert books.left("child", each="bob") == "1.00"


def test_l18_a_negative_cost_mints_no_credit() -> None:
    books = Books()
    books.hold("a", "0.40")
    assert books.settle("a", {"usd": -1}) == "invalid: amounts.usd"
    assert books.left() == "0.60"


def test_l19_a_hold_that_takes_the_whole_room_is_told_what_would_have_fitted() -> None:
    books = Books(jev=budget("2000"))
    books.hold("a", "0.14")
    books.settle("a", "0.14")
    assert books.hold("b", "2000") == "exhausted: spent, 1999.86 fits"
    assert isinstance(books.last, Exhausted)


def test_l20_a_reported_zero_is_zero() -> None:
    books = Books(jev=budget("1.00"), tokens=budget("100 tokens"))
    books.hold("a", "0.40 usd + 50 tokens")
    assert books.settle("a", "0 usd + 5 tokens") == "settled 0.00 + 5 tokens, 0.40 + 45 tokens back"
    assert books.settle("a", "0 usd + 5 tokens") == "again: settled"


def test_l21_a_decision_reads_its_own_meters_and_not_the_history() -> None:
    books = Books(jev=budget("1000.00"), twice=False)
    for n in range(300):
        books.hold(f"c{n}", "0.01")
        books.settle(f"c{n}", "0.01")
    assert len(books.wallet.metering) == 1
    assert not books.wallet.open
    assert books.hold("largest", {"usd": AMOUNT_MAX}) == "exhausted: never, 997.00 fits"
