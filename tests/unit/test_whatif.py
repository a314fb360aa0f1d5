"""What if: the same plan changes nothing, half the limit refuses whom it really does, and what is assumed is told."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from histories.reading import NAMES
from msgspec.structs import replace
from recorded_stories import Writer
from recorded_stories import story as made_up
from records import recorded
from unit.test_audit import history_of
from wallets import SECOND, Books, budget, moment

from engine.core.messages import AnyOutcome, ApplyPlan, Exhausted, Held, Hold, Option, Planned, Settle
from engine.core.periods import period_at
from engine.core.plan import Budget, Plan, Tier, Tiers
from engine.core.wallet import Wallet
from engine.errors import Misconfigured
from engine.journal import Stored
from projector.audit.running import audit
from projector.day_range import DayRange, parse
from projector.reading import CopySource
from projector.replay import Replay, replay
from projector.whatif.change import Change, FactorError, factor
from projector.whatif.report import WhatIf, report_of
from projector.whatif.running import what_if
from projector.whatif.shown import lines
from projector.whatif.worlds import Worlds

DAY = "2026-11-30"
STORIES = 12


def day(written: str = DAY, *, zone: str = "UTC") -> DayRange:
    return parse(written, zone=zone, now=0)


async def asked(stream: Sequence[Stored], change: Change, written: str = DAY, *, shown: int = 100) -> WhatIf:
    return await what_if(CopySource(stream), day(written), change, shown=shown)


async def worlds_of(stream: Sequence[Stored], change: Change, days: DayRange) -> tuple[Worlds, Replay]:
    worlds = Worlds(days, change, wallet="main", shown=10_000)
    reading = await replay(CopySource(stream), worlds.fold)
    worlds.finish()
    return worlds, reading


def with_plan(**budgets: Budget) -> Change:
    return Change(Plan(budgets))


def days_in(stream: Sequence[Stored]) -> list[DayRange]:
    """All of it, and from a day in its middle on: the worlds part in the midst of everything."""
    stamps = [stored.ts for stored in stream]
    first, last = (f"{replayed_day(ts)}" for ts in (min(stamps), max(stamps)))
    return [day("2026-10-01..2027-06-30"), day(f"{first}..{last}"), day(f"{replayed_day(stamps[len(stamps) // 2])}")]


def replayed_day(ts: int) -> str:
    return period_at(ts, per="day", zone="UTC").name


# --- the same plan ----------------------------------------------------------------------------------------------------


def plan_at(stream: Sequence[Stored], at: int) -> Plan | None:
    """The plan in force before that moment; of a record that begins later, its first one."""
    found: list[Plan] = []
    reading = Replay(losses=CopySource(stream).losses)
    for stored in stream:
        for answered in reading.take(stored):
            for ask, outcome in zip(answered.asks or (), answered.entry.out, strict=False):
                if isinstance(ask, ApplyPlan) and isinstance(outcome, Planned):
                    if answered.entry.at >= at and found:
                        return found[-1]
                    found.append(ask.plan)
    return found[-1] if found else None


async def nothing_differs(stream: Sequence[Stored], days: DayRange) -> None:
    plan = plan_at(stream, days.start)
    for change in (Change(), Change(plan), Change(replace(plan, tzdata="another") if plan is not None else None)):
        worlds, reading = await worlds_of(stream, change, days)
        report = report_of(worlds, reading, wallet="main")
        assert (report.same, report.first, report.differ["holds"]["refused"]) == (True, [], 0)
        assert report.assumed["skipped"] == {}
        if worlds.other is not None:
            assert worlds.other.wallet.dump() == worlds.real.dump()
            assert worlds.other.facts.sums.totals == worlds.facts.sums.totals


@pytest.mark.parametrize("name", NAMES)
async def test_with_the_same_plan_no_recorded_history_differs(name: str) -> None:
    stream = history_of(name)
    for days in days_in(stream):
        await nothing_differs(stream, days)


@pytest.mark.parametrize("seed", range(STORIES))
async def test_with_the_same_plan_no_made_up_day_differs(seed: int) -> None:
    stream = made_up(seed, steps=120)
    for days in days_in(stream):
        await nothing_differs(stream, days)


# --- another plan -----------------------------------------------------------------------------------------------------


def halved(plan: Plan) -> Plan:
    budgets = {
        name: replace(one, limit=one.limit // 2, limit_for={rule: most // 2 for rule, most in one.limit_for.items()})
        for name, one in plan.budgets.items()
    }
    return replace(plan, budgets=budgets)


@pytest.mark.parametrize("seed", range(STORIES))
async def test_the_other_world_keeps_the_invariants_and_adds_up_by_the_second_path(seed: int) -> None:
    stream = made_up(seed, steps=120)
    for days in days_in(stream):
        plan = plan_at(stream, days.start)
        assert plan is not None
        for change in (
            Change(halved(plan)),
            Change(replace(plan, tiers=Tiers([Tier(400_000, 0), Tier(900_000, 2)]), ttl_s=60, on_lapse="release")),
            Change(None, Fraction(3, 2), {}, "grant"),
        ):
            worlds, _ = await worlds_of(stream, change, days)
            if worlds.other is not None:
                worlds.other.wallet.check()
                assert worlds.other.facts.sums.wrong == []


class Call:
    """One call of made-up traffic: what it asks for, what it does if it is served. Nobody asks twice."""

    def __init__(self, random: Random, number: int, at: int) -> None:
        self.id, self.at = f"c{number}", at
        self.labels = {"user": random.choice(("ada", "ben", "cyd")), "model": random.choice(("small", "large"))}
        most = random.randint(1, 40)
        self.worst = most * 10_000_000
        self.least = {"usd": self.worst // 2} if random.random() < 0.15 else {}
        self.does: list[tuple[int, Settle]] = []
        end = at + random.randint(1, 400) * SECOND
        fate = random.random()
        if fate < 0.2:
            progress = Settle(self.id, {"usd": self.worst // 3}, final=False)
            self.does.append((at + (end - at) // 2, progress))
        if fate < 0.9:  # the others never say what they cost
            cost = self.worst + 5 if fate > 0.85 else random.randint(0, self.worst // (2 if self.least else 1))
            self.does.append((end, Settle(self.id, {"usd": cost}, estimated=0.5 < fate < 0.55)))

    def hold(self) -> Hold:
        return Hold(
            self.id, [Option({"usd": self.worst}, self.least, grade=0)], self.at + 5 * SECOND, self.labels, ttl_s=300
        )


def really(calls: Sequence[Call], plan: Plan) -> tuple[list[Stored], dict[str, AnyOutcome]]:
    """The record of this traffic under a plan, and what each hold was told."""
    writer, told = Writer(), dict[str, AnyOutcome]()
    writer.ask(moment("00:00"), [ApplyPlan("p", plan, "")])
    waiting: list[tuple[int, str, Call, Settle | None]] = [(call.at, call.id, call, None) for call in calls]
    waiting += [(at, call.id, call, ask) for call in calls for at, ask in call.does]
    for number, (at, id, call, ask) in enumerate(sorted(waiting, key=lambda one: (one[0], one[1], one[3] is not None))):
        if ask is None:
            writer.ask(at, [call.hold()])
            told[id] = writer.last.out[0]
        elif isinstance(told[id], Held):
            writer.ask(at, [ask])
        if number % 3 == 0:
            writer.tell()
    writer.ask(moment("2026-12-01 03:00"), [])
    writer.tell()
    return writer.stream, told


BUDGETS = {
    "account": budget("20"),
    "user": budget("8", each="user", limit_for={"user=ada": "7"}),
    "large": budget("9", where={"model": "large"}, per="hour"),
}


def in_short(outcome: AnyOutcome) -> tuple[Any, ...]:
    if isinstance(outcome, Held):
        return ("held", outcome.amounts)
    assert isinstance(outcome, Exhausted)
    return ("exhausted", outcome.why, outcome.budget, outcome.each, outcome.remaining)


@pytest.mark.parametrize("tiered", [False, True])
@pytest.mark.parametrize("seed", range(6))
async def test_with_half_the_limit_it_refuses_whom_half_the_limit_really_refuses(seed: int, tiered: bool) -> None:
    random = Random(seed)
    calls, at = list[Call](), moment("09:00")
    for number in range(150):
        at += random.randint(0, 90) * SECOND
        calls.append(Call(random, number, at))
    plan = Plan(BUDGETS)
    less = halved(plan)
    if tiered:
        less = replace(less, tiers=Tiers([Tier(500_000, 0)]))
    stream, was = really(calls, plan)
    other, would_be = really(calls, less)
    worlds, reading = await worlds_of(stream, Change(less), day())
    report = report_of(worlds, reading, wallet="main")
    assert {type(outcome) for outcome in was.values()} == {Held}, "every call's cost is known"
    expected = {id: in_short(would_be[id]) for id in was if in_short(would_be[id]) != in_short(was[id])}
    found = {
        one.id: ("held", one.would_be.amounts) if one.would_be.outcome == "held" else
        ("exhausted", one.would_be.why, one.would_be.budget, one.would_be.each, one.would_be.remaining)
        for one in worlds.differences.first
    }  # fmt: skip
    refused = sum(one[0] == "exhausted" for one in expected.values())
    assert found == expected
    assert (report.differ["holds"]["refused"], report.differ["holds"]["served"]) == (refused, 0)
    assert refused > 10
    assert (report.assumed["capped"], report.assumed["calls"]) == (0, 0)
    touched = [one["would_be"] for one in report.budgets if one["would_be"] is not None]
    assert touched == (await audit(CopySource(other), day())).budgets
    assert worlds.other is not None
    assert worlds.other.wallet.meters() == (await wallet_of(other)).meters()


async def wallet_of(stream: Sequence[Stored]) -> Wallet:
    worlds, _ = await worlds_of(stream, Change(), day())
    return worlds.real


async def test_a_larger_limit_that_nobody_needs_changes_nothing() -> None:
    books = Books(jev=budget("1.00"), twice=False).at("09:00")
    books.hold("a", "0.40")
    report = await asked(recorded(books), with_plan(jev=budget("2.00")))
    assert (report.same, report.budgets[0]["would_be"]["limit"]) == (True, "2")
    assert "Nothing would have been otherwise." in lines(report)


# --- what nobody can know ---------------------------------------------------------------------------------------------


def crowded() -> Books:
    """A dollar: `a` uses half of its 0.40, `b` and `c` are refused, `d` too; `e` comes an hour later."""
    books = Books(jev=budget("1.00"), twice=False).at("09:00")
    books.hold("a", "0.40", model="small", user="ada")
    books.at("09:01").settle("a", "0.20")
    books.hold("big", "0.80", model="large", user="ben")
    books.at("09:02").hold("b", "0.40", model="small", user="ada")
    books.hold("c", "0.40", model="other", user="cyd")
    books.at("09:10").settle("big", "0.80")
    books.at("10:00").hold("e", "0.10", model="small", user="ada")
    return books


async def test_a_call_that_was_refused_costs_what_calls_of_its_model_had_used_until_then() -> None:
    report = await asked(recorded(crowded()), with_plan(jev=budget("5.00")))
    assert report.differ["holds"] == {"refused": 0, "served": 3, "otherwise": 0, "reason": 0}
    # b half of its grant, as `a`; c two thirds, as all calls so far had by the time it ended; e is still open
    assert report.assumed["calls"] == 2
    assert report.assumed["amounts"] == {"usd": "0.4"}
    [jev] = report.budgets
    assert (jev["was"]["settled"], jev["would_be"]["settled"], jev["would_be"]["held"]) == ("1", "1.4", "0.1")
    assert jev["was"]["refused"] == {"spent": 1, "busy": 2}
    assert report.holds == {
        "was": {"held": 2, "refused": {"busy": 2, "spent": 1}},
        "would_be": {"held": 5, "refused": {}},
    }
    assert any("2 calls were never made" in rule for rule in report.rules)


async def test_or_all_of_its_grant() -> None:
    report = await asked(recorded(crowded()), replace(with_plan(jev=budget("5.00")), assume="grant"))
    assert report.assumed["amounts"] == {"usd": "0.8"}
    assert "all of their grant" in " ".join(report.rules)


async def test_who_would_have_been_served_is_counted_by_label_and_named() -> None:
    report = await asked(recorded(crowded()), with_plan(jev=budget("5.00")), shown=2)
    assert [(one["value"], one["served"]) for one in report.by["user"]["top"]] == [("ada", 2), ("cyd", 1)]
    assert ([one["id"] for one in report.first], report.more) == (["b", "c"], 1)
    first = report.first[0]
    assert (first["seq"], first["was"]["why"], first["was"]["budget"]) == (5, "busy", "jev")
    assert (first["would_be"]["outcome"], first["would_be"]["amounts"]) == ("held", {"usd": "0.4"})
    text = "\n".join(lines(report))
    assert "3  holds served that were refused" in text
    assert "hold b: exhausted (busy, jev) -> held 0.4 usd" in text
    assert "and 1 more" in text


async def test_what_was_held_and_not_needed_is_shown_for_both() -> None:
    report = await asked(recorded(crowded()), Change(hold_factor=factor("0.5")))
    usd = report.headroom["usd"]
    assert usd["was"] == {"granted": "1.2", "returned": "0.2"}
    assert usd["would_be"] == {"granted": "1", "returned": "0"}
    assert report.change["hold_factor"] == "0.5"


async def test_a_call_that_would_be_refused_needs_no_settlement_and_is_no_stray() -> None:
    report = await asked(recorded(crowded()), with_plan(jev=budget("0.50")))
    assert report.differ["holds"]["refused"] == 1
    assert report.assumed["skipped"] == {"settle": 1}
    [jev] = report.budgets
    assert (jev["would_be"]["strays"], jev["would_be"]["settled"]) == (0, "0.2")


async def test_a_smaller_grant_caps_what_the_call_cost() -> None:
    books = Books(jev=budget("1.00"), twice=False).at("09:00")
    books.hold("a", "0.80", least="0.10")
    books.at("09:01").settle("a", "0.60")
    report = await asked(recorded(books), with_plan(jev=budget("0.50")))
    assert report.differ["holds"]["otherwise"] == 1
    [jev] = report.budgets
    assert (jev["would_be"]["settled"], report.assumed["capped"]) == ("0.5", 1)
    assert jev["would_be"]["overruns"] == 0


async def test_a_call_that_went_past_its_grant_would_have_gone_past_another() -> None:
    books = Books(jev=budget("1.00"), twice=False).at("09:00")
    books.hold("a", "0.80", least="0.10")
    books.at("09:01").settle("a", "0.90")
    report = await asked(recorded(books), with_plan(jev=budget("0.50")))
    assert report.budgets[0]["would_be"]["settled"] == "0.9"


async def test_a_hold_factor_changes_what_is_held_and_not_what_is_spent() -> None:
    books = Books(jev=budget("1.00"), twice=False).at("09:00")
    books.hold("a", "0.60")
    books.hold("b", "0.39")
    books.at("09:01").settle("a", "0.50")
    books.settle("b", "0.20")
    report = await asked(recorded(books), Change(hold_factor=factor("1.5")))
    [jev] = report.budgets
    assert (jev["would_be"]["peak"], jev["would_be"]["settled"]) == ("0.9", "0.5")
    assert report.differ["holds"] == {"refused": 1, "served": 0, "otherwise": 0, "reason": 0}
    report = await asked(recorded(books), Change(hold_factor=factor("1.01")))
    assert (report.differ["holds"]["refused"], report.budgets[0]["would_be"]["settled"]) == (0, "0.7")


async def test_a_price_changes_both_and_only_of_its_model() -> None:
    books = Books(jev=budget("1.00"), words=budget("1000 tokens"), twice=False).at("09:00")
    for id, model in (("a", "small"), ("b", "large")):
        books.hold(id, "0.20 + 100 tokens", model=model)
        books.settle(id, "0.10 + 50 tokens")
    report = await asked(recorded(books), Change(prices={"large": factor("3")}))
    settled = {one["budget"]: one["would_be"]["settled"] for one in report.budgets}
    assert settled == {"jev": "0.4", "words": "100"}
    assert report.differ["holds"]["refused"] == 0


async def test_others_on_the_account_spend_what_they_did() -> None:
    books = Books(jev=budget("1.00", source="cloudflare"), twice=False).at("09:00")
    books.hold("a", "0.40")
    books.settle("a", "0.30")
    books.at("09:10").observe("0.50")
    report = await asked(recorded(books), with_plan(jev=budget("0.35", source="cloudflare")))
    [jev] = report.budgets
    assert (jev["was"]["extra"], jev["would_be"]["settled"], jev["would_be"]["extra"]) == ("0.2", "0", "0.2")
    assert report.assumed["figures_moved"] == 1


async def test_what_was_held_before_the_day_goes_on_and_the_other_plan_stays() -> None:
    books = Books(jev=budget("1.00", per="month"), twice=False).at("23:00")
    books.hold("a", "0.40", ttl_s=7_200)
    books.at("2026-12-01 00:30").settle("a", "0.30")
    books.change(jev=budget("9.00", per="month"))
    books.hold("b", "0.60")
    report = await asked(recorded(books), with_plan(jev=budget("0.50", per="month")), "2026-12-01")
    assert report.assumed["skipped"] == {"plan": 1}
    assert report.differ["holds"]["refused"] == 1
    assert "budgets.jev.limit" in report.change["plan"][0]


async def test_a_plan_that_cannot_follow_is_said_to_be() -> None:
    books = Books(jev=budget("1.00"), twice=False).at("23:00")
    books.at("2026-12-01 09:00").hold("a", "0.40")
    with pytest.raises(Misconfigured, match=r"budgets\.jev\.unit"):
        await asked(recorded(books), with_plan(jev=budget("100 tokens")), "2026-12-01")


async def test_a_day_that_has_not_come_changes_nothing() -> None:
    report = await asked(recorded(crowded()), with_plan(jev=budget("0.50")), "2026-12-24")
    assert (report.same, report.budgets, report.over) == (True, [], False)


@pytest.mark.parametrize("written", ["0", "-1", "1e3", "1001", "x", "", "1.", "\u0661"])
def test_what_is_no_factor_is_refused(written: str) -> None:
    with pytest.raises(FactorError, match="above 0 and at most 1,000"):
        factor(written)
