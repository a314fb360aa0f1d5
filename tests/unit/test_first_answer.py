"""Whoever asks again hears what it heard at first, whatever has become of the hold, also from a restored wallet."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from wallets import Books, budget, moment

from engine.core.messages import AskMessage, Held, Hold, Option, Renew, Settle
from engine.core.plan import Plan
from engine.core.restore import load
from engine.core.tell import read

PLAN = Plan(
    budgets={
        "shared": budget("1.00"),
        "users": budget("0.50", each="user", per="month", zone="Asia/Tokyo"),
        "neurons": budget("1000 neurons", per="total"),
    }
)
ASK = Hold(
    "a",
    [
        Option({"usd": 2_000_000_000}, name="large"),
        Option({"usd": 900_000_000, "neurons": 3}, least={"usd": 1}, grade=2, name="small"),
    ],
    by=moment("09:00:05"),
    labels={"user": "u", "key": "k"},
)


def held() -> tuple[Books, Held]:
    """Given a hold that got its second option, less than it asked for, on three budgets."""
    books = Books(plan=PLAN)
    books.at("09:00").send(ASK)
    assert isinstance(books.last, Held)
    assert (books.last.option, books.last.amounts) == (1, {"usd": 500_000_000, "neurons": 3})
    assert list(books.last.budgets) == ["shared", "users", "neurons"]
    return books, books.last


def nothing(books: Books) -> None:
    """It is open as it was."""


def others(books: Books) -> None:
    books.send(Hold("b", [Option({"usd": 10})], by=moment("09:00:05"), labels={}))
    books.settle("b", "0.000000007")


def asked_later(books: Books) -> None:
    books.send(msgspec.structs.replace(ASK, by=moment("09:01")))


def renewed(books: Books) -> None:
    books.at("09:01").send(Renew("a", 1, ttl_s=3_600))
    books.send(Renew("a", 2, amounts={"neurons": 9}))


def progress(books: Books) -> None:
    books.send(Settle("a", {"usd": 400_000_000}, final=False))


def another_unit(books: Books) -> None:
    """The hold is bound to a budget that its first answer did not name."""
    books.change(**PLAN.budgets, tokens=budget("50 tokens"))
    books.send(Settle("a", {"usd": 1, "tokens": 7}, final=False))


def another_plan(books: Books) -> None:
    books.change(shared=budget("5.00"), users=budget("0.70", each="user"))


@pytest.mark.parametrize("then", [nothing, others, asked_later, renewed, progress, another_unit, another_plan])
def test_an_open_hold_answers_as_at_first(then: Callable[[Books], None]) -> None:
    books, first = held()
    then(books)
    record = books.wallet.open["a"]
    assert record.first_answer() == first
    assert msgspec.json.encode(record.first_answer()) == msgspec.json.encode(first)
    assert load(books.wallet.dump()).open["a"].first_answer() == first
    if then is another_unit:
        assert [bound.meter.budget for bound in record.bound] == ["shared", "users", "neurons", "tokens"]


def test_a_stray_was_never_held() -> None:
    books = Books(plan=PLAN)
    books.estimate("a", "0.10")
    assert books.wallet.provisional["a"].first_answer() is None


def test_holds_with_the_same_labels_share_them() -> None:
    raw = msgspec.json.encode(
        AskMessage(asks=[ASK, msgspec.structs.replace(ASK, id="b"), Hold("c", [], 1, {"user": "v"})])
    )
    message = read(raw)
    assert message is not None
    one, other, third = message.asks
    assert isinstance(one, Hold)
    assert isinstance(other, Hold)
    assert isinstance(third, Hold)
    assert one.labels is other.labels
    assert list(one.labels.items()) == [("user", "u"), ("key", "k")]
    assert third.labels == {"user": "v"}
