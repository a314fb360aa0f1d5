"""Days as people live them: every table here can be checked against a wall calendar and a clock."""

import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from importlib.resources import as_file, files
from pathlib import Path
from typing import get_args
from zoneinfo import available_timezones

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.core.periods import SECOND, TOTAL, Period, PeriodError, period_at, period_named, zone_known
from engine.core.plan import Per

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOUR = 3600 * SECOND


def ns(written: str) -> int:
    """`2026-11-30T14:05+09:00` as nanoseconds since 1970."""
    return (datetime.fromisoformat(written) - EPOCH) // timedelta(seconds=1) * SECOND


def utc(moment: int) -> str:
    return (EPOCH + timedelta(seconds=moment // SECOND)).strftime("%Y-%m-%d %H:%M")


def rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines()]


def shown(period: Period) -> tuple[str, str, str]:
    return period.name, utc(period.start), utc(period.end)


# --- days -------------------------------------------------------------------------------------------------------------

DAYS = """
UTC                 | 2026-11-30 | 2026-11-30 00:00 | 2026-12-01 00:00 | 24   | midnight is midnight
Asia/Tokyo          | 2026-11-30 | 2026-11-29 15:00 | 2026-11-30 15:00 | 24   | nine hours earlier, not at UTC midnight
Asia/Shanghai       | 2026-11-30 | 2026-11-29 16:00 | 2026-11-30 16:00 | 24   |
Asia/Kathmandu      | 2026-11-30 | 2026-11-29 18:15 | 2026-11-30 18:15 | 24   | offsets come in quarters of an hour
America/New_York    | 2026-11-30 | 2026-11-30 05:00 | 2026-12-01 05:00 | 24   |
America/New_York    | 2026-03-08 | 2026-03-08 05:00 | 2026-03-09 04:00 | 23   | spring
America/New_York    | 2026-11-01 | 2026-11-01 04:00 | 2026-11-02 05:00 | 25   | autumn
Europe/Berlin       | 2026-03-29 | 2026-03-28 23:00 | 2026-03-29 22:00 | 23   | spring
Europe/Berlin       | 2026-10-25 | 2026-10-24 22:00 | 2026-10-25 23:00 | 25   | autumn
Australia/Lord_Howe | 2026-10-04 | 2026-10-03 13:30 | 2026-10-04 13:00 | 23.5 | half an hour forward
Australia/Lord_Howe | 2026-04-05 | 2026-04-04 13:00 | 2026-04-05 13:30 | 24.5 | half an hour back
America/Santiago    | 2026-09-06 | 2026-09-06 04:00 | 2026-09-07 03:00 | 23   | 00:00 became 01:00: no midnight
Africa/Cairo        | 2026-04-24 | 2026-04-23 22:00 | 2026-04-24 21:00 | 23   | no midnight
Asia/Beirut         | 2026-03-29 | 2026-03-28 22:00 | 2026-03-29 21:00 | 23   | no midnight
America/Santiago    | 2026-04-04 | 2026-04-04 03:00 | 2026-04-05 04:00 | 25   | 24:00 became 23:00: the later
America/Havana      | 2024-11-03 | 2024-11-03 04:00 | 2024-11-04 05:00 | 25   | two midnights: the first
America/St_Johns    | 2010-11-06 | 2010-11-06 02:30 | 2010-11-07 02:30 | 24   | 00:01 became 23:01: the day has begun
America/St_Johns    | 2010-11-07 | 2010-11-07 02:30 | 2010-11-08 03:30 | 25   | and goes on
Africa/Monrovia     | 1971-06-01 | 1971-06-01 00:44 | 1971-06-02 00:44 | 24   | an offset of 44 minutes and 30 seconds
Pacific/Apia        | 2011-12-29 | 2011-12-29 10:00 | 2011-12-30 10:00 | 24   | the last day east of the date line
Pacific/Apia        | 2011-12-31 | 2011-12-30 10:00 | 2011-12-31 10:00 | 24   | the next day: there was no 30th
"""


@pytest.mark.parametrize(("zone", "name", "start", "end", "hours", "_why"), rows(DAYS))
def test_c2_a_day_is_the_local_day_of_any_zone(
    zone: str, name: str, start: str, end: str, hours: str, _why: str
) -> None:
    day = period_named(name, per="day", zone=zone)
    assert shown(day) == (name, start, end)
    assert (day.end - day.start) * 2 == float(hours) * 2 * HOUR


@pytest.mark.parametrize(("zone", "name", "start", "end", "hours", "_why"), rows(DAYS))
def test_c2_every_moment_from_the_first_to_the_last_is_in_its_day(
    zone: str, name: str, start: str, end: str, hours: str, _why: str
) -> None:
    day = period_named(name, per="day", zone=zone)
    moments = [day.start, *range(day.start, day.end, 15 * 60 * SECOND), day.end - 1]
    assert {period_at(at, per="day", zone=zone) for at in moments} == {day}
    assert period_at(day.start - 1, per="day", zone=zone).end == day.start
    assert period_at(day.end, per="day", zone=zone).start == day.end


def test_c1_a_budget_in_tokyo_resets_at_local_midnight() -> None:
    before, at = ns("2026-11-30T23:59:59+09:00"), ns("2026-12-01T00:00:00+09:00")
    assert period_at(before, per="day", zone="Asia/Tokyo").name == "2026-11-30"
    assert period_at(at - 1, per="day", zone="Asia/Tokyo").name == "2026-11-30"
    assert period_at(at, per="day", zone="Asia/Tokyo").name == "2026-12-01"


def test_the_last_minutes_of_a_repeated_evening_belong_to_the_day_that_has_begun() -> None:
    # St. John's put its clocks back from 00:01 to 23:01: the date on the wall is the 6th again, for 59 minutes.
    second_evening = ns("2010-11-06T23:30-03:30")
    assert period_at(second_evening, per="day", zone="America/St_Johns").name == "2010-11-07"


def test_a_date_that_never_was_has_no_period() -> None:
    with pytest.raises(PeriodError, match="Pacific/Apia"):
        period_named("2011-12-30", per="day", zone="Pacific/Apia")
    assert period_named("2011-12-30", per="day", zone="Pacific/Pago_Pago").name == "2011-12-30"


# --- weeks, months, years ---------------------------------------------------------------------------------------------

DATED = """
week  | UTC              | 2026-W48 | 2026-11-23 00:00 | 2026-11-30 00:00 | Monday to Sunday
week  | UTC              | 2026-W01 | 2025-12-29 00:00 | 2026-01-05 00:00 | the week of the year's first Thursday
week  | UTC              | 2026-W53 | 2026-12-28 00:00 | 2027-01-04 00:00 | a long year
week  | UTC              | 2020-W53 | 2020-12-28 00:00 | 2021-01-04 00:00 |
week  | UTC              | 2021-W01 | 2021-01-04 00:00 | 2021-01-11 00:00 |
week  | UTC              | 1970-W01 | 1969-12-29 00:00 | 1970-01-05 00:00 | begins before 1970
week  | Europe/Berlin    | 2026-W13 | 2026-03-22 23:00 | 2026-03-29 22:00 | 167 hours
week  | Pacific/Apia     | 2011-W52 | 2011-12-26 10:00 | 2012-01-01 10:00 | six days long
month | UTC              | 2026-02  | 2026-02-01 00:00 | 2026-03-01 00:00 | 28 days
month | UTC              | 2028-02  | 2028-02-01 00:00 | 2028-03-01 00:00 | 29 days
month | UTC              | 2026-12  | 2026-12-01 00:00 | 2027-01-01 00:00 |
month | America/New_York | 2026-11  | 2026-11-01 04:00 | 2026-12-01 05:00 | 30 days and an hour
year  | UTC              | 2026     | 2026-01-01 00:00 | 2027-01-01 00:00 |
year  | UTC              | 2028     | 2028-01-01 00:00 | 2029-01-01 00:00 | 366 days
year  | Pacific/Apia     | 2011     | 2011-01-01 10:00 | 2011-12-31 10:00 | 364 days
year  | Asia/Tokyo       | 1970     | 1969-12-31 15:00 | 1970-12-31 15:00 |
"""


@pytest.mark.parametrize(("per", "zone", "name", "start", "end", "_why"), rows(DATED))
def test_c3_weeks_months_and_years_are_those_of_the_calendar(
    per: Per, zone: str, name: str, start: str, end: str, _why: str
) -> None:
    period = period_named(name, per=per, zone=zone)
    assert shown(period) == (name, start, end)
    assert period_at(period.end - 1, per=per, zone=zone) == period
    assert period_at(max(0, period.start), per=per, zone=zone) == period


def test_c3_the_31st_does_not_move_the_next_month() -> None:
    january = period_at(ns("2026-01-31T12:00+00:00"), per="month", zone="UTC")
    february = period_at(january.end, per="month", zone="UTC")
    march = period_at(february.end, per="month", zone="UTC")
    assert [january.name, february.name, march.name] == ["2026-01", "2026-02", "2026-03"]


def test_c17_a_week_starts_on_monday() -> None:
    sunday, monday = ns("2026-11-29T23:59:59+00:00"), ns("2026-11-30T00:00+00:00")
    assert period_at(sunday, per="week", zone="UTC").name == "2026-W48"
    assert period_at(monday, per="week", zone="UTC").name == "2026-W49"


def test_february_29_is_a_day_of_its_own() -> None:
    leap_day = period_at(ns("2028-02-29T12:00+00:00"), per="day", zone="UTC")
    assert shown(leap_day) == ("2028-02-29", "2028-02-29 00:00", "2028-03-01 00:00")
    with pytest.raises(PeriodError):
        period_named("2026-02-29", per="day", zone="UTC")


# --- hours and minutes ------------------------------------------------------------------------------------------------

CLOCKED = """
minute | UTC                 | 2026-11-30T14:05Z      | 2026-11-30 14:05 | 2026-11-30 14:06 |
minute | Asia/Tokyo          | 2026-11-30T14:05+09:00 | 2026-11-30 05:05 | 2026-11-30 05:06 |
hour   | UTC                 | 2026-11-30T14Z         | 2026-11-30 14:00 | 2026-11-30 15:00 |
hour   | Asia/Tokyo          | 2026-11-30T14+09:00    | 2026-11-30 05:00 | 2026-11-30 06:00 |
hour   | Asia/Kolkata        | 2026-11-30T14+05:30    | 2026-11-30 08:30 | 2026-11-30 09:30 | the wall clock's hour
hour   | Europe/London       | 2026-11-30T14+00:00    | 2026-11-30 14:00 | 2026-11-30 15:00 | Z is kept for UTC
hour   | Europe/Berlin       | 2026-10-25T02+02:00    | 2026-10-25 00:00 | 2026-10-25 01:00 | 02:00 the first time
hour   | Europe/Berlin       | 2026-10-25T02+01:00    | 2026-10-25 01:00 | 2026-10-25 02:00 | 02:00 the second time
hour   | America/New_York    | 2026-11-01T01-04:00    | 2026-11-01 05:00 | 2026-11-01 06:00 | 01:00 the first time
hour   | America/New_York    | 2026-11-01T01-05:00    | 2026-11-01 06:00 | 2026-11-01 07:00 | 01:00 the second time
hour   | Australia/Lord_Howe | 2026-04-05T01+11:00    | 2026-04-04 14:00 | 2026-04-04 15:00 | 02:00 became 01:30
hour   | Australia/Lord_Howe | 2026-04-05T01+10:30    | 2026-04-04 15:00 | 2026-04-04 15:30 | half an hour
hour   | Australia/Lord_Howe | 2026-04-05T02+10:30    | 2026-04-04 15:30 | 2026-04-04 16:30 |
hour   | Australia/Lord_Howe | 2026-10-04T01+10:30    | 2026-10-03 14:30 | 2026-10-03 15:30 | 02:00 became 02:30
hour   | Australia/Lord_Howe | 2026-10-04T02+11:00    | 2026-10-03 15:30 | 2026-10-03 16:00 | half an hour
"""


@pytest.mark.parametrize(("per", "zone", "name", "start", "end", "_why"), rows(CLOCKED))
def test_c2_hours_and_minutes_are_the_wall_clocks(
    per: Per, zone: str, name: str, start: str, end: str, _why: str
) -> None:
    period = period_named(name, per=per, zone=zone)
    assert shown(period) == (name, start, end)
    assert period_at(period.start, per=per, zone=zone) == period
    assert period_at(period.end - 1, per=per, zone=zone) == period


def test_an_hour_that_the_clocks_skipped_has_no_period() -> None:
    for offset in ("+01:00", "+02:00"):
        with pytest.raises(PeriodError):
            period_named(f"2026-03-29T02{offset}", per="hour", zone="Europe/Berlin")


def test_an_offset_that_was_not_in_force_names_nothing() -> None:
    with pytest.raises(PeriodError):
        period_named("2026-07-01T12+01:00", per="hour", zone="Europe/Berlin")


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("per", "written"),
    [
        ("day", "today"), ("day", ""), ("day", "20261130"), ("day", "2026-11-30T00:00"), ("day", "2026-11-31"),
        ("day", " 2026-11-30"), ("day", "2026-W48-1"), ("day", "2026-11"), ("day", "1969-12-31"), ("day", "0001-01-01"),
        ("day", "9999-12-31"), ("day", "2262-04-12"), ("day", "\ud800"), ("day", "2026-11-30\x00"),
        ("week", "2026-48"), ("week", "2026-W48-1"), ("week", "2026W48"), ("week", "2025-W53"), ("week", "2026-w48"),
        ("month", "2026-13"), ("month", "2026-1"), ("month", "2026-11-30"), ("month", "November"),
        ("year", "26"), ("year", "02026"), ("year", "9999"), ("year", "0001"),
        ("hour", "2026-11-30T14"), ("hour", "2026-11-30 14Z"), ("hour", "2026-11-30T14+00:00"),
        ("hour", "2026-11-30T24Z"), ("hour", "2026-11-30T14:00Z"), ("minute", "2026-11-30T14Z"),
        ("minute", "2026-11-30T14:05:30Z"), ("minute", "2026-11-30T14:05z"), ("total", "Total"),
        ("total", ""), ("total", "2026"), ("month", "2026-11" * 10_000),
    ],
)  # fmt: skip
def test_c4_a_period_has_one_name_and_no_other_is_taken(per: Per, written: str) -> None:
    with pytest.raises(PeriodError, match=r"expected the name of .* in UTC") as refused:
        period_named(written, per=per, zone="UTC")
    assert len(str(refused.value)) < 120


