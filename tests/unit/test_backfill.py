"""What a backfill does with each row: one class after the other, on days that went wrong."""

from __future__ import annotations

import pytest
from backfilling import answered, asked, judged, register_of, rows
from recorded_stories import projected
from records import recorded
from wallets import TODAY, Books, budget, moment

from engine.ask_bytes import encode
from engine.core.messages import Adjust
from engine.core.plan import Budget
from projector.backfill.applying import BATCH_ASKS, batches
from projector.backfill.judging import Class, Finding
from projector.backfill.rows import ROWS_MAX, Row, RowError, Rows, Unreadable

HOUR_S = 3_600


def books(**budgets: Budget) -> Books:
    """A wallet that remembers for an hour, at nine."""
    return Books(remember_s=HOUR_S, twice=False, **(budgets or {"jev": budget("10.00")})).at("09:00")


def backfill(wallet: Books, given: Rows) -> list[Finding]:
    """Do it, and say how each row was answered."""
    findings = judged(recorded(wallet), given)
    told = []
    for asks in asked(findings):
        wallet.send(*asks)
        told += wallet.entries[-1].out
    return answered(findings, told)


def classes(findings: list[Finding]) -> list[Class]:
    return [finding.found for finding in findings]


def settled(wallet: Books, name: str = "jev", period: str = TODAY) -> int:
    """By the projector's own totals, which remember every day."""
    return next(
        (
            one.settled
            for one in projected(recorded(wallet)).totals.values()
            if (one.budget, one.period) == (name, period)
        ),
        0,
    )


def usd(amount: str) -> dict[str, str]:
    return {"usd": amount}


# --- what the wallet remembers ----------------------------------------------------------------------------------------


def test_a_hold_that_was_left_open_is_settled_at_its_real_cost() -> None:
    wallet = books()
    wallet.hold("a", "0.40")
    [found] = backfill(wallet, rows(("a", usd("0.25"))))
    assert (found.found, settled(wallet)) == ("new", 250_000_000)


def test_h4_a_lapse_and_an_estimate_are_corrected_and_what_is_there_stays() -> None:
    wallet = books()
    wallet.hold("lapses", "0.40", ttl_s=60)
    wallet.hold("guessed", "0.40")
    wallet.estimate("guessed", "0.30")
    wallet.hold("done", "0.40")
    wallet.settle("done", "0.10")
    wallet.at("09:10").tick()
    given = rows(("lapses", usd("0.05")), ("guessed", usd("0.06")), ("done", usd("0.1")))
    assert classes(backfill(wallet, given)) == ["corrects", "corrects", "there"]
    assert settled(wallet) == 210_000_000
    assert classes(backfill(wallet, given)) == ["there"] * 3
    assert settled(wallet) == 210_000_000


def test_another_cost_after_an_exact_settlement_is_a_conflict_and_nothing_is_done() -> None:
    wallet = books()
    wallet.hold("done", "0.40")
    wallet.settle("done", "0.10")
    [found] = backfill(wallet, rows(("done", usd("0.11"))))
    assert (found.found, found.charged, found.asks) == ("conflict", usd("0.1"), ())
    assert settled(wallet) == 100_000_000


def test_a_call_nobody_held_is_charged_to_the_budgets_that_match_its_labels_at_its_time() -> None:
    wallet = books(jev=budget("10", where={"provider": "jev"}), other=budget("10", where={"provider": "other"}))
    row = Row(1, "nobody", usd("0.07"), moment("08:30"), {"provider": "jev"})
    [expected] = judged(recorded(wallet), rows(row))
    assert (expected.found, expected.why) == ("stray", "charged to jev")
    assert classes(backfill(wallet, rows(row))) == ["stray"]
    assert (settled(wallet), settled(wallet, "other")) == (70_000_000, 0)
    assert classes(backfill(wallet, rows(row))) == ["there"]
    assert classes(backfill(wallet.at("2026-12-05 09:00"), rows(row))) == ["there"]  # long forgotten by the wallet


