"""The read models say what the meters say, keep every day's totals, and are the same however often they are folded."""

from __future__ import annotations

import msgspec
import pytest
from wallets import TODAY, Books, amount, amounts, budget, moment

from engine.core.documents import DayTotals, Life, Sealed, Status
from engine.core.messages import Entry, KnownUse, Loss, Option
from engine.core.plan import Budget, LapsePolicy, Plan, Tier, Tiers
from engine.core.restore import NotRestoredError, load
from engine.core.tell import read
from projector.days.bucket import documents
from projector.days.details import _Open
from projector.projection import Projection

TOMORROW = "2026-12-01"


class Shown(Books):
    """A wallet whose every entry goes to a projection as well; after each the two are compared.

    And to one that was put down and restored just before it: it must come to the same.
    """

    def __init__(self, *, remember_s: int = 48 * 3600, on_lapse: LapsePolicy = "charge", **budgets: Budget) -> None:
        self.projection = Projection("main")
        self.raw: list[bytes] = []
        plan = Plan(budgets or {"jev": budget("1.00")}, remember_s=remember_s, on_lapse=on_lapse)
        super().__init__(plan=plan)

    def send_raw(self, raw: bytes) -> Entry:
        entry = super().send_raw(raw)
        self.raw.append(raw)
        restored = Projection.restored(load(self.projection.wallet.dump()), self.projection.beside())
        fold(restored, self.seq, raw, entry)
        fold(self.projection, self.seq, raw, entry)
        assert remembered(restored) == remembered(self.projection)
        assert self.projection.wallet.dump() == self.wallet.dump()
        self._compare()
        return entry

    def _compare(self) -> None:
        """Every period that still has meters has totals that are their sums."""
        sums: dict[tuple[str, str], tuple[int, int, int]] = {}
        for meter in self.wallet.metering.values():
            settled, held, extra = sums.get((meter.budget, meter.period), (0, 0, 0))
            sums[meter.budget, meter.period] = settled + meter.settled, held + meter.held, extra + meter.extra
        for (name, period), figures in sums.items():
            totals = self.projection.totals[name, period]
            assert (totals.settled, totals.held, totals.extra) == figures, (name, period)
        for shown in self.status().budgets:
            figures = self.wallet.meters().get((shown.name, None, shown.period), (0, 0, 0, 0))[:3]
            assert (shown.settled, shown.held, shown.extra) == figures

    def day(self, day: str = TODAY, *, budget: str = "jev") -> DayTotals:
        return self.projection.totals[budget, day]

    def status(self, at: str | None = None) -> Status:
        return self.projection.status(moment(at) if at is not None else self.ts)

    def life(self, id: str) -> Life:
        life = self.projection.life(id)
        assert life is not None, f"{id} is not known"
        return life


def remembered(projection: Projection) -> dict[str, object]:
    """All of it, but for which documents must be written, and what of dropped meters it has not let go yet."""
    meters = projection.wallet.metering
    books, details = projection.books, projection.details
    seen = {key: books._seen[key] for key, meter in meters.items() if meter.used or key in books._seen}
    known = {
        "wallet": projection.wallet.dump(),
        "books": _all_of(books, by_key=books.by_key, sealed=books.sealed, _unsealed=books._unsealed, _seen=seen),
        "details": _all_of(
            details,
            final=details.final,
            _open={key: _all_of_open(one) for key, one in details._open.items()},
            _ends=sorted(details._ends),
            _seq=...,  # these are those of the message that is folded
            _at=...,
            _horizon=...,
            _zone=...,
        ),
        "wallet_days": _all_of(projection.wallet_days, days=projection.wallet_days.days),
        "differences": _all_of(projection.differences, by_hold=projection.differences.by_hold),
        "lives": _all_of(projection.lives, _closed=projection.lives.dump(projection.wallet.at)),
        "memos": _all_of(
            projection.memos,
            by_id=projection.memos.by_id,
            _named={name: list(numbered.ids.items()) for name, numbered in projection.memos._named.items()},
            _number=projection.memos._number,
            _ends=...,  # with those of what was corrected since; what counts stands in `by_id`
        ),
        "outcomes": projection.outcomes,
        "lapsed": projection.lapsed,
    }
    assert vars(projection).keys() == known.keys(), "what it remembers must be restored, and compared here"
    return known


