"""Guards: what sets them off, what they do, when it ends. Each goes off at one more than the plan allows."""

from __future__ import annotations

import msgspec
import pytest
from wallets import SECOND, Books, budget, moment

from engine.core import guards, restore
from engine.core.messages import AnyOutcome, Cooling, Exhausted, Held, Hold, Option, Revoked
from engine.core.plan import Guard, Plan

STORM = Guard("user", 30, 60, "cool", 300)
LEAK = Guard("key", 12, 86_400, "revoke", distinct="origin")
LONG = Guard("session", 100, 86_400, "alert")


def guarded(limit: str = "1000.00", **named: Guard) -> Books:
    plan = Plan({"jev": budget(limit)}, guards={name.replace("_", "-"): guard for name, guard in named.items()})
    return Books(plan=plan, twice=False).at("09:00")


def many(books: Books, count: int, *, first: int = 0, said: str = "0.01", **labels: str) -> list[str]:
    return [books.hold(f"h{first + n}", said, **labels) for n in range(count)]


def fired(outcome: AnyOutcome | None) -> list[str]:
    assert isinstance(outcome, Held | Exhausted | Cooling | Revoked)
    return outcome.fired


def test_a_retry_storm_cools_at_the_31st_hold_and_is_told_until_when() -> None:
    books = guarded(retry_storm=STORM)
    assert many(books, 30, user="alice") == ["held 0.01"] * 30
    assert books.hold("one-more", "0.01", user="alice") == "cooling: user=alice"
    until = moment("09:05")
    assert books.last == Cooling("one-more", "user", until, "alice", "retry-storm", ["retry-storm"])
    books.at("09:01").hold("later", "0.01", user="alice")
    assert books.last == Cooling("later", "user", until, "alice", "retry-storm")
    assert books.hold("other", "0.01", user="bob") == "held 0.01"


def test_cooling_ends_on_time_without_a_tick() -> None:
    books = guarded(storm=Guard("user", 1, 60, "cool", 300))
    many(books, 2, user="alice")
    assert books.wallet.next_due() == moment("09:05")
    assert books.at("09:05", tick=-1).hold("early", "0.01", user="alice") == "cooling: user=alice"
    assert books.at("09:05").hold("on-time", "0.01", user="alice") == "held 0.01"
    assert books.wallet.cooling == {}


def test_more_than_n_in_a_window_does_not_count_what_is_just_as_old_as_the_window() -> None:
    books = guarded(storm=Guard("user", 2, 60, "cool", 300))
    books.hold("a", "0.01", user="alice")
    books.at("09:00:30").hold("b", "0.01", user="alice")
    assert books.at("09:01").hold("c", "0.01", user="alice") == "held 0.01"
    assert books.at("09:01:30", tick=-1).hold("d", "0.01", user="alice") == "cooling: user=alice"


def test_a_repeat_is_no_other_hold() -> None:
    books = guarded(storm=Guard("user", 2, 60, "cool", 300))
    assert [books.hold("same", "0.01", user="alice") for _ in range(50)] == ["held 0.01"] + ["again: open"] * 49


def test_refused_for_money_counts_so_that_a_storm_on_a_spent_budget_cools_too() -> None:
    books = guarded("0.00", storm=Guard("user", 2, 60, "cool", 300))
    assert many(books, 3, user="alice") == ["exhausted: never, 0.00 fits"] * 2 + ["cooling: user=alice"]


def test_what_is_refused_before_the_budgets_does_not_count() -> None:
    books = guarded(storm=Guard("user", 1, 60, "cool", 300))
    books.freeze("user=alice")
    many(books, 9, user="alice")
    books.thaw("user=alice")
    books.hold("late", "0.01", by="08:59", user="alice")
    books.hold("wrong id", "0.01", user="alice")
    assert books.hold("first", "0.01", user="alice") == "held 0.01"
    assert books.hold("second", "0.01", user="alice") == "cooling: user=alice"


