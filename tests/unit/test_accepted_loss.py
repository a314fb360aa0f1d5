"""What a loss says of each budget: the most that anybody still knows, and a freeze where nobody knows enough."""

from __future__ import annotations

from wallets import TODAY, Books, budget, moment

from commonpurse.sources import Source
from commonpurse.survey import Survey, loss_of
from engine.core import limits
from engine.core.messages import KnownUse, Loss
from engine.core.plan import Plan
from engine.losses import Contradiction

CENT = 10_000_000
SEEN = 240  # the told up to which the stream once went


def survey(*sources: Source, books: Books | None = None) -> Survey:
    """What is left of a day: alice has settled 0.20, then sequences 101 to 240 were lost."""
    left = books or Books(site=budget("9.00"), user=budget("1.00", each="user"))
    left.at("09:00").hold("a", "0.20", user="alice")
    left.settle("a", "0.20")
    gap = Contradiction(101, SEEN, "sequences 101 to 240 are missing")
    return Survey(left.wallet, last=100, claimed=SEEN, now=moment("09:01"), denied=[gap], sources=list(sources))


def documents(*, told: int = SEEN, site: int, user: int) -> Source:
    sums = {("site", TODAY): site * CENT, ("user", TODAY): user * CENT}
    return Source("documents", told, sums=sums)


def snapshot(*, told: int = SEEN, generation: int = 0, **used: int) -> Source:
    meters: dict[tuple[str, str | None, str], int] = {("site", None, TODAY): sum(used.values()) * CENT}
    meters |= {("user", name, TODAY): cents * CENT for name, cents in used.items()}
    return Source("a snapshot", told, meters, generations={"site": generation, "user": generation})


def said(loss: Loss) -> tuple[list[tuple[str, str | None, int]], list[str]]:
    return [(use.budget, use.each, use.used // CENT) for use in loss.used], loss.freeze


def accepted(found: Survey) -> tuple[list[tuple[str, str | None, int]], list[str]]:
    return said(loss_of(found, by_whom="ops", reason="a test"))


def test_a_snapshot_knows_each_user_and_nothing_is_frozen() -> None:
    found = survey(documents(site=90, user=90), snapshot(alice=50, bob=40))
    assert accepted(found) == ([("site", None, 90), ("user", "alice", 50), ("user", "bob", 40)], [])


def test_documents_alone_know_a_sum_so_what_each_user_has_used_is_frozen() -> None:
    assert accepted(survey(documents(site=90, user=90))) == ([("site", None, 90)], ["user"])


def test_even_where_the_sum_is_what_is_left_since_alice_may_have_used_what_bob_gave_back() -> None:
    assert accepted(survey(documents(site=20, user=20))) == ([("site", None, 20)], ["user"])


def test_documents_in_which_nobody_used_anything_freeze_nothing() -> None:
    assert accepted(survey(documents(site=20, user=0))) == ([("site", None, 20)], [])


def test_an_older_snapshot_raises_and_what_came_after_it_is_frozen() -> None:
    found = survey(documents(site=90, user=90), snapshot(told=200, alice=50, bob=30))
    assert accepted(found) == ([("site", None, 90), ("user", "alice", 50), ("user", "bob", 30)], ["user"])


def test_where_nobody_saw_to_the_end_all_is_raised_and_frozen() -> None:
    found = survey(documents(told=200, site=70, user=70), snapshot(told=220, alice=50, bob=30))
    used, frozen = accepted(found)
    assert used == [("site", None, 80), ("user", "alice", 50), ("user", "bob", 30)]
    assert frozen == ["site", "user"]


def test_of_several_the_highest_counts_and_what_is_left_is_not_named() -> None:
    found = survey(snapshot(told=200, alice=10, bob=30), snapshot(alice=20, bob=20))
    assert accepted(found) == ([("site", None, 40), ("user", "bob", 30)], [])


def test_a_budget_that_began_anew_is_not_raised_by_what_was_used_before() -> None:
    books = Books(site=budget("9.00"), user=budget("1.00", each="user"))
    tokyo = budget("9.00", zone="Asia/Tokyo")
    books.apply(Plan({"site": tokyo, "user": budget("1.00", each="user")}))
    found = survey(snapshot(alice=50), books=books)
    assert accepted(found) == ([("user", "alice", 50)], [])


def test_more_users_than_one_loss_may_name_are_frozen_together() -> None:
    many = {f"u{number}": 1 for number in range(limits.LOSS_METERS_MAX)}
    used, frozen = accepted(survey(snapshot(**many)))
    assert (used, frozen) == ([("site", None, limits.LOSS_METERS_MAX)], ["user"])


def test_the_loss_is_one_that_is_taken() -> None:
    found = survey(documents(site=90, user=90), snapshot(alice=50, bob=40))
    loss = loss_of(found, by_whom="ops", reason="a test")
    assert loss.used[0] == KnownUse("site", TODAY, 90 * CENT)
    books = Books(site=budget("9.00"), user=budget("1.00", each="user"))
    assert books.at("09:02").send(loss) == ["done"]
    assert (books.left("site"), books.left("user", each="alice"), books.left("user", each="bob")) == (
        "8.10",
        "0.50",
        "0.60",
    )
