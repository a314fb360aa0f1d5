"""J: what operators do is an event like any other, in force from the next decision on. Alerts come later."""

from wallets import Books, budget


def test_j6_a_corrected_spend_counts_at_the_next_decision() -> None:
    books = Books()
    books.hold("a", "0.90")
    books.settle("a", "0.90")
    books.adjust("-0.50")
    assert books.hold("b", "0.60") == "held 0.60"
    books.adjust("0.30")
    assert books.hold("c", "0.01") == "exhausted: busy, 0.00 fits"


def test_j7_a_raised_limit_counts_at_the_next_decision_for_every_key() -> None:
    books = Books(key=budget("1.00", each="key"))
    books.hold("a", "1.00", key="k1")
    books.change(key=budget("1.00", each="key", limit_for={"key=k1": "3.00"}))
    assert books.hold("b", "2.00", key="k1") == "held 2.00"


def test_j9_starting_a_budget_anew_leaves_its_history_untouched() -> None:
    books = Books()
    books.hold("a", "0.90")
    books.settle("a", "0.90")
    told = list(books.entries)
    books.change(jev=budget("1.00", where={"provider": "jev"}))
    assert books.hold("b", "1.00", provider="jev") == "held 1.00"
    assert books.entries[: len(told)] == told
    assert books.replayed().dump() == books.wallet.dump()