def test_the_error_shows_what_a_name_of_that_zone_looks_like() -> None:
    with pytest.raises(PeriodError) as refused:
        period_named("14:00", per="hour", zone="Asia/Tokyo")
    assert str(refused.value) == 'expected the name of an hour in Asia/Tokyo, such as "2026-11-30T23+09:00"'


def test_the_total_never_ends_and_has_one_name() -> None:
    assert Period("total", 0, 2**63 - 1) == TOTAL
    assert period_at(0, per="total", zone="Asia/Tokyo") is TOTAL
    assert period_at(2**63 - 2, per="total", zone="Asia/Tokyo") is TOTAL
    assert period_named("total", per="total", zone="UTC") is TOTAL


# --- zones ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/Argentina/Buenos_Aires", "Etc/GMT+12", "Asia/Calcutta"])
def test_c2_every_iana_zone_is_known(zone: str) -> None:
    assert zone_known(zone)


@pytest.mark.parametrize(
    "zone",
    [
        "", "localtime", "Factory", "posixrules", "utc", "asia/tokyo", "Asia", "Asia/Tokio", "Tokyo", "/etc/localtime",
        "../zoneinfo/UTC", "Asia/../Asia/Tokyo", "/usr/share/zoneinfo/UTC", "UTC\x00", "zone.tab", "+09:00", "JST",
        "A" * 10_000,
    ],
)  # fmt: skip
def test_what_is_not_a_key_of_the_pinned_tzdata_is_unknown(zone: str) -> None:
    assert not zone_known(zone)


