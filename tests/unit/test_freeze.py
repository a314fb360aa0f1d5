"""Freeze and thaw, revoke and restore: they stop new holds, never the settlement of running calls."""

import pytest
from wallets import Books, budget, moment

from engine.core.messages import Freeze, Frozen, Hold, Option, Restore, Revoke, Revoked, Thaw
from engine.core.plan import Plan

# --- freeze and thaw --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["all", "jev", "user=alice"])
def test_a_freeze_refuses_new_holds_in_its_scope(scope: str) -> None:
    books = Books()
    assert books.freeze(scope) == "done"
    assert books.hold("a", "0.10", user="alice") == f"frozen: {scope}"
    assert books.left() == "1.00"


def test_a_freeze_says_why_and_until_when() -> None:
    books = Books()
    books.at("09:00").freeze("all", until="10:00", reason="a key leaked")
    books.hold("a", "0.10")
    assert books.last == Frozen("a", "all", "a key leaked", moment("10:00"))


def test_what_is_outside_its_scope_goes_on() -> None:
    books = Books(jev=budget("1.00", where={"provider": "jev"}), other=budget("1.00", where={"provider": "other"}))
    books.freeze("jev")
    books.freeze("user=alice")
    assert books.hold("a", "0.10", provider="other", user="bob") == "held 0.10"


def test_a_frozen_budget_stops_every_hold_that_could_touch_it() -> None:
    books = Books(jev=budget("1.00"), neurons=budget("10 neurons"))
    books.freeze("neurons")
    assert books.hold("a", "0.10 usd + 0 neurons") == "frozen: neurons"


def test_a_freeze_does_not_stop_the_settlement_of_running_calls() -> None:
    books = Books()
    books.hold("a", "0.40")
    books.freeze("all")
    assert books.progress("a", "0.10") == "open 0.10"
    assert books.settle("a", "0.90") == "settled 0.90 (overrun)"
    assert books.settle("x", "0.90") == "stray 0.90"


@pytest.mark.parametrize(("tick", "told"), [(-1, "frozen: all"), (0, "held 0.10"), (1, "held 0.10")])
def test_a_freeze_ends_at_its_end(tick: int, told: str) -> None:
    books = Books()
    books.at("09:00").freeze("all", until="10:00")
    assert books.at("10:00", tick=tick).hold("a", "0.10") == told


def test_a_freeze_that_is_over_when_it_is_asked_stops_nothing() -> None:
    books = Books()
    freeze = Freeze("f", "all", "", until=moment("09:00"))
    hold = _hold(books.at("09:00"))
    assert books.send(freeze, hold) == ["done", "held 0.10"]


def test_all_is_told_before_budgets_and_budgets_before_labels() -> None:
    books = Books()
    told: list[str] = []
    for scope in ("user=alice", "key=k1", "jev", "all"):
        books.freeze(scope)
        told.append(books.hold(f"h{len(told)}", "0.10", user="alice", key="k1"))
    assert told == ["frozen: user=alice", "frozen: key=k1", "frozen: jev", "frozen: all"]


def test_thaw_lifts_exactly_its_scope() -> None:
    books = Books()
    books.freeze("all")
    books.freeze("jev")
    assert books.thaw("all") == "done"
    assert books.hold("a", "0.10") == "frozen: jev"
    assert books.thaw("jev") == "done"
    assert books.hold("b", "0.10") == "held 0.10"


def test_a_freeze_of_a_frozen_scope_replaces_it() -> None:
    books = Books()
    books.at("09:00").freeze("all", until="10:00")
    assert books.freeze("all", until="11:00") == "done"
    assert books.at("10:30").hold("a", "0.10") == "frozen: all"


def test_thaw_of_what_is_not_frozen_changes_nothing() -> None:
    assert Books().thaw("all") == "again"


def test_the_freeze_of_a_budget_that_is_gone_can_be_lifted() -> None:
    books = Books(jev=budget("1.00"), old=budget("1.00"))
    books.freeze("old")
    books.apply(Plan(budgets={"jev": budget("1.00")}))
    assert books.freeze("old") == "invalid: scope"
    assert books.thaw("old") == "done"
    assert books.thaw("old") == "invalid: scope"


@pytest.mark.parametrize(
    ("field", "ask"),
    [
        ("id", Freeze("", "all", "")),
        ("scope", Freeze("f", "nobody", "")),
        ("scope", Freeze("f", "", "")),
        ("scope", Freeze("f", "user=", "")),
        ("scope", Freeze("f", "=alice", "")),
        ("reason", Freeze("f", "all", "x" * 257)),
        ("by_whom", Freeze("f", "all", "", "\x00")),
        ("scope", Thaw("f", "nobody")),
        ("label", Revoke("f", "No", "x", "")),
        ("label", Revoke("f", "key", "", "")),
        ("label", Restore("f", "key", "x" * 129)),
        ("reason", Revoke("f", "key", "k1", "x" * 257)),
    ],
)
def test_what_cannot_be_understood_is_invalid(field: str, ask: Freeze | Thaw | Revoke | Restore) -> None:
    assert Books().send(ask) == [f"invalid: {field}"]


# --- revoke and restore -----------------------------------------------------------------------------------------------


def test_a_revoked_key_may_not_hold_but_may_settle() -> None:
    books = Books()
    books.hold("a", "0.40", key="k1")
    assert books.revoke("key", "k1") == "done"
    assert books.hold("b", "0.10", key="k1") == "revoked: key=k1"
    assert books.last == Revoked("b", "key", "k1", "stolen")
    assert books.hold("c", "0.10", key="k2") == "held 0.10"
    assert books.settle("a", "0.30") == "settled 0.30, 0.10 back"


def test_a_restored_key_may_hold_again() -> None:
    books = Books()
    books.revoke("key", "k1")
    assert books.restore("key", "k1") == "done"
    assert books.hold("a", "0.10", key="k1") == "held 0.10"


def test_revoked_is_told_before_frozen() -> None:
    books = Books()
    books.freeze("all")
    books.revoke("key", "k1")
    assert books.hold("a", "0.10", key="k1") == "revoked: key=k1"


# --- stays quiet ------------------------------------------------------------------------------------------------------


def test_revoking_the_revoked_and_restoring_the_restored_changes_nothing() -> None:
    books = Books()
    books.revoke("key", "k1")
    assert books.revoke("key", "k1") == "again"
    books.restore("key", "k1")
    assert books.restore("key", "k1") == "again"


def test_a_repeat_that_comes_after_the_thaw_does_not_freeze_again() -> None:
    books = Books()
    books.freeze("all", id="f")
    books.thaw("all", id="t")
    assert books.freeze("all", id="f") == "again"
    assert books.hold("a", "0.10") == "held 0.10"


def test_a_repeat_that_comes_after_the_restore_does_not_revoke_again() -> None:
    books = Books()
    books.revoke("key", "k1", id="r")
    books.restore("key", "k1", id="u")
    assert books.revoke("key", "k1", id="r") == "again"
    assert books.hold("a", "0.10", key="k1") == "held 0.10"


def test_another_freeze_under_a_known_id_is_a_conflict() -> None:
    books = Books()
    books.freeze("all", id="f")
    assert books.freeze("jev", id="f") == "conflict: id"


def test_ids_are_kept_by_kind() -> None:
    books = Books()
    assert [books.freeze("all", id="x"), books.thaw("all", id="x"), books.hold("x", "0.10")] == [
        "done", "done", "held 0.10",
    ]  # fmt: skip


def _hold(books: Books) -> Hold:
    return Hold("a", [Option({"usd": 100_000_000})], books.ts)
