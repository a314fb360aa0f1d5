"""G: double counting, retries, batches."""

from wallets import Books, budget


def test_g1_one_call_reported_twice_is_charged_once() -> None:
    books = Books()
    books.hold("call", "0.40")
    books.settle("call", "0.30")
    assert books.settle("call", "0.30") == "again: settled"
    assert books.settle("call", "0.30", id="from-the-log") == "again: settled"
    assert books.settled() == "0.30"


def test_g3_every_attempt_is_a_hold_of_its_own_under_one_logical_call() -> None:
    books = Books(call=budget("0.50", each="call"))
    for attempt in (1, 2):
        books.hold(f"c7.{attempt}", "0.20", call="c7")
    books.release("c7.1")
    books.settle("c7.2", "0.15")
    assert books.meters("call", each="c7") == ("0.15", "0.00", "0.00", "0.35")


def test_g4_the_hold_of_a_batch_lives_until_its_result() -> None:
    books = Books(key=budget("5.00", each="key"))
    books.at("09:00").hold("batch", "2.00", ttl_s=86_400, key="k1")
    for n, hour in enumerate(("15:00", "21:00", "23:00"), start=1):
        books.at(hour).renew("batch", n, ttl_s=86_400)
    assert books.at("2026-12-01 20:00").settle("batch", "1.75") == "settled 1.75, 0.25 back"
    assert books.settled("key", day="2026-11-30", each="k1") == "1.75"
    assert books.settled("key", day="2026-11-30", each="k2") == "0.00"
