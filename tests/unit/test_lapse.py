"""A hold that is not settled in time lapses, at the first message that finds it due. Not one nanosecond earlier."""

import pytest
from wallets import Books, moment

from engine.core import limits
from engine.core.messages import Hold, Lapsed, Option, Renew, Settle
from engine.core.plan import LapsePolicy, Plan


def window(before: str, then: str) -> list[tuple[int, str]]:
    """What is told one tick before the expiry, and what at it and after it."""
    return [(-1, before), (0, then), (1, then)]


def held(on_lapse: LapsePolicy = "charge") -> Books:
    """Given a hold `a` of 0.40 at nine, open until 09:10."""
    books = Books(on_lapse=on_lapse)
    books.at("09:00").hold("a", "0.40")
    return books


# --- the window between due time and sweep ----------------------------------------------------------------------------


@pytest.mark.parametrize(("tick", "state"), window("open", "lapsed"))
def test_m15_a_hold_lapses_at_its_expiry_and_not_before(tick: int, state: str) -> None:
    books = held()
    books.at("09:10", tick=tick).tick()
    assert books.state("a") == state


@pytest.mark.parametrize(
    ("tick", "told"),
    window("settled 0.30, 0.10 back", "corrected 0.30, 0.10 back (late, corrected)"),
)
def test_m15_a_settle_is_late_from_the_expiry_on(tick: int, told: str) -> None:
    assert held().at("09:10", tick=tick).settle("a", "0.30") == told


@pytest.mark.parametrize(("tick", "told"), window("held 0.40, renewal 1", "closed: lapsed 0.40"))
def test_m15_a_hold_can_be_renewed_until_its_expiry(tick: int, told: str) -> None:
    assert held().at("09:10", tick=tick).renew("a", 1) == told


@pytest.mark.parametrize(("tick", "told"), window("again: open", "closed: lapsed 0.40"))
def test_m15_a_hold_asked_again_is_permission_until_its_expiry(tick: int, told: str) -> None:
    assert held().at("09:10", tick=tick).hold("a", "0.40") == told


@pytest.mark.parametrize(("tick", "told"), window("exhausted: busy, 0.60 fits", "held 1.00"))
def test_m15_what_a_released_lapse_gives_back_is_there_from_the_expiry_on(tick: int, told: str) -> None:
    assert held("release").at("09:10", tick=tick).hold("b", "1.00") == told


@pytest.mark.parametrize(("tick", "told"), window("open 0.50 (overrun)", "lapsed 0.50 (late, overrun)"))
def test_m15_progress_is_late_from_the_expiry_on(tick: int, told: str) -> None:
    assert held().at("09:10", tick=tick).progress("a", "0.50") == told


# --- what it costs ----------------------------------------------------------------------------------------------------


def test_a_lapse_charges_the_grant_because_the_call_may_have_happened() -> None:
    books = held()
    assert books.at("09:10").tick() == ["a lapsed at 0.40"]
    assert books.meters() == ("0.40", "0.00", "0.00", "0.60")


def test_a_lapse_charges_the_progress_where_that_is_larger() -> None:
    books = held()
    books.progress("a", "0.70")
    assert books.at("09:10").tick() == ["a lapsed at 0.70"]


def test_under_release_a_lapse_charges_the_progress_only() -> None:
    books = held("release")
    books.progress("a", "0.10")
    assert books.at("09:10").tick() == ["a lapsed at 0.10"]
    assert books.meters() == ("0.10", "0.00", "0.00", "0.90")


@pytest.mark.parametrize(("on_lapse", "told"), [("charge", "a lapsed at 0.40"), ("release", "a lapsed at 0.00")])
def test_a_hold_may_say_itself_what_its_lapse_costs(on_lapse: LapsePolicy, told: str) -> None:
    books = Books(on_lapse="release" if on_lapse == "charge" else "charge")
    books.at("09:00").hold("a", "0.40", on_lapse=on_lapse)
    assert books.at("09:10").tick() == [told]


def test_the_policy_is_that_of_the_plan_when_it_was_held() -> None:
    books = held()
    books.apply(Plan(budgets=books.plan.budgets, on_lapse="release"))
    assert books.at("09:10").tick() == ["a lapsed at 0.40"]


def test_a_lapse_is_charged_to_the_day_of_the_hold() -> None:
    books = Books()
    books.at("23:55").hold("a", "0.40")
    books.at("2026-12-01 00:10").tick()
    assert (books.settled(day="2026-11-30"), books.settled(day="2026-12-01")) == ("0.40", "0.00")


# --- when -------------------------------------------------------------------------------------------------------------


def test_time_passes_only_through_messages() -> None:
    books = held()
    assert books.at("2026-11-30 12:00").tick() == ["a lapsed at 0.40"]
    assert books.entries[-1].at == moment("12:00")


def test_what_is_due_lapses_before_the_asks_of_the_message_that_finds_it() -> None:
    books = held("release")
    assert books.at("09:10").hold("b", "1.00") == "held 1.00"
    assert books.lapses == ["a lapsed at 0.00"]


def test_the_earliest_lapses_first_then_by_id() -> None:
    books = Books()
    books.at("09:00").hold("z", "0.01", ttl_s=5)
    for id in ("c", "a", "b"):
        books.hold(id, "0.01", ttl_s=10)
    assert [lapse.hold for lapse in _after(books, "09:01")] == ["z", "a", "b", "c"]


def test_a_renewed_hold_does_not_lapse_at_its_old_expiry() -> None:
    books = held()
    books.at("09:09").renew("a", 1)
    assert books.at("09:18").tick() == []
    assert books.at("09:19").tick() == ["a lapsed at 0.40"]


def test_a_settled_hold_does_not_lapse() -> None:
    books = held()
    books.settle("a", "0.10")
    assert books.at("12:00").tick() == []


def test_the_wallet_knows_when_the_next_hold_is_due() -> None:
    books = held()
    assert books.wallet.next_due() == moment("09:10")
    books.settle("a", "0.10")
    assert books.wallet.next_due() == moment("2026-12-01 00:00")


def test_m15_a_due_hold_beyond_the_lapse_cap_counts_as_open_for_settle_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LAPSES_MAX", 2)
    books = Books(twice=False)  # a second message would lapse two more
    books.at("09:00")
    holds = [Hold(id, [Option({"usd": 10_000_000})], books.ts) for id in "abcde"]
    books.send(*holds)
    told = books.at("09:10").send(Settle("e", {"usd": 0}), holds[3], Renew("c", 1))
    assert told == ["settled 0.00, 0.01 back (late)", "closed: lapsed 0.01", "closed: lapsed 0.01"]
    assert books.lapses == ["a lapsed at 0.01", "b lapsed at 0.01"]
    assert books.tick() == ["c lapsed at 0.01", "d lapsed at 0.01"]


def _after(books: Books, when: str) -> list[Lapsed]:
    books.at(when).tick()
    return books.entries[-1].lapsed
