"""Calls whose real cost nobody has said: open for long, lapsed, estimated, or settled too late to be charged.

Nothing is judged; what is at stake is what they take of each budget now.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable

import msgspec

from engine.core.amounts import format_amount
from engine.core.messages import Amounts
from engine.core.wallet import NS, Wallet
from engine.stream_clock import written
from projector.backfill import plain
from projector.backfill.known import Known, Register
from projector.reading import Source
from projector.replay import replay

OLDER_THAN_S = 600
"""An open hold that is younger may well be settled yet."""

FORGOTTEN = "forgotten"


class Stake(msgspec.Struct, frozen=True):
    """What one call takes of a budget's period."""

    budget: str
    each: str | None
    period: str
    unit: str
    amount: str


class Orphan(msgspec.Struct, frozen=True):
    """One call. `state`: open, lapsed, estimated or forgotten. `said`: its cost, where that came too late to count."""

    hold: str
    state: str
    at: str
    age_s: int
    takes: dict[str, str]
    said: dict[str, str]
    at_stake: list[Stake]
    labels: dict[str, str]


async def orphans(
    source: Source,
    *,
    older_than_s: int = OLDER_THAN_S,
    now: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Orphan]:
    """The oldest first. `now`: the stream's clock, else the last moment on the record. Raises as `replay` does.

    The record is read a second time where settlements were forgotten: only then can be said what they were of.
    """
    register = Register(source.wallet)
    await replay(source, register.fold, progress=progress)
    unclear = {hold for hold, known in register.holds.items() if not known.state}
    if unclear:
        again = Register(source.wallet, wanted=unclear)
        await replay(source, again.fold, progress=progress)
        for hold in unclear:
            known = again.holds[hold]
            if known.exact or known.adjusts:
                del register.holds[hold]
            else:
                register.holds[hold] = known
    return _listed(register, older_than_s, now)


def _listed(register: Register, older_than_s: int, now: int | None) -> list[Orphan]:
    wallet = register.wallet
    moment = max(now or 0, wallet.at)
    aged = [known for known in register.holds.values() if known.state != "open" or _age(known, moment) > older_than_s]
    aged.sort(key=lambda known: (_held_at(known), known.id))
    return [_orphan(wallet, known, moment) for known in aged]


def _orphan(wallet: Wallet, known: Known, now: int) -> Orphan:
    takes = wallet.open[known.id].takes() if known.state == "open" else known.charged
    said = known.forgotten.amounts if known.forgotten is not None and not known.forgotten.estimated else {}
    return Orphan(
        hold=known.id,
        state=FORGOTTEN if known.forgotten is not None else known.state,
        at=written(_held_at(known)),
        age_s=_age(known, now),
        takes=_texts(wallet, takes),
        said=_texts(wallet, said),
        at_stake=[
            Stake(place.budget, place.each, place.period, place.unit, _text(wallet, place.unit, takes[place.unit]))
            for place in known.places
            if place.unit in takes
        ],
        labels=known.labels or (known.forgotten.labels if known.forgotten is not None else {}),
    )


def _held_at(known: Known) -> int:
    if known.state or known.forgotten is None:
        return known.at
    return known.forgotten.held_at or known.changed_at


def _age(known: Known, now: int) -> int:
    return max(0, now - _held_at(known)) // NS


def totals(found: Iterable[Orphan]) -> list[Stake]:
    """At stake in each budget, over all its periods and values."""
    sums: dict[tuple[str, str], list[str]] = {}
    for orphan in found:
        for stake in orphan.at_stake:
            sums.setdefault((stake.budget, stake.unit), []).append(stake.amount)
    return [Stake(budget, None, "", unit, _sum(amounts)) for (budget, unit), amounts in sorted(sums.items())]


def as_csv(found: Iterable[Orphan]) -> str:
    """The very file a backfill takes: fill in what each call cost. What came too late is filled in already."""
    rows = list(found)
    units = sorted({unit for row in rows for unit in (*row.takes, *row.said)}) or ["usd"]
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow([plain.HOLD, plain.AT, *units, plain.NOTE])
    for row in rows:
        takes = ", ".join(f"{amount} {unit}" for unit, amount in row.takes.items())
        note = f"{row.state}, takes {takes}" if takes else row.state
        lines.writerow([row.hold, row.at, *(row.said.get(unit, "") for unit in units), note])
    return text.getvalue()


def _sum(amounts: Iterable[str]) -> str:
    """Of exact decimal texts, by whole numbers of the finest part among them."""
    parts = [amount.partition(".") for amount in amounts]
    scale = max(len(fraction) for _, _, fraction in parts)
    return format_amount(sum(int(whole + fraction.ljust(scale, "0")) for whole, _, fraction in parts), scale=scale)


def _texts(wallet: Wallet, amounts: Amounts) -> dict[str, str]:
    return {unit: _text(wallet, unit, amount) for unit, amount in amounts.items()}


def _text(wallet: Wallet, unit: str, amount: int) -> str:
    return format_amount(amount, scale=wallet.scales[unit])
