"""C: resets, windows, time zones, as a wallet lives them. The calendar itself: tests/unit/test_periods.py."""

import pytest
from wallets import TODAY, Books, budget, moment

from engine.core.messages import Exhausted


def test_c1_a_budget_in_tokyo_is_new_at_local_midnight() -> None:
    books = Books(jev=budget("100", zone="Asia/Tokyo"))
    books.at("14:59:59").hold("a", "100")
    assert books.hold("b", "1") == "exhausted: busy, 0.00 fits"
    assert books.at("15:00").hold("b2", "100") == "held 100.00"
    assert books.at("2026-12-01 14:59:59").hold("c", "1") == "exhausted: spent, 0.00 fits"


def test_c2_a_day_of_25_hours_has_one_budget() -> None:
    books = Books(jev=budget("1.00", zone="Europe/Berlin"), start="2026-10-24 21:00")
    books.at("2026-10-24 22:00").hold("a", "1.00", ttl_s=60)
    assert books.at("2026-10-25 22:59:59").hold("b", "0.01") == "exhausted: spent, 0.00 fits"
    assert books.at("2026-10-25 23:00").hold("c", "1.00") == "held 1.00"


def test_c3_a_monthly_budget_follows_the_calendar_not_the_first_use() -> None:
    books = Books(jev=budget("1.00", per="month"))
    books.at("2026-11-30 12:00").hold("a", "1.00")
    assert books.at("2026-12-01 00:00").hold("b", "1.00") == "held 1.00"


def test_c7_a_budget_resets_although_nothing_runs_at_midnight() -> None:
    books = Books()
    books.at("12:00").hold("a", "1.00")
    books.settle("a", "1.00")
    assert books.at("2026-12-03 12:00").hold("b", "1.00") == "held 1.00"


def test_c11_resets_at_is_the_next_boundary() -> None:
    books = Books()
    books.at("12:00").hold("a", "2.00")
    assert isinstance(books.last, Exhausted)
    assert books.last.resets_at == moment("2026-12-01 00:00")


@pytest.mark.parametrize(("zone", "day"), [("UTC", "2026-11-30"), ("Asia/Tokyo", "2026-12-01"),
                                           ("America/Los_Angeles", "2026-11-29")])  # fmt: skip
def test_c12_the_zone_of_a_budget_decides_its_day(zone: str, day: str) -> None:
    books = Books(jev=budget("1.00", zone=zone))
    books.at("2026-11-30 15:30" if zone != "America/Los_Angeles" else "2026-11-30 07:30").hold("a", "0.40")
    assert books.held(day=day) == "0.40"


def test_c13_a_changed_period_is_an_event_that_every_replica_folds_alike() -> None:
    books = Books()
    books.at("12:00").hold("a", "0.40")
    assert books.change(jev=budget("1.00", per="week")) == "planned, restarts jev"
    books.hold("b", "1.00")
    assert books.replayed().dump() == books.replica.dump() == books.wallet.dump()


def test_c14_nothing_has_to_run_at_midnight() -> None:
    books = Books()
    books.at("23:59").hold("a", "0.40")
    before = len(books.stream)
    assert books.at("2026-12-01 00:00").hold("b", "1.00") == "held 1.00"
    assert len(books.stream) == before + 1


def test_c16_two_budgets_on_one_call_are_charged_once_each() -> None:
    books = Books(day=budget("1.00"), month=budget("10.00", per="month"))
    books.hold("a", "0.60")
    books.settle("a", "0.60")
    assert (books.settled("day"), books.settled("month")) == ("0.60", "0.60")
    assert books.hold("b", "0.40") == "held 0.40"


def test_c18_a_window_is_not_anchored_to_its_first_use() -> None:
    books = Books(jev=budget("1.00", per="hour"))
    books.at("09:59").hold("a", "1.00")
    assert books.at("10:00").hold("b", "1.00") == "held 1.00"


def test_c19_a_call_is_charged_to_the_day_it_was_asked_and_both_days_add_up() -> None:
    books = Books()
    books.at("23:59:59").hold("a", "0.40")
    books.at("2026-12-01 00:00:01").hold("b", "0.20")
    books.at("2026-12-01 00:00:03").settle("a", "0.35")
    books.settle("b", "0.15")
    assert books.meters(day=TODAY) == ("0.35", "0.00", "0.00", "0.65")
    assert books.meters(day="2026-12-01") == ("0.15", "0.00", "0.00", "0.85")
