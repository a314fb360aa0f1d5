"""The fold that raises alerts: told entries in, alerts out. Pure: whoever folds the same record raises the same.

    touched = fold.before(wallet, asks, entry)      the wallet as it was: which meters settles and lapses will move
    ...                                             somebody takes the entry into the wallet
    fold.after(wallet, asks, entry, touched)        the wallet as it is: what was crossed

A threshold is crossed when `used` reaches it, also where a later ask of the same message gives it back. Each is raised
once for (budget, period, threshold): marks remember how far each period has come, and go when it is over. What is
charged to a period that is over is nobody's alarm any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from engine.core import periods
from engine.core.amounts import format_amount
from engine.core.messages import (
    AnyAsk,
    AnyOutcome,
    Conflict,
    Cooling,
    Done,
    Entry,
    Exhausted,
    Held,
    Hold,
    Loss,
    Planned,
    Revoked,
    Settle,
)
from engine.core.meter import Meter, MeterKey
from engine.core.wallet import Wallet
from projector.alerts import wording
from projector.alerts.alert import Alert, RuleName, alert_id
from projector.alerts.rules import Burst, Rules, Runaway, each_at_first, is_runaway, steps, twice_median
from projector.alerts.seen import Now, moved_by, running, told_of
from projector.alerts.spending import Spending

RAISED_MAX = 500  # the newest alerts that are remembered
SPARE = 1_024  # marks of periods that are over, and dropped meters, are let go when there are this many more of them
SHOWN_CHARS_MAX = 64  # of a label's value or an id in a sentence


class Mark(msgspec.Struct, gc=False):
    """How far something has come in a period that ends at `end`: percent reached, or how often it happened."""

    reached: int
    end: int


class State(msgspec.Struct, frozen=True):
    """All that a snapshot remembers."""

    raised: list[Alert] = []
    marks: dict[str, Mark] = {}
    spending: dict[str, Spending] = {}


class AlertFold:
    """`raised`: the newest alerts by id, oldest first."""

    def __init__(self, rules: Rules, state: State | None = None, wallet: Wallet | None = None) -> None:
        """With a state, goes on from there; `wallet` is then the one of the same snapshot."""
        state = state if state is not None else State()
        self.rules = rules
        self.raised = {alert.id: alert for alert in state.raised}
        self._marks, self._swept = state.marks, 0
        self._spending = state.spending
        self._known: dict[MeterKey, int] = {}  # percent that a mark has reached at least
        meters = wallet.metering.values() if wallet is not None else ()
        self._settled: dict[MeterKey, int] = {meter.key: meter.settled for meter in meters if meter.each is None}

    def state(self) -> State:
        return State(list(self.raised.values()), self._marks, self._spending)

    # --- taking entries in --------------------------------------------------------------------------------------------

    def before(self, wallet: Wallet, asks: Sequence[AnyAsk] | None, entry: Entry) -> dict[MeterKey, Meter]:
        """For `after`."""
        return moved_by(wallet, asks, entry)

    def after(
        self, wallet: Wallet, asks: Sequence[AnyAsk] | None, entry: Entry, touched: dict[MeterKey, Meter]
    ) -> None:
        """Raise what this entry has crossed. It has been taken into the wallet."""
        now = Now(wallet, entry)
        peaks: dict[MeterKey, int] = {}
        if entry.lapsed:
            self._lapsed(now, len(entry.lapsed))
        for ask, outcome in zip(asks or (), entry.out, strict=asks is not None):
            for meter, used in told_of(wallet, ask, outcome):
                touched[meter.key] = meter
                peaks[meter.key] = max(peaks.get(meter.key, 0), used)
            self._hear(now, ask, outcome)
            if isinstance(outcome, Planned):
                touched |= {meter.key: meter for meter in running(wallet)}
        for key, meter in touched.items():
            self._metered(now, meter, max(meter.used, peaks.get(key, 0)))
        self._sweep(wallet)

    def _hear(self, now: Now, ask: AnyAsk, outcome: AnyOutcome) -> None:
        match outcome, ask:
            case Held(), Hold():
                self._fired(now, outcome.fired, ask.labels)
            case Exhausted(), Hold():
                self._fired(now, outcome.fired, ask.labels)
                if outcome.why == "spent" and outcome.each is None:
                    self._refused(now, outcome)
            case Cooling(fired=[name]), _:
                self._guard(now, name, "cools", outcome.label, outcome.value)
            case Revoked(fired=[name]), _:
                self._guard(now, name, "has revoked", outcome.label, outcome.value, told=each_at_first)
            case Conflict(), Settle():
                self._conflict(now, ask.hold)
            case Done(), Loss():
                text = wording.loss(ask.from_seq, ask.to_seq, ask.reason)
                self._raise(now, "loss", "", now.day, _shown(ask.id), text)

    # --- meters -------------------------------------------------------------------------------------------------------

    def _metered(self, now: Now, meter: Meter, used: int) -> None:
        rule = now.wallet.named.get(meter.budget)
        spent = meter.settled - self._settled.get(meter.key, 0)
        self._settled[meter.key] = meter.settled
        if rule is None or rule.budget.each is not None or rule.generation != meter.generation:
            return
        if spent:
            self._spent(now, meter, rule.budget.limit, spent)
        if rule.budget.limit > 0 and now.at < meter.end:
            self._reached(now, meter, rule.budget.limit, used)

    def _reached(self, now: Now, meter: Meter, limit: int, used: int) -> None:
        percent = used * 100 // limit
        if percent <= self._known.get(meter.key, -1):  # most calls raise nothing, and need no more than this
            return
        self._known[meter.key] = percent
        before, percent = self._mark("percent", meter.budget, meter.period, meter.end, percent)
        crossed = [each for each in self.rules.percents if before < each <= percent]
        if not crossed:
            return
        text = (
            f"{meter.budget} {meter.period}: {now.of_limit(meter, used, limit)}{self._pace(now, meter, limit - used)}"
        )
        figures = {"used": used, "limit": limit, "settled": meter.settled, "held": meter.held, "extra": meter.extra}
        for each in crossed:
            self._raise(now, "percent", meter.budget, meter.period, str(each), text, unit=meter.unit, figures=figures)

    def _pace(self, now: Now, meter: Meter, remaining: int) -> str:
        spending = self._spending.get(meter.budget)
        spent = span_ns = 0
        if spending is not None:
            spending.minutes.upto(now.at)
            spent, span_ns = spending.minutes.total, spending.minutes.span_ns(now.at)
        resets_in_ns = meter.end - now.at if meter.end < periods.TOTAL.end else None
        return wording.pace(remaining, spent=spent, span_ns=span_ns, resets_in_ns=resets_in_ns)

    def _refused(self, now: Now, outcome: Exhausted) -> None:
        before, _ = self._mark("refused", outcome.budget, outcome.period, outcome.resets_at, 1)
        if before or outcome.limit <= 0:
            return
        used, unit = outcome.limit - outcome.remaining, outcome.unit
        said = wording.of_limit(used, outcome.limit, unit=unit, scale=now.wallet.scales[unit])
        text = f"{outcome.budget} {outcome.period}: {wording.refused(said)}"
        figures = {"used": used, "limit": outcome.limit, "remaining": outcome.remaining, "fits": outcome.fits}
        self._raise(now, "refused", outcome.budget, outcome.period, "1", text, unit=unit, figures=figures)

    # --- spending -----------------------------------------------------------------------------------------------------

    def _spent(self, now: Now, meter: Meter, limit: int, spent: int) -> None:
        spending = self._spending.setdefault(meter.budget, Spending())
        spending.add(spent, now.at)
        for burst in self.rules.bursts:
            if burst.budget == meter.budget:
                self._burst(now, meter, burst, spending.within(burst, spent, now.at))
        for runaway in self.rules.runaways:
            if runaway.budget == meter.budget:
                self._runaway(now, meter, runaway, spending, limit)

    def _burst(self, now: Now, meter: Meter, burst: Burst, spent: int) -> None:
        most = now.smallest(burst.amount, meter)
        if spent <= most or self._mark(f"burst {burst.name}", meter.budget, now.hour, now.hour_end, 1)[0]:
            return
        said = wording.burst(now.money(meter, spent), now.money(meter, most), burst.within_s)
        figures = {"spent": spent, "more_than": most}
        text = f"{meter.budget}: {said}"
        self._raise(now, "burst", meter.budget, now.hour, burst.name, text, unit=meter.unit, figures=figures)

    def _runaway(self, now: Now, meter: Meter, runaway: Runaway, spending: Spending, limit: int) -> None:
        spent, usual = spending.this_hour(now.at), spending.same_hour_before(now.at)
        if not is_runaway(spent, usual, limit):
            return
        if self._mark("runaway", meter.budget, now.hour, now.hour_end, 1)[0]:
            return
        median = twice_median(usual) // 2
        said = wording.runaway(now.money(meter, spent), now.money(meter, median))
        text = f"{meter.budget} {now.hour}: {said}"
        figures = {"spent": spent, "usual": median}
        if runaway.freeze:
            text = f"{text}; {wording.FREEZES}"
        self._raise(
            now, "runaway", meter.budget, now.hour, "4", text,
            unit=meter.unit, figures=figures, freezes=wording.FREEZE_REASON if runaway.freeze else "",
        )  # fmt: skip

    # --- what is counted ----------------------------------------------------------------------------------------------

    def _lapsed(self, now: Now, lapsed: int) -> None:
        before, count = self._count(now, "lapse", "", lapsed)
        for step in steps(before, count):
            self._raise(now, "lapse", "", now.day, str(step), wording.lapses(count))

    def _conflict(self, now: Now, hold: str) -> None:
        before, count = self._count(now, "conflict", "", 1)
        for step in steps(before, count):
            self._raise(now, "conflict", "", now.day, str(step), wording.conflicts(count, _shown(hold)))

    def _fired(self, now: Now, names: Iterable[str], labels: Mapping[str, str]) -> None:
        """Guards that only say so."""
        for name in names:
            watch = now.wallet.watches.get(name)
            label = watch.guard.label if watch is not None else ""
            self._guard(now, name, "has seen too much of", label, labels.get(label, ""))

    def _guard(
        self,
        now: Now,
        name: str,
        did: str,
        label: str,
        value: str,
        *,
        told: Callable[[int, int], list[int]] = steps,
    ) -> None:
        """`told`: which counts of the day are alerts."""
        before, count = self._count(now, f"guard {did}", name, 1)
        for step in told(before, count):
            text = wording.guard(name, did, label, _shown(value), count)
            self._raise(now, "guard", name, now.day, str(step), text)

    # --- marks and alerts ---------------------------------------------------------------------------------------------

    def _mark(self, what: str, subject: str, period: str, end: int, reached: int) -> tuple[int, int]:
        """Put the mark at `reached`, never back. Where it stood, and where it stands."""
        mark = self._marks.setdefault(f"{what}:{subject}:{period}", Mark(0, end))
        before, mark.reached = mark.reached, max(mark.reached, reached)
        return before, mark.reached

    def _count(self, now: Now, what: str, subject: str, more: int) -> tuple[int, int]:
        """Count on today. Where the count stood, and where it stands."""
        before, _ = self._mark(what, subject, now.day, now.wallet.day_ends, 0)
        return self._mark(what, subject, now.day, now.wallet.day_ends, before + more)

    def _raise(
        self,
        now: Now,
        rule: RuleName,
        subject: str,
        period: str,
        threshold: str,
        text: str,
        *,
        unit: str = "",
        figures: Mapping[str, int] | None = None,
        freezes: str = "",
    ) -> None:
        if rule in self.rules.off:
            return
        scale = now.wallet.scales[unit] if unit else 0
        written = {name: format_amount(amount, scale=scale) for name, amount in (figures or {}).items()}
        id, budget = alert_id(rule, subject, period, threshold), subject if unit else ""
        self.raised.setdefault(
            id, Alert(id, rule, text, now.at, now.seq, budget, period, threshold, unit, written, freezes)
        )
        if len(self.raised) > RAISED_MAX:
            del self.raised[next(iter(self.raised))]

    def _sweep(self, wallet: Wallet) -> None:
        """Let go what no period that still runs needs."""
        if len(self._marks) > 2 * self._swept + SPARE:
            self._marks = {key: mark for key, mark in self._marks.items() if mark.end > wallet.at}
            self._swept = len(self._marks)
        if len(self._settled) > 2 * len(wallet.metering) + SPARE:
            self._settled = {key: settled for key, settled in self._settled.items() if key in wallet.metering}
            self._known = {key: percent for key, percent in self._known.items() if key in wallet.metering}


def _shown(written: str) -> str:
    """What others chose, safe and short in a sentence."""
    plain = "".join(each if each.isprintable() else "?" for each in written)
    return plain if len(plain) <= SHOWN_CHARS_MAX else f"{plain[:SHOWN_CHARS_MAX]}..."
