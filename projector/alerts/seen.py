"""What one told entry shows: its moment in the wallet's words, and the shared meters that it speaks of. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from engine.core import periods
from engine.core.amounts import AmountError, parse
from engine.core.limits import AMOUNT_MAX
from engine.core.messages import (
    Adjusted,
    AnyAsk,
    AnyOutcome,
    Done,
    Entry,
    Held,
    Hold,
    Line,
    Observed,
    Renew,
    Settle,
    Settled,
    Stray,
)
from engine.core.meter import Meter, MeterKey
from engine.core.wallet import NS, Wallet
from projector.alerts import wording

HOUR_NS = 3600 * NS


class Now:
    """The moment of an entry. `hour` is UTC's, `2026-11-30T14`."""

    def __init__(self, wallet: Wallet, entry: Entry) -> None:
        self.wallet, self.at, self.seq = wallet, entry.at, entry.seq

    @property
    def day(self) -> str:
        return self.wallet.day

    @property
    def hour(self) -> str:
        return hour_of(self.at)

    @property
    def hour_end(self) -> int:
        return (self.at // HOUR_NS + 1) * HOUR_NS

    def money(self, meter: Meter, amount: int) -> str:
        return wording.money(amount, unit=meter.unit, scale=self.wallet.scales[meter.unit])

    def of_limit(self, meter: Meter, used: int, limit: int) -> str:
        return wording.of_limit(used, limit, unit=meter.unit, scale=self.wallet.scales[meter.unit])

    def smallest(self, written: str, meter: Meter) -> int:
        """An amount of the config in this meter's smallest parts. One with too many digits is never reached."""
        try:
            return parse(written, unit=meter.unit, scale=self.wallet.scales[meter.unit])
        except AmountError:
            return AMOUNT_MAX


def hour_of(at: int) -> str:
    return f"{datetime.fromtimestamp(at // NS, UTC):%Y-%m-%dT%H}"


def moved_by(wallet: Wallet, asks: Sequence[AnyAsk] | None, entry: Entry) -> dict[MeterKey, Meter]:
    """The shared meters of calls that lapse, settle or are renewed. Their outcomes do not say which they are."""
    holds = [lapsed.hold for lapsed in entry.lapsed]
    holds += [ask.hold for ask in asks or () if isinstance(ask, Settle | Renew)]
    records = (wallet.open.get(hold) or wallet.provisional.get(hold) for hold in holds)
    return {
        bound.meter.key: bound.meter
        for record in records
        if record is not None
        for bound in record.bound
        if bound.meter.each is None
    }


def told_of(wallet: Wallet, ask: AnyAsk, outcome: AnyOutcome) -> Iterator[tuple[Meter, int]]:
    """The shared meters that an outcome names, and what it says was used then. The entry has been taken in."""
    for name, line in _lines(ask, outcome):
        meter = wallet.metering.get((name, wallet.generations[name], None, line.start))
        if line.each is None and meter is not None:
            yield meter, line.limit - line.remaining


def _lines(ask: AnyAsk, outcome: AnyOutcome) -> Iterator[tuple[str, Line]]:
    match outcome:
        case Held() if isinstance(ask, Hold):
            yield from outcome.budgets.items()
        case Settled() | Stray():
            yield from outcome.budgets.items()
        case Observed():
            yield getattr(ask, "budget", ""), outcome.line
        case Adjusted(line=Line() as line):
            yield getattr(ask, "budget", ""), line
        case Done():
            yield from ((raised.budget, raised.line) for raised in outcome.raised)
        case _:
            pass


def running(wallet: Wallet) -> Iterator[Meter]:
    """The meters of the shared budgets in the periods that run now."""
    for name, rule in wallet.named.items():
        if rule.budget.each is None:
            period = periods.period_at(wallet.at, per=rule.budget.per, zone=rule.budget.zone)
            meter = wallet.metering.get((name, rule.generation, None, period.start))
            if meter is not None:
                yield meter
