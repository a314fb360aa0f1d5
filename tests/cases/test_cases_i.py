"""I: numbers. Integers of the smallest part all the way: what is exactly enough is enough."""

from wallets import Books, budget


def test_i1_what_is_exactly_the_limit_fits() -> None:
    books = Books(jev=budget("0.001615"))
    assert books.hold("a", "0.001615") == "held 0.001615"
    assert books.left() == "0.00"


def test_i2_sums_are_written_as_people_would() -> None:
    books = Books()
    for id, cents in (("a", "0.33"), ("b", "0.332")):
        books.hold(id, cents)
        books.settle(id, cents)
    assert (books.settled(), books.left()) == ("0.662", "0.338")


def test_i3_many_small_charges_do_not_drift() -> None:
    books = Books(twice=False)
    for n in range(250):
        books.hold(f"c{n}", "0.004")
        books.settle(f"c{n}", "0.004")
    assert books.meters() == ("1.00", "0.00", "0.00", "0.00")
    assert books.hold("one-more", "0.000000001") == "exhausted: spent, 0.00 fits"


def test_i5_fractions_are_kept_to_the_last_part() -> None:
    books = Books(neurons=budget("1 neurons"))
    for n in range(3):
        books.hold(f"c{n}", "0.333333 neurons")
        books.settle(f"c{n}", "0.333333 neurons")
    assert books.left("neurons") == "0.000001"
