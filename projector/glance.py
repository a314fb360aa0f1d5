"""The wallet at a glance: its shared budgets in the periods of a moment. It reads and changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Final

from engine.core import periods
from engine.core.documents import Barred, BudgetStatus, DayTotals, Figure, Status
from engine.core.wallet import Wallet

BARRED_MAX: Final = 50  # that a status lists of each kind: it goes out four times a second


def status_of(wallet: Wallet, totals: Mapping[tuple[str, str], DayTotals], at: int) -> Status:
    """The shared budgets in the periods that contain `at` (stream time; never before the wallet's own)."""
    at = max(at, wallet.at)
    budgets = wallet.plan.budgets if wallet.plan is not None else {}
    shared = [_budget(wallet, totals, name, at) for name, budget in budgets.items() if budget.each is None]
    frozen = [frost for frost in wallet.frozen.values() if frost.until is None or at < frost.until]
    barred = [*_cooling(wallet, at), *_revoked(wallet)]
    more = sum(max(0, len(those) - BARRED_MAX) for those in (wallet.revoked, wallet.cooling))
    return Status(
        wallet.name, wallet.upto, at, wallet.plan_digest, shared, frozen, len(wallet.open), barred=barred,
        barred_more=more,
    )  # fmt: skip


def _cooling(wallet: Wallet, at: int) -> list[Barred]:
    newest = islice(reversed(wallet.cooling.items()), BARRED_MAX)
    return [Barred(*key, until=cooled.until, guard=cooled.guard) for key, cooled in newest if at < cooled.until]


def _revoked(wallet: Wallet) -> list[Barred]:
    return [Barred(*key, reason=reason) for key, reason in islice(reversed(wallet.revoked.items()), BARRED_MAX)]


def _budget(wallet: Wallet, known: Mapping[tuple[str, str], DayTotals], name: str, at: int) -> BudgetStatus:
    rule = wallet.named.get(name)
    assert rule is not None
    place, budget = wallet.place(rule, None, {}, at), rule.budget
    meter, period = place.meter, place.period
    totals = known.get((name, period.name))
    observed = None
    if meter is not None and meter.as_of and budget.source is not None:
        observed = Figure(budget.source, meter.figure, meter.as_of)
    return BudgetStatus(
        name=name,
        unit=budget.unit,
        scale=wallet.scales[budget.unit],
        per=budget.per,
        zone=budget.zone,
        period=period.name,
        start=period.start,
        resets_at=period.end,
        limit=place.limit,
        settled=meter.settled if meter is not None else 0,
        held=meter.held if meter is not None else 0,
        extra=meter.extra if meter is not None else 0,
        public=budget.public,
        source=budget.source or "",
        note=budget.note,
        link=budget.link,
        first_exhausted_at=totals.first_exhausted_at if totals is not None else None,
        observed=observed,
        earlier_open=_earlier_open(wallet, name, period),
    )


def _earlier_open(wallet: Wallet, budget: str, period: periods.Period) -> int:
    """Open holds that still count to an earlier period. Looks at holds only if there is such a period."""
    earlier = {
        key
        for key, meter in wallet.metering.items()
        if meter.budget == budget and meter.end <= period.start and meter.holders
    }
    if not earlier:
        return 0
    return sum(any(bound.meter.key in earlier for bound in record.bound) for record in wallet.open.values())