def test_zone_files_of_the_system_change_no_day(tmp_path: Path) -> None:
    with as_file(files("tzdata.zoneinfo.Asia") / "Tokyo") as tokyo:
        shutil.copy(tokyo, tmp_path / "UTC")
    program = (
        "from zoneinfo import ZoneInfo; from datetime import datetime, timedelta\n"
        "assert datetime(2026, 11, 30, tzinfo=ZoneInfo('UTC')).utcoffset() == timedelta(hours=9), 'not planted'\n"
        "from engine.core.periods import period_at\n"
        f"print(period_at({ns('2026-11-30T23:59+00:00')}, per='day', zone='UTC').name)"
    )
    root = Path(__file__).parents[2]
    environment = {"PYTHONTZPATH": str(tmp_path), "PYTHONPATH": str(root)}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "2026-11-30"


# --- properties -------------------------------------------------------------------------------------------------------

ZONES = st.sampled_from(sorted(zone for zone in available_timezones() if zone_known(zone)))
PERS = st.sampled_from(get_args(Per))
MOMENTS = st.integers(0, TOTAL.end - 1) | st.integers(0, ns("2040-01-01T00:00+00:00"))


@settings(deadline=None)
@given(at=MOMENTS, per=PERS, zone=ZONES)
@example(at=0, per="year", zone="Asia/Tokyo")
@example(at=0, per="week", zone="America/New_York")
@example(at=TOTAL.end - 1, per="year", zone="UTC")
@example(at=ns("2011-12-30T09:59:59+00:00"), per="month", zone="Pacific/Apia")
def test_periods_partition_time(at: int, per: Per, zone: str) -> None:
    period = period_at(at, per=per, zone=zone)
    assert period.start <= at < period.end <= TOTAL.end
    assert period_at(period.end - 1, per=per, zone=zone) == period
    if period.end < TOTAL.end:
        after = period_at(period.end, per=per, zone=zone)
        assert (after.start, after.name == period.name) == (period.end, False)
    if period.start > 0:
        before = period_at(period.start - 1, per=per, zone=zone)
        assert (before.end, before.name == period.name) == (period.start, False)


