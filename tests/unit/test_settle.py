"""Settle: the call cost this. It is never refused, whatever it costs and whenever it comes."""

import pytest
from wallets import SECOND, TODAY, Books, amounts, budget, moment

from engine.core.limits import AMOUNT_MAX
from engine.core.messages import Conflict, Left, Line, Settle, Settled
from engine.core.plan import Budget, Plan

TOMORROW = "2026-12-01"


def held(said: str = "0.40", **budgets: Budget) -> Books:
    """Given a hold `a` of 0.40 at nine."""
    books = Books(plan=Plan(budgets=budgets or {"jev": budget("1.00")}))
    books.at("09:00").hold("a", said)
    return books


# --- an exact settle --------------------------------------------------------------------------------------------------


def test_a_settle_charges_what_the_call_cost_and_gives_back_the_rest() -> None:
    books = held()
    assert books.settle("a", "0.30") == "settled 0.30, 0.10 back"
    assert books.meters() == ("0.30", "0.00", "0.00", "0.70")
    left = {"jev": Left(1_000_000_000, 700_000_000)}
    assert books.last == Settled("a", "settled", amounts("0.30"), amounts("0.10"), left)


def test_a_settle_above_the_hold_is_charged_in_full_and_flagged() -> None:
    books = held()
    assert books.settle("a", "2.00") == "settled 2.00 (overrun)"
    assert books.meters() == ("2.00", "0.00", "0.00", "-1.00")


def test_what_is_left_is_shown_below_zero_too() -> None:
    books = held()
    books.settle("a", "2.00")
    assert isinstance(books.last, Settled)
    assert books.last.left == {"jev": Left(1_000_000_000, -1_000_000_000)}


def test_an_overrun_leaves_other_holds_untouched() -> None:
    books = held()
    books.hold("b", "0.60")
    books.settle("a", "0.70")
    assert books.meters() == ("0.70", "0.60", "0.00", "-0.30")
    assert books.settle("b", "0.60") == "settled 0.60"


def test_zero_is_a_settlement() -> None:
    books = held()
    assert books.settle("a", "0") == "settled 0.00, 0.40 back"
    assert books.left() == "1.00"


def test_a_settle_is_taken_during_a_freeze_and_from_a_revoked_key() -> None:
    books = Books()
    books.hold("a", "0.40", key="k1")
    books.freeze("all")
    books.revoke("key", "k1")
    assert books.settle("a", "0.30") == "settled 0.30, 0.10 back"


def test_a_late_settle_is_charged_to_the_day_of_its_hold() -> None:
    books = Books()
    books.at("23:59:59").hold("a", "0.40")
    assert books.at("2026-12-01 00:00:03").settle("a", "0.30") == "settled 0.30, 0.10 back"
    assert books.settled(day=TODAY) == "0.30"
    assert books.settled(day=TOMORROW) == "0.00"


def test_every_budget_that_was_held_is_settled() -> None:
    books = Books(site=budget("1.00"), user=budget("0.50", each="user"))
    books.hold("a", "0.40", user="alice")
    books.settle("a", "0.30")
    assert (books.settled("site"), books.settled("user", each="alice")) == ("0.30", "0.30")


def test_matching_is_fixed_at_the_hold() -> None:
    books = held()
    books.change(new=budget("5.00"))
    books.settle("a", "0.30")
    assert (books.settled("jev"), books.settled("new")) == ("0.30", "0.00")


def test_a_unit_the_hold_has_and_the_settle_omits_is_charged_at_the_grant() -> None:
    books = held("0.40 usd + 300 neurons")
    assert books.settle("a", "0.10") == "settled 0.10 + 300 neurons, 0.30 back (unreported)"


def test_a_unit_that_is_said_to_be_zero_costs_nothing() -> None:
    books = held("0.40 usd + 300 neurons")
    assert books.settle("a", "0.10 usd + 0 neurons") == "settled 0.10 + 0 neurons, 0.30 + 300 neurons back"