def _all_of(part: object, **known: object) -> dict[str, object]:
    """What a part remembers, but for its wallet and for which documents must be written."""
    assert vars(part).keys() - {"_wallet", "_details", "dirty"} == known.keys()
    return known


def _all_of_open(one: _Open) -> tuple[object, ...]:
    one.document()  # brings the newest point up to date
    assert {*one.__slots__} == {"course", "seq", "spenders", "totals", "written"}
    spenders = one.spenders
    assert {*spenders.__slots__} == {"_all", "_beyond", "_rows", "_who", "more_labels"}
    return one.totals, one.course, one.seq, spenders.known()


def fold(projection: Projection, seq: int, raw: bytes, entry: Entry) -> None:
    message = read(raw)
    stored = msgspec.json.decode(msgspec.json.encode(entry), type=Entry)
    projection.fold(seq=seq, asks=message.asks if message is not None else None, entry=stored)


def usd(written: str) -> int:
    return amount(written)[1]


# --- a day's totals ---------------------------------------------------------------------------------------------------


def test_a_day_shows_what_was_held_and_settled_and_the_most_that_was_used() -> None:
    shown = Shown()
    shown.at("09:00").hold("a", "0.40")
    shown.hold("b", "0.30")
    assert (shown.day().held, shown.day().settled, shown.day().peak) == (usd("0.70"), 0, usd("0.70"))
    shown.at("09:01").settle("a", "0.10")
    shown.release("b")
    day = shown.day()
    assert (day.held, day.settled, day.peak) == (0, usd("0.10"), usd("0.70"))
    assert (day.holds, day.settles, day.seq, day.limit) == (2, 2, shown.seq, usd("1.00"))
    assert (day.start, day.end) == (moment("00:00"), moment(f"{TOMORROW} 00:00"))


def test_asking_twice_is_counted_once() -> None:
    shown = Shown()
    shown.at("09:00").hold("a", "0.40", by="09:10")
    shown.hold("a", "0.40", by="09:10")
    shown.settle("a", "0.10")
    shown.settle("a", "0.10")
    assert (shown.day().holds, shown.day().settles) == (1, 1)


def test_c19_a_call_over_midnight_counts_to_the_day_of_its_hold() -> None:
    shown = Shown()
    shown.at("23:59:59").hold("a", "0.40")
    shown.at(f"{TOMORROW} 00:00:03").hold("b", "0.20")
    assert (shown.day().held, shown.day(TOMORROW).held) == (usd("0.40"), usd("0.20"))
    shown.settle("a", "0.35")
    assert (shown.day().settled, shown.day().held) == (usd("0.35"), 0)
    assert (shown.day(TOMORROW).settled, shown.day(TOMORROW).held) == (0, usd("0.20"))


def test_a_charge_to_a_day_whose_meter_is_gone_still_finds_its_day() -> None:
    shown = Shown(remember_s=3600)
    shown.at("09:00").hold("a", "0.40")
    shown.settle("a", "0.10")
    shown.at("2026-12-02 09:00").tick()
    assert ("jev", None, TODAY) not in shown.wallet.meters()
    shown.adjust("0.05", period=TODAY)
    shown.adjust("-0.02", period=TODAY)
    assert shown.day().settled == usd("0.13")


def test_a_charge_to_a_day_that_never_had_a_meter_makes_its_day() -> None:
    shown = Shown(remember_s=3600)
    shown.at("2026-12-02 09:00").adjust("0.05", period=TODAY)
    day = shown.day()
    assert (day.settled, day.start, day.end) == (usd("0.05"), moment("00:00"), moment(f"{TOMORROW} 00:00"))


def test_old_periods_are_kept_however_many_there_are() -> None:
    shown = Shown(remember_s=60, minute=budget("1.00", per="minute"))
    for minute in range(60):
        shown.at(f"09:{minute:02}").hold(f"h{minute}", "0.10")
        shown.settle(f"h{minute}", "0.05")
        shown.projection.books.dirty.clear()  # written
    shown.at("12:00").adjust("0.01", budget="minute", period="2026-11-30T09:00Z")
    assert len(shown.projection.totals) == 60
    assert {totals.settled for totals in shown.projection.totals.values()} == {usd("0.05"), usd("0.06")}


