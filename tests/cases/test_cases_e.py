"""E: bypass. Every budget that matches a call decides about it; nothing is exempt."""

import pytest
from wallets import Books, amounts, budget

from engine.core.messages import Exhausted, Option
from engine.core.plan import Plan, Tier, Tiers


@pytest.mark.parametrize("tight", ["key", "user", "team"])
def test_e5_every_budget_of_a_call_is_looked_at(tight: str) -> None:
    limits = {"key": "9.00", "user": "9.00", "team": "9.00", tight: "0.10"}
    books = Books(plan=Plan(budgets={name: budget(limit, each=name) for name, limit in limits.items()}))
    assert books.hold("a", "0.20", key="k", user="u", team="t") == "exhausted: never, 0.10 fits"
    assert isinstance(books.last, Exhausted)
    assert books.last.budget == tight


def test_e6_the_budget_above_all_others_is_looked_at_too() -> None:
    books = Books(user=budget("1.00", each="user"), organisation=budget("1.50"))
    books.hold("a", "1.00", user="alice")
    assert books.hold("b", "1.00", user="bob") == "exhausted: busy, 0.50 fits"


def test_e7_a_free_option_permits_no_paid_call_in_its_place() -> None:
    books = Books(plan=Plan({"jev": budget("1.00")}, tiers=Tiers([Tier(500_000, 0)])))
    books.settle("before", "0.99")
    assert books.hold("a", [Option(amounts("0.02"), grade=0), Option(amounts("0"), grade=0)]) == "held 0.00 by option 1"
    assert books.settle("a", "0.02") == "settled 0.02 (overrun)"


def test_e11_no_label_makes_a_caller_exempt() -> None:
    books = Books()
    assert books.hold("a", "4.77", key="master", role="admin") == "exhausted: never, 1.00 fits"


def test_e13_a_budget_counts_its_own_unit() -> None:
    books = Books(tokens=budget("1000 tokens"), calls=budget("5 requests"))
    books.hold("a", "150 tokens + 1 requests")
    books.settle("a", "150 tokens + 1 requests")
    assert (books.settled("tokens"), books.settled("calls")) == ("150", "1")
