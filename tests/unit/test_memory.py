"""What is remembered, how long, and that forgetting frees what it should."""

import msgspec
import pytest
from wallets import SECOND, TODAY, Books, budget, moment

from engine.core import closed as closed_holds
from engine.core import memory
from engine.core.closed import Closed, ClosedRecord, Columns
from engine.core.memory import Memory
from engine.core.wallet import Refusal, SettleId

# --- the memory itself ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("at", "found"), [(9, True), (10, False), (11, False)])
def test_a_record_is_found_until_it_is_forgotten(at: int, found: bool) -> None:
    remembered: Memory[SettleId] = Memory()
    remembered.put("x", SettleId("a", forget_at=10))
    assert (remembered.get("x", at) is not None) == found
    assert (list(remembered.items(at)) != []) == found


def test_a_later_record_stands_in_for_an_earlier_one_in_whatever_bucket() -> None:
    remembered: Memory[SettleId] = Memory(bucket_s=1)
    remembered.put("x", SettleId("a", forget_at=SECOND))
    remembered.put("y", SettleId("b", forget_at=5 * SECOND))
    remembered.put("x", SettleId("c", forget_at=9 * SECOND))
    assert remembered.get("x", 0) == SettleId("c", forget_at=9 * SECOND)
    assert [id for id, _ in remembered.items(0)] == ["y", "x"]


def test_what_is_taken_out_is_gone() -> None:
    remembered: Memory[SettleId] = Memory()
    remembered.put("x", SettleId("a", forget_at=10))
    remembered.pop("x")
    remembered.pop("never there")
    assert remembered.get("x", 0) is None


def test_whole_buckets_are_let_go_once_all_in_them_is_forgotten() -> None:
    remembered: Memory[SettleId] = Memory(bucket_s=1)
    for second in range(5):
        remembered.put(f"x{second}", SettleId("a", forget_at=second * SECOND))
    remembered.let_go(2 * SECOND)
    assert len(remembered._buckets) == 2
    assert [id for id, _ in remembered.items(0)] == ["x3", "x4"]


def test_a_full_bucket_is_followed_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "BUCKET_IDS_MAX", 2)
    remembered: Memory[SettleId] = Memory()
    for n in range(5):
        remembered.put(f"x{n}", SettleId("a", forget_at=10))
    assert [len(bucket.ids) for bucket in remembered._buckets] == [2, 2, 1]
    assert remembered.get("x0", 0) is not None


def test_buckets_do_not_decide_what_is_remembered() -> None:
    one: Memory[SettleId] = Memory(bucket_s=1)
    other: Memory[SettleId] = Memory(bucket_s=3600)
    for n in (5, 1, 9, 3, 7):
        for remembered in (one, other):
            remembered.put(f"x{n}", SettleId("a", forget_at=n * SECOND))
            remembered.let_go(4 * SECOND)
    assert sorted(one.items(4 * SECOND)) == sorted(other.items(4 * SECOND))


# --- closed holds, which are kept in columns --------------------------------------------------------------------------


RECORDS = {
    "b": ClosedRecord("settled", {"usd": 12}, changed=1, forget_at=30),
    "a": ClosedRecord("corrected", {"usd": 0, "tokens": 2**63 - 1}, changed=2, forget_at=30, at_progress=True),
    "d": ClosedRecord("settled", {"tokens": 7, "usd": 3}, changed=3, forget_at=20),
    "c": ClosedRecord("settled", {}, changed=4, forget_at=40, ended_by=0),
    "e": ClosedRecord("stray", {"usd": 5}, changed=5, forget_at=50),
}


def remembering() -> Closed:
    closed = Closed()
    for id, record in RECORDS.items():
        closed.put(id, record)
    return closed


def read_back(closed: Closed, at: int = 0) -> Closed:
    """As a snapshot brings it back."""
    restored = Closed()
    restored.load(msgspec.json.decode(msgspec.json.encode(closed.dump(at)), type=list[Columns]))
    return restored


