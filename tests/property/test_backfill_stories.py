"""Whatever was lost of whatever was called: backfilled with the true costs, the totals are their exact sum."""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import pytest
from backfilling import answered, asked, judged, rows
from msgspec.structs import replace
from property.naive_calendar import SECOND, period_at
from property.story import DAY, HOUR, MINUTE, STARTS
from recorded_stories import Writer, projected, written_story

from engine.core.amounts import SCALES, format_amount
from engine.core.messages import AnyOutcome, ApplyPlan, Hold, Option, Settle
from engine.core.plan import Budget, Plan
from engine.core.tell import read
from projector.backfill.judging import LEFT, TO_DO, Finding
from projector.backfill.rows import Row, Rows

SOAK = bool(os.environ.get("PURSE_SOAK"))
STORIES, STEPS = (1_000, 120) if SOAK else (50, 60)
PLENTY = 10**12

BUDGETS = {
    "account": Budget(unit="usd", limit=PLENTY),
    "jev": Budget(unit="usd", limit=PLENTY, where={"provider": "jev"}, zone="America/New_York"),
    "hourly": Budget(unit="tokens", limit=PLENTY, per="hour", zone="Australia/Lord_Howe"),
    "user": Budget(unit="jpy", limit=PLENTY, each="user", per="month", zone="Asia/Tokyo"),
    "ever": Budget(unit="usd", limit=PLENTY, per="total"),
}
UNITS = ("usd", "tokens", "jpy")


class Lossy:
    """Calls made through a wallet whose callers lose, guess and forget what they cost. The truth is kept beside it."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.writer = Writer()
        self.ts = self.random.choice(STARTS)
        self.rows: list[Row] = []
        self.truth: Counter[tuple[str, str]] = Counter()
        self._late: list[Settle] = []
        plan = Plan(
            budgets=BUDGETS,
            remember_s=self.random.choice((20, 300, 7_200)),
            on_lapse=self.random.choice(("charge", "release")),
        )
        self.writer.ask(self.ts, [ApplyPlan("p", plan, "")])

    def run(self) -> None:
        for number in range(STEPS):
            self.ts += self.random.choice((0, 1, SECOND, MINUTE, 20 * MINUTE, HOUR, DAY))
            self._call(f"c{number}")
            if self._late and self.random.random() < 0.2:
                self.writer.ask(self.ts, [self._late.pop()])
            if self.random.random() < 0.4:
                self.writer.tell()
        self.tick()

    def tick(self) -> None:
        self.writer.ask(self.ts, [])
        self.writer.tell()

    def _call(self, id: str) -> None:
        random = self.random
        units = random.sample(UNITS, random.randint(1, 2))
        labels = {"provider": random.choice(("jev", "other")), "user": random.choice(("alice", "bob"))}
        grant = {unit: random.choice((0, 10, 500)) for unit in units}
        cost = {unit: random.choice((0, 3, 10, 400, 900)) for unit in units}
        if random.random() < 0.1:
            cost[next(unit for unit in UNITS if unit not in units)] = 7
        held_at, fate = self.ts, random.choice(("exact", "guess", "progress", "lost", "lost", "late", "nobody"))
        if fate != "nobody":
            ttl_s = random.choice((1, 60, 3_600))
            self.writer.ask(self.ts, [Hold(id, [Option(grant)], self.ts + MINUTE, labels, ttl_s)])
        else:
            held_at -= random.choice((0, MINUTE, DAY, 3 * DAY))
        said = Settle(id, cost, held_at=held_at, labels=labels)
        match fate:
            case "exact":
                self.writer.ask(self.ts, [said])
            case "guess":
                guess = {unit: amount + 5 for unit, amount in grant.items()}
                self.writer.ask(self.ts, [replace(said, amounts=guess, estimated=True)])
            case "progress":
                seen = {unit: amount // 2 for unit, amount in cost.items()}
                self.writer.ask(self.ts, [replace(said, amounts=seen, final=False)])
            case "late":
                self._late.append(said)
        self._tell_the_truth(id, cost, labels, held_at)

    def _tell_the_truth(self, id: str, cost: dict[str, int], labels: dict[str, str], at: int) -> None:
        written = {unit: format_amount(amount, scale=SCALES[unit]) for unit, amount in cost.items()}
        self.rows.append(Row(len(self.rows) + 1, id, written, at, labels))
        for name, budget in BUDGETS.items():
            if budget.unit in cost and budget.where.items() <= labels.items():
                self.truth[name, period_at(at, budget.per, budget.zone)[0]] += cost[budget.unit]


def backfill(writer: Writer, ts: int, given: Rows, *, killed_after: int | None = None) -> list[Finding]:
    """Do it, or as much of it as was sent before it was killed."""
    findings = judged(writer.stream, given)
    told = list[AnyOutcome]()
    for asks in asked(findings)[:killed_after]:
        writer.ask(ts, asks)
        told += writer.last.out
    writer.tell()
    return answered(findings, told) if killed_after is None else []


def totals(writer: Writer) -> dict[tuple[str, str], int]:
    found = projected(writer.stream).totals.values()
    return {(one.budget, one.period): one.settled for one in found if one.settled}


@pytest.mark.parametrize("seed", range(STORIES))
def test_the_totals_are_the_exact_sum_of_the_true_costs_whatever_was_lost(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("projector.backfill.applying.BATCH_ASKS", 7)
    story = Lossy(seed)
    story.run()
    story.random.shuffle(story.rows)
    given, writer = rows(*story.rows), story.writer
    backfill(writer, story.ts, given, killed_after=story.random.randint(0, 6))
    found = backfill(writer, story.ts, given)
    assert [one for one in found if one.found in LEFT] == []
    assert totals(writer) == +story.truth
    for wait in (0, HOUR, 90 * DAY):
        story.ts += wait
        story.tick()
        assert {one.found for one in judged(writer.stream, given)} == {"there"}
    changed = rows(*(replace(row, said={unit: f"{said}1" for unit, said in row.said.items()}) for row in story.rows))
    assert [one.asks for one in judged(writer.stream, changed) if one.found in TO_DO] == []


@pytest.mark.parametrize("seed", range(STORIES))
def test_in_any_story_a_second_backfill_changes_nothing(seed: int) -> None:
    writer, random = written_story(seed, steps=STEPS), Random(seed)
    ids = {
        ask.id if isinstance(ask, Hold) else ask.hold
        for stored in writer.stream
        if stored.kind != "told" and (message := read(stored.data)) is not None
        for ask in message.asks
        if isinstance(ask, Hold | Settle)
    }
    units = sorted(writer.wallet.scales.keys() & SCALES.keys())
    given = rows(*((id, {random.choice(units): str(random.randint(0, 50))}) for id in sorted(ids)))
    at = writer.wallet.at
    first = backfill(writer, at, given)
    before = totals(writer)
    again = judged(writer.stream, given)
    assert {(one.hold, one.found) for one in again} == {
        (one.hold, "there" if one.found in TO_DO else one.found) for one in first
    }
    assert backfill(writer, at, given) == again
    assert totals(writer) == before
