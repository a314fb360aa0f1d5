"""Adjust: an operator's correction, up or down, with its reason."""

import pytest
from wallets import TODAY, Books, budget, moment

from engine.core.limits import AMOUNT_MAX
from engine.core.messages import Adjust, Adjusted, Dropped, Line


def spent() -> Books:
    """Given 0.30 settled of 1.00."""
    books = Books(jev=budget("1.00", source="cloudflare"))
    books.at("09:00").hold("a", "0.30")
    books.settle("a", "0.30")
    return books


@pytest.mark.parametrize(("change", "settled", "left"), [("0.20", "0.50", "0.50"), ("-0.10", "0.20", "0.80"),
                                                         ("5.00", "5.30", "-4.30")])  # fmt: skip
def test_an_adjustment_moves_what_is_settled(change: str, settled: str, left: str) -> None:
    books = spent()
    assert books.adjust(change) == "adjusted"
    assert (books.settled(), books.left()) == (settled, left)


def test_an_adjustment_says_what_is_left() -> None:
    books = spent()
    books.adjust("-0.10", id="j")
    line = Line(TODAY, moment("00:00"), moment("2026-12-01 00:00"), 1_000_000_000, 800_000_000)
    assert books.last == Adjusted("j", line)


def test_an_adjustment_cannot_take_away_what_the_provider_has_seen() -> None:
    books = spent()
    books.observe("0.30")
    books.adjust("-0.20")
    assert books.meters() == ("0.10", "0.00", "0.20", "0.70")


def test_an_adjustment_below_nothing_gives_no_credit() -> None:
    books = Books()
    assert books.adjust("-0.50") == "adjusted"
    assert books.meters() == ("-0.50", "0.00", "0.50", "1.00")


def test_an_adjustment_of_yesterday_leaves_today_alone() -> None:
    books = spent()
    books.at("2026-12-01 09:00").adjust("0.20", period=TODAY)
    assert (books.settled(day=TODAY), books.settled(day="2026-12-01")) == ("0.50", "0.00")


def test_an_adjustment_beyond_the_memory_is_told_for_that_day() -> None:
    books = Books(remember_s=60)
    assert books.at("2026-12-02 09:00").adjust("0.20", id="j") == f"adjusted, 200000000 to jev of {TODAY}"
    assert books.last == Adjusted("j", dropped=Dropped("jev", TODAY, 200_000_000))


def test_an_adjustment_is_taken_during_a_freeze() -> None:
    books = spent()
    books.freeze("all")
    assert books.adjust("0.20") == "adjusted"


@pytest.mark.parametrize(
    ("field", "ask"),
    [
        ("id", Adjust("a b", "jev", TODAY, 1, "")),
        ("budget", Adjust("j", "nobody", TODAY, 1, "")),
        ("each", Adjust("j", "jev", TODAY, 1, "", each="alice")),
        ("period", Adjust("j", "jev", "yesterday", 1, "")),
        ("period", Adjust("j", "jev", "2026-12-01", 1, "")),
        ("amount", Adjust("j", "jev", TODAY, AMOUNT_MAX + 1, "")),
        ("amount", Adjust("j", "jev", TODAY, -AMOUNT_MAX - 1, "")),
        ("hold", Adjust("j", "jev", TODAY, 1, "", hold="a b")),
        ("reason", Adjust("j", "jev", TODAY, 1, "x" * 257)),
        ("by_whom", Adjust("j", "jev", TODAY, 1, "", by_whom="\n")),
    ],
)
def test_an_adjustment_that_cannot_be_understood_is_invalid(field: str, ask: Adjust) -> None:
    books = spent()
    assert books.send(ask) == [f"invalid: {field}"]
    assert books.settled() == "0.30"


def test_the_same_adjustment_again_changes_nothing() -> None:
    books = spent()
    books.adjust("0.20", id="j")
    assert books.at("10:00").adjust("0.20", id="j") == "again"
    assert books.adjust("0.30", id="j") == "conflict: id"
    assert books.settled() == "0.50"
