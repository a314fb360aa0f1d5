"""Calls with a memo as the projector notes them: what becomes of each, how long it is known, page by page."""

from __future__ import annotations

import msgspec
import pytest

from engine.core.documents import Noted, NotedPage
from engine.core.messages import AnyAsk, ApplyPlan, Hold, Option, Renew, Settle
from engine.core.plan import Budget, Plan
from engine.core.tell import tell
from engine.core.wallet import Wallet
from projector import memos
from projector.memos import AllNoted, Memos
from projector.projection import Projection

NS = 1_000_000_000
AT = 1_796_047_500 * NS
PLAN = Plan(budgets={"shared": Budget("usd", 10**12)}, remember_s=3600)


class Story:
    """A wallet that is told what it is asked, and what is noted of it."""

    def __init__(self) -> None:
        self.wallet, self.projection = Wallet("main"), Projection("main")
        self.at, self.seq = AT, 0
        self.tell(ApplyPlan("plan", PLAN, ""))

    def tell(self, *asks: AnyAsk, after_s: int = 0) -> None:
        self.at, self.seq = self.at + after_s * NS, self.seq + 1
        entry = tell(self.wallet, seq=self.seq, ts=self.at, asks=asks)
        self.projection.fold(seq=self.seq, asks=asks, entry=entry)

    def hold(self, id: str, memo: str = "why", ttl_s: int = 60) -> None:
        self.tell(Hold(id, [Option({"usd": 100})], self.at + NS, {"team": "blue"}, ttl_s, memo=memo))

    @property
    def memos(self) -> Memos:
        return self.projection.memos

    def noted(self, id: str) -> Noted:
        noted = self.memos.get(id)
        assert noted is not None
        return noted

    def page(self, *, beyond: int = 0, newest: bool = False, namespace: str = "ns") -> list[str]:
        return [noted.id for noted in self.memos.page(NotedPage(namespace, beyond, newest))]


@pytest.fixture
def story() -> Story:
    return Story()


def test_a_hold_with_a_memo_is_noted_and_one_without_is_not(story: Story) -> None:
    story.hold("ns/1", "why")
    story.hold("ns/2", "")
    assert story.noted("ns/1") == Noted(
        "ns/1", 1, "why", {"team": "blue"}, 2, AT, "open", {"usd": 100}, expires_at=AT + 60 * NS
    )
    assert story.memos.get("ns/2") is None


def test_renewals_leave_their_memos_in_order(story: Story) -> None:
    story.hold("ns/1")
    story.tell(Renew("ns/1", 1, 90, memo="one"))
    story.tell(Renew("ns/1", 1, 91, memo="refused"))
    story.tell(Renew("ns/1", 5, 120, {"usd": 150}, memo="two"))
    noted = story.noted("ns/1")
    assert (noted.renewed, noted.renewals, noted.amounts) == (["one", "two"], 5, {"usd": 150})
    assert noted.expires_at == AT + 120 * NS


def test_a_settle_ends_it_and_its_memo_says_by_what(story: Story) -> None:
    story.hold("ns/1")
    story.tell(Settle("ns/1", {"usd": 10}, final=False, memo="so far"))
    assert (story.noted("ns/1").state, story.noted("ns/1").ended_at) == ("open", 0)
    story.tell(Settle("ns/1", {"usd": 40}, memo="done"), after_s=3)
    story.tell(Settle("ns/1", {"usd": 41}, memo="too late"))
    noted = story.noted("ns/1")
    assert (noted.state, noted.charged, noted.ended, noted.ended_at) == ("settled", {"usd": 40}, "done", AT + 3 * NS)
    assert not noted.released


def test_a_release_is_told_from_a_settle_at_nothing(story: Story) -> None:
    story.hold("ns/1")
    story.hold("ns/2")
    story.tell(Settle("ns/1", release=True), Settle("ns/2", {"usd": 0}))
    assert (story.noted("ns/1").released, story.noted("ns/2").released) == (True, False)


def test_a_lapse_ends_it_until_it_is_corrected(story: Story) -> None:
    story.hold("ns/1")
    story.tell(after_s=60)
    assert (story.noted("ns/1").state, story.noted("ns/1").charged) == ("lapsed", {"usd": 100})
    story.tell(Settle("ns/1", {"usd": 40}, id="ev/1", memo="event"))
    assert (story.noted("ns/1").state, story.noted("ns/1").ended) == ("corrected", "event")
    assert (story.noted("ev/1").hold, story.noted("ev/1").memo) == ("ns/1", "event")


