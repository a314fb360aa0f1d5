"""Each rule at its threshold and not one before, once for each budget, period and threshold, in words that say all."""

from __future__ import annotations

import pytest
from alerting import Alerted
from wallets import TODAY, budget

from engine.core.messages import Hold, KnownUse, Loss, Option, Settle
from engine.core.plan import Guard
from projector.alerts.rules import Burst, Rules, Runaway, each_at_first, is_runaway, steps, twice_median

ONLY_PERCENT = Rules(off=frozenset({"refused"}))

# --- percentages ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("percent", "cents"), [(50, 50), (75, 75), (90, 90), (100, 100)])
def test_a_percentage_is_raised_when_what_is_used_reaches_it_and_not_one_before(percent: int, cents: int) -> None:
    books = Alerted(rules=Rules(percents=(percent,)))
    books.hold("a", "0.01")
    books.settle("a", f"0.{cents - 2:02}")
    books.hold("b", f"{0.02 - 0.000000001:.9f}")
    assert books.news() == []
    books.hold("c", "0.000000001")
    assert books.news() == [f"percent:jev:{TODAY}:{percent}"]


def test_j1_an_alert_is_raised_once_in_a_period_whatever_happens_on_either_side_of_its_threshold() -> None:
    books = Alerted()
    for number in range(5):
        books.hold(f"h{number}", "0.60")
        books.release(f"h{number}")
    assert books.news() == [f"percent:jev:{TODAY}:50"]
    books.at("2026-12-01 09:00").hold("next", "0.60")
    assert books.news() == ["percent:jev:2026-12-01:50"]


def test_j2_an_alert_is_of_a_budget_however_many_keys_spend_from_it() -> None:
    books = Alerted(team=budget("1.00"), own=budget("0.30", each="key"))
    for number in range(4):
        books.hold(f"h{number}", "0.20", key=f"k{number}")
    assert books.news() == [f"percent:team:{TODAY}:50", f"percent:team:{TODAY}:75"]


def test_a_jump_over_several_thresholds_raises_each() -> None:
    books = Alerted()
    books.hold("a", "0.95")
    assert books.news() == [f"percent:jev:{TODAY}:{percent}" for percent in (50, 75, 90)]


def test_what_the_same_message_gives_back_was_used_all_the_same() -> None:
    books = Alerted()
    hold = Hold("a", [Option({"usd": 800_000_000})], by=books.ts + 10**9)
    books.send(hold, Settle("a", release=True))
    assert books.news() == [f"percent:jev:{TODAY}:{percent}" for percent in (50, 75)]


def test_others_on_the_account_an_overrun_an_adjust_and_a_renewal_count_too() -> None:
    books = Alerted(jev=budget("1.00", source="cloudflare"))
    books.observe("0.50")
    assert books.news() == [f"percent:jev:{TODAY}:50"]
    books.hold("a", "0.10")
    books.renew("a", 1, "0.25")
    assert books.news() == [f"percent:jev:{TODAY}:75"]
    books.settle("a", "0.40")
    assert books.news() == [f"percent:jev:{TODAY}:90"]
    books.adjust("0.10")
    assert books.news() == [f"percent:jev:{TODAY}:100"]


def test_a_lower_limit_raises_what_it_makes_true_and_a_higher_one_takes_nothing_back() -> None:
    books = Alerted()
    books.hold("a", "0.40")
    assert books.news() == []
    books.change(jev=budget("0.50"))
    assert books.news() == [f"percent:jev:{TODAY}:50", f"percent:jev:{TODAY}:75"]
    books.change(jev=budget("1.00"))
    books.hold("b", "0.20")
    assert books.news() == []


def test_what_is_charged_to_a_period_that_is_over_raises_nothing() -> None:
    books = Alerted()
    books.at("23:59").hold("a", "0.40", ttl_s=600)
    books.at("2026-12-01 00:01").settle("a", "0.95")
    assert books.news() == []


def test_a_limit_of_nothing_has_no_percentages() -> None:
    books = Alerted(jev=budget("0.00"))
    books.settle("stray", "0.10")
    books.hold("a", "0.10")
    assert books.news() == []


# --- words ------------------------------------------------------------------------------------------------------------


def test_j5_a_percentage_says_that_it_is_used_of_how_much_and_how_long_the_rest_lasts() -> None:
    books = Alerted(jev=budget("5.00"), rules=Rules(percents=(80,)))
    for minute in range(40):
        books.at(f"09:{minute:02}").hold(f"h{minute}", "0.10")
        books.settle(f"h{minute}", "0.10")
    (text,) = books.texts()
    assert text == f"jev {TODAY}: 80 % used: $4.00 of $5.00, about 10 min left at this pace"


def test_the_pace_is_that_of_the_last_hour() -> None:
    books = Alerted(jev=budget("5.00"), rules=Rules(percents=(80,)))
    books.at("01:00").settle("early", "3.50")
    books.at("09:00").settle("late", "0.25")
    books.at("09:45").settle("later", "0.25")
    assert books.texts() == [f"jev {TODAY}: 80 % used: $4.00 of $5.00, about 1 h 30 min left at this pace"]


