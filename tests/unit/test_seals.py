"""Day seals: the entry that crosses the wallet's day says what the day had come to, once, and nothing else changes."""

from __future__ import annotations

import msgspec
import pytest
from wallets import TODAY, Books, amount, budget, moment

from engine.core import limits, periods
from engine.core.messages import Entry, Hold, Option, Seal, SealedBudget, Settle
from engine.core.plan import Budget, Plan
from engine.core.restore import load
from engine.core.tell import fold, tell
from engine.core.wallet import Wallet

TOMORROW = "2026-12-01"
MIDNIGHT = f"{TOMORROW} 00:00"


def usd(written: str) -> int:
    return amount(written)[1]


def sealed(books: Books) -> list[Seal]:
    """By the newest message."""
    return books.entries[-1].sealed


def in_zone(zone: str, **budgets: Budget) -> Books:
    return Books(plan=Plan(budgets=budgets or {"jev": budget("1.00")}, zone=zone))


def rezone(books: Books, zone: str) -> None:
    assert books.apply(msgspec.structs.replace(books.plan, zone=zone)) == "planned"


# --- when -------------------------------------------------------------------------------------------------------------


def test_the_first_message_at_or_after_midnight_seals_the_day() -> None:
    books = Books()
    books.at("09:00").hold("a", "0.40")
    books.settle("a", "0.30")
    books.at(MIDNIGHT, tick=-1).tick()
    assert sealed(books) == []
    books.at(MIDNIGHT).tick()
    assert sealed(books) == [
        Seal(TODAY, moment(MIDNIGHT), 4, 0, {"jev": SealedBudget(TODAY, usd("1.00"), settled=usd("0.30"))})
    ]


def test_a_day_is_sealed_once() -> None:
    books = Books()
    books.at(MIDNIGHT).tick()
    books.at(MIDNIGHT).tick()
    assert [len(entry.sealed) for entry in books.entries] == [0, 1, 0]


def test_an_entry_that_crosses_no_day_has_not_a_word_of_it() -> None:
    books = Books()
    books.at("23:59:59").hold("a", "0.40")
    assert b"sealed" not in msgspec.json.encode(books.entries[-1])


def test_what_is_asked_in_the_crossing_message_is_not_in_the_seal() -> None:
    books = Books()
    assert books.at(MIDNIGHT).hold("a", "0.40") == "held 0.40"
    assert sealed(books) == [Seal(TODAY, moment(MIDNIGHT), 1)]


def test_a_message_that_cannot_be_read_seals_the_day_as_well() -> None:
    books = Books()
    assert [seal.day for seal in books.at(MIDNIGHT).send_raw(b"nonsense").sealed] == [TODAY]


def test_before_the_first_plan_there_is_no_day() -> None:
    wallet = Wallet()
    for seq, ts in enumerate((1, moment(MIDNIGHT), moment("2027-01-01 00:00")), start=1):
        assert tell(wallet, seq=seq, ts=ts, asks=[]).sealed == []
    assert wallet.next_due() is None


def test_the_end_of_the_day_is_due_by_time_alone() -> None:
    books = in_zone("Europe/Berlin")
    assert books.wallet.next_due() == moment("23:00")
    books.at("23:00").tick()
    assert books.wallet.next_due() == moment(f"{TOMORROW} 23:00")


def test_c19_a_hold_over_midnight_is_open_in_the_seal_and_its_settle_comes_on_top_of_the_sealed_day() -> None:
    books = Books()
    books.at("23:59:59").hold("a", "0.40")
    books.at(f"{TOMORROW} 00:00:03").settle("a", "0.25")
    [seal] = sealed(books)
    assert (seal.open_holds, seal.budgets["jev"]) == (1, SealedBudget(TODAY, usd("1.00"), held=usd("0.40")))
    assert (books.settled(day=TODAY), books.settled(day=TOMORROW)) == ("0.25", "0.00")


# --- lapses -----------------------------------------------------------------------------------------------------------


def test_what_was_due_before_the_end_of_the_day_lapses_before_its_seal() -> None:
    books = Books()
    books.at("23:59:50").hold("a", "0.40", ttl_s=9)
    assert books.at(f"{TOMORROW} 08:00").tick() == ["a lapsed at 0.40"]
    [seal] = sealed(books)
    assert (seal.open_holds, seal.budgets["jev"]) == (0, SealedBudget(TODAY, usd("1.00"), settled=usd("0.40")))


