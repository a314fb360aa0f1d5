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


def renewed_plain(books: Books) -> None:
    books.send(Renew("p", 1, amounts={"usd": 50}))


def progress_plain(books: Books) -> None:
    books.send(Settle("p", {"usd": 3}, final=False))


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


PLAIN = Hold("p", [Option({"usd": 5, "neurons": 0})], by=moment("09:00:05"), labels={"user": "u", "key": "k"})
SAME = msgspec.structs.replace(PLAIN, by=PLAIN.by + 1, price_book="another", labels={"key": "k", "user": "u"})
OTHERS = {
    "other amounts": (msgspec.structs.replace(PLAIN, options=[Option({"usd": 6, "neurons": 0})]), "options"),
    "a least": (msgspec.structs.replace(PLAIN, options=[Option({"usd": 5, "neurons": 0}, {"usd": 1})]), "options"),
    "a grade": (msgspec.structs.replace(PLAIN, options=[Option({"usd": 5, "neurons": 0}, grade=0)]), "options"),
    "a name": (msgspec.structs.replace(PLAIN, options=[Option({"usd": 5, "neurons": 0}, name="n")]), "options"),
    "more options": (msgspec.structs.replace(PLAIN, options=PLAIN.options * 2), "options"),
    "a time": (msgspec.structs.replace(PLAIN, ttl_s=600), "ttl_s"),
    "another end": (msgspec.structs.replace(PLAIN, on_lapse="charge"), "on_lapse"),
    "other labels": (msgspec.structs.replace(PLAIN, labels={"user": "v", "key": "k"}), "labels"),
}


@pytest.mark.parametrize("restored", [False, True])
@pytest.mark.parametrize("then", [nothing, renewed_plain, progress_plain])
@pytest.mark.parametrize("kept", ["plain", *OTHERS])
def test_an_open_hold_says_in_what_another_ask_differs(
    kept: str, then: Callable[[Books], None], restored: bool
) -> None:
    """Whether its record keeps the ask or shows it by itself."""
    books = Books(plan=PLAN)
    books.at("09:00")
    first = PLAIN if kept == "plain" else OTHERS[kept][0]
    books.send(first)
    record = books.wallet.open["p"]
    assert (record.ask is None) == (kept in ("plain", "other amounts", "other labels"))
    then(books)
    if restored:
        books.wallet = load(books.wallet.dump())
    told = {other: books.send(msgspec.structs.replace(ask, by=books.ts)) for other, (ask, _) in OTHERS.items()}
    if kept == "plain":
        assert told == {other: [f"conflict: {field}"] for other, (_, field) in OTHERS.items()}
        assert books.send(msgspec.structs.replace(SAME, by=books.ts)) == ["again: open"]
    else:
        assert told[kept] == ["again: open"]
        assert books.send(msgspec.structs.replace(PLAIN, by=books.ts)) == [f"conflict: {OTHERS[kept][1]}"]


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