def test_refusals_are_counted_by_why_and_the_first_exhaustion_is_kept() -> None:
    shown = Shown()
    shown.at("09:00").hold("a", "0.60")
    shown.at("09:01").hold("b", "2.00")  # never
    shown.at("09:02").hold("c", "0.50")  # busy
    assert shown.day().first_exhausted_at is None
    shown.settle("a", "0.60")
    shown.at("09:03").hold("d", "0.50")  # spent
    shown.at("09:04").hold("e", "0.50")
    assert shown.day().refused == {"never": 1, "busy": 1, "spent": 2}
    assert shown.day().first_exhausted_at == moment("09:03")
    assert shown.status().budgets[0].first_exhausted_at == moment("09:03")


def test_refusals_by_tier_are_counted_and_exhaust_a_budget_where_no_grade_is_left() -> None:
    shown = Shown()
    shown.apply(msgspec.structs.replace(shown.plan, tiers=Tiers([Tier(500_000, 0), Tier(900_000, 1)])))
    shown.at("09:00").hold("a", "0.60")
    shown.at("09:01").hold("b", [Option(amounts("0.01"), grade=0)])  # grade 1 would do
    assert (shown.day().refused, shown.day().first_exhausted_at) == ({"tier": 1}, None)
    shown.hold("c", "0.35")
    shown.at("09:02").hold("d", [Option(amounts("0.01"), grade=1)])
    assert (shown.day().refused, shown.day().first_exhausted_at) == ({"tier": 2}, moment("09:02"))


def test_lapses_overruns_and_strays_are_counted() -> None:
    shown = Shown()
    shown.at("09:00").hold("a", "0.10", ttl_s=60)
    shown.hold("b", "0.10")
    shown.settle("b", "0.15")
    shown.at("09:02").settle("nobody", "0.05")
    day = shown.day()
    assert (day.lapsed, day.overruns, day.strays) == (1, 1, 1)
    assert day.settled == usd("0.30")


def test_a_lapse_that_is_corrected_is_no_second_lapse() -> None:
    shown = Shown()
    shown.at("09:00").hold("a", "0.40", ttl_s=60)
    shown.at("09:02").settle("a", "0.10")
    assert (shown.day().lapsed, shown.day().settled, shown.day().held) == (1, usd("0.10"), 0)


def test_a_renewal_and_a_unit_nobody_held_reach_their_totals() -> None:
    shown = Shown(jev=budget("1.00"), neurons=budget("1000 neurons"))
    shown.at("09:00").hold("a", "0.10")
    shown.renew("a", 1, "0.30")
    assert shown.day().held == usd("0.30")
    shown.settle("a", "0.10 + 300 neurons")
    assert shown.day(budget="neurons").settled == amount("300 neurons")[1]
    assert (shown.day().peak, shown.day().settled) == (usd("0.30"), usd("0.10"))


def test_a_budget_for_each_user_has_one_total_of_all() -> None:
    shown = Shown(user=budget("1.00", each="user"))
    shown.at("09:00").hold("a", "0.40", user="ann")
    shown.hold("b", "0.50", user="bob")
    shown.settle("a", "0.10")
    day = shown.day(budget="user")
    assert (day.settled, day.held, day.holds) == (usd("0.10"), usd("0.50"), 2)
    assert shown.status().budgets == [], "what single users spend is no public figure"


def test_a_budget_that_starts_at_zero_again_keeps_what_the_day_has_cost() -> None:
    shown = Shown()
    shown.at("09:00").hold("a", "0.40")
    shown.settle("a", "0.40")
    shown.change(jev=budget("1.00", where={"provider": "jev"}))
    shown.hold("b", "0.20", provider="jev")
    assert (shown.day().settled, shown.day().held) == (usd("0.40"), usd("0.20"))
    assert shown.status().budgets[0].settled == 0