def test_a_stray_is_noted_under_its_own_id(story: Story) -> None:
    story.tell(Settle("ev/1", {"usd": 40}, labels={"team": "blue"}, memo="event"))
    assert (story.noted("ev/1").state, story.noted("ev/1").charged) == ("stray", {"usd": 40})
    assert story.page(namespace="ev") == ["ev/1"]
    story.tell(Settle("beside/1", {"usd": 40}, id="ev/2", memo="event"))
    assert (story.noted("ev/2").hold, story.memos.get("beside/1")) == ("beside/1", None)


def test_it_is_forgotten_when_the_wallet_forgets_it(story: Story) -> None:
    story.hold("ns/1", ttl_s=600)
    story.hold("ns/2")
    story.tell(Settle("ns/1", {"usd": 1}))
    story.tell(after_s=60)
    story.tell(Settle("ns/2", {"usd": 1}), after_s=1800)
    story.tell(after_s=1739)
    assert story.page() == ["ns/1", "ns/2"]
    story.tell(after_s=1)
    assert story.page() == ["ns/2"]  # it was corrected later
    story.tell(after_s=1860)
    assert story.page() == []
    assert story.memos.by_id == {}


def test_an_id_that_was_given_up_and_held_again_is_the_newest(story: Story) -> None:
    story.hold("ns/1", "first")
    story.hold("ns/2")
    story.tell(Settle("ns/1", release=True, by=story.at + NS))
    story.at += 2 * NS
    story.hold("ns/1", "second")
    assert story.noted("ns/1").memo == "second"
    assert story.page() == ["ns/2", "ns/1"]


def test_pages_go_either_way_within_a_namespace(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memos, "PAGE_MAX", 2)
    for number in range(1, 6):
        story.hold(f"ns/{number}")
        story.hold(f"other/{number}")
    assert story.page() == ["ns/1", "ns/2"]
    assert story.page(beyond=story.noted("ns/2").number) == ["ns/3", "ns/4"]
    assert story.page(newest=True) == ["ns/5", "ns/4"]
    assert story.page(newest=True, beyond=story.noted("ns/2").number) == ["ns/1"]
    assert story.page(namespace="nobody") == []


def test_dropped_numbers_do_not_pile_up(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memos, "PAGE_MAX", 2)
    for number in range(20):
        story.hold(f"ns/{number}")
        story.tell(Settle(f"ns/{number}", {"usd": 1}))
    story.hold("ns/last", ttl_s=7200)
    story.tell(after_s=3601)
    assert story.page() == ["ns/last"]
    assert len(story.memos._named["ns"]._numbers) <= 4


def test_what_a_snapshot_brings_back_goes_on_alike(story: Story) -> None:
    story.hold("ns/1")
    story.hold("ns/2")
    story.tell(Renew("ns/2", 1, 90, memo="more"), Settle("ns/1", {"usd": 1}, memo="done"))
    restored = Memos(msgspec.json.decode(msgspec.json.encode(story.memos.dump()), type=AllNoted))
    assert restored.dump() == story.memos.dump()
    story.projection.memos = restored
    story.hold("ns/3")
    assert story.noted("ns/3").number == 3
    story.tell(after_s=7200)
    story.tell(after_s=7200)
    assert story.memos.by_id == {}


def test_beyond_what_is_kept_those_that_ended_first_are_forgotten(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memos, "NOTED_MAX", 3)
    story.hold("ns/open", ttl_s=7200)
    for number in range(1, 6):
        story.hold(f"ns/{number}")
        story.tell(Settle(f"ns/{number}", {"usd": 1}), after_s=1)
    story.tell()
    assert story.page() == ["ns/open", "ns/4", "ns/5"]


def test_memos_of_renewals_are_bounded(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memos, "RENEWALS_MAX", 2)
    story.hold("ns/1")
    for n in range(1, 5):
        story.tell(Renew("ns/1", n, 60 + n, memo=f"{n}"))
    assert (story.noted("ns/1").renewed, story.noted("ns/1").renewals) == (["1", "2"], 4)
