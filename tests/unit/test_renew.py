"""Renew: hold on longer, maybe for more."""

import pytest
from wallets import SECOND, TODAY, Books, budget, moment

from engine.core.messages import Exhausted, Held, Renew
from engine.core.plan import Budget, Plan


def held(**budgets: Budget) -> Books:
    """Given a hold `a` of 0.40 at nine, open until 09:10."""
    books = Books(plan=Plan(budgets=budgets or {"jev": budget("1.00")}))
    books.at("09:00").hold("a", "0.40")
    return books


def expiry(books: Books) -> int:
    return books.wallet.open["a"].expires_at


# --- allows -----------------------------------------------------------------------------------------------------------


def test_a_renewal_holds_on_from_now() -> None:
    books = held()
    assert books.at("09:05").renew("a", 1) == "held 0.40, renewal 1"
    assert expiry(books) == moment("09:15")
    assert books.at("09:10").tick() == []
    assert books.held() == "0.40"


def test_a_renewal_says_the_whole_grant_and_what_is_left() -> None:
    books = held()
    books.at("09:05").renew("a", 1, "0.50")
    assert isinstance(books.last, Held)
    assert books.last.budgets["jev"].remaining == 500_000_000
    assert (books.last.at, books.last.expires_at) == (moment("09:05"), moment("09:15"))


def test_a_renewal_never_shortens_a_hold() -> None:
    books = held()
    books.at("09:01").renew("a", 1, ttl_s=60)
    assert expiry(books) == moment("09:10")


def test_a_hold_lives_at_most_two_days() -> None:
    books = Books()
    books.at("2026-12-01 00:00").hold("a", "0.40", ttl_s=86_400)
    books.at("2026-12-01 23:00").renew("a", 1, ttl_s=86_400)
    books.at("2026-12-02 22:00").renew("a", 2, ttl_s=86_400)
    assert expiry(books) == moment("2026-12-03 00:00")
    assert books.at("2026-12-03 00:00").tick() == ["a lapsed at 0.40"]


def test_a_larger_total_is_granted_if_the_rise_fits() -> None:
    books = held()
    books.hold("b", "0.40")
    assert books.renew("a", 1, "0.60") == "held 0.60, renewal 1"
    assert books.meters() == ("0.00", "1.00", "0.00", "0.00")


def test_only_the_rise_above_what_is_spent_counts() -> None:
    books = held()
    books.progress("a", "0.50")
    assert books.renew("a", 1, "0.60") == "held 0.60, renewal 1"
    assert books.meters() == ("0.50", "0.10", "0.00", "0.40")


def test_a_total_that_progress_has_passed_needs_nothing() -> None:
    books = held()
    books.progress("a", "1.20")
    assert books.renew("a", 1, "0.60") == "held 0.60, renewal 1"
    assert books.meters() == ("1.20", "0.00", "0.00", "-0.20")


def test_a_larger_total_is_held_in_the_hold_s_own_day() -> None:
    books = Books()
    books.at("23:59").hold("a", "0.40")
    books.at("2026-12-01 00:01").renew("a", 1, "0.70")
    assert (books.held(day=TODAY), books.held(day="2026-12-01")) == ("0.70", "0.00")


def test_a_renewal_for_the_same_amount_is_granted_during_a_freeze_and_below_zero() -> None:
    books = held()
    books.change(jev=budget("0.10"))
    books.freeze("all")
    assert books.renew("a", 1, "0.40") == "held 0.40, renewal 1"


def test_where_the_budget_is_gone_the_limit_of_the_hold_still_counts() -> None:
    books = held(jev=budget("1.00"), other=budget("9.00"))
    books.apply(Plan(budgets={"other": budget("9.00")}))
    assert books.renew("a", 1, "1.00") == "held 1.00, renewal 1"
    assert books.renew("a", 2, "1.10") == "exhausted: never, 1.00 fits"


# --- refuses ----------------------------------------------------------------------------------------------------------


