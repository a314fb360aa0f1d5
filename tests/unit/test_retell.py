"""What an engine replays: taken in as it was told, unless it cannot have been told so."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import msgspec
import pytest
from wallets import SECOND, Books, budget, moment

from bench.day import Day
from engine.core import chain
from engine.core.messages import Entry, Held, Hold, Invalid, Lapsed, Line, Option, Settle, Settled, Told
from engine.core.retell import retell
from engine.core.tell import read
from engine.core.wallet import Wallet
from engine.errors import Untrusted
from engine.journal import Stored
from engine.replaying import replay

CENT = 10_000_000
LABELS = {"user": "u"}


def books() -> Books:
    """A hold that lapses, one that is settled, and refusals of three kinds; the last message is the one to forge."""
    books = Books(jev=budget("1.00"), users=budget("0.50", each="user"), remember_s=3_600)
    books.at("09:00").send(hold("old", 10 * CENT))
    books.at("09:11").send(
        hold("a", 20 * CENT),
        hold("b", 90 * CENT),
        Settle("a", {"usd": 15 * CENT}),
        Settle("a", {"usd": 16 * CENT}),
        Settle("gone", {"usd": CENT}),
        hold("c", 0),
    )
    return books


def hold(id: str, amount: int) -> Hold:
    return Hold(id, [Option({"usd": amount})], by=moment("09:12"), labels=LABELS)


def changed(entry: Entry, place: int, **changes: object) -> Entry:
    """The entry with one outcome told otherwise."""
    out = list(entry.out)
    out[place] = msgspec.structs.replace(out[place], **changes)
    return msgspec.structs.replace(entry, out=out)


def line(entry: Entry, place: int, name: str, **changes: object) -> Entry:
    held = entry.out[place]
    assert isinstance(held, Held)
    other = msgspec.structs.replace(held.budgets[name], **changes)
    return changed(entry, place, budgets={**held.budgets, name: other})


def left(entry: Entry, **changes: object) -> Entry:
    settled = entry.out[2]
    assert isinstance(settled, Settled)
    other = msgspec.structs.replace(settled.left["jev"], **changes)
    return changed(entry, 2, left={**settled.left, "jev": other})


def left_out(entry: Entry) -> Line:
    held = entry.out[0]
    assert isinstance(held, Held)
    return held.budgets["jev"]


def with_outcome(entry: Entry, place: int, outcome: object) -> Entry:
    out = [*entry.out[:place], outcome, *entry.out[place + 1 :]]
    return msgspec.structs.replace(entry, out=out)


FORGED: dict[str, Callable[[Entry], Entry]] = {
    "of another message": lambda entry: msgspec.structs.replace(entry, seq=entry.seq + 1),
    "at another moment": lambda entry: msgspec.structs.replace(entry, at=entry.at + 1),
    "no lapse": lambda entry: msgspec.structs.replace(entry, lapsed=[]),
    "a lapse for less": lambda entry: msgspec.structs.replace(entry, lapsed=[Lapsed("old", {"usd": CENT})]),
    "an outcome less": lambda entry: msgspec.structs.replace(entry, out=entry.out[:-1]),
    "an outcome more": lambda entry: msgspec.structs.replace(entry, out=[*entry.out, entry.out[-1]]),
    "outcomes in another order": lambda entry: msgspec.structs.replace(entry, out=entry.out[::-1]),
    "more granted": lambda entry: changed(entry, 0, amounts={"usd": 21 * CENT}),
    "another id granted": lambda entry: changed(entry, 0, id="b"),
    "more left than there is": lambda entry: line(entry, 0, "jev", remaining=100 * CENT),
    "another limit": lambda entry: line(entry, 0, "jev", limit=200 * CENT),
    "in another period": lambda entry: line(entry, 0, "jev", start=0),
    "for another user": lambda entry: line(entry, 0, "users", each="v"),
    "in a budget that is not there": lambda entry: changed(entry, 0, budgets={"other": left_out(entry)}),
    "less charged": lambda entry: changed(entry, 2, charged={"usd": CENT}),
    "another settlement": lambda entry: changed(entry, 2, id="b"),
    "more left after a settlement": lambda entry: left(entry, remaining=100 * CENT),
    "a settlement that says nothing of a budget": lambda entry: changed(entry, 2, left={}),
    "settled instead of a conflict": lambda entry: with_outcome(entry, 3, entry.out[2]),
    "a conflict of another kind": lambda entry: changed(entry, 3, field="id"),
    "a stray for less": lambda entry: changed(entry, 4, charged={}),
    "refused for another reason": lambda entry: changed(entry, 1, why="busy"),
    "refused instead of held": lambda entry: with_outcome(entry, 0, entry.out[1]),
    "invalid instead of held": lambda entry: with_outcome(entry, 5, Invalid("c", "id", "no")),
}


def replay_books(told: Books, forged: Callable[[Entry], Entry]) -> bool:
    """Replays all as it was told, but the last message as it was forged."""
    wallet, takes = Wallet(), True
    for (seq, ts, raw), entry in zip(told.stream, told.entries, strict=True):
        assert takes, "nothing before the last message was forged"
        message = read(raw)
        assert message is not None
        takes = retell(wallet, seq=seq, ts=ts, asks=message.asks, entry=forged(entry) if seq == told.seq else entry)
    return takes


def test_the_story_is_what_the_forgeries_are_made_for() -> None:
    told = [type(outcome).__name__ for outcome in books().entries[-1].out]
    assert told == ["Held", "Exhausted", "Settled", "Conflict", "Stray", "Held"]
    assert [lapsed.hold for lapsed in books().entries[-1].lapsed] == ["old"]
    assert replay_books(books(), lambda entry: entry)


@pytest.mark.parametrize("forgery", FORGED)
def test_what_cannot_have_been_told_is_not_taken_in(forgery: str) -> None:
    assert not replay_books(books(), FORGED[forgery])


def test_a_grant_that_was_left_out_of_the_sums_is_noticed_at_the_next_that_touches_the_budget() -> None:
    """What one told alone does not show, the others do: here all that follow say that nothing was held before."""
    told = Books(jev=budget("1.00"))
    told.at("09:00").send(hold("a", 20 * CENT))
    told.send(hold("b", 20 * CENT))
    other = Books(jev=budget("1.00"))
    other.at("09:00").send()
    other.send(hold("b", 20 * CENT))
    assert not replay_books(told, lambda _: other.entries[-1])


def test_a_message_that_cannot_be_read_is_replayed_too() -> None:
    told = Books()
    told.at("09:00").send_raw(b"{")
    right = told.entries[-1]
    for entry, takes in ((right, True), (with_outcome(right, 0, Invalid("", "message", "no")), False)):
        wallet = Wallet()
        message = read(told.stream[0][2])
        assert message is not None
        assert retell(wallet, seq=1, ts=told.stream[0][1], asks=message.asks, entry=told.entries[0])
        assert retell(wallet, seq=2, ts=told.ts, asks=None, entry=entry) == takes


def test_what_is_not_there_is_not_taken_in_as_granted() -> None:
    told = Books(jev=budget("1.00"))
    told.at("09:00").send(hold("a", 20 * CENT))
    assert told.send(hold("b", 90 * CENT))[0].startswith("exhausted")
    first = told.entries[-2].out[0]
    assert isinstance(first, Held)
    for amount, remaining in ((90 * CENT, -10 * CENT), (90 * CENT, 0)):  # it adds up, or it fits
        lines = {"jev": msgspec.structs.replace(first.budgets["jev"], remaining=remaining)}
        held = msgspec.structs.replace(first, id="b", amounts={"usd": amount}, budgets=lines)
        assert not replay_books(told, lambda entry, held=held: with_outcome(entry, 0, held))  # type: ignore[misc]  # defaults bind the loop


def test_a_hold_that_is_open_already_is_not_held_again() -> None:
    told = Books(jev=budget("1.00"))
    told.at("09:00").send(hold("a", 20 * CENT))
    told.send(hold("a", 20 * CENT))
    first = told.entries[-2].out[0]
    assert isinstance(first, Held)
    lines = {
        name: msgspec.structs.replace(line, remaining=line.remaining - 20 * CENT)
        for name, line in first.budgets.items()
    }
    again = msgspec.structs.replace(first, budgets=lines)
    assert not replay_books(told, lambda entry: with_outcome(entry, 0, again))


def test_nothing_below_zero_is_granted_or_charged() -> None:
    """Such an ask is invalid. Told otherwise, it would make room."""
    told = Books(jev=budget("1.00"))
    told.at("09:00").send(hold("a", 20 * CENT))
    told.send(hold("b", -CENT), Settle("a", {"usd": -CENT}))
    first, wrong = told.entries[-2].out[0], told.entries[-1].out
    assert isinstance(first, Held)
    assert [type(outcome) for outcome in wrong] == [Invalid, Invalid]
    lines = {"jev": msgspec.structs.replace(first.budgets["jev"], remaining=81 * CENT)}
    held = msgspec.structs.replace(first, id="b", amounts={"usd": -CENT}, budgets=lines)
    assert not replay_books(told, lambda entry: with_outcome(entry, 0, held))
    told = Books(jev=budget("1.00"))
    told.at("09:00").send(hold("a", 0))
    told.send(Settle("a", {"usd": 0}))
    below = Books(jev=budget("1.00"))
    below.at("09:00").send(hold("a", 0))
    below.send(Settle("a", {"usd": -CENT}))
    settled = told.entries[-1].out[0]
    assert isinstance(settled, Settled)
    room = {"jev": msgspec.structs.replace(settled.left["jev"], remaining=101 * CENT)}
    more = msgspec.structs.replace(settled, charged={"usd": -CENT}, left=room)
    assert not replay_books(below, lambda entry: with_outcome(entry, 0, more))


# --- as it lies on the stream -----------------------------------------------------------------------------------------


def test_a_day_of_everything_is_replayed_to_the_same_wallet() -> None:
    day = Day(6_000, seed=3)
    wallet, waiting, linked, replayed = Wallet("main"), deque[Stored](), chain.GENESIS, 0
    skipped = {stored.seq for stored in Day(6_000, seed=3) if stored.kind == "ask" and b'"h-ahead"' in stored.data}
    for stored in day:
        if stored.kind != "told":
            waiting.append(stored)
            continue
        recorded = replay(
            stored,
            waiting,
            wallet,
            after=linked,
            skips=lambda seq, ts: seq in skipped,
            hear=lambda seq, asks: None,
        )
        linked, replayed = recorded.chain, replayed + 1
        assert not waiting
    assert replayed > 10
    assert wallet.dump() == day.record.wallet.dump()


def told_of(
    entry: Entry, asked: Stored, *, n: int = 1, upto: int | None = None, after: bytes = chain.GENESIS
) -> Stored:
    """As any engine would write it, with a chain that holds."""
    told = Told(engine="other", upto=asked.seq if upto is None else upto, n=n, told=[entry])
    body = msgspec.json.encode(told).removesuffix(b"}")
    linked = chain.link(after, [(asked.seq, asked.ts, asked.data)], body)
    return Stored(asked.seq + 1, asked.ts, "told", chain.seal(body, linked))


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (lambda entry, asked: told_of(entry, asked), ""),
        (lambda entry, asked: told_of(entry, asked, after=bytes(31) + b"1"), "the chain is broken"),
        (lambda entry, asked: told_of(entry, asked, n=2), "does not cover the asks"),
        (lambda entry, asked: told_of(entry, asked, n=0), "does not cover the asks"),
        (lambda entry, asked: told_of(entry, asked, upto=9), "does not cover the asks"),
        (lambda entry, asked: told_of(msgspec.structs.replace(entry, at=entry.at - SECOND), asked), "told otherwise"),
        (lambda entry, asked: Stored(2, asked.ts, "told", b"{}"), "cannot be read"),
    ],
    ids=["as told", "another chain", "too many", "none", "of others", "another moment", "no told"],
)
def test_a_told_that_is_not_of_the_messages_before_it_is_not_trusted(
    made: Callable[[Entry, Stored], Stored], why: str
) -> None:
    told = Books()
    seq, ts, raw = told.stream[0]
    asked = Stored(seq, ts, "admin", raw)
    heard: list[int] = []

    def take() -> None:
        replay(
            made(told.entries[0], asked),
            deque([asked]),
            Wallet(),
            after=chain.GENESIS,
            skips=lambda seq, ts: False,
            hear=lambda seq, asks: heard.append(seq),
        )

    if why:
        with pytest.raises(Untrusted, match=why):
            take()
    else:
        take()
        assert heard == [1]