def test_a_stray_without_a_time_is_said_to_count_now() -> None:
    [found] = judged(recorded(books()), rows(("nobody", usd("0.07"))))
    assert found.why == "charged now, since the row says no time to jev"


def test_a_unit_the_wallet_does_not_have_and_a_cost_it_cannot_take_are_named_and_nothing_is_done() -> None:
    wallet = books()
    wallet.hold("a", "0.40")
    given = rows(("a", {"euro": "1"}), ("b", usd("0.0000000001")), ("not an id", usd("1")), ("c", usd("99999999999")))
    found = backfill(wallet, given)
    assert classes(found) == ["unknown_unit", "refused", "refused", "refused"]
    assert "usd" in found[0].why
    assert found[1].why == "amounts: usd has at most 9 digits after the point, got 10"
    assert found[2].why.startswith("hold: an id is")
    assert all(not one.asks for one in found)


def test_a_row_without_a_cost_waits_to_be_filled_in() -> None:
    wallet = books()
    wallet.hold("a", "0.40")
    assert classes(backfill(wallet, rows(("a", {})))) == ["blank"]


def test_what_a_call_used_beside_money_counts_where_its_hold_counts_it() -> None:
    wallet = books(jev=budget("10.00"), tokens=budget("9000 tokens"), rate=budget("50 requests", per="hour"))
    wallet.hold("guarded", "0.40 + 900 tokens + 1 requests")
    wallet.hold("plain", "0.40")
    wallet.hold("lapsed", "0.10 + 300 tokens", ttl_s=60)
    wallet.at("09:05").tick()
    wallet.at("11:00").hold("late", "0.40 + 900 tokens")
    beside = {"tokens": "500", "requests": "1"}
    given = rows(
        *(Row(line, hold, usd("0.01"), beside=beside) for line, hold in enumerate(("guarded", "plain", "late")))
    )
    found = {one.hold: one.amounts for one in judged(recorded(wallet), given)}
    assert found["late"] == {"usd": "0.01", "tokens": "500"}
    old = rows(
        Row(1, "lapsed", usd("0.01"), beside=beside), Row(2, "nobody", usd("0.01"), moment("08:00"), beside=beside)
    )
    assert classes(backfill(wallet, old)) == ["beyond", "beyond"]
    assert (settled(wallet, "tokens"), settled(wallet, "jev")) == (900 + 500 + 500, 820_000_000)
    assert classes(backfill(wallet, old)) == ["there", "there"]
    wallet.change(more=budget("9 requests"))
    assert classes(judged(recorded(wallet), old)) == ["there", "there"]


# --- beyond the memory ------------------------------------------------------------------------------------------------


def forgotten_lapse() -> Books:
    """A hold of 0.40 usd and 100 neurons that lapsed yesterday, in two budgets of dollars and one of neurons."""
    wallet = books(
        jev=budget("10.00"),
        user=budget("5", each="user"),
        neurons=budget("1000 neurons"),
        apart=budget("5", where={"a": "b"}),
    )
    wallet.hold("old", "0.40 + 100 neurons", ttl_s=60, user="alice")
    wallet.at("09:05").tick()
    wallet.at("2026-12-01 12:00").tick()
    return wallet


def test_a_lapse_that_was_forgotten_is_adjusted_in_every_budget_and_period_that_counted_it() -> None:
    wallet = forgotten_lapse()
    given = rows(("old", {"usd": "0.25", "neurons": "130"}))
    [found] = backfill(wallet, given)
    assert (found.found, len(found.asks)) == ("beyond", 3)
    assert settled(wallet) == settled(wallet, "user") == 250_000_000
    assert settled(wallet, "neurons") == 130_000_000
    assert settled(wallet, "apart") == 0
    before = wallet.seq
    for _ in range(2):
        assert classes(backfill(wallet, given)) == ["there"]
        wallet.at("2027-03-01 00:00").tick()  # beyond the memory of the adjusts' own ids too
    assert wallet.seq == before + 2, "nothing but the ticks was sent"