def test_a_rise_that_does_not_fit_is_exhausted_and_changes_nothing() -> None:
    books = held()
    books.hold("b", "0.40")
    assert books.renew("a", 1, "0.70") == "exhausted: busy, 0.60 fits"
    assert books.meters() == ("0.00", "0.80", "0.00", "0.20")
    assert expiry(books) == moment("09:10")


def test_what_fits_is_a_total_that_would_have_been_granted() -> None:
    books = held()
    books.progress("a", "0.30")
    books.hold("b", "0.40")
    books.renew("a", 1, "0.90")
    assert isinstance(books.last, Exhausted)
    assert books.renew("a", 1, {"usd": books.last.fits}) == "held 0.60, renewal 1"


def test_a_refused_renewal_may_be_asked_again() -> None:
    books = held()
    books.hold("b", "0.60")
    assert books.renew("a", 1, "0.50") == "exhausted: busy, 0.40 fits"
    books.release("b")
    assert books.renew("a", 1, "0.50") == "held 0.50, renewal 1"


@pytest.mark.parametrize("scope", ["all", "jev", "user=alice"])
def test_no_rise_during_a_freeze(scope: str) -> None:
    books = Books()
    books.hold("a", "0.40", user="alice")
    books.freeze(scope)
    assert books.renew("a", 1, "0.50") == f"frozen: {scope}"


def test_no_rise_for_a_revoked_key() -> None:
    books = Books()
    books.hold("a", "0.40", key="k1")
    books.revoke("key", "k1")
    assert books.renew("a", 1, "0.50") == "revoked: key=k1"
    assert books.renew("a", 1) == "held 0.40, renewal 1"


def test_a_hold_that_is_not_open_cannot_be_renewed() -> None:
    books = held()
    books.at("09:10").tick()
    assert books.renew("a", 1) == "closed: lapsed 0.40"
    books.settle("a", "0.30")
    assert books.renew("a", 1) == "closed: corrected 0.30"
    assert books.renew("nobody", 1) == "unknown"


@pytest.mark.parametrize(
    ("field", "ask"),
    [
        ("hold", Renew("a b", 1)),
        ("n", Renew("a", 0)),
        ("ttl_s", Renew("a", 1, 0)),
        ("ttl_s", Renew("a", 1, 86_401)),
        ("amounts", Renew("a", 1, None, {"USD": 1})),
        ("amounts.usd", Renew("a", 1, None, {"usd": -1})),
        ("amounts.usd", Renew("a", 1, None, {"usd": 399_999_999})),
        ("amounts.neurons", Renew("a", 1, None, {"neurons": 1})),
    ],
)
def test_a_renewal_that_cannot_be_understood_is_invalid(field: str, ask: Renew) -> None:
    books = held()
    assert books.send(ask) == [f"invalid: {field}"]


# --- stays quiet ------------------------------------------------------------------------------------------------------


def test_the_same_renewal_again_changes_nothing() -> None:
    books = held()
    books.at("09:05").renew("a", 1, "0.50")
    assert books.at("09:06").renew("a", 1, "0.50") == "again: open"
    assert expiry(books) == moment("09:15")


def test_another_renewal_under_a_granted_number_is_a_conflict() -> None:
    books = held()
    books.renew("a", 1, "0.50")
    assert books.renew("a", 1, "0.60") == "conflict: n"
    assert books.renew("a", 1, "0.50", ttl_s=60) == "conflict: n"


def test_a_renewal_that_was_overtaken_changes_nothing() -> None:
    books = held()
    books.renew("a", 3, "0.60")
    assert books.renew("a", 2, "0.50") == "again: open"
    assert books.held() == "0.60"


def test_a_renewal_keeps_the_progress() -> None:
    books = held()
    books.progress("a", "0.10")
    books.at("09:05", tick=SECOND).renew("a", 1)
    assert books.meters() == ("0.10", "0.30", "0.00", "0.60")
