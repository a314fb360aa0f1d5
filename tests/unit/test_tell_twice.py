"""Every ask sent twice changes nothing the second time: one example of each ask and each outcome it can get.

(The harness also sends every message of every other test twice.)
"""

from collections.abc import Callable
from typing import get_args

import pytest
from wallets import TODAY, Books, budget, moment

from engine.core.messages import (
    Adjust,
    AnyAsk,
    AnyOutcome,
    ApplyPlan,
    Clock,
    Freeze,
    Hold,
    KnownUse,
    Loss,
    Observe,
    Option,
    Renew,
    Restore,
    Revoke,
    Settle,
    Thaw,
)  # fmt: skip
from engine.core.plan import Guard, Plan, digest

CENT = 10_000_000
BY = moment("09:00:05")
PLAN = Plan(
    budgets={"jev": budget("1.00", source="cloudflare")}, guards={"storm": Guard("session", 1, 3_600, "cool", 7_200)}
)
NEXT = Plan(budgets={"jev": budget("2.00", source="cloudflare")})


def hold(id: str, cents: int, **labels: str) -> Hold:
    return Hold(id, [Option({"usd": cents * CENT})], BY, labels)


def settle(hold: str, cents: int, *, final: bool = True, estimated: bool = False, id: str = "") -> Settle:
    return Settle(hold, {"usd": cents * CENT}, final=final, estimated=estimated, id=id)


def given() -> Books:
    """Given, at 09:00, a hold in every state, a freeze, revocations, a cooling, a refusal, a figure, an adjustment."""
    books = Books(plan=PLAN)
    books.at("08:50").hold("lapsed", "0.05")
    books.at("09:00").hold("open", "0.20")
    books.hold("renewed", "0.01")
    books.send(Renew("renewed", 1))
    books.hold("done", "0.05")
    books.settle("done", "0.04", id="s")
    books.hold("estimated", "0.05")
    books.estimate("estimated", "0.03")
    books.hold("ended", "0.05", by=BY)
    books.release("ended", by=BY)
    books.settle("stray", "0.01")
    books.hold("warm", "0.00", session="s1")
    books.hold("cold", "0.00", session="s1")
    books.hold("refused", "0.80", by=BY)
    books.send(
        Freeze("f", "user=frozen", ""), Revoke("r", "key", "k1", ""), Revoke("r2", "key", "k2", ""),
        Observe("o", "jev", TODAY, 1, 0, "cloudflare"), Adjust("j", "jev", TODAY, CENT, ""),
    )  # fmt: skip
    return books


