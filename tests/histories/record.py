"""Records the histories that stand beside this file.

They were recorded once and are data from then on: they must replay to the same balances for ever, so run this only to
add a new one (`PYTHONPATH=.:tests python -m histories.record NAME`). A line is one stored message: `seq`, `ts`, `kind`
(ask or told) and its bytes as text in `data`. `NAME.balances.json` holds what was left at the end.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from random import Random

import msgspec
from histories.reading import FOLDER, balances

from engine.core.chain import GENESIS, Covered, link, seal
from engine.core.messages import (
    Adjust,
    AnyAsk,
    ApplyPlan,
    AskMessage,
    Clock,
    Entry,
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
    Told,
)  # fmt: skip
from engine.core.periods import period_at
from engine.core.plan import Budget, Guard, Plan, Tier, Tiers, digest
from engine.core.restore import load
from engine.core.tell import read, tell
from engine.core.wallet import Wallet

SECOND, MINUTE, HOUR = 1_000_000_000, 60_000_000_000, 3_600_000_000_000
CENT = 10_000_000
USERS = ("alice", "bob", "carol")

USD = Budget("usd", 100 * CENT, source="cloudflare")
BERLIN = Budget("usd", 120 * CENT, zone="Europe/Berlin", where={"provider": "jev"})
USER = Budget("jpy", 80_000_000, each="user", limit_for={"cohort=premium": 120_000_000, "user=alice": 500_000_000})
MINUTES = Budget("requests", 4, per="minute")


@dataclass
class Recorder:
    """A stream that is written, told and sealed as an engine would."""

    random: Random
    plan: Plan
    ts: int
    jump: int  # the longest silence between two messages
    seq: int = 0
    wallet: Wallet = field(default_factory=Wallet)
    chain: bytes = GENESIS
    untold: list[tuple[Covered, Entry]] = field(default_factory=list)
    lines: list[dict[str, object]] = field(default_factory=list)
    said: list[AnyAsk] = field(default_factory=list)
    ids: int = 0

    def run(self, messages: int, losing: tuple[int, int] | None = None) -> None:
        self.write(msgspec.json.encode(AskMessage(asks=[ApplyPlan("p0", self.plan, "")])))
        self.go_on(messages, losing)

    def run_ahead(self, messages: int) -> None:
        """In the middle the server's clock is forty minutes ahead; then it is put right, and its stamps are skipped."""
        self.run(messages // 2)
        began = self.ts
        self.ts += 40 * MINUTE
        for _ in range(8):
            self.ts += self.random.choice((1, SECOND, 20 * SECOND, MINUTE))
            asks = [self.ask() for _ in range(self.random.choice((0, 1, 2)))]
            self.said += asks
            self.write(msgspec.json.encode(AskMessage(sender="_INBOX.a", asks=asks)), skipped=True)
        clock = Clock("k1", began + 40 * MINUTE, self.ts + 1, "the server's clock was ahead", "ops")
        self.ts = began + 5 * MINUTE
        self.write(msgspec.json.encode(AskMessage(asks=[clock])))
        self.go_on(messages // 2)

    def go_on(self, messages: int, losing: tuple[int, int] | None = None) -> None:
        for number in range(messages):
            if losing is not None and number == losing[0]:
                self.lose(losing[1])
            self.ts += self.random.choice((0, 1, SECOND, 20 * SECOND, self.random.randrange(self.jump)))
            if self.random.random() < 0.02:
                self.write(b'{"asks":[{"ask":"what is this"}]}')
                continue
            asks = [self.ask() for _ in range(self.random.choice((0, 1, 1, 2, 3)))]
            self.said += asks
            self.write(msgspec.json.encode(AskMessage(sender="_INBOX.a" if asks else "", asks=asks)))
            if self.random.random() < 0.6:
                self.tell()
        self.tell()

    def lose(self, messages: int) -> None:
        """So many messages and their tolds are gone. What somebody still knows of them stands in a loss behind them."""
        self.tell()
        before, chain, lines, first = self.wallet.dump(), self.chain, len(self.lines), self.seq + 1
        for _ in range(messages):
            self.ts += self.random.randrange(self.jump)
            asks = [self.ask(), self.ask()]
            self.said += asks
            self.write(msgspec.json.encode(AskMessage(sender="_INBOX.a", asks=asks)))
        self.tell()
        known = [
            KnownUse(meter.budget, meter.period, meter.used, meter.each)
            for meter in self.wallet.metering.values()
            if meter.budget == "site" and meter.start <= self.ts < meter.end
        ]
        self.wallet, self.chain = load(before), chain
        del self.lines[lines:]
        loss = Loss(self.new_id("l"), first, self.seq, "a bit flipped", "ops", known, ["berlin"])
        self.said.append(loss)
        self.write(msgspec.json.encode(AskMessage(sender="_INBOX.a", asks=[loss])))

    def write(self, raw: bytes, *, skipped: bool = False) -> None:
        self.seq += 1
        message = read(raw)
        asks = message.asks if message is not None else None
        entry = tell(self.wallet, seq=self.seq, ts=self.ts, asks=asks, skipped=skipped)
        self.wallet.check()
        self.untold.append(((self.seq, self.ts, raw), entry))
        self.line("ask", raw)

    def tell(self) -> None:
        if not self.untold:
            return
        covered = [asked for asked, _ in self.untold]
        told = Told(engine="e1", upto=covered[-1][0], n=len(covered), told=[entry for _, entry in self.untold])
        body = msgspec.json.encode(told)[:-1]
        self.chain = link(self.chain, covered, body)
        self.untold, self.seq = [], self.seq + 1
        self.line("told", seal(body, self.chain))

    def line(self, kind: str, raw: bytes) -> None:
        self.lines.append({"seq": self.seq, "ts": self.ts, "kind": kind, "data": raw.decode()})

    # --- what people ask ----------------------------------------------------------------------------------------------

    def ask(self) -> AnyAsk:
        kinds = (
            (34, self.hold), (30, self.settle), (8, self.renew), (5, self.observe), (4, self.adjust), (3, self.switch),
            (2, self.change), (8, self.repeat),
        )  # fmt: skip
        made: AnyAsk = self.random.choices([make for _, make in kinds], [weight for weight, _ in kinds])[0]()
        return made

    def new_id(self, prefix: str) -> str:
        self.ids += 1
        return f"{prefix}{self.ids}"

    def known_hold(self) -> str:
        if self.wallet.open and self.random.random() < 0.7:
            return self.random.choice(sorted(self.wallet.open))
        ids = [ask.id for ask in self.said if isinstance(ask, Hold)] or ["nobody"]
        return self.random.choice(ids[-8:])

    def costs(self) -> dict[str, int]:
        costs = {"usd": self.random.randrange(0, 25) * CENT}
        if self.random.random() < 0.3:
            costs["jpy"] = self.random.randrange(0, 40) * 1_000_000
        return costs | ({"requests": 1} if self.random.random() < 0.3 else {})

    def hold(self) -> AnyAsk:
        choose, most = self.random.choice, self.costs()
        least = {"usd": most["usd"] // 4} if self.random.random() < 0.3 else {}
        options = [Option(most, least), Option({"usd": CENT})][: choose((1, 1, 2))]
        if self.plan.tiers is not msgspec.UNSET:
            options = [msgspec.structs.replace(option, grade=choose((None, 0, 1, 2, 3))) for option in options]
        labels = {"user": choose(USERS), "provider": choose(("jev", "other")), "key": choose(("k1", "k2"))}
        if self.random.random() < 0.3:
            labels["cohort"] = "premium"
        if self.plan.guards is not msgspec.UNSET:
            labels |= {"session": choose(("s1", "s2")), "origin": choose(("here", "there", "far"))}
        by = self.ts + choose((-SECOND, 0, *[5 * SECOND] * 8, 30 * SECOND))
        return Hold(
            self.new_id("c"), options, by, labels, choose((None, 30, 120)), choose((None, None, "charge", "release"))
        )

    def settle(self) -> AnyAsk:
        hold, kind = self.known_hold(), self.random.random()
        if kind < 0.15:
            return Settle(hold, release=True, by=self.random.choice((None, self.ts)))
        if kind < 0.2:
            then = self.ts - self.random.randrange(1, 3 * self.jump)
            return Settle(
                self.new_id("lost"), {"usd": 3 * CENT}, held_at=then, labels={"user": "bob", "provider": "jev"}
            )
        return Settle(hold, self.costs(), final=kind < 0.75, estimated=kind > 0.9)

    def renew(self) -> AnyAsk:
        more = self.random.choice(({}, {"usd": self.random.randrange(70) * CENT}))
        return Renew(self.known_hold(), self.random.randrange(1, 4), self.random.choice((None, 60)), more)

    def observe(self) -> AnyAsk:
        day = period_at(self.ts - self.random.choice((0, 0, 20 * HOUR)), per="day", zone="UTC").name
        return Observe(self.new_id("o"), "site", day, self.random.randrange(120) * CENT, self.ts - SECOND, "cloudflare")

    def adjust(self) -> AnyAsk:
        day = period_at(self.ts - self.random.choice((0, 24 * HOUR, 96 * HOUR)), per="day", zone="UTC").name
        amount = self.random.randrange(-20, 20) * CENT
        return Adjust(self.new_id("j"), "site", day, amount, "invoice", "ops")

    def switch(self) -> AnyAsk:
        scope, until = self.random.choice(("all", "site", "user=bob")), self.random.choice((None, self.ts + MINUTE))
        if self.wallet.cooling and self.random.random() < 0.3:
            label, value = self.random.choice([*self.wallet.cooling])
            return Restore(self.new_id("u"), label, value)
        return self.random.choice((
            Freeze(self.new_id("f"), scope, "incident", "ops", until), Thaw(self.new_id("t"), scope),
            Thaw(self.new_id("t"), "all"), Revoke(self.new_id("r"), "key", "k2", "stolen", "ops"),
            Restore(self.new_id("u"), "key", "k2"), Restore(self.new_id("u"), "key", "k2"),
        ))  # fmt: skip

    def change(self) -> AnyAsk:
        plan = self.wallet.plan or self.plan
        site = msgspec.structs.replace(plan.budgets["site"], limit=self.random.randrange(50, 200) * CENT)
        zone = self.random.choice(("Europe/Berlin", "Asia/Tokyo"))
        budgets = {**plan.budgets, "site": site, "berlin": msgspec.structs.replace(BERLIN, zone=zone)}
        changed = msgspec.structs.replace(plan, budgets=budgets)
        return ApplyPlan(self.new_id("p"), changed, self.random.choice((digest(plan), digest(plan), "old")), "ops")

    def repeat(self) -> AnyAsk:
        return self.random.choice(self.said[-12:]) if self.said else self.hold()


TIERS = Tiers([Tier(500_000, 0), Tier(750_000, 1), Tier(950_000, 2)], {"premium": 1_500_000})
GUARDS = {
    "retry-storm": Guard("user", 3, 600, "cool", 300),
    "leaked-key": Guard("key", 2, 3_600, "revoke", distinct="origin"),
    "long-session": Guard("session", 5, 7_200, "alert"),
}
ALL = {"site": USD, "berlin": BERLIN, "user": USER, "rush": MINUTES}

HISTORIES: dict[str, tuple[int, Plan, int, int]] = {
    # name: seed, plan, first moment, longest silence
    "a_plain_day": (1, Plan(budgets={"site": USD, "berlin": BERLIN}), 1_796_029_200 * SECOND, 10 * MINUTE),
    "around_midnight": (2, Plan(budgets=ALL), 1_796_082_600 * SECOND, 3 * MINUTE),
    "a_day_of_25_hours": (3, Plan(budgets=ALL, on_lapse="release"), 1_792_875_600 * SECOND, 100 * MINUTE),
    "cheaper_answers": (46, Plan(budgets=ALL, tiers=TIERS), 1_796_029_200 * SECOND, 4 * MINUTE),
    "a_guarded_day": (8, Plan(budgets=ALL, guards=GUARDS), 1_796_029_200 * SECOND, 2 * MINUTE),
    "a_lost_end": (5, Plan(budgets=ALL), 1_796_115_600 * SECOND, 12 * MINUTE),
    "a_short_memory": (4, Plan(budgets=ALL, remember_s=120), 1_796_080_000 * SECOND, 6 * HOUR),
}
AHEAD = {"a_clock_that_was_ahead": (5, Plan(budgets=ALL), 1_796_080_500 * SECOND, 3 * MINUTE)}
LOSING = {"a_lost_end": (20, 12)}
"""Histories of streams that have lost messages: after how many, and how many."""

MESSAGES = 54


def record(name: str) -> None:
    seed, plan, start, jump = (HISTORIES | AHEAD)[name]
    recorder = Recorder(Random(seed), plan, start, jump)
    if name in AHEAD:
        recorder.run_ahead(MESSAGES)
    else:
        recorder.run(MESSAGES, LOSING.get(name))
    lines = b"".join(msgspec.json.encode(line) + b"\n" for line in recorder.lines)
    (FOLDER / f"{name}.jsonl").write_bytes(lines)
    ending = msgspec.json.encode(balances(recorder.wallet, recorder.chain))
    (FOLDER / f"{name}.balances.json").write_bytes(msgspec.json.format(ending) + b"\n")


if __name__ == "__main__":
    for wanted in sys.argv[1:]:
        record(wanted)