def test_a_cooling_empties_the_window_and_is_not_made_longer_by_asking() -> None:
    books = guarded(storm=Guard("user", 2, 600, "cool", 10))
    many(books, 9, user="alice")
    books.at("09:00:10")
    assert many(books, 3, first=20, user="alice") == ["held 0.01"] * 2 + ["cooling: user=alice"]


def test_while_it_cools_what_is_held_settles_renews_and_is_given_back() -> None:
    books = guarded(storm=Guard("user", 2, 60, "cool", 300))
    many(books, 3, user="alice")
    assert books.renew("h0", 1) == "held 0.01, renewal 1"
    assert books.renew("h0", 2, "0.02") == "cooling: user=alice"
    assert books.settle("h0", "0.01") == "settled 0.01"
    assert books.release("h1") == "settled 0.00, 0.01 back"


def test_a_key_from_13_places_in_a_day_is_revoked_and_its_holds_may_still_settle() -> None:
    books = guarded(leaked_key=LEAK)
    for n in range(24):
        assert books.hold(f"h{n}", "0.01", key="k1", origin=f"o{n % 12}") == "held 0.01"
    assert books.hold("one-more", "0.01", key="k1", origin="o12") == "revoked: key=k1"
    reason = "guard leaked-key: more than 12 values of origin within 86400 s"
    assert books.last == Revoked("one-more", "key", "k1", reason, ["leaked-key"])
    books.hold("after", "0.01", key="k1", origin="o1")
    assert books.last == Revoked("after", "key", "k1", reason)
    assert books.hold("other", "0.01", key="k2", origin="o12") == "held 0.01"
    assert books.settle("h0", "0.01") == "settled 0.01"
    assert books.release("h1") == "settled 0.00, 0.01 back"


def test_a_place_counts_for_a_day_after_it_was_last_seen() -> None:
    books = guarded(leak=Guard("key", 1, 86_400, "revoke", distinct="origin"))
    books.hold("a", "0.01", key="k1", origin="home")
    books.at("2026-12-01 08:00:00").hold("b", "0.01", key="k1", origin="home")
    assert books.at("2026-12-02 08:00:00", tick=-1).hold("c", "0.01", key="k1", origin="work") == "revoked: key=k1"
    books.restore("key", "k1")
    books.hold("d", "0.01", key="k1", origin="home")
    assert books.at("2026-12-03 08:00:00").hold("e", "0.01", key="k1", origin="work") == "held 0.01"


def test_a_long_session_is_held_and_said_so_at_the_101st_hold_and_the_202nd() -> None:
    books = guarded(long_session=LONG)
    said = []
    for n in range(250):
        assert books.hold(f"h{n}", "0.01", session="s1") == "held 0.01"
        said += [n + 1] if fired(books.last) == ["long-session"] else []
    assert said == [101, 202]


def test_an_alert_stands_on_a_refusal_too_and_beside_another() -> None:
    books = guarded("0.00", one=Guard("session", 1, 60, "alert"), two=Guard("user", 1, 60, "alert"))
    many(books, 2, session="s1", user="alice")
    assert isinstance(books.last, Exhausted)
    assert books.last.fired == ["one", "two"]


def test_to_revoke_comes_before_to_cool() -> None:
    books = guarded(storm=Guard("key", 1, 60, "cool", 300), leak=Guard("key", 1, 60, "revoke"))
    assert many(books, 2, key="k1") == ["held 0.01", "revoked: key=k1"]


def test_a_false_positive_is_restored_and_begins_anew() -> None:
    books = guarded(storm=Guard("user", 2, 60, "cool", 300), leak=Guard("key", 2, 60, "revoke"))
    many(books, 3, user="alice")
    assert books.restore("user", "alice") == "done"
    assert many(books, 3, first=10, user="alice") == ["held 0.01"] * 2 + ["cooling: user=alice"]
    many(books, 3, first=20, key="k1")
    assert books.restore("key", "k1") == "done"
    assert books.hold("again", "0.01", key="k1") == "held 0.01"
    assert books.restore("key", "k1") == "again"
    books.at("09:05").tick()
    assert books.restore("user", "alice") == "again"