def test_a_unit_the_hold_lacks_is_charged_to_the_day_of_the_hold_and_flagged() -> None:
    books = held("0.40", jev=budget("1.00"), neurons=budget("500 neurons"))
    said = books.at("2026-12-01 00:00:03").settle("a", "0.40 usd + 300 neurons")
    assert said == "corrected 0.40 + 300 neurons (late, unheld, corrected)"
    assert books.settled("neurons", day=TODAY) == "300"
    assert books.settled("neurons", day=TOMORROW) == "0"


def test_what_was_not_held_shows_the_budgets_it_went_to() -> None:
    books = held("0.40", jev=budget("1.00"), neurons=budget("500 neurons"))
    assert books.settle("a", "0.40 usd + 300 neurons") == "settled 0.40 + 300 neurons (unheld)"
    assert isinstance(books.last, Settled)
    line = Line(TODAY, moment("00:00"), moment("2026-12-01 00:00"), 500_000_000, 200_000_000)
    assert books.last.budgets == {"neurons": line}


def test_the_current_limit_is_shown() -> None:
    books = held()
    books.change(jev=budget("0.50"))
    books.settle("a", "0.40")
    assert isinstance(books.last, Settled)
    assert books.last.left == {"jev": Left(500_000_000, 100_000_000)}


# --- so far -----------------------------------------------------------------------------------------------------------


def test_progress_moves_money_from_held_to_settled() -> None:
    books = held()
    assert books.progress("a", "0.10") == "open 0.10"
    assert books.meters() == ("0.10", "0.30", "0.00", "0.60")


def test_progress_is_a_total_and_the_highest_counts() -> None:
    books = held()
    books.progress("a", "0.30")
    assert books.progress("a", "0.20") == "again: open"
    assert books.meters() == ("0.30", "0.10", "0.00", "0.60")


def test_progress_past_the_grant_is_charged_and_flagged() -> None:
    books = held()
    assert books.progress("a", "0.50") == "open 0.50 (overrun)"
    assert books.meters() == ("0.50", "0.00", "0.00", "0.50")


def test_progress_in_a_unit_that_was_not_held_is_charged() -> None:
    books = held("0.40", jev=budget("1.00"), neurons=budget("500 neurons"))
    assert books.progress("a", "300 neurons") == "open 0.00 + 300 neurons (unheld)"
    assert books.progress("a", "310 neurons") == "open 0.00 + 310 neurons (overrun)"
    assert books.settled("neurons") == "310"


def test_a_final_settle_replaces_progress_up_or_down() -> None:
    books = held()
    books.progress("a", "0.30")
    assert books.settle("a", "0.20") == "settled 0.20, 0.20 back"
    assert books.meters() == ("0.20", "0.00", "0.00", "0.80")


def test_a_unit_left_out_is_charged_at_progress_where_that_is_larger_than_the_grant() -> None:
    books = held("0.40 usd + 300 neurons")
    books.progress("a", "350 neurons")
    assert books.settle("a", "0.10") == "settled 0.10 + 350 neurons, 0.30 back (unreported)"


# --- release ----------------------------------------------------------------------------------------------------------


def test_a_release_gives_everything_back() -> None:
    books = held()
    assert books.release("a") == "settled 0.00, 0.40 back"
    assert books.left() == "1.00"


def test_a_release_keeps_the_progress_already_reported() -> None:
    books = held()
    books.progress("a", "0.07")
    assert books.release("a") == "settled 0.07, 0.33 back"
    assert books.settled() == "0.07"


def test_giving_up_on_an_attempt_gives_its_hold_back() -> None:
    books = Books()
    books.at("09:00").hold("a", "0.40", by="09:00:05")
    assert books.at("09:00:06").release("a", by="09:00:05") == "settled 0.00, 0.40 back"


def test_giving_up_counts_only_if_no_later_attempt_was_made() -> None:
    books = Books()
    books.at("09:00").hold("a", "0.40", by="09:00:05")
    books.at("09:00:06").hold("a", "0.40", by="09:00:11")
    assert books.release("a", by="09:00:05") == "again: open"
    assert books.held() == "0.40"
    assert books.release("a", by="09:00:11") == "settled 0.00, 0.40 back"


