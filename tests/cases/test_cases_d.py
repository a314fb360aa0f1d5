"""D: streams. What a wallet does with reports of a running call; the reading of streams comes with the proxies."""

from wallets import Books


def test_d1_a_call_whose_client_left_is_charged_at_what_was_sent() -> None:
    books = Books()
    books.hold("a", "0.40")
    books.progress("a", "0.10")
    assert books.estimate("a", "0.12") == "estimated 0.12, 0.28 back (estimated)"
    assert books.settled() == "0.12"


def test_d13_chunks_are_totals_so_the_last_one_and_the_end_count_once() -> None:
    books = Books()
    books.hold("a", "0.40")
    for total in ("0.05", "0.10", "0.15"):
        books.progress("a", total)
    assert books.settle("a", "0.15") == "settled 0.15, 0.25 back"
    assert books.settled() == "0.15"


def test_d17_an_own_count_is_marked_until_the_real_one_comes() -> None:
    books = Books()
    books.hold("a", "0.40")
    assert books.estimate("a", "0.20") == "estimated 0.20, 0.20 back (estimated)"
    assert books.settle("a", "0.18") == "corrected 0.18, 0.02 back (corrected)"