def test_the_gap_to_the_providers_figure_is_its_own_number() -> None:
    shown = Shown(jev=budget("1.00", source="cloudflare"))
    shown.at("09:00").hold("a", "0.10")
    shown.settle("a", "0.10")
    shown.at("09:05").observe("0.50")
    assert (shown.day().settled, shown.day().extra, shown.day().peak) == (usd("0.10"), usd("0.40"), usd("0.50"))
    observed = shown.status().budgets[0].observed
    assert observed is not None
    assert (observed.source, observed.figure, observed.as_of) == ("cloudflare", usd("0.50"), moment("09:05"))


def test_what_a_loss_raised_reaches_its_day() -> None:
    shown = Shown()
    shown.at("09:00").hold("a", "0.40")
    shown.send(Loss("l", 5, 9, "a flipped bit", used=[KnownUse("jev", TODAY, usd("0.90"))]))
    assert (shown.day().extra, shown.day().peak) == (usd("0.50"), usd("0.90"))


def test_a_changed_limit_is_shown_from_the_next_decision_on() -> None:
    shown = Shown()
    shown.at("09:00").hold("a", "0.10")
    shown.change(jev=budget("2.00"))
    assert shown.status().budgets[0].limit == usd("2.00")
    shown.hold("b", "0.10")
    assert shown.day().limit == usd("2.00")


# --- the wallet at a glance -------------------------------------------------------------------------------------------


def test_the_status_has_the_shared_budgets_in_the_periods_of_the_moment() -> None:
    shown = Shown(jev=budget("1.00"), month=budget("9.00", per="month"), user=budget("1.00", each="user"))
    shown.at("23:59").hold("a", "0.40", user="ann")
    status = shown.status()
    assert [(one.name, one.period, one.held) for one in status.budgets] == [
        ("jev", TODAY, usd("0.40")),
        ("month", "2026-11", usd("0.40")),
    ]
    assert (status.wallet, status.seq, status.open_holds) == ("main", shown.seq, 1)
    assert (status.as_of, status.plan) == (shown.ts, shown.wallet.plan_digest)
    later = shown.status(f"{TOMORROW} 00:00")
    assert [(one.name, one.period, one.used, one.earlier_open) for one in later.budgets] == [
        ("jev", TOMORROW, 0, 1),
        ("month", "2026-12", 0, 1),
    ]
    assert later.budgets[0].resets_at == moment("2026-12-02 00:00")


def test_the_status_never_looks_back_before_what_is_folded() -> None:
    shown = Shown()
    shown.at("12:00").hold("a", "0.40")
    assert shown.status("09:00").as_of == moment("12:00")


def test_a_freeze_is_shown_until_its_end() -> None:
    shown = Shown()
    shown.at("09:00").freeze("jev", until="10:00")
    assert [frost.scope for frost in shown.status("09:59:59").frozen] == ["jev"]
    assert shown.status("10:00").frozen == []


def test_before_the_first_plan_there_is_nothing_to_show() -> None:
    status = Projection("main").status(moment("09:00"))
    assert (status.plan, status.budgets, status.seq) == ("", [], 0)


# --- one call ---------------------------------------------------------------------------------------------------------


def test_a_call_is_known_open_and_closed_until_the_wallet_forgets_it() -> None:
    shown = Shown(remember_s=3600)
    held_in = shown.at("09:00").seq + 1
    shown.hold("a", "0.40")
    shown.progress("a", "0.10")
    open_ = shown.life("a")
    assert (open_.state, open_.first, open_.at) == ("open", held_in, moment("09:00"))
    assert (open_.amounts, open_.progress, open_.charged) == (
        {"usd": usd("0.40")},
        {"usd": usd("0.10")},
        {"usd": usd("0.10")},
    )
    assert (open_.expires_at, open_.periods) == (moment("09:10"), {"jev": TODAY})
    shown.at("09:05").settle("a", "0.30")
    assert (shown.life("a").state, shown.life("a").charged) == ("settled", {"usd": usd("0.30")})
    shown.at("10:04:59").tick()
    assert shown.life("a").state == "settled"
    shown.at("10:05").tick()
    assert shown.projection.life("a") is None


