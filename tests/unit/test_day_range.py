"""Which days are meant: names, ranges, and days that the clocks make longer or shorter."""

from __future__ import annotations

import pytest
from wallets import moment

from projector.day_range import DayError, DayRange, parse

HOUR = 3_600 * 10**9


def days(written: str, *, zone: str = "UTC", now: str = "2026-11-30 14:05") -> DayRange:
    return parse(written, zone=zone, now=moment(now))


def test_one_day_is_from_midnight_to_midnight() -> None:
    found = days("2026-11-30")
    assert (found.start, found.end) == (moment("00:00"), moment("2026-12-01 00:00"))
    assert moment("00:00") in found
    assert moment("2026-12-01 00:00") not in found
    assert str(found) == "2026-11-30"


def test_today_and_yesterday_are_those_of_the_wallets_zone() -> None:
    assert str(days("today")) == "2026-11-30"
    assert str(days("today", zone="Asia/Tokyo", now="2026-11-30 15:00")) == "2026-12-01"
    assert str(days("yesterday", now="2026-12-01 00:00")) == "2026-11-30"


def test_a_range_holds_both_its_ends() -> None:
    found = days("2026-11-01..2026-11-30")
    assert (found.end - found.start) == 30 * 24 * HOUR
    assert str(found) == "2026-11-01..2026-11-30"
    assert str(days("yesterday..today")) == "2026-11-29..2026-11-30"


def test_a_day_is_as_long_as_the_clocks_there_make_it() -> None:
    longest = days("2026-10-25", zone="Europe/Berlin")
    shortest = days("2026-03-29", zone="Europe/Berlin")
    assert ((longest.end - longest.start) // HOUR, (shortest.end - shortest.start) // HOUR) == (25, 23)


@pytest.mark.parametrize(
    "written", ["", "monday", "2026-11-31", "2026-11-30..", "..2026-11-30", "2026-11-30..2026-11-01",
                "2020-01-01..2026-11-30", "2026-11", "2026-11-30T00:00", "tomorrow"],
)  # fmt: skip
def test_what_is_no_day_is_refused(written: str) -> None:
    with pytest.raises(DayError, match=r"a day|a range of days"):
        days(written)
