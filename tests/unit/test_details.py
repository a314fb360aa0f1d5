"""Who spent each budget and when; what holds wasted; what conflicts show. Rows always add up to the totals."""

from __future__ import annotations

import msgspec
import pytest
from unit.test_projection import TOMORROW, Shown, fold, usd
from wallets import TODAY, amount, budget, moment

from engine.core.documents import Breakdown, DayTotals, Detail, Point, Series
from engine.core.messages import Adjust, Option, Renew, Settle
from projector.projection import Projection


class Detailed(Shown):
    """As `Shown`; after each entry every breakdown is added up, and every series."""

    def _compare(self) -> None:
        super()._compare()
        for key, totals in self.projection.totals.items():
            detail = self._detail(key)
            if detail is not None:
                assert detail.settled == totals.settled
                for one in detail.breakdowns:
                    rows = [*one.top, one.other]
                    assert sum(row.settled for row in rows) == totals.settled, (key, one.label)
                    assert sum(row.holds for row in rows) == totals.holds
                    assert sum(row.refused for row in rows) == sum(totals.refused.values())
                if detail.series is not None:
                    steps = [*([detail.series.before] if detail.series.before else []), *detail.series.points]
                    assert sum(step.settled for step in steps) == totals.settled
                    assert sum(step.holds for step in steps) == totals.holds
                    assert steps[-1].held == totals.held

    def _detail(self, key: tuple[str, str]) -> Detail | None:
        document = self.projection.details.document(key)
        return msgspec.json.decode(document, type=Detail) if document is not None else None

    def detail(self, day: str = TODAY, *, budget: str = "jev") -> Detail:
        found = self._detail((budget, day))
        assert found is not None, "it is final and was written"
        return found

    def by(self, label: str, day: str = TODAY, *, budget: str = "jev") -> Breakdown:
        return next(one for one in self.detail(day, budget=budget).breakdowns if one.label == label)

    def spent(self, label: str, day: str = TODAY, *, budget: str = "jev") -> dict[str | None, int]:
        """What each value has spent; "other" is what is in no row."""
        found = self.by(label, day, budget=budget)
        rows = {one.value: one.settled for one in found.top if one.settled}
        return rows | ({"other": found.other.settled} if found.other.settled else {})

    def series(self, day: str = TODAY, *, budget: str = "jev") -> Series:
        found = self.detail(day, budget=budget).series
        assert found is not None
        return found


# --- who spent it -----------------------------------------------------------------------------------------------------


def test_each_call_is_in_the_row_of_its_model_user_and_key() -> None:
    shown = Detailed()
    shown.at("09:00").hold("a", "0.30", model="large", user="ann", key="k1")
    shown.hold("b", "0.20", model="small", user="ann", key="k2")
    shown.hold("c", "0.90", model="large", user="bob", key="k2")  # does not fit
    shown.settle("a", "0.25")
    shown.settle("b", "0.05")
    assert shown.spent("model") == {"large": usd("0.25"), "small": usd("0.05")}
    assert shown.spent("user") == {"ann": usd("0.30")}
    assert shown.spent("key") == {"k1": usd("0.25"), "k2": usd("0.05")}
    assert {one.value: (one.holds, one.refused) for one in shown.by("user").top} == {"ann": (2, 0), "bob": (0, 1)}


def test_what_is_charged_late_lands_in_the_row_of_its_call() -> None:
    shown = Detailed()
    shown.at("23:00").hold("late", "0.20", ttl_s=7200, model="m1")
    shown.hold("lapses", "0.10", ttl_s=60, model="m2")
    shown.at("23:30").settle("stray", "0.07", model="m3")
    shown.estimate("guess", "0.02", model="m4")
    assert shown.spent("model") == {"m2": usd("0.10"), "m3": usd("0.07"), "m4": usd("0.02")}
    shown.at(f"{TOMORROW} 00:30").settle("late", "0.15")
    shown.settle("lapses", "0.04")  # corrected
    shown.settle("guess", "0.03")
    assert shown.spent("model") == {
        "m1": usd("0.15"), "m2": usd("0.04"), "m3": usd("0.07"), "m4": usd("0.03"),
    }  # fmt: skip


def test_what_an_operator_adjusts_is_of_no_call_and_shown_apart() -> None:
    shown = Detailed()
    shown.at("09:00").hold("a", "0.30", model="m1")
    shown.settle("a", "0.30")
    shown.adjust("-0.10")
    assert shown.spent("model") == {"m1": usd("0.30"), "other": usd("-0.10")}
    assert shown.day().adjusted == usd("-0.10")