def test_a_backfill_of_another_cost_beyond_the_memory_is_a_conflict() -> None:
    wallet = forgotten_lapse()
    backfill(wallet, rows(("old", {"usd": "0.25", "neurons": "130"})))
    other = rows(("old", {"usd": "0.26", "neurons": "130"}))
    assert classes(backfill(wallet, other)) == ["conflict"]
    assert settled(wallet) == 250_000_000


def test_an_exact_cost_is_known_from_the_record_long_after_the_wallet_has_forgotten_it() -> None:
    wallet = books()
    wallet.hold("a", "0.40")
    wallet.settle("a", "0.10")
    wallet.at("2026-12-03 00:00").tick()
    assert classes(backfill(wallet, rows(("a", usd("0.10"))))) == ["there"]
    assert classes(backfill(wallet, rows(("a", usd("0.11"))))) == ["conflict"]
    assert settled(wallet) == 100_000_000


def test_a_unit_that_a_forgotten_hold_lacked_goes_to_the_budgets_that_match_it_at_its_time() -> None:
    wallet = books(jev=budget("10.00"), neurons=budget("1000 neurons"))
    wallet.hold("old", "0.40", ttl_s=60)
    wallet.at("09:05").tick()
    wallet.at("2026-12-01 12:00").tick()
    assert classes(backfill(wallet, rows(("old", {"usd": "0.40", "neurons": "5"})))) == ["beyond"]
    assert (settled(wallet), settled(wallet, "neurons")) == (400_000_000, 5_000_000)


def test_a_settlement_that_came_too_late_is_charged_once_by_its_own_time() -> None:
    wallet = books()
    wallet.at("2026-12-01 12:00")
    assert wallet.settle("late", "0.10", held_at="09:30") == "forgotten"
    given = rows(("late", usd("0.10")))
    [found] = backfill(wallet, given)
    assert (found.found, found.why, settled(wallet)) == ("beyond", "never held here", 100_000_000)
    assert classes(backfill(wallet, given)) == ["there"]


def test_a_budget_that_the_plan_has_dropped_or_begun_anew_is_named_and_left_alone() -> None:
    wallet = forgotten_lapse()
    wallet.change(jev=budget("10.00", per="month"))
    [found] = judged(recorded(wallet), rows(("old", usd("0.25"))))
    assert (found.found, [getattr(ask, "budget", "") for ask in found.asks]) == ("beyond", ["user"])
    assert "jev" in found.why


def test_where_an_operator_has_adjusted_a_call_by_name_its_sum_is_what_it_cost() -> None:
    wallet = books()
    wallet.hold("a", "0.40")
    wallet.settle("a", "0.10")
    wallet.send(Adjust("by-hand", "jev", TODAY, 20_000_000, "the invoice", "ops", None, "a"))
    assert classes(judged(recorded(wallet), rows(("a", usd("0.12"))))) == ["there"]
    assert classes(judged(recorded(wallet), rows(("a", usd("0.10"))))) == ["conflict"]


def test_an_id_that_is_held_again_after_it_was_forgotten_is_the_new_hold() -> None:
    wallet = books()
    wallet.hold("a", "0.40")
    wallet.settle("a", "0.10")
    wallet.at("2026-12-02 09:00").hold("a", "0.30")
    assert classes(backfill(wallet, rows(("a", usd("0.20"))))) == ["new"]
    assert (settled(wallet), settled(wallet, period="2026-12-02")) == (100_000_000, 200_000_000)


# --- between looking and doing ----------------------------------------------------------------------------------------


def test_a_hold_that_is_forgotten_meanwhile_is_not_charged_twice() -> None:
    wallet, given = books(), rows(("a", usd("0.25")))
    wallet.hold("a", "0.40", ttl_s=60)
    wallet.at("09:05").tick()
    findings = judged(recorded(wallet), given)
    assert classes(findings) == ["corrects"]
    assert wallet.at("10:30").send(*findings[0].asks) == ["forgotten"]
    [told] = answered(findings, wallet.entries[-1].out)
    assert (told.found, told.why) == ("refused", "the wallet has forgotten it since: run this again")
    assert settled(wallet) == 400_000_000
    assert classes(backfill(wallet, given)) == ["beyond"]
    assert settled(wallet) == 250_000_000


