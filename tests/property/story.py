"""Draws what clients, operators and clocks do to one wallet, aimed at the places where money gets lost.

Everything is drawn from the `random` that is handed in, so that one seed tells one story and hypothesis can shrink it.
The auditor is looked at, never changed: it says which holds are open and when the next thing is due.
"""

from __future__ import annotations

from random import Random

from auditor import Auditor
from msgspec import UNSET, UnsetType
from msgspec.structs import replace
from property.naive_books import Call
from property.naive_calendar import SECOND, period_at
from property.naive_tiers import MILLION

from engine.core.limits import AMOUNT_MAX
from engine.core.messages import (
    Adjust,
    AnyAsk,
    ApplyPlan,
    Clock,
    Freeze,
    Hold,
    KnownUse,
    Loss,
    Observe,
    Option,
    Renew,
    Restore,
    Revoke,
    Settle,
    Thaw,
)  # fmt: skip
from engine.core.plan import Budget, Guard, LapsePolicy, Plan, Tier, Tiers, digest

MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 24 * 3600 * SECOND

STARTS = (
    1_796_083_190 * SECOND,  # 2026-11-30T23:59:50Z, a Monday: day and month end
    1_792_879_190 * SECOND,  # 2026-10-24T21:59:50Z: Berlin's day of 25 hours begins
    1_793_505_590 * SECOND,  # 2026-11-01T03:59:50Z: New York's day of 25 hours begins
    1_805_497_190 * SECOND,  # 2027-03-19T12:26:30Z: an ordinary Friday
    1_806_188_390 * SECOND,  # 2027-03-27T12:26:30Z: the day before Berlin's day of 23 hours
    1_805_000_390 * SECOND,  # 2027-03-13T18:26:30Z: the day before New York's day of 23 hours
)
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Tokyo")
DAY_ZONES = (*ZONES, "UTC", "Pacific/Tongatapu", "Pacific/Pago_Pago")  # the last two are 24 hours apart
UNITS = ("usd", "jpy", "tokens", "requests", "neurons")
REMEMBER_S = (20, 300, 7_200, 172_800)

BUDGETS = {
    "account": Budget(unit="usd", limit=100, source="cloudflare"),
    "jev": Budget(unit="usd", limit=60, where={"provider": "jev"}, zone="America/New_York"),
    "local": Budget(unit="usd", limit=130, zone="Europe/Berlin", source="ours", limit_for={"cohort=premium": 150}),
    "user": Budget(unit="jpy", limit=50, each="user", limit_for={"cohort=premium": 80, "user=alice": 70, "key=k1": 90}),
    "rush": Budget(unit="tokens", limit=60, per="minute", zone="Asia/Tokyo"),
    "hourly": Budget(unit="tokens", limit=90, per="hour", zone="Australia/Lord_Howe", where={"user": "bob"}),
    "weekly": Budget(unit="requests", limit=80, per="week", zone="Europe/Berlin"),
    "monthly": Budget(unit="requests", limit=120, per="month", each="key", required=True),
    "ever": Budget(unit="neurons", limit=300, per="total", source="cloudflare"),
    "yearly": Budget(unit="neurons", limit=200, per="year", each="user", source="ours"),
}


SEEDS = (Tier(500_000, 0), Tier(750_000, 1), Tier(950_000, 2))
TIERS = (
    Tiers([*SEEDS], {"premium": 1_500_000}),
    Tiers([*SEEDS], {"premium": 1_500_000}),
    Tiers([Tier(333_333, 2), Tier(1_000_000, 3)], {"premium": 500_000}),
    Tiers([Tier(750_000, 2), Tier(500_000, 3)]),  # falling: no plan
    Tiers([]),
)

