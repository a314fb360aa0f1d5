"""Hold: may I spend at most this? What it allows, what it refuses, and when it stays quiet."""

import pytest
from wallets import SECOND, TODAY, Books, amounts, budget, moment

from engine.core import limits
from engine.core.messages import Conflict, Exhausted, Held, Hold, Line, Option
from engine.core.plan import Plan

# --- allows -----------------------------------------------------------------------------------------------------------


def test_a_hold_takes_the_most_a_call_could_cost_before_it_is_made() -> None:
    books = Books()
    assert books.at("09:00").hold("a", "0.40") == "held 0.40"
    assert books.meters() == ("0.00", "0.40", "0.00", "0.60")


def test_what_is_held_says_from_where_until_when_and_what_is_left() -> None:
    books = Books()
    books.at("09:00").hold("a", "0.40", ttl_s=60)
    line = Line(TODAY, moment("00:00"), moment("2026-12-01 00:00"), 1_000_000_000, 600_000_000)
    assert books.last == Held("a", 0, amounts("0.40"), {"jev": line}, moment("09:00"), moment("09:01"))


def test_a_hold_may_take_exactly_what_is_left() -> None:
    books = Books()
    assert books.hold("a", "0.40") == "held 0.40"
    assert books.hold("b", "0.60") == "held 0.60"
    assert books.left() == "0.00"


def test_a_hold_of_nothing_always_fits() -> None:
    books = Books()
    books.hold("a", "1.00")
    books.settle("a", "1.30")
    assert books.hold("b", "0") == "held 0.00"


def test_every_budget_whose_unit_and_labels_match_is_held() -> None:
    books = Books(
        site=budget("1.00"), jev=budget("0.50", where={"provider": "jev"}), user=budget("0.30", each="user"),
        others=budget("0.10", where={"provider": "other"}), neurons=budget("10 neurons"),
    )  # fmt: skip
    assert books.hold("a", "0.20", provider="jev", user="alice") == "held 0.20"
    assert isinstance(books.last, Held)
    assert list(books.last.budgets) == ["site", "jev", "user"]
    assert books.left("user", each="alice") == "0.10"
    assert books.left("user", each="bob") == "0.30"


def test_a_budget_for_each_user_does_not_apply_to_a_call_without_a_user() -> None:
    books = Books(user=budget("0.30", each="user"))
    assert books.hold("a", "5.00") == "held 5.00"


def test_the_first_option_that_fits_is_taken() -> None:
    books = Books()
    books.hold("a", "0.70")
    large, small = Option(amounts("0.40"), name="large"), Option(amounts("0.20"), name="small")
    assert books.hold("b", [large, small]) == "held 0.20 by option 1"


def test_with_least_a_hold_is_granted_what_is_left() -> None:
    books = Books()
    books.hold("a", "0.70")
    assert books.hold("b", "0.50", least="0.10") == "held 0.30"
    assert books.left() == "0.00"


def test_with_least_a_hold_is_granted_no_more_than_it_asks() -> None:
    books = Books()
    assert books.hold("b", "0.50", least="0.10") == "held 0.50"


def test_with_least_the_tightest_budget_decides_what_is_granted() -> None:
    books = Books(site=budget("1.00"), user=budget("0.30", each="user"))
    assert books.hold("a", "0.50", least="0.10", user="alice") == "held 0.30"


def test_a_hold_may_name_several_units() -> None:
    books = Books(jev=budget("1.00"), neurons=budget("500 neurons"))
    assert books.hold("a", "0.10 usd + 300 neurons") == "held 0.10 + 300 neurons"
    assert books.left("neurons") == "200"


def test_a_unit_without_a_budget_is_granted_whole() -> None:
    books = Books()
    assert books.hold("a", "0.10 usd + 300 neurons", least="0.05 usd") == "held 0.10 + 300 neurons"