@pytest.mark.parametrize("closed", [remembering(), read_back(remembering()), read_back(read_back(remembering()))])
def test_a_closed_hold_is_found_as_it_was_put_in(closed: Closed) -> None:
    for id, record in RECORDS.items():
        assert closed.get(id, record.forget_at - 1) == record
        assert closed.get(id, record.forget_at) is None
    found = closed.get("a", 0)
    assert found is not None
    assert list(found.charged) == ["usd", "tokens"]  # in the order it was told
    assert closed.get("aa", 0) is None
    assert closed.get("f", 0) is None
    assert dict(closed.items(20)) == {id: record for id, record in RECORDS.items() if id != "d"}


def test_what_is_read_back_lets_go_and_takes_in_like_the_first() -> None:
    first = remembering()
    second = read_back(first)
    for closed in (first, second):
        closed.reopen("b")
        closed.reopen("never there")
        closed.put("a", ClosedRecord("settled", {"usd": 1}, changed=9, forget_at=60))
        closed.put("c", ClosedRecord("settled", {}, changed=4, forget_at=40, ended_by=7))
        closed.put("g", ClosedRecord("settled", {"jpy": 1}, changed=9, forget_at=70))
        assert closed.get("b", 0) is None
        assert closed.get("a", 59) == ClosedRecord("settled", {"usd": 1}, changed=9, forget_at=60)
        assert closed.get("c", 0) == ClosedRecord("settled", {}, changed=4, forget_at=40, ended_by=7)
    assert second.dump(10) == first.dump(10) == read_back(second, 10).dump(10)
    assert second.dump(40) == first.dump(40)
    second.let_go(50)
    assert len(second._buckets) == 1
    assert [id for id, _ in second.items(0)] == ["a", "c", "g"]


