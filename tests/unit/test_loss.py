"""Loss: the store has lost messages, and the wallet goes on with what is still known, never with less."""

import pytest
from wallets import TODAY, Books, budget, moment

from engine.core.limits import AMOUNT_MAX
from engine.core.messages import Done, Frost, KnownUse, Line, Loss, Raised

CENT = 10_000_000


def lost(*used: KnownUse, freeze: tuple[str, ...] = (), id: str = "l", reason: str = "a bit flipped") -> Loss:
    return Loss(id, 101, 240, reason, "ops", list(used), list(freeze))


def left() -> Books:
    """Given what is left of a day: 0.30 settled and 0.20 held of 1.00."""
    books = Books(jev=budget("1.00", source="cloudflare"))
    books.at("09:00").hold("a", "0.30")
    books.settle("a", "0.30")
    books.hold("b", "0.20")
    return books


def test_a_meter_counts_at_least_what_somebody_still_knows() -> None:
    books = left()
    assert books.send(lost(KnownUse("jev", TODAY, 80 * CENT))) == ["done"]
    assert books.meters() == ("0.30", "0.20", "0.30", "0.20")
    assert books.hold("c", "0.21") == "exhausted: busy, 0.20 fits"


def test_a_loss_never_lowers_what_is_used() -> None:
    books = left()
    assert books.send(lost(KnownUse("jev", TODAY, 10 * CENT))) == ["done"]
    assert books.meters() == ("0.30", "0.20", "0.00", "0.50")


def test_a_loss_says_what_it_raised() -> None:
    books = left()
    books.send(lost(KnownUse("jev", TODAY, 80 * CENT)))
    line = Line(TODAY, moment("00:00"), moment("2026-12-01 00:00"), 100 * CENT, 20 * CENT)
    assert books.last == Done("l", [Raised("jev", 30 * CENT, line)])


def test_a_meter_of_which_nothing_is_left_is_made_anew() -> None:
    books = Books()
    assert books.send(lost(KnownUse("jev", TODAY, 80 * CENT))) == ["done"]
    assert books.meters() == ("0.00", "0.00", "0.80", "0.20")


def test_a_meter_of_one_user_counts_for_that_user() -> None:
    books = Books(user=budget("1.00", each="user"))
    assert books.send(lost(KnownUse("user", TODAY, 80 * CENT, "alice"))) == ["done"]
    assert (books.left("user", each="alice"), books.left("user", each="bob")) == ("0.20", "1.00")


def test_settles_of_holds_that_were_lost_come_on_top() -> None:
    books = left()
    books.send(lost(KnownUse("jev", TODAY, 80 * CENT)))
    assert books.settle("lost", "0.40") == "stray 0.40"
    assert books.left() == "-0.20"


def test_what_the_provider_shows_stands_beside_a_loss() -> None:
    books = left()
    books.observe("0.50")
    books.send(lost(KnownUse("jev", TODAY, 80 * CENT)))
    assert books.meters() == ("0.30", "0.20", "0.30", "0.20")
    books.observe("0.70")
    assert books.meters() == ("0.30", "0.20", "0.40", "0.10")


def test_a_budget_nobody_knows_anything_of_is_frozen_until_it_resets() -> None:
    books = left()
    assert books.send(lost(freeze=("jev",))) == ["done"]
    assert books.last == Done("l", [], {"jev": moment("2026-12-01 00:00")})
    assert books.hold("c", "0.01") == "frozen: jev"
    assert books.settle("b", "0.20") == "settled 0.20"
    assert books.at("2026-12-01 00:00").hold("d", "0.01") == "held 0.01"


def test_a_budget_that_never_resets_stays_frozen_until_a_thaw() -> None:
    books = Books(ever=budget("1.00", per="total"))
    books.send(lost(freeze=("ever",)))
    assert books.last == Done("l", [], {"ever": None})
    assert books.at("2027-12-01 00:00").hold("a", "0.01") == "frozen: ever"
    books.thaw("ever")
    assert books.hold("b", "0.01") == "held 0.01"


def test_a_longer_freeze_stays_as_it_is() -> None:
    books = left()
    books.freeze("jev", reason="an incident")
    books.send(lost(freeze=("jev",)))
    assert books.last == Done("l", [], {"jev": None})
    assert books.wallet.frozen["jev"] == Frost("jev", "an incident", moment("09:00"), None)


def test_a_shorter_freeze_is_made_longer() -> None:
    books = left()
    books.freeze("jev", until="10:00")
    books.send(lost(freeze=("jev",)))
    assert books.at("23:59:59").hold("c", "0.01") == "frozen: jev"


@pytest.mark.parametrize(
    ("field", "ask"),
    [
        ("id", lost(id="a b")),
        ("to_seq", Loss("l", 0, 5, "")),
        ("to_seq", Loss("l", 6, 5, "")),
        ("to_seq", Loss("l", 6, AMOUNT_MAX + 1, "")),
        ("used", lost(KnownUse("jev", TODAY, -1))),
        ("used", lost(KnownUse("jev", TODAY, AMOUNT_MAX + 1))),
        ("used", lost(KnownUse("jev", TODAY, 1), KnownUse("jev", TODAY, 2))),
        ("used", lost(*(KnownUse("jev", TODAY, 1, str(number)) for number in range(65)))),
        ("used.budget", lost(KnownUse("nobody", TODAY, 1))),
        ("used.each", lost(KnownUse("jev", TODAY, 1, "alice"))),
        ("used.period", lost(KnownUse("jev", "yesterday", 1))),
        ("used.period", lost(KnownUse("jev", "2026-12-01", 1))),
        ("used.period", lost(KnownUse("jev", "2026-11-01", 1))),
        ("freeze", lost(freeze=("nobody",))),
        ("freeze", lost(freeze=("jev",) * 65)),
        ("reason", lost(reason="x" * 257)),
    ],
)
def test_a_loss_that_cannot_be_understood_is_invalid_and_changes_nothing(field: str, ask: Loss) -> None:
    books = left()
    assert books.send(ask) == [f"invalid: {field}"]
    assert books.meters() == ("0.30", "0.20", "0.00", "0.50")
    assert not books.wallet.frozen


def test_one_meter_that_is_wrong_makes_the_whole_loss_invalid() -> None:
    books = left()
    ask = lost(KnownUse("jev", TODAY, 80 * CENT), KnownUse("nobody", TODAY, 1), freeze=("jev",))
    assert books.send(ask) == ["invalid: used.budget"]
    assert (books.left(), books.wallet.frozen) == ("0.50", {})


def test_the_same_loss_again_changes_nothing() -> None:
    books = left()
    first = lost(KnownUse("jev", TODAY, 80 * CENT))
    books.send(first)
    books.settle("b", "0.05")
    assert books.send(first) == ["again"]
    assert books.send(lost(KnownUse("jev", TODAY, 99 * CENT))) == ["conflict: id"]
    assert books.meters() == ("0.35", "0.00", "0.30", "0.35")