def test_a_new_period_starts_at_zero_and_needs_no_reset() -> None:
    books = Books()
    books.at("23:59:59", tick=SECOND - 1).hold("a", "1.00")
    assert books.hold("b", "0.01") == "exhausted: busy, 0.00 fits"
    assert books.at("2026-12-01 00:00").hold("b2", "1.00") == "held 1.00"
    assert books.meters(day=TODAY).held == books.meters(day="2026-12-01").held == "1.00"


def test_a_limit_for_one_user_stands_in_for_the_common_one() -> None:
    books = Books(user=budget("0.30", each="user", limit_for={"user=alice": "0.80", "cohort=premium": "0.50"}))
    assert books.hold("a", "0.80", user="alice", cohort="premium") == "held 0.80"
    assert books.hold("b", "0.80", user="bob", cohort="premium") == "exhausted: never, 0.50 fits"
    assert books.hold("c", "0.80", user="carol") == "exhausted: never, 0.30 fits"


# --- refuses ----------------------------------------------------------------------------------------------------------


def test_two_callers_cannot_both_spend_the_last_of_the_day() -> None:
    books = Books()
    assert books.hold("a", "0.60") == "held 0.60"
    assert books.hold("b", "0.60") == "exhausted: busy, 0.40 fits"
    assert books.meters() == ("0.00", "0.60", "0.00", "0.40")


def test_one_smallest_part_too_much_does_not_fit() -> None:
    books = Books()
    assert books.hold("a", {"usd": 1_000_000_001}) == "exhausted: never, 1.00 fits"
    assert books.hold("b", {"usd": 1_000_000_000}) == "held 1.00"


def test_a_refusal_says_which_budget_what_is_used_what_would_fit_and_when_it_resets() -> None:
    books = Books(jev=budget("1.00", source="cloudflare"))
    books.hold("a", "0.10")
    books.settle("a", "0.10")
    books.hold("b", "0.20")
    books.observe("0.40")
    assert books.hold("c", "0.70") == "exhausted: spent, 0.40 fits"
    cents = 10_000_000
    assert books.last == Exhausted(
        "c", "spent", "jev", "usd", TODAY, settled=10 * cents, held=20 * cents, extra=30 * cents, limit=100 * cents,
        remaining=40 * cents, fits=40 * cents, resets_at=moment("2026-12-01 00:00"),
    )  # fmt: skip


def test_never_spent_and_busy_say_whether_waiting_helps() -> None:
    books = Books()
    books.hold("a", "0.50")
    books.settle("a", "0.50")
    books.hold("b", "0.30")
    assert books.hold("c", "1.01").startswith("exhausted: never")
    assert books.hold("d", "0.60").startswith("exhausted: spent")
    assert books.hold("e", "0.50").startswith("exhausted: busy")


def test_all_budgets_or_none() -> None:
    books = Books(site=budget("1.00"), user=budget("0.30", each="user"))
    assert books.hold("a", "0.40", user="alice") == "exhausted: never, 0.30 fits"
    assert books.left("site") == "1.00"


def test_of_several_refusing_budgets_the_worst_is_told() -> None:
    books = Books(tight=budget("0.50"), small=budget("0.20"))
    books.hold("a", "0.20")
    assert books.hold("b", "0.40") == "exhausted: never, 0.00 fits"
    assert isinstance(books.last, Exhausted)
    assert books.last.budget == "small"


def test_what_fits_is_the_least_over_all_refusing_budgets() -> None:
    books = Books(wide=budget("0.50"), day=budget("0.60"))
    books.hold("a", "0.40", day="x")
    assert books.hold("b", "0.55") == "exhausted: never, 0.10 fits"
    assert books.hold("c", "0.10") == "held 0.10"


def test_among_equals_the_plan_decides_who_is_told() -> None:
    books = Books(second=budget("0.30"), first=budget("0.30"))
    books.hold("a", "0.40")
    assert isinstance(books.last, Exhausted)
    assert books.last.budget == "second"


def test_with_least_a_refusal_speaks_of_the_least() -> None:
    books = Books()
    books.hold("a", "0.95")
    assert books.hold("b", "0.50", least="0.10") == "exhausted: busy, 0.05 fits"