def test_a_label_that_comes_late_has_all_earlier_calls_in_the_row_without_it() -> None:
    shown = Detailed()
    shown.at("09:00").hold("a", "0.30", model="m1")
    shown.settle("a", "0.20")
    shown.adjust("0.01")
    shown.hold("b", "0.10", team="blue")
    shown.settle("b", "0.10")
    assert shown.spent("team") == {None: usd("0.20"), "blue": usd("0.10"), "other": usd("0.01")}
    assert shown.spent("model") == {None: usd("0.10"), "m1": usd("0.20"), "other": usd("0.01")}


def test_only_so_many_labels_are_broken_down_and_where_a_caller_is_never() -> None:
    shown = Detailed()
    shown.at("09:00").hold("a", "0.10", origin="somewhere", **{f"tag{n}": "x" for n in range(7)})
    detail = shown.detail()
    assert [one.label for one in detail.breakdowns] == ["model", "user", "key", "tag0", "tag1", "tag2", "tag3", "tag4"]
    assert detail.more_labels


def test_past_the_top_values_are_added_up_and_counted() -> None:
    shown = Detailed(jev=budget("100"))
    shown.at("09:00")
    for number in range(25):
        shown.settle(f"s{number}", f"0.{number + 10}", user=f"u{number}")
    users = shown.by("user")
    assert [one.value for one in users.top] == [f"u{number}" for number in range(24, 4, -1)]
    assert (users.others, users.uncounted) == (5, False)
    assert users.other.settled == usd("0.60")


def test_past_the_values_that_are_told_apart_the_rest_is_said_to_be_uncounted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("projector.days.spenders.VALUES_MAX", 3)
    monkeypatch.setattr("projector.days.spenders.TOP", 2)
    monkeypatch.setattr("projector.days.spenders.WHO_MAX", 2)
    shown = Detailed(jev=budget("100"))
    shown.at("09:00")
    for name in ("a", "b", "c", "d", "e", "d", "a"):
        shown.settle(f"s{shown.seq}", "1", user=name)
    users = shown.by("user")
    assert [(one.value, one.settled) for one in users.top] == [("a", usd("2")), ("b", usd("1"))]
    assert (users.others, users.uncounted, users.other.settled) == (1, True, usd("4"))


def test_a_period_is_final_once_the_wallet_forgets_it_and_keeps_its_sum_in_the_totals() -> None:
    shown = Detailed(remember_s=3600)
    shown.at("09:00").hold("a", "0.40", model="m1")
    shown.settle("a", "0.30")
    details = shown.projection.details
    before = details.document(("jev", TODAY))
    shown.at("2026-12-02 09:00").tick()
    assert details.final == {("jev", TODAY): before}, "it waits to be written"
    details.final.clear()
    shown.adjust("0.05", period=TODAY)
    assert details.document(("jev", TODAY)) is None
    assert shown.day().settled == usd("0.35")


def test_what_was_written_and_is_final_is_let_go() -> None:
    shown = Detailed(remember_s=3600)
    shown.at("09:00").hold("a", "0.40")
    shown.settle("a", "0.30")
    shown.at("2026-12-02 09:00").tick()
    again = Projection("main")
    for seq, (raw, entry) in enumerate(zip(shown.raw, shown.entries, strict=True), start=1):
        fold(again, seq, raw, entry)
        for key in again.details.unwritten():
            again.details.written(key, again.details.upto(key))
    assert (again.details.final, again.details.in_memory()) == ({}, [])


# --- when -------------------------------------------------------------------------------------------------------------


def test_a_day_goes_by_five_minutes_in_which_something_happened() -> None:
    shown = Detailed()
    shown.at("09:01").hold("a", "0.30")
    shown.at("09:04:59").hold("b", "2")
    shown.at("09:05").settle("a", "0.10")
    shown.at("12:00").hold("c", "0.20", ttl_s=7200)
    assert shown.series() == Series(
        300,
        [
            Point(moment("09:00"), 0, usd("0.30"), 1, 1),
            Point(moment("09:05"), usd("0.10"), 0, 0, 0),
            Point(moment("12:00"), 0, usd("0.20"), 1, 0),
        ],
    )


def test_what_comes_after_a_day_is_one_point_at_its_end() -> None:
    shown = Detailed()
    shown.at("23:50").hold("a", "0.30", ttl_s=7200)
    shown.hold("b", "0.10", ttl_s=7200)
    shown.at(f"{TOMORROW} 00:30").settle("a", "0.10")
    shown.at(f"{TOMORROW} 01:00").settle("b", "0.05")
    assert shown.series().points[1:] == [Point(moment(f"{TOMORROW} 00:00"), usd("0.15"))]


