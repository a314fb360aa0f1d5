"""The wallet as it was at any moment: folded from the record, from the newest snapshot before it if one can be used.

A snapshot saves time and nothing else: it is used only if the told it was taken at stands on the record with its chain.
What is read behind it is proved; what lies before it is not read again, and that is said.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import structlog

from engine.core.amounts import format_amount
from engine.core.meter import Meter
from engine.core.plan import limit_of
from engine.core.tell import fold
from engine.core.wallet import Wallet
from engine.errors import Untrusted
from engine.journal import Stored
from engine.recorded import Recorded
from engine.snapshots import FOLDER, SUFFIX, Snapshot, UnusableError, decode
from engine.stream_clock import written
from projector.audit.kept import Laying, keeping
from projector.reading import Source
from projector.replay import Replay

METERS_MAX = 200  # of budgets that are kept for each value of a label

log = structlog.get_logger()


class _PastIt(Exception):
    """The first message after the moment."""


class Moment(msgspec.Struct, frozen=True):
    """The wallet at `at`: after every entry up to then. `start`: the told of the snapshot it began with, 0: none."""

    at: str
    wallet: str
    upto: int
    told: int
    chain: str
    start: int
    plan: str
    budgets: list[dict[str, Any]]
    more: int
    open_holds: int
    due: int
    frozen: list[dict[str, Any]]
    revoked: list[str]


async def wallet_at(source: Source, at: int, *, data: Path | None = None, keep: bool = False) -> Moment:
    """The wallet at `at` (ns). Raises as `replay` does.

    Snapshots are looked for under `data`, and with `keep` some are left there for the next time.
    """
    keep = keep and not await source.any_loss()
    with keeping(data if keep else None, source.wallet) as kept:
        moment = await _wallet_at(source, at, data, Laying(kept.folder) if kept is not None else None)
        if kept is not None:
            kept.prove()
        return moment


async def _wallet_at(source: Source, at: int, data: Path | None, laying: Laying | None) -> Moment:
    start = await _newest_before(source, at, data)
    wallet = start.wallet if start is not None else Wallet(source.wallet)
    reading = Replay(losses=source.losses, start=start)
    told, chain = reading.told, reading.chain

    def take(stored: Stored) -> None:
        nonlocal told, chain
        for answered in reading.take(stored):
            if answered.entry.at > at:
                raise _PastIt
            fold(wallet, seq=answered.stored.seq, ts=answered.stored.ts, asks=answered.asks, entry=answered.entry)
            told, chain = answered.told, answered.chain
        if laying is not None and told == reading.told:
            laying.see(wallet, asks=reading.asks, told=told, chain=chain)

    end = await source.last()
    with suppress(_PastIt):
        if end > reading.last:
            await source.read(take, after=reading.last, upto=end)
    return _shown(wallet, at, told=told, chain=chain, start=start.told if start is not None else 0)


async def _newest_before(source: Source, at: int, data: Path | None) -> Snapshot | None:
    """The newest that was taken by then and agrees with the record; none where a loss was ever accepted."""
    if data is None or await source.any_loss():
        return None
    for told, file in _files(data, source.wallet):
        stored = await source.at(told)
        if stored is None or stored.kind != "told":
            log.warning("snapshot_not_used", told=told, why="no told stands at its place")
            continue
        try:
            recorded = Recorded.read(stored)
            if recorded.told.told[-1].at > at:
                continue
            snapshot = decode(file.read_bytes(), wallet=source.wallet)
        except (UnusableError, Untrusted, OSError) as error:
            log.warning("snapshot_not_used", told=told, why=str(error))
            continue
        if (snapshot.told, snapshot.chain) == (told, recorded.chain):
            return snapshot
        log.warning("snapshot_not_used", told=told, why="the record bears another chain at its place")
    return None


def _files(data: Path, wallet: str) -> list[tuple[int, Path]]:
    """The snapshots of every keeper, the newest first, by the told in their names."""
    found = (data / FOLDER / wallet).rglob(f"*{SUFFIX}")
    return sorted(((int(file.stem), file) for file in found if file.stem.isdecimal()), reverse=True)


def _shown(wallet: Wallet, at: int, *, told: int, chain: bytes, start: int) -> Moment:
    meters = [meter for meter in wallet.metering.values() if meter.start <= at < meter.end]
    meters.sort(key=lambda meter: (meter.each is not None, -meter.used, meter.budget))
    shared = sum(meter.each is None for meter in meters)
    shown = meters[: shared + METERS_MAX]
    return Moment(
        at=written(at),
        wallet=wallet.name,
        upto=wallet.upto,
        told=told,
        chain=chain.hex(),
        start=start,
        plan=wallet.plan_digest,
        budgets=[_meter(wallet, meter) for meter in shown],
        more=len(meters) - len(shown),
        open_holds=len(wallet.open),
        due=sum(record.expires_at <= at for record in wallet.open.values()),
        frozen=[
            {"scope": frost.scope, "reason": frost.reason, "since": written(frost.since),
             "until": written(frost.until) if frost.until is not None else None}
            for frost in wallet.frozen.values()
            if frost.until is None or at < frost.until
        ],
        revoked=[f"{label}={value}" for label, value in wallet.revoked],
    )  # fmt: skip


def _meter(wallet: Wallet, meter: Meter) -> dict[str, Any]:
    rule = wallet.named.get(meter.budget)
    labels = {rule.budget.each: meter.each} if rule is not None and rule.budget.each and meter.each is not None else {}
    limit = limit_of(rule.budget, labels) if rule is not None else 0
    figures = {
        "limit": limit, "settled": meter.settled, "held": meter.held, "extra": meter.extra, "used": meter.used,
        "remaining": limit - meter.used,
    }  # fmt: skip
    scale = wallet.scales[meter.unit]
    return {
        "budget": meter.budget,
        "each": meter.each,
        "period": meter.period,
        "unit": meter.unit,
        **{name: format_amount(figure, scale=scale) for name, figure in figures.items()},
    }
