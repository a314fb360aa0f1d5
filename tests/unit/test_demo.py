"""`purse demo`: calls that follow from their seed, and a verdict that says when the books do not agree."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import msgspec
import pytest

from commonpurse.commands.demo import Lines
from commonpurse.demo import BUDGET, LIMIT, PLAN, PRICES, Books, made_up
from commonpurse.http import Answer
from commonpurse.proof import Metered, Proof
from commonpurse.said import BudgetNow
from commonpurse.verdict import Verdict, refusal_lines
from engine.core.amounts import parse
from engine.plan_file import parse_toml

LIMIT_NANOS = parse(LIMIT, unit="usd", scale=9)
METER = Metered(BUDGET, None, "2026-11-30", "usd", LIMIT_NANOS, settled=49_000_000, highest=49_900_000, highest_at=7)
PROOF = Proof("main", 30, 14, 21, 0, {"planned": 1, "held": 7, "settled": 7, "busy": 1, "spent": 3}, [METER], "c0ffee")
BOOKS = Books(made=7, spent_nanos=49_000_000, refused=Counter(spent=2, busy=1))
REFUSAL = Answer(
    402,
    b'{"detail":"Today\'s shared budget is used up.","resets_at":"2026-12-01T00:00:00.000Z"}',
    should_retry="false",
)


def meter(**fields: object) -> Proof:
    return msgspec.structs.replace(PROOF, meters=[msgspec.structs.replace(METER, **fields)])


def test_the_same_seed_makes_the_same_calls_and_each_caller_others() -> None:
    first, again = (list(islice(made_up(1, 3), 50)) for _ in range(2))
    assert first == again
    assert first[0].real_nanos != next(made_up(2, 3)).real_nanos
    assert first[0].id != next(made_up(1, 4)).id


def test_no_call_costs_more_than_it_holds() -> None:
    calls = list(islice(made_up(1, 1), 500))
    assert all(0 < call.real_nanos < call.worst_nanos < LIMIT_NANOS for call in calls)
    assert min(call.worst_nanos for call in calls) >= PRICES.output_cap * 600


def test_the_plan_is_one_that_shows_its_amounts() -> None:
    plan = parse_toml(PLAN).plan
    assert plan is not None
    [(name, budget)] = plan.budgets.items()
    assert (name, budget.limit, budget.per, budget.public) == (BUDGET, LIMIT_NANOS, "day", "amounts")
    assert budget.note


def test_books_that_agree_are_said_to() -> None:
    verdict = Verdict(BOOKS, PROOF)
    assert verdict.good
    lines = "\n".join(verdict.lines())
    assert "refused          2 spent; 1 busy" in lines
    assert "wallet settled   0.049 usd, the same to the nano-dollar; nothing is held any more" in lines
    assert "0.0499 usd at its highest, never above the limit of 0.05 usd" in lines


@pytest.mark.parametrize(
    "proof",
    [
        meter(settled=48_999_999),
        meter(held=1),
        meter(above_at=12),
        msgspec.structs.replace(PROOF, untold=1),
        msgspec.structs.replace(PROOF, outcomes={"held": 8}),
        msgspec.structs.replace(PROOF, meters=[]),
    ],
    ids=["other sum", "still held", "above the limit", "untold", "another held", "no meter"],
)
def test_books_that_do_not_agree_are_not_good(proof: Proof) -> None:
    assert not Verdict(BOOKS, proof).good


def test_a_difference_stands_beside_the_sums() -> None:
    lines = "\n".join(Verdict(BOOKS, meter(settled=48_999_999, above_at=12)).lines())
    assert "callers' books   0.049 usd\n" in lines
    assert "wallet settled   0.048999999 usd - these differ\n" in lines
    assert "ABOVE the limit of 0.05 usd, first at message 12\n" in lines


def test_a_run_over_midnight_counts_both_days() -> None:
    days = [msgspec.structs.replace(METER, period=day, settled=24_500_000) for day in ("2026-11-30", "2026-12-01")]
    assert Verdict(BOOKS, msgspec.structs.replace(PROOF, meters=days)).good


def test_the_summary_has_exact_sums_and_the_refusal() -> None:
    summary = Verdict(BOOKS, PROOF).document(REFUSAL, seconds=1.5)
    assert (summary["spent"], summary["settled"], summary["highest_used"]) == ("0.049", "0.049", "0.0499")
    assert summary["refusal"] == {
        "status": 402,
        "x-should-retry": "false",
        "detail": "Today's shared budget is used up.",
        "resets_at": "2026-12-01T00:00:00.000Z",
    }


def test_a_refusal_is_shown_as_it_came() -> None:
    assert refusal_lines(REFUSAL) == [
        "HTTP/1.1 402 Payment Required",
        "x-should-retry: false",
        '"Today\'s shared budget is used up."',
        "resets at 2026-12-01T00:00:00.000Z",
    ]


def test_a_line_is_written_each_time_something_changed(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines()
    budget = BudgetNow("demo", "usd", 60.0, 20.0, "0.05", "0.02", "0.01", "0", "0.03", "0.02")
    for now in (budget, budget, msgspec.structs.replace(budget, held="0", held_pct=0.0)):
        lines.show(now)
    written = capsys.readouterr().err.splitlines()
    assert written[0] == "  ########====........  spent 0.02        held 0.01        left 0.02        of 0.05 usd"
    assert [line.split()[4] for line in written] == ["0.01", "0"]
