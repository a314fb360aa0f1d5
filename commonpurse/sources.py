"""Who still knows what was used: the projector's documents, and the snapshots of engine and projector.

They stand beside the stream, so they may know what a store has lost. Nothing here judges or writes.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from nats.js.errors import BucketNotFoundError, NoKeysError

from engine.core.documents import DayTotals
from engine.journal import Journal
from engine.snapshots import Snapshot, Snapshots
from engine.witness import Witness
from projector.days.bucket import bucket_name, is_totals

MeterName = tuple[str, str | None, str]
"""Budget, `each` value, period."""


class Source(msgspec.Struct):
    """Somebody who still knows what was used: up to which told, by meter, and by budget and period over all meters.

    `generations`: of its budgets, where it knows them. Documents have sums alone.
    """

    name: str
    told: int
    meters: dict[MeterName, int] = {}
    sums: dict[tuple[str, str], int] = {}
    generations: dict[str, int] | None = None

    @property
    def knows_meters(self) -> bool:
        return self.generations is not None


class Kept(msgspec.Struct, frozen=True):
    """What a snapshot says, without the wallet in it: there may be several, of many megabytes."""

    source: Source
    chain: bytes


def kept(data: Path | None, wallet: str) -> list[Kept]:
    """Every good snapshot of engine and projector, each read and let go again."""
    folders = [Snapshots(data, wallet, of=of) for of in ("", "projector")] if data is not None else []
    return [_kept_in(snapshot) for folder in folders for snapshot in folder.good()]


def _kept_in(snapshot: Snapshot) -> Kept:
    """Each meter's `used`, and the generation of its budget: a meter that began anew is not the old one."""
    wallet = snapshot.wallet
    meters = {name: settled + held + extra for name, (settled, held, extra, _) in wallet.meters().items()}
    source = Source("a snapshot", snapshot.told, meters, generations=dict(wallet.generations))
    return Kept(source, snapshot.chain)


async def documents(journal: Journal, data: Path | None) -> Source:
    """The projector's documents. They are whole up to the told in its witness, which it writes after them."""
    seen = Witness(data, journal.names.wallet, "projector").read("projector")
    source = Source("the projector's documents", seen.told if seen is not None else 0)
    jetstream = journal.client.jetstream()
    try:
        bucket = await jetstream.key_value(bucket_name(journal.names.wallet))
        keys = await bucket.keys()
    except (BucketNotFoundError, NoKeysError):
        source.told = 0
        return source
    for key in filter(is_totals, keys):
        value = (await bucket.get(key)).value
        totals = msgspec.json.decode(value or b"", type=DayTotals)
        source.sums[totals.budget, totals.period] = totals.settled + totals.extra + totals.held
    return source