def test_an_attempt_that_arrives_after_a_later_one_does_not_take_its_place() -> None:
    books = Books()
    books.at("09:00").hold("a", "0.40", by="09:00:11")
    books.hold("a", "0.40", by="09:00:05")
    assert books.release("a", by="09:00:05") == "again: open"


@pytest.mark.parametrize("by", ["09:00:04", "09:00:05"])
def test_after_giving_up_an_attempt_that_is_still_on_its_way_is_no_permission(by: str) -> None:
    books = Books()
    books.at("09:00").hold("a", "0.40", by="09:00:05")
    books.release("a", by="09:00:05")
    assert books.at("09:00:01").hold("a", "0.40", by=by) == "closed: settled 0.00"


def test_after_giving_up_a_later_attempt_is_decided_afresh() -> None:
    books = Books()
    books.at("09:00").hold("a", "0.40", by="09:00:05")
    books.release("a", by="09:00:05")
    assert books.hold("a", "0.40", by="09:00:06") == "held 0.40"


def test_an_id_given_up_after_something_was_charged_stays_bound() -> None:
    books = Books()
    books.at("09:00").hold("a", "0.40", by="09:00:05")
    books.progress("a", "0.10")
    books.release("a", by="09:00:05")
    assert books.hold("a", "0.40", by="09:00:30") == "closed: settled 0.10"


def test_giving_up_before_the_hold_arrives_stops_it() -> None:
    books = Books()
    assert books.at("09:00").release("a", by="09:00:05") == "stray nothing"
    assert books.hold("a", "0.40", by="09:00:05") == "closed: stray nothing"
    assert books.hold("a", "0.40", by="09:00:09") == "held 0.40"


# --- invalid ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "ask"),
    [
        ("hold", Settle("", {"usd": 1})),
        ("hold", Settle("a b", {"usd": 1})),
        ("id", Settle("a", {"usd": 1}, id="a b")),
        ("amounts", Settle("a")),
        ("amounts", Settle("a", {"USD": 1})),
        ("amounts.usd", Settle("a", {"usd": -1})),
        ("amounts.usd", Settle("a", {"usd": AMOUNT_MAX + 1})),
        ("amounts", Settle("a", {f"u{n}": 1 for n in range(9)})),
        ("amounts", Settle("a", {"usd": 1}, release=True)),
        ("release", Settle("a", release=True, final=False)),
        ("release", Settle("a", release=True, estimated=True)),
        ("labels", Settle("a", {"usd": 1}, labels={"No": "x"})),
    ],
)
def test_a_settle_that_cannot_be_understood_leaves_its_hold_open(field: str, ask: Settle) -> None:
    books = held()
    assert books.send(ask) == [f"invalid: {field}"]
    assert (books.state("a"), books.held()) == ("open", "0.40")


def test_the_largest_amount_there_is_can_be_settled() -> None:
    books = held()
    books.settle("a", {"usd": AMOUNT_MAX})
    assert books.settled() == "9223372036.854775807"


# --- stays quiet ------------------------------------------------------------------------------------------------------


def test_the_same_settle_again_charges_once() -> None:
    books = held()
    books.settle("a", "0.30")
    assert books.settle("a", "0.30") == "again: settled"
    assert books.at("10:00").settle("a", "0.30", id="another") == "again: settled"
    assert books.settled() == "0.30"


def test_another_amount_after_an_exact_settle_is_a_conflict_that_says_what_stands() -> None:
    books = held()
    books.settle("a", "0.30")
    assert books.settle("a", "0.31") == "conflict: amounts"
    assert books.last == Conflict("a", "amounts", amounts("0.30"))
    assert books.settled() == "0.30"


