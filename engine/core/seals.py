"""The seals of the wallet's days: what each shared budget had come to when the day ended. Looks only; changes nothing.

A day is over for the first ask message whose moment is at or after its end. What that message's entry says of the day
is what stood once the holds due before the end had lapsed; whatever is charged to the day later comes on top.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.core import limits, periods
from engine.core.messages import Seal, SealedBudget
from engine.core.wallet import Wallet


def days_over(wallet: Wallet, at: int) -> Iterator[tuple[str, int]]:
    """The wallet's days that are over at `at`, with their ends, in order; of a long sleep only the first.

    What is left out had no message in it and, since no hold stays open so long without one, no lapse due.
    """
    assert wallet.plan is not None
    day, end = wallet.day, wallet.day_ends
    for _ in range(limits.SEALS_MAX):
        if at < end:
            return
        yield day, end
        following = periods.period_at(end, per="day", zone=wallet.plan.zone)
        day, end = following.name, following.end


def seal_of(wallet: Wallet, *, day: str, end: int, upto: int) -> Seal:
    """The seal of a day as the wallet now stands. `upto`: the sequence of the last ask message before its end.

    A budget is shown in the period that contains the day's last moment, if anything ever touched that. Meters of single
    `each` values are nobody's business here, and would have no bound.
    """
    budgets = {}
    for name, rule in wallet.named.items():
        if rule.budget.each is not None:
            continue
        place = wallet.place(rule, None, {}, end - 1)
        meter = place.meter
        if meter is not None:
            budgets[name] = SealedBudget(meter.period, place.limit, meter.settled, meter.held, meter.extra)
    return Seal(day, end, upto, len(wallet.open), budgets)