@pytest.mark.parametrize(
    ("state", "charged"), [("lapsed", "0.40"), ("estimated", "0.20"), ("corrected", "0.10"), ("stray", "0.05")]
)
def test_every_way_a_call_can_end_is_known(state: str, charged: str) -> None:
    shown = Shown()
    shown.at("09:00")
    if state != "stray":
        shown.hold("a", "0.40")
    match state:
        case "lapsed":
            shown.at("09:10").tick()
        case "estimated":
            shown.estimate("a", "0.20")
        case "corrected":
            shown.at("09:10").settle("a", "0.10")
        case _:
            shown.settle("a", "0.05")
    assert (shown.life("a").state, shown.life("a").charged) == (state, {"usd": usd(charged)})


def test_an_id_nobody_held_is_not_known() -> None:
    shown = Shown()
    shown.at("09:00").hold("a", "9.00")
    assert shown.projection.life("a") is None
    assert shown.projection.life("") is None


def test_an_id_that_is_used_again_shows_its_newest_call() -> None:
    shown = Shown()
    shown.at("09:00").hold("a", "0.40", by="09:01")
    shown.release("a", by="09:01")
    shown.at("09:02").hold("a", "0.20", by="09:03")
    assert (shown.life("a").state, shown.life("a").amounts) == ("open", {"usd": usd("0.20")})


# --- folding ----------------------------------------------------------------------------------------------------------


def test_m18_folded_again_from_the_beginning_it_gives_the_same_documents() -> None:
    shown = Shown(jev=budget("1.00"), user=budget("0.50", each="user"), minute=budget("1.00", per="minute"))
    for number in range(40):
        shown.at(f"{9 + number // 10:02}:{number % 10:02}").hold(f"h{number}", "0.07", user=f"u{number % 3}", ttl_s=90)
        if number % 3:
            shown.settle(f"h{number - 1}", "0.09", user="u9")
        if number == 20:
            shown.change(jev=budget("3.00"))
    again = Projection("main")
    for seq, (raw, entry) in enumerate(zip(shown.raw, shown.entries, strict=True), start=1):
        fold(again, seq, raw, entry)
        if seq % 7 == 0:
            again.books.dirty.clear()
            for key in again.details.unwritten():  # written meanwhile
                again.details.written(key, again.details.upto(key))
    assert documents(again) == documents(shown.projection)
    assert again.status(shown.ts) == shown.status()


def test_what_has_changed_since_it_was_written_is_dirty_and_nothing_else() -> None:
    shown = Shown()
    shown.at("09:00").hold("a", "0.40")
    shown.projection.books.dirty.clear()
    shown.tick()
    assert shown.projection.books.dirty == set()
    shown.at(f"{TOMORROW} 09:00").hold("b", "0.40")
    assert shown.projection.books.dirty == {("jev", TODAY), ("jev", TOMORROW)}, "the first lapsed, the second began"


def test_a_message_that_cannot_be_read_is_counted_and_changes_nothing_but_the_sequence() -> None:
    shown = Shown()
    shown.at("09:00").hold("a", "0.40")
    before = documents(shown.projection)
    shown.send_raw(b"not an ask message")
    after = documents(shown.projection)
    assert after.pop(f"{TODAY}.wallet.day") == b'{"day":"2026-11-30","seq":3,"invalid":1}'
    assert after == before
    assert shown.status().seq == shown.seq


def test_totals_of_another_schema_are_not_restored() -> None:
    shown = Shown()
    shown.at("09:00").hold("a", "0.40")
    beside = shown.projection.beside()
    for other, why in ((beside.replace(b'"schema":5', b'"schema":2'), "schema 2"), (b"", "no totals")):
        with pytest.raises(NotRestoredError, match=why):
            Projection.restored(load(shown.wallet.dump()), other)


def test_h5_what_was_decided_before_a_restart_is_counted_after_it() -> None:
    shown = Shown()
    shown.at("09:00").hold("a", "0.40")
    shown.hold("b", "9.00")
    shown.send_raw(b"not an ask message")
    shown.at("10:00").tick()
    counted = {name: count for name, count in shown.projection.outcomes.items() if not name.startswith("plan")}
    assert counted == {"hold held": 1, "hold exhausted": 1, "message invalid": 1}
    assert shown.projection.lapsed == 1
    restored = Projection.restored(load(shown.wallet.dump()), shown.projection.beside())
    assert restored.outcomes == shown.projection.outcomes
    assert restored.lapsed == 1