@settings(deadline=None)
@given(at=MOMENTS, per=PERS, zone=ZONES)
def test_a_name_leads_back_to_its_period(at: int, per: Per, zone: str) -> None:
    period = period_at(at, per=per, zone=zone)
    assert period_named(period.name, per=per, zone=zone) == period


@settings(deadline=None)
@given(moments=st.lists(MOMENTS, min_size=2, max_size=6), per=PERS, zone=ZONES)
def test_what_was_asked_before_changes_no_answer(moments: list[int], per: Per, zone: str) -> None:
    forwards = [period_at(at, per=per, zone=zone) for at in moments]
    backwards = [period_at(at, per=per, zone=zone) for at in reversed(moments)]
    assert forwards == backwards[::-1]


@settings(deadline=None)
@given(
    name=st.text(max_size=30) | st.from_regex(r"\d{4}(-W?\d{2}){0,2}(T\d{2}(:\d{2})?(Z|[+-]\d{2}:\d{2}))?"), per=PERS
)
def test_no_text_is_more_than_a_name_or_an_error(name: str, per: Per) -> None:
    try:
        period = period_named(name, per=per, zone="Europe/Berlin")
    except PeriodError:
        return
    assert period.name == name


@settings(deadline=None)
@given(at=st.integers(0, ns("2060-01-01T00:00+00:00")), zone=ZONES)
def test_a_day_lies_in_its_week_its_month_and_its_year(at: int, zone: str) -> None:
    day = period_at(at, per="day", zone=zone)
    for per in ("week", "month", "year"):
        longer = period_at(at, per=per, zone=zone)
        assert longer.start <= day.start < day.end <= longer.end