def test_with_options_a_refusal_speaks_of_the_last() -> None:
    books = Books()
    books.hold("a", "0.95")
    assert books.hold("b", [Option(amounts("9.00")), Option(amounts("0.10"))]) == "exhausted: busy, 0.05 fits"


def test_nothing_fits_below_zero() -> None:
    books = Books()
    books.hold("a", "0.50")
    books.settle("a", "1.70")
    assert books.left() == "-0.70"
    assert books.hold("b", "0.01") == "exhausted: spent, 0.00 fits"


@pytest.mark.parametrize(("tick", "outcome"), [(-1, "held 0.10"), (0, "held 0.10"), (1, "late")])
def test_a_hold_is_late_only_after_its_caller_stopped_waiting(tick: int, outcome: str) -> None:
    books = Books()
    assert books.at("09:00:05", tick=tick).hold("a", "0.10", by="09:00:05") == outcome


def test_a_late_hold_is_not_remembered() -> None:
    books = Books()
    books.at("09:00:06").hold("a", "0.10", by="09:00:05")
    assert books.hold("a", "0.20", by="09:00:07") == "held 0.20"


@pytest.mark.parametrize(
    ("field", "ask"),
    [
        ("id", Hold("", [Option({"usd": 1})], 1)),
        ("id", Hold("a b", [Option({"usd": 1})], 1)),
        ("id", Hold("x" * 97, [Option({"usd": 1})], 1)),
        ("options", Hold("a", [], 1)),
        ("options", Hold("a", [Option({"usd": 1})] * 9, 1)),
        ("options", Hold("a", [Option({})], 1)),
        ("amounts", Hold("a", [Option({"USD": 1})], 1)),
        ("amounts.usd", Hold("a", [Option({"usd": -1})], 1)),
        ("amounts.usd", Hold("a", [Option({"usd": limits.AMOUNT_MAX + 1})], 1)),
        ("least.usd", Hold("a", [Option({"usd": 1}, {"usd": 2})], 1)),
        ("least.jpy", Hold("a", [Option({"usd": 1}, {"jpy": 1})], 1)),
        ("grade", Hold("a", [Option({"usd": 1}, grade=-1)], 1)),
        ("name", Hold("a", [Option({"usd": 1}, name="n" * 33)], 1)),
        ("ttl_s", Hold("a", [Option({"usd": 1})], 1, ttl_s=0)),
        ("ttl_s", Hold("a", [Option({"usd": 1})], 1, ttl_s=86_401)),
        ("by", Hold("a", [Option({"usd": 1})], 0)),
        ("price_book", Hold("a", [Option({"usd": 1})], 1, price_book="p" * 129)),
        ("labels", Hold("a", [Option({"usd": 1})], 1, labels={"No": "x"})),
        ("labels", Hold("a", [Option({"usd": 1})], 1, labels={f"l{n}": "x" for n in range(17)})),
        ("labels.user", Hold("a", [Option({"usd": 1})], 1, labels={"user": ""})),
        ("labels.user", Hold("a", [Option({"usd": 1})], 1, labels={"user": "x" * 129})),
    ],
)
def test_what_cannot_be_understood_is_invalid_and_names_the_field(field: str, ask: Hold) -> None:
    books = Books()
    assert books.send(ask) == [f"invalid: {field}"]
    assert books.left() == "1.00"


@pytest.mark.parametrize(("tick", "outcome"), [(0, "held 0.10"), (1, "invalid: by")])
def test_nobody_waits_longer_than_an_hour(tick: int, outcome: str) -> None:
    books = Books()
    assert books.at("09:00").hold("a", "0.10", by=moment("10:00", tick=tick)) == outcome


def test_a_label_that_a_budget_requires_must_be_there() -> None:
    books = Books(user=budget("0.30", each="user", required=True))
    assert books.hold("a", "0.10") == "invalid: labels.user"
    assert books.hold("a", "0.10", user="alice") == "held 0.10"


