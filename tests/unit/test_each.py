"""Budgets with a meter for each user, session or run, several at once, and when such meters are let go."""

from __future__ import annotations

from wallets import Books, budget

from engine.core.messages import Exhausted, Held, Hold, Option, Settle

CENT = 10_000_000


def test_a_session_and_a_run_have_caps_of_their_own_for_as_long_as_they_last() -> None:
    books = Books(
        session=budget("1.00", each="session", per="total"), run=budget("0.50", each="run", per="total")
    ).at("09:00")  # fmt: skip
    assert books.hold("a", "0.50", session="s1", run="r1") == "held 0.50"
    assert books.hold("b", "0.10", session="s1", run="r1") == "exhausted: busy, 0.00 fits"
    assert books.hold("c", "0.50", session="s1", run="r2") == "held 0.50"
    assert books.hold("d", "0.01", session="s1", run="r3") == "exhausted: busy, 0.00 fits"
    assert books.hold("e", "0.50", session="s2", run="r3") == "held 0.50"
    for hold in "ace":
        books.settle(hold, "0.50")
    books.at("2027-06-01 09:00:00")
    assert books.hold("f", "0.01", session="s1") == "exhausted: spent, 0.00 fits"


def test_all_budgets_of_one_call_hold_or_none_does() -> None:
    books = Books(
        site=budget("1.00"), user=budget("0.60", each="user", zone="Asia/Tokyo"),
        week=budget("0.90", each="user", per="week"), month=budget("2.00", each="cohort", per="month"),
    ).at("09:00")  # fmt: skip
    assert books.hold("a", "0.60", user="alice", cohort="free") == "held 0.60"
    assert books.hold("b", "0.50", user="bob", cohort="free") == "exhausted: busy, 0.40 fits"
    assert books.meters("user", each="bob").held == "0.00"
    assert books.meters("month", each="free").held == "0.60"
    books.settle("a", "0.60")
    books.at("15:00")  # midnight in Tokyo, where another day begins for alice, in the same week
    assert books.hold("c", "0.40", user="alice", cohort="free") == "exhausted: spent, 0.30 fits"
    assert isinstance(books.last, Exhausted)
    assert books.last.budget == "week"
    assert books.hold("d", "0.30", user="alice", cohort="free") == "held 0.30"
    assert books.meters("user", each="alice").held == "0.30"


def test_a_limit_by_cohort_counts_for_each_user_alone_and_a_name_wins_over_it() -> None:
    limits = {"cohort=premium": "1.20", "cohort=staff": "2.00", "user=alice": "0.10"}
    books = Books(user=budget("0.80", each="user", limit_for=limits)).at("09:00")
    for user, cohort, most in (
        ("bob", "free", "0.80"), ("carol", "premium", "1.20"), ("dan", "premium", "1.20"), ("alice", "staff", "0.10"),
    ):  # fmt: skip
        assert books.hold(f"{user}-1", most, user=user, cohort=cohort) == f"held {most}"
        assert books.hold(f"{user}-2", "0.01", user=user, cohort=cohort) == "exhausted: busy, 0.00 fits"


def test_who_has_no_such_label_is_not_judged_by_it_unless_it_is_required() -> None:
    books = Books(site=budget("1.00"), user=budget("0.10", each="user")).at("09:00")
    assert books.hold("a", "0.50") == "held 0.50"
    books.change(user=budget("0.10", each="user", required=True))
    assert books.hold("b", "0.05") == "invalid: labels.user"
    assert books.hold("c", "0.05", user="alice") == "held 0.05"


def test_meters_of_users_are_let_go_when_their_day_is_past_the_memory() -> None:
    books = Books(user=budget("1.00", each="user"), remember_s=3_600, twice=False).at("09:00")
    for n in range(200):
        books.hold(f"h{n}", "0.10", user=f"u{n}")
        books.settle(f"h{n}", "0.10")
    assert len(books.wallet.metering) == 200
    books.at("2026-12-01 00:59:59").tick()
    assert len(books.wallet.metering) == 200
    books.at("2026-12-01 01:00:00").tick()
    assert books.wallet.metering == {}


def test_a_cap_in_total_is_not_given_back_to_who_waits() -> None:
    books = Books(session=budget("1.00", each="session", per="total"), remember_s=60).at("09:00")
    books.hold("a", "1.00", session="s1")
    books.settle("a", "1.00")
    books.at("2036-01-01 00:00:00")
    assert books.hold("b", "0.01", session="s1") == "exhausted: spent, 0.00 fits"


def test_after_a_freeze_no_call_is_held_and_every_one_in_flight_settles() -> None:
    books = Books(jev=budget("100.00"), twice=False).at("09:00")
    calls = [Hold(f"c{n}", [Option({"usd": CENT})], books.ts, {"user": f"u{n % 50}"}) for n in range(1_000)]
    assert set(books.send(*calls)) == {"held 0.01"}
    books.freeze("all")
    more = [Hold(f"d{n}", [Option({"usd": CENT})], books.ts, {}) for n in range(20)]
    told = books.send(*[Settle(call.id, {"usd": CENT}) for call in calls], *more)
    assert told == ["settled 0.01"] * 1_000 + ["frozen: all"] * 20
    assert books.settled() == "10.00"
    assert not [out for entry in books.entries[3:] for out in entry.out if isinstance(out, Held)]