def test_what_is_due_at_the_very_end_lapses_after_the_seal() -> None:
    books = Books()
    books.at("23:59:50").hold("a", "0.40", ttl_s=10)
    assert books.at(MIDNIGHT).tick() == ["a lapsed at 0.40"]
    [seal] = sealed(books)
    assert (seal.open_holds, seal.budgets["jev"].held, seal.budgets["jev"].settled) == (1, usd("0.40"), 0)


def test_each_of_several_days_is_sealed_after_its_own_lapses() -> None:
    books = Books(month=budget("9.00", per="month"))
    books.at("23:00").hold("a", "0.40", ttl_s=1800)
    books.hold("b", "0.20", ttl_s=7200)
    books.at("2026-12-03 05:00").tick()
    assert [(seal.day, seal.open_holds, list(seal.budgets)) for seal in sealed(books)] == [
        (TODAY, 1, ["month"]), (TOMORROW, 0, []), ("2026-12-02", 0, []),
    ]  # fmt: skip
    assert sealed(books)[0].budgets["month"] == SealedBudget("2026-11", usd("9.00"), usd("0.40"), usd("0.20"))
    assert {seal.upto for seal in sealed(books)} == {3}


def test_lapses_beyond_the_cap_come_on_top_of_the_seal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LAPSES_MAX", 1)
    books = Books(twice=False)
    books.at("12:00").send(*(Hold(id, [Option({"usd": 10})], books.ts) for id in "abc"))
    books.at(MIDNIGHT).tick()
    [seal] = sealed(books)
    assert (seal.open_holds, seal.budgets["jev"].settled, seal.budgets["jev"].held) == (2, 10, 20)
    books.tick()
    assert sealed(books) == []


def test_a_memory_shorter_than_the_sleep_does_not_empty_the_seal() -> None:
    books = Books(remember_s=5)
    books.at("12:00").settle("a", "0.30")
    books.at("2026-12-04 00:00").tick()
    assert sealed(books)[0].budgets["jev"].settled == usd("0.30")
    assert books.settled(day=TODAY) == "0.00"


# --- what it says -----------------------------------------------------------------------------------------------------


def test_meters_of_single_users_are_not_in_a_seal() -> None:
    books = Books(jev=budget("1.00"), user=budget("0.50", each="user"))
    books.at("09:00").settle("a", "0.30", user="alice")
    books.at(MIDNIGHT).tick()
    assert list(sealed(books)[0].budgets) == ["jev"]


def test_a_budget_is_shown_in_the_period_that_contains_the_last_moment_of_the_day() -> None:
    books = Books(
        tokyo=budget("1.00", zone="Asia/Tokyo"), rush=budget("1.00", per="minute"), ever=budget("9.00", per="total")
    )
    books.at("12:00").settle("a", "0.30")
    books.at("23:59:59").settle("b", "0.10")
    books.at(MIDNIGHT).tick()
    [seal] = sealed(books)
    assert seal.budgets == {
        "tokyo": SealedBudget(TOMORROW, usd("1.00"), usd("0.10")),
        "rush": SealedBudget("2026-11-30T23:59Z", usd("1.00"), usd("0.10")),
        "ever": SealedBudget("total", usd("9.00"), usd("0.40")),
    }


def test_others_on_the_account_and_a_lowered_limit_are_in_the_seal() -> None:
    books = Books(jev=budget("1.00", source="cloudflare"))
    books.at("09:00").settle("a", "0.30")
    books.observe("0.50")
    books.change(jev=budget("0.40", source="cloudflare"))
    books.at(MIDNIGHT).tick()
    [seal] = sealed(books)
    assert seal.budgets["jev"] == SealedBudget(TODAY, usd("0.40"), usd("0.30"), extra=usd("0.20"))


# --- zones ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "day", "hours"), [("2026-10-24 22:00", "2026-10-25", 25), ("2027-03-27 23:00", "2027-03-28", 23)]
)
def test_a_day_of_23_or_25_hours_is_sealed_at_its_own_end(start: str, day: str, hours: int) -> None:
    books = Books(plan=Plan(budgets={"jev": budget("1.00")}, zone="Europe/Berlin"), start=start)
    end = moment(start) + hours * 3600 * 10**9
    books.ts = end - 1
    books.tick()
    assert sealed(books) == []
    books.ts = end
    books.tick()
    assert [(seal.day, seal.end) for seal in sealed(books)] == [(day, end)]


def test_a_zone_further_west_makes_the_day_in_progress_longer() -> None:
    books = in_zone("Asia/Tokyo")
    books.at("16:00").tick()  # 1 December, 01:00 in Tokyo
    rezone(books, "UTC")
    books.at(f"{TOMORROW} 23:59:59").tick()
    assert sealed(books) == []
    books.at("2026-12-02 00:00").tick()
    assert [(seal.day, seal.end) for seal in sealed(books)] == [(TOMORROW, moment("2026-12-02 00:00"))]