def test_after_a_restart_every_document_is_written_again() -> None:
    shown = Shown()
    shown.at("09:00").hold("a", "0.40")
    shown.projection.books.dirty.clear()
    restored = Projection.restored(load(shown.wallet.dump()), shown.projection.beside())
    assert restored.books.dirty == {("jev", TODAY)}


# --- sealed days ------------------------------------------------------------------------------------------------------


def test_a_day_shows_by_what_and_when_it_was_sealed() -> None:
    shown = Shown()
    shown.at("09:00").settle("a", "0.30")
    assert shown.day().sealed is None
    shown.at(f"{TOMORROW} 00:00:05").tick()
    assert shown.day().sealed == Sealed(TODAY, moment(f"{TOMORROW} 00:00"), shown.seq, moment(f"{TOMORROW} 00:00:05"))
    assert (shown.day().seq, shown.day().settled_after_seal) == (shown.seq, 0)
    assert ("jev", TODAY) in shown.projection.books.dirty


def test_what_is_charged_to_a_sealed_day_counts_there_and_is_shown_apart() -> None:
    shown = Shown(jev=budget("1.00", source="cloudflare"))
    shown.at("23:00").hold("a", "0.40", ttl_s=7200)
    shown.hold("b", "0.20", ttl_s=10)
    shown.at(f"{TOMORROW} 00:30").settle("a", "0.25")
    shown.settle("b", "0.05")  # a correction of its lapse
    shown.adjust("-0.01")
    shown.observe("0.50")
    day = shown.day()
    assert (day.settled, day.settled_after_seal) == (usd("0.29"), usd("0.09"))
    assert (day.extra, day.extra_after_seal) == (usd("0.21"), usd("0.21"))
    assert ("jev", TOMORROW) not in shown.projection.totals


def test_what_lapses_at_the_very_end_comes_after_the_seal_and_what_was_due_before_does_not() -> None:
    shown = Shown()
    shown.at("23:59:00").hold("a", "0.40", ttl_s=30)
    shown.hold("b", "0.20", ttl_s=60)
    shown.at(f"{TOMORROW} 08:00").tick()
    assert (shown.day().settled, shown.day().settled_after_seal) == (usd("0.60"), usd("0.20"))


def test_a_day_minus_what_came_after_is_what_its_seal_says() -> None:
    shown = Shown()
    shown.at("22:00").hold("a", "0.40", ttl_s=86_400)
    shown.settle("x", "0.20")
    shown.at(f"{TOMORROW} 00:00").settle("a", "0.70")
    [seal] = shown.entries[-1].sealed
    assert shown.day().settled - shown.day().settled_after_seal == seal.budgets["jev"].settled == usd("0.20")


def test_a_month_is_sealed_by_the_day_that_ends_it_and_all_time_never() -> None:
    shown = Shown(
        month=budget("9.00", per="month"), ever=budget("9.00", per="total"), tokyo=budget("9.00", zone="Asia/Tokyo")
    )
    shown.at("12:00").settle("a", "0.30")
    shown.at("16:00").tick()
    totals = shown.projection.totals
    assert totals["month", "2026-11"].sealed is None
    assert totals["tokyo", "2026-11-30"].sealed is None  # it ended at 15:00, within the wallet's day
    shown.at(f"{TOMORROW} 00:00").tick()
    days = {key: one.sealed.day if one.sealed is not None else "" for key, one in totals.items()}
    assert days["month", "2026-11"] == days["tokyo", "2026-11-30"] == TODAY
    assert days["ever", "total"] == ""


def test_a_period_that_is_first_charged_after_its_seal_names_the_seal_of_its_own_day() -> None:
    shown = Shown()
    for day in ("2026-12-01", "2026-12-02", "2026-12-03"):
        shown.at(f"{day} 00:00").tick()
    shown.settle("lost", "0.30", held_at="2026-12-01 12:00")
    day = shown.day(TOMORROW)
    assert (day.sealed.day if day.sealed is not None else "", day.settled_after_seal) == (TOMORROW, usd("0.30"))