@pytest.mark.parametrize(
    ("limit", "spent", "said"),
    [
        ("1.00", "1.00", "100 % used: $1.00 of $1.00, nothing left"),
        ("1.00", "0.999", "99 % used: $0.999 of $1.00, less than a minute left at this pace"),
    ],
)  # fmt: skip
def test_amounts_are_exact_and_in_their_unit(limit: str, spent: str, said: str) -> None:
    books = Alerted(jev=budget(limit))
    books.at("09:00").settle("stray", spent)
    assert books.texts()[-1] == f"jev {TODAY}: {said}"


def test_what_lasts_until_the_reset_is_enough() -> None:
    books = Alerted(jev=budget("10000 neurons"), rules=Rules(percents=(80,)))
    books.at("23:00").settle("a", "7000 neurons")
    books.at("23:55").settle("b", "1000 neurons")
    assert books.texts() == [f"jev {TODAY}: 80 % used: 8,000 of 10,000 neurons, enough until it resets at this pace"]


def test_held_money_has_no_pace() -> None:
    books = Alerted()
    books.hold("a", "0.60")
    assert books.texts() == [f"jev {TODAY}: 60 % used: $0.60 of $1.00"]


# --- refused ----------------------------------------------------------------------------------------------------------


def test_j3_that_calls_are_refused_is_said_although_a_hundred_percent_is_never_reached() -> None:
    books = Alerted(rules=Rules(percents=(100,)))
    books.settle("a", "0.97")
    assert books.hold("b", "0.05") == "exhausted: spent, 0.03 fits"
    books.hold("c", "0.05")
    (alert,) = books.alerts()
    assert (alert.id, alert.text) == (
        f"alert:refused:jev:{TODAY}:1",
        f"jev {TODAY}: a call did not fit any more and was refused, 97 % used: $0.97 of $1.00",
    )
    assert alert.figures == {"used": "0.97", "limit": "1", "remaining": "0.03", "fits": "0.03"}


def test_a_call_that_others_are_in_the_way_of_is_no_alarm() -> None:
    books = Alerted(rules=Rules(percents=()))
    books.hold("a", "0.97")
    books.hold("b", "0.05")
    assert books.news() == []


# --- bursts -----------------------------------------------------------------------------------------------------------

BURST = Rules(percents=(), bursts=(Burst(budget="jev", amount="0.50", within_s=300),))


def test_a_burst_is_more_than_so_much_within_so_long_and_not_so_much() -> None:
    books = Alerted(rules=BURST, jev=budget("100.00"))
    books.at("09:00").settle("a", "0.30")
    books.at("09:04").settle("b", "0.20")
    assert books.news() == []
    books.settle("c", "0.000000001")
    assert books.texts() == ["jev: $0.500000001 spent within 5 min, more than $0.50"]


def test_what_was_spent_before_the_window_counts_no_more() -> None:
    books = Alerted(rules=BURST, jev=budget("100.00"))
    books.at("09:00").settle("a", "0.30")
    books.at("09:05").settle("b", "0.30")
    assert books.news() == []
    books.at("09:09:59").settle("c", "0.30")
    assert books.news() == [f"burst:jev:{TODAY}T09:0.50/300s"]


def test_a_burst_is_raised_once_an_hour() -> None:
    books = Alerted(rules=BURST, jev=budget("100.00"))
    for minute in ("09:00", "09:01", "09:30", "10:00"):
        books.at(minute).settle(minute, "0.60")
    assert books.news() == [f"burst:jev:{TODAY}T{hour}:0.50/300s" for hour in ("09", "10")]


# --- runaways ---------------------------------------------------------------------------------------------------------

RUNAWAY = Rules(percents=(), off=frozenset({"refused"}), runaways=(Runaway(budget="jev"),))


def usual(days: int, cost: str = "0.10") -> Alerted:
    """A wallet in which the hour from 14:00 has cost the same on each of the last days."""
    books = Alerted(rules=RUNAWAY, jev=budget("1.00"))
    for day in range(days):
        books.at(f"2026-12-{day + 1:02} 14:10").settle(f"d{day}", cost)
    return books.at(f"2026-12-{days + 1:02} 14:20")


def test_a_runaway_is_more_than_four_times_the_usual_of_its_hour() -> None:
    books = usual(4)
    books.settle("a", "0.40")
    assert books.news() == []
    books.settle("b", "0.000000001")
    (alert,) = books.alerts()
    assert alert.id == "alert:runaway:jev:2026-12-05T14:4"
    assert alert.text == (
        "jev 2026-12-05T14: $0.400000001 spent in this hour, more than 4 times what the same hour usually costs "
        "($0.10); new calls on it are frozen until an operator lifts it"
    )
    assert alert.freezes == "this hour costs more than 4 times what the same hour usually does"  # strangers read it
    books.settle("c", "0.50")
    assert books.news() == []


def test_before_four_days_of_history_nobody_can_say_what_is_usual() -> None:
    books = usual(3)
    books.settle("a", "0.90")
    assert books.news() == []