def test_a_zone_further_east_where_the_day_is_over_ends_it_with_the_plan() -> None:
    books = in_zone("UTC")
    books.at("16:00").hold("a", "0.40")
    rezone(books, "Asia/Tokyo")
    assert books.wallet.next_due() == moment("16:00")
    books.tick()
    assert [(seal.day, seal.end, seal.upto) for seal in sealed(books)] == [(TODAY, moment("16:00"), 3)]
    books.at(f"{TOMORROW} 15:00").tick()
    assert [seal.day for seal in sealed(books)] == [TOMORROW]


def test_a_plan_that_keeps_the_zone_moves_no_day() -> None:
    books = Books()
    books.at("12:00").change(jev=budget("2.00", zone="Asia/Tokyo"))
    assert (books.wallet.day, books.wallet.day_ends) == (TODAY, moment(MIDNIGHT))


def test_no_change_of_zone_seals_a_day_twice_or_leaves_one_out() -> None:
    books = in_zone("UTC")
    days = []
    for hour in range(24 * 6):
        books.ts = moment("00:00") + hour * 3600 * 10**9
        books.tick()
        days += [seal.day for seal in sealed(books)]
        rezone(books, ("Asia/Tokyo", "America/New_York", "UTC", "Europe/Berlin")[hour % 4])
    assert days == sorted(set(days))
    assert days[:5] == [TODAY, TOMORROW, "2026-12-02", "2026-12-03", "2026-12-04"]


def test_a_date_that_never_was_in_the_new_zone_still_ends() -> None:
    assert periods.end_of_day("2011-12-30", "Pacific/Apia") == moment("2011-12-30 10:00")
    assert periods.end_of_day("2011-12-29", "Pacific/Apia") == moment("2011-12-30 10:00")


# --- bounds -----------------------------------------------------------------------------------------------------------


def test_after_a_long_sleep_the_first_hundred_days_are_sealed_and_then_today() -> None:
    books = Books()
    books.at("12:00").settle("a", "0.30")
    books.at("2027-11-30 12:00").tick()
    assert len(sealed(books)) == limits.SEALS_MAX
    assert (sealed(books)[0].day, sealed(books)[-1].day) == (TODAY, "2027-03-09")
    books.at("2027-12-01 00:00").tick()
    assert [seal.day for seal in sealed(books)] == ["2027-11-30"]


def test_the_largest_entry_fits_a_message() -> None:
    """The most seals, each of the most budgets with the longest words, beside the most outcomes and lapses."""
    names = [f"{number:02}".ljust(limits.NAME_CHARS_MAX, "x") for number in range(limits.BUDGETS_MAX)]
    most = SealedBudget("2026-11-30T23:59+05:30", *[limits.AMOUNT_MAX] * 4)
    seal = Seal(TODAY, limits.AMOUNT_MAX, limits.AMOUNT_MAX, limits.AMOUNT_MAX, dict.fromkeys(names, most))
    seals = len(msgspec.json.encode([seal] * limits.SEALS_MAX))
    assert seals + limits.MESSAGE_ASKS_MAX * 4096 + limits.LAPSES_MAX * 512 < 8_000_000


# --- the state --------------------------------------------------------------------------------------------------------


def test_the_day_is_dumped_and_comes_back() -> None:
    books = in_zone("UTC")
    books.at("16:00").tick()
    rezone(books, "Asia/Tokyo")
    restored = load(books.wallet.dump())
    assert (restored.day, restored.day_ends) == (TODAY, moment("16:00"))
    told = tell(restored, seq=9, ts=moment("16:00"), asks=[])
    assert [seal.day for seal in told.sealed] == [TODAY]


def test_folding_an_entry_moves_the_day_on_though_it_has_no_seal() -> None:
    """As told by a build that knew of none."""
    books = Books()
    stored = Entry(2, moment(MIDNIGHT))
    other = load(books.wallet.dump())
    fold(other, seq=2, ts=moment(MIDNIGHT), asks=[], entry=stored)
    assert (other.day, other.day_ends) == (TOMORROW, moment("2026-12-02 00:00"))


def test_a_settle_of_a_sealed_day_is_not_refused() -> None:
    books = Books()
    books.at("23:00").hold("a", "0.40", ttl_s=86_400)
    books.at("2026-12-01 12:00").tick()
    assert books.send(Settle("a", {"usd": usd("0.90")})) == ["settled 0.90 (overrun)"]
