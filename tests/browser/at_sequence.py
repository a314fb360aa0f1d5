"""What a budget must be said to stand at as of any one event, from the wallet's record alone.

The record is folded as an auditor folds it; shares are worked out here once more, by no code of the pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from itertools import accumulate, pairwise
from pathlib import Path

from browser.readings import LINES, Shown

from engine.core.meter import Meter
from engine.core.plan import limit_of
from engine.core.tell import fold
from engine.core.wallet import Wallet
from projector.export.raw_source import RawSource
from projector.replay import Answered, replay

NS = 1_000_000_000
TENTHS = Decimal("0.1")


@dataclass(frozen=True)
class Standing:
    """One budget in one period as of one event, in its smallest parts. `end`: of the period, nanoseconds."""

    limit: int
    scale: int
    end: int
    settled: int = 0
    extra: int = 0
    held: int = 0

    @property
    def lines(self) -> dict[str, tuple[Decimal, Decimal]]:
        """Each line's amount, and its percentage: running totals are rounded down, and the lines are their steps."""
        parts = (self.settled, self.extra, self.held)
        marks = [total * 1000 // self.limit for total in accumulate((0, *parts))]
        tenths = [high - low for low, high in pairwise(marks)]
        amounts = (*parts, max(0, self.limit - sum(parts)))
        shares = (*tenths, max(0, 1000 - marks[-1]))
        return {
            line: (Decimal(amount).scaleb(-self.scale), share * TENTHS)
            for line, amount, share in zip(LINES, amounts, shares, strict=True)
        }


@dataclass(frozen=True)
class Event:
    """The wallet as of one event: its moment, and every period that was ever used, by budget and time of its end."""

    at: int
    limits: dict[str, tuple[int, int]]
    meters: dict[tuple[str, str], Standing]

    def standing(self, budget: str, resets: str) -> Standing:
        """A period that nothing was asked of stands at zero."""
        limit, scale = self.limits[budget]
        return self.meters.get((budget, resets)) or Standing(limit, scale, self.at + 1)

    @property
    def now(self) -> dict[str, list[Decimal]]:
        """What is spent, others' and held in each budget's period of this moment, where anything was asked of it."""
        return {
            budget: [right.lines[line][0] for line in ("spent", "others", "held")]
            for (budget, _), right in self.meters.items()
            if right.end > self.at
        }

    def differences(self, shown: Shown) -> list[str]:
        """What is shown otherwise than it is, in words."""
        if shown.lines is None:
            return []
        right = self.standing(shown.budget, shown.resets)
        if right.end <= self.at:
            return [f"{shown} is of a period that was over"]
        used = (100 * (right.settled + right.extra + right.held)) // right.limit
        said = shown.used.rstrip(".")
        words = {f"{used} % used", *(["Less than 1 % used"] if used == 0 else [])}
        found = [f"{said!r} instead of one of {words}"] if said not in words else []
        lines = right.lines.items()
        return found + [f"{shown}: {line} should be {one}" for line, one in lines if shown.lines[line] != one]


async def events(record: Path, wanted: set[int]) -> dict[int, Event]:
    """The wallet as of each event that is wanted. `record`: a raw export of it."""
    source = RawSource(record)
    wallet = Wallet(source.wallet)
    found: dict[int, Event] = {}

    def take(one: Answered) -> None:
        fold(wallet, seq=one.stored.seq, ts=one.stored.ts, asks=one.asks, entry=one.entry)
        if one.stored.seq in wanted:
            found[one.stored.seq] = _event(wallet, one.entry.at)

    await replay(source, take)
    return found


def _event(wallet: Wallet, at: int) -> Event:
    assert wallet.plan is not None
    limits = {name: (limit_of(budget, {}), wallet.scales[budget.unit]) for name, budget in wallet.plan.budgets.items()}
    meters = sorted((meter for meter in wallet.metering.values() if meter.each is None), key=lambda one: one.start)
    return Event(at, limits, {(one.budget, _clock(one)): _standing(one, *limits[one.budget]) for one in meters})


def _standing(meter: Meter, limit: int, scale: int) -> Standing:
    return Standing(limit, scale, meter.end, meter.settled, meter.extra, meter.held)


def _clock(meter: Meter) -> str:
    if meter.end >= 2**63 - 1:
        return ""
    return f"{datetime.fromtimestamp(meter.end // NS, UTC):%H:%M}"