GUARDS = (
    {"storm": Guard("user", 3, 60, "cool", 300), "leak": Guard("key", 2, 86_400, "revoke", distinct="origin")},
    {"long": Guard("session", 3, 3_600, "alert"), "storm": Guard("user", 2, 10, "cool", 5)},
    {
        "storm": Guard("key", 4, 600, "cool", 60),
        "long": Guard("session", 2, 86_400, "alert"),
        "roam": Guard("user", 1, 300, "cool", 30, distinct="origin"),
    },
    {"leak": Guard("key", 1, 60, "revoke", distinct="origin"), "roam": Guard("session", 1, 600, "alert", 0, "key")},
    {"storm": Guard("user", 3, 60, "cool")},  # cools for no time: no plan
    {"leak": Guard("key", 0, 60, "revoke")},
)

CHANGES = ("limit", "limit", "zone", "per", "where", "each", "gone", "back", "times", "unit", "scale", "tiers", "tiers",
           "tiers", "tiers", "day", "day")  # fmt: skip


def first_plan(random: Random) -> Plan:
    chosen = {name: budget for name, budget in BUDGETS.items() if name == "account" or random.random() < 0.6}
    tiers = random.choice((UNSET, *TIERS[:3]))
    return Plan(
        budgets=chosen,
        remember_s=random.choice(REMEMBER_S),
        on_lapse=random.choice(["charge", "release"]),
        zone=random.choice(DAY_ZONES),
        tiers=tiers,
        guards=random.choice((UNSET, *GUARDS[:4])),
    )


