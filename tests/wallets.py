"""Given, when, then for one wallet, in the words of the product.

    books = Books()                                       # given a budget `jev` of 1.00 usd a day
    books.at("09:00")                                     # when
    assert books.hold("a", "0.40") == "held 0.40"         # then

Amounts are written as people write them: "0.40" is usd, "300 neurons" is not. Keyword arguments that are no field of
the ask are labels. Every ask goes through the stored bytes; after every message the invariants are checked, a second
wallet folds what the first was told and must be the same to the byte, and a third is sent everything twice and must not
care.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple, TypeAlias

import msgspec

from engine.core.amounts import SCALES, format_amount, parse
from engine.core.messages import (
    Adjust,
    Adjusted,
    Again,
    Amounts,
    AnyAsk,
    AnyOutcome,
    ApplyPlan,
    AskMessage,
    Closed,
    Conflict,
    Cooling,
    Done,
    Dropped,
    Entry,
    Exhausted,
    Freeze,
    Frozen,
    Held,
    Hold,
    Invalid,
    Observe,
    Observed,
    Option,
    Planned,
    Renew,
    Restore,
    Revoke,
    Revoked,
    Settle,
    Settled,
    Stray,
    Thaw,
)  # fmt: skip
from engine.core.periods import period_at
from engine.core.plan import Budget, LapsePolicy, Per, Plan, limit_of
from engine.core.retell import retell
from engine.core.tell import fold, read, tell
from engine.core.wallet import Wallet

SECOND = 1_000_000_000
TODAY = "2026-11-30"
Said: TypeAlias = "str | Amounts"
"""`"0.40"`, `"300 neurons"`, `"0.40 usd + 300 neurons"`, or the integers themselves."""

CHANGED = (Held, Settled, Stray, Observed, Adjusted, Planned, Done)
"""Outcomes that no ask gets a second time."""


def moment(written: str, *, tick: int = 0) -> int:
    """`09:00` today, or `2026-12-01 00:00:03`, in UTC and nanoseconds; `tick` nanoseconds later."""
    day, _, clock = written.rpartition(" ")
    found = datetime.fromisoformat(f"{day or TODAY}T{clock}").replace(tzinfo=UTC)
    return (found - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1_000 + tick


def amounts(said: Said) -> Amounts:
    if not isinstance(said, str):
        return said
    parts = [part.split() for part in said.split("+")]
    return dict(amount(" ".join(part)) for part in parts if part)


def amount(written: str) -> tuple[str, int]:
    """`"0.40"` is `("usd", 400_000_000)`."""
    figure, _, unit = written.partition(" ")
    unit = unit or "usd"
    return unit, parse(figure, unit=unit, scale=SCALES[unit], signed=True)


def budget(
    limit: str,
    *,
    per: Per = "day",
    zone: str = "UTC",
    where: dict[str, str] | None = None,
    each: str | None = None,
    required: bool = False,
    limit_for: dict[str, str] | None = None,
    source: str | None = None,
) -> Budget:
    """`budget("80 jpy", each="user")`."""
    unit, most = amount(limit)
    special = {rule: amount(f"{figure} {unit}")[1] for rule, figure in (limit_for or {}).items()}
    return Budget(unit, most, per, zone, where or {}, each, required, special, source)


class Meters(NamedTuple):
    """One budget in one period, as a finance person writes it down."""

    settled: str
    held: str
    extra: str
    left: str


class Books:
    """One wallet, and everything that is asked of it."""

    def __init__(
        self,
        *,
        plan: Plan | None = None,
        remember_s: int = 48 * 3600,
        on_lapse: LapsePolicy = "charge",
        start: str = "00:00",
        twice: bool = True,
        **budgets: Budget,
    ) -> None:
        self.wallet = Wallet()
        self.replica = Wallet()  # folds what the first was told
        self.replayed_one = Wallet()  # replays it, as an engine does
        self.echo = Wallet()  # is sent everything twice
        self.seq = 0
        self.ts = moment(start)
        self.twice = twice
        self.skipped = False  # whether a `clock` will say that the stamps of what follows are wrong
        self.stream: list[tuple[int, int, bytes]] = []  # sequence, timestamp, raw bytes
        self.entries: list[Entry] = []
        self.last: AnyOutcome | None = None
        first = plan or Plan(budgets or {"jev": budget("1.00")}, remember_s=remember_s, on_lapse=on_lapse)
        assert self.apply(first) == "planned", self.last

    # --- when ---------------------------------------------------------------------------------------------------------

    def at(self, written: str, *, tick: int = 0) -> Books:
        """What follows is asked at this moment."""
        self.ts = moment(written, tick=tick)
        return self

    def send(self, *asks: AnyAsk) -> list[str]:
        """One message with these asks. What was decided, in words."""
        raw = msgspec.json.encode(AskMessage(asks=list(asks)))
        entry = self.send_raw(raw)
        self.last = entry.out[-1] if entry.out else None
        return [words(outcome, self._unit(ask)) for ask, outcome in zip(asks, entry.out, strict=True)]

    def send_raw(self, raw: bytes) -> Entry:
        message = read(raw)
        asks = message.asks if message is not None else None
        self.seq += 1
        entry = tell(self.wallet, seq=self.seq, ts=self.ts, asks=asks, skipped=self.skipped)
        self.wallet.check()
        stored = msgspec.json.decode(msgspec.json.encode(entry), type=Entry)
        fold(self.replica, seq=self.seq, ts=self.ts, asks=asks, entry=stored)
        assert self.replica.dump() == self.wallet.dump(), "folding what was told gives another wallet than telling it"
        skipped = self.skipped
        assert retell(self.replayed_one, seq=self.seq, ts=self.ts, asks=asks, entry=stored, skipped=skipped), "not told"
        assert self.replayed_one.dump() == self.wallet.dump(), "replaying what was told gives another wallet"
        if self.twice:
            self._send_twice(asks)
        self.stream.append((self.seq, self.ts, raw))
        self.entries.append(entry)
        return entry

    def replayed(self) -> Wallet:
        """What an engine that was not there makes of the same stream: it must say the same of every message."""
        wallet = Wallet()
        for (seq, ts, raw), told in zip(self.stream, self.entries, strict=True):
            message = read(raw)
            assert tell(wallet, seq=seq, ts=ts, asks=message.asks if message is not None else None) == told
        return wallet

    def _unit(self, ask: AnyAsk) -> str:
        return self.wallet.budget_units.get(ask.budget, "") if isinstance(ask, Observe | Adjust) else ""

    def _send_twice(self, asks: list[AnyAsk] | None) -> None:
        tell(self.echo, seq=2 * self.seq, ts=self.ts, asks=asks, skipped=self.skipped)
        again = tell(self.echo, seq=2 * self.seq + 1, ts=self.ts, asks=asks, skipped=self.skipped)
        repeated = [outcome for outcome in again.out if isinstance(outcome, CHANGED)]
        assert not repeated, f"sent twice, it happened twice: {repeated}"
        assert _facts(self.echo) == _facts(self.wallet), "sent twice, something changed"

    def tick(self) -> list[str]:
        """An empty message: time passes. What lapsed, in words."""
        self.send()
        return self.lapses

    def hold(
        self,
        id: str,
        said: Said | list[Option],
        *,
        least: Said = "",
        by: str | int | None = None,
        wait_s: int = 5,
        ttl_s: int | None = None,
        on_lapse: LapsePolicy | None = None,
        price_book: str = "",
        **labels: str,
    ) -> str:
        options = said if isinstance(said, list) else [Option(amounts(said), amounts(least))]
        until = self.ts + wait_s * SECOND if by is None else by if isinstance(by, int) else moment(by)
        return self.send(Hold(id, options, until, labels, ttl_s, on_lapse, price_book))[0]

    def settle(
        self,
        hold: str,
        said: Said,
        *,
        final: bool = True,
        estimated: bool = False,
        held_at: str | None = None,
        id: str = "",
        **labels: str,
    ) -> str:
        then = moment(held_at) if held_at is not None else None
        ask = Settle(hold, amounts(said), final=final, estimated=estimated, held_at=then, labels=labels, id=id)
        return self.send(ask)[0]

    def progress(self, hold: str, said: Said, **labels: str) -> str:
        """So much so far."""
        return self.send(Settle(hold, amounts(said), final=False, labels=labels))[0]

    def estimate(self, hold: str, said: Said, **labels: str) -> str:
        return self.send(Settle(hold, amounts(said), estimated=True, labels=labels))[0]

    def release(self, hold: str, *, by: str | int | None = None) -> str:
        """Give back what is not spent; with `by` its caller gives up on that attempt."""
        until = moment(by) if isinstance(by, str) else by
        return self.send(Settle(hold, release=True, by=until))[0]

    def renew(self, hold: str, n: int, said: Said = "", *, ttl_s: int | None = None) -> str:
        return self.send(Renew(hold, n, ttl_s, amounts(said)))[0]

    def observe(
        self,
        figure: str,
        *,
        budget: str = "jev",
        period: str = TODAY,
        as_of: int | None = None,
        source: str = "cloudflare",
        each: str | None = None,
        id: str = "",
    ) -> str:
        then = self.ts if as_of is None else as_of
        ask = Observe(id or f"o{self.seq}", budget, period, amount(figure)[1], then, source, each)
        return self.send(ask)[0]

    def adjust(
        self,
        change: str,
        *,
        budget: str = "jev",
        period: str = TODAY,
        each: str | None = None,
        id: str = "",
        reason: str = "the invoice says so",
    ) -> str:
        return self.send(Adjust(id or f"j{self.seq}", budget, period, amount(change)[1], reason, "ops", each))[0]

    def freeze(self, scope: str, *, until: str | None = None, id: str = "", reason: str = "incident") -> str:
        end = moment(until) if until is not None else None
        return self.send(Freeze(id or f"f{self.seq}", scope, reason, "ops", end))[0]

    def thaw(self, scope: str, *, id: str = "") -> str:
        return self.send(Thaw(id or f"t{self.seq}", scope))[0]

    def revoke(self, label: str, value: str, *, id: str = "") -> str:
        return self.send(Revoke(id or f"r{self.seq}", label, value, "stolen"))[0]

    def restore(self, label: str, value: str, *, id: str = "") -> str:
        return self.send(Restore(id or f"u{self.seq}", label, value))[0]

    def apply(self, plan: Plan, *, replaces: str | None = None, id: str = "") -> str:
        base = self.wallet.plan_digest if replaces is None else replaces
        return self.send(ApplyPlan(id or f"p{self.seq}", plan, base))[0]

    def change(self, **budgets: Budget) -> str:
        """Apply the plan in force with these budgets changed or added."""
        return self.apply(msgspec.structs.replace(self.plan, budgets={**self.plan.budgets, **budgets}))

    # --- then ---------------------------------------------------------------------------------------------------------

    @property
    def plan(self) -> Plan:
        assert self.wallet.plan is not None
        return self.wallet.plan

    @property
    def lapses(self) -> list[str]:
        """What lapsed before the newest message, in words."""
        return [f"{lapse.hold} lapsed at {shown(lapse.charged)}" for lapse in self.entries[-1].lapsed]

    def meters(self, budget: str = "jev", *, day: str | None = None, each: str | None = None) -> Meters:
        """A budget in the period of now, or in the one named."""
        rules = self.plan.budgets[budget]
        period = day or period_at(self.wallet.at, per=rules.per, zone=rules.zone).name
        settled, held, extra, _ = self.wallet.meters().get((budget, each, period), (0, 0, 0, 0))
        limit = limit_of(rules, {rules.each: each} if rules.each and each else {})
        figures = (settled, held, extra, limit - settled - held - extra)
        return Meters(*(written(rules.unit, figure) for figure in figures))

    def settled(self, budget: str = "jev", *, day: str | None = None, each: str | None = None) -> str:
        return self.meters(budget, day=day, each=each).settled

    def held(self, budget: str = "jev", *, day: str | None = None, each: str | None = None) -> str:
        return self.meters(budget, day=day, each=each).held

    def extra(self, budget: str = "jev", *, day: str | None = None, each: str | None = None) -> str:
        return self.meters(budget, day=day, each=each).extra

    def left(self, budget: str = "jev", *, day: str | None = None, each: str | None = None) -> str:
        return self.meters(budget, day=day, each=each).left

    def state(self, id: str) -> str:
        """The state of a hold, "" if the wallet does not know it."""
        wallet = self.wallet
        known = wallet.open.get(id) or wallet.provisional.get(id) or wallet.closed.get(id, wallet.at)
        return known.state if known is not None else ""


def _facts(wallet: Wallet) -> tuple[object, ...]:
    """What must not change when an ask is sent twice; sequences may differ."""
    open_ = {id: (r.granted, r.progress, r.expires_at, r.by) for id, r in wallet.open.items()}
    provisional = {id: (r.state, r.charged, r.progress, r.forget_at) for id, r in wallet.provisional.items()}
    meters = {key: m for key, m in wallet.metering.items() if m.holders or m.end > wallet.horizon}  # the rest goes next
    frozen = {s: f for s, f in wallet.frozen.items() if f.until is None or wallet.at < f.until}
    return (meters, open_, provisional, frozen, wallet.revoked, wallet.cooling, wallet.plan_digest)


def written(unit: str, figure: int) -> str:
    text = format_amount(figure, scale=SCALES[unit])
    if unit != "usd":
        return text
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction:0<2}"


def shown(said: Amounts) -> str:
    """`0.40` for usd, `300 neurons` for others; nothing is `nothing`."""
    parts = [written(unit, figure) + ("" if unit == "usd" else f" {unit}") for unit, figure in said.items()]
    return " + ".join(parts) or "nothing"


def words(outcome: AnyOutcome, unit: str = "usd") -> str:
    """An outcome in one line. `unit`: of the budget it speaks of, where it does not say so itself."""
    match outcome:
        case Held():
            option = f" by option {outcome.option}" if outcome.option else ""
            return f"held {shown(outcome.amounts)}{option}" + (f", renewal {outcome.n}" if outcome.n else "")
        case Settled():
            return _settled(outcome)
        case Stray():
            provisional = " for now" if outcome.state == "estimated" else ""
            return f"stray {shown(outcome.charged)}{provisional}{_gone(outcome.dropped)}"
        case Observed():
            return f"observed, raised by {shown({unit: outcome.raised_by})}"
        case Adjusted():
            return "adjusted" + _gone([outcome.dropped] if outcome.dropped is not None else [])
        case Planned():
            return "planned" + (f", restarts {', '.join(outcome.restarts)}" if outcome.restarts else "")
        case _:
            about = _about(outcome)
            return f"{outcome.__struct_config__.tag}: {about}" if about else str(outcome.__struct_config__.tag)


def _about(outcome: AnyOutcome) -> str:
    """What a "no" is about."""
    match outcome:
        case Exhausted():
            return f"{outcome.why}, {shown({outcome.unit: outcome.fits})} fits"
        case Closed():
            return f"{outcome.state} {shown(outcome.charged)}"
        case Revoked() | Cooling():
            return f"{outcome.label}={outcome.value}"
        case Frozen():
            return outcome.scope
        case Again():
            return outcome.state
        case Conflict() | Invalid():
            return outcome.field
        case _:
            return ""


def _settled(outcome: Settled) -> str:
    back = f", {shown(outcome.released)} back" if outcome.released else ""
    flags = f" ({', '.join(outcome.flags)})" if outcome.flags else ""
    return f"{outcome.state} {shown(outcome.charged)}{back}{_gone(outcome.dropped)}{flags}"


def _gone(dropped: list[Dropped]) -> str:
    return "".join(f", {drop.amount} to {drop.budget} of {drop.period}" for drop in dropped)