@pytest.mark.parametrize(("count", "outcome"), [(16, "held 0.10"), (17, "invalid: labels")])
def test_a_hold_touches_at_most_16_budgets(count: int, outcome: str) -> None:
    books = Books(plan=Plan(budgets={f"b{n}": budget("1.00") for n in range(count)}))
    assert books.hold("a", "0.10") == outcome


# --- stays quiet ------------------------------------------------------------------------------------------------------


def test_the_same_hold_again_is_held_once() -> None:
    books = Books()
    books.at("09:00").hold("a", "0.40", user="alice")
    assert books.at("09:01").hold("a", "0.40", user="alice") == "again: open"
    assert books.held() == "0.40"


def test_again_comes_before_lateness_freeze_and_what_is_left() -> None:
    books = Books()
    books.at("09:00").hold("a", "1.00")
    books.freeze("all")
    assert books.at("09:01").hold("a", "1.00", by="09:00:30") == "again: open"


@pytest.mark.parametrize(
    ("field", "ask"),
    [
        ("options", Hold("a", [Option({"usd": 2})], 9 * SECOND, {"user": "alice"})),
        ("options", Hold("a", [Option({"usd": 1}), Option({"usd": 1})], 9 * SECOND, {"user": "alice"})),
        ("ttl_s", Hold("a", [Option({"usd": 1})], 9 * SECOND, {"user": "alice"}, ttl_s=600)),
        ("on_lapse", Hold("a", [Option({"usd": 1})], 9 * SECOND, {"user": "alice"}, on_lapse="charge")),
        ("labels", Hold("a", [Option({"usd": 1})], 9 * SECOND, {"user": "bob"})),
        ("labels", Hold("a", [Option({"usd": 1})], 9 * SECOND, {"user": "alice", "tag": "x"})),
    ],
)
def test_another_hold_under_a_known_id_is_a_conflict_that_names_the_field(field: str, ask: Hold) -> None:
    books = Books()
    books.hold("a", {"usd": 1}, user="alice")
    books.send(ask)
    assert books.last == Conflict("a", field)


def test_what_the_edge_adds_may_differ_between_two_tries() -> None:
    books = Books()
    books.hold("a", "0.40", user="alice", origin="x", cohort="free", price_book="monday")
    again = books.hold("a", "0.40", user="alice", origin="y", cohort="premium", price_book="tuesday", wait_s=9)
    assert again == "again: open"


def test_a_refused_attempt_asked_again_is_refused_alike_though_there_is_room_now() -> None:
    books = Books()
    books.at("09:00").hold("a", "1.00")
    assert books.hold("b", "0.50", by="09:00:05") == "exhausted: busy, 0.00 fits"
    books.at("09:00:01").release("a")
    assert books.hold("b", "0.50", by="09:00:05") == "again: refused"


def test_a_refused_attempt_with_a_later_deadline_is_decided_afresh() -> None:
    books = Books()
    books.at("09:00").hold("a", "1.00")
    books.hold("b", "0.50", by="09:00:05")
    books.at("09:00:01").release("a")
    assert books.hold("b", "0.50", by="09:00:06") == "held 0.50"


def test_only_held_binds_an_id() -> None:
    books = Books()
    books.hold("b", "5.00", by="00:00:05")
    assert books.hold("b", "0.50", by="00:00:05") == "held 0.50"


@pytest.mark.parametrize(("tick", "outcome"), [(0, "again: refused"), (1, "late")])
def test_a_refusal_is_remembered_until_the_caller_stops_waiting(tick: int, outcome: str) -> None:
    books = Books()
    books.at("09:00").hold("b", "5.00", by="09:00:05")
    assert books.at("09:00:05", tick=tick).hold("b", "5.00", by="09:00:05") == outcome


def test_after_it_closed_an_id_is_no_permission_to_call() -> None:
    books = Books()
    books.hold("a", "0.40")
    books.settle("a", "0.30")
    assert books.hold("a", "0.40") == "closed: settled 0.30"
    assert books.hold("a", "0.10", user="someone else") == "closed: settled 0.30"