CASES: list[tuple[AnyAsk, str]] = [
    (hold("new", 10), "held 0.10"),
    (hold("new", 0), "held 0.00"),
    (hold("new", 90), "exhausted: spent, 0.65 fits"),
    (hold("new", 1, user="frozen"), "frozen: user=frozen"),
    (hold("new", 1, key="k1"), "revoked: key=k1"),
    (hold("new", 1, session="s1"), "cooling: session=s1"),
    (Hold("new", [Option({"usd": 1})], moment("08:59")), "late"),
    (hold("lapsed", 5), "closed: lapsed 0.05"),
    (hold("done", 5), "closed: settled 0.04"),
    (hold("estimated", 5), "closed: estimated 0.03"),
    (hold("ended", 5), "closed: settled 0.00"),
    (Hold("ended", [Option({"usd": 1})], BY + 1), "held 0.000000001"),
    (hold("open", 20), "again: open"),
    (hold("refused", 80), "again: refused"),
    (hold("open", 21), "conflict: options"),
    (hold("", 1), "invalid: id"),
    (settle("open", 15), "settled 0.15, 0.05 back"),
    (settle("open", 25), "settled 0.25 (overrun)"),
    (settle("open", 15, id="own"), "settled 0.15, 0.05 back"),
    (settle("open", 5, final=False), "open 0.05"),
    (settle("open", 0, final=False), "again: open"),
    (settle("open", 5, estimated=True), "estimated 0.05, 0.15 back (estimated)"),
    (Settle("open", release=True), "settled 0.00, 0.20 back"),
    (Settle("open", release=True, by=BY), "settled 0.00, 0.20 back"),
    (Settle("open", release=True, by=1), "again: open"),
    (settle("lapsed", 3), "corrected 0.03, 0.02 back (late, corrected)"),
    (settle("lapsed", 6, final=False), "lapsed 0.06 (late, overrun)"),
    (settle("lapsed", 1, final=False), "lapsed 0.05 (late)"),
    (settle("lapsed", 0, final=False), "again: lapsed"),
    (settle("done", 9, final=False), "again: settled"),
    (settle("estimated", 6, estimated=True), "estimated 0.06 (overrun, estimated)"),
    (settle("estimated", 2), "corrected 0.02, 0.01 back (corrected)"),
    (settle("done", 4), "again: settled"),
    (settle("done", 5), "conflict: amounts"),
    (settle("open", 5, id="s"), "conflict: id"),
    (settle("nobody", 5), "stray 0.05"),
    (settle("nobody", 5, final=False), "stray 0.05 for now"),
    (settle("stray", 1), "again: stray"),
    (Settle("nobody", release=True), "stray nothing"),
    (Settle("nobody", {"usd": 1}, held_at=1), "forgotten"),
    (Settle("open"), "invalid: amounts"),
    (Renew("open", 1), "held 0.20, renewal 1"),
    (Renew("open", 1, 1200, {"usd": 30 * CENT}), "held 0.30, renewal 1"),
    (Renew("open", 1, None, {"usd": 99 * CENT}), "exhausted: spent, 0.85 fits"),
    (Renew("renewed", 1), "again: open"),
    (Renew("renewed", 1, 9), "conflict: n"),
    (Renew("lapsed", 1), "closed: lapsed 0.05"),
    (Renew("nobody", 1), "unknown"),
    (Renew("open", 0), "invalid: n"),
    (Observe("new", "jev", TODAY, 50 * CENT, 0, "cloudflare"), "observed, raised by 0.36"),
    (Observe("o", "jev", TODAY, 1, 0, "cloudflare"), "again"),
    (Observe("o", "jev", TODAY, 2, 0, "cloudflare"), "conflict: id"),
    (Observe("new", "jev", "2026", 1, 0, "cloudflare"), "invalid: period"),
    (Adjust("new", "jev", TODAY, -CENT, ""), "adjusted"),
    (Adjust("new", "jev", "2026-11-01", CENT, ""), "adjusted, 10000000 to jev of 2026-11-01"),
    (Adjust("j", "jev", TODAY, CENT, ""), "again"),
    (Adjust("j", "jev", TODAY, 2 * CENT, ""), "conflict: id"),
    (Adjust("new", "nobody", TODAY, CENT, ""), "invalid: budget"),
    (Freeze("new", "all", ""), "done"),
    (Freeze("f", "user=frozen", ""), "again"),
    (Freeze("f", "all", ""), "conflict: id"),
    (Freeze("new", "nobody", ""), "invalid: scope"),
    (Thaw("new", "user=frozen"), "done"),
    (Thaw("new", "all"), "again"),
    (Revoke("new", "user", "alice", ""), "done"),
    (Revoke("new", "key", "k1", ""), "again"),
    (Revoke("r", "key", "k3", ""), "conflict: id"),
    (Restore("new", "key", "k2"), "done"),
    (Restore("new", "session", "s1"), "done"),
    (Restore("new", "key", "k9"), "again"),
    (Loss("new", 5, 9, "", used=[KnownUse("jev", TODAY, 90 * CENT)], freeze=["jev"]), "done"),
    (Loss("new", 5, 9, "", used=[KnownUse("nobody", TODAY, 90 * CENT)]), "invalid: used.budget"),
    (Clock("new", 5, 9, ""), "done"),
    (Clock("new", 9, 9, ""), "invalid: to"),
    (ApplyPlan("new", NEXT, digest(PLAN)), "planned"),
    (ApplyPlan("new", PLAN, ""), "again"),
    (ApplyPlan("new", NEXT, "another"), "conflict: replaces"),
    (ApplyPlan("new", Plan(budgets={}), digest(PLAN)), "invalid: budgets"),
]  # fmt: skip


@pytest.mark.parametrize(("ask", "told"), CASES, ids=[f"{type(ask).__name__}: {told}" for ask, told in CASES])
@pytest.mark.parametrize("later", ["at once", "an hour later"])
def test_every_ask_sent_twice_changes_nothing_the_second_time(ask: AnyAsk, told: str, later: str) -> None:
    books = given()
    assert books.send(ask) == [told]
    if later == "an hour later":
        books.at("10:00").tick()
    before = facts(books)
    books.send(ask)
    assert facts(books) == before


def test_there_is_an_example_of_every_ask_and_every_outcome() -> None:
    told: set[type] = set()
    for ask, _ in CASES:
        books = given()
        books.send(ask)
        told.add(type(books.last))
    assert {type(ask) for ask, _ in CASES} == set(get_args(AnyAsk))
    assert told == set(get_args(AnyOutcome))


def facts(books: Books) -> tuple[object, ...]:
    wallet = books.wallet
    holds = {id: (record.state, record.granted, record.charged) for id, record in wallet.open.items()}
    return (
        wallet.meters(),
        holds,
        sorted(wallet.provisional),
        wallet.frozen,
        wallet.revoked,
        wallet.cooling,
        wallet.plan_digest,
    )


REPEATS: list[Callable[[Books], str]] = [
    lambda books: books.hold("new", "0.10", by=BY),
    lambda books: books.settle("open", "0.15"),
    lambda books: books.renew("open", 1, "0.30"),
]


@pytest.mark.parametrize("repeat", REPEATS)
def test_a_hundred_repeats_are_one(repeat: Callable[[Books], str]) -> None:
    books = given()
    repeat(books)
    before = facts(books)
    for _ in range(99):
        repeat(books)
    assert facts(books) == before