def test_what_somebody_else_settles_meanwhile_is_there_or_in_conflict() -> None:
    wallet = books()
    wallet.hold("same", "0.40")
    wallet.hold("other", "0.40")
    findings = judged(recorded(wallet), rows(("same", usd("0.1")), ("other", usd("0.1"))))
    wallet.settle("same", "0.1")
    wallet.settle("other", "0.2")
    wallet.send(*(ask for finding in findings for ask in finding.asks))
    assert classes(answered(findings, wallet.entries[-1].out)) == ["there", "conflict"]
    assert settled(wallet) == 300_000_000


def test_two_backfills_at_once_adjust_once() -> None:
    wallet = forgotten_lapse()
    findings = judged(recorded(wallet), rows(("old", usd("0.25"))))
    for _ in range(2):
        wallet.send(*findings[0].asks)
    assert classes(answered(findings, wallet.entries[-1].out)) == ["there"]
    assert settled(wallet) == settled(wallet, "user") == 250_000_000


# --- rows, batches ----------------------------------------------------------------------------------------------------


def test_the_same_row_twice_counts_once_and_two_that_differ_are_both_named() -> None:
    wallet = books()
    wallet.hold("a", "0.40")
    wallet.hold("b", "0.40")
    given = rows(("a", usd("0.2")), ("b", usd("0.1")), ("a", usd("0.2")), ("b", usd("0.15")), ("b", {}))
    found = backfill(wallet, given)
    assert given.repeated == 1
    assert [(one.line, one.found) for one in found] == [(1, "new"), (2, "conflict"), (4, "conflict")]
    assert found[1].why == "lines 2, 4 say different costs of this hold"
    assert settled(wallet) == 200_000_000


def test_what_cannot_be_read_is_named_by_line_and_field() -> None:
    given = Rows([Unreadable(7, "usd", "expected plain digits")])
    [found] = judged(recorded(books()), given)
    assert (found.line, found.found, found.why) == (7, "unreadable", "usd: expected plain digits")


def test_a_file_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("projector.backfill.rows.ROWS_MAX", 2)
    assert ROWS_MAX == 500_000
    with pytest.raises(RowError, match="at most 2 rows"):
        rows(*((f"h{number}", usd("1")) for number in range(3)))


def test_a_rows_adjusts_go_together_and_no_message_is_too_long() -> None:
    wallet = forgotten_lapse()
    for number in range(300):
        wallet.hold(f"h{number}", "0.01")
    given = rows(("old", usd("0.25")), *((f"h{number}", usd("0.01")) for number in range(300)))
    sent = asked(judged(recorded(wallet), given))
    assert [len(asks) for asks in sent] == [2, BATCH_ASKS, BATCH_ASKS, 300 - 2 * BATCH_ASKS]


def test_rows_with_the_largest_labels_stay_within_what_a_message_takes() -> None:
    labels = {f"label-{number:02}".ljust(32, "x"): "\N{GRINNING FACE}" * 128 for number in range(16)}
    wallet = books()
    given = rows(*(Row(line, f"h{line}", usd("0.01"), moment("08:30"), labels) for line in range(1, 300)))
    sent = asked(judged(recorded(wallet), given))
    assert sum(len(asks) for asks in sent) == 299
    assert all(encode(asks) for asks in sent)


def test_batches_keep_every_row_in_its_order() -> None:
    found = [Finding(line, f"h{line}", "there" if line % 3 else "conflict") for line in range(1_000)]
    assert [one for batch in batches(found) for one in batch] == found


def test_only_the_files_holds_are_kept() -> None:
    wallet = books()
    for number in range(20):
        wallet.hold(f"h{number}", "0.01")
        wallet.settle(f"h{number}", "0.01")
    assert register_of(recorded(wallet), ["h3"]).holds.keys() == {"h3"}
    assert register_of(recorded(wallet)).holds == {}