def test_less_than_a_tenth_of_the_limit_is_no_runaway() -> None:
    books = usual(4, "0.01")
    books.settle("a", "0.10")
    assert books.news() == []
    books.settle("b", "0.000000001")
    assert books.news() == ["runaway:jev:2026-12-05T14:4"]


def test_another_hour_of_the_day_has_its_own_usual() -> None:
    books = usual(7, "0.20")
    books.at("2026-12-08 15:20").settle("a", "0.11")  # nothing was ever spent at this hour
    assert books.news() == ["runaway:jev:2026-12-08T15:4"]
    books.at("2026-12-09 14:20").settle("b", "0.11")
    assert books.news() == []


def test_an_hour_with_nothing_spent_counts_as_history_and_the_half_of_a_median_is_not_lost() -> None:
    assert twice_median([0, 1, 2, 9]) == 3
    assert is_runaway(7, [0, 1, 2, 9], 10)  # more than 4 * 1.5
    assert not is_runaway(6, [0, 1, 2, 9], 10)
    assert not is_runaway(7, [0, 1, 2], 10)


def test_without_freeze_it_only_says_so() -> None:
    rules = Rules(percents=(), runaways=(Runaway(budget="jev", freeze=False),))
    books = Alerted(rules=rules, jev=budget("1.00"))
    for day in range(1, 6):
        books.at(f"2026-12-{day:02} 14:10").settle(f"d{day}", "0.10" if day < 5 else "0.60")
    (alert,) = books.alerts()
    assert (alert.freezes, "frozen" in alert.text) == ("", False)


# --- what is counted --------------------------------------------------------------------------------------------------


def test_powers_of_ten_of_a_count_are_alerts() -> None:
    assert (steps(0, 1), steps(1, 9), steps(9, 10), steps(0, 250)) == ([1], [], [10], [1, 10, 100])
    assert each_at_first(0, 2) == [1, 2]
    assert each_at_first(100, 101) == []
    assert each_at_first(999, 1_000) == [1_000]


def test_lapses_are_alerts_at_the_first_and_the_tenth_of_a_day() -> None:
    books = Alerted(jev=budget("100.00"))
    for number in range(10):
        books.at(f"09:{number:02}").hold(f"h{number}", "0.01", ttl_s=10)
        books.at(f"09:{number:02}:30").tick()
    assert books.news() == [f"lapse::{TODAY}:1", f"lapse::{TODAY}:10"]
    books.at("2026-12-01 09:00").hold("next", "0.01", ttl_s=10)
    books.at("2026-12-01 09:01").tick()
    assert books.news() == ["lapse::2026-12-01:1"]


def test_a_settlement_at_odds_with_what_stands_is_an_alert_and_names_its_hold() -> None:
    books = Alerted()
    books.hold("a", "0.10")
    books.settle("a", "0.05")
    assert books.settle("a", "0.06").startswith("conflict")
    (alert,) = books.alerts()
    assert alert.id == f"alert:conflict::{TODAY}:1"
    assert "the last one is of hold a" in alert.text


def test_every_revocation_by_a_guard_is_an_alert_and_of_coolings_the_powers_of_ten() -> None:
    guards = {"storm": Guard("user", 1, 60, "cool", 1), "leak": Guard("key", 1, 60, "revoke")}
    books = Alerted(guards=guards, jev=budget("100.00"))
    for number in range(3):
        books.at(f"09:{number:02}")
        for again in range(2):
            books.hold(f"u{number}-{again}", "0.01", user=f"u{number}")
            books.hold(f"k{number}-{again}", "0.01", key=f"k{number}")
    day = f"guard:leak:{TODAY}"
    assert books.news() == [f"guard:storm:{TODAY}:1", f"{day}:1", f"{day}:2", f"{day}:3"]
    assert books.fold.raised[f"alert:{day}:3"].text == "guard leak has revoked key k2 (3 times today)"


def test_a_guard_that_only_says_so_is_heard_on_grants_and_refusals() -> None:
    books = Alerted(guards={"long": Guard("session", 1, 60, "alert")}, jev=budget("0.05"))
    books.hold("a", "0.03", session="s")
    books.hold("b", "0.03", session="s")
    assert f"guard:long:{TODAY}:1" in books.news()


def test_an_accepted_loss_is_an_alert() -> None:
    books = Alerted(jev=budget("1.00", per="total"))
    books.send(Loss("loss:1", 3, 9, "a disk broke", used=[KnownUse("jev", "total", 600_000_000)]))
    assert books.news() == [f"loss::{TODAY}:loss:1", "percent:jev:total:50"]


def test_a_rule_that_is_off_raises_nothing() -> None:
    books = Alerted(rules=Rules(off=frozenset({"percent", "conflict", "refused"})))
    books.hold("a", "0.90")
    books.settle("a", "0.80")
    books.settle("a", "0.70")
    books.hold("b", "0.80")
    assert books.news() == []


def test_names_of_others_are_short_in_a_sentence() -> None:
    books = Alerted(guards={"leak": Guard("key", 1, 60, "revoke")}, jev=budget("1.00"))
    for id in "ab":
        books.hold(id, "0.01", key="x" * 100)
    assert books.texts() == [f"guard leak has revoked key {'x' * 64}..."]