def test_a_plan_without_guards_watches_nobody_and_keeps_what_was_done() -> None:
    books = guarded(storm=Guard("user", 1, 60, "cool", 300), leak=Guard("key", 1, 60, "revoke"))
    many(books, 2, user="alice")
    many(books, 2, first=10, key="k1")
    books.apply(msgspec.structs.replace(books.plan, guards=msgspec.UNSET))
    assert books.hold("a", "0.01", user="alice") == "cooling: user=alice"
    assert books.hold("b", "0.01", key="k1") == "revoked: key=k1"
    assert many(books, 50, first=100, user="bob") == ["held 0.01"] * 50


def test_a_guard_that_reads_as_before_goes_on_counting_under_another_plan_a_changed_one_begins() -> None:
    books = guarded(same=Guard("user", 2, 60, "cool", 300), other=Guard("key", 2, 60, "cool", 300))
    many(books, 2, user="alice", key="k1")
    now = {"other": Guard("key", 2, 90, "cool", 300), "same": Guard("user", 2, 60, "cool", 300)}
    books.apply(msgspec.structs.replace(books.plan, guards=now))
    assert books.hold("a", "0.01", key="k1") == "held 0.01"
    assert books.hold("b", "0.01", user="alice") == "cooling: user=alice"


def test_a_guard_goes_off_alike_on_a_replay_a_standby_and_from_a_snapshot() -> None:
    books = guarded(storm=Guard("user", 3, 60, "cool", 5), leak=LEAK, long=Guard("session", 2, 60, "alert"))
    for n in range(60):
        books.ts += SECOND
        books.hold(f"h{n}", "0.01", user="alice", key="k1", session=f"s{n % 2}", origin=f"o{n}")
    assert {"cooling", "revoked", "held"} == {entry.out[0].__struct_config__.tag for entry in books.entries[1:]} & {
        "cooling", "revoked", "held"
    }  # fmt: skip
    assert books.replayed().dump() == books.wallet.dump()
    assert restore.load(books.wallet.dump()).dump() == books.wallet.dump()


def test_windows_are_let_go_when_they_have_aged_out() -> None:
    books = guarded(storm=STORM, leak=LEAK)
    for n in range(200):
        books.hold(f"h{n}", "0.00", user=f"u{n}", key=f"k{n}", origin="o")
    books.at("09:01").tick()
    assert [len(watch.windows) for watch in books.wallet.watches.values()] == [0, 200]
    books.at("2026-12-01 09:00:00").tick()
    assert [len(watch.windows) for watch in books.wallet.watches.values()] == [0, 0]


def test_beyond_the_limit_of_values_a_new_one_is_not_counted_and_none_is_evicted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(guards, "GUARD_VALUES_MAX", 3)
    books = guarded(storm=Guard("user", 2, 60, "cool", 300))
    books.hold("victim", "0.01", user="alice")
    many(books, 100, first=100, user="mallory-0")
    for n in range(50):
        books.hold(f"flood{n}", "0.01", user=f"mallory-{n}")
    assert len(books.wallet.watches["storm"].windows) == 3
    assert many(books, 9, first=500, user="mallory-40") == ["held 0.01"] * 9
    assert many(books, 2, user="alice") == ["held 0.01", "cooling: user=alice"]
    books.at("09:02")
    assert many(books, 3, first=600, user="mallory-40") == ["held 0.01"] * 2 + ["cooling: user=mallory-40"]


def test_a_window_keeps_no_more_than_the_guard_needs() -> None:
    books = guarded(storm=Guard("user", 2, 1, "cool", 300))
    for n in range(40):
        books.ts += SECOND
        books.hold(f"h{n}", "0.01", user="alice")
    assert [len(window) for window in books.wallet.watches["storm"].windows.values()] in ([1], [2])


def test_all_asks_of_one_message_see_what_those_before_them_set_off() -> None:
    books = guarded(storm=Guard("user", 2, 60, "cool", 300))
    asks = [Hold(f"h{n}", [Option({"usd": 1})], books.ts, {"user": "alice"}) for n in range(4)]
    assert [word.split(":")[0].split()[0] for word in books.send(*asks)] == ["held", "held", "cooling", "cooling"]