def test_a_month_goes_by_the_wallets_days_and_an_hour_has_no_series() -> None:
    shown = Detailed(month=budget("9", per="month"), hour=budget("9", per="hour"), week=budget("9", per="week"))
    shown.at("09:00").settle("a", "0.10")
    shown.at("23:00").settle("b", "0.20")
    days = shown.series("2026-11", budget="month")
    assert (days.step_s, days.points) == (86_400, [Point(moment("00:00"), usd("0.30"))])
    assert shown.series("2026-W49", budget="week").step_s == 300
    assert shown.detail("2026-11-30T09Z", budget="hour").series is None


def test_too_many_points_are_added_up_at_the_front(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("projector.days.course.POINTS_MAX", 2)
    shown = Detailed(jev=budget("9", per="total"))
    for day in ("2026-11-30", "2026-12-01", "2026-12-02", "2026-12-03"):
        shown.at(f"{day} 12:00").settle(day, "0.10")
    series = shown.series("total")
    assert [point.at for point in series.points] == [moment("2026-12-02 00:00"), moment("2026-12-03 00:00")]
    assert series.before == Point(moment("2026-11-30 00:00"), usd("0.20"))


# --- what is counted --------------------------------------------------------------------------------------------------


def test_the_most_that_was_used_is_shown_with_its_moment() -> None:
    shown = Detailed()
    shown.at("09:00").hold("a", "0.40")
    shown.at("10:00").hold("b", "0.40")
    shown.at("11:00").release("a")
    shown.hold("c", "0.40")
    assert (shown.day().peak, shown.day().peak_at) == (usd("0.80"), moment("10:00"))


def test_open_holds_are_counted_in_every_period_they_count_to() -> None:
    shown = Detailed(jev=budget("1.00"), neurons=budget("1000 neurons"))
    shown.at("09:00").hold("a", "0.10")
    shown.hold("b", "0.10", ttl_s=60)
    assert shown.day().open_holds == 2
    shown.progress("a", "0.05 + 10 neurons")  # a unit it lacked: it holds that budget open too
    assert shown.day(budget="neurons").open_holds == 1
    shown.at("09:05").settle("a", "0.10 + 20 neurons")
    assert (shown.day().open_holds, shown.day(budget="neurons").open_holds) == (0, 0), "the other has lapsed"


def test_wasted_is_what_ended_holds_were_granted_and_did_not_cost() -> None:
    shown = Detailed()
    shown.at("09:00").hold("a", "0.30")
    shown.hold("b", "0.10")
    shown.hold("c", "0.20", ttl_s=60)
    assert shown.day().wasted == 0, "all are open"
    shown.settle("a", "0.10")
    shown.settle("b", "0.15")  # an overrun wastes nothing
    assert shown.day().wasted == usd("0.20")
    shown.at("09:05").tick()  # the lapse is charged in full
    assert shown.day().wasted == usd("0.20")
    shown.settle("c", "0.05")  # and corrected
    assert shown.day().wasted == usd("0.35")


def test_a_release_wastes_the_whole_grant_and_a_larger_grant_more() -> None:
    shown = Detailed()
    shown.at("09:00").hold("a", "0.30")
    shown.send(Renew("a", 1, amounts={"usd": usd("0.50")}))
    shown.release("a")
    assert shown.day().wasted == usd("0.50")


def test_every_flag_is_counted() -> None:
    shown = Detailed(jev=budget("9"), neurons=budget("1000 neurons"))
    shown.at("09:00").hold("a", "0.10 + 5 neurons")
    shown.settle("a", "0.10")  # says nothing of neurons
    shown.hold("b", "0.10")
    shown.estimate("b", "0.05")
    shown.settle("b", "0.20")  # corrected, and above the hold
    shown.hold("c", "0.10", ttl_s=1)
    shown.at("09:01").settle("c", "0.05 + 3 neurons")  # late, corrected, a unit it lacked
    day = shown.day()
    assert (day.unreported, day.estimated, day.corrected, day.overruns) == (1, 1, 2, 1)
    assert (day.late, day.unheld, shown.day(budget="neurons").unheld) == (1, 1, 1)


def test_refusals_for_other_reasons_than_money_are_the_days_and_a_frozen_budgets_its_own() -> None:
    shown = Detailed()
    shown.at("09:00").freeze("jev")
    shown.hold("a", "0.10", user="ann")
    shown.thaw("jev")
    shown.freeze("all")
    shown.hold("b", "0.10", user="ann")
    shown.thaw("all")
    shown.revoke("user", "ann")
    shown.hold("c", "0.10", user="ann")
    shown.hold("d", "0.10", by="08:00")
    shown.hold("e", "5.00")
    assert shown.day().refused == {"frozen": 1, "never": 1}
    decided = shown.projection.wallet_days.days[TODAY]
    assert decided.refused == {"frozen": 2, "revoked": 1, "late": 1, "never": 1}
    assert decided.seq == shown.seq


# --- what settles too late to be charged ------------------------------------------------------------------------------


def test_a_conflicting_settlement_is_unreconciled_until_an_adjust_names_its_hold() -> None:
    shown = Detailed()
    shown.at("09:00").hold("a", "0.30", model="m1")
    shown.settle("a", "0.10")
    assert shown.settle("a", "0.25").startswith("conflict")
    assert (shown.day().conflicts, shown.day().unreconciled, shown.day().unreconciled_holds) == (1, usd("0.15"), 1)
    assert shown.day().settled == usd("0.10"), "nothing is charged"
    shown.settle("a", "0.25")  # the same again
    assert (shown.day().conflicts, shown.day().unreconciled) == (2, usd("0.15"))
    shown.settle("a", "0.05")  # another figure takes its place
    assert (shown.day().unreconciled, shown.day().unreconciled_holds) == (usd("-0.05"), 1)
    shown.send(Adjust("j1", "jev", TODAY, usd("-0.05"), "the invoice says so", hold="b"))
    assert shown.day().unreconciled_holds == 1, "of another hold"
    shown.send(Adjust("j2", "jev", TODAY, usd("-0.05"), "the invoice says so", hold="a"))
    assert (shown.day().unreconciled, shown.day().unreconciled_holds) == (0, 0)
    shown.settle("a", "0.05")  # said once more: it was adjusted
    assert (shown.day().unreconciled, shown.day().unreconciled_holds) == (0, 0)


def test_two_differences_that_cancel_out_are_still_two() -> None:
    shown = Detailed()
    for id, said in (("a", "0.15"), ("b", "0.05")):
        shown.at("09:00").hold(id, "0.10")
        shown.settle(id, "0.10")
        shown.settle(id, said)
    assert (shown.day().unreconciled, shown.day().unreconciled_holds) == (0, 2)


def test_a_conflicting_guess_or_report_shows_no_difference() -> None:
    shown = Detailed()
    shown.at("09:00").hold("a", "0.30")
    shown.settle("a", "0.10")
    shown.estimate("a", "0.25")
    shown.send(Settle("a", {"usd": usd("0.20")}, final=False))
    assert (shown.day().conflicts, shown.day().unreconciled_holds) == (1, 0)


def test_the_oldest_difference_is_forgotten_by_name_and_stays_in_the_totals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("projector.days.differences.DIFFERENCES_MAX", 1)
    shown = Detailed()
    for id in ("a", "b"):
        shown.at("09:00").hold(id, "0.10")
        shown.settle(id, "0.10")
        shown.settle(id, "0.15")
    shown.send(Adjust("j", "jev", TODAY, usd("0.05"), "found", hold="a"))
    assert shown.day().unreconciled == usd("0.10")
    shown.send(Adjust("k", "jev", TODAY, usd("0.05"), "found", hold="b"))
    assert shown.day().unreconciled == usd("0.05")


# --- where one is in the stream ---------------------------------------------------------------------------------------


def test_a_days_messages_are_those_between_two_seals() -> None:
    shown = Detailed()
    shown.at("09:00").hold("a", "0.10", ttl_s=3600)
    first = shown.seq
    shown.at(f"{TOMORROW} 09:00").hold("b", "0.10", ttl_s=3600)
    span, running = shown.projection.span(TODAY), shown.projection.span(TOMORROW)
    assert span is not None
    assert running is not None
    assert (span.first, span.until, span.closed) == (1, first + 1, True)
    assert (running.first, running.until, running.closed) == (first + 1, shown.seq + 1, False)
    assert shown.projection.span("2026-12-05") is None


def test_a_period_of_a_budget_that_is_gone_has_totals_and_no_detail() -> None:
    shown = Detailed(remember_s=60, minute=budget("1.00", per="minute"))
    shown.at("12:00").adjust("0.01", budget="minute", period="2026-11-30T09:00Z")
    assert shown.projection.details.document(("minute", "2026-11-30T09:00Z")) is None
    assert isinstance(shown.projection.totals["minute", "2026-11-30T09:00Z"], DayTotals)
    assert amount("0.01")[1] == shown.projection.totals["minute", "2026-11-30T09:00Z"].settled


def test_a_refused_option_counts_once() -> None:
    shown = Detailed()
    shown.at("09:00").hold("a", [Option({"usd": usd("2")}), Option({"usd": usd("3")})], user="ann")
    assert [(one.value, one.refused) for one in shown.by("user").top] == [("ann", 1)]
