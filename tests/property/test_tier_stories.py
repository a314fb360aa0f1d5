"""Small budgets, many grades: stories in which nearly every hold meets a threshold, predicted by the auditor."""

from __future__ import annotations

from collections import Counter
from random import Random

from property.trial import Trial

from engine.core.messages import Adjust, AnyAsk, ApplyPlan, Entry, Exhausted, Held, Hold, Option, Settle
from engine.core.plan import Budget, Plan, Tier, Tiers, digest

NOON = 1_796_040_000_000_000_000  # 2026-11-30 12:00 UTC
MINUTE = 60_000_000_000
STORIES, MESSAGES = 90, 60

LIMITS = (0, 1, 3, 7, 10, 20, 30, 50, 100)
UP_TO = (1, 10_000, 250_000, 333_333, 333_334, 500_000, 666_667, 750_000, 950_000, 999_999, 1_000_000)
TIMES = (1, 333_333, 500_000, 1_333_333, 1_500_000, 2_000_000, 100_000_000)


def drawn_plan(random: Random) -> Plan:
    budgets = {
        "site": Budget("requests", random.choice(LIMITS)),
        "user": Budget("requests", random.choice(LIMITS), each="user", limit_for={"cohort=premium": 12}),
        "tokens": Budget("tokens", random.choice(LIMITS), where={"provider": "jev"}),
        "usd": Budget("usd", random.choice(LIMITS)),
    }
    chosen = random.sample(list(budgets), random.randint(1, 4))
    steps = sorted(random.sample(UP_TO, random.randint(1, 4)))
    grades = sorted(random.sample(range(5), len(steps)))
    times = {cohort: random.choice(TIMES) for cohort in ("premium", "guest") if random.random() < 0.6}
    tiers = Tiers([Tier(*step) for step in zip(steps, grades, strict=True)], times)
    return Plan({name: budgets[name] for name in chosen}, tiers=tiers)


def drawn_option(random: Random) -> Option:
    units = random.sample(("requests", "tokens", "usd"), random.choice((1, 1, 2)))
    amounts = {unit: random.choice((0, 1, 1, 1, 2, 3)) for unit in units}
    least = {unit: random.randint(0, amount) for unit, amount in amounts.items() if random.random() < 0.2}
    return Option(amounts, least, random.choice((None, 0, 1, 2, 3, 4)))


def drawn_ask(random: Random, number: int, at: int, plan: Plan) -> AnyAsk:
    if random.random() < 0.3:
        amounts = {unit: random.randint(0, 2) for unit in ("requests", "tokens", "usd") if random.random() < 0.5}
        return Settle(f"h{random.randint(0, number)}", amounts or {"requests": 1}, labels={"user": "a"})
    if random.random() < 0.05:
        name = random.choice(list(plan.budgets))
        each = "a" if plan.budgets[name].each else None
        return Adjust(f"j{number}", name, "2026-11-30", random.choice((-2, -1, 1)), "books", each=each)
    if random.random() < 0.03:
        return ApplyPlan(f"p{number}", drawn_plan(random), digest(plan))
    labels = {"user": random.choice("ab"), "cohort": random.choice(("premium", "guest", "other"))}
    labels |= {"provider": "jev"} if random.random() < 0.7 else {}
    return Hold(f"h{number}", [drawn_option(random) for _ in range(random.choice((1, 2, 3)))], at + MINUTE, labels)


def seen_in(told: Entry) -> Counter[str]:
    refused = [outcome for outcome in told.out if isinstance(outcome, Exhausted)]
    whys = [f"exhausted: {outcome.why}" for outcome in refused]
    left = [f"left: {outcome.tier}" for outcome in refused if outcome.why == "tier"]
    return Counter([*whys, *left, *(f"tier {outcome.tier}" for outcome in told.out if isinstance(outcome, Held))])


def test_every_tier_and_every_refusal_beside_one_is_predicted() -> None:
    seen = Counter[str]()
    for seed in range(STORIES):
        random, trial = Random(seed), Trial()
        trial.say(NOON, [ApplyPlan("p", drawn_plan(random), "")])
        for number in range(MESSAGES):
            plan = trial.auditor.plan
            assert plan is not None
            seen += seen_in(trial.say(NOON + number, [drawn_ask(random, number, NOON + number, plan)]))
    wanted = {f"exhausted: {why}" for why in ("never", "spent", "busy", "tier")}
    wanted |= {f"tier {grade}" for grade in range(5)} | {f"left: {grade}" for grade in (None, 1, 2, 3, 4)}
    assert all(seen[name] > 5 for name in wanted), seen
