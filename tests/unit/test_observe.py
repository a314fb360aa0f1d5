"""Observe: the provider's own figure. The budget never believes it has spent less than the provider says."""

import pytest
from wallets import TODAY, Books, budget, moment

from engine.core.messages import Line, Observe, Observed


def metered() -> Books:
    """Given a budget whose figure Cloudflare may say, of which 0.30 is settled and 0.20 held."""
    books = Books(jev=budget("1.00", source="cloudflare"))
    books.at("09:00").hold("a", "0.30")
    books.settle("a", "0.30")
    books.hold("b", "0.20")
    return books


# --- allows -----------------------------------------------------------------------------------------------------------


def test_a_figure_above_what_was_settled_shows_others_on_the_account() -> None:
    books = metered()
    assert books.observe("0.40") == "observed, raised by 0.10"
    assert books.meters() == ("0.30", "0.20", "0.10", "0.40")


def test_an_observation_says_by_how_much_and_what_is_left() -> None:
    books = metered()
    books.observe("0.40", id="o")
    line = Line(TODAY, moment("00:00"), moment("2026-12-01 00:00"), 1_000_000_000, 400_000_000)
    assert books.last == Observed("o", 100_000_000, line)


@pytest.mark.parametrize("figure", ["0", "0.10", "0.30"])
def test_a_figure_below_our_own_changes_nothing(figure: str) -> None:
    books = metered()
    assert books.observe(figure) == "observed, raised by 0.00"
    assert books.meters() == ("0.30", "0.20", "0.00", "0.50")


def test_a_figure_never_falls() -> None:
    books = metered()
    books.observe("0.60")
    assert books.observe("0.50") == "observed, raised by 0.00"
    assert books.extra() == "0.30"


def test_spending_after_an_observation_comes_on_top() -> None:
    books = metered()
    books.observe("0.50")
    books.settle("b", "0.20")
    assert books.meters() == ("0.50", "0.00", "0.20", "0.30")


def test_a_higher_figure_takes_in_what_was_settled_meanwhile() -> None:
    books = metered()
    books.observe("0.50")
    books.settle("b", "0.20")
    assert books.observe("0.60") == "observed, raised by 0.00"
    assert books.observe("0.75") == "observed, raised by 0.05"


def test_where_settled_falls_the_figure_still_stands() -> None:
    books = Books(jev=budget("1.00", source="cloudflare"))
    books.at("09:00").hold("a", "0.40")
    books.at("09:10").tick()
    books.observe("0.40")
    books.settle("a", "0.10")
    assert books.meters() == ("0.10", "0.00", "0.30", "0.60")


def test_an_observation_can_use_a_budget_up() -> None:
    books = metered()
    books.observe("1.00")
    assert books.left() == "-0.20"
    assert books.hold("c", "0.01") == "exhausted: spent, 0.00 fits"


def test_a_figure_is_for_the_period_it_names() -> None:
    books = Books(jev=budget("1.00", source="cloudflare"))
    books.at("2026-12-01 00:05").observe("0.90", period=TODAY)
    assert (books.extra(day=TODAY), books.extra(day="2026-12-01")) == ("0.90", "0.00")


def test_a_figure_before_any_spending_is_all_others() -> None:
    books = Books(jev=budget("1.00", source="cloudflare"))
    assert books.observe("0.25") == "observed, raised by 0.25"
    assert books.hold("a", "0.80") == "exhausted: spent, 0.75 fits"


def test_a_budget_for_each_user_is_observed_user_by_user() -> None:
    books = Books(user=budget("1.00", each="user", source="ours"))
    assert books.observe("0.40", budget="user", each="alice", source="ours") == "observed, raised by 0.40"
    assert (books.left("user", each="alice"), books.left("user", each="bob")) == ("0.60", "1.00")


# --- refuses ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "ask"),
    [
        ("id", Observe("", "jev", TODAY, 1, 0, "cloudflare")),
        ("budget", Observe("o", "nobody", TODAY, 1, 0, "cloudflare")),
        ("source", Observe("o", "jev", TODAY, 1, 0, "openai")),
        ("source", Observe("o", "plain", TODAY, 1, 0, "cloudflare")),
        ("each", Observe("o", "jev", TODAY, 1, 0, "cloudflare", "alice")),
        ("each", Observe("o", "user", TODAY, 1, 0, "ours")),
        ("period", Observe("o", "jev", "2026-11", 1, 0, "cloudflare")),
        ("period", Observe("o", "jev", "2026-11-31", 1, 0, "cloudflare")),
        ("period", Observe("o", "jev", "2026-12-01", 1, 0, "cloudflare")),
        ("period", Observe("o", "jev", "2026-11-01", 1, 0, "cloudflare")),
        ("period", Observe("o", "tokyo", TODAY, 1, 0, "openai")),
        ("period", Observe("o", "month", "2026-11", 1, 0, "anthropic")),
        ("figure", Observe("o", "jev", TODAY, -1, 0, "cloudflare")),
        ("as_of", Observe("o", "jev", TODAY, 1, moment("09:00") + 1, "cloudflare")),
    ],
)
def test_a_figure_that_cannot_be_meant_is_invalid(field: str, ask: Observe) -> None:
    books = Books(
        jev=budget("1.00", source="cloudflare"), plain=budget("1.00"), user=budget("1.00", each="user", source="ours"),
        tokyo=budget("1.00", zone="Asia/Tokyo", source="openai"), month=budget("9", per="month", source="anthropic"),
    )  # fmt: skip
    assert books.at("09:00").send(ask) == [f"invalid: {field}"]


@pytest.mark.parametrize(("tick", "told"), [(-1, "invalid: period"), (0, "observed, raised by 0.10")])
def test_a_period_can_be_observed_once_it_has_begun(tick: int, told: str) -> None:
    books = Books(jev=budget("1.00", source="cloudflare"))
    assert books.at("2026-12-01 00:00", tick=tick).observe("0.10", period="2026-12-01") == told


# --- stays quiet ------------------------------------------------------------------------------------------------------


def test_the_same_observation_again_changes_nothing() -> None:
    books = metered()
    books.observe("0.40", id="o")
    assert books.observe("0.40", id="o") == "again"
    assert books.observe("0.50", id="o") == "conflict: id"
    assert books.extra() == "0.10"
