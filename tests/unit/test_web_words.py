"""What the edge writes for people, and how it reads times and settings."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from fake_purse import NOON, NS

from engine.core.periods import TOTAL, period_at
from engine.core.plan import Budget, Per
from engine.errors import BadAsk, Misconfigured
from web import wording
from web.ask_settings import STAND_IN
from web.moments import format_bound, format_moment, parse_moment
from web.settings import Settings, from_environment, read_admin_key

MINUTE, HOUR, DAY = 60 * NS, 3600 * NS, 86_400 * NS


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("per", "zone", "each", "sentence"), [
    ("minute", "UTC", None, "This minute's shared budget is used up. It resets at 14:06 UTC (in 1 min)."),
    ("hour", "UTC", None, "This hour's shared budget is used up. It resets at 15:00 UTC (in 55 min)."),
    ("day", "UTC", None, "Today's shared budget is used up. It resets at 00:00 UTC (in 9 h 55 min)."),
    ("day", "Asia/Tokyo", None, "Today's shared budget is used up. It resets at 00:00 Asia/Tokyo (in 55 min)."),
    ("day", "UTC", "user", "Today's budget is used up. It resets at 00:00 UTC (in 9 h 55 min)."),
    ("week", "UTC", None, "This week's shared budget is used up. It resets on 7 December at 00:00 UTC (in 6 d 9 h)."),
    ("month", "UTC", None, "This month's shared budget is used up. It resets at 00:00 UTC (in 9 h 55 min)."),
    ("year", "UTC", None, "This year's shared budget is used up. It resets on 1 January at 00:00 UTC (in 31 d 9 h)."),
    ("total", "UTC", None, "The shared budget is used up. It does not reset."),
])  # fmt: skip
def test_used_up_names_the_period_and_the_next_boundary_by_its_own_clock(
    per: Per, zone: str, each: str | None, sentence: str
) -> None:
    resets_at = period_at(NOON, per=per, zone=zone).end
    budget = Budget("usd", 1, per=per, zone=zone, each=each)
    assert wording.used_up(budget, fits="", at=NOON, resets_at=resets_at) == sentence


def test_what_would_still_fit_is_said() -> None:
    said = wording.used_up(Budget("usd", 1), fits="0.3 usd", at=NOON, resets_at=NOON + HOUR)
    assert said.startswith("Today's shared budget has 0.3 usd left, not enough for this call.")


def test_a_budget_that_left_the_plan_can_still_refuse_a_renewal() -> None:
    assert wording.used_up(None, fits="", at=NOON, resets_at=NOON + HOUR) == (
        "The budget is used up. It resets at 15:05 UTC (in 1 h)."
    )


@pytest.mark.parametrize(("ns", "said"), [
    (-1, "in 0 s"), (1, "in 1 s"), (59 * NS, "in 59 s"), (MINUTE, "in 1 min"), (MINUTE + 1, "in 2 min"),
    (59 * MINUTE + 1, "in 1 h"), (HOUR + MINUTE, "in 1 h 1 min"), (DAY, "in 1 d"), (DAY + HOUR, "in 1 d 1 h"),
])  # fmt: skip
def test_how_long_is_rounded_up_so_that_nobody_comes_too_early(ns: int, said: str) -> None:
    assert wording.within(ns) == said


@pytest.mark.parametrize(("seconds", "said"), [(1, "about 1 second."), (5, "about 5 seconds.")])
def test_busy_says_how_long(seconds: int, said: str) -> None:
    assert wording.busy(seconds).endswith(said)


# --- times ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "at"), [
    ("1970-01-01T00:00:00Z", 0),
    ("2026-11-30T14:05:00Z", NOON),
    ("2026-11-30t14:05:00z", NOON),
    ("2026-11-30 14:05:00+00:00", NOON),
    ("2026-11-30T23:05:00+09:00", NOON),
    ("2026-11-30T10:35:00-03:30", NOON),
    ("2026-11-30T14:05:00.5Z", NOON + 500_000_000),
    ("2026-11-30T14:05:00.000000001Z", NOON + 1),
    ("2026-11-30T14:05:00.123456789Z", NOON + 123_456_789),
])  # fmt: skip
def test_times_are_read_to_the_nanosecond_in_any_offset(text: str, at: int) -> None:
    assert parse_moment(text, field="held_at") == at


@pytest.mark.parametrize("text", [
    "", "now", "2026-11-30", "2026-11-30T14:05:00", "2026-11-30T14:05Z", "2026-11-30T24:05:00Z", "2026-13-01T00:00:00Z",
    "2026-11-30T14:05:60Z", "1969-12-31T23:59:59Z", "2263-01-01T00:00:00Z", "2026-11-30T14:05:00.1234567890Z",
    "2026-11-30T14:05:00+25:00", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00",
    "\u0662\u0660\u0662\u0666-11-30T14:05:00Z", " 2026-11-30T14:05:00Z", "2026-11-30T14:05:00Z\n",
])  # fmt: skip
def test_what_is_no_time_is_refused_by_its_field(text: str) -> None:
    with pytest.raises(BadAsk) as refused:
        parse_moment(text, field="as_of")
    assert refused.value.field == "as_of"


def test_times_are_written_in_utc_and_cut_to_the_millisecond() -> None:
    assert format_moment(NOON + 999_999_999) == "2026-11-30T14:05:00.999Z"
    assert format_moment(0) == "1970-01-01T00:00:00.000Z"
    assert datetime.fromisoformat(format_moment(NOON)) == datetime(2026, 11, 30, 14, 5, tzinfo=UTC)


def test_a_period_that_never_ends_has_no_end() -> None:
    assert format_bound(TOTAL.end) is None
    assert format_bound(NOON) == "2026-11-30T14:05:00.000Z"


# --- settings ---------------------------------------------------------------------------------------------------------


def test_settings_have_plain_defaults() -> None:
    plain = Settings(ask=STAND_IN)
    assert from_environment({}) == plain
    assert from_environment({"PURSE_OPEN": "", "PURSE_PORT": "", "OTHER": "x"}) == plain


def test_settings_come_from_the_environment(tmp_path: Path) -> None:
    (tmp_path / "admin.key").write_text("purse_key\n")
    environment = {
        "PURSE_NATS_URL": "nats://u:p@h:1", "PURSE_WALLET": "w", "PURSE_DATA": str(tmp_path), "PURSE_HOST": "::1",
        "PURSE_PORT": "0", "PURSE_OPEN": "1", "PURSE_REFUSAL_STATUS": "429",
    }  # fmt: skip
    settings = from_environment(environment)
    assert settings == Settings(
        nats_url="nats://u:p@h:1", wallet="w", data=tmp_path, host="::1", port=0, open=True, refusal_status=429,
        admin_key="purse_key", ask=STAND_IN,
    )  # fmt: skip
    assert "purse_key" not in repr(settings)
    assert "u:p" not in repr(settings)


def test_prices_come_from_the_config_and_another_book_from_the_environment(tmp_path: Path) -> None:
    config = tmp_path / "purse.toml"
    config.write_text('[prices."mine"]\nusd_per_call = "0.10"\n')
    settings = from_environment({"PURSE_CONFIG": str(config), "PURSE_PRICE_BOOK": "book.json.gz"})
    assert settings.prices == {"mine": {"usd_per_call": "0.10"}}
    assert settings.price_book == Path("book.json.gz")


@pytest.mark.parametrize("written", ["", " \n"])
def test_an_empty_key_file_is_no_key(tmp_path: Path, written: str) -> None:
    (tmp_path / "admin.key").write_text(written)
    assert read_admin_key(tmp_path) == ""
    assert read_admin_key(tmp_path / "nowhere") == ""
    assert read_admin_key(None) == ""


def test_a_key_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "admin.key").write_bytes(b"\xff\xfe")
    with pytest.raises(Misconfigured, match=r"admin\.key"):
        read_admin_key(tmp_path)


@pytest.mark.parametrize(("name", "value"), [
    ("PURSE_PORT", "-1"), ("PURSE_PORT", "65536"), ("PURSE_PORT", "8o8o"), ("PURSE_PORT", "9" * 5000),
    ("PURSE_REFUSAL_STATUS", "200"),
])  # fmt: skip
def test_a_wrong_setting_is_named(name: str, value: str) -> None:
    with pytest.raises(Misconfigured, match=name):
        from_environment({name: value})