@pytest.mark.parametrize("most", [1, 2, 3, 250_000])
def test_a_dump_of_closed_holds_does_not_depend_on_how_they_lay_in_buckets(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(memory, "BUCKET_IDS_MAX", most)
        closed = remembering()
        restored = read_back(closed)
    assert closed.dump(0) == restored.dump(0) == remembering().dump(0)


@pytest.mark.parametrize("places", [1, 2, 7, 2**21])
def test_ids_that_share_a_place_in_the_table_of_marks_are_told_apart(
    places: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thirty buckets, of which the older are let go: at any time more than there are bits."""
    monkeypatch.setattr(closed_holds, "MARKS", places)
    monkeypatch.setattr(memory, "BUCKET_IDS_MAX", 2)
    closed, plain = Closed(), Memory[ClosedRecord]()
    for n in range(60):
        record = ClosedRecord("settled", {"usd": n}, changed=n, forget_at=30 + n, ended_by=n if n % 5 == 0 else None)
        for remembered in (closed, plain):
            remembered.put(f"x{n}", record)
            remembered.let_go(n)
        if n % 10 == 0:
            closed.reopen(f"x{n}")
            plain.pop(f"x{n}")
        assert [closed.get(f"x{k}", n) for k in range(62)] == [plain.get(f"x{k}", n) for k in range(62)]
    assert [read_back(closed, 59).get(f"x{k}", 59) for k in range(62)] == [plain.get(f"x{k}", 59) for k in range(62)]


def test_a_mark_is_taken_off_before_another_bucket_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "BUCKET_IDS_MAX", 1)
    closed = Closed()
    for n in range(30):
        closed.add(f"x{n}", ClosedRecord("settled", {"usd": n}, changed=n, forget_at=n + 2))
        closed.let_go(n)
        marked = len(closed._marks) - closed._marks.count(0)
        assert 1 <= marked <= 8
    assert len(closed._buckets) == 2


def test_an_id_that_ends_again_and_again_does_not_pile_up_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "BUCKET_IDS_MAX", 4)
    closed = Closed()
    for n in range(100):
        closed.put("x", ClosedRecord("settled", {}, changed=n, forget_at=1_000, ended_by=n))
    assert len(closed._buckets) == 1
    assert closed.get("x", 0) == ClosedRecord("settled", {}, changed=99, forget_at=1_000, ended_by=99)


# --- what the wallet remembers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tick", "told"), [(-1, "again: settled"), (0, "stray 0.30"), (1, "stray 0.30")])
def test_a_closed_hold_is_remembered_for_the_time_in_the_plan(tick: int, told: str) -> None:
    books = Books(remember_s=60)
    books.at("09:00").hold("a", "0.40")
    books.settle("a", "0.30")
    assert books.at("09:01", tick=tick).settle("a", "0.30") == told


@pytest.mark.parametrize(("tick", "told"), [(-1, "corrected 0.30, 0.10 back (late, corrected)"), (0, "forgotten")])
def test_a_lapse_can_be_corrected_until_it_is_forgotten(tick: int, told: str) -> None:
    books = Books(remember_s=60)
    books.at("09:00").hold("a", "0.40", ttl_s=30)
    books.at("09:00:30").tick()
    assert books.at("09:01:30", tick=tick).settle("a", "0.30", held_at="09:00") == told


def test_raising_a_provisional_amount_does_not_prolong_the_memory() -> None:
    books = Books(remember_s=60)
    books.at("09:00").hold("a", "0.40")
    books.estimate("a", "0.10")
    books.at("09:00:59").estimate("a", "0.20")
    assert books.at("09:01").estimate("a", "0.30") == "stray 0.30 for now"


def test_a_correction_starts_the_memory_anew() -> None:
    books = Books(remember_s=60)
    books.at("09:00").hold("a", "0.40")
    books.estimate("a", "0.10")
    books.at("09:00:59").settle("a", "0.20")
    assert books.at("09:01:58").settle("a", "0.20") == "again: corrected"


@pytest.mark.parametrize(("tick", "told"), [(-1, "again"), (0, "adjusted")])
def test_what_an_operator_did_is_remembered_as_long(tick: int, told: str) -> None:
    books = Books(remember_s=60)
    books.at("09:00").adjust("0.20", id="j")
    assert books.at("09:01", tick=tick).adjust("0.20", id="j") == told


def test_a_settle_id_is_bound_as_long_as_it_is_remembered() -> None:
    books = Books(remember_s=60)
    books.at("09:00").settle("x", "0.10", id="s")
    assert books.at("09:00:59").settle("y", "0.10", id="s") == "conflict: id"
    assert books.at("09:01").settle("y", "0.10", id="s") == "stray 0.10"


def test_an_open_hold_is_never_forgotten() -> None:
    books = Books(remember_s=1)
    books.at("09:00").hold("a", "0.40")
    books.hold("a", "0.40", wait_s=600)
    assert books.at("09:09").settle("a", "0.30") == "settled 0.30, 0.10 back"


@pytest.mark.parametrize(("tick", "kept"), [(-1, True), (0, False)])
def test_a_meter_is_dropped_when_its_day_is_over_and_its_memory_too(tick: int, kept: bool) -> None:
    books = Books(remember_s=60)
    books.at("09:00").hold("a", "0.40")
    books.settle("a", "0.40")
    books.at("2026-12-01 00:01", tick=tick).tick()
    assert (("jev", None, TODAY) in books.wallet.meters()) == kept


def test_what_is_past_the_memory_does_not_come_back_when_the_plan_remembers_longer() -> None:
    """It was charged once. Whether it is asked again, nobody remembers: charged anew it would count twice."""
    books = Books(remember_s=60)
    books.at("09:00").settle("x", "0.30")
    books.at("09:05").apply(msgspec.structs.replace(books.plan, remember_s=3600))
    assert books.at("09:06").settle("x", "0.30", held_at="09:00") == "forgotten"
    assert books.settled() == "0.30"


def test_a_meter_waits_for_its_last_hold() -> None:
    books = Books(remember_s=60)
    books.at("23:50").hold("a", "0.40", ttl_s=1200)
    books.at("2026-12-01 00:05").settle("a", "0.40")
    assert books.settled(day=TODAY) == "0.40"
    books.tick()
    assert ("jev", None, TODAY) not in books.wallet.meters()


def test_the_total_of_all_time_is_never_dropped() -> None:
    books = Books(ever=budget("1.00", per="total"), remember_s=60)
    books.at("09:00").hold("a", "0.40")
    books.settle("a", "0.40")
    books.at("2027-12-01 00:01").tick()
    assert books.settled("ever") == "0.40"


def test_a_refusal_does_not_outlive_its_attempt() -> None:
    books = Books()
    books.at("09:00").hold("a", "9.00", by="09:00:05")
    books.at("09:00:05", tick=1).tick()
    found: Refusal | None = books.wallet.refused.get("a", moment("09:00:05", tick=1))
    assert found is None