class Story:
    """One wallet's clients and operators. Says what happens next, given what the auditor knows."""

    def __init__(self, auditor: Auditor) -> None:
        self.auditor = auditor
        self.at = 0
        self.newest = 0
        self.said: list[AnyAsk] = []
        self.acts = (
            (30, self.hold), (24, self.settle), (9, self.renew), (6, self.observe), (4, self.adjust), (3, self.freeze),
            (3, self.thaw), (2, self.revoke), (2, self.restore), (5, self.plan), (12, self.repeat), (2, self.loss),
            (1, self.clock),
        )  # fmt: skip

    def opening(self, random: Random) -> tuple[int, list[AnyAsk]]:
        """The first moment, and the first plan."""
        self.at = random.choice(STARTS)
        return self.at, [ApplyPlan(id="p0", plan=first_plan(random), replaces="")]

    def message(self, random: Random) -> tuple[int, list[AnyAsk] | None]:
        """The next message: its timestamp and its asks, None for one that cannot be read."""
        ts = self.pass_time(random)
        if random.random() < 0.01:
            return ts, None
        return ts, [self.ask(random) for _ in range(random.choice((0, 1, 1, 1, 1, 2, 3)))]

    def ask(self, random: Random) -> AnyAsk:
        act = random.choices([act for _, act in self.acts], [weight for weight, _ in self.acts])[0]
        ask = act(random)
        self.said = [*self.said[-40:], ask]
        return ask

    # --- time ---

    def pass_time(self, random: Random) -> int:
        """A stamp for the next message: often the very nanosecond around something due, sometimes an earlier one."""
        kind = random.choices(("same", "tick", "short", "edge", "back", "long"), (20, 5, 30, 30, 3, 6))[0]
        due = sorted(edge for edge in self.edges() if edge > self.auditor.at)
        step = {
            "same": 0,
            "tick": 1,
            "short": random.choice((1, 5, 10, 30, 60, 300)) * SECOND,
            "back": -random.choice((1, SECOND, MINUTE)),
            "long": random.choice((HOUR, 6 * HOUR, DAY, 3 * DAY, 5 * DAY)),
            "edge": random.choice(due[:4]) + random.choice((-1, 0, 1)) - self.auditor.at if due else 0,
        }[kind]
        ts = self.auditor.at + step
        self.at = max(self.auditor.at, ts)
        return ts

    def edges(self) -> set[int]:
        auditor, found = self.auditor, set()
        for call in auditor.calls.values():
            found.add(call.expires_at if call.state == "open" else call.forget_at)
            found.update(bound.end for bound in call.bounds)
        if auditor.plan is not None:
            found.update(meter.end + auditor.plan.remember_s * SECOND for meter in auditor.alive.values())
        found.update(ask.by for ask, _ in auditor.refused)
        found.add(auditor.day_ends)
        found.update(until for until, _ in auditor.cooling.values())
        windows = [guard.within_s for guard in auditor.guards().values()]
        found.update(at + within_s * SECOND for at, _ in auditor.came[-5:] for within_s in windows)
        found.update(ask.until for ask in auditor.frozen.values() if ask.until is not None)
        return {edge for edge in found if edge < auditor.at + 3 * DAY}

    # --- small draws ---

    def due(self) -> list[Call]:
        """Holds beyond the lapse cap: over, and not lapsed yet."""
        return [call for call in self.auditor.calls.values() if self.auditor.due(call)]

    def hold_id(self, random: Random) -> str:
        if (due := self.due()) and random.random() < 0.3:
            return random.choice(due).id
        if random.random() < 0.5:
            self.newest += 1
            return f"h{self.newest}"
        return f"h{random.randint(max(0, self.newest - 4), self.newest + 1)}"

    def some_call(self, random: Random) -> Call | None:
        if (due := self.due()) and random.random() < 0.5:
            return random.choice(due)
        calls = list(self.auditor.calls.values())
        running = [call for call in calls if call.state == "open" or call.provisional]
        if running and random.random() < 0.75:
            return random.choice(running)
        return random.choice(calls) if calls and random.random() < 0.8 else None

    @staticmethod
    def labels(random: Random) -> dict[str, str]:
        drawn = {
            "user": random.choice(("alice", "bob", "carol", "")),
            "key": random.choice(("k1", "k2", "k2", "")),
            "provider": random.choice(("jev", "jev", "other", "")),
            "cohort": random.choice(("premium", "", "")),
            "origin": random.choice(("o1", "o2", "o3", "")),
            "session": random.choice(("s1", "s2", "")),
        }
        return {label: value for label, value in drawn.items() if value}

    def amount(self, random: Random, unit: str) -> int:
        """Often exactly what is left in some budget of the unit, or one more."""
        if random.random() < 0.004:
            return random.choice((-1, AMOUNT_MAX, AMOUNT_MAX + 1))
        plan = self.auditor.plan
        if plan is not None and not isinstance(plan.tiers, UnsetType) and random.random() < 0.3:
            edges = self.to_thresholds(plan.tiers, unit)
            if edges:
                return max(0, random.choice(edges) + random.choice((0, 0, 1)))
        if plan is not None and random.random() < 0.3:
            rooms = [
                plan.budgets[key[0]].limit - self.auditor.used(key)
                for key in self.auditor.alive if key[0] in plan.budgets and plan.budgets[key[0]].unit == unit
            ]  # fmt: skip
            if rooms:
                return max(0, random.choice(rooms) + random.choice((-1, 0, 0, 1)))
        return random.choice((0, 1, 3, 10, 20, 30, 45, 70, 101, 200))

    def to_thresholds(self, tiers: Tiers, unit: str) -> list[int]:
        """What would bring a meter of the unit to a threshold of the plan."""
        assert self.auditor.plan is not None
        budgets = self.auditor.plan.budgets
        return [
            budgets[key[0]].limit * step.up_to // MILLION - self.auditor.used(key)
            for key in self.auditor.alive if key[0] in budgets and budgets[key[0]].unit == unit
            for step in tiers.steps
        ]  # fmt: skip

    def amounts(self, random: Random, most: int = 2) -> dict[str, int]:
        units = random.sample(UNITS, random.randint(1, most))
        if random.random() < 0.6:
            units = ["usd", *[unit for unit in units[1:] if unit != "usd"]]
        return {unit: self.amount(random, unit) for unit in units}

    def ttl_s(self, random: Random) -> int | None:
        to_midnight, rest = divmod(self.auditor.day_ends - self.at, SECOND)
        if not rest and 0 < to_midnight <= 86_400 and random.random() < 0.1:
            return to_midnight
        return random.choice((None, 1, 2, 10, 60, 600, 86_400, 86_400, 0, 86_401)) if random.random() < 0.6 else 30

    # --- asks of clients ---

    def hold(self, random: Random) -> Hold:
        by = self.at + random.choice((-1, 0, 1, SECOND, MINUTE, MINUTE, MINUTE, HOUR, HOUR + 1))
        return Hold(
            id=self.hold_id(random), options=[self.option(random) for _ in range(random.choice((1, 1, 1, 2, 3)))],
            by=by, labels=self.labels(random), ttl_s=self.ttl_s(random), on_lapse=self.on_lapse(random),
            price_book=random.choice(("", "", "b1")),
        )  # fmt: skip

    @staticmethod
    def on_lapse(random: Random) -> LapsePolicy | None:
        return random.choice((None, None, "charge", "release"))

    def option(self, random: Random) -> Option:
        amounts = self.amounts(random)
        least = {}
        for unit, amount in amounts.items():
            if random.random() < 0.25:
                least[unit] = random.choice((0, 1, amount // 2, amount, amount + (random.random() < 0.1)))
        grade = random.choice((None, None, 0, 1, 2, 3, 3))
        return Option(amounts=amounts, least=least, name=random.choice(("", "full")), grade=grade)

    def settle(self, random: Random) -> Settle:
        call = self.some_call(random)
        if call is None:
            return self.stray(random)
        by = None
        if (release := random.random() < 0.15) and random.random() < 0.6:
            by = call.by + random.choice((-1, 0, 0, 1, SECOND))
        return Settle(
            hold=call.id, amounts={} if release else self.cost(random, call), release=release,
            final=release or random.random() < 0.6, estimated=not release and random.random() < 0.25, by=by,
            id=random.choice(("", "", "", f"{call.id}:s", "s1", "s2", f"s{self.newest}")), labels=self.labels(random),
            held_at=random.choice((None, self.at, call.at)),
        )  # fmt: skip

    def cost(self, random: Random, call: Call) -> dict[str, int]:
        """What a call came to: below, at or above what was granted or said; units left out, units it never had."""
        amounts = {}
        for unit, grant in call.grant.items():
            if random.random() < 0.85:
                known = call.charged.get(unit, 0)
                amounts[unit] = random.choice((0, grant // 2, grant, known, known + 1, grant + 7, max(0, known - 2)))
        if random.random() < 0.15 or not amounts:
            unit = random.choice(UNITS)
            amounts[unit] = self.amount(random, unit)
        return amounts

    def stray(self, random: Random) -> Settle:
        release = random.random() < 0.2
        return Settle(
            hold=self.hold_id(random), amounts={} if release else self.amounts(random), release=release,
            final=release or random.random() < 0.6, estimated=not release and random.random() < 0.2,
            held_at=self.past(random), by=self.at + random.choice((0, MINUTE)) if release else None,
            labels=self.labels(random), id=random.choice(("", "", "s1", "s2")),
        )  # fmt: skip

    def past(self, random: Random) -> int | None:
        assert self.auditor.plan is not None
        memory = self.auditor.plan.remember_s * SECOND
        back = random.choice((None, None, -SECOND, 0, SECOND, MINUTE, HOUR, DAY, memory - 1, memory, memory + 1))
        return None if back is None else self.at - back

    def renew(self, random: Random) -> Renew:
        call = self.some_call(random)
        if call is None:
            return Renew(hold=self.hold_id(random), n=random.randint(0, 2))
        amounts = {}
        if random.random() < 0.7:
            for unit, grant in call.grant.items():
                amounts[unit] = random.choice((grant, grant + 1, grant + 10, grant + 40, self.amount(random, unit)))
        if random.random() < 0.05:
            amounts[random.choice(UNITS)] = 5
        n = max(0, call.n + random.choice((1, 1, 1, 1, 2, 0, -1)))
        return Renew(hold=call.id, n=n, ttl_s=self.ttl_s(random), amounts=amounts)

    # --- asks of operators and observers ---

    def some_id(self, random: Random, kind: str) -> str:
        return f"{kind}{random.randint(0, 3) if random.random() < 0.15 else self.newest + random.randint(10, 10_000)}"

    def some_period(self, random: Random, budget: Budget) -> str:
        back = random.choice((0, 0, 0, 0, MINUTE, HOUR, DAY, 2 * DAY, 8 * DAY, -DAY))
        name, _, _ = period_at(max(0, self.at - back), budget.per, budget.zone)
        return name if random.random() < 0.97 else random.choice(("2026-13-01", "20261130", "", "total", "2026-W60"))

    def some_budget(self, random: Random) -> tuple[str, Budget]:
        assert self.auditor.plan is not None
        name = random.choice([*self.auditor.plan.budgets, "account", "account"])
        if random.random() < 0.03:
            return "none", Budget(unit="usd", limit=1)
        return name, self.auditor.plan.budgets.get(name, BUDGETS[name])

    def each(self, random: Random, budget: Budget) -> str | None:
        return None if (budget.each is None) == (random.random() < 0.95) else random.choice(("alice", "bob", "k1"))

    def observe(self, random: Random) -> Observe:
        name, budget = self.some_budget(random)
        source = random.choice((budget.source or "ours", budget.source or "ours", "cloudflare"))
        return Observe(
            id=self.some_id(random, "o"), budget=name, period=self.some_period(random, budget),
            figure=self.amount(random, budget.unit), as_of=self.at + random.choice((0, 0, -MINUTE, 1)), source=source,
            each=self.each(random, budget),
        )  # fmt: skip

    def adjust(self, random: Random) -> Adjust:
        name, budget = self.some_budget(random)
        return Adjust(
            id=self.some_id(random, "a"), budget=name, period=self.some_period(random, budget),
            amount=random.choice((-500, -30, -5, 0, 5, 30)), reason="books", by_whom="ops",
            each=self.each(random, budget),
        )  # fmt: skip

    def loss(self, random: Random) -> Loss:
        assert self.auditor.plan is not None
        used = []
        for _ in range(random.choice((0, 1, 1, 2))):
            name, budget = self.some_budget(random)
            most = self.amount(random, budget.unit)
            used.append(KnownUse(name, self.some_period(random, budget), most, self.each(random, budget)))
        frozen = [scope for scope in self.auditor.frozen if scope in self.auditor.plan.budgets]
        freeze = random.choice(([], [], [random.choice([*self.auditor.plan.budgets, "ever"])], frozen[:1]))
        return Loss(id=self.some_id(random, "l"), from_seq=random.choice((0, 1, 5, 5, 5)), to_seq=random.choice((5, 9)),
                    reason="a bit", by_whom="ops", used=used, freeze=freeze)  # fmt: skip

    def clock(self, random: Random) -> Clock:
        start = self.at + random.choice((-1, 0, MINUTE, -self.at, -2 * self.at, AMOUNT_MAX))
        return Clock(id=self.some_id(random, "k"), start=start, end=start + random.choice((0, 1, MINUTE)),
                     reason="a battery", by_whom="ops")  # fmt: skip

    @staticmethod
    def ahead(random: Random, ts: int) -> int:
        """A stamp of a server whose clock is wrong."""
        return ts + random.choice((1, SECOND, MINUTE, HOUR, DAY, 40 * DAY))

    def scope(self, random: Random) -> str:
        assert self.auditor.plan is not None
        return random.choice(("all", "user=bob", "key=k1", "provider=jev", "nothing", *self.auditor.plan.budgets))

    def freeze(self, random: Random) -> Freeze:
        until = random.choice((None, self.at + SECOND, self.at + MINUTE, self.at + MINUTE, self.at, self.at - 1))
        return Freeze(id=self.some_id(random, "f"), scope=self.scope(random), reason="look", until=until)

    def thaw(self, random: Random) -> Thaw:
        scope = random.choice([*self.auditor.frozen, self.scope(random)])
        return Thaw(id=self.some_id(random, "t"), scope=scope, reason="fine")

    def revoke(self, random: Random) -> Revoke:
        label, value = random.choice((("key", "k1"), ("user", "alice"), ("provider", "other")))
        return Revoke(id=self.some_id(random, "r"), label=label, value=value, reason="shared")

    def restore(self, random: Random) -> Restore:
        label, value = random.choice((*self.auditor.revoked, *self.auditor.cooling, ("key", "k1")))
        return Restore(id=self.some_id(random, "u"), label=label, value=value)

    def plan(self, random: Random) -> ApplyPlan:
        assert self.auditor.plan is not None
        replaces = digest(self.auditor.plan) if random.random() < 0.95 else "0" * 32
        return ApplyPlan(id=self.some_id(random, "p"), plan=self.changed(random, self.auditor.plan), replaces=replaces)

    def changed(self, random: Random, plan: Plan) -> Plan:
        budgets = dict(plan.budgets)
        name = random.choice(list(BUDGETS))
        budget = budgets.get(name, BUDGETS[name])
        match random.choice(CHANGES):
            case "limit":
                budgets[name] = replace(budget, limit=random.choice((0, 10, 40, 100, 200)), limit_for={})
            case "zone":
                budgets[name] = replace(budget, zone=random.choice((*ZONES, "Nowhere/At_All")))
            case "per":
                budgets[name] = replace(budget, per=random.choice(("minute", "hour", "day", "month")))
            case "where":
                budgets[name] = replace(budget, where=random.choice(({}, {"provider": "jev"})))
            case "each":
                each = random.choice((None, "user", "key"))
                budgets[name] = replace(budget, each=each, required=random.random() < 0.3)
            case "gone" if len(budgets) > 1:
                budgets.pop(name, None)
            case "back":
                budgets = {name: BUDGETS[name], **budgets}
            case "day":
                return replace(plan, zone=random.choice((*DAY_ZONES, "Nowhere/At_All")))
            case "tiers":
                which = random.random() < 0.5
                tiers, guards = random.choice((UNSET, *TIERS)), random.choice((UNSET, *GUARDS))
                return replace(plan, tiers=tiers) if which else replace(plan, guards=guards)
            case "unit" if random.random() < 0.3:
                budgets[name] = replace(budget, unit="requests")
            case "scale" if random.random() < 0.3:
                return replace(plan, units={**plan.units, "credits": random.choice((0, 2))})
            case _:
                return replace(plan, remember_s=random.choice(REMEMBER_S), ttl_s=random.choice((5, 30, 600)),
                               on_lapse=random.choice(("charge", "release")))  # fmt: skip
        return replace(plan, budgets=budgets)

    # --- asking again ---

    def repeat(self, random: Random) -> AnyAsk:
        """Something that was said before: as it was, or with one thing changed under the same id."""
        if not self.said:
            return self.hold(random)
        ask = random.choice(self.said)
        if random.random() < 0.4:
            return ask
        match ask:
            case Hold():
                return self.altered_hold(random, ask)
            case Settle() if ask.amounts:
                return replace(ask, amounts={unit: amount + 1 for unit, amount in ask.amounts.items()})
            case Renew():
                return replace(ask, ttl_s=random.choice((None, 45)))
            case Observe():
                return replace(ask, figure=ask.figure + 5)
            case Adjust():
                return replace(ask, amount=ask.amount + 1)
            case Freeze() | Thaw() | Revoke() | Restore() | Loss() | Clock():
                return replace(ask, reason="another")
            case _:
                return ask

    def altered_hold(self, random: Random, ask: Hold) -> Hold:
        later = max(ask.by, self.at) + random.choice((0, 1, MINUTE))
        return random.choice((
            replace(ask, by=later), replace(ask, by=later), replace(ask, by=ask.by - 1, price_book="b2"),
            replace(ask, labels={**ask.labels, "origin": "o9", "cohort": "premium"}),
            replace(ask, labels={**ask.labels, "user": "dave"}, by=later), replace(ask, on_lapse="release", by=later),
            replace(ask, ttl_s=45, by=later), replace(ask, options=[Option(amounts={"usd": 2})], by=later),
        ))  # fmt: skip