def test_zero_and_absent_are_the_same_after_the_settle() -> None:
    books = held()
    books.settle("a", "0.30")
    assert books.settle("a", "0.30 usd + 0 neurons") == "again: settled"
    assert books.settle("a", "0 neurons") == "again: settled"


def test_a_release_after_a_settle_gives_nothing_back() -> None:
    books = held()
    books.settle("a", "0.30")
    assert books.release("a") == "conflict: amounts"
    assert books.release("a", by="09:00:05") == "again: settled"
    assert books.settled() == "0.30"


def test_a_settle_id_of_ones_own_belongs_to_one_hold() -> None:
    books = held()
    books.hold("b", "0.40")
    books.settle("a", "0.30", id="call-7")
    assert books.settle("b", "0.30", id="call-7") == "conflict: id"
    assert books.held() == "0.40"
    assert books.settle("b", "0.30") == "settled 0.30, 0.10 back"


def test_a_settle_id_that_changed_nothing_is_not_bound() -> None:
    books = held()
    books.hold("b", "0.40")
    books.settle("a", "0.30")
    books.settle("a", "0.31", id="call-7")
    assert books.settle("b", "0.30", id="call-7") == "settled 0.30, 0.10 back"


# --- a hold nobody knows ----------------------------------------------------------------------------------------------


def test_a_settlement_of_a_hold_nobody_knows_is_charged_all_the_same() -> None:
    books = Books(jev=budget("1.00", where={"provider": "jev"}), other=budget("1.00", where={"provider": "other"}))
    assert books.settle("x", "0.30", provider="jev") == "stray 0.30"
    assert (books.settled("jev"), books.settled("other")) == ("0.30", "0.00")


def test_a_stray_is_charged_to_the_day_it_says_it_was_held() -> None:
    books = Books()
    assert books.at("2026-12-01 09:00").settle("x", "0.30", held_at="23:50") == "stray 0.30"
    assert (books.settled(day=TODAY), books.settled(day=TOMORROW)) == ("0.30", "0.00")


def test_a_stray_is_not_charged_to_the_future() -> None:
    books = Books()
    assert books.at("09:00").settle("x", "0.30", held_at="2026-12-01 09:00") == "stray 0.30"
    assert books.settled(day=TODAY) == "0.30"


def test_a_stray_closes_its_id_like_a_hold() -> None:
    books = Books()
    books.settle("x", "0.30")
    assert books.settle("x", "0.30") == "again: stray"
    assert books.settle("x", "0.31") == "conflict: amounts"
    assert books.hold("x", "0.10") == "closed: stray 0.30"


@pytest.mark.parametrize(("tick", "outcome"), [(-1, "stray 0.30"), (0, "forgotten"), (1, "forgotten")])
def test_a_settlement_older_than_the_memory_is_listed_not_charged(tick: int, outcome: str) -> None:
    books = Books(remember_s=60)
    assert books.at("09:01", tick=tick).settle("x", "0.30", held_at="09:00") == outcome
    assert books.settled() == ("0.30" if outcome == "stray 0.30" else "0.00")


def test_a_charge_to_a_day_that_is_gone_from_memory_is_told_for_that_day() -> None:
    books = Books(jev=budget("1.00"), neurons=budget("500 neurons"), remember_s=60)
    books.at("23:50").hold("a", "0.40", ttl_s=1200)
    said = books.at("2026-12-01 00:05").settle("a", "0.40 usd + 300 neurons")
    assert said == f"settled 0.40 + 300 neurons, 300000000 to neurons of {TODAY} (unheld)"
    assert books.meters("neurons", day=TODAY).settled == "0"
    assert books.settled("jev", day=TODAY) == "0.40"


def test_nanoseconds_count() -> None:
    books = Books()
    books.at("2026-12-01 00:00", tick=-1).hold("a", "0.10")
    books.at("2026-12-01 00:00").hold("b", "0.20")
    books.at("2026-12-01 00:00", tick=SECOND).settle("a", "0.10")
    assert (books.settled(day=TODAY), books.held(day=TOMORROW)) == ("0.10", "0.20")
