"""A recorded entry taken into the state, and held against the rules while it is: what an engine replays.

Most of a record are holds that got what they asked for and settlements that charged what they said. Those are taken in
as they were told if it adds up: what each budget has left by the outcome is what it has by all that was told before,
and none is granted what it does not have. Everything else, and all that time did, is decided again and compared.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.core.decide import decide
from engine.core.evolve import evolve
from engine.core.messages import AnyAsk, AnyOutcome, Entry, Held, Hold, Settle, Settled
from engine.core.tell import UNREADABLE, begin
from engine.core.wallet import HoldRecord, Wallet


def retell(
    wallet: Wallet, *, seq: int, ts: int, asks: Sequence[AnyAsk] | None, entry: Entry, skipped: bool = False
) -> bool:
    """Whether this entry can be what `tell` told of its message. If it is, the wallet is as `tell` leaves it.

    If not, the wallet is of no use any more. What is not seen: that a hold which got what it asked for should have got
    nothing, or elsewhere (it was late, its label frozen, its budgets others), where all that was told later agrees.
    """
    lapsed, sealed = begin(wallet, seq=seq, ts=ts, skipped=skipped)
    if (entry.seq, entry.at, entry.lapsed, entry.sealed) != (seq, wallet.at, lapsed, sealed):
        return False
    if asks is None:
        return entry.out == UNREADABLE
    if len(entry.out) != len(asks):
        return False
    try:
        for ask, outcome in zip(asks, entry.out, strict=True):
            if not _take_in(wallet, ask, outcome):
                return False
    except LookupError:  # it names a budget or a unit that there is not
        return False
    return True


def _take_in(wallet: Wallet, ask: AnyAsk, told: AnyOutcome) -> bool:
    """One outcome. False: it is not what the rules tell."""
    if type(told) is Held and type(ask) is Hold and _got_what_it_asked(wallet, ask, told):
        evolve(wallet, ask, told)
        return _grant_adds_up(wallet.open[ask.id], told)
    if type(told) is Settled and type(ask) is Settle and ask.hold in wallet.open and _ended_at_what_it_said(ask, told):
        record = wallet.open[ask.hold]
        evolve(wallet, ask, told)
        return _left_adds_up(record, told)
    if decide(wallet, ask, wallet.at) != told:
        return False
    evolve(wallet, ask, told)
    return True


def _got_what_it_asked(wallet: Wallet, ask: Hold, told: Held) -> bool:
    return (
        told.id == ask.id
        and told.amounts == ask.options[0].amounts
        and not (told.option or told.n)
        and ask.id not in wallet.open
        and ask.id not in wallet.provisional
    )


def _ended_at_what_it_said(ask: Settle, told: Settled) -> bool:
    return (
        told.id == ask.hold
        and told.charged == ask.amounts
        and told.state == "settled"
        and ask.final
        and not (told.flags or told.budgets or told.dropped)
    )


def _grant_adds_up(record: HoldRecord, told: Held) -> bool:
    for bound in record.bound:
        meter, remaining, amount = bound.meter, bound.remaining, told.amounts[bound.meter.unit]
        if meter.settled + meter.extra + meter.held + remaining != bound.limit:
            return False
        if amount < 0 or remaining < 0 < amount:
            return False
    return True


def _left_adds_up(record: HoldRecord, told: Settled) -> bool:
    for bound in record.bound:
        meter = bound.meter
        left = told.left[meter.budget]
        if meter.settled + meter.extra + meter.held + left.remaining != left.limit or told.charged[meter.unit] < 0:
            return False
    return True
