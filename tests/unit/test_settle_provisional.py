"""A lapse and an estimate are provisional: until one exact settle they only rise, after it they are exact."""

import pytest
from wallets import Books, budget

from engine.core.plan import LapsePolicy


def lapsed(on_lapse: LapsePolicy = "charge", progress: str = "") -> Books:
    """Given a hold `a` of 0.40 that lapsed at 09:10."""
    books = Books(on_lapse=on_lapse)
    books.at("09:00").hold("a", "0.40")
    if progress:
        books.progress("a", progress)
    books.at("09:10").tick()
    return books


def estimated(said: str = "0.30") -> Books:
    books = Books()
    books.at("09:00").hold("a", "0.40")
    assert books.estimate("a", said).startswith("estimated")
    return books


# --- after a lapse ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "told", "settled"),
    [
        ("0.30", "corrected 0.30, 0.10 back (late, corrected)", "0.30"),
        ("0.40", "corrected 0.40 (late, corrected)", "0.40"),
        ("0.50", "corrected 0.50 (late, overrun, corrected)", "0.50"),
        ("0", "corrected 0.00, 0.40 back (late, corrected)", "0.00"),
    ],
)
def test_an_exact_settle_replaces_what_a_lapse_charged(said: str, told: str, settled: str) -> None:
    books = lapsed()
    assert books.settle("a", said) == told
    assert books.settled() == settled


def test_a_late_settle_of_a_released_lapse_is_charged_in_full() -> None:
    books = lapsed("release")
    assert books.left() == "1.00"
    assert books.settle("a", "0.30") == "corrected 0.30 (late, corrected)"
    assert books.settled() == "0.30"


def test_it_is_corrected_exactly_once() -> None:
    books = lapsed()
    books.settle("a", "0.30")
    assert books.settle("a", "0.30") == "again: corrected"
    assert books.settle("a", "0.20") == "conflict: amounts"
    assert books.estimate("a", "0.90") == "conflict: amounts"
    assert books.settled() == "0.30"


def test_progress_that_was_overtaken_by_its_final_is_no_conflict() -> None:
    books = lapsed()
    books.settle("a", "0.30")
    assert books.progress("a", "0.20") == "again: corrected"
    assert books.progress("a", "0.90") == "again: corrected"
    assert books.settled() == "0.30"


def test_until_it_is_corrected_a_lapse_only_rises() -> None:
    books = lapsed()
    assert books.estimate("a", "0.40") == "again: lapsed"
    assert books.progress("a", "0.30") == "lapsed 0.40 (late)"
    assert books.progress("a", "0.30") == "again: lapsed"
    assert books.progress("a", "0.50") == "lapsed 0.50 (late, overrun)"
    assert books.estimate("a", "0.60") == "lapsed 0.60 (late, overrun, estimated)"
    assert books.settled() == "0.60"


def test_a_correction_keeps_what_is_not_said() -> None:
    books = Books()
    books.at("09:00").hold("a", "0.40 usd + 300 neurons")
    books.at("09:10").tick()
    assert books.settle("a", "0.10") == "corrected 0.10 + 300 neurons, 0.30 back (late, unreported, corrected)"


def test_a_correction_may_bring_a_unit_that_was_not_held() -> None:
    books = Books(jev=budget("1.00"), neurons=budget("500 neurons"))
    books.at("09:00").hold("a", "0.40")
    books.at("09:10").tick()
    assert books.settle("a", "0.40 usd + 5 neurons") == "corrected 0.40 + 5 neurons (late, unheld, corrected)"
    assert books.settled("neurons") == "5"


def test_a_release_after_a_lapse_leaves_the_progress() -> None:
    books = lapsed(progress="0.10")
    assert books.settled() == "0.40"
    assert books.release("a") == "corrected 0.10, 0.30 back (late, corrected)"
    assert books.release("a") == "again: corrected"


def test_giving_up_on_an_earlier_attempt_does_not_correct_a_lapse() -> None:
    books = Books()
    books.at("09:00").hold("a", "0.40", by="09:00:05")
    books.at("09:10").tick()
    assert books.release("a", by="09:00:04") == "again: lapsed"
    assert books.release("a", by="09:00:05") == "corrected 0.00, 0.40 back (late, corrected)"


def test_progress_reported_after_a_charged_lapse_counts_for_a_release() -> None:
    books = lapsed()
    books.progress("a", "0.20")
    assert books.release("a") == "corrected 0.20, 0.20 back (late, corrected)"


def test_progress_reported_after_a_lapse_counts_for_a_release() -> None:
    books = lapsed("release")
    books.progress("a", "0.20")
    books.estimate("a", "0.30")
    assert books.release("a") == "corrected 0.20, 0.10 back (late, corrected)"


# --- after an estimate ------------------------------------------------------------------------------------------------


def test_an_estimate_closes_the_hold_and_is_flagged() -> None:
    books = Books()
    books.at("09:00").hold("a", "0.40")
    assert books.estimate("a", "0.30") == "estimated 0.30, 0.10 back (estimated)"
    assert books.meters() == ("0.30", "0.00", "0.00", "0.70")
    assert books.hold("a", "0.40") == "closed: estimated 0.30"


@pytest.mark.parametrize(
    ("said", "told"),
    [("0.20", "corrected 0.20, 0.10 back (corrected)"), ("0.50", "corrected 0.50 (overrun, corrected)"),
     ("0.30", "corrected 0.30 (corrected)")],
)  # fmt: skip
def test_an_exact_settle_replaces_an_estimate(said: str, told: str) -> None:
    books = estimated()
    assert books.settle("a", said) == told
    assert books.settle("a", said) == "again: corrected"


def test_another_estimate_only_raises_the_first() -> None:
    books = estimated()
    assert books.estimate("a", "0.20") == "again: estimated"
    assert books.estimate("a", "0.35") == "estimated 0.35 (estimated)"
    assert books.settled() == "0.35"


def test_progress_after_an_estimate_changes_nothing() -> None:
    books = estimated()
    assert books.progress("a", "0.90") == "again: estimated"
    assert books.settled() == "0.30"


def test_an_estimate_never_lapses() -> None:
    books = estimated()
    assert books.at("10:00").tick() == []
    assert books.settled() == "0.30"


def test_an_estimated_progress_is_progress() -> None:
    books = Books()
    books.hold("a", "0.40")
    assert books.settle("a", "0.10", final=False, estimated=True) == "open 0.10"


# --- strays -----------------------------------------------------------------------------------------------------------


def test_a_stray_that_is_no_last_word_stays_provisional() -> None:
    books = Books()
    assert books.progress("x", "0.10") == "stray 0.10 for now"
    assert books.progress("x", "0.05") == "again: estimated"
    assert books.progress("x", "0.20") == "estimated 0.20"
    assert books.estimate("x", "0.30") == "estimated 0.30 (estimated)"
    assert books.settle("x", "0.25") == "corrected 0.25, 0.05 back (corrected)"
    assert books.settled() == "0.25"


def test_a_stray_cannot_overrun_what_nobody_granted() -> None:
    books = Books()
    books.progress("x", "0.10")
    assert books.settle("x", "5.00") == "corrected 5.00 (corrected)"


def test_a_correction_goes_to_the_day_of_the_hold() -> None:
    books = Books()
    books.at("23:55").hold("a", "0.40")
    books.at("2026-12-01 00:05").tick()
    books.settle("a", "0.30")
    assert (books.settled(day="2026-11-30"), books.settled(day="2026-12-01")) == ("0.30", "0.00")
